"""Verbs of a model over a Ray Dataset: a dataset in, a dataset out, to stand anywhere in a pipeline of yours.

Nothing runs before the dataset is consumed, and Ray's own settings are left alone. An actor loads the model once and
has `batch_rows` rows at a time, which go to the engine whole; how many of them pass through the network together is
the engine's affair. Rows keep their other columns; a row that has no number says why in `status`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from besag.bulk.keeping import Keep
from besag.bulk.verbs import Entropy, Fill, Sample, Score, Verb
from besag.bulk.working import Hand
from besag.checks import checked
from besag.errors import BesagError, nearest, quoted, require
from besag.files.encoding import Columns
from besag.files.inputs import Record
from besag.files.progress import BLOCK


@checked
def score(
    dataset: Any,
    column: str = "text",
    *,
    model: str | None = None,
    method: str = "pll",
    keep: str | None = None,
    actors: int = 1,
    cpus_per_actor: int = 1,
    gpus_per_actor: float = 0,
    batch_rows: int | None = None,
    load: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Score the texts of a Ray Dataset.

    Args:
        dataset: of `ray.data`; each row has a text in `column`.
        column: where the texts are.
        model: a folder or hub name that every machine can load; if not given, the embedded model.
        method: of scoring (`besag methods`).
        keep: which rows stay, as in "score > -40 and tokens < 100".
        actors: processes, each with a model.
        cpus_per_actor: and threads of each.
        gpus_per_actor: 1 runs the model on CUDA; 0.5 puts two on a device.
        batch_rows: rows that an actor gets at a time; if not given, 512 on a CPU and 16,384 on CUDA.
        load: further arguments of `besag.load`, as `{"dtype": "float16"}`.
        options: of the method.

    Returns:
        A Ray Dataset: the columns of `besag score` but for `row`, then the other columns of each row.

    Examples:
        >>> import ray
        >>> texts = ray.data.from_items([{"text": "The cat sleeps."}])  # doctest: +SKIP
        >>> besag.bulk.score(texts, method="unmasked").take(1)  # doctest: +SKIP
        [{'text': 'The cat sleeps.', 'unmasked': -1.37, 'tokens': 4, 'unknown': 0, 'status': 'ok'}]
    """
    verb = Score(_load(model, load, gpus_per_actor), methods={method: options})
    return _mapped(dataset, column, verb, keep, actors, cpus_per_actor, gpus_per_actor, batch_rows)


@checked
def entropy(dataset: Any, column: str = "text", *, model: str | None = None, method: str = "pll", **how: Any) -> Any:
    """The mean and the greatest entropy of what the model expects at the places of each text, in nats.

    Args:
        dataset: of `ray.data`; each row has a text in `column`.
        column: where the texts are.
        model: a folder or hub name; if not given, the embedded model.
        method: who hides what, as in `score`.
        how: `keep`, `actors`, `cpus_per_actor`, `gpus_per_actor`, `batch_rows` and `load`, as in `score`.

    Returns:
        A Ray Dataset with the columns `entropy`, `entropy_most`, `tokens` and `status`.

    Examples:
        >>> besag.bulk.entropy(texts, keep="entropy < 5")  # doctest: +SKIP
    """
    return _with(dataset, column, lambda load: Entropy(load, method=method), model, how)


@checked
def fill(dataset: Any, column: str = "text", *, model: str | None = None, k: int = 5, **how: Any) -> Any:
    """The k likeliest fillings of all masks of each text, a row each.

    Args:
        dataset: of `ray.data`; each row has a text with masks in `column`.
        column: where the texts are.
        model: a folder or hub name; if not given, the embedded model.
        k: how many fillings.
        how: as in `entropy`.

    Returns:
        A Ray Dataset with the columns `rank`, `filled`, `log_prob`, `prob`, `status` and `reason`.

    Examples:
        >>> besag.bulk.fill(cloze, k=3)  # doctest: +SKIP
    """
    return _with(dataset, column, lambda load: Fill(load, k=k), model, how)


@checked
def sample(
    dataset: Any, column: str = "text", *, model: str | None = None, kernel: str = "gibbs", chains: int = 1,
    seed: int = 0, **how: Any,
) -> Any:  # fmt: skip
    """Texts drawn for the masks of each text, a row each. The draws belong to the seed and the text.

    Args:
        dataset: of `ray.data`; each row has a text with masks in `column`.
        column: where the texts are.
        model: a folder or hub name; if not given, the embedded model.
        kernel: of sampling (`besag methods`).
        chains: texts of each row.
        seed: of all draws.
        how: as in `entropy`.

    Returns:
        A Ray Dataset with the columns `chain`, `sampled`, `status` and `reason`.

    Examples:
        >>> besag.bulk.sample(templates, kernel="ordered", chains=2)  # doctest: +SKIP
    """
    return _with(dataset, column, lambda load: Sample(load, kernel=kernel, chains=chains, seed=seed), model, how)


# ---- the one mechanism

HOW = {"keep": None, "actors": 1, "cpus_per_actor": 1, "gpus_per_actor": 0, "batch_rows": None}


def _with(dataset: Any, column: str, verb: Any, model: str | None, how: dict[str, Any]) -> Any:
    load = how.pop("load", None)
    for name in how:
        if name not in HOW:
            raise BesagError(f"{name}={quoted(how[name])}: no such option.{nearest(name, [*HOW, 'load'])}")
    given = {**HOW, **how}
    return _mapped(dataset, column, verb(_load(model, load, given["gpus_per_actor"])), *given.values())


def _load(model: str | None, load: Mapping[str, Any] | None, gpus: float) -> dict[str, Any]:
    return {"model": model, "device": "cuda" if gpus else "cpu", **(load or {})}


def _mapped(
    dataset: Any, column: str, verb: Verb, keep: str | None, actors: int, cpus: int, gpus: float, batch: int | None
) -> Any:  # fmt: skip
    data: Any = require("ray.data", extra="bulk")
    if not isinstance(dataset, data.Dataset):
        raise BesagError(f"dataset={quoted(dataset)}: give a Dataset of ray.data, such as ray.data.read_parquet(…)")
    block = BLOCK["cuda" if gpus else "cpu"]
    hand = Hand(verb, block, None if keep is None else Keep(keep), cpus)
    return dataset.map_batches(
        Mapped, fn_constructor_args=(hand, column), compute=data.ActorPoolStrategy(size=actors),
        batch_size=batch or block, batch_format="pyarrow", num_cpus=cpus, num_gpus=gpus,
    )  # fmt: skip


class Mapped:
    """A table in, a table out, in an actor."""

    def __init__(self, hand: Hand, column: str) -> None:
        self.hand, self.column = hand, column

    def __call__(self, table: Any) -> Any:
        if self.column not in table.column_names:
            names = ", ".join(table.column_names)
            raise BesagError(f"no column {self.column!r}, but {names}.{nearest(self.column, table.column_names)}")
        records = [self._record(row) for row in table.to_pylist()]
        results, _ = self.hand.results(records, {})
        columns = Columns()
        rows = [
            columns.arrange({name: value for name, value in row.items() if name != "row"}, record.others)
            for record, found in results
            for row in found
            if self.hand.stays(row)
        ]
        pyarrow: Any = require("pyarrow", extra="bulk")
        return pyarrow.Table.from_pylist([{name: _plain(value) for name, value in row.items()} for row in rows])

    def _record(self, row: Mapping[str, Any]) -> Record:
        text = row[self.column]
        said = text if isinstance(text, str) else ""
        number = int.from_bytes(hashlib.sha256(said.encode("utf-8", "surrogatepass")).digest()[:6], "little")
        others = {name: value for name, value in row.items() if name != self.column}
        return Record(number, f"the text {quoted(said)}", said, others)


def _plain(value: object) -> object:
    return str(value) if isinstance(value, str) else value
