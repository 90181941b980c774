"""Routes that read recordings and compare them with synthetic windows.

Each of comparing and reporting exists twice: with one response at the end, and as a stream with
progress. Both do the same work.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, HTTPException, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

from gazediffusion.web import comparison
from gazediffusion.web.comparison_requests import ComparisonRequest, report_of
from gazediffusion.web.forms import UPLOAD_FAILURES, Files, Number, Reading, Text, stored
from gazediffusion.web.models import ServedModel
from gazediffusion.web.playground import Play, Playground
from gazediffusion.web.requests import GenerationRequest
from gazediffusion.web.schemas import (
    EMPTY_IS_NONE,
    EvaluationResponse,
    GenerationFields,
    RealResponse,
    failures,
)
from gazediffusion.web.streams import event_schema, streamed
from gazediffusion.web.worker import Report

routes = APIRouter()
# The report's own head states what it may load; the page's policy would forbid its script.
_REPORT_POLICY = "frame-ancestors 'none'"
_N_COMPARED = 32
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events",
        "content": {"text/event-stream": event_schema("queued", "progress", "done", "failed")},
    }
}


def _nothing(progress: dict[str, Any]) -> None:
    pass


async def _generation(
    play: Play,
    model: Text = None,
    task: Annotated[
        Text,
        Form(
            description="Of recorded windows whose own task the model does not have; the others "
            "are compared with synthetic windows of their own, in the same shares."
        ),
    ] = None,
    n: Annotated[
        int | None,
        EMPTY_IS_NONE,
        Form(description="Synthetic windows; default 32.", json_schema_extra={"minimum": 25}),
    ] = None,
    seed: Annotated[int, Form(json_schema_extra={"minimum": 0})] = 0,
    quality: Annotated[str, Form(json_schema_extra={"enum": ["default", "best"]})] = "default",
) -> GenerationFields:
    n = min(_N_COMPARED, play.settings.limits.max_windows) if n is None else n
    return GenerationFields(
        model=model, task=task, n=n, seed=seed, quality=quality, seconds=None, rate_hz=None
    )


Fields = Annotated[GenerationFields, Depends(_generation)]


@dataclass(frozen=True)
class Asked:
    """The valid form of a comparison; its files are stored when its work begins."""

    play: Playground
    request: Request
    fields: GenerationFields
    served: ServedModel
    files: list[UploadFile]
    settings: dict[str, Any]

    async def begun(self) -> ComparisonRequest:
        """The request with its files stored; the caller closes it."""
        upload = await stored(self.files, self.settings)
        return ComparisonRequest(self.play, self.request, self.fields, self.served, upload)


async def _asked(
    play: Play, request: Request, fields: Fields, settings: Reading, files: Files | None = None
) -> Asked:
    requested = await asyncio.to_thread(
        GenerationRequest.of, fields, play.models, play.settings.limits
    )
    return Asked(play, request, fields, requested.served, files or [], settings)


AskedFor = Annotated[Asked, Depends(_asked)]
Kept = Annotated[
    Text, Form(description="The id of a comparison made before; no other field is then needed.")
]


def _kept(play: Playground, name: str) -> bytes:
    evaluation = play.comparisons.find(name)
    if evaluation is None:
        raise HTTPException(404, "the comparison is no longer kept; compare again")
    return evaluation


_REAL: dict[str, Any] = {"response_model": RealResponse, "response_class": JSONResponse}


@routes.get(
    "/real", summary="Describe the recording of --real", responses=failures(404, 422, 429), **_REAL
)
async def served_real(
    play: Play,
    request: Request,
    model: Annotated[str | None, EMPTY_IS_NONE, Query()] = None,
    seconds: Annotated[float | None, EMPTY_IS_NONE, Query()] = None,
) -> Response:
    """The recording that `serve --real` was given, in windows of the model's length."""
    if play.settings.real is None:
        raise HTTPException(404, "the server was started without --real")
    served = play.models.find(model)
    kept = await play.served_real(served, request, _nothing)
    given = (kept, seconds, tuple(served.about.tasks))
    found = await play.compute(request, _nothing, False, comparison.describe, *given)
    return Response(found, media_type="application/json")


@routes.post("/real", summary="Describe a recording", responses=UPLOAD_FAILURES, **_REAL)
async def real(
    play: Play,
    request: Request,
    settings: Reading,
    files: Files,
    model: Text = None,
    seconds: Number = None,
) -> Response:
    """Cleaned, resampled and cut into windows of the model's length. Read in a temporary folder
    that is deleted before the response is sent; nothing is stored."""
    served = play.models.find(model)
    upload = await stored(files, settings)
    try:
        kept = await play.read(upload, served, request, _nothing)
        given = (kept, seconds, tuple(served.about.tasks))
        found = await play.compute(request, _nothing, True, comparison.describe, *given)
    finally:
        upload.close()
    return Response(found, media_type="application/json")


@routes.post(
    "/evaluate",
    summary="Compare synthetic windows with a recording",
    response_model=EvaluationResponse,
    responses=UPLOAD_FAILURES,
)
async def evaluate(asked: AskedFor) -> Response:
    """The result of `gazediffusion evaluate` for one synthetic set named `synthetic`, without the
    slow tests. Without files, the recording of --real is used. `comparison` is its id, for
    /api/report."""
    with contextlib.closing(await asked.begun()) as begun:
        return JSONResponse(await begun.compare(_nothing))


@routes.post(
    "/evaluate/stream",
    summary="Compare, with progress",
    response_class=StreamingResponse,
    responses={**_EVENTS, **UPLOAD_FAILURES},
)
async def evaluate_stream(asked: AskedFor) -> Response:
    """The same as /api/evaluate as server-sent events: queued, progress (stages reading,
    generating, comparing), then done or failed. The work ends when the connection is closed."""
    begun = await asked.begun()
    return streamed(asked.play, asked.request, begun.compare, begun.close)


@routes.post(
    "/report",
    summary="Write the full report of a comparison",
    response_class=Response,
    responses={
        200: {"description": "The page", "content": {"text/html": {"schema": {"type": "string"}}}},
        **UPLOAD_FAILURES,
        **failures(404),
    },
)
async def report(asked: AskedFor, comparison: Kept = None) -> Response:
    """One self-contained HTML page, as `gazediffusion evaluate` writes it: of a comparison made
    before, or of a new one."""
    work, close = await _report_work(asked, comparison)
    try:
        found = await work(_nothing)
    finally:
        close()
    return HTMLResponse(found["page"], headers={"Content-Security-Policy": _REPORT_POLICY})


@routes.post(
    "/report/stream",
    summary="Write the full report, with progress",
    response_class=StreamingResponse,
    responses={**_EVENTS, **UPLOAD_FAILURES, **failures(404)},
)
async def report_stream(asked: AskedFor, comparison: Kept = None) -> Response:
    """The same as /api/report as server-sent events: queued, progress (stages reading, generating,
    comparing, writing), then done, with the page, or failed."""
    work, close = await _report_work(asked, comparison)
    return streamed(asked.play, asked.request, work, close)


async def _report_work(
    asked: Asked, name: str | None
) -> tuple[Callable[[Report], Awaitable[dict[str, Any]]], Callable[[], None]]:
    """What writes the report, of a kept comparison or of a new one, and what is to be closed."""
    if name is None:
        begun = await asked.begun()
        return begun.report, begun.close
    evaluation = _kept(asked.play, name)

    async def work(report: Report) -> dict[str, Any]:
        page = await report_of(evaluation, asked.play, asked.request, report)
        return {**page, "comparison": name}

    return work, lambda: None
