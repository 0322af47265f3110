"""Estimate the tokens that a request runs through the network, before anything is encoded.

A token is taken for three letters, which is too many for most texts and good enough to reject. How many passes a score,
a construction or a kernel makes is computed by the entry itself, from its options (`cost`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from besag.fills.fill import MOST_BOXED, WIDTH
from besag.joints.block_asking import FEWEST_CANDIDATES, MOST_SEQUENCES, TOKENS
from besag.joints.candidates import MODEST, SECONDS
from besag.joints.registry import Construction
from besag.places.reading import MASK
from besag.samplers.kernel import Kernel
from besag.scores.ag_chain import LARGEST_BOX, AgChain
from besag.scores.registry import ENDS, Method
from besag.translation.translating import Wish
from besag.translation.translating import cost as cost_of_target

LETTERS = 3
UNSAID = 2**18  # tokens: what says nothing of candidates is not refused for them


class Sight(NamedTuple):
    """What is before the network at a time: so many tokens of a text at most, and those of a source beside them."""

    most: int | None = None
    source: int = 0
    mask: str | None = None  # as the model writes it
    width: int = 2**15  # tokens that may stand at a place
    device: str = "cpu"
    causal: bool = False  # does it see the left side only?

    def tokens(self, length: int) -> int:
        """Of a sequence out of a text of so many."""
        return (length if self.most is None else min(length, self.most)) + self.source

    def masks(self, text: str) -> int:
        return sum(text.count(mask) for mask in {MASK, self.mask or MASK})


WHOLE = Sight()


def tokens(text: str) -> int:
    return 2 + -(-len(text) // LETTERS)


def scores(texts: Iterable[int], method: Method, sight: Sight = WHOLE) -> int:
    """Of texts of so many tokens each."""
    return sum(method.cost(length, sight.tokens(length)) for length in texts)


def joint(text: str, places: int | None, candidates: object, construction: Construction, sight: Sight = WHOLE) -> int:
    """Of some places; None: of its masks."""
    count = sight.masks(text) if places is None else places
    length = sight.tokens(tokens(text))
    if candidates != "auto":
        most = min(candidates, sight.width) if isinstance(candidates, int) else sight.width
        return _unless_rejected(construction.cost(count, length, most, sight.width), length)
    if count > 2:
        fewest = construction.cost(count, length, FEWEST_CANDIDATES, sight.width)
        return max(TOKENS[sight.device], _unless_rejected(fewest, length))
    whole = sight.device == "cuda" or 2 * sight.width * length <= SECONDS
    return min(UNSAID, construction.cost(count, length, sight.width if whole else MODEST, sight.width))


def _unless_rejected(cost: int, length: int) -> int:
    """A joint over more sequences than are taken on is rejected once its candidates are known, after one pass."""
    return cost if cost <= (MOST_SEQUENCES + 1) * length else length


def fill(
    text: str, k: int, candidates: object, beam: int | None, construction: Construction, sight: Sight = WHOLE
) -> int:
    """Of its masks: compared all together, or searched by a beam, two at a time."""
    compared, masks = joint(text, None, candidates, construction, sight), sight.masks(text)
    if masks < 2 or (beam is None and (masks == 2 or candidates != "auto")):
        return compared
    box = min(candidates, MOST_BOXED) if isinstance(candidates, int) else AgChain.candidates
    searched = max(beam or WIDTH, k) * AgChain(min(box, LARGEST_BOX)).cost(masks, sight.tokens(tokens(text)))
    return max(compared, searched) if beam is None else searched


def dependence(
    text: str, candidates: int, distance: int | None, construction: Construction, sight: Sight = WHOLE
) -> int:
    """Of a joint of every two tokens, at most so far apart."""
    length = tokens(text)
    pairs = sum(min(distance or place, place) for place in range(length))
    return pairs * construction.cost(2, sight.tokens(length), candidates, sight.width)


def sample(
    text: str | None,
    length: int | None,
    chains: int,
    steps: int | None,
    kernel: Kernel,
    sight: Sight = WHOLE,
) -> int:
    """Of chains on the masks of a text, or on so many places."""
    free = max(1, sight.masks(text) if text is not None else (length or 1))
    size = max(tokens(text) if text is not None else 0, free + ENDS)
    seen = size if kernel.long or sight.most is None else max(free, min(size, sight.most))
    return chains * kernel.cost(free, seen, steps, sight.source)


def translation(sources: Iterable[str], wish: Wish, sight: Sight = WHOLE) -> int:
    """Of the targets of each source, each as long as the source where no length is given."""
    return sum(
        cost_of_target(wish, length, wish.length or length, sight.causal)
        for length in (sight.tokens(tokens(one)) for one in sources)
    )
