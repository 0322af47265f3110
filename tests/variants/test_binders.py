"""Peptides given a target, on tables whose laws are known: what is shown, what is asked, what is proposed."""

import itertools

import matplotlib
import numpy as np
import pytest

import besag
from besag.errors import BesagError
from besag.training import recipe as recipes
from besag.variants.mutations import RESIDUES

matplotlib.use("Agg")
FEW = 4  # residues that have any weight to speak of, so that laws are read off a small table


def weights() -> np.ndarray:
    """(20, 20, 20) of a target of one residue and a peptide of two; every triple has a weight of its own."""
    draw = np.random.default_rng(0)
    return draw.gamma(0.5, size=(20, 20, 20)) + 1e-3


@pytest.fixture(scope="module")
def law() -> np.ndarray:
    return weights()


@pytest.fixture(scope="module")
def lm(law):
    return besag.load(besag.Table(law, symbols=list(RESIDUES)))


def test_the_target_is_shown_and_no_part_of_the_number(lm, law):
    """exp(−½ Σ_i log p(b_i | t, the other)), from the table itself."""
    peptides = [a + b for a, b in itertools.product(RESIDUES[:FEW], repeat=2)]
    for target in RESIDUES[:2]:
        table = law[RESIDUES.index(target)]  # (20, 20)
        found = lm.binders(target, peptides)
        assert len(found) == len(peptides)
        for one in found.binders:
            a, b = (RESIDUES.index(residue) for residue in one.peptide)
            logs = np.log(table[a, b] / table[:, b].sum()), np.log(table[a, b] / table[a].sum())
            assert one.score == pytest.approx(sum(logs), rel=1e-6)
            assert one.perplexity == pytest.approx(np.exp(-sum(logs) / 2), rel=1e-6)
        values = [one.perplexity for one in found.binders]
        assert values == sorted(values)
    first, other = (lm.binders(target, peptides).best for target in RESIDUES[:2])
    assert first != other  # so another target has another best peptide


def test_proposals_are_drawn_given_the_target(lm, law):
    """All at once and of one likeliest residue each: the modes of p(b_1 | t) and p(b_2 | t), both others hidden."""
    for target in RESIDUES[:3]:
        table = law[RESIDUES.index(target)]
        modes = RESIDUES[int(table.sum(1).argmax())] + RESIDUES[int(table.sum(0).argmax())]
        found = lm.binders(target, length=2, number=4, top_k=1)
        assert [one.peptide for one in found.binders] == [modes]  # four times the same is told once
        assert found.binders[0].proposed
        assert "1 proposed by grouped" in repr(found)


def test_three_residues_a_place_as_published(lm, law):
    table = law[0]
    likely = [{RESIDUES[at] for at in np.argsort(-table.sum(axis))[:3]} for axis in (1, 0)]
    found = lm.binders(RESIDUES[0], length=2, number=64)
    assert {one.peptide[0] for one in found.binders} == likely[0]
    assert {one.peptide[1] for one in found.binders} == likely[1]


def test_another_kernel_and_what_is_given_beside(lm):
    found = lm.binders("A", ["GG"], length=2, number=8, kernel="ordered", seed=3)
    assert next(one for one in found.binders if not one.proposed).peptide == "GG"
    assert {one.peptide for one in lm.binders("A", length=2, number=8, kernel="ordered", seed=3).binders} == {
        one.peptide for one in found.binders if one.proposed
    }
    chain = lm.binders("A", ["GG"], method="chain")
    assert chain.facts[0].startswith("perplexity of")
    assert found.facts[0].startswith("pseudo-perplexity of")


def test_nothing_but_residues_is_proposed():
    """A token of its own beside the 20, however likely, is never drawn."""
    table = np.ones((21, 21))
    table[:, 20] = 1000
    other = besag.load(besag.Table(table, symbols=[*RESIDUES, "X"]))
    found = other.binders("A", length=1, number=16, top_k=20)
    assert all(one.peptide in RESIDUES for one in found.binders)


def test_the_recipe_shows_the_target_and_hides_the_whole_peptide():
    """What is hidden of such a line is tested with `one_line`: at rate 1 all of the target, and nothing else."""
    found = recipes.read("recipes/binders.toml")
    assert (found.data.pairs, found.data.source_field, found.data.field) == ("line", "target", "binder")
    assert found.data.template == "{source}{target}"  # the peptide at the end
    assert (found.masking.law, found.masking.rate, found.masking.mask) == ("uniform", 1.0, 1.0)


def test_the_result_tells_itself(lm):
    found = lm.binders("A", ["GG", "AC"])
    frame = found.to_pandas()
    assert list(frame.columns)[:5] == ["peptide", "perplexity", "score", "proposed", "status"]
    assert found.to_dict()["binders"][0]["peptide"] == found.best
    assert (found.normalised, found.to_dict()["normalised"]) == ("", "")
    assert lm.binders("A", ["GG", "AC"], method="chain").normalised == "token sequences of this length"
    assert found.plot().get_xlabel() or found.plot().get_ylabel()


def test_wrong_input_is_answered(lm):
    with pytest.raises(BesagError, match="no peptide to rank"):
        lm.binders("A")
    with pytest.raises(BesagError, match="holds 'a'"):
        lm.binders("A", ["Ga"])
    with pytest.raises(BesagError, match="say how long they are"):
        lm.binders("A", ["GG"], temperature=2.0)
    with pytest.raises(BesagError, match="length=0"):
        lm.binders("A", length=0)
