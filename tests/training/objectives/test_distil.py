"""distil by hand; the teacher is frozen, left out of the module, and must speak the student's vocabulary."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from tests import networks
from tests.training.objectives import examples

from besag import models
from besag.errors import BesagError
from besag.training.objectives.distil import Distil, divergence
from besag.training.objectives.mlm import MLM


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("teacher")
    networks.tiny(examples.FAMILY, seed=1).save_pretrained(path)
    networks.vocabulary(examples.FAMILY).tokenizer.save_pretrained(path)
    return path


@pytest.mark.parametrize(("alpha", "temperature"), [(1.0, 1.0), (0.3, 2.0), (0.0, 1.0)])
def test_the_loss_by_hand(alpha: float, temperature: float) -> None:
    network, batch = examples.encoder(), examples.batch()
    teacher = networks.tiny(examples.FAMILY, seed=1).eval()
    loss = Distil(network, teacher=teacher, alpha=alpha, temperature=temperature)(batch)
    student = examples.plain(network, batch.inputs, batch.layout)
    taught = examples.plain(examples.encoder(model=teacher), batch.inputs, batch.layout)
    by_hand = 0.0
    for place, weight in zip(batch.asked.tolist(), batch.weight.tolist(), strict=True):
        p, q = ((answers[place].double() / temperature).softmax(-1) for answers in (taught, student))
        kl = float((p * (p / q).log()).sum())
        assert kl > 0.1
        hard = -float(student[place, batch.ids[place]])
        by_hand += weight * (alpha * temperature**2 * kl + (1 - alpha) * hard)
    assert float(loss.total.detach()) == pytest.approx(by_hand, rel=1e-4)
    if alpha == 0:
        torch.testing.assert_close(loss.total, MLM(network)(batch).total)


def test_a_teacher_like_the_student_has_nothing_to_teach() -> None:
    network, batch = examples.encoder(), examples.batch()
    loss = Distil(network, teacher=copy.deepcopy(network.model), alpha=1.0)(batch)
    assert float(loss.total.detach()) == pytest.approx(0, abs=1e-4)
    assert float(examples.gradient(loss.total, network).abs().max()) < 1e-3
    with pytest.raises(BesagError, match="the student itself"):
        Distil(network, teacher=network.model)


def test_the_teacher_is_frozen_and_no_part_of_the_module(folder: Path) -> None:
    network, batch = examples.encoder(), examples.batch()
    names, weights = set(MLM(network).state_dict()), sum(1 for _ in network.parameters())
    objective = Distil(network, teacher=str(folder)).train()
    assert set(objective.state_dict()) == names
    assert sum(1 for _ in objective.parameters()) == weights
    teacher = objective.teacher.encoder
    assert not teacher.training
    assert not any(weight.requires_grad for weight in teacher.parameters())
    before = copy.deepcopy(teacher.model.state_dict())
    optimizer = torch.optim.SGD(objective.parameters(), 0.05)
    first = objective(batch)
    for _ in range(10):
        optimizer.zero_grad()
        loss = objective(batch)
        loss.total.backward()
        optimizer.step()
    assert float(loss.logs["teacher_kl"]) < float(first.logs["teacher_kl"])
    for name, value in teacher.model.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)


def test_a_folder_is_the_network_saved_in_it(folder: Path) -> None:
    network, batch = examples.encoder(), examples.batch()
    by_name, by_module = (
        Distil(network, teacher=teacher) for teacher in (folder, networks.tiny(examples.FAMILY, seed=1).eval())
    )
    by_name.meet(networks.vocabulary(examples.FAMILY))
    torch.testing.assert_close(by_name(batch).total, by_module(batch).total)


def test_the_embedded_model_can_teach(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(models, "path", lambda: folder)
    for name in (models.EMBEDDED, "embedded"):
        assert Distil(examples.encoder(), teacher=name).vocabulary is not None


def test_a_wider_teacher_with_the_same_tokens_is_compared_on_them(tmp_path: Path) -> None:
    words = networks.vocabulary(examples.FAMILY)
    wide = networks.tiny(examples.FAMILY, vocab_size=words.size + 6, seed=1).eval()
    wide.save_pretrained(tmp_path)
    words.tokenizer.save_pretrained(tmp_path)
    network, batch = examples.encoder(), examples.batch()
    objective = Distil(network, teacher=str(tmp_path), alpha=1.0)
    objective.meet(networks.vocabulary(examples.FAMILY))
    taught = examples.plain(examples.encoder(model=wide), batch.inputs, batch.layout)[:, : words.size]
    student = examples.plain(network, batch.inputs, batch.layout)
    by_hand = (divergence(taught, student)[batch.asked] * batch.weight).sum()
    torch.testing.assert_close(objective(batch).total.detach(), by_hand, rtol=1e-4, atol=1e-4)
    with pytest.raises(BesagError, match="another vocabulary: it answers over"):
        Distil(network, teacher=wide)


def test_another_vocabulary_is_refused(folder: Path) -> None:
    network = examples.encoder()
    objective = Distil(network, teacher=folder)
    swapped = copy.copy(networks.vocabulary(examples.FAMILY))
    token = swapped.token
    swapped.token = lambda id: token({20: 21, 21: 20}.get(id, id))
    with pytest.raises(BesagError, match=r"its token 20 is .* set tokenizer.path"):
        objective.meet(swapped)
    with pytest.raises(BesagError, match="tokens, the student"):
        objective.meet(networks.vocabulary("bert"))
    with pytest.raises(BesagError, match="its mask is token"):
        Distil(examples.encoder("esm"), teacher=folder)
    with pytest.raises(BesagError, match="there is no folder"):
        Distil(network, teacher=str(folder / "nothing" / "here"))
    with pytest.raises(BesagError, match="not a int"):
        Distil(network, teacher=3)


def test_texts_too_long_for_the_teacher_are_refused(folder: Path) -> None:
    objective = Distil(examples.encoder(max_position_embeddings=80), teacher=folder)
    with pytest.raises(BesagError, match="the teacher takes 40 tokens at most"):
        objective(examples.batch((41, 5)))


@pytest.mark.parametrize("wrong", [{"alpha": 1.2}, {"temperature": 0.0}])
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    [(option, value)] = wrong.items()
    with pytest.raises(BesagError, match=f"{option}={value!r}"):
        Distil(examples.encoder(), teacher=networks.tiny(examples.FAMILY), **wrong)


def test_ragged_and_padded_batches_have_one_loss() -> None:
    batch = examples.batch()
    losses = []
    for ragged in (False, True):
        teacher = networks.tiny(examples.FAMILY, seed=1).eval()
        objective = Distil(examples.encoder(ragged=ragged), teacher=teacher)
        assert objective.teacher.encoder.ragged == ragged
        losses.append(objective(batch).total)
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-4, atol=1e-4)
    other = Distil(examples.encoder("bert", ragged=True), teacher=networks.tiny("electra", seed=1).eval())
    assert not other.teacher.encoder.ragged
    assert float(other(examples.batch(family="bert")).total.detach()) > 0
