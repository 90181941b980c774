"""URLs of object storage as paths: `s3://bucket/key`, `gs://bucket/key`, `memory://name`.

The package handles inputs and outputs as `Path`, which writes `s3://bucket/key` as
`s3:/bucket/key`. Both forms are taken for a URL, and messages show the first.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath

_URL = re.compile(r"^(s3|gs|memory):/{1,2}(?=[^/])")
_CREDENTIALS = re.compile(r"^(\w+://)[^/@]*@")
# The folder of fetched copies, SCHEME/BUCKET/KEY in it; `storage` names it when it makes one.
_copies: list[str] = []


def is_remote(path: Path | str) -> bool:
    """Whether a path is a URL of object storage.

    >>> is_remote("s3://bucket/gaze"), is_remote(Path("s3://bucket/gaze")), is_remote("s3/gaze")
    (True, True, False)
    """
    return _URL.match(_text(path)) is not None


def url_of(path: Path | str) -> str:
    """The URL of a path that is one.

    >>> url_of(Path("s3://bucket/study") / "P01.asc")
    's3://bucket/study/P01.asc'
    """
    return _URL.sub(r"\1://", _text(path)).rstrip("/")


def shown(path: object) -> str:
    """A path as messages and provenance name it: a URL, also of its fetched copy, or the path.

    >>> shown(Path("s3://key:secret@bucket/gaze")), shown(Path("gaze"))
    ('s3://***@bucket/gaze', 'gaze')
    """
    if not isinstance(path, str | PurePath):
        return str(path)
    text = _text(path)
    for folder in _copies:
        if text.startswith(f"{folder}/"):
            text = text.removeprefix(f"{folder}/").replace("/", ":/", 1)
    return _CREDENTIALS.sub(r"\1***@", url_of(text)) if is_remote(text) else str(path)


def origin_of(path: Path) -> dict[str, str]:
    """`url` of a fetched copy, for provenance; nothing for a local file."""
    url = shown(path)
    return {"url": url} if is_remote(url) else {}


def keep_copies_in(folder: Path) -> None:
    """Show paths in this folder, SCHEME/BUCKET/KEY, as the URLs they were fetched from."""
    _copies.append(folder.as_posix())


def _text(path: Path | str | PurePath) -> str:
    return path.as_posix() if isinstance(path, PurePath) else path
