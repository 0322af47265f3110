"""`LanguageModel` and its scoring methods; the others are in `relating.py` and `writing.py`."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from besag.checks import checked
from besag.conditionals.contract import Conditionals
from besag.engine import Engine, Idle
from besag.errors import quoted
from besag.relating import Relating
from besag.results.words import dtype_name
from besag.scores import LengthModel, Method, Score
from besag.scores.choice import Choice, choose
from besag.scores.fitting import length_model
from besag.scores.scoring import score
from besag.sources import read_source
from besag.writing import Writing

if TYPE_CHECKING:  # a room is entered with the first verb that needs it: scoring must not wait for samplers
    from besag.places.positions import Position
    from besag.scores.beside import Contexts
    from besag.scores.marginals import Marginals
    from besag.scores.marginals_asking import Named
    from besag.variants.binders import Binders
    from besag.variants.variants import Variants
    from besag.vocabulary import WordPolicy


class LanguageModel(Relating, Writing):
    """A masked, causal or exact model with all operations. `model` and `tokenizer` are those it was built from."""

    @checked
    def __init__(
        self, conditionals: Conditionals, *, batch_tokens: int | None = None, progress: bool | None = None
    ) -> None:
        self.conditionals = conditionals
        self.engine = Engine(conditionals, batch_tokens=batch_tokens, progress=progress)
        self.vocabulary = conditionals.vocabulary
        self.name = conditionals.name
        self.model = getattr(conditionals, "model", None)
        self.tokenizer = self.vocabulary.tokenizer
        self.source: str | None = None  # what everything is given, see `given`

    def __repr__(self) -> str:
        given = "" if self.source is None else f", given {quoted(self.source)}"
        about = f"{self.name!r}, {self.conditionals.device}, {self.dtype}, V={self.conditionals.width:,}"
        return f"LanguageModel({about}{given})"

    @property
    def dtype(self) -> str:
        return dtype_name(self.conditionals.dtype)

    @checked
    def given(self, source: str) -> LanguageModel:
        """Condition the model on a source text: all operations then use p(x_i | visible tokens, source).

        Such a model answers about one text given another, as a translation given what is translated. What it makes of
        the source is computed once and kept, for all that is asked about it.

        Args:
            source: the other text, as the model reads it.

        Returns:
            A `LanguageModel`. A model that takes no source is refused; one that needs a source can be asked nothing
            without one.

        Examples:
            >>> tables = {"Hund": [[0.4, 0.0], [0.1, 0.1]], "Katze": [[0.0, 0.1], [0.1, 0.2]]}
            >>> lm = besag.load(besag.GivenTable(tables, symbols=["a", "b"]))
            >>> round(lm.given("Hund").score("b a", "chain").total, 3)  # log of 0.1 / 0.6
            -1.792
        """
        other = copy.copy(self)
        other.engine, other.source = self.engine.given(read_source(self.conditionals, source)), source
        return other

    @checked
    def adapted(self, adapter: str | Path | None) -> LanguageModel:
        """Switch to another adapter, or to none, in a new `LanguageModel` that shares the base weights.

        Args:
            adapter: the folder of an adapter that was trained beside this model (`adapt.keep`); None takes it off.

        Returns:
            A `LanguageModel`. Both can be asked, one after the other or at once. An adapter of another model, by shape
            or by weights, is refused.

        Examples:
            >>> data = {"train": ["text.txt"], "valid": ["text.txt"], "batch_tokens": 128}
            >>> from pathlib import Path
            >>> _ = Path("text.txt").write_text("Die Katzen schlafen. " * 20)
            >>> adapt = {"method": "bottleneck", "rank": 4}
            >>> recipe = {"data": data, "model": {"start": "small-en"}, "adapt": adapt, "evaluation": {"sentences": 0}}
            >>> result = besag.train(recipe, {"schedule.steps": 2}, output="german", quiet=True)
            >>> german = lm.adapted(result.adapter)
            >>> german.score("Die Katze.").total == lm.score("Die Katze.").total
            False
            >>> german.adapted(None).score("Die Katze.").total == lm.score("Die Katze.").total
            True
        """
        from besag.conditionals.loading import with_adapter

        engine = self.engine
        batch_tokens = engine.batch_tokens if engine.measured else None
        found = with_adapter(self.conditionals, adapter)
        return LanguageModel(found, batch_tokens=batch_tokens, progress=engine.progress)

    @overload
    def score(self, texts: str, method: str | Method = ..., **options: Any) -> Score: ...
    @overload
    def score(self, texts: list[str] | tuple[str, ...], method: str | Method = ..., **options: Any) -> list[Score]: ...
    @overload
    def score(self, texts: Iterable[str | Idle], method: str | Method = ..., **options: Any) -> Iterator[Score]: ...

    @checked
    def score(
        self,
        texts: str | Iterable[str | Idle],
        method: str | Method = "pll",
        *,
        words: WordPolicy = "tokenizer",
        prefix: Contexts = "",
        suffix: Contexts = "",
        separator: str = " ",
        base: str | float = "e",
        rank: bool = False,
        entropy: bool = False,
        lengths: LengthModel | Literal["predicted"] | None = None,
        strict: bool = False,
        sources: Contexts | None = None,
        **options: Any,
    ) -> Score | list[Score] | Iterator[Score]:
        """Score texts by token, word or sentence (methods: `besag methods`).

        Args:
            texts: a text, a list of texts, or any other iterable, which is streamed.
            method: "pll", "word_l2r", "whole_word", "chain", "ag_chain", "elbo", "unmasked", "maskless" or
                "causal".
            words: what a word is: "tokenizer", "whitespace", or spans of characters.
            prefix: shown before the text and not scored, one for all texts or one for each, of a stream as a stream:
                the score is conditional on it. A text whose prefix is None has the status "no context".
            suffix: shown after the text and not scored.
            separator: what stands between a text and its prefix and suffix.
            base: of the logarithm: "e" (nats), 2 (bits) or 10.
            rank: also keep each token's rank among all tokens; 1 is the model's first choice.
            entropy: also keep the entropy at each place.
            lengths: adds log p(n) to a method that is normalised at a fixed length, so that texts of different lengths
                compare as probabilities; "predicted": the log p(n | source) of a translator that predicts lengths.
            strict: raise where a text cannot be scored. Otherwise its `status` says why, and it has no total.
            sources: what each text is given, of a model that answers about texts given sources: one for all, or one for
                each, of a stream as a stream. `given` says it once for all verbs.
            options: of the method, as `order="random", seed=1` of "chain".

        Returns:
            A `Score` for a text, a list of them for a list, and for any other iterable an iterator, in order.

        Examples:
            >>> good, bad = lm.score(["The cat sleeps.", "The cat sleep."], "word_l2r")
            >>> good.total > bad.total
            True
            >>> round(good["sleeps"], 2)  # one word of it
            -6.4
        """
        return score(
            self.engine, texts, method, words=words, prefix=prefix, suffix=suffix, separator=separator, base=base,
            rank=rank, entropy=entropy, lengths=lengths, strict=strict, sources=sources, **options,
        )  # fmt: skip

    @checked
    def length_model(self, texts: Iterable[str]) -> LengthModel:
        """Fit a length distribution p(n), n in tokens, to texts.

        Args:
            texts: of the kind that will be scored.

        Returns:
            A `LengthModel`, for `score(..., lengths=…)` and `sample(length=…)`.

        Examples:
            >>> lengths = lm.length_model(["It rained.", "It rained all night.", "The door was open."])
            >>> round(lm.score("It rained.", "chain", lengths=lengths).extra["length"], 2)  # log p(4 tokens)
            -2.25
        """
        return length_model(self.conditionals, texts)

    @checked
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
        """Rank options for a slot of a text.

        Args:
            text: with one slot: the mask token, "[MASK]" or "{}".
            options: what could stand there, of one token or several.
            method: of scoring; if not given, "word_l2r" for sentences and "chain" for options.
            of: "sentence" compares scores of the whole filled text, "option" of the option alone, given the rest.
                (There a pseudo-log-likelihood would let the words of a long option vouch for each other.)
            reduction: "sum", or "mean" over tokens.
            scoring: further arguments of `score`.

        Returns:
            A `Choice`: the options, best first, with their values and shares.

        Examples:
            >>> choice = lm.choose("She drank a cup of [MASK].", ["coffee", "tea", "hot tea"], of="option")
            >>> choice.best, choice.shares.round(2).tolist()
            ('coffee', [0.56, 0.43, 0.01])
        """
        return choose(self.engine, text, options, method, of=of, reduction=reduction, **scoring)

    @overload
    def marginals(self, texts: str, candidates: Named | None = ..., **options: Any) -> Marginals: ...
    @overload
    def marginals(
        self, texts: list[str] | tuple[str, ...], candidates: Named | None = ..., **options: Any
    ) -> list[Marginals]: ...
    @overload
    def marginals(
        self, texts: Iterable[str | Idle], candidates: Named | None = ..., **options: Any
    ) -> Iterator[Marginals]: ...

    @checked
    def marginals(
        self,
        texts: str | Iterable[str | Idle],
        candidates: Named | None = None,
        positions: Sequence[Position] | None = None,
        **options: Any,
    ) -> Marginals | list[Marginals] | Iterator[Marginals]:
        """Predict each position from all others: a table of log p(x_i = v | x_∖i).

        Each place is hidden alone, as by `pll`, and its whole row is kept. The numbers are those of the full softmax,
        whichever columns are kept; `renormalised()` gives the law over the columns alone.

        Args:
            texts: a text, a list of texts, or any other iterable, which is streamed.
            candidates: words of one token, or token ids, for the columns; if not given, the whole vocabulary.
            positions: some places of one text, as in `joint`; if not given, all.
            options: `outcomes` ("all", or "text" to leave out the columns of special tokens); `prefix`, `suffix` and
                `separator`, context that is shown and not asked; `base` of the logarithm.

        Returns:
            A `Marginals` for a text, a list of them for a list, an iterator for any other iterable.

        Examples:
            >>> found = lm.marginals("The dog ran into the house.", candidates=["dog", "cat"])
            >>> found.log_probs.shape
            (7, 2)
            >>> round(found.effect("dog", 2, "cat"), 2)  # log p(cat) − log p(dog) at token 2
            -0.24
        """
        from besag.scores.marginals_asking import marginals

        return marginals(self.engine, texts, candidates, positions, **options)

    @checked
    def embed(
        self, texts: str | Sequence[str], layer: int | None = None, *, pool: Literal["mean", "first"] = "mean"
    ) -> NDArray[np.float32]:
        """Compute text embeddings: the mean over tokens of the hidden states of a layer.

        Args:
            texts: a text or several.
            layer: 0 is the table of tokens, negative ones count from the end; the last if not given.
            pool: "mean" over the tokens of the text, special ones left out, or the state of the "first" token.

        Returns:
            An array with a row for each text; of one text its vector.

        Examples:
            >>> cat, dog, law = lm.embed(["The cat sleeps.", "The dog sleeps.", "Congress passed the law."])
            >>> bool(cat @ dog / (cat @ cat * (dog @ dog)) ** 0.5 > cat @ law / (cat @ cat * (law @ law)) ** 0.5)
            True
        """
        from besag.embedding.embed import embed

        return embed(self.engine, texts, layer, pool=pool)

    @checked
    def variants(
        self, wild_type: str, mutations: Sequence[str], method: str = "masked_marginals", **options: Any
    ) -> Variants:
        """Score mutations of a protein: log odds of each variant against the wild type.

        Args:
            wild_type: its residues, MKTAYIAK…
            mutations: variants such as "A23G", and "A23G:C45D" for two mutations together.
            method: "masked_marginals" (the mutated places hidden together), "masked_marginals_alone" (each alone),
                "wt_marginals" (one pass, nothing hidden), "pseudo_ppl" (difference of the two PLLs), or a construction
                of joints ("ag", "mrf", "hcb" …), by which two mutations have an epistasis.
            options: `offset`, what is added to a place in the sequence, counted from 1, to give the number of its
                residue; and those of the construction.

        Returns:
            `Variants`: the effects, and the epistasis of double mutants.

        Examples:
            >>> residues = "ACDEFGHIKLMNPQRSTVWY"
            >>> weights = [[1 + (a == b) for a in residues] for b in residues]  # two places that like to be equal
            >>> pair = besag.load(besag.Table(weights, symbols=list(residues)))
            >>> pair.variants("AA", ["A1G", "A1G:A2G"], "ag").effect.round(2).tolist()  # ½, and equal again
            [-0.69, 0.0]
        """
        from besag.variants.variants import variants

        return variants(self.engine, wild_type, mutations, method, **options)

    @checked
    def binders(
        self,
        target: str,
        peptides: Sequence[str] = (),
        *,
        length: int | None = None,
        number: int = 8,
        method: str = "pll",
        kernel: str = "grouped",
        seed: int = 0,
        **options: Any,
    ) -> Binders:
        """Rank and generate peptide binders by pseudo-perplexity given the target protein.

        Args:
            target: its residues, MKTAYIAK…
            peptides: to rank.
            length: of peptides to propose; if not given, none are.
            number: how many of them are drawn; equal ones are told once.
            method: of scoring a peptide with the target shown.
            kernel: that proposes; "grouped" draws all residues at once, each from its three likeliest, unless `size`
                and `top_k` say otherwise.
            seed: of the proposals.
            options: of the kernel.

        Returns:
            `Binders`: the peptides, best first.

        Examples:
            >>> residues = "ACDEFGHIKLMNPQRSTVWY"
            >>> weights = [[1 + 3 * (a == b) for a in residues] for b in residues]  # two places that like to be equal
            >>> pair = besag.load(besag.Table(weights, symbols=list(residues)))
            >>> [(one.peptide, round(one.perplexity, 2)) for one in pair.binders("G", ["A", "G"]).binders]  # 23/4, 23
            [('G', 5.75), ('A', 23.0)]
        """
        from besag.variants.binders import binders

        return binders(
            self.engine, target, peptides, length=length, number=number, method=method, kernel=kernel, seed=seed,
            **options,
        )  # fmt: skip
