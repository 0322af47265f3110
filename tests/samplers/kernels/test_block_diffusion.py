"""Block after block: the law is enumerated, what follows is not seen, and keeping finished blocks changes nothing."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from tests.networks import tiny, vocabulary
from tests.samplers.exact import text_canvas

from besag.conditionals import blocks
from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank, conditional, empirical, follows, number, run
from besag.samplers import kernel

PLACES, CHAINS = 4, 4000


def sets(kind, rows, times):
    """The sets of places that may be revealed next, each with its chance."""
    inside = sorted(rows)
    if kind == "one":
        return [([place], 1 / len(inside)) for place in inside]
    if kind == "grid":
        return [([place for place in inside if times[place] == min(times[place] for place in inside)], 1.0)]
    sure = [place for place in inside if rows[place].max() >= 0.6]
    return [(sure or [max(inside, key=lambda place: rows[place].max())], 1.0)]


def enumerated(law, length: int, kind: str, start=None) -> np.ndarray:
    """(V^n,) all ways followed, as plain loops; with `grid` over both times of every place."""
    width, total = law.width, np.zeros(law.width**PLACES)

    def follow(sequence: np.ndarray, weight: float, times) -> None:
        hides = [place for place in range(PLACES) if sequence[place] == width]
        if not hides:
            total[number(sequence[None], width)[0]] += weight
            return
        block = hides[0] // length
        shown = np.array([token if at // length <= block else width for at, token in enumerate(sequence)])
        hidden = [place for place in range(PLACES) if shown[place] == width]
        inside = [place for place in hides if place // length == block]
        rows = {place: conditional(law, shown, hidden, place) for place in inside}
        for chosen, chance in sets(kind, rows, times):
            for tokens in product(range(width), repeat=len(chosen)):
                share = np.prod([rows[place][token] for place, token in zip(chosen, tokens, strict=True)])
                if share > 0:
                    moved = sequence.copy()
                    moved[chosen] = tokens
                    follow(moved, weight * chance * float(share), times)

    first = np.full(PLACES, width) if start is None else np.array(start)
    every = list(product((0, 1), repeat=PLACES)) if kind == "grid" else [None]
    for times in every:
        follow(first, 1 / len(every), times)
    return total


OPTIONS = {"one": {}, "grid": {"grid": 2}, "least": {"least": 0.6}}


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("family", ["joint", "incompatible"])
def test_it_has_the_enumerated_law(family, length, kind):
    law = Table.random(2, PLACES, seed=3, concentration=0.3) if family == "joint" else Incompatible(2, PLACES, seed=3)
    counts = empirical(kernel("block_diffusion", size=length, **OPTIONS[kind]), law, blank(law, PLACES, CHAINS))
    assert follows(counts, enumerated(law, length, kind))


@pytest.mark.parametrize("length", [1, 2, 4])
def test_one_place_at_a_time_draws_from_the_joint(length):
    law = Table.random(3, 4, seed=1, concentration=0.3)
    counts = empirical(kernel("block_diffusion", size=length), law, blank(law, 4, CHAINS))
    assert follows(counts, law.log_probs.exp().numpy())


def test_blocks_of_one_token_leave_nothing_to_share_a_pass_and_one_block_all_of_it():
    """Two places that agree: drawn in one pass they do not, unless each is a block of its own."""
    law = Table([[0.5, 0.0], [0.0, 0.5]])
    apart = empirical(kernel("block_diffusion", size=1, grid=1), law, blank(law, 2, 1000))
    assert apart[1] == apart[2] == 0
    assert follows(empirical(kernel("block_diffusion", size=2, grid=1), law, blank(law, 2, CHAINS)), np.full(4, 0.25))


def test_what_is_given_after_a_block_is_not_seen_before_it_is_reached():
    law, start = Table.random(2, PLACES, seed=3, concentration=0.3), [2, 2, 2, 1]
    canvas = blank(law, PLACES, CHAINS, start=start)
    canvas.free[:, 3] = False
    expected = enumerated(law, 2, "one", start)
    counts = empirical(kernel("block_diffusion", size=2), law, canvas)
    assert follows(counts, expected)
    given = law.log_probs.exp().numpy()[..., 1]
    pairs = np.array([[counts[8 * a + 4 * b : 8 * a + 4 * b + 4].sum() for b in (0, 1)] for a in (0, 1)])
    assert follows(pairs.ravel(), law.log_probs.exp().sum((2, 3)).numpy().ravel())
    assert not follows(pairs.ravel(), (given.sum(2) / given.sum()).ravel())


# ---- networks


def network(family: str, length: int | None = 4) -> Transformer:
    model = tiny(family)
    if length is not None:
        model.config.besag_block_length = length
    return Transformer(model, vocabulary(family))


@pytest.fixture
def columns(monkeypatch):
    """How many columns of how many sequences each pass ran."""
    passes = []
    plain = blocks.Blocks._run

    def spied(self, ids, start, stop, given, length):
        passes.append(ids.shape[1])
        return plain(self, ids, start, stop, given, length)

    monkeypatch.setattr(blocks.Blocks, "_run", spied)
    return passes


@pytest.mark.parametrize("options", [{}, {"grid": 3}, {"least": 0.3}], ids=["one", "grid", "least"])
@pytest.mark.parametrize("family", ["besag", "bert", "modernbert"])
def test_kept_blocks_give_the_same_texts_and_numbers_as_blocks_run_anew(family, options, columns):
    """Chains that are at different blocks, of a text that begins with some tokens."""
    mask = vocabulary(family).mask_token
    text = "".join([mask, mask, "a", *[mask] * 10, "b", *[mask] * 8])
    found = []
    for room in (2**28, 0):
        asked = network(family)
        asked.blocks.kept = blocks.Kept(4, room)
        canvas = text_canvas(asked, text, 5)
        columns.clear()
        state, told = run(kernel("block_diffusion", **options), asked, canvas, seed=4)
        found.append((state.ids, torch.stack([one.more["log_prob"] for one in told]), list(columns)))
    (kept, kept_log_prob, kept_columns), (anew, anew_log_prob, anew_columns) = found
    assert torch.equal(kept, anew)
    torch.testing.assert_close(kept_log_prob, anew_log_prob, rtol=1e-5, atol=1e-5)
    assert len(kept_columns) == len(anew_columns)
    assert kept.shape[1] - 4 < max(anew_columns) <= kept.shape[1]
    assert max(kept_columns) <= 8  # a block that was finished, and the one after it
    assert sum(kept_columns) < 0.6 * sum(anew_columns)


def test_the_sum_of_log_prob_is_that_of_the_text_one_block_after_the_other():
    """By the network itself: with blocks of one token, log p(x) = Σ log p(x_i | x_<i)."""
    asked = network("besag", 1)
    words = vocabulary("besag")
    canvas = text_canvas(asked, " ".join([words.mask_token] * 6), 3)
    state, told = run(kernel("block_diffusion"), asked, canvas)
    total = torch.stack([one.more["log_prob"] for one in told]).sum(0)
    column = torch.arange(state.ids.shape[1])
    seen = torch.zeros(len(column), len(column)).masked_fill(column[None] > column[:, None], float("-inf"))
    for chain, ids in enumerate(state.ids):
        by_hand = 0.0
        for place in canvas.free[chain].nonzero()[:, 0].tolist():
            asking = ids.clone()
            asking[place] = words.mask_id
            with torch.no_grad():
                logits = asked.model(input_ids=asking[None], attention_mask=seen[None, None]).logits[0, place]
            logits = logits.masked_fill(~canvas.allowed, -torch.inf).index_fill(
                0, torch.tensor(words.mask_id), -torch.inf
            )
            by_hand += float(logits.log_softmax(-1)[ids[place]])
        assert float(total[chain]) == pytest.approx(by_hand, abs=1e-4)


def test_a_network_of_no_blocks_is_asked_with_what_follows_hidden_and_its_end_in_sight():
    asked = network("bert", None)
    words = vocabulary("bert")
    canvas = text_canvas(asked, f"{words.mask_token} {words.mask_token} {words.mask_token} a b", 2)
    shown = []
    plain = asked.rows
    asked.rows = lambda questions: shown.append(questions.ids[0].tolist()) or plain(questions)
    run(kernel("block_diffusion", size=3, grid=1), asked, canvas)
    first, second = shown
    assert first[1:3] == [words.mask_id] * 2
    assert set(first[3:-1]) == {words.mask_id}
    assert first[-1] == second[-1] == canvas.ids[0, -1]
    assert second[4:] == canvas.ids[0, 4:].tolist()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"size": 0}, "size=0: give how many tokens a block has"),
        ({"grid": 0}, "grid=0"),
        ({"least": 1.5}, r"least=1\.5: a probability"),
        ({"grid": 2, "least": 0.5}, r"grid=2 reveals in the order of time, and least=0\.5"),
    ],
)
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=told):
        kernel("block_diffusion", **options)


def test_blocks_that_the_network_does_not_have_are_refused():
    asked = network("besag")
    canvas = text_canvas(asked, " ".join([vocabulary("besag").mask_token] * 4), 1)
    with pytest.raises(BesagError, match=r"size=2: .* was trained in blocks of 4 tokens"):
        run(kernel("block_diffusion", size=2), asked, canvas)
    run(kernel("block_diffusion", size=4), asked, canvas)
