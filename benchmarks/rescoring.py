"""LibriSpeech 10-best lists rescored in two folds by speaker: the tables and the curve of docs/evaluation/rescoring.md.

    python benchmarks/rescoring.py --scores build/rescoring/scores.jsonl                     # hours on a CPU core
    python benchmarks/rescoring.py --scores build/rescoring/scores.jsonl --longest 10        # short utterances alone
    python benchmarks/rescoring.py --scores build/rescoring/scores.jsonl --only-kept         # what has scores already
    python benchmarks/rescoring.py --scores chain.jsonl --methods chain --only-score         # without jiwer

Scores are kept as they come, so a run that was stopped goes on, and with all of them kept the tables take seconds.
`--only-score` takes the shortest utterances first: where it is stopped, those up to some length are whole. The
data (BESAG_DATA/asr_nbest_librispeech) is none of besag's. λ of each fold is tuned on the other; text is scored in
sentence case with a full stop.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SETS = ("dev_clean", "dev_other")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("BESAG_DATA", "../shared/data"))
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--methods", nargs="+", default=["pll", "word_l2r", "chain"])
    parser.add_argument("--scores", required=True, help="the file that keeps scores")
    parser.add_argument("--longest", type=int, help="only utterances whose first-best hypothesis has so many words")
    parser.add_argument("--only-kept", action="store_true", help="only utterances that all methods have scored already")
    parser.add_argument("--only-score", action="store_true", help="keep scores, and judge nothing")
    parser.add_argument("--combine", action="store_true", help="also all methods together")
    parser.add_argument("--model")
    parser.add_argument("--device")
    parser.add_argument("--dtype")
    parser.add_argument("--plot", help="where the curves go")
    parser.add_argument("--json", help="where the figures go")
    chosen = parser.parse_args()

    import besag
    from besag.rescoring.formats import read_nbest

    lm = besag.load(chosen.model, device=chosen.device, dtype=chosen.dtype)
    found = {}
    for name in chosen.sets:
        lists, _ = read_nbest(Path(chosen.data) / "asr_nbest_librispeech" / f"{name}.jsonl")
        every = len(lists)
        if chosen.longest:
            lists = [one for one in lists if len(one.hypotheses[0].text.split()) <= chosen.longest]
        if chosen.only_kept:
            lists = kept(lists, lm, chosen.methods, chosen.scores)
        if chosen.only_score:
            keep(lm, lists, chosen.methods, chosen.scores)
            continue
        print(f"\n{name}: {len(lists):,} of {every:,} utterances", flush=True)
        if len(lists) < 2:
            continue
        found[name] = besag.rescore(
            lm, lists, methods=chosen.methods, folds="speaker", combine=chosen.combine, casing="sentence",
            full_stop=True, scores=chosen.scores,
        )  # fmt: skip
        print(markdown(found[name].table()))
        print(" · ".join(found[name].facts))
    if chosen.json:
        figures = {name: {**one.to_dict(), "utterances": len(one)} for name, one in found.items()}
        Path(chosen.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if chosen.plot and found:
        draw(found, chosen.plot)


def keep(lm: Any, lists: Sequence[Any], methods: Sequence[str], path: str) -> None:
    """Score every hypothesis, those of short utterances first."""
    from besag.rescoring import ledger
    from besag.rescoring.texts import prepared
    from besag.scores import method

    short = sorted(lists, key=lambda one: len(one.hypotheses[0].text.split()))
    texts = [prepared(each.text, "sentence", True) for one in short for each in one.hypotheses]
    ledger.scores([ledger.Scorer(name, lm.engine, method(name)) for name in methods], texts, path, print)


def kept(lists: Sequence[Any], lm: Any, methods: Sequence[str], path: str) -> list[Any]:
    """The lists of which every hypothesis has a score of every method."""
    from besag.rescoring import ledger
    from besag.rescoring.texts import prepared
    from besag.scores import method

    known = ledger.read(path)[0]
    tables = [known.get(ledger.Scorer(name, lm.engine, method(name)).key, {}) for name in methods]
    return [
        one for one in lists
        if all(prepared(each.text, "sentence", True) in table for each in one.hypotheses for table in tables)
    ]  # fmt: skip


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    head = "| | λ (fold 1, fold 2) | WER | relative | changed | 95 % of the difference | Z | p | p (Holm) |"
    lines = [head, "|---|---|--:|--:|--:|---|--:|--:|--:|"]
    for row in rows:
        tested = row["p"] == row["p"]  # neither the first pass nor the oracle
        cells = [
            row["system"], row["weight"] if tested else "", f"{row['wer']:.2f}",
            f"{row['relative']:+.1f} %", f"{row['changed']:,}",
            *([f"{row['low']:+.2f} … {row['high']:+.2f}", f"{row['z']:.1f}", f"{row['p']:.1e}", f"{row['p_holm']:.1e}"]
              if tested else [""] * 4),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines).replace("-", "−").replace("|−−−|−−−|−−:|−−:|−−:|−−−|−−:|−−:|−−:|", lines[1])


def draw(found: dict[str, Any], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(found), figsize=(5 * len(found), 3.6), layout="constrained", squeeze=False)
    for (name, one), ax in zip(found.items(), axes[0], strict=True):
        one.plot(ax)
        ax.set_title(f"{name}: {len(one):,} utterances")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
