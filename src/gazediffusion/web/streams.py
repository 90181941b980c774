"""Server-sent events: work that is followed while it is done, and ends when its client does."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from fastapi import HTTPException, Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from gazediffusion.errors import GazeError
from gazediffusion.web.jobs import CANCELLED, INTERNAL, QueueFullError, log
from gazediffusion.web.playground import DisconnectedError, Messages, Playground, received
from gazediffusion.web.worker import Report

HEADERS = {"X-Accel-Buffering": "no"}  # A reverse proxy passes each event on at once.


class ReleasingResponse(StreamingResponse):
    """A stream that releases something when it has ended, however it ended."""

    def __init__(self, content: Any, release: Callable[[], Any], **more: Any) -> None:
        super().__init__(content, **more)
        self.release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the end or until the client disconnects."""
        try:
            await super().__call__(scope, receive, send)
        except DisconnectedError:
            pass
        finally:
            self.release()


def event(name: str, data: dict[str, Any]) -> str:
    """One event; its data is JSON in one line."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def event_schema(*names: str) -> dict[str, Any]:
    """The events of a stream, for its OpenAPI description."""
    return {
        "schema": {
            "type": "object",
            "description": "One event; its data is JSON in one line.",
            "required": ["event", "data"],
            "properties": {
                "event": {"enum": list(names)},
                "data": {"type": "string", "contentMediaType": "application/json"},
            },
        },
        "example": {"event": "queued", "data": '{"job": "5f0c6f1c9d1b2a3e", "ahead": 0}'},
    }


def streamed(
    play: Playground,
    request: Request,
    work: Callable[[Report], Awaitable[dict[str, Any]]],
    close: Callable[[], None],
) -> ReleasingResponse:
    """The events queued and progress, then done with the result of the work, or failed.

    close: called when the work has ended, also where it was cancelled before it began.
    """
    messages: Messages = asyncio.Queue()

    async def run() -> None:
        try:
            result = await work(lambda progress: messages.put_nowait(("progress", progress)))
            messages.put_nowait(("done", result))
        except asyncio.CancelledError:
            messages.put_nowait(("failed", CANCELLED))
        except (GazeError, QueueFullError, HTTPException) as error:
            messages.put_nowait(("failed", getattr(error, "detail", str(error))))
        except Exception as error:
            if not isinstance(error, DisconnectedError):
                log.error("a stream failed: %s", type(error).__name__)
            messages.put_nowait(("failed", INTERNAL))

    job = secrets.token_hex(8)
    ahead = play.comparison.n_active
    task = asyncio.create_task(run())
    play.streams[job] = task

    def ended(task: asyncio.Task[None]) -> None:
        play.streams.pop(job, None)
        if task.cancelled():  # before it began
            messages.put_nowait(("failed", CANCELLED))
        close()

    task.add_done_callback(ended)

    async def events() -> AsyncIterator[str]:
        yield event("queued", {"job": job, "ahead": ahead})
        async for kind, value in received(messages, request):
            yield event(kind, {"error": value} if kind == "failed" else value)

    return ReleasingResponse(events(), task.cancel, media_type="text/event-stream", headers=HEADERS)
