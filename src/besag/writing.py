"""Operations of `LanguageModel` that return text: sampling, constraints, translation, augmentation, editing.

Each hands over to its room, which is entered with the first call. Knows an engine, and nothing else of a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from besag.checks import checked
from besag.engine import Engine

if TYPE_CHECKING:
    from besag.constraints import Constraint, Solutions
    from besag.places.positions import Position
    from besag.samplers import Kernel
    from besag.samplers.chain import Chain
    from besag.samplers.editing.augmented import Augmentation
    from besag.samplers.editing.correct import Corrections
    from besag.samplers.editing.edit import Edited, Inversion
    from besag.samplers.editing.rewrite import Changes
    from besag.samplers.normalising import Normalised
    from besag.samplers.sampling import Watch
    from besag.scores import LengthModel
    from besag.translation.translated import Translations


class Writing:
    """The operations of `LanguageModel` that return text."""

    engine: Engine

    @checked
    def sample(
        self,
        text: str | None = None,
        kernel: str | Kernel = "gibbs",
        *,
        chains: int = 4,
        steps: int | None = None,
        length: int | LengthModel | None = None,
        end: str = "",
        free: Literal["all"] | Sequence[Position] | None = None,
        keep: Sequence[Position] = (),
        outcomes: Literal["text", "all"] = "text",
        constraints: Sequence[Constraint] = (),
        every: int | None = None,
        seed: int = 0,
        record: str | Path | None = None,
        resume: bool = False,
        watch: Watch | None = None,
        **options: Any,
    ) -> Chain:
        """Sample masked positions or whole texts (kernels: `besag methods`).

        Args:
            text: whose masks are drawn; without a text, `length` tokens are written from nothing.
            kernel: "gibbs", "ordered", "mask_predict", "ancestral" …, or a `Kernel`.
            chains: how many texts.
            steps: at most; a decoder otherwise runs to its end, and a chain makes 10 steps for each free place.
            length: tokens of a text from nothing, or a law of them (`length_model`).
            end: closes a text from nothing.
            free: the places of a text without masks that may change: "all", or positions as in `joint`.
            keep: the places that may not.
            outcomes: "text", or "all" to let special tokens be drawn, too.
            constraints: such as look at each place alone; `solve` takes all others.
            every: keep the text of every so many steps.
            seed: of all randomness.
            record: a file that the chains are written to while they run.
            resume: go on with such a run.
            watch: a function that is called after every step.
            options: of the kernel, as `temperature=0.8, top_p=0.9` (`besag methods gibbs`).

        Returns:
            A `Chain`: the texts, what every step did, and what the kernel samples from.

        Examples:
            >>> chain = lm.sample("The [MASK] walked slowly down the [MASK].", "ordered", chains=2, seed=1)
            >>> chain.texts
            ('The Ambassador walked slowly down the corridor.', 'The soldier walked slowly down the hill.')
        """
        from besag.constraints import allowed
        from besag.samplers.sampling import sample

        return sample(
            self.engine, text, kernel, chains=chains, steps=steps, length=length, end=end, free=free, keep=keep,
            outcomes=outcomes, constraints=constraints,
            allow=partial(allowed, constraints=constraints) if constraints else None, every=every, seed=seed,
            record=record, resume=resume, watch=watch, **options,
        )  # fmt: skip

    @checked
    def solve(self, text: str | int, constraints: Sequence[Constraint], **options: Any) -> Solutions:
        """Find texts that satisfy constraints, from a text with masks or a number of tokens.

        Args:
            text: with masks, or a number of tokens.
            constraints: `besag.Word`, `Required`, `Forbidden`, `Pattern`, `Predicate`, `Length`.
            options: `solutions` (1; None for all), `sample` with `seed`, `top_k` (50), `budget` of forward passes
                (1000), `temperature`, `order`.

        Returns:
            `Solutions`: the texts, best first, and whether there can be more.

        Examples:
            >>> lm.solve("The [MASK] [MASK] in the [MASK].", [besag.Required("garden"), besag.Forbidden("was")]).texts
            ('The cat is in the garden.',)
        """
        from besag.constraints import solve

        return solve(self.engine, text, constraints, **options)

    @checked
    def translate(
        self,
        sources: str | Sequence[str],
        kernel: str | Kernel | None = None,
        *,
        passes: int | None = None,
        lengths: int = 1,
        choose: str | None = None,
        nbest: int = 1,
        trace: bool = False,
        seed: int = 0,
        **options: Any,
    ) -> Translations:
        """Translate by iterative refinement or, with a causal model, by beam search.

        Args:
            sources: a text or several.
            kernel: of a masked translator, "mask_predict" if not given; also "refine", "adaptive", "entropy_bound",
                "threshold", "ordered", "gibbs", "remask" … By name it takes the likeliest tokens, unless `pick`,
                `temperature`, `top_k` or `top_p` say otherwise.
            passes: forward passes to decode a target, at most; if not given, as many as the kernel makes. Placing
                terms and predicting repeats again take one more each, a restart at most as many again.
            lengths: how many of the likeliest lengths p(n | source) are tried side by side.
            choose: among all targets of a source: "own" (mean log p of what was predicted), "length" (with log p of
                the length), a method of scoring ("pll", "chain" …), "mbr" (minimum Bayes risk), "judge".
            nbest: how many targets of each source are told.
            trace: keep the way of each target.
            seed: of all randomness.
            options: `length`, tokens of a target where none are predicted; `draws`, targets of each length; `restarts`
                of each, with a share `noise` (0.3) of its places hidden; `judge`, a left-to-right translator that
                chooses; `utility` of "mbr" ("chrf", "bleu"); `early_stop` where a step changes nothing;
                `mend_stutters`, to predict again what repeats the token before; `terms`, for each source words that
                its target must hold; of a left-to-right translator `beam` (5) and `alpha`; and those of the kernel.

        Returns:
            `Translations`: for each source its targets with scores, passes and lengths, best first.

        Examples:
            >>> tables = {"Hund": [[0.4, 0.0], [0.1, 0.1]], "Katze": [[0.0, 0.1], [0.1, 0.2]]}
            >>> lm = besag.load(besag.GivenTable(tables, symbols=["a", "b"]))
            >>> lm.translate(["Hund", "Katze"], length=2).texts
            ['a a', 'b b']
        """
        from besag.translation.translating import translate, wish

        said = {"passes": passes, "lengths": lengths, "choose": choose, "nbest": nbest, "trace": trace, "seed": seed}
        return translate(self.engine, sources, wish(kernel, **said, **options))

    @checked
    def augment(self, texts: str | Sequence[str], **options: Any) -> Augmentation:
        """Generate variants of texts that are at least `similarity` similar to the original.

        Args:
            texts: a text or several.
            options: `copies` (1), `share` of words (0.3), `rounds`, `together`, `keep`, `similarity` (0.9), `measure`,
                `other`, `distinct`, `seed`, and `temperature`, `top_k`, `top_p`.

        Returns:
            An `Augmentation`, one row a copy.

        Examples:
            >>> [row.text for row in lm.augment("The old man walked to the church.", copies=2, keep=["church"], seed=1)]
            ['The old lady walked into the church.', 'The old gentleman walked to his church.']
        """
        from besag.samplers.editing.augment import augment

        return augment(self.engine, texts, **options)

    @checked
    def correct(self, texts: str | Sequence[str], *, margin: float = 0.0) -> Corrections:
        """Correct errors token by token, with a model trained on in-place corrections.

        Args:
            texts: a text or several.
            margin: nats by which another token must be likelier than the one that is written.

        Returns:
            `Corrections`, one row a text: the corrected text, and each token replaced with its log odds.

        Examples:
            >>> lm.correct("The men is here.", margin=100.0).texts  # so sure is no model
            ['The men is here.']
        """
        from besag.samplers.editing.correct import correct

        return correct(self.engine, texts, margin=margin)

    @checked
    def edit(self, text: str, changes: Changes, **options: Any) -> Edited:
        """Replace or mask words of a text and adapt their context, reusing the noise that produces the text.

        What need not change stays. `invert` keeps the noise for several edits.

        Args:
            text: as it is.
            changes: what becomes of what: `{"boy": "girl"}`; None hides. Words, token numbers or spans of characters.
            options: `strength` (0 keeps all of the noise), `keep`, `depth`, `steps`, `temperature`, `seed`.

        Returns:
            An `Edited`: the new text, and what changed.

        Examples:
            >>> lm.edit("The boy lost his keys.", {"boy": "girl"}).text
            'The girl lost her keys.'
        """
        from besag.samplers.editing.edit import edit

        return edit(self.engine, text, changes, **options)

    @checked
    def invert(self, text: str, **options: Any) -> Inversion:
        """Record the noise that produces a text, step by step.

        Args:
            text: as it is.
            options: `keep`, `depth`, `steps`, `temperature`, `seed`.

        Returns:
            An `Inversion`; `inversion.replay(lm.engine, changes)` edits with it.

        Examples:
            >>> inversion = lm.invert("The boy lost his keys.", keep=["boy"])
            >>> inversion.replay(lm.engine, {"boy": "girl"}).text
            'The girl lost her keys.'
        """
        from besag.samplers.editing.edit import invert

        return invert(self.engine, text, **options)

    @checked
    def normalise(self, texts: Sequence[str], within: str | None = None, **options: Any) -> list[Normalised]:
        """Estimate log p of texts under exp(−energy) by annealed importance sampling, with an interval.

        Args:
            texts: whole texts, without masks.
            within: a template with masks: normalise among its fillings. If not given, among all token sequences of the
                length.
            options: `energy` ("norm", "raw"), `energy_temperature`, `chains` (64), `levels` (50), `moves`, `seed`,
                `confidence`.

        Returns:
            A list with a `Normalised` for each text.

        Examples:
            >>> texts = ["She drank tea.", "She drank stone."]
            >>> one, other = lm.normalise(texts, "She drank [MASK].", chains=4, levels=5)
            >>> one.log_prob > other.log_prob
            True
        """
        from besag.samplers.normalising import normalise

        return normalise(self.engine, texts, within, **options)
