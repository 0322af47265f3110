"""What every result answers, held for all kinds of results at once; tests of one kind say what its numbers are.

All of them are made of one law over three symbols, one of which would be dangerous in a page. A kind of result that is
missing from `MAKERS` is found by its methods.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.scores.example_scores import make, unscored
from tests.study import example_rows

import besag
from besag.constraints import Required
from besag.diagnostics import chains, mixing, texts
from besag.diagnostics.compatibility import compatibility
from besag.diagnostics.dependence import dependence
from besag.diagnostics.rectangle import rectangles
from besag.evaluation.compare import compare
from besag.evaluation.minimal_pairs import minimal_pairs
from besag.evaluation.overlap import overlap
from besag.joints import construction
from besag.lab import chain, ising
from besag.lab.dictionary import dictionary
from besag.lab.finding import Drawing, Finding
from besag.prompting.prompt import Prompt, Round
from besag.prompting.template import Template
from besag.rescoring.lists import Hypothesis, NBest
from besag.rescoring.rescore import rescore
from besag.results.result import Presented, Result
from besag.results.status import Status
from besag.results.tables import wrapped
from besag.samplers.annealed import LogZ
from besag.samplers.editing.correct import Corrected, Corrections, Edit
from besag.samplers.editing.edit import Edited, Flip
from besag.study.pairs import PairRow
from besag.study.report import Report
from besag.sweeps import Sweep

BAD = "<script>"
TEXT = f"{BAD} b c"
WEIGHTS = np.random.default_rng(2).gamma(1.0, size=(3, 3, 3)) + 0.05


@cache
def lm() -> besag.LanguageModel:
    return besag.load(besag.Table(WEIGHTS, symbols=[BAD, "b", "c"]))


@cache
def residues() -> besag.LanguageModel:
    """A law of two residues that like to be equal."""
    letters = "ACDEFGHIKLMNPQRSTVWY"
    return besag.load(besag.Table(1 + np.eye(20), symbols=list(letters)))


def translator() -> besag.LanguageModel:
    """An exact law of two words given a source."""
    return besag.load(besag.GivenTable({"x": WEIGHTS[0], "y": WEIGHTS[1]}, symbols=[BAD, "b", "c"]))


def pairs_of(*sentences: str) -> Path:
    """A file of (good, bad), (good, bad) …"""
    lines = "".join(f"{good}\t{bad}\n" for good, bad in zip(sentences[::2], sentences[1::2], strict=True))
    path = Path(tempfile.mkdtemp()) / "pairs.tsv"
    path.write_text(f"good\tbad\n{lines}")
    return path


def walk() -> np.ndarray:
    """(chains, steps) of a category that begins alike and forgets it."""
    states = np.random.default_rng(0).integers(0, 2, (20, 30))
    states[:, :3] = 0
    return states


def hypotheses(last: str = "b b b") -> list[NBest]:
    texts = [[TEXT, "b b b"], ["c b c", last]]
    return [
        NBest(f"{BAD}-{place}", tuple(Hypothesis(text, -1.0) for text in both), TEXT)
        for place, both in enumerate(texts)
    ]


def prompt() -> Prompt:
    rounds = (Round(0, (3,), 0.5, -2.0), Round(1, (0,), 0.75, -1.0))
    return Prompt(
        lm(), Template("[T] [MASK] {text}", lm().vocabulary), {"b": np.array([1]), "c": np.array([2])}, rounds
    )


MATRIX = np.array([[0.5, 0.5], [0.25, 0.75]])
CURVE = {"one": Drawing("a curve", lambda ax: ax.plot([0, 1], label="a"))}
LOG_Z = LogZ(-1.0, -2.0, 0.0, 0.5, 3.0, 8, 1, "norm", 1.0, 0.95)
RUN = {"status": "ok", "parameters": 9, "heldout_loss": 2.5}
RUNS = tuple({"run": law, "masking.law": law, **RUN} for law in (BAD, "b"))
MAKERS: dict[str, Callable[[], Any]] = {
    "a score": lambda: lm().score(TEXT, "pll", rank=True, entropy=True),
    "a score without a number": lambda: unscored("mask", f"{BAD} [MASK]"),
    "an impossible score": lambda: make(text=TEXT, pieces=(BAD, "b", "c"), log_probs=[-np.inf, -1, -1]),
    "masked marginals": lambda: lm().marginals(TEXT),
    "no marginals": lambda: lm().marginals(""),
    "a choice": lambda: lm().choose("{} b c", [BAD, "b"], method="pll"),
    "a corpus": lambda: besag.corpus(lm().score([TEXT, "", "b b b"], "chain")),
    "a joint of two": lambda: lm().joint(TEXT, [0, 1]),
    "a joint of two, by a pivot": lambda: lm().joint(f"[MASK] [MASK] {BAD}", method="hcb"),
    "an unfinished joint": lambda: lm().joint(TEXT, [0, 1], "stationary", limit=1),
    "a joint of three": lambda: lm().joint("[MASK] [MASK] [MASK]"),
    "an unfinished joint of three": lambda: lm().joint("[MASK] [MASK] [MASK]", limit=1),
    "a comparison": lambda: lm().joint(TEXT, [0, 1]).compare(["mlm", "ag"]),
    "a comparison without gold": lambda: lm().joint(f"[MASK] [MASK] {BAD}").compare(["mlm", "ag"]),
    "a filling": lambda: lm().fill(f"{BAD} [MASK] [MASK]", k=3),
    "chains": lambda: lm().sample(f"{BAD} [MASK] [MASK]", chains=3, steps=6, every=1),
    "solutions": lambda: lm().solve(f"{BAD} [MASK] [MASK]", [], solutions=2),
    "no solution": lambda: lm().solve(f"{BAD} [MASK] [MASK]", [Required("x")]),
    "an augmentation": lambda: lm().augment([TEXT, ""], copies=2, similarity=None),
    "corrections": lambda: Corrections(
        (Corrected(TEXT, "b b c", (Edit(0, 1, BAD, "b", 1.5),)), Corrected("", "", (), Status.EMPTY)), 0.5, BAD, "tiny"
    ),
    "an edited text": lambda: lm().edit(TEXT, {"b": "c"}),
    "a misread text": lambda: Edited(TEXT, TEXT, (("b", None),), (Flip(1, "b", BAD),), 2, False, 0.5, 1, 0, "tiny"),
    "a normalised text": lambda: lm().normalise([TEXT], chains=4, levels=2)[0],
    "a partition sum": lambda: LOG_Z,
    "a map of dependence": lambda: dependence(lm().engine, TEXT),
    "rectangles": lambda: rectangles(lm().engine, TEXT, minors=4),
    "compatibility": lambda: compatibility(lm().engine, TEXT, (0, 1), constructions=["mlm", "ag"]),
    "unfinished compatibility": lambda: compatibility(
        lm().engine, TEXT, (0, 1), constructions=[construction("stationary", limit=1)]
    ),
    "a diagnosis": lambda: chains.diagnose({BAD: np.random.default_rng(1).normal(size=(2, 30))}, walk()[:2, :, None]),
    "a measure of texts": lambda: texts.measure([TEXT, "b b", ""], judge=lambda all: [-1.0] * len(all)),
    "an approach": lambda: mixing.approach(walk()),
    "hitting times": lambda: mixing.hitting(walk(), 1),
    "mixing": lambda: mixing.exact_mixing(MATRIX),
    "no mixing": lambda: mixing.exact_mixing(np.eye(2)),
    "a report": lambda: Report(
        (*example_rows.many(6), PairRow(7, "random", Status.SHORT)), {"model": BAD, "dtype": "float32"}
    ),
    "minimal pairs": lambda: minimal_pairs(lm(), [(TEXT, "b b b"), (f"{BAD} b b", "")]),
    "variants": lambda: residues().variants("AA", ["A1G", "A1G:A2G"], "ag"),
    "binders": lambda: residues().binders("A", ["G", "A"], length=1, number=4),
    "a rescoring": lambda: rescore(lm(), hypotheses(), weight=0.5),
    "a rescoring with a gap": lambda: rescore(lm(), hypotheses(""), tune=True),
    "an evaluation": lambda: besag.evaluate(lm(), "minimal_pairs", data=pairs_of(TEXT, "b b b", f"{BAD} b b", "")),
    "compared evaluations": lambda: compare([made("an evaluation")], [made("an evaluation")])[0],
    "a finding": lambda: Finding(f"{BAD} was shown", {"so": True}, {BAD: [{"x": 1.0, "of": BAD}]}, figures=CURVE),
    "a claim refuted": lambda: Finding("shown", {f"not {BAD}": False}, {"numbers": [{"x": 1.0}]}, figures=CURVE),
    "a dictionary": lambda: dictionary(ising(chain(3), 0.5)),
    "translations": lambda: translator().translate(["x", "y"], "ordered", length=2, trace=True),
    "translations with a gap": lambda: translator().translate(["x", " "], length=2),
    "an explanation": lambda: lm().explain(f"{BAD} [MASK] c", "b", curve=True, orders=2),
    "an explanation of a score": lambda: lm().explain(TEXT),
    "a matching": lambda: lm().match([f"{BAD} b", "c c"], ["c", "b"]),
    "a probe": lambda: besag.probe([[0.0], [0.1], [1.0], [0.9]], [BAD, BAD, "b", "b"], folds=2),
    "a prompt": lambda: prompt(),
    "answers": lambda: besag.answer(lm(), [{"x": BAD, "label": "b"}], "{x} [MASK] c", ["b", "c"]),
    "answers that were written": lambda: besag.answer(lm(), [{"x": BAD}], "{x} [MASK]", tokens=2, kernel="ordered"),
    "a sweep": lambda: Sweep(Path("sweep"), ("masking.law",), RUNS, {}),
    "a sweep with a failed run": lambda: Sweep(Path("sweep"), ("masking.law",), RUNS, {BAD: "no text"}),
    "an overlap": lambda: overlap([(f"one two three four {BAD}", BAD)], [f"{BAD} one two three four", "two"]),
}  # fmt: skip


WARNINGS = {  # what a reader is told
    Status.EMPTY: "not asked: the text is empty",
    Status.MASK: "not scored: the text holds the mask token",
    Status.NOT_CONVERGED: "NOT CONVERGED: residual .* after 1 reading, .* wanted",
    Status.PARTLY: "1 text skipped|[0-9] of 4 copies changed|not scored|not measured: 1 short|not looked for|left out",
    Status.UNSURE: "do not agree|few|cannot be judged|nothing can be said|not yet|more than",
    Status.UNSATISFIABLE: "no text satisfies",
    Status.MISREAD: "READS AS OTHER TOKENS",
    Status.REFUTED: "DOES NOT HOLD: not",
    Status.NEVER_MIXES: "it never mixes: several laws stay",
}


@cache
def made(name: str) -> Any:
    return MAKERS[name]()


@pytest.fixture(params=MAKERS)
def result(request: pytest.FixtureRequest) -> Any:
    return made(request.param)


def said(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())


class Page(HTMLParser):
    """What a browser would show of a page, and which tags it has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.depth, self.shown = 0, ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.depth += 1

    def handle_endtag(self, tag: str) -> None:
        self.depth -= 1

    def handle_data(self, data: str) -> None:
        self.shown += data


def test_it_is_a_result(result):
    assert isinstance(result, Result)


def test_its_status_is_one_of_all_and_has_a_sentence(result):
    assert isinstance(result.status, Status)
    assert result.status.sentence


def test_its_facts_are_sentences(result):
    assert isinstance(result.facts, list)
    assert result.facts
    for fact in result.facts:
        assert type(fact) is str
        assert fact.strip() == fact != ""
        assert "Status." not in fact


def test_what_is_not_fine_is_among_its_facts(result):
    if not result.status.fine:
        assert re.search(WARNINGS[result.status], " · ".join(result.facts))


def test_its_dictionary_is_json_and_says_what_it_is(result):
    record = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert record["status"] == result.status
    assert record["facts"] == result.facts
    for name in ("model", "dtype", "method", "unit", "seed"):
        if isinstance(getattr(result, name, None), str | int):
            assert record[name] == getattr(result, name), name
    if hasattr(result, "details"):
        assert set(record["details"]) == set(result.details)


def test_its_frame_has_rows_and_says_what_it_is(result):
    pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert len(frame.columns) > 0
    assert frame.attrs["result"] == type(result).__name__
    assert frame.attrs["status"] == result.status
    assert type(frame.attrs["status"]) is str
    json.dumps({name: value for name, value in frame.attrs.items() if value == value}, default=str)
    for name in ("text", "model", "dtype", "method", "normalised", "unit", "seed"):
        if isinstance(getattr(result, name, None), str | int):
            assert frame.attrs[name] == getattr(result, name), name
    if result.status in (Status.OK, Status.SOLVED):
        assert len(frame) > 0


def test_its_page_is_whole_and_safe_and_has_every_fact(result):
    raw = result._repr_html_()
    page = Page(raw)
    assert set(page.tags) <= {"div", "span", "table", "thead", "tbody", "tr", "th", "td"}
    assert BAD not in raw
    assert page.depth == 0
    for fact in result.facts:
        assert fact in page.shown
    assert "color:" not in raw.replace("background-color:", "")  # letters keep the page's own colour


def test_its_table_has_every_fact(result, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert repr(result).endswith(wrapped(result.facts, 100))
    assert str(result) == repr(result)
    monkeypatch.setenv("COLUMNS", "40")
    for fact in result.facts:
        assert said(fact) in said(repr(result))


def test_the_dangerous_text_is_shown(result):
    if BAD in json.dumps(result.to_dict()):
        assert BAD in Page(result._repr_html_()).shown + repr(result)


STEERING = "\x1b[31m\x07\x9b2J\x7f\u202e\u2066[/i]"  # sets a colour, rings, clears, deletes, turns writing around
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067]")  # the other isolates are our own


@pytest.mark.parametrize("name", MAKERS)
def test_nothing_in_it_steers_a_terminal(name, monkeypatch):
    here = sys.modules[__name__]
    monkeypatch.setattr(here, "BAD", STEERING)
    monkeypatch.setattr(here, "TEXT", f"{STEERING} b c")
    weird = cache(lambda: besag.load(besag.Table(WEIGHTS, symbols=[STEERING, "b", "c"])))
    monkeypatch.setattr(here, "lm", weird)
    result = MAKERS[name]()
    for written in (str(result), repr(result), result._repr_html_()):
        assert not STEERS.search(written)


def test_its_picture_is_drawn_on_given_axes_or_new_ones(result):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    if not hasattr(result, "plot"):
        pytest.skip("it has no picture")
    if result.status in (Status.MASK, Status.EMPTY):
        with pytest.raises(besag.BesagError, match=r"nothing to (plot|draw)"):
            result.plot()
        return
    drawn = result.plot()
    assert isinstance(drawn, Axes | Figure)
    if isinstance(drawn, Axes):
        _, axes = pyplot.subplots()
        assert result.plot(ax=axes) is axes
    pyplot.close("all")


def public() -> set[type]:
    """All public classes of besag but those of training, whose results are files, and of transformers' kinds."""
    found = set()
    for module in pkgutil.walk_packages(besag.__path__, "besag."):
        if module.name.startswith(("besag.training", "besag.family")):
            continue
        if module.name in ("besag.__main__", "besag.joints.tiles", "besag.harness"):
            continue  # the last two need what may not be there
        kinds = inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
        found |= {kind for name, kind in kinds if kind.__module__ == module.name and not name.startswith("_")}
    return found - {Result, Presented}


def test_none_is_missing():
    """What shows itself in a notebook, or writes itself as data, is a result; only rows of results need not be."""
    showing = {kind for kind in public() if hasattr(kind, "_repr_html_") or hasattr(kind, "to_dict")}
    assert showing - {PairRow} == {type(made(name)) for name in MAKERS}
