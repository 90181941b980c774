"""A request with tables or recordings that steer its windows: read first, then checked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from fastapi import Request

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web.jobs import log
from gazediffusion.web.playground import Playground
from gazediffusion.web.requests import GenerationRequest
from gazediffusion.web.schemas import GenerationFields
from gazediffusion.web.steering import Steering, scanpaths_of, targets_of
from gazediffusion.web.uploads import Upload


async def read_steering(
    play: Playground,
    request: Request,
    fields: GenerationFields,
    uploads: Mapping[str, Upload],
    screen: gd.Screen | None,
) -> Steering:
    """What the uploads scanpath, targets and like contain; read by the worker.

    screen: of positions in pixels; None is that of the task.
    """
    served = play.models.find(fields.model)
    model = await asyncio.to_thread(play.models.load, served)
    given: dict[str, Any] = {}
    if uploads.keys() & {"scanpath", "targets"}:
        on = screen or model.screen_of(fields.task)
        for kind, made in (("scanpath", scanpaths_of), ("targets", targets_of)):
            if kind in uploads:
                given[kind] = tuple(made(await play.read_table(kind, uploads[kind], on, request)))
    if "like" in uploads:
        given["like"] = await play.read_style(uploads["like"], served, request)
    return Steering(screen=screen, **given)


def steered(
    fields: GenerationFields, play: Playground, format: str, steering: Steering
) -> GenerationRequest:
    """The request; what was read and cannot be used is the sender's error, as for the worker."""
    try:
        return GenerationRequest.of(fields, play.models, play.settings.limits, format, steering)
    except GazeError:
        raise
    except Exception as error:
        log.error("steering failed: %s", type(error).__name__)
        raise GazeError(
            f"this cannot be used ({type(error).__name__}); the file may be damaged"
        ) from None
