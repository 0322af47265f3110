"""From sources to their targets: lengths are predicted, targets written, and the best of them chosen.

A masked translator writes by kernels, several lengths side by side; a left-to-right one by a beam. Sources of one call
are read together, each once, and all targets of one length are written together. Knows which part does what.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields
from typing import Any

from besag.arrays import Floats, Ints
from besag.characters import is_text
from besag.checks import number, whole_number
from besag.conditionals.contract import Conditionals, require_both_sides
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.places.filling import filled
from besag.results.status import Status
from besag.results.words import dtype_name
from besag.samplers import KERNELS, Kernel
from besag.samplers import kernel as kernel_named
from besag.samplers.sheet import blank
from besag.scores import METHODS, method
from besag.scores.registry import ENDS
from besag.scores.source_length import SourceLengths
from besag.sources import require_source, too_long
from besag.translation.choosing import JUDGE, LENGTH, OWN, Choice, Hypothesis
from besag.translation.left_to_right import translate as left_to_right
from besag.translation.refinement import Draft, Refinement, refined
from besag.translation.terms import Term, read_terms
from besag.translation.tracing import Piece, Step
from besag.translation.translated import Translation, Translations
from besag.translation.utility import UTILITIES, UtilityName

USUAL = "mask_predict"
BLOCK = 2048  # sources that are read, and written for, at a time
DRAWS = ("pick", "temperature", "top_k", "top_p")
MOST_TRIED = 1024  # lengths of one source


@dataclass(frozen=True)
class Wish:
    """What was asked for, beside sources; see `LanguageModel.translate`."""

    kernel: str | Kernel | None = None
    passes: int | None = None
    lengths: int = 1
    length: int | None = None
    draws: int = 1
    restarts: int = 0
    noise: float = 0.3
    choose: str | None = None
    judge: Any = None
    utility: UtilityName = "chrf"
    nbest: int = 1
    early_stop: bool = False
    mend_stutters: bool = False
    terms: Sequence[Sequence[str]] | None = None
    beam: int = 5
    alpha: float = 1.0
    trace: bool = False
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least, most in (
            ("lengths", 1, MOST_TRIED), ("draws", 1, 1024), ("restarts", 0, 1024), ("nbest", 1, 2**16),
            ("beam", 1, 2**16),
        ):  # fmt: skip
            whole_number(getattr(self, name), name, least, most=most)
        for name in ("early_stop", "mend_stutters", "trace"):
            if not isinstance(getattr(self, name), bool):
                raise BesagError(f"{name}={quoted(getattr(self, name))}: say True or False")
        if self.utility not in UTILITIES:
            raise BesagError(f"utility={quoted(self.utility)}: one of {', '.join(UTILITIES)}")
        if self.terms is not None and (isinstance(self.terms, str) or any(isinstance(one, str) for one in self.terms)):
            raise BesagError(f"terms={quoted(self.terms)}: give a list of words for each source")
        for name in ("passes", "length"):
            if getattr(self, name) is not None:
                whole_number(getattr(self, name), name, most=2**16)
        number(self.noise, "noise", 0.0, 1.0)
        number(self.alpha, "alpha", 0.0, 100.0)
        if self.length is not None and self.lengths != 1:
            raise BesagError(f"length={self.length} is the one length to write, lengths={self.lengths} how many to try")


def wish(kernel: str | Kernel | None = None, **options: Any) -> Wish:
    """What is said of decoding, and all else as options of the kernel."""
    own = {one.name for one in fields(Wish)} - {"kernel", "options"}
    told = {name: value for name, value in options.items() if name in own}
    return Wish(kernel, **told, options={name: value for name, value in options.items() if name not in own})


def cost(wish: Wish, source: int, target: int, causal: bool = False) -> int:
    """Return about how many tokens the targets of one source run, each of `target` tokens; of a beam where `causal`.

    In addition to the passes of the sampler there is at most one each for the start, the remaining masks, and terms or
    repeats.
    """
    if causal:
        return source + wish.beam * target * (target + 1) // 2
    length = target + ENDS
    if wish.passes is None:
        decoding = kernel_of(wish.kernel or USUAL, wish.options).cost(target, length, source=source)
    else:
        decoding = wish.passes * (length + source)
    each = (1 + wish.restarts) * (decoding + 3 * (length + source))
    if wish.choose is not None and wish.choose in METHODS:
        each += method(wish.choose).cost(target, length + source)
    return source + wish.lengths * wish.draws * each


def translate(engine: Engine, sources: str | Sequence[str], wish: Wish) -> Translations:
    """The targets of sources, each among its own, best first."""
    texts = [sources] if isinstance(sources, str) else list(sources)
    for text in texts:
        if not isinstance(text, str):
            raise BesagError(f"a source is a text, and {quoted(text)} is none")
    require_source(engine.conditionals)
    if engine.source is not None:
        raise BesagError("this model is given a source already: translate with the model itself, lm.translate(source)")
    if wish.terms is not None and len(wish.terms) != len(texts):
        raise BesagError(f"there are {len(texts):,} sources and {len(wish.terms):,} lists of terms: give one for each")
    began = time.perf_counter()
    causal = engine.conditionals.sees == "left"
    rows, how, chosen = _from_the_left(engine, texts, wish) if causal else _refined(engine, texts, wish)
    return Translations(
        tuple(rows), how, chosen, time.perf_counter() - began, wish.seed, engine.conditionals.name,
        dtype_name(engine.conditionals.dtype),
    )  # fmt: skip


# ---- left to right


def _from_the_left(engine: Engine, texts: list[str], wish: Wish) -> tuple[list[Translation], str, str]:
    asked = {"kernel": wish.kernel, "passes": wish.passes, "length": wish.length, "choose": wish.choose,
             "judge": wish.judge, "terms": wish.terms, **wish.options}  # fmt: skip
    wrong = [name for name, value in asked.items() if value is not None]
    wrong += [name for name in ("lengths", "draws") if getattr(wish, name) != 1]
    wrong += [name for name in ("restarts", "mend_stutters", "early_stop", "trace") if getattr(wish, name)]
    if wrong:
        raise BesagError(
            f"{', '.join(wrong)}: {engine.conditionals.name!r} translates from the left, by a beam: say beam= and "
            f"alpha=; the others are for masked translators"
        )
    if wish.nbest > wish.beam:
        raise BesagError(f"nbest={wish.nbest}: a beam of {wish.beam} finds no more than {wish.beam}; take a wider beam")
    status, _ = _readable(engine.conditionals, texts)
    good = [at for at, one in enumerate(status) if one == Status.OK]
    rows = [Translation(text, (), status=one) for text, one in zip(texts, status, strict=True)]
    with closing(engine.bar(len(good), "source")) as bar:
        for start in range(0, len(good), BLOCK):
            some = good[start : start + BLOCK]
            found = left_to_right(
                engine.conditionals, [texts[at] for at in some], beam=wish.beam, alpha=wish.alpha,
                in_turn=engine.in_turn, check=engine.check_wanted,
            )  # fmt: skip
            for at, own in zip(some, found, strict=True):
                best = tuple(
                    Hypothesis(one.text, one.score, len(one.ids), len(one.ids) + 1) for one in own[: wish.nbest]
                )
                spent = max(len(one.ids) + 1 for one in own)  # the beam goes on together until it is over
                rows[at] = Translation(texts[at], best, 1, spent)
            bar.update(len(some))
    how = "greedy, left to right" if wish.beam == 1 else f"beam of {wish.beam}, left to right"
    return rows, how, f"log p(x, end | s) / n^{wish.alpha:g}"


# ---- by kernels


def _refined(engine: Engine, texts: list[str], wish: Wish) -> tuple[list[Translation], str, str]:
    require_both_sides(engine.conditionals, "translation by a kernel")
    if wrong := [
        f"{name}={getattr(wish, name)}" for name in ("beam", "alpha") if getattr(wish, name) != getattr(Wish, name)
    ]:
        raise BesagError(
            f"{', '.join(wrong)}: {engine.conditionals.name!r} writes all places at once, by a kernel; a beam is for "
            f"left-to-right translators"
        )
    _refuse_without_room(engine.conditionals, wish.length)
    kernel = kernel_of(wish.kernel or USUAL, wish.options)
    choice = Choice(wish.choose or (OWN if wish.judge is None else JUDGE), wish.judge, wish.utility)
    plan = Refinement(
        kernel, wish.passes, wish.draws, wish.restarts, wish.noise, wish.early_stop, wish.mend_stutters,
        wish.seed, wish.trace,
    )  # fmt: skip
    lengths = None if wish.length is not None else SourceLengths(engine)
    if lengths is None and choice.by == LENGTH:
        raise BesagError("choose='length' weighs predicted lengths, and length= names the one to write: leave one out")
    status, ids = _readable(engine.conditionals, texts)
    good = [at for at, one in enumerate(status) if one == Status.OK]
    rows = [Translation(text, (), status=one) for text, one in zip(texts, status, strict=True)]
    terms = None if wish.terms is None else [read_terms(engine.conditionals.vocabulary, own) for own in wish.terms]
    writer = _Writer(engine.conditionals)
    with closing(engine.bar(len(good) * wish.lengths, "target")) as bar:
        for start in range(0, len(good), BLOCK):
            some = good[start : start + BLOCK]
            own = None if terms is None else [terms[at] for at in some]
            given = [ids[at] for at in some]
            sizes = _sizes(engine.conditionals, lengths, given, wish, own)
            drafts = refined(engine, given, sizes, plan, own, bar.update, some)
            laws = [lengths.law(one) for one in given] if lengths and choice.by == LENGTH else [None] * len(given)
            hypotheses = [
                [writer.hypothesis(one, law) for one in found] for found, law in zip(drafts, laws, strict=True)
            ]
            ranked = choice.rank(engine, [texts[at] for at in some], hypotheses)
            for at, found, best in zip(some, drafts, ranked, strict=True):
                wanted = () if wish.terms is None else tuple(wish.terms[at])
                rows[at] = writer.row(texts[at], found, best, wanted, wish.nbest)
    passes = "" if wish.passes is None else f", passes={wish.passes}"
    return rows, f"{kernel.label}{passes}", choice.meaning


def _refuse_without_room(conditionals: Conditionals, length: int | None) -> None:
    if length is None or conditionals.max_length is None:
        return
    room = conditionals.max_length - len(blank(conditionals, 1).ids) + 1
    if length > room:
        raise BesagError(f"length={length}: {conditionals.name!r} writes targets of {room} tokens at most")


def kernel_of(kernel: str | Kernel, options: dict[str, Any]) -> Kernel:
    """By name, it takes the likeliest tokens unless something is said of drawing; a made one is taken as it is."""
    if isinstance(kernel, Kernel):
        if options:
            raise BesagError(f"{', '.join(options)}: a kernel that is made already has its options; give its name")
        return kernel
    names = {one.name for one in fields(KERNELS.find(kernel))}
    given = dict(options)
    if not any(name in given for name in DRAWS):
        if "pick" in names:
            given["pick"] = "argmax"
        elif "top_k" in names:
            given["top_k"] = 1
    if KERNELS.find(kernel).name == "refine":
        given.setdefault("start", "mask")
    return kernel_named(kernel, **given)


def _readable(conditionals: Conditionals, texts: Sequence[str]) -> tuple[list[Status], list[Ints]]:
    """Can each be translated; and its token ids, none where it cannot."""
    source = require_source(conditionals)
    status = [
        Status.UNDECODABLE if not is_text(text) else Status.EMPTY if not text.strip() else Status.OK for text in texts
    ]
    good = [at for at, one in enumerate(status) if one == Status.OK]
    ids: list[Any] = [None] * len(texts)
    for at, own in zip(good, source.source_ids([texts[at] for at in good]), strict=True):
        ids[at] = own
        if too_long(conditionals, own):
            status[at] = Status.LONG_SOURCE
    return status, ids


def _sizes(
    conditionals: Conditionals,
    lengths: SourceLengths | None,
    sources: Sequence[Ints],
    wish: Wish,
    terms: Sequence[tuple[Term, ...]] | None,
) -> list[list[int]]:
    """The lengths to be tried for each source: the likeliest, as far as the model writes and the terms have room."""
    least = [1 + sum(map(len, own)) if own else 1 for own in terms or [()] * len(sources)]
    if lengths is None:
        assert wish.length is not None
        return [[max(wish.length, few)] for few in least]
    lengths.laws(sources)  # all read together
    found = []
    for source, few in zip(sources, least, strict=True):
        likeliest = [n for n in lengths.likeliest(lengths.most, source) if n >= few][: wish.lengths]
        if not likeliest:
            raise BesagError(
                f"terms of {few - 1} tokens, and {conditionals.name!r} writes targets of {lengths.most} at most"
            )
        found.append(likeliest)
    return found


def _holds(text: str, term: str) -> bool:
    """As words of its own: what follows a term may have been written on to it."""
    return re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text) is not None


class _Writer:
    """Targets as texts."""

    def __init__(self, conditionals: Conditionals) -> None:
        self.conditionals, self.vocabulary = conditionals, conditionals.vocabulary

    def text(self, ids: tuple[int, ...]) -> str:
        if self.vocabulary.mask_id in ids:  # on the way: the masks are to be seen
            sheet = blank(self.conditionals, len(ids))
            return filled(self.vocabulary, sheet.encoded, sheet.positions, ids)
        return str(self.vocabulary.tokenizer.decode(ids, skip_special_tokens=True)).strip()

    def hypothesis(self, draft: Draft, law: Floats | None) -> Hypothesis:
        score = None if draft.total is None else draft.total / max(1, draft.made)
        if law is not None and draft.total is not None:
            score = (draft.total + float(law[len(draft.ids) - 1])) / (draft.made + 1)
        return Hypothesis(self.text(draft.ids), score, len(draft.ids), draft.passes)

    def row(
        self, source: str, drafts: Sequence[Draft], best: tuple[Hypothesis, ...], terms: tuple[str, ...], nbest: int
    ) -> Translation:
        passes = sum(draft.passes for draft in drafts)
        missing = tuple(term for term in terms if not _holds(best[0].text, term.strip()))
        way = next((draft.steps for draft in drafts if draft.steps and self.text(draft.ids) == best[0].text), ())
        return Translation(source, best[:nbest], len(drafts), passes, missing, self.steps(way))

    def steps(self, way: Sequence[tuple[int, tuple[int, ...]]]) -> tuple[Step, ...]:
        return tuple(Step(passes, self.text(ids), tuple(self.pieces(ids))) for passes, ids in way)

    def pieces(self, ids: tuple[int, ...]) -> list[Piece]:
        """Each token as the text shows it: what it adds to those before it."""
        found, before = list[Piece](), ""
        for end in range(1, len(ids) + 1):
            tokens = [self.vocabulary.token(one) for one in ids[:end]]
            now = str(self.vocabulary.tokenizer.convert_tokens_to_string(tokens))
            same = now.startswith(before)
            found.append(Piece(now[len(before) :] if same else f" {tokens[-1]}", False))
            before = now
        return found
