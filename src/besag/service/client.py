"""`besag.connect(url)`: the verbs of a model that a server runs, with the same results.

Knows HTTP as Python's own library speaks it; needs nothing of the extra `serve`. Where the queue of the server is full
it waits as long as it is told, and asks again.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, overload

from besag.checks import checked
from besag.errors import BesagError, quoted

if TYPE_CHECKING:
    from besag.diagnostics.dependence import DependenceMap
    from besag.fills.fill import Fill
    from besag.joints.block import BlockJoint
    from besag.joints.pair import PairJoint
    from besag.places.positions import Position
    from besag.samplers.chain import Chain
    from besag.scores.choice import Choice
    from besag.scores.score import Score
    from besag.translation.translated import Translations
    from besag.vocabulary import Vocabulary

PATIENCE = 120.0  # seconds that a full queue is waited for
TOGETHER = 256  # texts of one request


@checked
def connect(url: str, model: str | None = None, *, key: str | None = None, timeout: float = 300.0) -> RemoteModel:
    """A model that `besag serve` runs somewhere, with the verbs of `besag.load` and the same results.

    Args:
        url: where it is served, as "http://127.0.0.1:8000".
        model: which of its models; if not given, the first.
        key: one of the keys of the server, where it asks for one.
        timeout: seconds for an answer.

    Returns:
        A `RemoteModel`. A server that does not answer is told at once.

    Examples:
        >>> besag.connect("127.0.0.1")
        Traceback (most recent call last):
            ...
        besag.errors.BesagError: '127.0.0.1' is no address of a server: write it as http://127.0.0.1:8000
    """
    remote = RemoteModel(url, model, key, timeout)
    remote.check()
    return remote


class RemoteModel:
    """What one model of a server can be asked."""

    def __init__(self, url: str, model: str | None = None, key: str | None = None, timeout: float = 300.0) -> None:
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise BesagError(f"{quoted(url)} is no address of a server: write it as http://127.0.0.1:8000")
        self.url, self.timeout = url.rstrip("/"), timeout
        self._model, self._key, self._source = model, key, None

    def __repr__(self) -> str:
        return f"RemoteModel({self.url!r}, {self.name!r})"

    @cached_property
    def name(self) -> str:
        return self._model or str(self._names()[0])

    def _names(self) -> list[str]:
        told = self._ask("/models")
        if "models" not in told:
            raise self._stranger()
        return [one["name"] for one in told["models"]]

    def check(self) -> None:
        """Refuse a server that does not answer, and a model that it does not serve."""
        names = self._names()
        if self._model is not None and self._model not in names:
            raise BesagError(f"no model {quoted(self._model)} is served at {self.url}. There are: {', '.join(names)}")

    # ---- verbs

    @overload
    def score(self, texts: str, method: str = ..., **options: Any) -> Score: ...
    @overload
    def score(self, texts: Sequence[str], method: str = ..., **options: Any) -> list[Score]: ...
    def score(self, texts: str | Sequence[str], method: str = "pll", **options: Any) -> Score | list[Score]:
        """As `LanguageModel.score`, of a text or a list of texts."""
        own = ("words", "prefix", "suffix", "separator", "base", "rank", "entropy")
        body = {"method": method, **_apart(options, own)}
        if "base" in body:
            body["base"] = str(body["base"])
        if isinstance(texts, str):
            return self._result("/score", texts=texts, **body)  # type: ignore[no-any-return]
        listed = list(texts)
        parts = [listed[start : start + TOGETHER] for start in range(0, len(listed), TOGETHER)]
        return [one for part in parts for one in self._result("/score", texts=part, **body)]

    def choose(self, text: str, options: Sequence[str], method: str | None = None, **scoring: Any) -> Choice:
        """As `LanguageModel.choose`."""
        own = _apart(scoring, ("of", "reduction"))
        return self._result("/choose", text=text, choices=list(options), method=method, **own)  # type: ignore[no-any-return]

    def joint(
        self, text: str, positions: Sequence[Position] | None = None, method: str = "ag", **options: Any
    ) -> PairJoint | BlockJoint:
        """As `LanguageModel.joint`; all of its tables come over the wire, so ask about candidates."""
        own = _apart(options, ("outcomes", "candidates"))
        where = None if positions is None else list(positions)
        return self._result("/joint", text=text, positions=where, method=method, **own)  # type: ignore[no-any-return]

    def fill(self, text: str, k: int = 5, method: str = "ag", **options: Any) -> Fill:
        """As `LanguageModel.fill`."""
        own = _apart(options, ("outcomes", "candidates", "beam"))
        return self._result("/fill", text=text, k=k, method=method, **own)  # type: ignore[no-any-return]

    def dependence(self, text: str, **options: Any) -> DependenceMap:
        """As `LanguageModel.dependence`."""
        return self._result("/dependence", text=text, **options)  # type: ignore[no-any-return]

    def sample(
        self,
        text: str | None = None,
        kernel: str = "gibbs",
        *,
        watch: Callable[[int, list[int], Callable[[], list[str]]], None] | None = None,
        **options: Any,
    ) -> Chain:
        """As `LanguageModel.sample`. `watch` is called while the chains run, for as many steps as the line carries."""
        from besag.service import wire

        own = _apart(options, ("chains", "steps", "length", "end", "outcomes", "seed"))
        body = self._body(text=text, kernel=kernel, **own)
        if watch is None:
            return self._result("/sample", **body)  # type: ignore[no-any-return]
        for kind, data in self._events("/sample", {**body, "stream": True}):
            if kind == "step":
                watch(data["step"], data["chains"], lambda texts=data["texts"]: texts)  # type: ignore[misc]
            elif kind == "error":
                raise BesagError(data["message"])
            else:
                return wire.unpack(data["result"])  # type: ignore[no-any-return]
        raise BesagError(f"{self.url} went away while the chains ran")

    def translate(self, sources: str | Sequence[str], kernel: str | None = None, **options: Any) -> Translations:
        """As `LanguageModel.translate`, without a `judge`."""
        texts = sources if isinstance(sources, str) else list(sources)
        own = _apart(options, ("passes", "lengths", "choose", "nbest", "trace", "seed", "terms"))
        return self._result("/translate", sources=texts, kernel=kernel, **own)  # type: ignore[no-any-return]

    def given(self, source: str) -> RemoteModel:
        """The same model given a source."""
        other = RemoteModel(self.url, self._model, self._key, self.timeout)
        other._source = source  # type: ignore[assignment]
        return other

    # ---- the line

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Of the model, for results that name tokens."""
        from besag.service.tokenizers import read_vocabulary

        return read_vocabulary(self._ask(f"/tokenizer?model={urllib.parse.quote(self.name, safe='')}"))

    def _body(self, **fields: Any) -> dict[str, Any]:
        own = {"model": self._model, "source": self._source, **fields}
        return {name: value for name, value in own.items() if value is not None}

    def _result(self, route: str, **fields: Any) -> Any:
        from besag.service import wire

        answer = self._ask(route, self._body(**fields), accept=wire.TYPE)
        packed = answer["results"] if "results" in answer else answer["result"]
        needs = route == "/joint"
        return wire.unpack(packed, self.vocabulary if needs else None)

    def _ask(self, route: str, body: Mapping[str, Any] | None = None, accept: str = "application/json") -> Any:
        with self._heard(), self._open(route, body, accept) as answer:
            found = json.load(answer)
        if not isinstance(found, dict):
            raise self._stranger()
        return found

    def _events(self, route: str, body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        from besag.service import wire

        with self._heard(), self._open(route, body, wire.TYPE) as answer:
            kind = ""
            for line in answer:
                name, _, value = line.decode().strip().partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)

    def _open(self, route: str, body: Mapping[str, Any] | None, accept: str) -> Any:
        """An answer to be read; where the queue is full, once it is not."""
        headers = {"Accept": accept, "Content-Type": "application/json", "Besag-Deadline": f"{self.timeout:g}"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + route, data, headers)
        until = time.monotonic() + min(PATIENCE, self.timeout)
        while True:
            try:
                return urllib.request.urlopen(request, timeout=self.timeout)
            except urllib.error.HTTPError as refused:
                said = refused.headers.get("Retry-After") or ""
                wait = float(said) if said.isdigit() else 1.0
                if refused.code != 429 or time.monotonic() + wait > until:
                    self._refuse(refused)
                time.sleep(wait)
            except OSError as problem:
                why = getattr(problem, "reason", problem)
                raise BesagError(f"nobody answers at {quoted(self.url)}: {why}. `besag serve` starts one") from None

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """What goes wrong while an answer is read, in a sentence."""
        try:
            yield
        except BesagError:
            raise
        except (OSError, http.client.HTTPException) as problem:
            why = str(problem) or type(problem).__name__
            raise BesagError(f"{self.url} broke off in its answer ({why}): see whether it still runs") from None
        except ValueError:
            raise self._stranger() from None

    def _stranger(self) -> BesagError:
        return BesagError(f"what answers at {quoted(self.url)} is no server of besag: `besag serve` starts one")

    def _refuse(self, refused: urllib.error.HTTPError) -> NoReturn:
        try:
            message = json.load(refused)["error"]["message"]
        except (ValueError, KeyError, TypeError):
            message = refused.reason
        raise BesagError(f"{self.url} refused ({refused.code}): {message}") from None


def _apart(options: Mapping[str, Any], own: Sequence[str]) -> dict[str, Any]:
    """Arguments of the verb, and those of its method."""
    more = {name: value for name, value in options.items() if name not in own}
    return {**{name: value for name, value in options.items() if name in own}, **({"options": more} if more else {})}
