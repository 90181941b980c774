"""What pymovements saves beside the samples of a recording: `experiment.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from gazediffusion.errors import GazeError
from gazediffusion.geometry import Origin, Screen
from gazediffusion.storage import decode_text, read_bytes

ORIGINS: dict[str | None, Origin] = {
    "center": "center",
    "lower left": "bottom-left",
    "bottom left": "bottom-left",
}


@dataclass(frozen=True)
class Experiment:
    """Screen, origin of its pixels and rate in Hz, each None where it is not stated."""

    screen: Screen | None = None
    origin: Origin | None = None
    rate_hz: float | None = None


def saved_experiment(path: Path) -> Experiment:
    """The experiment of `samples.feather` or `samples.csv`, where pymovements saved it."""
    beside = path.with_name("experiment.yaml")
    if path.stem != "samples" or not beside.is_file():
        return Experiment()
    import yaml

    try:
        saved = yaml.safe_load(decode_text(read_bytes(beside), beside))
        screen = saved.get("screen") or {}
        sizes: list[Any] = [screen.get(one.name) for one in fields(Screen)]
        rate_hz = (saved.get("eyetracker") or {}).get("sampling_rate")
        return Experiment(
            screen=Screen(*sizes) if sizes[0] and sizes[1] else None,
            origin=ORIGINS.get(screen.get("origin")),
            rate_hz=None if rate_hz is None else float(rate_hz),
        )
    except (yaml.YAMLError, AttributeError, TypeError, ValueError) as error:
        raise GazeError("this is no experiment of pymovements", path=beside) from error
