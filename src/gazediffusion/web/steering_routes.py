"""The route with files that steer generation."""

from __future__ import annotations

import contextlib
from typing import Annotated

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import Response

from gazediffusion.web.forms import (
    UPLOAD_FAILURES,
    Number,
    Quality,
    Reading,
    Seed,
    Text,
    stored,
)
from gazediffusion.web.generation_routes import WINDOWS, windows_response
from gazediffusion.web.playground import Play
from gazediffusion.web.schemas import EMPTY_IS_NONE, UploadFields
from gazediffusion.web.uploads import Upload

routes = APIRouter()
Table = Annotated[UploadFile | None, EMPTY_IS_NONE]
_FORMATS = {"enum": ["json", "parquet", "csv", "npz", "bids", "asc"]}


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
    candidates: Annotated[
        int | None,
        EMPTY_IS_NONE,
        Form(
            description="Number of candidates per window of `like`; the closest ones are kept; "
            "default: 8."
        ),
    ] = None,
    at: Annotated[
        list[str] | None, Form(description="Waypoints SECONDS:X,Y in pixels; may be repeated.")
    ] = None,
    start: Annotated[Text, Form(description="Where gaze begins, X,Y in pixels.")] = None,
    model: Text = None,
    task: Annotated[
        Text, Form(description="Task of all windows, and of the recording `like`.")
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
    labels: Annotated[
        bool | None,
        EMPTY_IS_NONE,
        Form(description="Add the event class of every sample."),
    ] = None,
    format: Annotated[str, Form(json_schema_extra=_FORMATS)] = "json",
) -> Response:
    """The windows of `gazediffusion generate` with `scanpath`, `targets` and `like` as files.
    Pixels are those of `screen`, or of the task's screen, on which the windows are in any case.
    `screen`, `unit`, `origin`, `columns` and `source_rate` say what the files do not state."""
    fields = UploadFields(
        model=model,
        task=task,
        **({} if n is None else {"n": n}),
        seed=seed,
        quality=quality,
        seconds=seconds,
        rate_hz=rate_hz,
        losses=bool(losses),
        labels=labels or False,
        at=at or [],
        start=start,
        candidates=candidates,
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
