"""The same numbers on CUDA as on the CPU, wherever CUDA takes a path of its own.

Batches that are in the air while the next is made, recorded networks, noise that is sent over, the fused passes, and
training. Imports nothing but what a plain install brings, so that it runs on a machine that has no more.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from tests import networks
from tests.training.objectives import examples

import besag
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError
from besag.language_model import LanguageModel
from besag.samplers import KERNELS
from besag.training.objectives.mlm import MLM

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")]

TEXTS = ["The cats sleep on the mat.", "The traveller's souvenir didn't sleep!", "Dogs bark", "A man is at the casino."]
FAMILIES = ("bert", "roberta", "modernbert", "deberta-v2", "besag")
MASKED = "the [MASK] [MASK] on the [MASK]"


@cache
def language_model(family: str, device: str, batch_tokens: int | None = None) -> LanguageModel:
    """In float32 on either device."""
    network = networks.tiny(family).to(device)
    return LanguageModel(
        Transformer(network, networks.vocabulary(family), family), batch_tokens=batch_tokens, progress=False
    )


@pytest.mark.parametrize("method", ["pll", "word_l2r", "chain", "elbo", "unmasked"])
@pytest.mark.parametrize("family", FAMILIES)
def test_scores(family: str, method: str) -> None:
    cpu, cuda = (language_model(family, device).score(TEXTS, method=method) for device in ("cpu", "cuda"))
    for one, other in zip(cpu, cuda, strict=True):
        np.testing.assert_allclose(other.log_probs, one.log_probs, atol=2e-3)


def test_many_batches_in_the_air_come_back_in_order() -> None:
    texts = [" ".join(TEXTS[number % 4].split()[: 1 + number % 3]) + f" {number}" for number in range(300)]
    few, many = (language_model("bert", "cuda", tokens).score(texts) for tokens in (40, 20_000))
    expected = language_model("bert", "cpu").score(texts)
    for scores in (few, many):
        np.testing.assert_allclose([s.total for s in scores], [s.total for s in expected], atol=5e-3)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_kernels(name: str) -> None:
    """A seed says all, also where networks are recorded and replayed; no mask is left by a decoder."""
    lm = language_model("bert", "cuda")
    options = {"counts": tuple(range(lm.conditionals.width))} if name == "spindle" else {}
    one, again = (lm.sample(MASKED, name, chains=3, steps=8, seed=5, **options) for _ in range(2))
    assert one.texts == again.texts
    [template] = lm.vocabulary.encode([MASKED])
    given = template.ids != lm.vocabulary.mask_id
    assert all(np.array_equal(ids[given], template.ids[given]) for ids in one.ids)
    if KERNELS[name].ends and name not in ("ancestral", "spindle", "remask"):  # which make more steps than eight
        assert not any("[MASK]" in text for text in one.texts)


def test_what_a_chain_draws_has_the_probability_that_the_cpu_gives_it() -> None:
    lm = language_model("bert", "cuda")
    chain = lm.sample(MASKED, "ordered", chains=5, seed=2, order="left_to_right")
    drawn = np.nansum(chain.numbers["log_prob"], axis=1)
    words = lm.vocabulary
    [encoded] = words.encode([MASKED])
    network = language_model("bert", "cpu").conditionals.model
    for ids, told in zip(chain.ids, drawn, strict=True):
        shown, expected = torch.from_numpy(encoded.ids.copy()), 0.0
        allowed = torch.ones(len(words.tokenizer), dtype=torch.bool)
        allowed[list(words.special_ids)] = False
        for place in (shown == words.mask_id).nonzero()[:, 0].tolist():
            with torch.no_grad():
                logits = network(input_ids=shown[None]).logits[0, place].double()
            logits[: len(allowed)][~allowed] = -torch.inf
            expected += float(torch.log_softmax(logits, -1)[ids[place]])
            shown[place] = int(ids[place])
        assert told == pytest.approx(expected, abs=5e-3)


@pytest.mark.parametrize("method", ["mlm", "mrf", "mrf_local", "hcb", "ag"])
def test_joints(method: str) -> None:
    cpu, cuda = (
        language_model("bert", device).joint("the [MASK] [MASK] sleeps", method=method, candidates="all")
        for device in ("cpu", "cuda")
    )
    pairs = [(one.a, one.b, one.prob) for one in cpu.top(5)]
    found = {(one.a, one.b): one.prob for one in cuda.top(20)}
    for first, second, probability in pairs:
        assert found[first, second] == pytest.approx(probability, rel=2e-2, abs=1e-6)


class Broken(Transformer):
    def head(self, rows: torch.Tensor) -> torch.Tensor:
        return super().head(rows) * float("nan")


def test_nan_is_told_and_the_device_lives_on() -> None:
    """An index out of its range, drawn from NaN, would leave the device unusable for the whole process."""
    lm = LanguageModel(Broken(networks.tiny("bert").to("cuda"), networks.vocabulary("bert"), "broken"), progress=False)
    for name in ("gibbs", "ordered", "first_hitting"):
        with pytest.raises(BesagError, match="answered with NaN"):
            lm.sample(MASKED, name, chains=3, steps=4)
    assert float(torch.ones(3, device="cuda").sum()) == 3


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "besag"])
def test_a_loss_and_its_gradient(family: str, ragged: bool) -> None:
    batch = examples.batch(family=family)
    gradients, losses = [], []
    for device in ("cpu", "cuda"):
        network = examples.encoder(family, ragged=ragged)
        network.to(device)
        loss = MLM(network)(batch.to(device)).total
        losses.append(float(loss.detach()))
        gradients.append(examples.gradient(loss, network).cpu())
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-2, atol=1e-3)


def test_half_precision_is_chosen_and_stays_near() -> None:
    lm = besag.load(device="cuda", progress=False)
    assert lm.conditionals.dtype == torch.bfloat16
    half = lm.score(TEXTS)
    whole = besag.load(device="cuda", dtype="float32", progress=False).score(TEXTS)
    for one, other in zip(half, whole, strict=True):
        assert one.total == pytest.approx(other.total, rel=0.05)
