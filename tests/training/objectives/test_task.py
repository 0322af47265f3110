"""A task beside the objective: its share of the loss by hand, its data strictly read, its head saved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tests import networks
from tests.training.objectives.waiting import Waits, on_device
from torch.nn import functional as F

from besag.errors import BesagError
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.objectives import OBJECTIVES
from besag.training.objectives.task import Examples, TaskHead, TaskMixture

TEXTS = ("the cat sat", "a dog ran", "the mat is flat", "one dog")
EXAMPLES = Examples(TEXTS, (0, 1, 0, 1), ("cat", "dog"))


def mixture(**options: object) -> TaskMixture:
    words = networks.vocabulary("bert")
    encoder = Encoder(
        networks.tiny("bert", initializer_range=0.1).eval(), mask_id=words.mask_id, pad_id=words.pad_id,
        special_ids=words.special_ids, ragged=False,
    )  # fmt: skip
    return TaskMixture(OBJECTIVES.find("mlm")(encoder), EXAMPLES, words, **{"rows": 3, **options})


def batch(first: int = 7, rows: int = 2) -> Batch:
    words = networks.vocabulary("bert")
    ids = torch.tensor([words.encode([text])[0].ids.tolist() for text in TEXTS[:1]]).repeat(rows, 1)
    layout = Layout.of_lengths(torch.tensor([ids.shape[1]] * rows))
    flat = ids.flatten()
    asked = torch.tensor([1, 2, ids.shape[1] + 1])
    inputs = flat.clone()
    inputs[asked] = words.mask_id
    weight = torch.tensor([1.0, 2.0, 0.0])
    draw = torch.arange(first, first + rows)
    return Batch(
        flat, inputs, torch.ones_like(flat, dtype=torch.bool), layout, asked, weight, torch.ones(rows), draw, 0, 0
    )


def test_by_itself_the_task_counts_as_its_share_of_the_texts():
    """UDALM: λ = n / (n + m), n labelled texts beside m passages."""
    both, one = mixture(rows=6), batch()
    passages = one.layout.rows
    share = 6 / (6 + passages)
    assert tuple(map(float, both.shares(one))) == pytest.approx((1 - share, share))
    loss, alone = both(one), both.objective(one)
    torch.testing.assert_close(loss.total, (1 - share) * alone.total + share * 3.0 * loss.logs["task_loss"])
    empty = one._replace(layout=one.layout._replace(bounds=torch.cat([one.layout.bounds, one.layout.bounds[-1:]])))
    assert both.shares(empty) == both.shares(one)  # a row that only fills a batch up is no passage


def test_the_total_is_the_objective_and_the_weighted_task():
    both, one = mixture(weight=0.25), batch()
    both.encoder.watched = True  # somebody wants to know how each token was predicted
    loss = both(one)
    alone = both.objective(one)
    chosen = both.examples_beside(one)
    model, words = both.encoder.model, networks.vocabulary("bert")
    losses, right = [], 0
    for index in chosen.tolist():  # one text at a time, by transformers alone
        [encoded] = words.encode([TEXTS[index]])
        states = model.bert(torch.from_numpy(encoded.ids)[None]).last_hidden_state[0]
        mean = states[torch.from_numpy(~encoded.special)].mean(0)
        logits = both.head.weight @ mean + both.head.bias
        losses.append(F.cross_entropy(logits[None], torch.tensor([EXAMPLES.labels[index]])))
        right += int(logits.argmax() == EXAMPLES.labels[index])
    task = torch.stack(losses).mean()
    torch.testing.assert_close(loss.total, alone.total + 0.25 * 3.0 * task)  # 3 = the sum of the batch's weights
    torch.testing.assert_close(loss.logs["task_loss"], task.detach())
    assert float(loss.logs["task_accuracy"]) == pytest.approx(right / 3)
    assert torch.equal(loss.predicted.losses, alone.predicted.losses)


def test_the_examples_are_decided_by_the_batch_alone_and_all_get_their_turn():
    both = mixture(rows=8)
    assert torch.equal(both.examples_beside(batch(3)), mixture(rows=8).examples_beside(batch(3)))
    assert not torch.equal(both.examples_beside(batch(3)), both.examples_beside(batch(4)))
    assert not torch.equal(both.examples_beside(batch(3)), mixture(rows=8, seed=1).examples_beside(batch(3)))
    counts = sum(torch.bincount(both.examples_beside(batch(first)), minlength=4) for first in range(500))
    expected = counts.sum() / 4
    assert ((counts - expected) ** 2 / expected).sum() < 16.27  # chi-square, 3 degrees: p = 0.001


def test_the_task_is_learned_and_the_gradient_reaches_the_encoder():
    torch.manual_seed(0)
    both = mixture(weight=1.0, rows=16)
    optimizer = torch.optim.Adam(both.parameters(), lr=3e-3)
    for step in range(12):
        optimizer.zero_grad()
        loss = both(batch(step))
        loss.total.backward()
        optimizer.step()
    assert float(loss.logs["task_accuracy"]) > 0.9
    both.zero_grad()
    both.objective.forward = lambda _: loss._replace(total=torch.zeros(()))
    both(batch()).total.backward()
    assert both.encoder.model.bert.encoder.layer[0].attention.self.query.weight.grad.abs().max() > 0


def test_the_encoder_is_saved_once_and_the_head_starts_by_the_seed():
    names = list(mixture().state_dict())
    assert sum("word_embeddings" in name for name in names) == 1
    assert all(name.startswith(("objective.", "head.")) for name in names)
    torch.manual_seed(123)
    assert torch.equal(mixture().head.weight, mixture().head.weight)
    assert not torch.equal(mixture().head.weight, mixture(seed=1).head.weight)
    assert mixture().masks is True


def test_long_texts_are_cut_and_keep_their_special_tokens():
    both = mixture(max_length=4)
    words = networks.vocabulary("bert")
    whole = words.encode([TEXTS[2]])[0].ids.tolist()
    assert len(whole) > 4
    assert both._ids[2].tolist() == [*whole[:3], whole[-1]]


def test_the_head_is_saved_beside_the_model(tmp_path):
    both = mixture()
    both.save_extras(tmp_path)
    head = TaskHead.load(tmp_path)
    assert torch.equal(head.weight, both.head.weight)
    assert torch.equal(head.bias, both.head.bias)
    assert head.names == ["cat", "dog"]
    with pytest.raises(BesagError, match="holds no task head"):
        TaskHead.load(tmp_path / "nowhere")


def test_what_the_objective_is_and_saves_goes_through(tmp_path):
    both = mixture()
    assert both.purpose == "score"
    encodes = OBJECTIVES.find("electra")(both.encoder, mlm_weight=0.0, save_generator=True)
    mixed = TaskMixture(encodes, EXAMPLES, networks.vocabulary("bert"))
    assert (mixed.purpose, mixed.masks) == ("encode", True)
    mixed.save_extras(tmp_path)
    assert (tmp_path / "generator" / "config.json").exists()
    assert TaskHead.load(tmp_path).names == ["cat", "dog"]


# ---- the file


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_tsv_and_jsonl_are_read_alike(tmp_path):
    tsv = put(tmp_path / "task.tsv", "id\ttext\tlabel\r\n1\tIt rains.\tbad\r\n2\tSun!\tgood\r\n\r\n")
    rows = [{"text": "It rains.", "label": "bad"}, {"text": "Sun!", "label": "good"}]
    jsonl = put(tmp_path / "task.jsonl", "\n".join(json.dumps(row) for row in rows))
    assert Examples.read(tsv) == Examples.read(jsonl) == Examples(("It rains.", "Sun!"), (0, 1), ("bad", "good"))
    numbers = put(tmp_path / "n.jsonl", '{"text": "a", "label": 1}\n{"text": "b", "label": 0}\n')
    assert Examples.read(numbers) == Examples(("a", "b"), (1, 0), ("0", "1"))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.tsv", "text\tlabels\nx\ty\n", "line 2 has no 'label'; it has text, labels. Did you mean 'labels'?"),
        ("a.tsv", "text\tlabel\nx\n", "line 2 has 1 cells, but the table has 2 columns"),
        ("a.tsv", "text\tlabel\n \ty\n", "line 2: the text is ' ': give a text"),
        ("a.tsv", "text\tlabel\nx\ty\n", "only the label 'y': a task needs texts of at least two labels"),
        ("a.tsv", "", "has no rows"),
        ("a.jsonl", "{text: 1}\n", "line 1 is not JSON"),
        ("a.jsonl", "[1]\n", "line 1 is JSON, but neither an object nor a string"),
        ("a.jsonl", "[" * 3000, "nested more than 100 deep"),
        ("a.jsonl", '{"text": 5, "label": "a"}', "the text is 5: give a text"),
        ("a.jsonl", '{"text": "a", "label": [1]}', "the label is [1]: give a word or a number"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path, name, content, said):
    with pytest.raises(BesagError) as raised:
        Examples.read(put(tmp_path / name, content))
    assert said in str(raised.value)


def test_a_file_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(BesagError, match="no such file"):
        Examples.read(tmp_path / "missing.tsv")
    (tmp_path / "bytes.tsv").write_bytes(b"text\tlabel\n\xff\ta\n")
    with pytest.raises(BesagError, match=r"line 2, byte 1 \(0xff\) is not UTF-8"):
        Examples.read(tmp_path / "bytes.tsv")


def test_no_step_waits_for_the_device(monkeypatch):
    both, one = mixture(rows=6), batch()
    table = both.encoder.model.get_input_embeddings().weight
    monkeypatch.setattr(both.encoder, "states", lambda ids, layout: table[ids])  # which pads on the CPU
    with pytest.raises(Waits):
        both.examples_beside(on_device(one)._replace(host_draw=None))
    torch.testing.assert_close(both(on_device(one)).total.as_subclass(torch.Tensor), both(one).total)
