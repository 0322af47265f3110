"""BabyLM: small files in the pipeline's formats, completions scored and predictions written as it does."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

import besag
from besag.conditionals.temper import Tempered
from besag.errors import BesagError
from besag.evaluation.saved import write
from besag.evaluation.suite import Item
from besag.evaluation.suites.babylm import BabyLM, Choice, predictions

FILES: dict[str, list[dict[str, Any]]] = {
    "blimp_filtered/agreement.jsonl": [
        {"sentence_good": good, "sentence_bad": bad, "field": "morphology", "UID": "agreement", "linguistics_term": "x"}
        for good, bad in [("The cats sleep.", "The cats sleeps."), ("She are here.", "She is here.")]
    ],
    "supplement_filtered/turn_taking.jsonl": [{"sentence_good": "Do they sleep?", "sentence_bad": "Does they sleep?"}],
    "ewok_filtered/spatial-relations.jsonl": [
        {"Context1": "The cup is on the table.", "Context2": "The table is on the cup.", "Target1": "The cup is high.",
         "Target2": "The table is high.", "Domain": "spatial-relations", "ContextType": "direct", "ContextDiff": "x",
         "TargetDiff": "y"},
    ],
    "entity_tracking/regular.jsonl": [
        {"input_prefix": "Box 1 contains the cup. Box 1 contains", "options": [" the cup.", " the dog.", " nothing."],
         "numops": ops} for ops in (0, 0, 1)
    ],
    "entity_tracking/ambiref.jsonl": [
        {"input_prefix": "Box 2 contains the dog. Box 2 contains", "options": [" the dog.", " the map."], "numops": 0},
    ],
    "comps/comps_wugs_dist-before.jsonl": [
        {"prefix_acceptable": "A bird", "prefix_unacceptable": "A stone", "property_phrase": "can fly."},
    ],
    "wug_adj_nominalization/wug_adj_nominalization.jsonl": [
        {"sentences": f"The {stem}ity was old.\tThe {stem}ness was old.", "ratio": ratio}
        for stem, ratio in [("red", 0.1), ("curios", 0.9), ("kind", 0.3)]
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    for name, rows in FILES.items():
        path = root / "babylm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


@pytest.fixture(scope="module")
def lm() -> besag.LanguageModel:
    return besag.load(progress=False)


@pytest.fixture(scope="module")
def found(folder: Path, lm: besag.LanguageModel) -> besag.Evaluation:
    return besag.evaluate(lm, "babylm", data=folder)


def published(lm: besag.LanguageModel, sentence: str, completion: str) -> float:
    """The pipeline's rule: tokens of the sentence that end after the completion's first character, each hidden once."""
    score, start = lm.score(sentence, "pll"), len(sentence) - len(completion)
    return float(sum(value for value, (_, end) in zip(score.log_probs, score.offsets, strict=True) if end > start))


def test_completions_are_scored_as_the_pipeline_does(found: besag.Evaluation, lm: besag.LanguageModel) -> None:
    rows = {row["id"]: row for row in found.parts[0].rows}
    ewok, story = rows["ewok/spatial-relations_0"], rows["entity_tracking/regular_0_ops_0"]
    comps, pair = rows["comps/wugs_dist_before_0"], rows["blimp/agreement_0"]
    context = "The cup is on the table."
    both = [published(lm, f"{context} {target}", f" {target}") for target in ("The cup is high.", "The table is high.")]
    assert ewok["scores"] == pytest.approx(both, abs=1e-4)
    before = FILES["entity_tracking/regular.jsonl"][0]["input_prefix"]
    options = [published(lm, before + one, one) for one in (" the cup.", " the dog.", " nothing.")]
    assert story["scores"] == pytest.approx(options, abs=1e-4)
    assert comps["scores"] == pytest.approx(
        [published(lm, f"{one} can fly.", "can fly.") for one in ("A bird", "A stone")], abs=1e-4
    )
    assert pair["scores"] == pytest.approx(
        [lm.score(one).total for one in ("The cats sleep.", "The cats sleeps.")], abs=1e-4
    )


def test_figures_are_the_published_means(found: besag.Evaluation) -> None:
    rows = found.parts[0].rows
    assert found["accuracy/blimp"].value == 50.0  # the second pair is the wrong way round
    credit = {row["id"]: row["credit"] for row in rows}
    regular = [
        [credit[f"entity_tracking/regular_0_ops_{k}"] for k in (0, 1)],
        [credit["entity_tracking/regular_1_ops_0"]],
    ]
    by_kind = [sum(sum(one) / len(one) for one in regular) / 2, credit["entity_tracking/ambiref_0_ops_0"]]
    assert found["accuracy/entity_tracking"].value == pytest.approx(100 * sum(by_kind) / 2)
    tasks = ("blimp", "blimp_supplement", "ewok", "entity_tracking", "comps")
    assert found["accuracy"].value == pytest.approx(sum(found[f"accuracy/{task}"].value for task in tasks) / len(tasks))
    wugs = [row for row in rows if row["task"] == "wug_adj"]
    model = [math.exp(row["scores"][0]) / sum(map(math.exp, row["scores"])) for row in wugs]
    assert [row["prob"] for row in wugs] == pytest.approx(model)
    expected = stats.spearmanr(model, [row["ratio"] for row in wugs])[0]
    assert found["correlation/wug_adj"].value == pytest.approx(expected)


def test_predictions_are_written_as_the_pipeline_reads_them(found: besag.Evaluation, tmp_path: Path) -> None:
    write(tmp_path, [found], {})
    written = json.loads((tmp_path / "babylm-predictions.json").read_text())
    assert written == predictions(found.parts[0].rows)
    assert set(written) == {"blimp", "blimp_supplement", "ewok", "entity_tracking", "comps", "wug_adj"}
    first, second = written["blimp"]["agreement"]["predictions"]
    assert first == {"id": "agreement_0", "pred": "The cats sleep."}
    assert second == {"id": "agreement_1", "pred": "She is here."}
    assert written["blimp_supplement"]["turn_taking"]["predictions"][0]["id"] == "turn_taking_0"
    assert written["ewok"]["spatial-relations"]["predictions"][0]["pred"] in (
        " The cup is high.",
        " The table is high.",
    )
    assert written["comps"]["wugs_dist_before"]["predictions"][0]["pred"] in ("A bird can fly.", "A stone can fly.")
    assert len(written["entity_tracking"]["regular_0_ops"]["predictions"]) == 2
    assert set(written["wug_adj"]["wug_adj"]["predictions"][0]) == {"id", "pred", "prob"}


def test_a_tie_is_right_as_in_the_pipeline(lm: besag.LanguageModel) -> None:
    one = Choice("x", ("", ""), ("It rains.", "It rains."), ("It rains.", "It rains."))
    same = lm.score("It rains.")
    row = BabyLM().judge(Item("x", "x", about={"task": "blimp", "choice": one, "number": 0}), [same, same])
    assert (row["credit"], row["ties"]) == (1.0, 1.0)


def test_the_best_temperature_of_each_task(folder: Path, lm: besag.LanguageModel) -> None:
    """τ = 1 beside it, chosen task by task on the items themselves, as the pipeline reports it."""
    found = besag.evaluate(lm, "babylm", data=folder, temperatures="0.3,4")
    sharp = besag.evaluate(besag.load(Tempered(lm.conditionals, 0.3)), "babylm", data=folder)
    flat = besag.evaluate(besag.load(Tempered(lm.conditionals, 4.0)), "babylm", data=folder)
    plain = besag.evaluate(lm, "babylm", data=folder)
    for task in ("accuracy/blimp", "accuracy/entity_tracking", "accuracy/comps", "correlation/wug_adj"):
        at = [one[task].value for one in (plain, sharp, flat)]
        assert found[task].value == at[0]
        assert found[f"best {task}"].value == pytest.approx(max(at))
        best = ("1", "0.3", "4")[at.index(max(at))]
        assert f"at temperature {best}, the best of 1, 0.3, 4 on these very items" in found[f"best {task}"].meaning
    with pytest.raises(BesagError, match="temperatures='1,hot': numbers above 0"):
        besag.evaluate(lm, "babylm", data=folder, temperatures="1,hot")


@pytest.mark.parametrize(
    ("name", "row", "said"),
    [
        ("else/x.jsonl", {"a": 1}, "lies in no folder of a task"),
        ("blimp_fast/x.jsonl", {"sentence": "a"}, "line 1 has no 'sentence_good'; it has sentence"),
        ("comps/other.jsonl", FILES["comps/comps_wugs_dist-before.jsonl"][0], "the files of COMPS are called"),
        ("entity_tracking/x.jsonl", {"input_prefix": "a", "numops": 0, "options": "b"}, "'options' is 'b', and should"),
        ("wug_past_tense/x.jsonl", {"sentences": "one", "ratio": 1}, "two sentences with a tab between"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file(tmp_path: Path, lm: besag.LanguageModel, name: str, row: Any, said: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(BesagError, match=said):
        besag.evaluate(lm, "babylm", data=tmp_path)
