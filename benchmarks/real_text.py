"""Contexts, tagged masks and tasks on real text, from the embedded model or from nothing: figures in docs/training/.

    python benchmarks/real_text.py prepare FOLDER --data DATA --corpus CORPUS    # after that of domains.py
    python benchmarks/real_text.py list
    python benchmarks/real_text.py JOB FOLDER -o OUT [--seeds 0 1] [--size core] # a line of JSON for each run

Each job is a process of its own, as in domains.py. What belongs together are paragraphs of one chunk of the corpus, of
about 1,500 words of one document; held out are whole documents. Tags are those of a few rules, since no tagged text is
at hand. Tasks are BLiMP's agreement, as in tasks.py, and SNLI.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from domains import RECIPE, SETTINGS, SMALL, Job, carry_out, chunks, lines_of, upto, write
from field import SMALL as NARROW
from field import beside
from heldout import sentences
from tasks import SAID, TASK, cut_agreement, read

SENTENCES = 300  # whose −PLL is told


def prepare(folder: Path, data: Path, corpus: Path) -> None:
    write(folder / "chunks.txt.xz", upto(chunks(corpus / "part-01.txt.xz"), 9_000_000))
    cut_agreement(data / "blimp", folder / "agreement", 500)


def device(job: Job) -> str | None:
    return None if job.device == "auto" else job.device


def finished(job: Job, name: str, recipe: Any, changes: dict[str, Any], **core: Any) -> Any:
    """A run to its end, and its numbers; `core` is for Job.sets."""
    import besag

    begun = time.monotonic()
    result = besag.train(recipe, {**changes, **job.sets(**core)}, output=job.out / f"{name}-{job.seed}", quiet=True)
    if not result.finished:
        raise SystemExit(f"{name} was stopped after step {result.step}")
    before, after = ({key: round(one, 4) for key, one in part.items()} for part in (result.before, result.metrics))
    told = {"steps": result.step, "seconds": round(time.monotonic() - begun), "before": before, "after": after}
    job.tell(run=name, seed=job.seed, **told)
    return result


# ---- documents that belong together


def paragraphs(job: Job, source: str, target: str, characters: int, tags: bool = False) -> Path:
    """The paragraphs of each chunk with several as rows that know it, each with its tags if wanted."""
    file = job.out / f"{target}-{job.seed}.jsonl"
    rows = []
    for number, chunk in enumerate(
        upto(chunks(job.data / source), min(characters, job.by_size(characters, 1_500_000, 60_000)))
    ):
        own = [line for line in chunk.split("\n") if len(line.split()) >= 30]
        if len(own) > 1:
            rows += [{"text": one, "document": f"d{number}", **({"tags": tagged(one)} if tags else {})} for one in own]
    write(file, ["\n".join(map(json.dumps, rows))])
    return file


CONTEXTS: dict[str, dict[str, Any]] = {
    "alone": {"data.context": "alone", "data.group": None},
    "untold": {"data.context": "pairs", "objective.relation": 0.0},
    "pairs": {"data.context": "pairs"},
    "together": {"data.context": "together"},
}


def contexts(job: Job, arm: str) -> None:
    """Going on with pieces alone, in pairs with or without the loss of their relation, or together: as many tokens.

    Then the masked loss of the same held-out pieces alone, beside any other, and beside one of the same document.
    """
    import besag

    train = paragraphs(job, "chunks.txt.xz", "train", 9_000_000)
    valid = paragraphs(job, "general.txt.xz", "valid", 10_000_000)
    room = job.by_size(256, 128, 256)  # tokens of a passage of two pieces
    asked = {"passages": job.by_size(1200, 100, 20), "max_length": room, "group": "document"}
    loading = {"device": device(job), "dtype": "float32", "progress": False}
    if arm == "alone":
        found = beside(besag.load(job.start, **loading), valid, job.out / "beside", **asked)
        job.tell(run="contexts-before", seed=job.seed, **found)
    changes = {
        **SETTINGS, "data.train": [str(train)], "data.valid": [str(valid)], "data.unit": "documents",
        "data.group": "document", "data.max_length": room // 2 if arm == "alone" else room,  # the same pieces
        "model.start": job.start, "optimizer.lr": 3e-4,
        "schedule.steps": 200, "run.log_every": job.by_size(20, 10, 1), "evaluation.sentences": 100,
    }  # fmt: skip
    changes = {key: one for key, one in (changes | CONTEXTS[arm]).items() if one is not None}
    result = finished(job, f"contexts-{arm}", RECIPE, changes, schedule__steps=40, evaluation__sentences=4)
    found = beside(besag.load(result.model, **loading), valid, job.out / f"beside-{arm}", **asked)
    job.tell(run=f"contexts-{arm}", seed=job.seed, **found)
    if arm == "pairs":
        job.tell(run="contexts-relation", seed=job.seed, **relation(job, result, valid, room))


def relation(job: Job, result: Any, valid: Path, room: int) -> dict[str, Any]:
    """How often the relation was told rightly in the last steps, of passages not read before, and the share of each."""
    import numpy as np

    import besag
    from besag.training.data import cache, context_batches, contexts
    from besag.training.recipe import Data
    from besag.training.recipe.contexts import KINDS

    log = [json.loads(line) for line in (job.out / f"contexts-pairs-{job.seed}" / "log.jsonl").open(encoding="utf-8")]
    told = [{name: round(one[name], 4) for name in one if name in ("step", "relation_loss", "relation_accuracy")}
            for one in log if "relation_accuracy" in one]  # fmt: skip
    words = besag.load(result.model, device="cpu", progress=False).vocabulary
    data = Data(train=(str(valid),), held_out=0.0, unit="documents", context="pairs", group="document", max_length=room)
    text = cache.prepare(data, words, job.out / "relation")
    plan = context_batches.ContextPlan(contexts.prepare(data, words, job.out / "relation", text), data, words, seed=0)
    kinds = plan.joined(0).relation
    shares = {name: round(float(np.mean(kinds == number)), 4) for number, name in enumerate(KINDS)}
    return {"shares": shares, "steps": told}


# ---- tags

CLOSED = {
    "DET": "the a an this that these those my your his her its our their no every each some any all both another",
    "PRON": "i you he she it we they me him us them who whom which what himself herself itself themselves there one",
    "ADP": "of in to for with on at by from into about after before over under between through during against near "
           "upon without within among toward towards across behind beside along around since until",
    "AUX": "is are was were be been being am has have had having do does did will would can could may might shall "
           "should must",
    "CONJ": "and or but nor so yet as if because although though while when where whether than",
    "ADV": "not very too also then now here again never always often still only just even more most quite however",
}  # fmt: skip
KNOWN = {word: tag for tag, words in CLOSED.items() for word in words.split()}
ADJECTIVE = re.compile(r"(?:ous|ful|ive|al|ic|able|ible|less|ish|ary|ient|iant)$")


def tagged(text: str) -> list[tuple[int, int, str]]:
    """Parts of speech by closed lists, endings and the word before: "run" is a verb after "to", a noun after "the"."""
    found: list[tuple[int, int, str]] = []
    last, word = "PUNCT", "."
    for match in re.finditer(r"\w+(?:['’]\w+)?|[^\w\s]", text):
        before, word = word, match[0]
        last = _tag(word, last, before)
        found.append((*match.span(), last))
    return found


def _tag(word: str, last: str, before: str) -> str:
    low = word.lower()
    if not word[0].isalnum():
        return "PUNCT"
    if word[0].isdigit():
        return "NUM"
    if low in KNOWN:
        return KNOWN[low]
    if word[0].isupper() and before not in ".!?\"'":
        return "NAME"
    if low.endswith("ly"):
        return "ADV"
    if before.lower() == "to" or last in ("PRON", "AUX") or low.endswith(("ed", "ing")):
        return "VERB"
    return "ADJ" if ADJECTIVE.search(low) else "NOUN"


def spans_of(text: str) -> list[tuple[int, int]]:
    """Names of several words as one, nouns and verbs: what linguistic entity masking hides."""
    found: list[tuple[int, int, str]] = []
    for start, end, tag in tagged(text):
        if tag == "NAME" and found and found[-1][2] == "NAME" and not text[found[-1][1] : start].strip():
            found[-1] = (found[-1][0], end, tag)
        else:
            found.append((start, end, tag))
    return [(start, end) for start, end, tag in found if tag in ("NAME", "NOUN", "VERB")]


def spans(job: Job, law: str) -> None:
    """Going on with spoken English: one token of each span (LEM), whole spans first, or any token, the same rate."""
    files = {}
    for part, source, characters in (
        ("train", "speech.train.txt.xz", 6_000_000),
        ("valid", "speech.valid.txt", 600_000),
    ):
        found = chunks(job.data / source) if source.endswith("xz") else iter([(job.data / source).read_text("utf-8")])
        lines = [line for one in upto(found, job.by_size(characters, 1_500_000, 60_000)) for line in one.split("\n")]
        files[part] = job.out / f"{part}-{job.seed}.jsonl"
        rows = ({"text": line, "spans": spans_of(line)} for line in lines if len(line.split()) >= 8)
        write(files[part], ["\n".join(map(json.dumps, rows))])
    changes = {
        **SETTINGS, "data.train": [str(files["train"])], "data.valid": [str(files["valid"])], "data.spans": "spans",
        "data.unit": "sentences", "model.start": job.start, "optimizer.lr": 3e-4, "schedule.steps": 200,
        "masking.law": law, "masking.rate": 0.15, "evaluation.general": [str(job.data / "general.txt.xz")],
    }  # fmt: skip
    if law == "uniform":
        del changes["data.spans"]
    finished(job, f"spans-{law}", RECIPE, changes)


LAWS: dict[str, dict[str, Any]] = {
    "uniform": {"masking.law": "uniform"},
    "whole_word": {"masking.law": "whole_word"},
    "content, tags": {"masking.law": "content", "data.tags": "tags"},
    "content, frequency": {"masking.law": "content"},
    "content, tags, falling rate": {
        "masking.law": "content", "data.tags": "tags",
        "masking.rate_law": "cosine", "masking.rate": 0.42, "masking.end_rate": 0.02,
    },
}  # fmt: skip


def masking(job: Job, laws: list[str]) -> None:
    """Hard parts of speech more often (PTW), beside masks that do not look at them: from nothing, the same steps."""
    import besag

    small = Path(besag.__file__).parent / "models" / "small-en"
    train = paragraphs(job, "english.txt.xz", "train", 4_000_000, tags=True)
    valid = paragraphs(job, "general.txt.xz", "valid", 10_000_000, tags=True)
    recipe = {
        "data": {
            "train": [str(train)], "valid": [str(valid)], "unit": "documents", "max_length": 128, "batch_tokens": 8192,
        },
        "tokenizer": job.by_size({"path": str(small)}, {"size": 2000}, {"path": str(small)}),
        "model": {"config": job.by_size(SMALL, NARROW, SMALL)},
        "masking": {"rate": 0.2},
        "optimizer": job.by_size({"lr": 2e-3}, {"name": "muon", "lr": 3e-3}, {"lr": 2e-3}),
        "schedule": {"steps": 300},
        "run": {"plot": False, "threads": 1, "log_every": 50, "checkpoint_every": 100_000},
        "evaluation": {"sentences": 200},
    }  # fmt: skip
    minutes = {"schedule__steps": 400, "data__batch_tokens": 2048, "evaluation__sentences": 60}
    minutes["run__precision"] = "float32"
    texts = sentences([json.loads(line)["text"] for line in lines_of(valid)])[: job.by_size(SENTENCES, 100, 3)]
    for name in laws:
        result = finished(job, "masking-" + re.sub(r"\W+", "-", name), recipe, LAWS[name], **minutes)
        told = {
            plain: _pll(job, result.model, texts, untilt)
            for plain, untilt in (("as it is", False), ("untilted", True))
            if not untilt or (Path(result.model) / "tilt.safetensors").exists()
        }
        job.tell(run="masking", law=name, seed=job.seed, pll_bits=told)


def _pll(job: Job, model: Path, texts: list[str], untilt: bool) -> list[float]:
    """−PLL in bits a character, and its standard error over sentences."""
    import numpy as np

    import besag

    lm = besag.load(model, device=device(job), dtype="float32", progress=False, untilt=untilt)
    bits = np.array([-one.total for one in lm.score(texts, "pll")]) / np.log(2)
    size = np.array([len(text) for text in texts])
    mean = bits.sum() / size.sum()
    return [round(float(one), 4) for one in (mean, ((bits - mean * size) ** 2).sum() ** 0.5 / size.sum())]


# ---- tasks

STANCES = {"entailment": ["true"], "neutral": ["open"], "contradiction": ["false"]}


def instructed(job: Job, name: str, files: dict[str, Path], task: dict[str, Any], changes: dict[str, Any]) -> None:
    """Answers alone are hidden and learned; how many are right before and after, beside chance and the usual."""
    test = read(files["test"])[: job.by_size(1000, 300, 6)]
    told(job, name, "before", job.start, test, task)
    steps = {"data.train": [str(files["train"])], "data.valid": [str(files["valid"])], "model.start": job.start,
             "run.plot": False, "run.threads": 1, "run.checkpoint_every": 100_000, "run.log_every": 50}  # fmt: skip
    recipe = Path(__file__).parent.parent / "recipes" / "instruct.toml"
    result = finished(job, name, recipe, {**steps, **changes}, schedule__steps=150)
    told(job, name, "after", result.model, test, task)


def told(job: Job, name: str, when: str, model: Any, test: list[dict[str, str]], task: dict[str, Any]) -> None:
    import besag

    lm = besag.load(model, device=device(job), dtype="float32", progress=False)
    found = besag.answer(lm, test, **task)
    error = (found.accuracy * (1 - found.accuracy) / len(found)) ** 0.5
    figures = {"accuracy": found.accuracy, "error": error, "majority": found.majority, "chance": found.chance}
    rounded = {key: round(one, 4) for key, one in figures.items()}
    job.tell(run=name, when=when, seed=job.seed, rows=len(found), **rounded)


def instruct(job: Job) -> None:
    """Is a sentence right? A longer run than the recipe's."""
    files = {part: job.data / "agreement" / f"{part}.tsv" for part in ("train", "valid", "test")}
    if job.size == "core":
        files = {part: demonstrative(file, job.out) for part, file in files.items()}
    changes = {"schedule.steps": 600, "data.batch_tokens": 2048, "evaluation.every": 150}
    instructed(job, "instruct", files, {"template": TASK, "labels": SAID}, changes)


def demonstrative(file: Path, folder: Path) -> Path:
    """The rows with this, that, these or those: agreement within two or three words, for a short run."""
    head, *rows = lines_of(file)
    write(
        folder / file.name,
        ["\n".join([head, *(row for row in rows if re.search(r"\b(?:this|that|these|those)\b", row))])],
    )
    return folder / file.name


def instruct_snli(job: Job) -> None:
    """SNLI by the masked head alone: the same rows as `heads` of domains.py, and as many readings."""
    held = job.data / "snli.valid.tsv"
    files = {"train": job.data / "snli.train.tsv", "valid": held, "test": held}
    template = "{text} That is {target}."
    changes = {
        "data.template": template, "data.answers": {label: one[0] for label, one in STANCES.items()},
        "data.max_length": 128, "data.batch_tokens": 4096, "schedule.steps": 400, "evaluation.every": 100,
    }  # fmt: skip
    instructed(job, "instruct-snli", files, {"template": template, "labels": STANCES}, changes)


JOBS: dict[str, Callable[[Job], None]] = {
    **{f"contexts-{arm}": partial(contexts, arm=arm) for arm in CONTEXTS},
    "masking": partial(masking, laws=[*LAWS][:3]), "masking-more": partial(masking, laws=[*LAWS][3:]),
    **{f"spans-{law}": partial(spans, law=law) for law in ("uniform", "entities", "linguistic_entities")},
    "instruct": instruct, "instruct-snli": instruct_snli,
}  # fmt: skip


if __name__ == "__main__":
    carry_out(__doc__, JOBS, prepare, "runs/real-text")
