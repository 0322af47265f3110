"""Operations of `LanguageModel` on several positions or texts: joints, infilling, dependence, matching.

Each hands over to its room, which is entered with the first call. Knows an engine and the conditionals it asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from besag.checks import checked
from besag.conditionals.contract import Conditionals
from besag.engine import Engine

if TYPE_CHECKING:
    from besag.diagnostics.dependence import DependenceMap
    from besag.diagnostics.rectangle import Rectangles
    from besag.explanation.explanation import Explanation
    from besag.explanation.prediction import Labelling
    from besag.fills.fill import Fill
    from besag.joints.block import BlockJoint
    from besag.joints.candidates import Candidates
    from besag.joints.pair import PairJoint
    from besag.matching.matching import Matching
    from besag.places.positions import Position
    from besag.study.report import Report


class Relating:
    """The operations of `LanguageModel` on several positions or texts."""

    engine: Engine
    conditionals: Conditionals

    @checked
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
        """Compute the joint distribution of the tokens at two or more positions of a text.

        Args:
            text: with masks, or with tokens of its own.
            positions: the places, where they are not the masks: token numbers (special tokens counted), words, or spans
                of characters.
            method: a construction ("ag", "mlm", "order", "mrf", "mrf_local", "hcb", "loglinear", "stationary"); more
                than two places know "ag" and "loglinear".
            outcomes: "text", or "all" to let special tokens stand there, too.
            candidates: how many of the likeliest tokens may stand at a place, "all", or a list of words (or token ids)
                for each place. "auto" takes all where that is cheap, else the likeliest few hundred.
            gold: the tokens to measure the joint on, where the text has none of its own.
            options: of the construction.

        Returns:
            A `PairJoint` for two places, a `BlockJoint` for more.

        Examples:
            >>> joint = lm.joint("She was born in the United [MASK] of [MASK].", candidates=30)
            >>> [(pair.a.lstrip("▁"), pair.b.lstrip("▁"), round(pair.prob, 2)) for pair in joint.top(1)]
            [('States', 'America', 0.91)]
        """
        from besag.joints.joint import joint
        from besag.places.places import find

        places = find(self.conditionals.vocabulary, text, positions, self.conditionals.max_length, gold=gold)
        return joint(self.engine, places, method, outcomes=outcomes, candidates=candidates, **options)

    @checked
    def fill(self, text: str, k: int = 5, method: str = "ag", **options: Any) -> Fill:
        """Infill all masks of a text jointly: the k most probable results.

        Args:
            text: with one mask or more.
            k: how many fillings.
            method: a construction of joints, as in `joint`.
            options: `candidates` and `outcomes` as in `joint`; `beam`, how many partial fillings a search keeps;
                `sample=True` with a `seed`, to draw k fillings from the same joint instead; and those of the
                construction.

        Returns:
            A `Fill`, which says whether it is exact, and over what.

        Examples:
            >>> for filling in lm.fill("The [MASK] [MASK] very tired.", k=2, candidates=30):
            ...     print(f"{filling.prob:.2f} {filling.text}")
            0.06 The children were very tired.
            0.05 The boy looked very tired.
        """
        from besag.fills.fill import fill

        return fill(self.engine, text, k, method=method, **options)

    @checked
    def dependence(self, text: str, **options: Any) -> DependenceMap:
        """Map the dependence between tokens: mutual information of every two, given the rest.

        Args:
            text: without masks.
            options: `candidates` a place (20), `max_distance` in tokens, `positions` (two or more, where not all
                places are meant), `method` with its options, `outcomes`.

        Returns:
            A `DependenceMap`.

        Examples:
            >>> found = lm.dependence("The keys are here.", candidates=5, max_distance=1)
            >>> found.matrix.shape
            (6, 6)
        """
        from besag.diagnostics.dependence import dependence

        return dependence(self.engine, text, **options)

    @checked
    def rectangles(self, text: str, positions: Sequence[Position] | None = None, **options: Any) -> Rectangles:
        """Test whether the model's conditionals are compatible, by odds ratios of random 2 × 2 tables.

        Args:
            text: with two masks, or without.
            positions: two places, as in `joint`; if not given, the two masks, or every two neighbours.
            options: `minors`, how many tables are drawn (100), `seed`, `outcomes`.

        Returns:
            `Rectangles`: how far the odds ratios of the two conditionals are apart.

        Examples:
            >>> table = besag.load(besag.Table.random(3, 2))
            >>> table.rectangles("s0 s1", minors=10).mean < 1e-9  # an exact law is compatible
            True
        """
        from besag.diagnostics.rectangle import rectangles

        return rectangles(self.engine, text, positions, **options)

    @checked
    def explain(
        self,
        text: str,
        target: str | Sequence[str] | None = None,
        *,
        positions: Sequence[Position] | None = None,
        classifier: Labelling | None = None,
        label: str | None = None,
        method: str = "marginalise",
        curve: bool = False,
        orders: int = 20,
        seed: int = 0,
        **options: Any,
    ) -> Explanation:
        """Attribute a prediction to input tokens: that of a mask, a label, or the score of the text.

        Args:
            text: with a mask, whose filling is explained; or without, whose score is, or the place that is named.
            target: what fills the masks, a word of one token for each; if not given, the likeliest.
            positions: the places explained, where they are not the masks, as in `joint`.
            classifier: explains the label of the text instead (`besag.load_head`).
            label: which; if not given, the one that the classifier gives.
            method: "marginalise" (what else could stand there), "mask" or "delete" (leave one out).
            curve: also measure faithfulness: does the prediction fall when what is important is hidden first?
            orders: random orders that the curve is compared with.
            seed: of the random orders.
            options: of the method, as `candidates=50` of "marginalise".

        Returns:
            An `Explanation`: a number for each token, in log-odds, or in nats of a score.

        Examples:
            >>> found = lm.explain("The capital of France is [MASK].", "Paris", candidates=5)
            >>> sorted(one.text for one in found.top(2))
            ['France', 'capital']
        """
        from besag.explanation.explaining import explain

        return explain(
            self.engine, text, target, positions=positions, classifier=classifier, label=label, method=method,
            curve=curve, orders=orders, seed=seed, **options,
        )  # fmt: skip

    @checked
    def match(
        self,
        first: Sequence[str],
        second: Sequence[str],
        groups: Sequence[str] | None = None,
        *,
        separator: str = " ",
        method: str = "pll",
        temperature: float = 1.0,
        seed: int = 0,
        **options: Any,
    ) -> Matching:
        """Match the sequences of two lists by the masked-LM loss of each pair.

        Args:
            first: sequences.
            second: as many others, in any order.
            groups: of each place of both lists, its group (a species): partners are sought within it.
            separator: what stands between two partners.
            method: of scoring the two as one.
            temperature: of the soft permutation, from which the probabilities of pairs come.
            seed: by which permutations of one energy are told apart.
            options: of the method.

        Returns:
            A `Matching`: the pairs whose energies sum to the least, and how sure each is.

        Examples:
            >>> alike = besag.load(besag.Table([[0.4, 0.1], [0.1, 0.4]], symbols=["h", "t"]))
            >>> alike.match(["h", "t"], ["t", "h"]).partner
            (1, 0)
        """
        from besag.matching.matching import match

        return match(
            self.engine, first, second, groups, separator=separator, method=method, temperature=temperature, seed=seed,
            **options,
        )  # fmt: skip

    @checked
    def pairs(self, texts: Iterable[str], **options: Any) -> Report:
        """Benchmark joint constructions on token pairs sampled from texts (`besag pairs` can be resumed).

        Args:
            texts: any iterable.
            options: `pairs` ("random", "contiguous", "distance"), `distances`, `per_text`, `seed`, `candidates`,
                `outcomes`.

        Returns:
            A `Report`: means and perplexities by construction, with intervals.

        Examples:
            >>> report = lm.pairs(["The keys to the cabinet are here."], pairs="contiguous", per_text=1, candidates=10)
            >>> len(report.rows)
            1
        """
        from besag.study.report import Report

        return Report.of(self.engine, texts, **options)
