"""The page in a browser: every number is what `lm` says, by mouse and keyboard, wide and narrow, and in trouble."""

from __future__ import annotations

import json
import math
import re
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from tests.explorer.conftest import RESULT, Seen
from tests.service.serving import bert

import besag
from besag.errors import BesagError
from besag.language_model import LanguageModel

TEXT, OTHER = "The cat sleep.", "The cat sleeps."
PAIR = "The [MASK] [MASK] tired."
VIEWS = {
    "sentence": {"text": TEXT, "other": OTHER},
    "masks": {"text": PAIR, "candidates": 6},
    "dependence": {"text": "The cat sat.", "candidates": 5},
    "write": {"text": PAIR, "kernel": "metropolis", "steps": 4, "seed": 3, "step": 2},
}
close = {"abs": 2e-3}  # batches round, and the page sees JSON


def saved(seen: Seen, name: str) -> str:
    with seen.page.expect_download() as waiting:
        seen.page.locator(".view:not([hidden]) .exports button", has_text=name).click()
    return Path(waiting.value.path()).read_text(encoding="utf-8")


def python(seen: Seen) -> str:
    seen.page.locator(".view:not([hidden]) .exports button", has_text="Python").click()
    return seen.page.locator(".view:not([hidden]) .python code").inner_text()  # type: ignore[no-any-return]


def ran(code: str, lm: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the lines of Python make; the embedded model is loaded already."""
    monkeypatch.setattr(besag, "load", lambda: lm)
    names: dict[str, Any] = {}
    exec(code, names)
    return names


# ---- sentence


def test_a_sentence_is_told_as_lm_tells_it(seen: Seen, lm: LanguageModel) -> None:
    page = seen.open("sentence", text=TEXT)
    score, marginals = lm.score(TEXT, base=2), lm.marginals(TEXT, base=2, outcomes="text")
    assert seen.texts(".word .letters") == [TEXT[a:b] for a, b in score.offsets.tolist()]
    assert [float(one) for one in seen.texts(".word .bits")] == pytest.approx((-score.log_probs).tolist(), abs=0.051)
    assert seen.numbers(".totals .total", "data-total") == pytest.approx([score.total], **close)
    assert "not a probability" in page.locator(".totals").inner_text()
    page.wait_for_selector(".guesses li")
    for at in range(len(score)):
        page.locator(".word").nth(at).click()
        top = marginals.top(int(marginals.places[at]), 12)
        assert seen.numbers(".guesses button .p", "data-p") == pytest.approx([2**value for _, value in top], **close)


def test_a_word_is_chosen_and_the_score_changes(seen: Seen, lm: LanguageModel) -> None:
    page = seen.open("sentence", text=TEXT)
    guess = page.locator(".guesses button:not([disabled])").first
    other = guess.get_attribute("title")
    guess.click()
    assert page.locator("textarea").first.input_value() == other
    assert "bits of surprise" in page.locator(".change").inner_text()  # known before the server says anything
    seen.settled("document.querySelector('.change').innerText.includes('The whole sentence:')")
    assert seen.numbers(".totals .total", "data-total") == pytest.approx([lm.score(other, base=2).total], **close)
    page.go_back()
    seen.settled(f"document.querySelector('textarea').value === {json.dumps(TEXT)}")


def test_two_sentences_and_all_methods_side_by_side(seen: Seen, lm: LanguageModel) -> None:
    page = seen.open(**{"view": "sentence", **VIEWS["sentence"]})
    page.wait_for_selector(".methods tbody tr")  # they are asked after the words
    seen.settled("![...document.querySelectorAll('.methods td')].some(one => one.textContent === '…')")
    rows = page.locator(".methods tbody tr")
    told = {row.locator("code").inner_text(): row for row in rows.all()}
    assert {"pll", "chain", "elbo", "unmasked", "causal", "ag_chain"} <= told.keys()
    for name, row in told.items():
        if name == "ag_chain":
            assert row.get_by_role("button", name="ask").count() == 1  # dear, and so only by hand
            continue
        if row.locator(".why").count():
            with pytest.raises(BesagError, match=re.escape(row.locator(".why").inner_text())):
                lm.score(TEXT, name)
            continue
        scores = lm.score([TEXT, OTHER], name, base=2)
        totals = [float(one.get_attribute("data-total")) for one in row.locator("[data-total]").all()]
        assert totals == pytest.approx([score.total for score in scores], **close)
        said = row.locator(".meaning").inner_text()
        assert said == (f"yes, a log-probability of {scores[0].normalised}" if scores[0].normalised else "no")
        gap = float(row.locator(".number").nth(2).inner_text().replace("−", "-"))
        assert gap == pytest.approx(scores[1].total - scores[0].total, abs=0.051)
    before = len(seen.requests)
    page.locator("input[value=chain]").check()
    seen.settled("document.querySelector('.totals').innerText.includes('a log-probability of')")
    chain = lm.score(TEXT, "chain", base=2)
    shown = seen.page.eval_on_selector_all(".word[data-at^=a] .bits", "all => all.map(one => one.textContent)")
    assert [float(one) for one in shown] == pytest.approx((-chain.log_probs).tolist(), abs=0.051)
    assert len(seen.requests) == before  # all of it was there


# ---- two masks


def test_two_masks_are_the_joint_by_every_construction(seen: Seen, lm: LanguageModel) -> None:
    page = seen.open("masks", **VIEWS["masks"])
    before = len(seen.requests)
    alone = [one.prob for one in lm.joint(PAIR, method="mlm", candidates=6).top(6)]
    for name in page.eval_on_selector(".row select", "one => [...one.options].map(option => option.value)"):
        page.locator(".row select").first.select_option(name)
        joint = lm.joint(PAIR, method=name, candidates=6)
        shown = seen.numbers(".sentences .p", "data-p")
        assert shown == pytest.approx(alone + [one.prob for one in joint.top(6)], **close), name
        assert seen.texts(".pairs section:nth-child(2) .text") == [one.text for one in joint.top(6)]
        assert seen.numbers("[data-mi]", "data-mi") == pytest.approx([joint.mutual_information], **close)
    assert len(seen.requests) == before  # a construction is chosen without asking


def test_every_cell_says_its_numbers(seen: Seen, lm: LanguageModel) -> None:
    page = seen.open("masks", **VIEWS["masks"])
    tables = [lm.joint(PAIR, method=name, candidates=6).matrix() for name in ("mlm", "ag")]
    cells = page.locator(".maps svg").nth(1).locator(".cell")
    assert cells.count() == 36
    for i, j in ((0, 0), (2, 3), (5, 5)):
        cells.nth(6 * i + j).click()
        assert seen.numbers(".readout [data-p]", "data-p") == pytest.approx(
            [math.exp(one[i, j]) for one in tables], **close
        )
    page.locator(".view:not([hidden]) .maps").focus()
    page.keyboard.press("ArrowLeft")
    assert seen.numbers(".readout [data-p]", "data-p")[1] == pytest.approx(math.exp(tables[1][5, 4]), **close)


# ---- dependence


def test_dependence_is_the_map(seen: Seen, lm: LanguageModel) -> None:
    page = seen.open("dependence", **VIEWS["dependence"], least=0)
    found = lm.dependence("The cat sat.", candidates=5)
    assert seen.numbers(".strongest .p", "data-mi") == pytest.approx(
        [one.mutual_information for one in found.top(6)], **close
    )
    assert page.locator(".arc").count() == found.pairs
    assert page.locator(".view:not([hidden]) .cell").count() == 2 * found.pairs
    page.locator(".strongest button").nth(2).click()
    third = found.top(3)[2]
    said = page.locator(".view:not([hidden]) .readout").inner_text()
    assert f"{third.mutual_information / math.log(2):.2f} bits" in said


# ---- write


@pytest.mark.parametrize("kernel", ["gibbs", "metropolis"])
def test_writing_shows_every_step(seen: Seen, lm: LanguageModel, kernel: str) -> None:
    page = seen.open("write", text=PAIR, kernel=kernel, steps=4, seed=3, step=0)
    chain = lm.sample(PAIR, kernel, chains=1, steps=4, seed=3, every=1)
    seen.settled("document.querySelector('.count').innerText.includes('of 4')")
    for step, text in enumerate(chain.kept[0]):
        shown = page.locator(".canvas").inner_text().split()
        assert shown == text.replace("[MASK]", " ").split()
        spent = chain.numbers["passes"][0, :step].sum()
        assert seen.numbers("[data-passes]", "data-passes") == [spent]
        if kernel == "metropolis" and step:
            said = page.locator(".count").inner_text()
            assert f"energy {chain.numbers['energy'][0, step - 1]:.1f}".replace("-", "−") in said
            assert ("accepted" if chain.numbers["accepted"][0, step - 1] else "rejected") in said
        page.get_by_role("button", name="One step on").click()
    assert "step=4" in page.url


def test_it_plays_pauses_and_plays_again(seen: Seen) -> None:
    page = seen.open("write", text=PAIR, kernel="gibbs", steps=8)
    page.get_by_role("button", name="Pause").click()
    paused = int(page.locator(".transport input").input_value())
    assert paused < 8
    seen.settled("document.querySelector('.count').innerText.includes('of 8')")  # all of it has come
    page.get_by_role("button", name="To the end").click()
    assert "Step 8" in page.locator(".count").inner_text()
    before = len(seen.requests)
    page.get_by_role("button", name="Play").click()  # once more, from the start
    seen.settled("Number(document.querySelector('.transport input').value) < 8")
    assert len(seen.requests) == before


# ---- taken along


@pytest.mark.parametrize("view", VIEWS)
def test_what_is_taken_along_has_the_same_numbers(
    seen: Seen, lm: LanguageModel, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = seen.open(view, **VIEWS[view])
    if view == "sentence":
        page.wait_for_selector(".guesses li")
    elif view == "write":
        seen.settled("document.querySelector('.count').innerText.includes('of 4')")
    picture = ElementTree.fromstring(saved(seen, "SVG"))
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    data, made = json.loads(saved(seen, "JSON")), ran(python(seen), lm, monkeypatch)
    if view == "sentence":
        assert [one["total"] for one in data["scores"]] == pytest.approx([one.total for one in made["found"]], **close)
        told = [one["log_prob"] for one in data["places"][0]["places"][int(made["likeliest"] is None)]["likeliest"]]
        assert len(told) == len(made["likeliest"])
    elif view == "masks":
        laws = {law["method"]: law for law in data["laws"]}
        for name, joint in (("mlm", made["alone"]), ("ag", made["joint"])):
            assert [x for row in laws[name]["matrix"] for x in row] == pytest.approx(joint.matrix().ravel(), **close)
    elif view == "dependence":
        flat = [math.nan if x is None else x for row in data["matrix"] for x in row]
        assert flat == pytest.approx(made["found"].matrix.ravel(), nan_ok=True, **close)
    else:
        assert [row["texts"][0] for row in data["steps"]] == list(made["chain"].kept[0])
        energies = [row["numbers"]["energy"][0] for row in data["steps"][1:]]
        assert energies == pytest.approx(made["chain"].numbers["energy"][0], **close)


def test_another_model_is_asked_where_it_is_served(seen: Seen, lm: LanguageModel, monkeypatch) -> None:
    page = seen.open("sentence", text="the cat sat", model="bert")
    assert page.locator("select[aria-label=Model]").input_value() == "bert"
    code = python(seen)
    assert "besag.connect" in code
    total = bert().score("the cat sat", base=2).total
    assert ran(code, lm, monkeypatch)["found"].total == pytest.approx(total, **close)
    assert seen.numbers(".totals .total", "data-total") == pytest.approx([total], **close)


# ---- the address


def test_a_link_shows_what_was_seen_and_back_goes_back(seen: Seen) -> None:
    page = seen.open()
    page.locator("textarea").first.fill("A cat sat.")
    page.get_by_role("button", name="Look").click()
    seen.settled("location.hash.includes('A+cat+sat.')")
    page.get_by_role("link", name="Write").click()
    page.wait_for_selector(RESULT)
    page.go_back()
    assert page.locator(".view:not([hidden]) textarea").first.input_value() == "A cat sat."
    page.go_back()
    seen.settled("document.querySelector('textarea').value.startsWith('The keys')")
    page.go_forward()
    page.reload()
    page.wait_for_selector(RESULT)
    assert page.locator("textarea").first.input_value() == "A cat sat."


# ---- whoever reads it


def test_the_keyboard_is_enough(seen: Seen, lm: LanguageModel) -> None:
    page = seen.open("sentence", text=TEXT)
    page.wait_for_selector(".guesses li")

    def tabbed(selector: str) -> None:
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
                return
        raise AssertionError(f"{selector} is not reached")

    tabbed(".word")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"  # one sees where one is
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent").startswith("cat")
    assert page.locator(".word[aria-pressed=true] .letters").inner_text() == "cat"
    assert "cat" in page.locator(".panel h2").inner_text()
    tabbed(".guesses button:not([disabled])")
    chosen = page.evaluate("document.activeElement.title")
    page.keyboard.press("Enter")
    seen.settled(f"document.querySelector('textarea').value === {json.dumps(chosen)}")
    page.keyboard.press("Shift+Home")
    tabbed("nav a[data-view=write]")
    page.keyboard.press("Enter")
    page.wait_for_selector(RESULT)


@pytest.mark.parametrize("view", VIEWS)
def test_a_narrow_screen_is_enough(seen: Seen, view: str) -> None:
    page = seen.open(view, **VIEWS[view])
    for width in (640, 390, 320):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    small = page.eval_on_selector_all(
        ".view:not([hidden]) p, .view:not([hidden]) button", "all => all.filter(one => one.offsetParent && "
        "parseFloat(getComputedStyle(one).fontSize) < 11).map(one => one.textContent)",
    )  # fmt: skip
    assert small == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(seen: Seen, scheme: str) -> None:
    seen.page.emulate_media(color_scheme=scheme)
    page = seen.open("sentence", text=TEXT)

    def dark() -> bool:
        red, *_ = page.evaluate("getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)")
        return bool(red < 100)

    assert dark() == (scheme == "dark")
    found = set()
    for _ in range(3):
        page.locator(".theme").click()
        found.add((page.evaluate("document.documentElement.dataset.theme"), dark()))
    assert found == {("light", False), ("dark", True), ("auto", scheme == "dark")}


# ---- whatever is typed


def test_a_script_is_shown_as_text(seen: Seen) -> None:
    evil = "<script>window.hit = 1</script> <img src=x onerror='window.hit = 1'> &amp; cat."
    page = seen.open("sentence", text=evil)
    assert "".join(seen.texts(".word .letters")).replace("␣", "").startswith("<script>")
    page.wait_for_selector(".guesses li")
    svg = saved(seen, "SVG")
    assert "<script" not in svg
    assert "&lt;" in svg
    seen.open("write", text=f"{evil} [MASK]", kernel="gibbs", steps=1, step=1)
    assert "<script>window.hit" in page.locator(".canvas").inner_text()
    seen.open("masks", text=f"{evil} [MASK] [MASK]", candidates=6)
    assert "<script>" in page.locator(".sentences").first.inner_text()
    assert page.evaluate("window.hit") is None
    assert page.locator("main script, main img").count() == 0


def test_what_is_refused_is_said_and_what_was_typed_stays(seen: Seen) -> None:
    page = seen.open("masks", wait="", text="No mask here.")
    page.wait_for_selector(".view:not([hidden]) .refusal:not([hidden])")
    assert "has no mask" in page.locator(".view:not([hidden]) .refusal").inner_text()
    assert page.locator(".view:not([hidden]) textarea").input_value() == "No mask here."
    assert all("400" in one for one in seen.errors)  # the browser's own note
    seen.errors.clear()


# ---- a server in trouble


@pytest.mark.parametrize(("trouble", "told"), [("busy", "busy"), ("gone", "does not answer"), ("slow", "Asking")])
def test_trouble_is_told_and_nothing_is_lost(seen: Seen, trouble: str, told: str) -> None:
    page = seen.open("sentence", text=TEXT)
    over = []

    def answered(route: Any) -> None:
        if over:
            route.continue_()
        elif trouble == "busy":
            route.fulfill(status=429, headers={"Retry-After": "1"}, json={"error": {"message": "full"}})
        elif trouble == "gone":
            route.abort("connectionrefused")
        else:
            waiting.append(route)

    waiting: list[Any] = []
    page.route("**/explorer/score", answered)
    page.locator("textarea").first.fill("A dog sat there.")
    page.get_by_role("button", name="Look").click()
    seen.settled(f"document.getElementById('notice').textContent.includes({json.dumps(told)})")
    assert page.locator("textarea").first.input_value() == "A dog sat there."
    over.append(True)
    for route in waiting:
        route.continue_()
    seen.settled("[...document.querySelectorAll('.word .letters')].some(one => one.textContent === 'dog')")
    seen.settled("document.getElementById('notice').textContent === ''")
    assert all("429" in one or "ERR_" in one for one in seen.errors)  # the browser's own notes
    seen.errors.clear()


# ---- how soon (benchmarks/explorer.py measures it)


def test_the_first_view_and_a_click_come_soon(seen: Seen) -> None:
    seen.open("sentence", text=TEXT)  # whatever is loaded lazily is loaded
    began = time.perf_counter()
    page = seen.open("sentence", text=TEXT)
    page.wait_for_selector(".guesses li")
    assert time.perf_counter() - began < 20  # 2 s where nobody else computes
    took = page.evaluate(
        """() => new Promise(done => {
            const [before, word] = [performance.now(), document.querySelector(".word[aria-pressed=false]")];
            word.click();
            requestAnimationFrame(() => done(performance.now() - before));
        })"""
    )
    assert took < 2000  # 150 ms where nobody else computes
