"""gazediffusion: learn how human eyes move and generate new, realistic gaze.

The names below are the public library. They are loaded when first used, so that importing the
package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gazediffusion.version import __version__

if TYPE_CHECKING:
    from gazediffusion.cleaning import CleaningConfig
    from gazediffusion.errors import GazeError
    from gazediffusion.geometry import Screen
    from gazediffusion.inspection import inspect
    from gazediffusion.preparing import PrepareConfig, prepare
    from gazediffusion.readers import ReadOptions, find_sources, read_recordings
    from gazediffusion.recordings import Recording
    from gazediffusion.simulation import SimulationConfig, simulate, write_simulation
    from gazediffusion.windows import Windows

_HOME = {
    "CleaningConfig": "cleaning",
    "GazeError": "errors",
    "PrepareConfig": "preparing",
    "ReadOptions": "readers",
    "Recording": "recordings",
    "Screen": "geometry",
    "SimulationConfig": "simulation",
    "Windows": "windows",
    "find_sources": "readers",
    "inspect": "inspection",
    "prepare": "preparing",
    "read_recordings": "readers",
    "simulate": "simulation",
    "write_simulation": "simulation",
}

__all__ = [  # noqa: RUF022  # in the order of the data's way through the package
    "__version__",
    "GazeError",
    "Screen",
    "Recording",
    "ReadOptions",
    "find_sources",
    "read_recordings",
    "CleaningConfig",
    "inspect",
    "PrepareConfig",
    "prepare",
    "Windows",
    "SimulationConfig",
    "simulate",
    "write_simulation",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gazediffusion' has no attribute {name!r}")
    return getattr(import_module(f"gazediffusion.{_HOME[name]}"), name)
