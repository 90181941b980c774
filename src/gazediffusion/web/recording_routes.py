"""Routes of recordings and a model: gaps filled, events labelled, synthetic ones, scores."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Form, Request, UploadFile
from fastapi.responses import Response

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web.forms import (
    UPLOAD_FAILURES,
    Files,
    Number,
    Quality,
    Reading,
    Seed,
    Text,
    stored,
)
from gazediffusion.web.models import ServedModel
from gazediffusion.web.playground import Play, Playground
from gazediffusion.web.recordings import Kind
from gazediffusion.web.schemas import EMPTY_IS_NONE, MEDIA_TYPES
from gazediffusion.web.streams import ReleasingResponse

routes = APIRouter()
_FILE = {"schema": {"type": "string", "format": "binary"}}
Task = Annotated[
    Text, Form(description="Of the model; default: the recording's own where it has it.")
]
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


def _cleaning(
    eye: Annotated[str, Form(json_schema_extra={"enum": ["right", "left", "best"]})] = "right",
    blink_before_ms: Annotated[float, Form(description="Dropped before every loss.")] = 60.0,
    blink_after_ms: Annotated[float, Form(description="Dropped after every loss.")] = 100.0,
    max_speed_deg_s: Annotated[float, Form(description="Faster is no eye movement.")] = 1000.0,
) -> gd.CleaningConfig:
    return gd.CleaningConfig(
        eye=eye,  # type: ignore[arg-type]  # checked by the config itself
        blink_before_ms=blink_before_ms,
        blink_after_ms=blink_after_ms,
        max_speed_deg_s=max_speed_deg_s,
    )


Cleaning = Annotated[gd.CleaningConfig, Depends(_cleaning)]


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
    cleaning: Cleaning,
    files: Files,
    model: Annotated[Text, Form(description="A steerable model.")] = None,
    task: Task = None,
    seed: Seed = 0,
    quality: Quality = "default",
    draws: Annotated[
        int, Form(description="Courses of each gap; several are folders draw-1, draw-2 ...")
    ] = 1,
    max_gap_s: Annotated[float, Form(description="Longer gaps stay lost; padding counts.")] = 1.0,
    format: Format = None,
) -> Response:
    """The files of `gazediffusion fill`: parquet as one file, which contains its card; others as a
    zip with card and README. Known samples are kept, filled ones are marked."""
    settings: dict[str, Any] = {
        "draws": draws,
        "seed": seed,
        "max_gap_s": max_gap_s,
        "task": task,
        "cleaning": cleaning,
        "quality": quality,
    }
    _require_format(format)
    if format is not None and draws > 1:
        raise GazeError("several `draws` are sent as folders", remedy="leave out `format`")
    served, loaded = await _loaded(play, model)
    loaded.filler(**settings)  # invalid settings are refused before anything is read
    how = _How("fill", "filled", f"filled-seed{seed}", format, settings)
    return await _written(play, request, files, reading, served, how)


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
    cleaning: Cleaning,
    files: Files,
    model: Annotated[Text, Form(description="A model with labels.")] = None,
    format: Format = None,
) -> Response:
    """The files of `gazediffusion label`, as those of /api/fill: every sample is labelled as
    fixation, saccade, pursuit or noise. Gaze is kept."""
    settings: dict[str, Any] = {"cleaning": cleaning}
    _require_format(format)
    served, loaded = await _loaded(play, model)
    loaded.labeller(**settings)  # a model without labels is refused before anything is read
    how = _How("label", "labelled", "labelled", format, settings)
    return await _written(play, request, files, reading, served, how)


@routes.post(
    "/augment",
    summary="Generate recordings in the style of a study's participants",
    response_class=Response,
    responses={
        200: _described("X-Gazediffusion-Augment", "numbers of recordings and participants"),
        **UPLOAD_FAILURES,
    },
)
async def augment(
    play: Play,
    request: Request,
    reading: Reading,
    cleaning: Cleaning,
    files: Files,
    model: Annotated[Text, Form(description="A model with summary statistics.")] = None,
    times: Annotated[int, Form(description="Synthetic recordings of each recording.")] = 5,
    task: Annotated[Text, Form(description="Of the model, where it lacks the study's.")] = None,
    losses: Annotated[bool, Form(description="Add blinks and losses of the eye.")] = False,
    labels: Annotated[
        bool | None,
        EMPTY_IS_NONE,
        Form(description="Add the event class of every sample; default: where the study has it."),
    ] = None,
    held_out: Annotated[
        list[str] | None,
        Form(description="Participants who are not augmented; default: the split of `prepare`."),
    ] = None,
    val_fraction: Annotated[float, Form(description="Of participants held out.")] = 0.2,
    split_seed: Seed = 42,
    seed: Seed = 0,
    quality: Quality = "default",
    format: Format = None,
) -> Response:
    """The files of `gazediffusion augment`, as those of /api/fill: synthetic recordings in the
    style of each participant who is not held out. They do not contain the study."""
    settings: dict[str, Any] = {
        "times": times,
        "task": task,
        "losses": losses,
        "labels": labels,
        "held_out": [name for name in held_out or [] if name] or None,
        "validation_fraction": val_fraction,
        "split_seed": split_seed,
        "seed": seed,
        "cleaning": cleaning,
        "quality": quality,
    }
    _require_format(format)
    served, loaded = await _loaded(play, model)
    loaded.augmenter(**settings)  # invalid settings are refused before anything is read
    how = _How("augment", "augmented", f"augmented-seed{seed}", format, settings)
    return await _written(play, request, files, reading, served, how)


@routes.post(
    "/score",
    summary="Score the windows of recordings: which are odd to a model",
    response_class=Response,
    responses={
        200: _described("X-Gazediffusion-Score", "number of windows, coverage"),
        **UPLOAD_FAILURES,
    },
)
async def score(
    play: Play,
    request: Request,
    reading: Reading,
    cleaning: Cleaning,
    files: Files,
    model: Annotated[Text, Form(description="A joint or steerable model.")] = None,
    task: Task = None,
    likelihood: Annotated[bool, Form(description="It takes most of the time.")] = False,
    stride_s: Annotated[Number, Form(description="Between windows; default: their length.")] = None,
    seed: Seed = 0,
    format: Format = None,
) -> Response:
    """The table of `gazediffusion score`, a row for each window: parquet, which contains its card,
    or csv as a zip with its card."""
    settings: dict[str, Any] = {
        "task": task,
        "has_likelihood": likelihood,
        "stride_s": stride_s,
        "seed": seed,
        "cleaning": cleaning,
    }
    _require_format(format)
    served, _ = await _loaded(play, model)
    how = _How("score", "scores", f"scores-seed{seed}", format or "parquet", settings)
    return await _written(play, request, files, reading, served, how)


class _How(NamedTuple):
    """What is done with an upload.

    done: name of the output without its ending. name: of the file that is sent, without ending.
    """

    kind: Kind
    done: str
    name: str
    format: str | None
    settings: dict[str, Any]


def _require_format(format: str | None) -> None:
    if format not in (None, "csv", "parquet"):
        raise GazeError(f"`format` must be csv or parquet, not {format!r}")


async def _loaded(play: Playground, model: str | None) -> tuple[ServedModel, gd.Model]:
    served = play.models.find(model)
    return served, await asyncio.to_thread(play.models.load, served)


async def _written(
    play: Playground,
    request: Request,
    files: Sequence[UploadFile],
    reading: dict[str, Any],
    served: ServedModel,
    how: _How,
) -> Response:
    """What the worker writes of an upload, as one file."""
    from gazediffusion.web.exports import chunks, recordings_file

    with contextlib.closing(await stored(files, reading)) as upload:
        output = upload.output / (how.done if how.format is None else f"{how.done}.{how.format}")
        source = served.about.source
        about = await play.write(upload, request, how.kind, output, source, how.settings)
        content, ending = await asyncio.to_thread(recordings_file, output)
    headers = {
        "Content-Disposition": f'attachment; filename="{how.name}.{ending}"',
        f"X-Gazediffusion-{how.kind.title()}": json.dumps(json.loads(about)),
    }
    kind = MEDIA_TYPES["parquet"] if ending == "parquet" else "application/zip"
    return ReleasingResponse(chunks(content), content.close, media_type=kind, headers=headers)
