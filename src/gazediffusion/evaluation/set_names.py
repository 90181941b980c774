"""Names of the sets that are evaluated: `NAME=PATH`, or that of the file or folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gazediffusion.errors import GazeError
from gazediffusion.storage import is_remote


def named_sets(given: Sequence[Path | str]) -> dict[str, Path | str]:
    """Name -> path of sets given as in `name_of`; a name that is given twice is refused."""
    sets: dict[str, Path | str] = {}
    for name, path in (name_of(str(one)) for one in given):
        if name in sets:
            raise GazeError(f"two sets are named {name!r}", remedy="name one as NAME=PATH")
        sets[name] = path
    return sets


def name_of(given: str) -> tuple[str, str]:
    """(name, path) of `NAME=PATH`, or of a path, which is named by its file or folder."""
    name, equals, path = given.partition("=")
    if equals and name and not is_remote(given) and not Path(given).exists():
        return name, path
    return Path(given).stem or Path(given).name, given
