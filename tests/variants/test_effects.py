"""Every formula against plain forward passes of the network, and joints against the law they should find.

With `BESAG_ANTIBERTY` (a folder that `besag.load` takes), the same of a real model over its 20 residues.
"""

import os
from functools import cache

import numpy as np
import pytest
import torch
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError
from besag.language_model import LanguageModel
from besag.variants.effects import FORMULAS, named
from besag.variants.mutations import RESIDUES

WILD = "MKTAYIAKQR"
VARIANTS = ["K2R", "A4G:Q9E", "M1A:K2R:R10W", "T3T"]
AT = RESIDUES.index


@cache
def esm(batch_tokens=None):
    return LanguageModel(Transformer(tiny("esm"), vocabulary("esm"), "esm"), batch_tokens=batch_tokens)


@torch.no_grad()
def log_probs(lm, sequence, hidden):
    """(n, 20) log p of the residues at every place, by one plain pass, in float64."""
    [encoded] = lm.vocabulary.encode([(" " if lm.vocabulary.spaced else "").join(sequence)])
    ids = torch.from_numpy(encoded.ids.copy())
    ids[encoded.places[list(hidden)]] = lm.vocabulary.mask_id
    logits = lm.model(input_ids=ids[None], attention_mask=torch.ones_like(ids)[None]).logits[0, encoded.places]
    residues = [lm.vocabulary.id(one) for one in RESIDUES]
    return torch.log_softmax(logits.double(), -1)[:, residues].numpy()


def pll(lm, sequence):
    return sum(log_probs(lm, sequence, [t])[t, AT(one)] for t, one in enumerate(sequence))


def mutated(wild, variant):
    letters, places = list(wild), []
    for one in variant.split(":"):
        places.append(int(one[1:-1]) - 1)
        letters[places[-1]] = one[-1]
    return "".join(letters), places


def brute_force(lm, wild, variant, method):
    mutant, places = mutated(wild, variant)
    if method == "pseudo_ppl":
        return pll(lm, mutant) - pll(lm, wild)
    hides = {
        "wt_marginals": lambda t: [],
        "masked_marginals": lambda t: places,
        "masked_marginals_alone": lambda t: [t],
    }
    tables = {t: log_probs(lm, wild, hides[method](t)) for t in places}
    return sum(tables[t][t, AT(mutant[t])] - tables[t][t, AT(wild[t])] for t in places)


def dense_ag(lm, wild, i, j):
    """(20, 20) log q of two places by Arnold and Gokhale's iteration, all conditionals by plain passes."""
    given = np.empty((2, 20, 20))  # log A[x, y] = log p(x at i | y at j), log B[x, y] = log p(y at j | x at i)
    for y, residue in enumerate(RESIDUES):
        letters = list(wild)
        letters[j] = residue
        given[0, :, y] = log_probs(lm, "".join(letters), [i])[i]
        letters = list(wild)
        letters[i] = residue
        given[1, y] = log_probs(lm, "".join(letters), [j])[j]
    A, B = (np.exp(table - np.logaddexp.reduce(table, axis, keepdims=True)) for axis, table in enumerate(given))
    q = np.full((20, 20), 1 / 400)
    for _ in range(20_000):
        new = (A + B) / (1 / q.sum(0) + 1 / q.sum(1, keepdims=True))
        new /= new.sum()
        if np.abs(new - q).max() < 1e-13:
            break
        q = new
    return np.log(new)


@pytest.mark.parametrize("method", FORMULAS)
def test_formulas_are_what_plain_passes_say(method):
    found = esm().variants(WILD, VARIANTS, method)
    expected = [brute_force(esm(), WILD, one, method) for one in VARIANTS]
    np.testing.assert_allclose(found.effect, expected, atol=2e-4)
    assert np.isnan(found.epistasis).all()
    assert found.effect[3] == 0
    np.testing.assert_allclose(esm(12).variants(WILD, VARIANTS, method).effect, expected, atol=2e-4)  # a copy a batch


def test_the_two_definitions_differ_where_mutations_do_not_stand_alone():
    together, alone = (esm().variants(WILD, VARIANTS, one).effect for one in FORMULAS[1:3])
    assert together[0] == pytest.approx(alone[0], abs=1e-5)
    assert abs(together[1] - alone[1]) > 0.01


def test_double_mutants_by_the_joint_of_their_places():
    found = esm().variants(WILD, ["A4G:Q9E", "Q9E:A4C", "K2R"], "ag")
    log_q = dense_ag(esm(), WILD, 3, 8)
    A, G, C, Q, E = map(AT, "AGCQE")
    for at, mutant in enumerate((G, C)):
        assert found.effect[at] == pytest.approx(log_q[mutant, E] - log_q[A, Q], abs=1e-3)
        ratio = log_q[mutant, E] + log_q[A, Q] - log_q[mutant, Q] - log_q[A, E]
        assert found.epistasis[at] == pytest.approx(ratio, abs=1e-3)
    assert found.effect[2] == pytest.approx(brute_force(esm(), WILD, "K2R", "masked_marginals"), abs=2e-4)
    assert np.isnan(found.epistasis[2])


@pytest.mark.parametrize("method", ["ag", "hcb", "order", "stationary"])
def test_of_a_true_law_the_epistasis_is_its_log_odds_ratio(method):
    """The sentence of the method: only a joint lets two mutations depend on each other, and an exact one does so."""
    weights = np.random.default_rng(0).gamma(1.0, size=(20, 20, 20)) + 0.1
    lm = besag.load(besag.Table(weights, symbols=list(RESIDUES)))
    found = lm.variants("MKT", ["M1A:T3S"], method)
    M, K, T, A, S = map(AT, "MKTAS")
    log_w = np.log(weights[:, K])
    assert found.effect[0] == pytest.approx(log_w[A, S] - log_w[M, T], abs=1e-4)
    assert found.epistasis[0] == pytest.approx(log_w[A, S] + log_w[M, T] - log_w[A, T] - log_w[M, S], abs=1e-4)
    assert found.additive[0] == pytest.approx(log_w[A, T] + log_w[M, S] - 2 * log_w[M, T], abs=1e-4)


def test_independent_places_have_no_epistasis():
    weights = np.multiply.outer(*np.random.default_rng(1).gamma(1.0, size=(2, 20)))
    lm = besag.load(besag.Table(weights, symbols=list(RESIDUES)))
    assert lm.variants("MK", ["M1A:K2S"], "ag").epistasis[0] == pytest.approx(0, abs=1e-6)


def test_a_protein_longer_than_the_model_is_read_in_windows():
    long = WILD * 5  # 50 residues, of which the model sees 38
    assert esm().conditionals.max_length == 40
    found = esm().variants(long, ["K2R", "K42R", "A44G:Q49E"], "masked_marginals_alone")
    assert np.isfinite(found.effect).all()
    assert np.isfinite(esm().variants(long, ["A44G:Q49E"], "ag").epistasis).all()


def test_what_is_wrong_is_said():
    with pytest.raises(BesagError, match=r"no method of scoring variants is called 'masked_marginal'.*Did you mean"):
        named("masked_marginal")
    with pytest.raises(BesagError, match="has no options"):
        named("pseudo_ppl", weights="marginal")
    with pytest.raises(BesagError, match="has 3 mutations, and 'ag' is a joint of two"):
        esm().variants(WILD, ["M1A:K2R:R10W"], "ag")
    with pytest.raises(BesagError, match="replaces a residue that is none of the 20"):
        esm().variants("MKX", ["X3A:K2R"], "ag")
    assert np.isfinite(esm().variants("MKX", ["X3A"], "masked_marginals").effect).all()


HEAVY = "EVQLVESGGGLVQPGGSLRLSCAASGFTFSSYAMSWVRQAPGKGLEWVSAISGSGGSTYYADSVKGRFTISRDNSKNTLYLQMNSLRAEDTAVYYCAK"


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("BESAG_ANTIBERTY"), reason="BESAG_ANTIBERTY names no folder with AntiBERTy")
def test_antiberty_agrees_with_brute_force_over_the_20_residues():
    lm = besag.load(os.environ["BESAG_ANTIBERTY"], device="cpu")
    for method in FORMULAS[:3]:
        every = [f"{HEAVY[29]}30{one}" for one in RESIDUES] + ["S30A:S31G"]
        expected = [brute_force(lm, HEAVY, one, method) for one in every]
        np.testing.assert_allclose(lm.variants(HEAVY, every, method).effect, expected, atol=5e-4)
    log_q = dense_ag(lm, HEAVY, 29, 30)
    doubles = [f"S30{a}:S31{b}" for a in RESIDUES for b in RESIDUES]
    found = lm.variants(HEAVY, doubles, "ag")
    S = AT("S")
    np.testing.assert_allclose(found.effect.reshape(20, 20), log_q - log_q[S, S], atol=5e-3)
    ratio = log_q + log_q[S, S] - log_q[:, [S]] - log_q[[S]]
    np.testing.assert_allclose(found.epistasis.reshape(20, 20), ratio, atol=5e-3)
