"""Routes that read recordings and compare them with synthetic windows."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, HTTPException, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, JSONResponse, Response

import gazediffusion as gd
from gazediffusion.web.comparison import Comparison, RealWindows, describe, read_real
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
from gazediffusion.web.uploads import stored

routes = APIRouter()
# The report's own head states what it may load; the page's policy would forbid its script.
_REPORT_POLICY = "frame-ancestors 'none'"
_N_COMPARED = 32
_UPLOAD_FAILURES = failures(400, 413, 422, 429)

Uploads = list[UploadFile]
Files = Annotated[
    Uploads, File(description="Recordings in any format that `gazediffusion inspect` reads.")
]
Text = Annotated[str | None, EMPTY_IS_NONE, Form()]
Number = Annotated[float | None, EMPTY_IS_NONE, Form()]


def _screen(
    screen: Annotated[Text, Form(description="As 1280x720, if the file does not state it.")] = None,
    screen_cm: Annotated[Text, Form(description="As 40x22.5.")] = None,
    distance_cm: Annotated[Number, Form(description="From eye to screen.")] = None,
) -> gd.Screen | None:
    return gd.Screen.parse(screen, screen_cm, distance_cm)


async def _generation(
    play: Play,
    model: Text = None,
    task: Text = None,
    n: Annotated[
        int | None,
        EMPTY_IS_NONE,
        Form(description="Synthetic windows; default 32.", json_schema_extra={"minimum": 1}),
    ] = None,
    seed: Annotated[int, Form(json_schema_extra={"minimum": 0})] = 0,
    quality: Annotated[
        str, Form(json_schema_extra={"enum": ["fast", "default", "best"]})
    ] = "default",
) -> GenerationFields:
    n = min(_N_COMPARED, play.settings.limits.max_windows) if n is None else n
    return GenerationFields(model=model, task=task, n=n, seed=seed, quality=quality, seconds=None)


RecordedOn = Annotated[gd.Screen | None, Depends(_screen)]
Fields = Annotated[GenerationFields, Depends(_generation)]


def _read(
    play: Playground, files: list[UploadFile] | None, screen: gd.Screen | None, model: ServedModel
) -> RealWindows:
    """The recordings of a request, or else those that the server was started with."""
    if not files:
        return play.served_real(model)
    contents = [(file.filename or "", file.file) for file in files]
    with stored(contents, play.settings.limits.max_upload_bytes) as paths:
        return read_real(paths, screen, model.about)


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
    return JSONResponse(
        await play.compute(lambda: describe(play.served_real(served), seconds), request)
    )


@routes.post("/real", summary="Describe a recording", responses=_UPLOAD_FAILURES, **_REAL)
async def real(
    play: Play,
    request: Request,
    screen: RecordedOn,
    files: Files,
    model: Text = None,
    seconds: Number = None,
) -> Response:
    """Cleaned, resampled and cut into windows of the model's length. Read in a temporary folder
    that is deleted before the response is sent; nothing is stored."""
    served = play.models.find(model)
    return JSONResponse(
        await play.compute(lambda: describe(_read(play, files, screen, served), seconds), request)
    )


@routes.post(
    "/evaluate",
    summary="Compare synthetic windows with a recording",
    response_model=EvaluationResponse,
    responses=_UPLOAD_FAILURES,
)
async def evaluate(
    play: Play, request: Request, fields: Fields, screen: RecordedOn, files: Files | None = None
) -> Response:
    """The result of `gazediffusion evaluate --quick` for one synthetic set named `synthetic`.
    Without files, the recording of --real is used."""
    comparison = await _compare(play, request, fields, files, screen)
    return JSONResponse(comparison.to_json())


@routes.post(
    "/report",
    summary="Write the full report of a comparison",
    response_class=Response,
    responses={
        200: {"description": "The page", "content": {"text/html": {"schema": {"type": "string"}}}},
        **_UPLOAD_FAILURES,
    },
)
async def report(
    play: Play, request: Request, fields: Fields, screen: RecordedOn, files: Files | None = None
) -> Response:
    """One self-contained HTML page, as `gazediffusion evaluate` writes it."""
    comparison = await _compare(play, request, fields, files, screen)
    page = await play.compute(comparison.to_html, request)
    return HTMLResponse(page, headers={"Content-Security-Policy": _REPORT_POLICY})


async def _compare(
    play: Playground,
    request: Request,
    fields: GenerationFields,
    files: list[UploadFile] | None,
    screen: gd.Screen | None,
) -> Comparison:
    """The comparison of a request. The recording is read first: an invalid one fails early."""
    requested = await asyncio.to_thread(
        GenerationRequest.of, fields, play.models, play.settings.limits
    )
    real = await play.compute(lambda: _read(play, files, screen, requested.served), request)
    synthetic = await play.generate(requested, request)
    return await play.compute(lambda: Comparison.of(real, synthetic), request)
