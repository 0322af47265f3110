"""AutoPrompt: candidates by gradient, the best of them by trial, beside brute force on tiny networks."""

import itertools

import numpy as np
import pytest
import torch
from tests.networks import tiny, vocabulary

import besag
from besag.errors import BesagError
from besag.prompting.likelihood import Example, Likelihood
from besag.prompting.template import Template

WORDS = ("the", "cat", "man", "on", "mat")
ROWS = [
    {"text": " ".join(words), "label": "on" if words[0] == "cat" else "mat"}
    for words in itertools.permutations(WORDS[:3], 2)
] * 3
TEMPLATE = "{text} [T] [MASK] [T]"


@pytest.fixture(scope="module")
def lm():
    return besag.load((tiny("bert"), vocabulary("bert").tokenizer), progress=False, device="cpu")


@pytest.fixture(scope="module")
def frame(lm):
    return Template(TEMPLATE, lm.vocabulary)


@pytest.fixture(scope="module")
def examples(frame):
    return [Example(frame.asked(row), frame.words(row, [row["label"]])) for row in ROWS]


def test_the_likelihood_is_that_of_the_model(lm, frame, examples):
    """Row by row, without batches; two words of a label add up."""
    likelihood, triggers = Likelihood(lm.model, lm.conditionals.device), np.array([7, 9])
    for row, one, value in zip(ROWS, examples, likelihood.of(examples, triggers), strict=True):
        ids = one.asked.ids.copy()
        ids[one.asked.triggers] = triggers
        with torch.no_grad():
            law = lm.model(input_ids=torch.as_tensor(ids)[None]).logits[0, one.asked.gap].log_softmax(-1)
        assert value == pytest.approx(float(law[frame.words(row, [row["label"]])[0]]), abs=1e-5)
    both = frame.words(ROWS[0], ["on", "mat"])
    [[together, *apart]] = likelihood.answers([examples[0].asked], [both, both[:1], both[1:]], triggers)
    assert together == pytest.approx(np.logaddexp(*apart))


def test_the_gradient_is_that_of_moving_what_stands_at_a_trigger(lm, examples):
    """Against a finite difference."""
    triggers, step = np.array([70, 71]), 1e-4
    assert all(70 not in one.asked.ids for one in examples)
    likelihood = Likelihood(lm.model.double(), lm.conditionals.device)
    direction = likelihood.embedding[11] - likelihood.embedding[70]
    slope = likelihood.gradient(examples, triggers)
    assert not any(parameter.grad is not None for parameter in lm.model.parameters())
    reached = []
    for sign in (1, -1):

        def move(_, inputs, output, by=sign * step):
            return output + by * direction * (inputs[0] == 70)[..., None]

        hook = lm.model.get_input_embeddings().register_forward_hook(move)
        reached.append(likelihood.of(examples, triggers).mean())
        hook.remove()
    lm.model.float()
    assert (reached[0] - reached[1]) / (2 * step) == pytest.approx(float(slope[0] @ direction), rel=1e-3)


def test_with_every_token_a_candidate_a_round_is_brute_force(lm, frame, examples):
    found = besag.autoprompt(lm, ROWS, TEMPLATE, rounds=1, candidates=10**4, batch=100, held_out=0.2, quiet=True)
    likelihood = Likelihood(lm.model, lm.conditionals.device)
    from besag.prompting.search import _Search

    search = _Search(lm, examples[:14], examples[14:], frame, {"on": examples[0].right, "mat": examples[-1].right}, 0)
    banned = {*lm.vocabulary.special_ids, *(int(one.right[0]) for one in examples)}
    triggers = np.full(2, lm.vocabulary.mask_id)
    for place in range(2):
        _, tried = search._rows(1, place, 100)
        values = {int(triggers[place]): likelihood.of(tried, triggers).mean()}
        for token in range(lm.vocabulary.size):
            if token not in banned:
                other = triggers.copy()
                other[place] = token
                values[token] = likelihood.of(tried, other).mean()
        triggers[place] = max(values, key=values.__getitem__)
    assert found.history[1].triggers == tuple(triggers.tolist())
    assert found.after >= found.before


def test_it_is_a_function_of_the_seed_and_leaves_the_weights_alone(lm):
    before = {name: value.clone() for name, value in lm.model.state_dict().items()}
    one, same, other = (
        besag.autoprompt(lm, ROWS, TEMPLATE, rounds=2, batch=3, seed=seed, quiet=True) for seed in (1, 1, 2)
    )
    assert one.history == same.history
    assert one.history != other.history
    assert all(torch.equal(value, lm.model.state_dict()[name]) for name, value in before.items())


def test_answers_are_those_that_accuracy_was_told_of(lm):
    found = besag.autoprompt(lm, ROWS, TEMPLATE, rounds=2, candidates=20, quiet=True)
    held = ROWS[-round(0.2 * len(ROWS)) :]
    answers = found.answer(held)
    assert (
        np.mean([one["label"] == row["label"] for one, row in zip(answers, held, strict=True)]) == found.best.accuracy
    )
    assert all(sum(one["shares"].values()) == pytest.approx(1) for one in answers)
    assert found.answer([]) == []
    assert not {*found.triggers} & {"on", "mat", "[MASK]"} or found.best.turn == 0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"template": "{text} [T]."}, r"write \[MASK\] once"),
        ({"template": "{text} [MASK]."}, r"write \[T\]"),
        ({"template": "{txt} [T] [MASK]"}, "Did you mean 'text'"),
        ({"rows": ROWS[:4]}, "held out"),
        ({"rows": [{"text": "the [MASK]", "label": "on"}] * 6}, "holds the mask token"),
        ({"rows": [{"text": "the cat"}] * 6}, "no 'label'"),
        ({"labels": {"on": ["on"]}}, "labelled 'mat'"),
        ({"labels": {"on": ["on"], "mat": []}}, "has no word"),
        ({"labels": {"on": ["on"], "mat": ["the mat"]}}, "the mat"),
        ({"rounds": 0}, "rounds=0"),
        ({"held_out": 2.0}, "held_out"),
    ],
)
def test_what_makes_no_prompt_is_refused(lm, change, why):
    asked = {"rows": ROWS, "template": TEMPLATE, "quiet": True, **change}
    with pytest.raises(BesagError, match=why):
        besag.autoprompt(lm, **asked)


def test_only_a_network_has_gradients():
    with pytest.raises(BesagError, match="no masked network"):
        besag.autoprompt(besag.load(besag.Table(np.ones((2, 2)), symbols=["a", "b"])), ROWS, TEMPLATE)
