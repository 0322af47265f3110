"""A task as a text with a gap, asked of a model: which label fits the gap best, or what the model writes there.

With labels the masked head is the classifier (Clavié et al. 2025): each label is said by words w of one token or more,

    p(y | prompt) = Σ_{w of y} p(w | prompt),    p(w | prompt) = Π_k p(w_k | prompt, w_1 … w_{k−1}, the rest hidden)

so w stands in as many masks as it has tokens, the prompt is shown whole, and nothing of it is scored. Without labels a
kernel fills masks at the gap: `sequential` continues the prompt as SAP does (Patel et al. 2023), and any decoder, such
as those of a diffusion (Ye et al. 2023), fills so many masks. Examples may stand before the row: few shots.

Knows prompts and answers. How texts are scored is `besag.scores`' affair, how they are written `besag.samplers`'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from besag.checks import MOST_LENGTH, checked, whole_number
from besag.conditionals.contract import require_both_sides
from besag.errors import BesagError, TooLong, quoted
from besag.language_model import LanguageModel
from besag.places.reading import masks
from besag.prompting.answers import Answer, Answers
from besag.prompting.shots import drawn, lead, right_answer
from besag.results.words import dtype_name
from besag.samplers.kernel import Kernel, Noise
from besag.samplers.kernel import kernel as kernel_named
from besag.samplers.run import walk
from besag.samplers.sheet import Sheet, allowed_tokens
from besag.samplers.sheet import template as sheet_of
from besag.scores import Method
from besag.scores.registry import method as method_named
from besag.scores.scoring import score
from besag.templates import GAP, around, columns, with_gap

MOST_SHOTS = 10_000
TOGETHER = 256  # rows whose answers are written at a time


class Question(NamedTuple):
    """A row as it is asked."""

    before: str
    after: str
    right: str | None


@checked
def answer(
    lm: LanguageModel,
    rows: Sequence[Mapping[str, Any]],
    template: str,
    labels: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
    *,
    label: str = "label",
    examples: Sequence[Mapping[str, Any]] = (),
    shots: int = 0,
    between: str = "\n",
    method: str | Method = "chain",
    kernel: str | Kernel = "sequential",
    tokens: int = 8,
    stop: str | None = None,
    seed: int = 0,
    **options: Any,
) -> Answers:
    """Ask a model a task that is a text with a gap: which label stands there, or, without labels, what it writes there.

    Args:
        lm: a masked model, as it is or tuned on such lines (`data.pairs = "line"`).
        rows: of the task: the columns of the template, and the label where it is known.
        template: columns in braces, `[MASK]` or `{target}` where the answer stands.
        labels: label → words that say it, of any number of tokens; or such words themselves. None: it writes freely.
        label: the column with the right answer; rows that have it are judged.
        examples: rows with their labels, to draw shots from.
        shots: how many solved examples stand before every row.
        between: what stands between them.
        method: with labels: the score that compares them.
        kernel: without labels: who fills the gap, a decoder.
        tokens: without labels: how many masks stand at the gap.
        stop: without labels: the answer ends before it; if not given, a sign that follows the gap in the template.
        seed: of the examples drawn, and of what is written.
        options: of the method or the kernel.

    Returns:
        `Answers`: one a row, and how many are right, beside chance and the most frequent answer.

    Examples:
        >>> rows = [{"text": "I love it.", "label": "good"}, {"text": "I hate it.", "label": "bad"}]
        >>> found = besag.answer(lm, rows, "{text} It was [MASK].", ["good", "bad"])
        >>> [round(sum(one.shares.values()), 6) for one in found]
        [1.0, 1.0]
    """
    require_both_sides(lm.conditionals, "a gap in a text")
    if not columns(template):
        raise BesagError(f"template={quoted(template)} names no column: write one in braces, such as {{text}}")
    whole_number(shots, "shots", right="give how many examples stand before a row, or 0", least=0, most=MOST_SHOTS)
    words = _words(labels)
    before = lead(template, drawn(examples, label, shots, seed), label, words, between) if shots else ""
    prompts = [_prompt(template, row, label, before) for row in rows]
    if words is not None:
        by = method if isinstance(method, Method) else method_named(method, **options)
        found, how = _chosen(lm, prompts, words, by), by.label
    else:
        who = kernel if isinstance(kernel, Kernel) else kernel_named(kernel, **options)
        found, how = _written(lm, prompts, who, tokens, _stop(template) if stop is None else stop, seed), who.label
    asked = lm.conditionals
    return Answers(tuple(found), tuple(words or ()), shots, how, asked.name, dtype_name(asked.dtype))


def _prompt(template: str, row: Mapping[str, Any], label: str, lead: str) -> Question:
    before, after = around(template, row)
    return Question(lead + before, after, right_answer(row, label) if row.get(label) is not None else None)


def _words(labels: Mapping[str, Sequence[str]] | Sequence[str] | None) -> dict[str, list[str]] | None:
    """Label → what says it."""
    if labels is None:
        return None
    said = labels.items() if isinstance(labels, Mapping) else ((name, [name]) for name in labels)
    found = {str(name): [own] if isinstance(own, str) else list(own) for name, own in said}
    if len(found) < 2:
        raise BesagError(f"labels={quoted(list(found))}: a choice needs at least two labels")
    empty = next((name for name, own in found.items() if not own or not all(word.strip() for word in own)), None)
    if empty is not None:
        raise BesagError(f"the label {empty!r} has no word: give at least one that says it")
    return found


# ---- labels


def _chosen(
    lm: LanguageModel, prompts: Sequence[Question], words: Mapping[str, Sequence[str]], method: Method
) -> list[Answer]:
    """Every word of every label, scored in every prompt; the words of a label add up."""
    flat = [word for own in words.values() for word in own]
    for prompt in prompts:
        _refuse_long(lm, prompt, max(flat, key=len))
    scores = score(
        lm.engine, flat * len(prompts), method, separator="",
        prefix=[prompt.before for prompt in prompts for _ in flat],
        suffix=[prompt.after for prompt in prompts for _ in flat],
    )  # fmt: skip
    unfit = next((one for one in scores if one.status != "ok"), None)
    if unfit is not None:
        raise BesagError(f"the label word {unfit.text!r} cannot be scored: {unfit.status.sentence}")
    totals = np.array([one.total for one in scores]).reshape(len(prompts), len(flat))  # (N, W)
    ends = np.cumsum([len(own) for own in words.values()])
    by_label = [np.logaddexp.reduce(part, axis=1) for part in np.split(totals, ends[:-1], axis=1)]
    found = []
    for prompt, values in zip(prompts, np.stack(by_label, 1), strict=True):  # (Y,)
        if not np.isfinite(values).any():
            raise BesagError(f"in {quoted(prompt.before + GAP + prompt.after)} all labels have probability 0")
        own = dict(zip(words, values.tolist(), strict=True))
        found.append(Answer(prompt.before + GAP + prompt.after, max(own, key=own.__getitem__), own, prompt.right))
    return found


def _refuse_long(lm: LanguageModel, prompt: Question, word: str) -> None:
    """A window would leave some of the prompt out of sight."""
    limit = lm.conditionals.max_length
    if limit is None or len(prompt.before) + len(prompt.after) + len(word) < limit // 2:
        return
    size = len(lm.vocabulary.encode([prompt.before + word + prompt.after])[0].ids)
    if size > limit:
        raise TooLong(
            f"the prompt {quoted(prompt.before + GAP + prompt.after)} has {size} tokens, and "
            f"{lm.conditionals.name!r} sees {limit}: give fewer shots, or shorter rows"
        )


# ---- what is written


def _stop(template: str) -> str:
    """The sign that follows the gap, if it is one."""
    after = with_gap(template).partition(GAP)[2].strip()
    return after[0] if after and not after[0].isalnum() and after[0] != "{" else ""


def _written(
    lm: LanguageModel, prompts: Sequence[Question], kernel: Kernel, tokens: int, stop: str, seed: int
) -> list[Answer]:
    """What a decoder fills in, rows of one shape together; noise belongs to a row by its number."""
    whole_number(tokens, "tokens", right="give how many masks stand at the gap, at least 1", most=MOST_LENGTH)
    if not kernel.ends:
        raise BesagError(f"kernel={kernel.name!r} varies a text for ever: give one that fills masks, such as 'ordered'")
    gap = masks(lm.vocabulary, tokens)
    sheets = [sheet_of(lm.conditionals, prompt.before + gap + prompt.after) for prompt in prompts]
    by_shape: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for place, sheet in enumerate(sheets):
        if len(sheet.at) != tokens:
            raise BesagError(f"{quoted(prompts[place].before)} holds a mask itself: the gap alone may have masks")
        by_shape.setdefault((len(sheet.ids), sheet.at), []).append(place)
    texts: dict[int, str] = {}
    bar = lm.engine.bar(len(prompts), "row")
    for places in by_shape.values():
        for start in range(0, len(places), TOGETHER):
            own = places[start : start + TOGETHER]
            texts.update(zip(own, _filled(lm, [sheets[place] for place in own], kernel, seed, own), strict=True))
            bar.update(len(own))
    bar.close()
    return [
        Answer(prompt.before + GAP + prompt.after, _cut(texts[place], stop), {}, prompt.right)
        for place, prompt in enumerate(prompts)
    ]


def _filled(lm: LanguageModel, sheets: Sequence[Sheet], kernel: Kernel, seed: int, numbers: Sequence[int]) -> list[str]:
    conditionals = lm.conditionals
    canvas = sheets[0].canvas(conditionals, len(sheets), allowed_tokens(conditionals))
    ids = torch.from_numpy(np.stack([sheet.ids for sheet in sheets])).to(canvas.ids.device)  # (R, L)
    for state, _ in walk(lm.engine, kernel, canvas._replace(ids=ids), Noise(seed, torch.tensor(numbers))):  # noqa: B007
        pass
    at = list(sheets[0].at)
    decode = lm.vocabulary.tokenizer.decode
    return [decode(row).strip() for row in state.ids[:, at].tolist()]


def _cut(text: str, stop: str) -> str:
    return text.partition(stop)[0].strip() if stop else text
