"""What a request will take, told before anything is read: about how many tokens run through the network.

A token is taken for three letters. That is too many for most texts, and good enough to say no: the queue is bounded by
what is estimated here, one text or many alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from besag.fills.fill import WIDTH
from besag.joints.block_asking import FEWEST_CANDIDATES, MOST_SEQUENCES, TOKENS
from besag.joints.candidates import MODEST, SECONDS
from besag.places.reading import MASK
from besag.samplers.kernels.block_gibbs import BlockGibbs
from besag.samplers.kernels.tempering import Tempering
from besag.scores.ag_chain import AgChain
from besag.scores.chain import Chain
from besag.scores.elbo import MOST_ENUMERATED, AnyOrderBound

LETTERS = 3
BEYOND = 10**9  # of anything: no queue has room for that, and a number of any size could not be told
UNSAID = 2**18  # tokens: what says nothing of candidates is not refused for them


class Sight(NamedTuple):
    """What is before the network at a time: so many tokens of a text at most, and those of a source beside them."""

    most: int | None = None
    source: int = 0
    mask: str | None = None  # as the model writes it
    width: int = 2**15  # tokens that may stand at a place
    device: str = "cpu"

    def tokens(self, length: int) -> int:
        """Of a sequence out of a text of so many."""
        return (length if self.most is None else min(length, self.most)) + self.source

    def masks(self, text: str) -> int:
        return sum(text.count(mask) for mask in {MASK, self.mask or MASK})


WHOLE = Sight()


def tokens(text: str) -> int:
    return 2 + -(-len(text) // LETTERS)


def scores(texts: Iterable[int], method: str, options: Mapping[str, object], sight: Sight = WHOLE) -> int:
    """Of texts of so many tokens each."""
    if method in ("unmasked", "maskless", "causal"):
        return sum(length + sight.source for length in texts)
    return sum(_passes(method, options, length) * sight.tokens(length) for length in texts)


def _passes(method: str, options: Mapping[str, object], length: int) -> int:
    match method:
        case "elbo":
            every = options.get("samples") == "all"
            return 2 ** min(length, MOST_ENUMERATED) if every else _number(AnyOrderBound, "samples", options)
        case "chain":
            return length * _number(Chain, "orders", options)
        case "ag_chain":
            return length * (1 + _number(AgChain, "candidates", options))
        case _:
            return length


def _number(kind: object, name: str, options: Mapping[str, object]) -> int:
    """An option of a method, or what it is where nobody says it."""
    usual: int = getattr(kind, name)
    value = options.get(name, usual)
    return min(value, BEYOND) if isinstance(value, int) and value > 0 else usual


def joint(text: str, places: int | None, candidates: object, sight: Sight = WHOLE) -> int:
    """Of some places; None: of its masks."""
    count = sight.masks(text) if places is None else places
    length = sight.tokens(tokens(text))
    if candidates != "auto":
        return length * _contexts(count, min(candidates, sight.width) if isinstance(candidates, int) else sight.width)
    if count > 2:
        return max(TOKENS[sight.device], length * _contexts(count, FEWEST_CANDIDATES))
    whole = sight.device == "cuda" or 2 * sight.width * length <= SECONDS
    return min(UNSAID, length * _contexts(count, sight.width if whole else MODEST))


def _contexts(places: int, each: int) -> int:
    """What a joint shows of all other places, for each of them; 1 where there are none, or too many to be asked."""
    found = places * each ** (places - 1) if places > 1 else 1
    return found if found <= MOST_SEQUENCES else 1


def fill(text: str, candidates: object, beam: int | None, sight: Sight = WHOLE) -> int:
    """Of its masks: compared all together, or searched by a beam, two at a time."""
    compared, masks = joint(text, None, candidates, sight), sight.masks(text)
    if masks < 2 or (beam is None and (masks == 2 or candidates != "auto")):
        return compared
    box = candidates if isinstance(candidates, int) else AgChain.candidates
    searched = sight.tokens(tokens(text)) * masks * (beam or WIDTH) * (1 + box)
    return max(compared, searched) if beam is None else searched


def dependence(text: str, candidates: int, distance: int | None, sight: Sight = WHOLE) -> int:
    length = tokens(text)
    return sight.tokens(length) * length * candidates * min(length, 2 * distance if distance else length)


def sample(
    text: str | None,
    length: int | None,
    chains: int,
    steps: int | None,
    sight: Sight = WHOLE,
    kernel: str = "gibbs",
    options: Mapping[str, object] = MappingProxyType({}),
) -> int:
    size = tokens(text) if text is not None else 2 + (length or 1)
    free = max(1, sight.masks(text) if text is not None else (length or 1))
    return sight.tokens(size) * chains * (steps or 10 * free) * _of_a_step(kernel, options, free)


def _of_a_step(kernel: str, options: Mapping[str, object], free: int) -> int:
    """Passes of one chain that moves so many places."""
    match kernel:
        case "metropolis":
            return free + 1
        case "tempering":
            return (free + 1) * _number(Tempering, "rungs", options)
        case "block_gibbs" if options.get("inner") == "ag":
            return 1 + 2 * _number(BlockGibbs, "candidates", options)
        case "block_gibbs":
            return _number(BlockGibbs, "size", options)
        case _:
            return 1


def translation(sources: Iterable[str], tried: int, passes: int | None, sight: Sight = WHOLE) -> int:
    """Of so many targets of each source, as long as it is, and read as often as they have tokens if nobody says."""
    lengths = [sight.tokens(tokens(source)) for source in sources]
    return sum(length + tried * length * (passes or length) for length in lengths)
