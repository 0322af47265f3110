"""Events while work runs: rows as they come, and its result or why there is none.

    event: step      data: what the work told, as far as the reader keeps up
    event: result    data: {"model", "result"}
    event: error     data: {"message"}

A reader who goes away ends the work. Knows neither chains nor their texts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeAlias

from fastapi import Request
from fastapi.responses import StreamingResponse

from besag.admission import Ticket
from besag.language_model import LanguageModel
from besag.service.desk import Desk, Weight

WAITING = 64  # events that a slow reader may be behind

Tell: TypeAlias = Callable[[Callable[[], Mapping[str, Any]]], None]  # given a row that is made only if it is sent


async def streamed(
    desk: Desk,
    request: Request,
    model: str,
    weight: Weight,
    run: Callable[[LanguageModel, Tell], Any],
    skip: bool = True,
) -> StreamingResponse:
    """What `run` tells, then what it returns, or refusals before both. `skip`: may a slow reader miss some of it?"""
    loop, events = asyncio.get_running_loop(), asyncio.Queue[bytes]()
    begun: asyncio.Future[Any] = loop.create_future()

    def tell(row: Callable[[], Mapping[str, Any]]) -> None:
        if not skip or events.qsize() < WAITING:
            loop.call_soon_threadsafe(events.put_nowait, _event("step", row()))

    verb: Callable[[LanguageModel], Any] = lambda lm: run(lm, tell)  # noqa: E731
    work: asyncio.Future[Any] = asyncio.ensure_future(desk.answer(request, model, weight, verb, begun=begun.set_result))
    work.add_done_callback(lambda done: done.cancelled() or done.exception())  # a reader who went away hears of none
    await asyncio.wait({work, begun}, return_when=asyncio.FIRST_COMPLETED)
    if not begun.done():
        await work  # it was refused
    ticket: Ticket = begun.result()

    async def lines() -> AsyncIterator[bytes]:
        try:
            while not (work.done() and events.empty()):
                turn = asyncio.ensure_future(events.get())
                await asyncio.wait([work, turn], return_when=asyncio.FIRST_COMPLETED)
                if turn.done():
                    yield turn.result()
                else:
                    turn.cancel()
                    await asyncio.sleep(0)  # what was put before the end
            failure = work.exception()
            if failure is None:
                yield _event("result", {"model": model, "result": work.result()})
            else:
                yield _event("error", {"message": str(failure)})
        finally:
            ticket.cancel()  # no reader, no chain; where all is done this does nothing

    return StreamingResponse(lines(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


def _event(kind: str, data: Mapping[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()
