"""Routes with files that steer generation, and the one that fills the gaps of recordings."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import Response

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web.forms import UPLOAD_FAILURES, Files, Number, Reading, Text, stored
from gazediffusion.web.generation_routes import WINDOWS, windows_response
from gazediffusion.web.playground import Play
from gazediffusion.web.schemas import EMPTY_IS_NONE, MEDIA_TYPES, GenerationFields
from gazediffusion.web.streams import ReleasingResponse
from gazediffusion.web.uploads import Upload

routes = APIRouter()
Quality = Annotated[str, Form(json_schema_extra={"enum": ["fast", "default", "best"]})]
Seed = Annotated[int, Form(json_schema_extra={"minimum": 0})]
Table = Annotated[UploadFile | None, EMPTY_IS_NONE]
_FORMATS = {"enum": ["json", "parquet", "csv", "npz", "bids", "asc"]}
_FILE = {"schema": {"type": "string", "format": "binary"}}
_FILLED: dict[str, Any] = {
    "description": "The file, or a zip; X-Gazediffusion-Fill: counts of gaps and warnings as JSON",
    "content": {MEDIA_TYPES["parquet"]: _FILE, "application/zip": _FILE},
}


@routes.post(
    "/generate/upload",
    summary="Generate windows that are steered by files",
    response_class=Response,
    responses={200: WINDOWS, **UPLOAD_FAILURES},
)
async def generate_upload(
    play: Play,
    request: Request,
    reading: Reading,
    scanpath: Annotated[
        Table,
        File(
            description="A table of fixations that windows make: x, y, and onset or duration where "
            "they are known. Window k takes scanpath k."
        ),
    ] = None,
    targets: Annotated[
        Table,
        File(description="A table of when a target jumps where: time, x, y."),
    ] = None,
    like: Annotated[
        list[UploadFile] | None,
        File(description="A recording of one participant, or a windows file: its style is taken."),
    ] = None,
    at: Annotated[
        list[str] | None, Form(description="Waypoints SECONDS:X,Y in pixels; may be repeated.")
    ] = None,
    start: Annotated[Text, Form(description="Where gaze begins, X,Y in pixels.")] = None,
    model: Text = None,
    task: Annotated[
        Text, Form(description="Of all windows; what the recording of `like` is taken for.")
    ] = None,
    n: Annotated[
        int | None,
        EMPTY_IS_NONE,
        Form(description="Windows; default: one for each scanpath or target, or 6."),
    ] = None,
    seed: Seed = 0,
    quality: Quality = "default",
    seconds: Annotated[Number, Form(description="Length of every window.")] = None,
    rate_hz: Annotated[Number, Form(description="Low-pass and bring to this rate.")] = None,
    losses: Annotated[
        bool | None, EMPTY_IS_NONE, Form(description="Add blinks and losses of the eye.")
    ] = None,
    format: Annotated[str, Form(json_schema_extra=_FORMATS)] = "json",
) -> Response:
    """The windows of `gazediffusion generate` with `scanpath`, `targets` and `like` as files.
    Pixels are those of `screen`, or of the task's screen, on which the windows are in any case.
    `screen`, `unit`, `origin`, `columns` and `source_rate` say what the files do not state."""
    fields = GenerationFields(
        model=model,
        task=task,
        **({} if n is None else {"n": n}),
        seed=seed,
        quality=quality,
        seconds=seconds,
        rate_hz=rate_hz,
        losses=bool(losses),
        at=at or [],
        start=start,
    )
    sent = {
        "scanpath": [scanpath] if scanpath else [],
        "targets": [targets] if targets else [],
        "like": like or [],
    }
    uploads: dict[str, Upload] = {}
    with contextlib.ExitStack() as stack:
        for name, files in sent.items():
            if files:
                uploads[name] = stack.enter_context(
                    contextlib.closing(await stored(files, reading))
                )
        return await windows_response(play, request, fields, format, uploads, reading["screen"])


@routes.post(
    "/fill",
    summary="Fill blinks and losses of recordings",
    response_class=Response,
    responses={200: _FILLED, **UPLOAD_FAILURES},
)
async def fill(
    play: Play,
    request: Request,
    reading: Reading,
    files: Files,
    model: Annotated[Text, Form(description="A steerable model.")] = None,
    task: Annotated[
        Text, Form(description="Of the model; default: the recording's own where it has it.")
    ] = None,
    seed: Seed = 0,
    quality: Quality = "default",
    draws: Annotated[
        int, Form(description="Courses of each gap; several are folders draw-1, draw-2 ...")
    ] = 1,
    max_gap_s: Annotated[float, Form(description="Longer gaps stay lost; padding counts.")] = 1.0,
    eye: Annotated[str, Form(json_schema_extra={"enum": ["right", "left", "best"]})] = "right",
    blink_before_ms: Annotated[float, Form(description="Dropped before every loss.")] = 60.0,
    blink_after_ms: Annotated[float, Form(description="Dropped after every loss.")] = 100.0,
    max_speed_deg_s: Annotated[float, Form(description="Faster is no eye movement.")] = 1000.0,
    format: Annotated[
        Text,
        Form(
            description="Of the response; default: the recordings' own where it is written (bids, "
            "asc, csv, parquet), else parquet.",
            json_schema_extra={"enum": ["csv", "parquet", None]},
        ),
    ] = None,
) -> Response:
    """The files of `gazediffusion fill`: parquet as one file, which contains its card; others as a
    zip with card and README. Known samples are kept, filled ones are marked."""
    from gazediffusion.web.exports import chunks, filled_file

    settings: dict[str, Any] = {
        "draws": draws,
        "seed": seed,
        "max_gap_s": max_gap_s,
        "task": task,
        "cleaning": gd.CleaningConfig(
            eye=eye,  # type: ignore[arg-type]  # checked by the config itself
            blink_before_ms=blink_before_ms,
            blink_after_ms=blink_after_ms,
            max_speed_deg_s=max_speed_deg_s,
        ),
        "quality": quality,
    }
    if format not in (None, "csv", "parquet"):
        raise GazeError(f"`format` must be csv or parquet, not {format!r}")
    if format is not None and draws > 1:
        raise GazeError("several `draws` are sent as folders", remedy="leave out `format`")
    served = play.models.find(model)
    loaded = await asyncio.to_thread(play.models.load, served)
    loaded.filler(**settings)  # invalid settings are refused before anything is read
    with contextlib.closing(await stored(files, reading)) as upload:
        about = await play.fill(upload, request, served.about.source, format, settings)
        content, ending = await asyncio.to_thread(filled_file, upload.filled)
    name = f"filled-seed{seed}.{ending}"
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Gazediffusion-Fill": json.dumps(json.loads(about)),
    }
    kind = MEDIA_TYPES["parquet"] if ending == "parquet" else "application/zip"
    return ReleasingResponse(chunks(content), content.close, media_type=kind, headers=headers)
