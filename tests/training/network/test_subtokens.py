"""What tokens share in letters they share in weights; what is saved is an ordinary model that says the same."""

from __future__ import annotations

import pytest
import torch
from tests import networks
from transformers import AutoModelForMaskedLM

from besag.errors import BesagError
from besag.training.network.subtokens import SubTokens, attach, fold, shared_runs
from besag.training.optimizers import make
from besag.training.recipe import Optimizer

FAMILIES = ("bert", "roberta", "albert", "modernbert", "besag")


def test_the_runs_that_tokens_share() -> None:
    runs = shared_runs(["▁do", "▁to", "", "odd"], longest=2)
    assert [sorted(each) for each in runs] == [["d", "o", "▁"], ["o", "▁"], [], ["d", "o"]]
    again = shared_runs(["walked", "talked", "walk"], longest=4)
    assert "lked" in again[0]  # a suffix of two
    assert "lked" in again[1]
    assert "walk" in again[2]
    assert "alke" not in again[2]
    assert "w" * 2 not in again[0]
    assert len(again[0]) == len(set(again[0]))


def test_the_table_is_the_sum_by_hand() -> None:
    runs = [["d", "o"], [], ["o"], ["d", "o", "d!"], ["d!"]]
    added = SubTokens(runs, 3)
    number = {"d": 0, "o": 1, "d!": 2}
    assert torch.count_nonzero(added.vectors) == 0  # begins as it would without
    table, vectors = torch.randn(5, 3), torch.randn(3, 3)
    added.vectors.data = vectors
    for token, each in enumerate(runs):
        mean = torch.stack([vectors[number[run]] for run in each]).mean(0) if each else torch.zeros(3)
        torch.testing.assert_close(added(table)[token], table[token] + mean)


def test_tokens_that_share_nothing_are_told() -> None:
    with pytest.raises(BesagError, match="no two tokens of this vocabulary share a letter"):
        SubTokens(shared_runs(["a", "b"], 3), 4)


def words(family: str) -> tuple[int, int, int]:
    """Two ordinary tokens that share a letter, and a special one."""
    vocabulary = networks.vocabulary(family)
    ordinary = [id for id in range(vocabulary.size) if id not in vocabulary.special_ids]
    for one in ordinary:
        for other in ordinary:
            if one != other and set(vocabulary.token(one)) & set(vocabulary.token(other)):
                assert vocabulary.mask_id is not None
                return one, other, vocabulary.mask_id
    raise AssertionError


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_learned_of_a_token_moves_those_that_share_its_letters(family: str) -> None:
    """The paper's idea: without sub-tokens a gradient at one row of the table stays there."""
    one, other, mask = words(family)
    moved = {}
    for longest in (0, 2):
        model = networks.tiny(family)
        if longest:
            attach(model, networks.vocabulary(family), longest)
        table = model.get_input_embeddings()
        before = table.weight.detach().clone()
        table(torch.tensor([one])).sum().backward()
        with torch.no_grad():
            for weight in table.parameters():
                weight -= 0.1 * (weight.grad if weight.grad is not None else 0)
        moved[longest] = (table.weight - before).abs().amax(1)
    assert moved[0][one] > 0
    assert torch.count_nonzero(moved[0]) == 1
    assert moved[2][one] > moved[2][other] > 0
    assert moved[2][mask] == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_it_says_the_same_at_first_and_after_folding(family: str, tmp_path) -> None:
    vocabulary, ids = networks.vocabulary(family), torch.tensor([[5, 6, 7, 8, 9]])
    model = networks.tiny(family).eval()
    with torch.no_grad():
        plain = model(input_ids=ids).logits
        names = set(model.state_dict())
        attach(model, vocabulary, 3)
        torch.testing.assert_close(model(input_ids=ids).logits, plain)
        [added] = {part for part in model.modules() if isinstance(part, SubTokens)}
        added.vectors.normal_(std=0.3)
        changed = model(input_ids=ids).logits
        assert (changed - plain).abs().max() > 0.01
        fold(model)
        torch.testing.assert_close(model(input_ids=ids).logits, changed)
        assert set(model.state_dict()) == names
        assert fold(model) is model
        if family != "besag":
            model.save_pretrained(tmp_path)
            again = AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
            torch.testing.assert_close(again(input_ids=ids).logits, changed)


def test_the_head_shares_the_sum_where_it_shares_the_table() -> None:
    model = networks.tiny("bert")
    attach(model, networks.vocabulary("bert"), 2)
    inputs, outputs = model.get_input_embeddings(), model.get_output_embeddings()
    [added] = {part for part in model.modules() if isinstance(part, SubTokens)}
    added.vectors.data.normal_()
    assert torch.equal(inputs.weight, outputs.weight)
    assert inputs.parametrizations.weight.original is outputs.parametrizations.weight.original
    fold(model)
    assert inputs.weight is outputs.weight


def test_muon_takes_neither_table_for_a_hidden_matrix() -> None:
    model = attach(networks.tiny("bert"), networks.vocabulary("bert"), 2)
    optimizer = make(model, Optimizer(name="muon"))
    turned = {id(weight) for group in optimizer.param_groups if group["blocks"] for weight in group["params"]}
    tables = [weight for name, weight in model.named_parameters() if "parametrizations" in name]
    assert len(tables) == 2
    assert not any(id(weight) in turned for weight in tables)
