"""A task beside the language model (UDALM, Karouzos et al. 2021): labelled texts keep a network useful while it adapts.

    total = λ · cross-entropy of the labels + (1 − λ) · objective,     λ = n / (n + m)

n labelled texts stand beside the m passages of a batch. With a `weight` of one's own it is
objective + weight · cross-entropy.

The labels are predicted by a linear head on the mean of a text's hidden states. Each batch brings its own few labelled
texts, drawn with replacement by a noise that only the batch's first draw counter decides, so that neither processes nor
accumulation change them. As published, the head reads the first token's state; here it reads the mean, since not every
tokenizer puts a special token first.

A run wraps its objective in it (`TaskMixture(objective, Examples.read(path), vocabulary, …)`), trains the whole, and
calls `save_extras(folder)` beside the finished model: task_head.safetensors and labels.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from besag import noise
from besag.errors import BesagError, quoted
from besag.files import columns, rows
from besag.files.whole import write_whole
from besag.noise import Training
from besag.training.network.batch import Batch, Layout
from besag.training.objectives.mdlm import sizes
from besag.training.objectives.mixture import Mixture
from besag.training.objectives.objective import Loss, Objective
from besag.vocabulary import Vocabulary

TEXT, LABEL = "text", "label"
HEAD, LABELS = "task_head.safetensors", "labels.json"


class Examples(NamedTuple):
    """Labelled texts."""

    texts: tuple[str, ...]  # (N,)
    labels: tuple[int, ...]  # (N,) numbers into names
    names: tuple[str, ...]  # (C,) sorted

    @classmethod
    def read(cls, path: str | Path) -> Examples:
        """From TSV with a first line of names, or JSONL; the columns `text` and `label` are taken."""
        texts, labels = [], []
        for row in rows.read(str(path), None if rows.format_of(str(path)) != "text" else "tsv"):
            where, values = row.where, row.values if isinstance(row.values, Mapping) else {TEXT: row.values}
            text, label = (columns.value(values, name, where) for name in (TEXT, LABEL))
            if not isinstance(text, str) or not text.strip():
                raise BesagError(f"{where}: the text is {'empty' if not text else quoted(text)}: give a text")
            if not isinstance(label, str | int | float):
                raise BesagError(f"{where}: the label is {quoted(label)}: give a word or a number")
            texts.append(text)
            labels.append(str(label))
        names = tuple(sorted(set(labels)))
        if len(names) < 2:
            said = f"only the label {names[0]!r}" if names else "no rows"
            raise BesagError(f"{path} has {said}: a task needs texts of at least two labels")
        number_of = {name: number for number, name in enumerate(names)}
        return cls(tuple(texts), tuple(number_of[label] for label in labels), names)


class TaskMixture(Mixture):
    """An objective and a task; `logs` tells the task's loss and accuracy beside the objective's own numbers."""

    name = "task mixture"
    cite = ("karouzos2021",)

    def __init__(
        self,
        objective: Objective,
        examples: Examples,
        vocabulary: Vocabulary,
        *,
        weight: float | None = None,  # of the task beside the whole objective; None: both share, as UDALM says
        rows: int = 32,  # labelled texts beside each batch
        max_length: int = 128,  # tokens of one, special tokens counted; what is longer is cut
        seed: int = 0,
    ) -> None:
        super().__init__(objective, weight=0.0 if weight is None else weight, seed=seed)
        self.by_texts, self.rows, self.names = weight is None, rows, examples.names
        encoded = [_cut(one.ids, one.special, max_length) for one in vocabulary.encode(list(examples.texts))]
        for text, (_, special) in zip(examples.texts, encoded, strict=True):
            if special.all():
                raise BesagError(f"the text {text!r} of the task has no token: it cannot be labelled")
        self._ids = [torch.from_numpy(ids) for ids, _ in encoded]
        self._free = [torch.from_numpy(~special) for _, special in encoded]
        self._labels = torch.tensor(examples.labels)
        width = objective.encoder.model.config.hidden_size
        self.head = nn.Linear(width, len(examples.names), device=objective.encoder.model.device)
        with torch.no_grad():  # by the seed alone, whatever was drawn before
            start = noise.uniform(seed, Training.TASK_START, np.arange(self.head.weight.numel())) * 2 - 1
            self.head.weight.copy_(torch.from_numpy(start).view_as(self.head.weight) * width**-0.5)
            self.head.bias.zero_()

    def forward(self, batch: Batch) -> Loss:
        loss: Loss = self.objective(batch)
        chosen = self.examples_beside(batch)
        logits = self.logits(chosen)  # (rows, C)
        labels = self._labels[chosen].to(logits.device, non_blocking=True)
        task = F.cross_entropy(logits.float(), labels)
        accuracy = (logits.argmax(-1) == labels).float().mean()
        return self.added(loss, batch, task, {"task_loss": task, "task_accuracy": accuracy})

    def shares(self, batch: Batch) -> tuple[float | Tensor, float | Tensor]:
        if not self.by_texts:
            return super().shares(batch)
        passages = (sizes(batch.free, batch.layout) > 0).sum()  # what only fills a batch up is none
        task = self.rows / (self.rows + passages)
        return 1.0 - task, task

    def examples_beside(self, batch: Batch) -> Tensor:
        """(rows,) which labelled texts stand beside a batch."""
        first = int(batch.draw_on_host[0])
        draws = noise.uniform(self.seed, Training.TASK_EXAMPLES, first, np.arange(self.rows))
        return torch.from_numpy((draws * len(self._ids)).astype(np.int64))

    def logits(self, chosen: Tensor) -> Tensor:  # (N,) -> (N, C)
        """What the head says of some of the examples."""
        device = self.head.weight.device
        ids = [self._ids[int(index)] for index in chosen]
        free = torch.cat([self._free[int(index)] for index in chosen]).to(device, non_blocking=True)
        layout = Layout.of_lengths(torch.tensor([len(one) for one in ids])).to(device)
        states = self.encoder.states(torch.cat(ids).to(device, non_blocking=True), layout)  # (T, H)
        share = free.to(states.dtype)
        summed = states.new_zeros(len(ids), states.shape[1]).index_add(0, layout.row, states * share[:, None])
        count = states.new_zeros(len(ids)).index_add(0, layout.row, share)
        answer: Tensor = self.head((summed / count[:, None]).to(self.head.weight.dtype))
        return answer

    def save_extras(self, folder: str | Path) -> None:
        """The head, beside the finished model: label c has logit weight[c] · mean state + bias[c]; and whatever the
        objective itself saves."""
        from safetensors.torch import save_file

        super().save_extras(folder)
        weights = {name: part.detach().float().cpu().contiguous() for name, part in self.head.state_dict().items()}
        save_file(weights, Path(folder) / HEAD)
        write_whole(Path(folder) / LABELS, json.dumps(self.names, ensure_ascii=False) + "\n")


class TaskHead(NamedTuple):
    """A saved head, to label the mean hidden state of a text."""

    weight: Tensor  # (C, H)
    bias: Tensor  # (C,)
    names: Sequence[str]  # (C,)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            weights = load_file(Path(folder) / HEAD)
            names = json.loads((Path(folder) / LABELS).read_text(encoding="utf-8"))
            return cls(weights["weight"], weights["bias"], names)
        except (OSError, ValueError, KeyError, RecursionError, SafetensorError) as failure:
            raise BesagError(f"{str(folder)!r} holds no task head ({HEAD}, {LABELS}): {failure}") from failure


def _cut(ids: np.ndarray, special: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `length` tokens: the last ones of the text go, its special tokens stay."""
    inner = np.flatnonzero(~special)
    gone = inner[max(len(inner) - max(len(ids) - length, 0), 0) :]
    keep = np.ones(len(ids), dtype=bool)
    keep[gone] = False
    return ids[keep], special[keep]
