"""Routes that list models and generate windows: as a stream of events, as JSON or as a file."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, closing
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, HTTPException, Query, Request
from fastapi.responses import Response, StreamingResponse

import gazediffusion as gd
from gazediffusion.web.jobs import Job, Steps
from gazediffusion.web.playground import Play, Playground, mailbox, received
from gazediffusion.web.requests import GenerationRequest, windows_with_events_json
from gazediffusion.web.schemas import (
    MEDIA_TYPES,
    GenerateRequest,
    GenerateResponse,
    GenerationFields,
    ModelsResponse,
    failures,
)
from gazediffusion.web.steering import Steering
from gazediffusion.web.steering_requests import read_steering, steered
from gazediffusion.web.streams import HEADERS, ReleasingResponse, event, event_schema
from gazediffusion.web.uploads import Upload

routes = APIRouter()
_FILE = {"schema": {"type": "string", "format": "binary"}}
WINDOWS: dict[str, Any] = {
    "description": "The windows; a file has a name",
    "model": GenerateResponse,
    "content": {kind: _FILE for kind in MEDIA_TYPES.values() if "json" not in kind},
}
_EVENTS = event_schema("queued", "started", "progress", "window", "done", "failed")


@routes.get("/models", summary="List the models", response_model=ModelsResponse)
async def models(play: Play) -> dict[str, Any]:
    """The models with their tasks, screens and lengths, and the limits of one request."""
    served = play.models.served.values()
    limits = play.settings.limits
    return {
        "models": [model.describe() for model in served],
        "default": play.models.default,
        "limits": {**vars(limits), "max_seconds": max(one.about.max_seconds for one in served)},
        "has_real": play.settings.real is not None,
        "version": gd.__version__,
    }


@routes.get(
    "/generate/stream",
    summary="Stream windows as they are generated",
    response_class=StreamingResponse,
    responses={
        200: {"description": "Server-sent events", "content": {"text/event-stream": _EVENTS}},
        **failures(422, 429),
    },
)
async def stream(
    fields: Annotated[GenerationFields, Query()], play: Play, request: Request
) -> Response:
    """Server-sent events: queued, started, progress, window, then done or failed. A window has its
    task, screen and events, fixations (position: the mean) and saccades (position: the end point)
    by threshold, or those of its labels. The job ends when the connection is closed."""
    requested = await asyncio.to_thread(
        GenerationRequest.of, fields, play.models, play.settings.limits
    )
    messages, listener = mailbox()
    card: dict[str, Any] = {}

    def work(job: Job) -> Steps:
        first = 0
        for piece in play.pieces(requested, job):
            if piece is None:  # the end of a turn within a long window
                yield None
                continue
            windows = requested.windows([piece], first)
            card.update(windows.provenance["card"])
            yield "".join(event("window", one) for one in windows_with_events_json(windows, first))
            first += len(windows)

    job = play.generation.submit(work, listener)

    async def events() -> AsyncIterator[str]:
        yield event("queued", {"job": job.id, "ahead": job.ahead})
        started = time.monotonic()
        async for kind, value in received(messages, request):
            if kind == "started":
                started = time.monotonic()
                yield event("started", {"job": job.id})
            elif kind == "progress":
                yield event("progress", {"done": value, "n": requested.n})
            elif kind == "result":
                yield value
            elif kind == "failed":
                yield event("failed", {"error": str(value)})
            else:
                done = {
                    "job": job.id,
                    "n": requested.n,
                    "seconds_taken": round(time.monotonic() - started, 3),
                    "command": requested.command(),
                    "python": requested.python(),
                    "card": card,
                }
                yield event("done", done)

    return ReleasingResponse(
        events(),
        lambda: play.generation.release(job),
        media_type="text/event-stream",
        headers=HEADERS,
    )


@routes.post(
    "/jobs/{job}/cancel",
    summary="Cancel a job",
    status_code=204,
    response_class=Response,
    responses=failures(404),
)
async def cancel(job: str, play: Play) -> Response:
    """The job's stream ends with `failed`, and its place in the queue is free."""
    if not play.cancel(job):
        raise HTTPException(404, f"there is no job {job!r}")
    return Response(status_code=204)


@routes.post(
    "/generate",
    summary="Generate windows as JSON or as a file",
    response_class=Response,
    responses={200: WINDOWS, **failures(400, 413, 422, 429)},
)
async def generate(
    fields: Annotated[GenerateRequest, Body()], play: Play, request: Request
) -> Response:
    """The same windows and the same bytes as the command line in the `done` event of
    /api/generate/stream. The response begins when all windows are generated. Files that steer
    windows go to /api/generate/upload."""
    tables = {"scanpath": fields.scanpath, "targets": fields.targets}
    uploads: dict[str, Upload] = {}
    with ExitStack() as stack:
        for name, text in tables.items():
            if text is not None:
                upload = Upload([(f"{name}.csv", io.BytesIO(text.encode()))], {})
                uploads[name] = stack.enter_context(closing(upload))
        return await windows_response(play, request, fields, fields.format, uploads)


async def windows_response(
    play: Playground,
    request: Request,
    fields: GenerationFields,
    named: str,
    uploads: Mapping[str, Upload],
    screen: gd.Screen | None = None,
) -> Response:
    """The windows of a request in a format, json or that of a file.

    uploads: scanpath, targets and like, where they are given. screen: of positions in pixels.
    """
    from gazediffusion.web.exports import chunks, export_file, export_json, file_name

    is_json = named == "json"
    format = "parquet" if is_json else named
    if uploads:
        steering = await read_steering(play, request, fields, uploads, screen)
        make = partial(steered, fields, play, format, steering)
        requested = await play.requested(request, make)
    else:
        given = (fields, play.models, play.settings.limits, format, Steering(screen=screen))
        requested = await asyncio.to_thread(GenerationRequest.of, *given)
    windows = await play.generate(requested, request)
    if is_json:
        content = await asyncio.to_thread(export_json, windows)
    else:
        content = await asyncio.to_thread(export_file, windows, format)
    disposition = f'attachment; filename="{file_name(requested, format)}"'
    return ReleasingResponse(
        chunks(content),
        content.close,
        media_type=MEDIA_TYPES[named],
        headers={} if is_json else {"Content-Disposition": disposition},
    )
