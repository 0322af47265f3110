"""A prompt that was found: its triggers, how it came to them, what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from besag.arrays import Ints
from besag.checks import checked
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import counted

if TYPE_CHECKING:
    from pandas import DataFrame

    from besag.language_model import LanguageModel
    from besag.prompting.template import Template


class Round(NamedTuple):
    """The triggers after a round, judged on held-out rows; round 0 is before all."""

    turn: int
    triggers: tuple[int, ...]
    accuracy: float
    log_prob: float  # mean, of the right label


@dataclass(frozen=True, eq=False, repr=False)
class Prompt(Presented):
    """Triggers for a template, and the labels it tells apart."""

    lm: LanguageModel
    frame: Template
    words: Mapping[str, Ints]  # label → its tokens
    history: tuple[Round, ...]

    @property
    def best(self) -> Round:
        """The round with the best mean log p on held-out rows."""
        return max(self.history, key=lambda one: one.log_prob)

    @property
    def triggers(self) -> list[str]:
        """The trigger tokens, as the tokenizer writes them."""
        return list(self.frame.vocabulary.tokenizer.convert_ids_to_tokens(list(self.best.triggers)))

    @property
    def text(self) -> str:
        """The template with the triggers written out, which may read as other tokens; `answer` takes the tokens."""
        return self.frame.filled(self.best.triggers)

    @property
    def before(self) -> float:
        """Mean log p of the right label on held-out rows, with masks in place of triggers."""
        return self.history[0].log_prob

    @property
    def after(self) -> float:
        """The same, with the triggers."""
        return self.best.log_prob

    @checked
    def answer(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Of each row the likeliest label, and the share of each among all of them."""
        from besag.prompting.likelihood import Likelihood

        asking = Likelihood.of_network(self.lm.conditionals)
        asked = [self.frame.asked(row) for row in rows]
        laws = asking.answers(asked, list(self.words.values()), np.array(self.best.triggers))  # (N, Y)
        shares = np.exp(laws - np.logaddexp.reduce(laws, axis=1, keepdims=True)) if len(rows) else laws
        names = list(self.words)
        return [
            {"label": names[int(own.argmax())], "shares": dict(zip(names, own.tolist(), strict=True)),
             "log_prob": float(np.logaddexp.reduce(law))}
            for own, law in zip(shares, laws, strict=True)
        ]  # fmt: skip

    @property
    def status(self) -> Status:
        return Status.OK

    @property
    def facts(self) -> list[str]:
        """What a reader must know."""
        best, first = self.best, self.history[0]
        return [
            f"held-out accuracy {100 * first.accuracy:.1f} % → {100 * best.accuracy:.1f} % (chance "
            f"{100 / len(self.words):.1f} %), mean log p of the right label {first.log_prob:.2f} → {best.log_prob:.2f}",
            f"chosen among {counted(len(self.history), 'round')} on the same held-out rows: judge it on others",
        ]

    def _title(self) -> Sequence[str]:
        return [self.text]

    def _grids(self) -> Sequence[Grid]:
        decode = self.frame.vocabulary.tokenizer.convert_ids_to_tokens
        lines = [
            Line(
                [
                    f"{one.turn}",
                    f"{100 * one.accuracy:.1f} %",
                    f"{one.log_prob:.3f}",
                    " ".join(decode([*one.triggers])),
                ],
                strong=one is self.best,
            )
            for one in self.history
        ]
        return [Grid(["round", "accuracy", "log p", "triggers"], lines, left=(3,))]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the prompt, its triggers, its labels, every round."""
        rounds = [one._asdict() for one in self.history]
        labels = {name: ids.tolist() for name, ids in self.words.items()}
        about = {"template": self.frame.text, "text": self.text, "triggers": self.triggers, "labels": labels}
        return dict(json_ready({**self._answers(), **about, "rounds": rounds}))

    def to_pandas(self) -> DataFrame:
        """A row for each round."""
        return data.frame(self, [one._asdict() for one in self.history])
