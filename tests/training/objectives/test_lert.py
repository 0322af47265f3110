"""lert: tags of hidden words by hand, the schedule of kinds, and what a file may say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests import networks
from tests.training.objectives import examples
from tests.training.objectives.waiting import Waits, on_device
from torch import Tensor

from besag.errors import BesagError
from besag.training.objectives.lert import LERT, Tagged
from besag.training.objectives.mlm import MLM

ROWS: list[dict[str, Any]] = [
    {"words": ["the", "cats", "sleep"], "tags": {"pos": ["D", "N", "V"], "role": ["-", "subject", "root"]}},
    {"words": ["dogs", "bark", "."], "tags": {"pos": ["N", "V", "P"], "role": ["subject", "root", "-"]}},
    {"words": ["the", "old", "dog", "runs"],
     "tags": {"pos": ["D", "A", "N", "V"], "role": ["-", "-", "subject", "root"]}},
]  # fmt: skip


def written(folder: Path, rows: list[Any]) -> Path:
    path = folder / "tags.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def tags(tmp_path: Path) -> Tagged:
    return Tagged.read(written(tmp_path, ROWS))


def knowing(tags: Any, family: str = "bert", **options: Any) -> LERT:
    made = LERT(examples.encoder(family), tags=tags, **options)
    made.meet(networks.vocabulary(family))
    return made


def test_a_file_is_read_and_every_token_has_the_tags_of_its_word(tmp_path: Path) -> None:
    together = {"words": ["ab", "c"], "text": "abc", "tags": {"pos": ["X", "N"], "role": ["-", "root"]}}
    made = knowing(str(written(tmp_path, [*ROWS, together])))
    assert made.kinds == ("pos", "role")
    assert made.tagged.texts[0] == "the cats sleep"
    assert made.tagged.spans[3] == ((0, 2), (2, 3))  # of a text without spaces
    assert made.texts is not None
    words = networks.vocabulary("bert")
    for row, (ids, own) in zip(ROWS, made.texts, strict=False):
        [encoded] = words.encode([" ".join(row["words"])], words="whitespace")
        assert ids.tolist() == encoded.ids.tolist()
        for word, tag in zip(encoded.words.tolist(), own.tolist(), strict=True):
            wanted = [made.names[kind].index(row["tags"][kind][word]) for kind in made.kinds] if word >= 0 else [-1, -1]
            assert tag == wanted


def test_kinds_come_in_from_shallow_to_deep(tags: Tagged) -> None:
    three = Tagged(tags.texts, tags.spans, {**tags.tags, "deep": tags.tags["role"]})
    made = LERT(examples.encoder("bert"), tags=three)
    assert list(made.full.values()) == pytest.approx([1 / 6, 1 / 3, 1 / 2])
    shares = [[made.share(kind, progress) for kind in three.tags] for progress in (0.0, 1 / 12, 1 / 6, 1 / 3, 1.0)]
    wanted = [[0, 0, 0], [1 / 2, 1 / 4, 1 / 6], [1, 1 / 2, 1 / 3], [1, 1, 2 / 3], [1, 1, 1]]
    torch.testing.assert_close(torch.tensor(shares), torch.tensor(wanted, dtype=torch.float32))


def test_the_loss_by_hand(tags: Tagged) -> None:
    made, batch = knowing(tags, rate=0.5), examples.batch(family="bert", progress=1 / 4)
    with torch.no_grad():
        for head in made.heads:
            head.weight.normal_(std=0.5, generator=torch.Generator().manual_seed(1))
    ids, own, layout, hidden = made.beside(batch)
    assert layout.rows == batch.layout.rows
    total = float(MLM(made.encoder)(batch).total.detach())
    weights = [float(batch.weight[batch.layout.row[batch.asked] == row].sum()) for row in range(3)]
    with torch.no_grad():
        for row in range(3):
            mine = layout.row == row
            shown = torch.where(hidden[mine], made.encoder.mask_id, ids[mine])
            states = made.encoder.body(input_ids=shown[None])[0][0]
            for place, share in enumerate((1.0, 1 / 2)):  # at a quarter of the run: full after 1/6, after 1/2
                log_probs = made.heads[place](states).log_softmax(-1)
                each = [-float(log_probs[at, own[mine][at, place]]) for at in hidden[mine].nonzero()[:, 0].tolist()]
                total += share * weights[row] * sum(each) / len(each)
    loss = made(batch)
    assert float(loss.total.detach()) == pytest.approx(total, rel=1e-4)
    assert set(loss.logs) == {"masked_loss", "pos_loss", "pos_accuracy", "role_loss", "role_accuracy"}


def test_tags_are_asked_where_the_word_is_hidden(tags: Tagged, monkeypatch: pytest.MonkeyPatch) -> None:
    made, batch = knowing(tags, rate=0.4), examples.batch((6,) * 40, family="bert")
    read, states = [], made.encoder.states

    def spy(ids: Tensor, layout: Any) -> Tensor:
        read.append(ids)
        return states(ids, layout)

    monkeypatch.setattr(made.encoder, "states", spy)
    made(batch)
    ids, own, layout, hidden = made.beside(batch)
    assert torch.equal(read[1] == made.encoder.mask_id, hidden)
    assert torch.equal(read[1][~hidden], ids[~hidden])
    assert bool((own[hidden] >= 0).all())
    count = torch.bincount(layout.row[hidden], minlength=40)
    able = torch.bincount(layout.row[own[:, 0] >= 0], minlength=40)
    assert bool(((count - 0.4 * able).abs() < 1).all())
    assert len({tuple(row.tolist()) for row in hidden.split(layout.bounds.diff().tolist())}) > 3


def test_deep_tags_wait_while_shallow_ones_are_learned(tags: Tagged) -> None:
    made = knowing(tags, rate=0.5, first=0.01, last=1.0)
    made(examples.batch(family="bert", progress=0.01)).total.backward()
    shallow, deep = (float(head.weight.grad.abs().max()) for head in made.heads)  # type: ignore[union-attr]
    assert 0 < deep < 0.1 * shallow
    untold = knowing(tags)
    untold(examples.batch(family="bert", progress=0.0)).total.backward()
    assert all(not head.weight.grad.any() for head in untold.heads)  # type: ignore[union-attr]
    assert untold.purpose == "score"


def test_ragged_and_padded_batches_have_one_gradient(tags: Tagged) -> None:
    batch, gradients = examples.batch(progress=0.9), []
    for ragged in (False, True):
        network = examples.encoder(ragged=ragged)
        made = LERT(network, tags=tags, rate=0.5)
        made.meet(networks.vocabulary(examples.FAMILY))
        gradients.append(examples.gradient(made(batch).total, network))
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"tags": {"pos": ["N"]}}, "line 4 has no 'words'"),
        ({"words": ["a"], "tag": {}}, "has no 'tags'.*Did you mean"),
        ({"words": [], "tags": {"pos": []}}, "give a list of words"),
        ({"words": ["a", ""], "tags": {"pos": ["N", "N"]}}, "none of them empty"),
        ({"words": ["a"], "tags": []}, "give kinds and their tags"),
        ({"words": ["a", "b"], "tags": {"pos": ["N"]}}, "one for each of 2 words"),
        ({"words": ["a"], "tags": {"pos": [3]}}, "one for each of 1 words"),
        ({"words": ["a"], "tags": {"pos": ["N"]}}, "has tags of pos, and the first row those of pos, role"),
        ({"words": ["b", "a"], "text": "a b", "tags": {"pos": ["N", "N"], "role": ["-", "-"]}}, "'a' does not follow"),
        ({"words": ["a"], "text": 3, "tags": {"pos": ["N"]}}, "the text is 3"),
    ],
)
def test_what_cannot_be_used_is_refused(row: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(BesagError, match=message):
        Tagged.read(written(tmp_path, [*ROWS, row]))


def test_nothing_to_learn_is_refused(tags: Tagged, tmp_path: Path) -> None:
    with pytest.raises(BesagError, match="all words have one tag of the kind 'pos'"):
        Tagged.read(written(tmp_path, [{"words": ["a", "b"], "tags": {"pos": ["N", "N"]}}]))
    with pytest.raises(BesagError, match="no rows"):
        Tagged.read(written(tmp_path, []))
    with pytest.raises(BesagError, match=r"call meet\(vocabulary\)"):
        LERT(examples.encoder("bert"), tags=tags)(examples.batch(family="bert"))
    long = Tagged(
        (" ".join(["cat"] * 60),), (tuple((4 * n, 4 * n + 3) for n in range(60)),), {"pos": (("A", "B") * 30,)}
    )
    with pytest.raises(BesagError, match="cut it"):
        knowing(long)


@pytest.mark.parametrize("wrong", [{"rate": 0.0}, {"first": 0.0}, {"first": 0.6, "last": 0.5}, {"last": 1.5}])
def test_wrong_options_are_refused(wrong: dict[str, float], tags: Tagged) -> None:
    with pytest.raises(BesagError, match=next(iter(wrong))):
        LERT(examples.encoder("bert"), tags=tags, **wrong)


def test_no_step_waits_for_the_device(tags: Tagged, monkeypatch: pytest.MonkeyPatch) -> None:
    made, batch = knowing(tags, rate=0.5), examples.batch(family="bert", progress=1 / 4)
    table = made.encoder.model.get_input_embeddings().weight
    monkeypatch.setattr(made.encoder, "states", lambda ids, layout: table[ids])  # which pads on the CPU
    with pytest.raises(Waits):
        made.beside(on_device(batch)._replace(host_draw=None))
    torch.testing.assert_close(made(on_device(batch)).total.as_subclass(torch.Tensor), made(batch).total)
