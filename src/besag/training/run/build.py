"""From a recipe to everything that is trained and trained on.

Vocabulary, data, network, law of masks, objective: each is made by its own file; this one knows what needs what, and
that the first of several processes makes what is written to disk while the others wait.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from besag import masks
from besag.conditionals import loading
from besag.errors import BesagError
from besag.hardware import choose_dtype
from besag.masks.law import MaskLaw
from besag.results.words import counted
from besag.training.data import context_batches, in_place, one_line, parallel, sources
from besag.training.data.batch_plan import BatchPlan
from besag.training.data.cache import Cache
from besag.training.data.contexts import Contexts
from besag.training.data.loader import BatchDataset, Clock, Parts, StreamBatches, Template, indices, make_loader
from besag.training.data.pair_batches import PairBatches, PairPlan
from besag.training.data.parallel import Parallel
from besag.training.network import adapt, causal_start, networks
from besag.training.network.decoders import with_mask
from besag.training.network.encoder import Encoder
from besag.training.network.translator import Translator
from besag.training.objectives import OBJECTIVES
from besag.training.objectives.objective import Objective
from besag.training.recipe import Recipe, is_parallel
from besag.training.run import memory
from besag.training.run.ranks import Ranks
from besag.training.run.text import Text
from besag.vocabulary import Vocabulary

TOKENIZER = "tokenizer"
MADE_FROM = "made_from.json"  # in the folder of a tokenizer that was trained for a run
RATES = 1024  # passages over which the mean rate is taken
LOOK = 20  # first batches of a run, at least one of which must mask a token


@dataclass(frozen=True)
class Built:
    recipe: Recipe
    device: torch.device
    precision: str  # "float32", "bfloat16" (weights in float32) or "bfloat16-pure"
    vocabulary: Vocabulary
    encoder: Encoder
    objective: Objective
    masking: masks.Masking
    batches: BatchDataset | StreamBatches
    clock: Clock
    train: Cache | None  # the corpus, tokenised; None where it is a stream
    valid: Cache | None  # held-out text; None where nothing is held out
    valid_pairs: Parallel | None = None  # the same with its sources, where text is parallel
    valid_contexts: Contexts | None = None  # the same with headers and what belongs together, where there is any

    @property
    def model(self) -> Any:
        return self.encoder.model

    @property
    def lengths(self) -> str:
        """How passages are put into batches: `data.lengths`, decided."""
        return "unpadded" if self.batches.maker.unpadded else "bucketed"

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """The precision in which losses are computed."""
        if self.precision == "bfloat16":
            return torch.autocast(self.device.type, dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def mean_rate(self, progress: float) -> float:
        """The share of tokens that is to be hidden at this progress, on average."""
        return float(self.masking.rate.at(progress, np.arange(RATES), self.recipe.run.seed).mean())

    def loader(self, start: int, ranks: Ranks, *, pin: bool, seen: int | None = None) -> DataLoader[Any]:
        """The batches of one process, from step `start` on, without end; a ramp must know how many it has `seen`."""
        run = self.recipe.run
        order = indices(start, ranks.rank, ranks.world, run.accumulate)
        if seen is not None:
            self.clock.go_on(start, seen)
            order = indices(seen, ranks.rank, ranks.world)
        made = make_loader(self.batches, order, run.workers, pin)
        made.generator = torch.Generator()  # otherwise it would draw from the one that dropout draws from
        return made

    @contextlib.contextmanager
    def plain(self) -> Iterator[None]:
        """In here the network is an ordinary one of transformers: eager, padded, not training."""
        config, training = self.model.config, self.model.training
        attention = config._attn_implementation
        self.model.eval()
        if self.encoder.ragged:
            config._attn_implementation = "sdpa"
        try:
            with torch.compiler.set_stance("force_eager") if self.recipe.run.compile else contextlib.nullcontext():
                yield
        finally:
            config._attn_implementation = attention
            self.model.train(training)


def build(
    recipe: Recipe,
    *,
    device: torch.device,
    ranks: Ranks | None = None,
    resume: bool = False,
    lengths: str | None = None,
) -> Built:
    """Everything a run needs, still on the CPU. `lengths`: as a resumed run had them, on whatever device it began."""
    lengths = lengths or recipe.data.lengths
    ranks = ranks or Ranks()
    precision = _precision(recipe.run.precision, device)
    sketch = networks.check_shape(recipe)  # now, and not after a tokenizer was trained for it
    if sketch is not None:
        memory.refuse_too_large(recipe, sketch, precision, device)
    vocabulary = _vocabulary(recipe, ranks, resume)
    model = networks.network(recipe, vocabulary)
    if sketch is None:
        memory.refuse_too_large(recipe, model, precision, device)
    with networks.seeded(recipe.run.seed + 2):
        model = adapt.adapt(model, recipe.adapt)
    ragged = _ragged(lengths, model, vocabulary, device, precision)
    if precision == "bfloat16-pure":
        networks.round_weights(model)
    assert vocabulary.mask_id is not None
    assert vocabulary.pad_id is not None
    encoder = _encoder(recipe, model, vocabulary, ragged)
    data = Text(recipe, vocabulary, ranks, resume)
    objective = _objective(recipe, vocabulary, encoder, data, precision)
    if recipe.run.compile:
        encoder.compile_layers()
    masking = _masking(recipe, vocabulary, encoder, data, ranks)
    unpadded = ragged if lengths == "auto" else lengths == "unpadded"
    static = recipe.run.compile and ragged and unpadded
    batches, clock = _batches(recipe, vocabulary, data, masking, ranks, unpadded=unpadded, static=static)
    if not resume and isinstance(batches, BatchDataset):
        _refuse_unmasked(recipe, batches)
    return Built(
        recipe, device, precision, vocabulary, encoder, objective, masking, batches, clock, data.train, data.valid,
        data.valid_pairs, data.valid_contexts,
    )  # fmt: skip


# ---- precision and layout


def _precision(asked: str, device: torch.device) -> str:
    if asked == "auto":
        return "bfloat16" if device.type == "cuda" else "float32"
    if asked != "float32" and choose_dtype("bfloat16", device) is not torch.bfloat16:
        return "float32"  # with a warning: this processor cannot compute in bfloat16
    return asked


def _encoder(recipe: Recipe, model: Any, vocabulary: Vocabulary, ragged: bool) -> Encoder:
    """Around the network; a decoder that sees both sides must be told how long a target is, so it learns to say it."""
    about: Any = {"mask_id": vocabulary.mask_id, "pad_id": vocabulary.pad_id, "special_ids": vocabulary.special_ids}
    predicts = recipe.model.decoder == "masked" and recipe.objective.length > 0
    if recipe.model.decoder == "none":
        encoder = Encoder(model, **about, ragged=ragged)
    else:
        most = recipe.data.max_length - Template(vocabulary).size
        encoder = Translator(model, **about, most=most if predicts else None)
        if recipe.model.start is not None:
            encoder.go_on_with_lengths(networks.found(recipe.model.start))
    encoder.smoothing = recipe.objective.smoothing
    return encoder


def _ragged(lengths: str, model: Any, vocabulary: Vocabulary, device: torch.device, precision: str) -> bool:
    """Can sequences be run end to end? On CUDA, in bfloat16, where the family's attention can be replaced."""
    if model.config.is_encoder_decoder:
        return False
    wanted = device.type == "cuda" and precision != "float32" and lengths != "bucketed"
    return wanted and networks.can_be_ragged(model, vocabulary)


# ---- text


def _vocabulary(recipe: Recipe, ranks: Ranks, resume: bool) -> Vocabulary:
    """The tokenizer that is named, that of the network to go on from, or one trained on the data and kept."""
    name = recipe.tokenizer.path or recipe.model.start
    if name is not None:
        vocabulary = loading.read_vocabulary(networks.found(name), name)
        if recipe.model.decoder != "none":
            return with_mask(vocabulary)
        start = recipe.model.start
        lacks = start is not None and (vocabulary.mask_id is None or vocabulary.pad_id is None)
        if lacks and causal_start.is_causal(str(networks.found(str(start))), str(start)):
            return causal_start.with_mask(vocabulary)
        return vocabulary
    folder = Path(recipe.run.output) / TOKENIZER
    ranks.made_once(lambda: _train_tokenizer(recipe, folder, resume))
    return loading.read_vocabulary(folder, str(folder))


def _train_tokenizer(recipe: Recipe, folder: Path, resume: bool) -> None:
    """A tokenizer that another try left is taken if it was made in the same way, and replaced if not."""
    from besag.training.tokenizer import train_tokenizer
    from besag.training.tokenizer.saving import save_whole

    how = {name: value for name, value in asdict(recipe.tokenizer).items() if name != "path"}
    how["max_length"] = recipe.data.max_length
    pairs = is_parallel(recipe.data)
    read: dict[str, Any] = {"sources": (parallel if pairs else sources).fingerprint(recipe.data)}
    read |= {} if recipe.data.header is None else {"header": recipe.data.header}
    made_from = json.dumps({**how, **read}, indent=1)
    note = folder / MADE_FROM
    if folder.exists():
        if note.is_file() and (resume or note.read_bytes() == made_from.encode()):
            return
        if not note.is_file() and any(folder.iterdir()):
            raise BesagError(
                f"{str(folder)!r} is there already and not of this run: name it in tokenizer.path, or choose another "
                "run.output"
            )
    texts = (parallel if pairs else sources).texts(recipe.data)
    learnt = train_tokenizer(texts, **how)
    note.unlink(missing_ok=True)  # what is half replaced is nobody's
    save_whole(learnt, folder, {MADE_FROM: made_from})


def _batches(
    recipe: Recipe,
    vocabulary: Vocabulary,
    data: Text,
    masking: masks.Masking,
    ranks: Ranks,
    *,
    unpadded: bool,
    static: bool,
) -> tuple[BatchDataset | StreamBatches, Clock]:
    schedule, run, copies = recipe.schedule, recipe.run, recipe.masking.copies
    clock = Clock(schedule.steps, schedule.tokens, run.accumulate, ranks.world, ramp=schedule.ramp)
    if data.pairs is not None and recipe.data.pairs == "in-place":
        return in_place.batches(data.pairs, recipe.data, vocabulary, masking, clock, seed=run.seed), clock
    if data.pairs is not None:
        pairs = PairPlan(data.pairs, recipe.data, special=Template(vocabulary).size, seed=run.seed)
        return PairBatches(pairs, vocabulary, masking, clock, seed=run.seed), clock
    if data.train is None:
        streamed = StreamBatches(
            recipe.data, vocabulary, masking, clock, seed=run.seed, unpadded=unpadded, copies=copies, static=static
        )
        return streamed, clock
    if recipe.data.pairs == "line":
        lines = one_line.batches(
            data.train, recipe.data, vocabulary, masking, clock, seed=run.seed, unpadded=unpadded, static=static,
            plain=recipe.data.plain,
        )  # fmt: skip
        return lines, clock
    if data.contexts is not None:
        joined = context_batches.batches(
            data.contexts, recipe.data, vocabulary, masking, clock, seed=run.seed, unpadded=unpadded, copies=copies,
            static=static,
        )  # fmt: skip
        return joined, clock
    special = Template(vocabulary).size
    plan = BatchPlan(data.train, recipe.data, special=special, seed=run.seed, unpadded=unpadded, copies=copies)
    return BatchDataset(plan, vocabulary, masking, clock, seed=run.seed, static=static), clock


# ---- masks and loss


def _masking(recipe: Recipe, vocabulary: Vocabulary, encoder: Encoder, data: Text, ranks: Ranks) -> masks.Masking:
    said = recipe.masking
    if recipe.model.decoder == "causal":  # every token is asked for, and none is hidden
        nothing = masks.Replacement(encoder.mask_id, mask=1.0, ordinary=np.zeros(0, np.int64))
        return masks.Masking(masks.law("uniform"), masks.rate_named("constant", 1.0), nothing)
    law = masks.law(said.law, **said.options)
    if type(law).prepare is not MaskLaw.prepare:  # a pass over the corpus, made once
        law = ranks.made_once(lambda: law.prepare(data.statistics()))
    replacement = masks.Replacement(
        encoder.mask_id,
        mask=said.mask,
        random=said.random,
        keep=said.keep,
        per=said.per,
        ordinary=masks.ordinary_ids(vocabulary.size, vocabulary.special_ids),
    )
    rate = masks.rate_named(said.rate_law, said.rate, said.end_rate, said.hold)
    return masks.Masking(law, rate, replacement, said.predict)


def _refuse_unmasked(recipe: Recipe, batches: BatchDataset) -> None:
    """Reject a run in which nothing is masked: neither in its first batches, nor at the rates of later steps."""
    looked: list[Parts] = []
    for index in range(LOOK):
        looked.append(batches.parts(index))
        if _masks(batches, looked[-1]):
            return
    later = (one._replace(progress=share) for share in (0.25, 0.5, 0.75, 1.0) for one in looked)
    if not any(_masks(batches, one) for one in later):
        raise nothing_masked(recipe, LOOK, any(bool(one.passages.free.any()) for one in looked))


def _masks(batches: BatchDataset, parts: Parts) -> bool:
    return float(batches.maker.mask(parts).weight.sum()) > 0


def nothing_masked(recipe: Recipe, count: int, can_be: bool) -> BesagError:
    """Return what to raise where `count` batches mask nothing; `can_be`: there are tokens that may be masked."""
    where = f"masking.law = {recipe.masking.law!r} masks no token in the first {counted(count, 'batch')}"
    if not can_be:
        return BesagError(f"{where}: they hold special tokens alone. Give other text, or another tokenizer")
    return BesagError(
        f"{where}, so nothing would be learned: whatever it masks together (a word, a span; a whole protein is one "
        f"word) has more tokens than masking.rate = {recipe.masking.rate:g} allows of a sequence. Use masking.law = "
        "'uniform', which masks single tokens"
    )


def _objective(recipe: Recipe, vocabulary: Vocabulary, encoder: Encoder, data: Text, precision: str) -> Objective:
    kind = OBJECTIVES.find("causal" if recipe.model.decoder == "causal" else recipe.objective.name)
    options = {} if recipe.model.decoder == "causal" else recipe.objective.options
    with networks.seeded(recipe.run.seed + 1):
        objective: Any = kind(encoder, seed=recipe.run.seed, **options)
    if hasattr(objective, "prepare"):
        objective.prepare(data.statistics())
    if hasattr(objective, "meet"):
        objective.meet(vocabulary)
    if isinstance(encoder, Translator):
        from besag.training.objectives.translation import Translation

        special = Template(vocabulary).size
        objective = Translation(objective, special=special, weight=recipe.objective.length)
    if recipe.data.context == "pairs" and len(recipe.data.partners) > 1 and recipe.objective.relation:
        from besag.training.objectives.relation import RelationMixture

        objective = RelationMixture(objective, weight=recipe.objective.relation, seed=recipe.run.seed)
    if recipe.adapt.task is not None:
        from besag.training.objectives.task import Examples, TaskMixture

        objective = TaskMixture(
            objective,
            Examples.read(recipe.adapt.task),
            vocabulary,
            weight=recipe.adapt.task_weight,
            max_length=recipe.data.max_length,
            seed=recipe.run.seed,
        )
    if precision == "bfloat16-pure":
        networks.round_weights(objective)
    made: Objective = objective
    return made
