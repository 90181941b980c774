"""`study.yaml`: how the recordings beside it are read, stated once for all commands.

It has the options of `Reading` by their names, as `screen: 1280x720`. What a call or a command
states overrides it.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gazediffusion.errors import GazeError
from gazediffusion.options import declared, grouped, stated
from gazediffusion.screen import Screen
from gazediffusion.settings import Reading
from gazediffusion.storage import is_remote, require_free, written_whole

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings

STUDY = "study.yaml"


def study_path(path: str | Path) -> Path | None:
    """Where the `study.yaml` of recordings is looked for; None for public datasets and URLs."""
    if is_remote(path) or str(path).startswith("pymovements:"):
        return None
    parts = Path(path).parts
    magic = next((k for k, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    folder = Path(*parts[:magic])
    return (folder if folder.is_dir() else folder.parent) / STUDY


def with_study(
    paths: Sequence[str | Path], reading: Reading, given: Collection[str] = ()
) -> tuple[Reading, Path | None]:
    """The options of reading, completed by the `study.yaml` beside the recordings; and its path.

    given: names of options that override it although they have their default.
    """
    found = {one for path in paths if (one := study_path(path)) is not None and one.is_file()}
    if not found:
        return reading, None
    first, *others = sorted(found)
    study = _read(first)
    for other in others:
        if _read(other) != study:
            remedy = "read the folders one by one"
            raise GazeError(f"{first} states something else", path=other, remedy=remedy)
    overriding = stated(reading) | {name: getattr(reading, name) for name in given}
    return replace(study, **overriding), first


def _read(path: Path) -> Reading:
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise GazeError(f"this is no YAML ({error})", path=path) from error
    if not isinstance(values, dict):
        raise GazeError("this needs lines as screen: 1280x720", path=path)
    try:
        (reading,) = grouped([], {str(name): value for name, value in values.items()}, Reading)
    except GazeError as error:
        raise GazeError(str(error), path=path) from error
    return reading  # type: ignore[no-any-return]  # a Reading


def write_study(recordings: Recordings, overwrite: bool = False) -> Path:
    """Write the `study.yaml` beside recordings: how they were read, and the other options.

    It replaces the one that they were read with, and another where `overwrite` says so.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=1, minutes=0.3, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> gd.write_study(gd.read("study", eye="best")).name
    'study.yaml'
    >>> gd.read("study").reading.eye
    'best'
    """
    import yaml

    folders = {study_path(path) for path in recordings.paths}
    path = folders.pop() if folders else None
    if folders or path is None:
        raise GazeError("a study.yaml is of one folder", remedy="name one folder of recordings")
    require_free(path, overwrite or path == recordings.study)
    reading = recordings.reading
    values = stated(reading)
    if isinstance(reading.screen, Screen):
        values |= reading.screen.as_given()
    lines = ["# How every command of gazediffusion reads the recordings in this folder."]
    for one in declared(Reading):
        value = {one.name: values.get(one.name, one.default)}
        line = yaml.safe_dump(value, allow_unicode=True, width=1000).strip()
        about = re.sub(r"\[/?bold\]", "", one.metadata["help"])
        lines += ["", f"# {about}", line if one.name in values else f"# {line}"]
    with written_whole(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
