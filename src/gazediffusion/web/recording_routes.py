"""Routes that give recordings back: with their gaps filled, or with labels of their events."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web import recordings
from gazediffusion.web.forms import UPLOAD_FAILURES, Files, Quality, Reading, Seed, Text, stored
from gazediffusion.web.models import ServedModel
from gazediffusion.web.playground import Play, Playground
from gazediffusion.web.schemas import MEDIA_TYPES
from gazediffusion.web.streams import ReleasingResponse
from gazediffusion.web.uploads import Upload

routes = APIRouter()
_FILE = {"schema": {"type": "string", "format": "binary"}}
Task = Annotated[
    Text, Form(description="Of the model; default: the recording's own where it has it.")
]
Eye = Annotated[str, Form(json_schema_extra={"enum": ["right", "left", "best"]})]
Before = Annotated[float, Form(description="Dropped before every loss.")]
After = Annotated[float, Form(description="Dropped after every loss.")]
MaxSpeed = Annotated[float, Form(description="Faster is no eye movement.")]
Format = Annotated[
    Text,
    Form(
        description="Of the response; default: the recordings' own where it is written (bids, "
        "asc, csv, parquet), else parquet.",
        json_schema_extra={"enum": ["csv", "parquet", None]},
    ),
]


def _described(header: str, content: str) -> dict[str, Any]:
    """The response in the OpenAPI description."""
    return {
        "description": f"The file, or a zip; {header}: {content} and warnings as JSON",
        "content": {MEDIA_TYPES["parquet"]: _FILE, "application/zip": _FILE},
    }


@routes.post(
    "/fill",
    summary="Fill blinks and losses of recordings",
    response_class=Response,
    responses={200: _described("X-Gazediffusion-Fill", "counts of gaps"), **UPLOAD_FAILURES},
)
async def fill(
    play: Play,
    request: Request,
    reading: Reading,
    files: Files,
    model: Annotated[Text, Form(description="A steerable model.")] = None,
    task: Task = None,
    seed: Seed = 0,
    quality: Quality = "default",
    draws: Annotated[
        int, Form(description="Courses of each gap; several are folders draw-1, draw-2 ...")
    ] = 1,
    max_gap_s: Annotated[float, Form(description="Longer gaps stay lost; padding counts.")] = 1.0,
    eye: Eye = "right",
    blink_before_ms: Before = 60.0,
    blink_after_ms: After = 100.0,
    max_speed_deg_s: MaxSpeed = 1000.0,
    format: Format = None,
) -> Response:
    """The files of `gazediffusion fill`: parquet as one file, which contains its card; others as a
    zip with card and README. Known samples are kept, filled ones are marked."""
    settings: dict[str, Any] = {
        "draws": draws,
        "seed": seed,
        "max_gap_s": max_gap_s,
        "task": task,
        "cleaning": _cleaning(eye, blink_before_ms, blink_after_ms, max_speed_deg_s),
        "quality": quality,
    }
    _require_format(format)
    if format is not None and draws > 1:
        raise GazeError("several `draws` are sent as folders", remedy="leave out `format`")
    served, loaded = await _loaded(play, model)
    loaded.filler(**settings)  # invalid settings are refused before anything is read
    with contextlib.closing(await stored(files, reading)) as upload:
        given = (recordings.fill, "filled", served, format, settings)
        return await _written(play, request, upload, *given, f"filled-seed{seed}", "Fill")


@routes.post(
    "/label",
    summary="Label the events of recordings",
    response_class=Response,
    responses={200: _described("X-Gazediffusion-Label", "samples by class"), **UPLOAD_FAILURES},
)
async def label(
    play: Play,
    request: Request,
    reading: Reading,
    files: Files,
    model: Annotated[Text, Form(description="A model with labels.")] = None,
    eye: Eye = "right",
    blink_before_ms: Before = 60.0,
    blink_after_ms: After = 100.0,
    max_speed_deg_s: MaxSpeed = 1000.0,
    format: Format = None,
) -> Response:
    """The files of `gazediffusion label`, as those of /api/fill: every sample is labelled as
    fixation, saccade, pursuit or noise. Gaze is kept."""
    cleaning = _cleaning(eye, blink_before_ms, blink_after_ms, max_speed_deg_s)
    settings: dict[str, Any] = {"cleaning": cleaning}
    _require_format(format)
    served, loaded = await _loaded(play, model)
    loaded.labeller(**settings)  # a model without labels is refused before anything is read
    with contextlib.closing(await stored(files, reading)) as upload:
        given = (recordings.label, "labelled", served, format, settings)
        return await _written(play, request, upload, *given, "labelled", "Label")


def _cleaning(eye: str, before_ms: float, after_ms: float, speed_deg_s: float) -> gd.CleaningConfig:
    return gd.CleaningConfig(
        eye=eye,  # type: ignore[arg-type]  # checked by the config itself
        blink_before_ms=before_ms,
        blink_after_ms=after_ms,
        max_speed_deg_s=speed_deg_s,
    )


def _require_format(format: str | None) -> None:
    if format not in (None, "csv", "parquet"):
        raise GazeError(f"`format` must be csv or parquet, not {format!r}")


async def _loaded(play: Playground, model: str | None) -> tuple[ServedModel, gd.Model]:
    served = play.models.find(model)
    return served, await asyncio.to_thread(play.models.load, served)


async def _written(
    play: Playground,
    request: Request,
    upload: Upload,
    function: Callable[..., bytes],
    done: str,
    served: ServedModel,
    format: str | None,
    settings: dict[str, Any],
    name: str,
    header: str,
) -> Response:
    """What a function of the worker writes of an upload, as one file.

    done: name of the output without its ending. name: of the file that is sent.
    """
    from gazediffusion.web.exports import chunks, recordings_file

    output = upload.output / (done if format is None else f"{done}.{format}")
    about = await play.write(function, upload, request, output, served.about.source, settings)
    content, ending = await asyncio.to_thread(recordings_file, output)
    headers = {
        "Content-Disposition": f'attachment; filename="{name}.{ending}"',
        f"X-Gazediffusion-{header}": json.dumps(json.loads(about)),
    }
    kind = MEDIA_TYPES["parquet"] if ending == "parquet" else "application/zip"
    return ReleasingResponse(chunks(content), content.close, media_type=kind, headers=headers)
