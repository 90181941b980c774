"""Packages that are imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gazediffusion.errors import GazeError

# Packages that an extra of ours brings along.
_EXTRA = {"huggingface_hub": "hub"}


def required(name: str) -> Any:
    """An installed package, or the error that says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        source = f"'gazediffusion[{_EXTRA[name]}]'" if name in _EXTRA else name
        raise GazeError(
            f"the package {name} is not installed", remedy=f"install it: pip install {source}"
        ) from error
