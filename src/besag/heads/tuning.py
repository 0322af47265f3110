"""From a recipe and labelled examples to a head: a few readings of them, and what it gets right of those held out.

    loss = mean over labelled places of −log p(label)

With `masked`, an example is shown on a coin's toss with a share of its tokens hidden, the share drawn anew from 0 to 1
(Madsen et al. 2024): masks are then nothing strange to the head, and p(label | masked text) is learned as what it says,
the label's probability given what is shown. The held-out figures are those after the last reading: nothing is chosen by
them.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_

from besag import noise
from besag.arrays import Ints
from besag.checks import checked
from besag.conditionals import checkpoint as saved
from besag.conditionals.network import places
from besag.errors import BesagError, quoted
from besag.files.folders import whole_folder
from besag.hardware import choose_device
from besag.heads import card, measures
from besag.heads.encoding import Batch, Read, read
from besag.heads.examples import Example, Split, split
from besag.heads.head import Classifier, Tagger
from besag.heads.network import headed
from besag.heads.recipe import HeadRecipe, recipe_of
from besag.noise import Training
from besag.training.network.networks import seeded
from besag.training.recipe import Changes, Schedule
from besag.training.run.schedule import factor
from besag.training.tokenizer.saving import save_whole
from besag.vocabulary import Vocabulary

IGNORED = -100  # the label of a token that answers for nothing


class HeadResult(NamedTuple):
    """A finished head: where it is, and what it got right of the examples held out."""

    model: Path
    metrics: Mapping[str, float]


@checked
def train_head(
    recipe: HeadRecipe | str | Path | Mapping[str, Any],
    changes: Changes = (),
    *,
    output: str | Path | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> HeadResult:
    """Tune a classifier or a tagger as a recipe says, and measure it on examples held out.

    Args:
        recipe: a TOML file, or a table of tables as a file has them.
        changes: keys of the recipe on top, `{"tuning.lr": 1e-4}` or `["tuning.lr=1e-4"]`.
        output: folder of the finished head, in place of `run.output`.
        tell: called with a line of text after each reading of the examples.

    Returns:
        A `HeadResult`. The folder is one of transformers, with a card; `besag.load_head` loads it.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("animals.tsv").write_text("text\\tlabel\\n" + "A cat sat.\\tcat\\nA dog sat.\\tdog\\n" * 8)
        >>> task = {"train": "animals.tsv", "valid": "animals.tsv"}
        >>> result = besag.train_head({"task": task}, {"tuning.epochs": 1}, output="head")
        >>> sorted(result.metrics)[:2]
        ['accuracy', 'examples']
        >>> besag.load_head(result.model).labels
        ('cat', 'dog')
    """
    wanted = recipe_of(recipe, changes, output=output)
    examples = split(wanted.task, wanted.run.seed)
    model, vocabulary = headed(wanted.model.start, wanted.task.kind, examples.names, wanted.run.seed)
    room = places(model)
    if room is not None and wanted.task.max_length > room:
        raise BesagError(
            f"task.max_length = {wanted.task.max_length}, but the network has {room} places: shorten the one"
        )
    device = choose_device(None if wanted.run.device == "auto" else wanted.run.device)
    work = _Work(wanted, examples, model.to(device), vocabulary, device)
    began = time.perf_counter()
    with seeded(wanted.run.seed + 1):  # dropout
        work.tune(tell)
    metrics = {**work.measure(), "examples": float(len(examples.train)), "seconds": time.perf_counter() - began}
    work.save(Path(wanted.run.output), metrics)
    return HeadResult(Path(wanted.run.output), metrics)


@dataclass(frozen=True)
class _Work:
    recipe: HeadRecipe
    examples: Split
    model: Any
    vocabulary: Vocabulary
    device: torch.device

    def tune(self, tell: Callable[[str], None]) -> None:
        tuning, number = self.recipe.tuning, {name: at for at, name in enumerate(self.examples.names)}
        reads = self._read(self.examples.train)
        labels = [np.array([number[label] for label in one.labels]) for one in self.examples.train]
        steps = tuning.epochs * -(-len(reads) // tuning.batch)
        optimizer, schedule = self._optimizer(steps)
        for epoch in range(tuning.epochs):
            self.model.train()
            turns = noise.uniform(self.recipe.run.seed, Training.HEAD_ORDER, epoch, np.arange(len(reads)))
            order = np.argsort(turns, kind="stable")
            total = 0.0
            for start in range(0, len(order), tuning.batch):
                rows = order[start : start + tuning.batch]
                loss = self._loss(epoch, rows, reads, labels)
                if not torch.isfinite(loss):
                    raise BesagError(
                        f"the loss is {float(loss.detach())} in reading {epoch + 1}: try a smaller tuning.lr"
                    )
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                clip_grad_norm_(self.model.parameters(), tuning.clip)
                optimizer.step()
                schedule.step()
                total += float(loss.detach()) * len(rows) / len(order)
            told = " · ".join(f"{name} {value:.4f}" for name, value in self.measure().items())
            tell(f"reading {epoch + 1} of {tuning.epochs}: loss {total:.4f} · held out: {told}")

    def measure(self) -> dict[str, float]:
        """On the examples held out, as they are; after masked tuning also with a share of their tokens hidden."""
        head = (Tagger if self.recipe.task.kind == "tag" else Classifier)(self.model, self.vocabulary, "head")
        valid, reads = self.examples.valid, self._read(self.examples.valid)
        true = [one.labels for one in valid]
        usual = Counter(label for one in self.examples.train for label in one.labels).most_common(1)[0][0]
        found = measures.measured(true, self._said(head, reads, [one.ids for one in reads], usual), usual)
        if self.recipe.tuning.masked:
            hidden = [self._hidden(one, 0, row, always=True) for row, one in enumerate(reads)]
            found["masked_accuracy"] = measures.measured(true, self._said(head, reads, hidden, usual), usual)[
                "accuracy"
            ]
        return found

    def save(self, folder: Path, metrics: Mapping[str, float]) -> None:
        try:
            with whole_folder(folder) as draft, saved.quiet():
                self.model.save_pretrained(draft)
                save_whole(self.vocabulary.tokenizer, draft)
                cut = sum(one.cut for one in self._read(self.examples.train))
                card.write(draft, folder.name, self.recipe, self.examples, type(self.model).__name__, metrics, cut)
        except OSError as problem:
            raise BesagError(f"the head cannot be written to {quoted(str(folder))}: {problem.strerror}") from problem

    # ---- parts

    def _read(self, examples: Sequence[Example]) -> list[Read]:
        found = read(self.vocabulary, [one.words for one in examples], self.recipe.task.max_length)
        for example, one in zip(examples, found, strict=True):
            if one.status != "ok":
                raise BesagError(f"the example {quoted(example.text)} cannot be learned: {one.status.sentence}")
        return found

    def _loss(self, epoch: int, rows: Ints, reads: Sequence[Read], labels: Sequence[Ints]) -> Tensor:
        shown = [self._hidden(reads[row], epoch + 1, int(row)) for row in rows]
        assert self.vocabulary.pad_id is not None
        batch = Batch.of(shown, self.vocabulary.pad_id, self.device)
        logits = self.model(input_ids=batch.ids, attention_mask=batch.mask).logits.float()
        smoothing = self.recipe.tuning.smoothing
        if self.recipe.task.kind == "classify":
            wanted = torch.tensor([labels[row][0] for row in rows], device=self.device)
            return F.cross_entropy(logits, wanted, label_smoothing=smoothing)
        target = np.full(batch.ids.shape, IGNORED)
        for at, row in enumerate(rows):
            first = reads[row].first
            target[at, first[first >= 0]] = labels[row][first >= 0]
        wanted = torch.from_numpy(target).to(self.device).flatten()
        return F.cross_entropy(logits.flatten(0, 1), wanted, label_smoothing=smoothing)

    def _hidden(self, one: Read, epoch: int, row: int, always: bool = False) -> Ints:
        """The tokens as they are shown: after a coin's toss, with a share of them hidden that is drawn from 0 to 1."""
        if not self.recipe.tuning.masked:
            return one.ids
        seed = self.recipe.run.seed
        toss, rate = noise.uniform(seed, Training.HEAD_RATE, epoch, row, np.arange(2))
        if toss < 0.5 and not always:
            return one.ids
        hides = noise.uniform(seed, Training.HEAD_HIDE, epoch, row, np.arange(len(one.ids))) < rate
        assert self.vocabulary.mask_id is not None  # it was a masked network
        return np.where(hides & ~one.special, self.vocabulary.mask_id, one.ids)

    def _said(
        self, head: Classifier | Tagger, reads: Sequence[Read], ids: Sequence[Ints], usual: str
    ) -> list[tuple[str, ...]]:
        """What the head says of the words of each; of a word that was cut off the usual label."""
        found: list[tuple[str, ...]] = [()] * len(reads)
        for rows, logits in head.batches(ids):
            for row, own in zip(rows, logits, strict=True):
                first = np.zeros(1, np.int64) if self.recipe.task.kind == "classify" else reads[row].first
                best = np.atleast_2d(own)[first].argmax(-1)
                named = zip(first.tolist(), best.tolist(), strict=True)
                found[row] = tuple(head.labels[number] if at >= 0 else usual for at, number in named)
        return found

    def _optimizer(self, steps: int) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LambdaLR]:
        tuning, new = self.recipe.tuning, self.model.besag_new
        depth = int(self.model.config.num_hidden_layers)
        if tuning.frozen > depth:
            raise BesagError(f"tuning.frozen = {tuning.frozen}, but the network has {depth} layers")
        groups: dict[tuple[float, bool], list[Tensor]] = {}
        for name, weight in self.model.named_parameters():
            layer = depth + 1 if name in new else level(name, depth)
            weight.requires_grad_(not (tuning.frozen and layer <= tuning.frozen))
            rate = tuning.head_lr if name in new else tuning.lr * tuning.layer_decay ** max(0, depth - layer)
            groups.setdefault((rate, weight.ndim > 1), []).append(weight)
        optimizer = torch.optim.AdamW(
            {"params": weights, "lr": rate, "weight_decay": tuning.weight_decay if is_matrix else 0.0}
            for (rate, is_matrix), weights in groups.items()
        )
        shape = Schedule(warmup=tuning.warmup)

        def share(step: int) -> float:
            return factor(shape, (step + 0.5) / steps)

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def level(name: str, depth: int) -> int:
    """How high a weight stands: 0 with the table of tokens, 1 to `depth` in a layer, above all of them otherwise.

    >>> [level(name, 10) for name in ("bert.embeddings.word.weight", "bert.encoder.layer.3.output.weight", "head.bias")]
    [0, 4, 11]
    """
    layer = re.search(r"\.(\d+)\.", name)
    if layer is not None:
        return int(layer[1]) + 1
    return 0 if "embed" in name else depth + 1
