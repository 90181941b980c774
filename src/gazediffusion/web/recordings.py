"""What a model gives of recordings: filled, labelled, augmented, scored.

Reading and computing alternate, so both are done by `write` in a worker of its own, on the CPU. A
model is loaded there at its first use.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web.generate import file_response, packed
from gazediffusion.web.queue import Job, Steps
from gazediffusion.web.schemas import (
    FILE,
    MEDIA_TYPES,
    AugmentForm,
    FillForm,
    RecordingForm,
    ScoreForm,
    failures,
)
from gazediffusion.web.state import Play
from gazediffusion.web.uploads import require_all_bounds
from gazediffusion.web.worker import Report

routes = APIRouter()
Kind = Literal["fill", "label", "augment", "score"]


class _Work(NamedTuple):
    """What windows are counted of, how to ask for fewer, and what is said of the result.

    check: the method of a model that refuses invalid settings.
    """

    check: str | None
    counted: str
    remedy: str
    about: Callable[[Any], dict[str, Any]]


def _augmented(written: Any) -> dict[str, Any]:
    rows = written.card["participants"]
    return {
        "n_recordings": written.card["times"] * sum(row["recordings"] for row in rows),
        "n_participants": len({row["participant"] for row in rows}),
        "n_held_out": len(written.card["split"]["held_out"]),
        "warnings": written.warnings,
    }


_WORKS: dict[Kind, _Work] = {
    "fill": _Work(
        "filler",
        "the gaps are filled",
        "send fewer recordings or ask for fewer `draws`",
        lambda written: {"counts": asdict(written.counts), "warnings": written.warnings},
    ),
    "label": _Work(
        "labeller",
        "the recordings are labelled",
        "send fewer or shorter recordings",
        lambda written: {"n_samples": written.n_samples, "warnings": written.warnings},
    ),
    "augment": _Work(
        "augmenter",
        "the recordings are generated",
        "send fewer or shorter recordings or ask for fewer `times`",
        _augmented,
    ),
    "score": _Work(
        None,
        "the recordings are scored",
        "send fewer or shorter recordings or ask for a longer `stride_s`",
        lambda scores: {
            "n_windows": len(scores),
            "coverage": asdict(scores.coverage),
            "warnings": list(scores.notes),
        },
    ),
}


def write(
    source: Path,
    reading: dict[str, Any],
    kind: Kind,
    output: Path,
    model: str,
    settings: dict[str, Any],
    max_windows: int,
    max_bytes: int,
    report: Report,
) -> bytes:
    """Write what a model gives of recordings; what is said of it as JSON.

    output: of the function of this name in `gazediffusion`; its folder is created.
    """
    work = _WORKS[kind]

    def progress(phase: str, done: float, total: float, note: str = "") -> None:
        if phase == "reading":
            return
        if total > max_windows:
            raise GazeError(
                f"{work.counted} in {total:g} windows, and {max_windows} are the most here",
                remedy=f"{work.remedy}; the limit is `max_windows` of the server",
            )
        report({"stage": "generating", "done": done, "n": total})

    require_all_bounds(source, max_bytes)
    output.parent.mkdir()
    recordings = gd.read(source, **reading)
    written = getattr(gd, kind)(recordings, output, _loaded(model), progress=progress, **settings)
    return json.dumps(work.about(written)).encode()


@lru_cache(maxsize=2)
def _loaded(model: str) -> gd.Model:
    return gd.load(model, device="cpu")


def _described(header: str, content: str) -> dict[int | str, dict[str, Any]]:
    """The responses in the OpenAPI description."""
    found = {
        "description": f"The file, or a zip; {header}: {content} and warnings as JSON",
        "content": {MEDIA_TYPES["parquet"]: FILE, "application/zip": FILE},
    }
    return {200: found, **failures(400, 408, 413, 422, 429)}


_FORM = Form(media_type="multipart/form-data")


@routes.post(
    "/fill",
    summary="Fill blinks and losses of recordings",
    response_class=Response,
    responses=_described("X-Gazediffusion-Fill", "counts of gaps"),
)
async def fill(play: Play, request: Request, form: Annotated[FillForm, _FORM]) -> Response:
    """The files of `gazediffusion fill`: parquet as one file, which contains its card; others as a
    zip with card and README. Known samples are kept, filled ones are marked."""
    if form.format is not None and form.draws > 1:
        raise GazeError("several `draws` are sent as folders", remedy="leave out `format`")
    return await _written(play, request, form, "fill", "filled", f"filled-seed{form.seed}")


@routes.post(
    "/label",
    summary="Label the events of recordings",
    response_class=Response,
    responses=_described("X-Gazediffusion-Label", "samples by class"),
)
async def label(play: Play, request: Request, form: Annotated[RecordingForm, _FORM]) -> Response:
    """The files of `gazediffusion label`, as those of /api/fill: every sample is labelled as
    fixation, saccade, pursuit or noise. Gaze is kept."""
    return await _written(play, request, form, "label", "labelled", "labelled")


@routes.post(
    "/augment",
    summary="Generate recordings in the style of a study's participants",
    response_class=Response,
    responses=_described("X-Gazediffusion-Augment", "numbers of recordings and participants"),
)
async def augment(play: Play, request: Request, form: Annotated[AugmentForm, _FORM]) -> Response:
    """The files of `gazediffusion augment`, as those of /api/fill: synthetic recordings in the
    style of each participant who is not held out. They do not contain the study."""
    return await _written(play, request, form, "augment", "augmented", f"augmented-seed{form.seed}")


@routes.post(
    "/score",
    summary="Score the windows of recordings: which are odd to a model",
    response_class=Response,
    responses=_described("X-Gazediffusion-Score", "number of windows, coverage"),
)
async def score(play: Play, request: Request, form: Annotated[ScoreForm, _FORM]) -> Response:
    """The table of `gazediffusion score`, a row for each window: parquet, which contains its card,
    or csv as a zip with its card."""
    form.format = form.format or "parquet"
    return await _written(play, request, form, "score", "scores", f"scores-seed{form.seed}")


async def _written(
    play: Play, request: Request, form: RecordingForm, kind: Kind, done: str, name: str
) -> Response:
    """What the worker writes of an upload, as one file: parquet, or anything else as a zip.

    done: name of the output without its ending. name: of the file that is sent, likewise.
    """
    reading, settings = form.reading, form.settings
    if form.format not in (None, "csv", "parquet"):
        raise GazeError(f"`format` must be csv or parquet, not {form.format!r}")
    served, model = await play.loaded(form.model)
    if (check := _WORKS[kind].check) is not None:
        getattr(model, check)(**settings)  # invalid settings are refused before anything is read
    limits = (play.settings.limits.max_windows, play.max_bytes)
    with contextlib.closing(await play.stored(form.files, reading)) as upload:
        output = upload.output / (done if form.format is None else f"{done}.{form.format}")
        how = (kind, output, served.about.source, settings)

        def work(job: Job) -> Steps:
            given = (upload.source, reading, *how, *limits)
            yield play.recorder.call(job, True, write, *given)

        with upload.naming_errors():
            about = await play.result(play.recordings, work, request)
        tables = [output / "recordings.parquet", output.with_suffix(".parquet")]
        path = next((one for one in tables if one.is_file()), None)
        content = await asyncio.to_thread(packed, output.parent, path)
    headers = {f"X-Gazediffusion-{kind.title()}": about.decode()}
    if path is None:
        return file_response(content, "application/zip", f"{name}.zip", headers)
    return file_response(content, MEDIA_TYPES["parquet"], f"{name}.parquet", headers)
