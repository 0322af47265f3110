"""An n-gram is one mask and one answer: its name among all tokens and all n-grams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.training.objectives import examples

from besag.errors import BesagError
from besag.masks.law import Statistics
from besag.training.network.batch import Batch, Layout
from besag.training.objectives.ernie_gram import ErnieGram

A, B, C, D, E = examples.ordinary()[:5]
GRAMS = np.array([[A, B, -1], [A, B, C], [C, D, -1]])


def batch(*texts: list[int]) -> Batch:
    layout = Layout.of_lengths(torch.tensor([len(text) for text in texts]))
    ids = torch.tensor([id for text in texts for id in text])
    some = torch.zeros(1, dtype=torch.int64)
    rows = len(texts)
    return Batch(
        ids, ids, torch.ones(len(ids), dtype=torch.bool), layout, some, torch.ones(1), torch.ones(rows),
        torch.arange(rows), 0, 0.0,
    )  # fmt: skip


def knowing(**options: Any) -> ErnieGram:
    made = ErnieGram(examples.encoder(), **{"fine": 0.0, **options})
    made.learn(GRAMS)
    return made


def name(made: ErnieGram, *ids: int) -> int:
    """V + the number of an n-gram, by asking for a text that is nothing else."""
    return int(made.units(batch(list(ids))).name[0])


def test_units_are_the_longest_n_grams_and_no_two_overlap() -> None:
    made = knowing()
    assert len({name(made, A, B), name(made, A, B, C), name(made, C, D)}) == 3
    assert min(name(made, A, B), name(made, A, B, C), name(made, C, D)) >= made.encoder.width
    units = made.units(batch([E, A, B, E], [B, A]))  # never across texts
    assert units.owner.tolist() == [0, 1, 1, 3, 4, 5]
    seen = set()
    for row in range(40):  # a b c and c d overlap: one of them, never both
        units = made.units(batch([A, B, C, D])._replace(draw=torch.tensor([row])))
        seen.add(tuple(units.owner.tolist()))
    assert seen == {(0, 0, 0, 3), (0, 1, 2, 2)}


def test_a_hidden_n_gram_is_one_mask_and_its_name_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    made, one = knowing(rate=1e-9), batch([A, B, C, E, E], [E, C, D])  # so low a rate hides one unit of each text
    encoder, read = made.encoder, {}
    states = encoder.states

    def spy(ids: torch.Tensor, layout: Layout, **how: Any) -> torch.Tensor:
        read["ids"], read["layout"] = ids, layout
        return states(ids, layout, **how)

    monkeypatch.setattr(encoder, "states", spy)
    whole = torch.tensor([True, True, True, False, False, False, True, True])
    monkeypatch.setattr(made, "hidden", lambda *_: whole)
    loss = made(one)
    mask = encoder.mask_id
    assert read["ids"].tolist() == [mask, E, E, E, mask]  # three tokens under one mask, two under the other
    assert read["layout"].bounds.tolist() == [0, 3, 5]
    assert read["layout"].position.tolist() == [0, 1, 2, 0, 1]  # nothing tells how many are missing
    with torch.no_grad():
        rows = states(read["ids"], read["layout"])[[0, 4]]
        scores = torch.cat([encoder.logits(rows), made.grams(rows)], -1).log_softmax(-1)
    wanted = -(scores[0, name(made, A, B, C)] + scores[1, name(made, C, D)]) / 2
    torch.testing.assert_close(loss.total.detach(), wanted, rtol=1e-4, atol=1e-4)


def test_fine_passages_are_asked_token_by_token(monkeypatch: pytest.MonkeyPatch) -> None:
    made, one = knowing(fine=1.0), batch([A, B, C, E])
    monkeypatch.setattr(made, "hidden", lambda *_: torch.tensor([True, True, True, False]))
    encoder = made.encoder
    shown = torch.tensor([encoder.mask_id] * 3 + [E])
    with torch.no_grad():
        scores = encoder.logits(encoder.states(shown, one.layout)).log_softmax(-1)
    wanted = -(scores[0, A] + scores[1, B] + scores[2, C]) / 3
    torch.testing.assert_close(made(one).total.detach(), wanted, rtol=1e-4, atol=1e-4)
    assert made.purpose == "score"
    assert knowing().purpose == "encode"


def test_a_share_of_the_units_is_hidden_whole() -> None:
    made = knowing(rate=0.5)
    one = batch(*[[A, B, C, E, E, E]] * 500)
    hidden = made.hidden(one, made.units(one)).view(-1, 6)
    assert (hidden[:, 0] == hidden[:, 2]).all()
    assert ((hidden[:, 0].long() + hidden[:, 3:].sum(1)) == 2).all()  # of four units
    assert float(hidden[:, 0].double().mean()) == pytest.approx(0.5, abs=0.08)


def test_both_heads_learn_and_n_grams_come_from_the_corpus() -> None:
    made = ErnieGram(examples.encoder(), fine=0.5, rate=0.5, min_count=2, longest=2)
    with pytest.raises(BesagError, match="needs an n-gram vocabulary"):
        made(batch([A, B]))
    rng = np.random.default_rng(0)
    text = np.concatenate([rng.choice([C, D, E], 3) if rng.random() < 0.5 else [A, B] for _ in range(400)])
    counts = np.bincount(text, minlength=made.encoder.width)
    corpus = Statistics(counts, [text], frozenset(), tuple(map(str, range(made.encoder.width))))
    made.prepare(corpus)
    assert name(made, A, B) >= made.encoder.width
    made(batch(*[[A, B, C, A, B]] * 8)).total.backward()
    assert made.grams is not None
    assert float(made.grams.weight.grad.abs().max()) > 0
    with pytest.raises(BesagError, match="lower min_count"):
        ErnieGram(examples.encoder(), min_count=10**6).prepare(corpus)
