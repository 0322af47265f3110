"""Windows over long text: the joint where one window holds all of it, the law of cut contexts where it does not."""

from itertools import permutations

import numpy as np
import pytest
import torch
from tests.laws import Counting
from tests.networks import tiny, vocabulary
from tests.samplers.exact import Hashed

from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError
from besag.lab.oracles import blank, empirical, follows, run, sequences, total_variation
from besag.samplers.kernel import kernel
from besag.samplers.kernels import semi_ar

CHAINS = 10_000


def starts(places, window, stride):
    """Where windows begin, one after the other, from the definition."""
    found = [0]
    while found[-1] + window < places:
        found.append(min(found[-1] + stride, places - window))
    return found


def enumerated(law, places, window, stride, inner="left_to_right"):
    """(V^n,) the law of what is drawn, for every sequence and every order inside windows."""
    every = sequences(law.width, places)
    probs = np.zeros(len(every))
    blocks, done = [], 0
    for start in starts(places, window, stride):
        blocks.append((start, list(range(done, start + window))))
        done = start + window

    def orders(index):
        if index == len(blocks):
            yield (), 1.0
            return
        block = blocks[index][1]
        choices = list(permutations(block)) if inner == "random" else [tuple(block)]
        for choice in choices:
            for rest, weight in orders(index + 1):
                yield (*((blocks[index][0], place) for place in choice), *rest), weight / len(choices)

    for order, weight in orders(0):
        for at, sequence in enumerate(every):
            shown, p = [law.width] * places, weight
            for start, place in order:
                row = np.exp(law.log_probs(shown[start : start + window], place - start))
                p *= row[sequence[place]]
                shown[place] = int(sequence[place])
            probs[at] += p
    return probs


@pytest.mark.parametrize(("inner", "window"), [("left_to_right", 4), ("random", 9)])
def test_a_window_that_holds_the_text_draws_from_the_joint(inner, window):
    law = Table.random(2, 4, seed=1)
    counts = empirical(kernel("semi_ar", window=window, inner=inner), law, blank(law, 4, CHAINS))
    assert follows(counts, law.log_probs.exp().numpy())


@pytest.mark.parametrize(
    ("window", "stride", "inner"),
    [(1, 1, "random"), (2, 1, "left_to_right"), (2, 2, "random"), (3, 1, "left_to_right"), (3, 2, "random")],
)
def test_a_shorter_window_draws_from_the_law_of_cut_contexts(window, stride, inner):
    law = Hashed()
    expected = enumerated(law, 5, window, stride, inner)
    assert expected.sum() == pytest.approx(1)
    counts = empirical(kernel("semi_ar", window=window, stride=stride, inner=inner), law, blank(law, 5, CHAINS))
    assert follows(counts, expected)
    whole = enumerated(law, 5, 5, 5, inner)
    assert total_variation(expected, whole) > 0.05  # else the last line would prove little
    assert not follows(counts, whole)


def test_a_short_window_loses_a_long_dependence_and_nothing_else():
    """x_3 repeats x_1: seen through two places the two are independent, through three they agree."""
    law = Hashed()
    law.logits = lambda context, place: (
        40.0
        * np.array(
            [float(context[place - 2] == value) if place >= 2 and context[place - 2] < 2 else 0 for value in range(2)]
        )
    )
    agree = np.array([sequence[0] == sequence[2] for sequence in sequences(2, 3)])
    assert empirical(kernel("semi_ar", window=3), law, blank(law, 3, 2000))[~agree].sum() == 0
    counts = empirical(kernel("semi_ar", window=2, stride=1), law, blank(law, 3, CHAINS))
    assert follows(counts, np.full(8, 1 / 8))


def test_with_a_grid_one_window_is_masked_diffusion():
    """Against the definition: each place has a time, and places of one time are drawn from one pass."""
    law = Hashed()
    expected = np.zeros(8)
    for steps in sequences(2, 3):  # the step, 0 or 1, that reveals each place: all alike under the log-linear schedule
        for at, sequence in enumerate(sequences(2, 3)):
            shown_so_far, p = [law.width] * 3, 1 / 8
            for step in (0, 1):
                now = [place for place in range(3) if steps[place] == step]
                p *= np.prod([np.exp(law.log_probs(shown_so_far, place))[sequence[place]] for place in now])
                for place in now:
                    shown_so_far[place] = int(sequence[place])
            expected[at] += p
    assert follows(empirical(kernel("semi_ar", window=3, grid=2), law, blank(law, 3, CHAINS)), expected)
    _, told = run(kernel("semi_ar", window=6, grid=3), law, blank(law, 6, 200))
    assert int(torch.stack([info.passes for info in told]).sum(0).max()) <= 3


def test_with_a_grid_each_window_is_filled_in_as_many_passes():
    law = Counting(Hashed())
    state, told = run(kernel("semi_ar", window=4, stride=2, grid=1), law, blank(law, 8, 5))
    assert len(told) == 3  # windows at 0, 2 and 4: four places in one pass, then two and two
    assert (state.ids < 2).all()
    with pytest.raises(BesagError, match="grid=2 reveals in the order of time: leave inner='random' out"):
        kernel("semi_ar", grid=2, inner="random")


def test_the_usual_stride_is_half_a_window():
    law, canvas = Hashed(), blank(Hashed(), 6, 50)
    one, _ = run(kernel("semi_ar", window=4), law, canvas)
    other, _ = run(kernel("semi_ar", window=4, stride=2), law, canvas)
    assert torch.equal(one.ids, other.ids)


def test_one_pass_a_place_and_no_sequence_longer_than_the_window():
    law = Counting(Hashed())
    canvas = blank(law, 7, 3)
    canvas = canvas._replace(ids=canvas.ids.clone(), free=canvas.free.clone())
    canvas.ids[1, 2], canvas.free[1, 2] = 1, False  # one chain is given a token, and has less to do
    state, told = run(kernel("semi_ar", window=3, stride=2), law, canvas)
    assert torch.stack([info.passes for info in told]).sum(0).tolist() == [7, 6, 7]
    assert {len(sequence) for sequence in law.sequences} == {3}
    assert len(told) == kernel("semi_ar").steps(canvas) == 7
    log_probs = torch.stack([info.more["log_prob"] for info in told])
    assert log_probs[-1, 1] == 0  # nothing was drawn
    assert (log_probs[:-1, 1] < 0).all()
    assert state.ids[1, 2] == 1


def test_what_is_given_inside_the_window_is_seen_and_beyond_it_is_not():
    law = Hashed()
    canvas = blank(law, 4, CHAINS, np.array([2, 0, 2, 1]))
    canvas = canvas._replace(free=canvas.ids == 2)
    counts = empirical(kernel("semi_ar", window=3, stride=1), law, canvas)
    seen, blind = np.zeros(16), np.zeros(16)
    for at, (first, second, third, fourth) in enumerate(sequences(2, 4)):
        if (second, fourth) == (0, 1):
            for law_of, right in ((seen, [0, 2]), (blind, [2, 2])):  # without and with the given token hidden
                law_of[at] = np.exp(law.log_probs([2, *right], 0)[first] + law.log_probs([first, 0, 2], 2)[third])
    assert follows(counts, seen)
    assert not follows(counts, blind)


def test_forbidden_tokens_of_a_place_move_with_the_window():
    law = Hashed(3)
    allowed = torch.zeros(5, 3, dtype=torch.bool)
    allowed[torch.arange(5), torch.tensor([0, 1, 2, 0, 1])] = True
    state, _ = run(kernel("semi_ar", window=2, stride=1), law, blank(law, 5, 20, allowed=allowed))
    assert (state.ids == torch.tensor([0, 1, 2, 0, 1])).all()


def test_truncation_and_temperature_change_the_law_as_they_say():
    law = Hashed(4)
    row = np.exp(law.log_probs([4], 0))
    order = np.argsort(-row)
    few = np.isin(np.arange(4), order[: int((np.cumsum(row[order]) < 0.7).sum()) + 1])
    cut = np.isin(np.arange(4), order[:2])
    for options, expected in [({"temperature": 2.0}, row**0.5), ({"top_k": 2}, row * cut), ({"top_p": 0.7}, row * few)]:
        assert follows(empirical(kernel("semi_ar", window=1, **options), law, blank(law, 1, CHAINS)), expected)


def test_on_a_network_text_is_longer_than_the_model_and_windows_stand_between_special_tokens():
    words = vocabulary("bert")
    network = Counting(Transformer(tiny("bert"), words))
    mask = words.mask_token
    [encoded] = words.encode([" ".join(["the cat", *[mask] * 60, "."])])
    assert len(encoded.ids) > network.max_length
    ids = torch.from_numpy(encoded.ids).repeat(2, 1)
    canvas = semi_ar.Canvas(ids, ids == words.mask_id, words.mask_id)
    state, told = run(kernel("semi_ar", window=16), network, canvas)
    assert len(told) == 60
    assert words.mask_id not in state.ids
    inside = [sequence for sequence in network.sequences if len(sequence) == 18]
    assert len(inside) == 120
    assert {(sequence[0], sequence[-1]) for sequence in inside} == {(encoded.ids[0], encoded.ids[-1])}
    with pytest.raises(BesagError, match=r"window=64: .* sees 40 tokens, 2 of them special here, .* at most 38"):
        run(kernel("semi_ar"), network, canvas)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"window": 0}, "window=0: give how many tokens of text are seen at a time"),
        ({"window": 2.5}, "window=2.5"),
        ({"window": 4, "stride": 5}, "stride=5: a window of 4 moves on by 1 to 4 tokens"),
        ({"stride": 0}, "stride=0"),
        ({"inner": "randon"}, "inner='randon': give one of left_to_right, random. Did you mean 'random'"),
    ],
)
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=told):
        kernel("semi_ar", **options)
