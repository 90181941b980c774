"""The fields that forms with recordings share, and their files in a folder."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends, File, Form, UploadFile

import gazediffusion as gd
from gazediffusion.web.schemas import EMPTY_IS_NONE, failures
from gazediffusion.web.uploads import Upload

UPLOAD_FAILURES = failures(400, 408, 413, 422, 429)

Files = Annotated[
    list[UploadFile],
    File(
        description="Recordings in any format that `gazediffusion inspect` reads; a name may "
        "contain folders."
    ),
]
Text = Annotated[str | None, EMPTY_IS_NONE, Form()]
Number = Annotated[float | None, EMPTY_IS_NONE, Form()]
Quality = Annotated[str, Form(json_schema_extra={"enum": ["default", "best"]})]
Seed = Annotated[int, Form(json_schema_extra={"minimum": 0})]


def _reading(
    screen: Annotated[Text, Form(description="Pixels, such as 1280x720.")] = None,
    screen_cm: Annotated[Text, Form(description="Centimetres, such as 40x22.5.")] = None,
    distance_cm: Annotated[Number, Form(description="Distance between eye and screen.")] = None,
    override_screen: Annotated[
        bool | None, EMPTY_IS_NONE, Form(description="Use `screen` even if a file differs.")
    ] = None,
    unit: Annotated[
        Text, Form(description="Unit of gaze.", json_schema_extra={"enum": ["px", "deg", "norm"]})
    ] = None,
    origin: Annotated[
        Text,
        Form(
            description="Origin; y points down in the first two, up in the others.",
            json_schema_extra={"enum": ["top-left", "center", "center-up", "bottom-left"]},
        ),
    ] = None,
    columns: Annotated[Text, Form(description="Such as x=GazeX,y=GazeY,t=Time.")] = None,
    source_rate: Annotated[Number, Form(description="Rate without time column, Hz.")] = None,
) -> dict[str, Any]:
    return {
        "screen": gd.Screen.parse(screen, screen_cm, distance_cm),
        "override_screen": bool(override_screen),
        "columns": columns,
        "unit": unit,
        "origin": origin,
        "source_rate_hz": source_rate,
    }


Reading = Annotated[dict[str, Any], Depends(_reading)]


async def stored(files: Sequence[UploadFile], settings: dict[str, Any]) -> Upload:
    """The files of a request in a folder; the caller closes it."""
    contents = [(file.filename or "", file.file) for file in files]
    return await asyncio.to_thread(Upload, contents, settings)
