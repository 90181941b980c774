"""The one error a user meets: a line that names the file, the place and the remedy.

Everything the package raises because of its input is a `GazeError`; the command line prints it
and exits with 2. Any other exception is a bug in the package.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath

# A path that is a URL of object storage; `Path` writes `s3://bucket/key` as `s3:/bucket/key`.
URL = re.compile(r"^(s3|gs|memory):/{1,2}(?=[^/])")
# The folder of fetched copies, SCHEME/BUCKET/KEY in it; `storage` names it when it makes one.
shown_copies: list[str] = []


def shown(path: object) -> str:
    """A path as messages and provenance name it: a URL, also of its fetched copy, or the path.

    >>> shown(Path("s3://key:secret@bucket/gaze")), shown(Path("gaze"))
    ('s3://***@bucket/gaze', 'gaze')
    """
    if not isinstance(path, str | PurePath):
        return str(path)
    text = path_text(path)
    for folder in shown_copies:
        if text.startswith(f"{folder}/"):
            text = text.removeprefix(f"{folder}/").replace("/", ":/", 1)
    if URL.match(text) is None:
        return str(path)
    return re.sub(r"^(\w+://)[^/@]*@", r"\1***@", URL.sub(r"\1://", text).rstrip("/"))


def path_text(path: str | PurePath) -> str:
    """A path with slashes."""
    return path.as_posix() if isinstance(path, PurePath) else path


class GazeError(Exception):
    """Bad input, said in one line: `path, place: problem; remedy`.

    >>> import gazediffusion as gd
    >>> try:
    ...     gd.Screen(1280, -720)
    ... except gd.GazeError as error:
    ...     print(error)
    screen height_px must be a positive number, not -720
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str | Path | None = None,
        place: str | None = None,
        remedy: str | None = None,
    ) -> None:
        where = ", ".join(shown(part) for part in (path, place) if part is not None)
        message = f"{where}: {problem}" if where else problem
        if remedy:
            message = f"{message}; {remedy}"
        self.path = path
        super().__init__(" ".join(message.split()))


class StoppedError(Exception):
    """Long work was stopped on request; what was done is saved, and the same call resumes.

    >>> import gazediffusion as gd
    >>> try:
    ...     raise gd.StoppedError("stopped after epoch 3")  # as long work does
    ... except gd.StoppedError as stop:
    ...     print(stop)
    stopped after epoch 3
    """


class CompleteError(Exception):
    """An output is complete, of the same inputs and settings: nothing is done. No failure.

    >>> import gazediffusion as gd
    >>> try:
    ...     raise gd.CompleteError("report is complete")  # as `evaluate_files` does
    ... except gd.CompleteError as complete:
    ...     print(complete)
    report is complete
    """


def suggestion(given: str, known: list[str]) -> str:
    """Name the known word nearest to the given one, or list them all: `did you mean 'x_px'?`."""
    from difflib import get_close_matches

    near = get_close_matches(given.lower(), [name.lower() for name in known], n=1, cutoff=0.6)
    if near:
        original = next(name for name in known if name.lower() == near[0])
        return f"did you mean {original!r}?"
    listed = ", ".join(known[:20]) + (" ..." if len(known) > 20 else "")
    return f"known are: {listed}"
