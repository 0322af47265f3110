"""The door: a masked (or causal, or exact) model that scores texts, fills places jointly and says how they depend."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, overload

import torch

from besag import models
from besag.conditionals.contract import Conditionals
from besag.constraints import Constraint, Solutions, allowed, solve
from besag.diagnostics.dependence import DependenceMap, dependence
from besag.diagnostics.rectangle import Rectangles, rectangles
from besag.engine import Engine, Idle
from besag.fills.fill import Fill, fill
from besag.joints.block import BlockJoint
from besag.joints.candidates import Candidates
from besag.joints.joint import joint
from besag.joints.pair import PairJoint
from besag.places.places import Position, find
from besag.samplers import Kernel
from besag.samplers.chain import Chain
from besag.samplers.editing.augment import augment
from besag.samplers.editing.augmented import Augmentation
from besag.samplers.editing.edit import Edited, Inversion, edit, invert
from besag.samplers.editing.rewrite import Changes, Spot
from besag.samplers.normalising import Normalised, normalise
from besag.samplers.sampling import Watch, sample
from besag.scores import LengthModel, Method, Score
from besag.scores.choice import Choice, choose
from besag.scores.fitting import length_model
from besag.scores.marginals import Marginals
from besag.scores.marginals_asking import marginals
from besag.scores.scoring import score
from besag.study.report import Report
from besag.vocabulary import Context, WordPolicy


def load(
    model: str | Path | tuple[Any, Any] | Conditionals | None = None,
    *,
    tokenizer: Any = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    revision: str | None = None,
    allow_pickle: bool = False,
    compile: bool = False,
    untilt: bool = False,
    batch_tokens: int | None = None,
    progress: bool | None = None,
    name: str | None = None,
) -> LanguageModel:
    """A language model from the embedded model (None), a folder, a hub name, (model, tokenizer) or an exact law.

    `compile` spends some ten seconds on CUDA and then runs large batches faster, those of ModernBERT twice as fast.
    `untilt` takes out what a law of masks that looks at tokens put into the answers (see `besag.conditionals.tilt`).
    `batch_tokens` fixes how many tokens run at a time (otherwise found); `progress` shows a bar on stderr (None: only
    on a terminal, for work of over a second).
    """
    if isinstance(model, Conditionals):
        conditionals = model
    else:
        if model is None or model == models.EMBEDDED:
            model, name = models.path(), name or models.EMBEDDED
        from besag.conditionals.loading import load_conditionals  # brings transformers, which exact laws do without

        conditionals = load_conditionals(
            model,
            tokenizer=tokenizer,
            device=device,
            dtype=dtype,
            revision=revision,
            allow_pickle=allow_pickle,
            name=name,
        )
        if compile and conditionals.device.type == "cuda":
            conditionals.compile()
        elif compile:
            warnings.warn(f"compile=True is for CUDA, and this is {conditionals.device}: not compiled", stacklevel=2)
    if untilt:
        from besag.conditionals.tilt import untilted

        conditionals = untilted(conditionals, model, revision)
    return LanguageModel(conditionals, batch_tokens=batch_tokens, progress=progress)


class LanguageModel:
    """Everything one model can be asked. `model` and `tokenizer` are the ones it was built from."""

    def __init__(
        self, conditionals: Conditionals, *, batch_tokens: int | None = None, progress: bool | None = None
    ) -> None:
        self.conditionals = conditionals
        self.engine = Engine(conditionals, batch_tokens=batch_tokens, progress=progress)
        self.vocabulary = conditionals.vocabulary
        self.name = conditionals.name
        self.model = getattr(conditionals, "model", None)
        self.tokenizer = self.vocabulary.tokenizer

    def __repr__(self) -> str:
        return f"LanguageModel({self.name!r}, {self.conditionals.device}, {self.dtype}, V={self.conditionals.width:,})"

    @property
    def dtype(self) -> str:
        return str(self.conditionals.dtype).removeprefix("torch.")

    @overload
    def score(self, texts: str, method: str | Method = ..., **options: Any) -> Score: ...
    @overload
    def score(self, texts: list[str] | tuple[str, ...], method: str | Method = ..., **options: Any) -> list[Score]: ...
    @overload
    def score(self, texts: Iterable[str | Idle], method: str | Method = ..., **options: Any) -> Iterator[Score]: ...

    def score(
        self,
        texts: str | Iterable[str | Idle],
        method: str | Method = "pll",
        *,
        words: WordPolicy = "tokenizer",
        prefix: Context = "",
        suffix: Context = "",
        separator: str = " ",
        base: str | float = "e",
        rank: bool = False,
        entropy: bool = False,
        lengths: LengthModel | None = None,
        strict: bool = False,
        **options: Any,
    ) -> Score | list[Score] | Iterator[Score]:
        """Score a text (one `Score`), a list (a list), or any other iterable (an iterator that streams, in order).

        `prefix` and `suffix` are shown but not scored: the score is then conditional on them (one for all texts, or a
        list with one for each). `lengths` adds log p(n)
        to a method that is normalised at a fixed length, so that texts of different lengths compare as probabilities.
        A text that cannot be scored has a `status` that says why and no total; `strict=True` raises instead.
        Further options belong to the method, for example `order="random", seed=1` for `chain`.
        """
        return score(
            self.engine, texts, method, words=words, prefix=prefix, suffix=suffix, separator=separator, base=base,
            rank=rank, entropy=entropy, lengths=lengths, strict=strict, **options,
        )  # fmt: skip

    def length_model(self, texts: Iterable[str]) -> LengthModel:
        """p(n), the law of how many tokens a text has, fitted to these texts."""
        return length_model(self.conditionals, texts)

    def choose(
        self,
        text: str,
        options: Sequence[str],
        method: str | Method | None = None,
        *,
        of: Literal["sentence", "option"] = "sentence",
        reduction: Literal["sum", "mean"] = "sum",
        **scoring: Any,
    ) -> Choice:
        """Which option fits the slot of the text best? The slot is the mask token, "[MASK]" or "{}".

        `of="sentence"` compares scores of the whole filled text (by `word_l2r` unless told otherwise), `of="option"` of
        the option alone given the rest (by `chain`: in a pseudo-log-likelihood the words of a long option vouch for
        each other).
        """
        return choose(self.engine, text, options, method, of=of, reduction=reduction, **scoring)

    @overload
    def marginals(self, texts: str, candidates: Sequence[str | int] | None = ..., **options: Any) -> Marginals: ...
    @overload
    def marginals(
        self, texts: list[str] | tuple[str, ...], candidates: Sequence[str | int] | None = ..., **options: Any
    ) -> list[Marginals]: ...
    @overload
    def marginals(
        self, texts: Iterable[str | Idle], candidates: Sequence[str | int] | None = ..., **options: Any
    ) -> Iterator[Marginals]: ...

    def marginals(
        self,
        texts: str | Iterable[str | Idle],
        candidates: Sequence[str | int] | None = None,
        positions: Sequence[Position] | None = None,
        *,
        outcomes: Literal["text", "all"] = "all",
        prefix: str = "",
        suffix: str = "",
        separator: str = " ",
        base: str | float = "e",
    ) -> Marginals | list[Marginals] | Iterator[Marginals]:
        """What may stand at each place of a text given all the others: a table of log p(x_i = v | the rest).

        Each place is hidden alone, as by `pll`, and its whole row is kept: (n, V), or (n, k) over `candidates`, words
        of one token or token ids. Numbers are those of the full softmax either way; `renormalised()` gives the law over
        the columns alone. `positions` names some places of one text, as in `joint`; `outcomes="text"` leaves out the
        columns of special tokens; `prefix` and `suffix` are shown and not asked.

        Returns one `Marginals` for a text, a list for a list, an iterator that streams for any other iterable.

        Example:
            found = lm.marginals("The dog ran into the house.", candidates=["dog", "cat"])
            found.effect("dog", 2, "cat")  # log p(cat) − log p(dog) at token 2
        """
        return marginals(
            self.engine, texts, candidates, positions, outcomes=outcomes, prefix=prefix, suffix=suffix,
            separator=separator, base=base,
        )  # fmt: skip

    # ---- several places at once

    def joint(
        self,
        text: str,
        positions: Sequence[Position] | None = None,
        method: str = "ag",
        *,
        outcomes: Literal["text", "all"] = "text",
        candidates: Candidates | Literal["auto"] = "auto",
        gold: Sequence[str] | None = None,
        **options: Any,
    ) -> PairJoint | BlockJoint:
        """The law of the tokens at two places of a text (a `PairJoint`), or at three and more (a `BlockJoint`).

        Places are the masks of the text, or `positions`: token numbers (special tokens counted), words, or spans of
        characters. Where the text has tokens of its own there, or `gold` names them, the joint can be measured on them.
        `method` is a construction (`besag methods`), with its options; three and more places know "ag" only.
        `candidates` is how many of the likeliest tokens may stand at a place, "all", or a list of words for each place;
        "auto" takes all where that is cheap (on CUDA, or a small vocabulary), else the 200 likeliest. `outcomes="all"`
        lets special tokens stand there, too.
        """
        places = find(self.vocabulary, text, positions, self.conditionals.max_length, gold=gold)
        return joint(self.engine, places, method, outcomes=outcomes, candidates=candidates, **options)

    def fill(self, text: str, k: int = 5, method: str = "ag", **options: Any) -> Fill:
        """The k likeliest fillings of all masks of a text, taken together: not each mask for itself.

        `sample=True` (with a `seed`) draws k fillings from the same joint instead. Options: `candidates` and `outcomes`
        as for `joint`, `beam` (how many partial fillings a search keeps), and those of the construction. The result
        says whether it is exact, and over what.
        """
        return fill(self.engine, text, k, method=method, **options)

    # ---- writing

    def sample(
        self,
        text: str | None = None,
        kernel: str | Kernel = "gibbs",
        *,
        chains: int = 4,
        steps: int | None = None,
        length: int | LengthModel | None = None,
        end: str = "",
        free: Literal["all"] | Sequence[Spot] | None = None,
        keep: Sequence[Spot] = (),
        outcomes: Literal["text", "all"] = "text",
        constraints: Sequence[Constraint] = (),
        every: int | None = None,
        seed: int = 0,
        record: str | Path | None = None,
        resume: bool = False,
        watch: Watch | None = None,
        **options: Any,
    ) -> Chain:
        """Text from the model: the masks of a text are drawn, or `length` tokens from nothing, by one of the kernels.

        A kernel that ends (a decoder) runs to its end unless `steps` are fewer; a chain makes 10 steps for each free
        place unless told otherwise. Without masks, `free` names the places that may change ("all" of them), and `keep`
        those that may not. `length` may be a law of lengths (`lm.length_model`); `end` closes a text from nothing.
        `constraints` are such as look at each place alone (`besag.constraints`); see `solve` for others.
        `every` keeps the text of every so many steps. `record` writes it to a file while the chains run, and `resume`
        goes on with such a run. Further options belong to the kernel, for example `temperature=0.8, top_p=0.9`
        (`besag methods gibbs`).
        """
        return sample(
            self.engine, text, kernel, chains=chains, steps=steps, length=length, end=end, free=free, keep=keep,
            outcomes=outcomes, constraints=constraints,
            allow=partial(allowed, constraints=constraints) if constraints else None, every=every, seed=seed,
            record=record, resume=resume, watch=watch, **options,
        )  # fmt: skip

    def solve(self, text: str | int, constraints: Sequence[Constraint], **options: Any) -> Solutions:
        """Fill the masks of a text, or so many places from nothing, so that all constraints hold; or say that none can.

        Options: `solutions` (1; None for all), `sample` with `seed`, `top_k` (50), `budget` of forward passes (1000),
        `temperature`, `order`.
        """
        return solve(self.engine, text, constraints, **options)

    def augment(self, texts: str | Sequence[str], **options: Any) -> Augmentation:
        """Copies of texts in which some words are others, as similar to the original as `similarity` asks for.

        Options: `copies`, `share` of words, `rounds`, `together`, `keep`, `similarity`, `measure`, `other`, `seed`, and
        `temperature`, `top_k`, `top_p`.
        """
        return augment(self.engine, texts, **options)

    def edit(self, text: str, changes: Changes, **options: Any) -> Edited:
        """Replace words of a text, or hide them (None), and let the rest follow with the noise of the text itself.

        What need not change stays. Options: `strength` (0 keeps all of the noise), `keep`, `depth`, `steps`,
        `temperature`, `seed`. `lm.invert` keeps the noise for several edits.
        """
        return edit(self.engine, text, changes, **options)

    def invert(self, text: str, **options: Any) -> Inversion:
        """The noise that makes a text, step by step: `inversion.replay(lm.engine, changes)` edits with it."""
        return invert(self.engine, text, **options)

    def normalise(self, texts: Sequence[str], within: str | None = None, **options: Any) -> list[Normalised]:
        """log p of texts under exp(−energy), normalised by annealed importance sampling, with an interval.

        Among all token sequences of the text's length, or among the fillings of a template (`within`). Options:
        `energy` ("norm", "raw"), `energy_temperature`, `chains` (64), `levels` (50), `moves`, `seed`, `confidence`.
        """
        return normalise(self.engine, texts, within, **options)

    # ---- how it fits together

    def dependence(self, text: str, **options: Any) -> DependenceMap:
        """The mutual information between every two tokens of a text, given the rest.

        Options: `candidates` (20), `max_distance`, `method` and its options, `outcomes`.
        """
        return dependence(self.engine, text, **options)

    def rectangles(self, text: str, positions: Sequence[Position] | None = None, **options: Any) -> Rectangles:
        """Are the model's conditionals those of any joint? The odds-ratio test on `minors` (100) random 2×2 tables."""
        return rectangles(self.engine, text, positions, **options)

    def pairs(self, texts: Iterable[str], **options: Any) -> Report:
        """Every construction and every metric on pairs of places sampled from texts (`besag pairs` can be resumed).

        Options: `pairs` ("random", "contiguous", "distance"), `distances`, `per_text`, `seed`, `candidates`,
        `outcomes`.
        """
        return Report.of(self.engine, texts, **options)
