"""Generated windows as one file to send, which contains its card.

What `Windows.save` writes is sent as it is (Parquet, NPZ), or as a zip where it is a folder (BIDS,
ASC) or has its card beside it (CSV).

The files are written in a temporary folder that is deleted before the first byte is sent. What is
sent is an unnamed file, which the system deletes when it is closed.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import gazediffusion as gd
from gazediffusion.web.requests import GenerationRequest, windows_json
from gazediffusion.web.worker import PREFIX

_FOLDERS = ("bids", "asc")
_ZIPPED = ("csv", *_FOLDERS)
_CHUNK = 1 << 16
_DATE = (1980, 1, 1, 0, 0, 0)


def file_name(request: GenerationRequest, format: str) -> str:
    """A name that states model, task, seed and format."""
    settings = request.settings
    words = ["gaze", request.served.name, settings.get("task", ""), f"seed{settings['seed']}"]
    plain = [re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-")[:40] for word in words]
    ending = f"{format}.zip" if format in _ZIPPED else format
    return f"{'-'.join(filter(None, plain))}.{ending}"


def export_file(windows: gd.Windows, format: str) -> BinaryIO:
    """The windows in a format, as an open file at its beginning; the caller closes it."""
    stream = tempfile.TemporaryFile(prefix=PREFIX)  # noqa: SIM115  # closed when it is sent
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        name = "gaze" if format in _FOLDERS else f"gaze.{format}"
        path, *_ = windows.save(Path(folder) / name, format)
        if format in _ZIPPED:
            _zip(Path(folder), stream)
        else:
            with path.open("rb") as content:
                shutil.copyfileobj(content, stream)
    stream.seek(0)
    return stream


def export_json(windows: gd.Windows) -> BinaryIO:
    """The card and the windows as JSON, as an open file; written a window at a time."""
    stream = tempfile.TemporaryFile(prefix=PREFIX)  # noqa: SIM115  # closed when it is sent
    stream.write(f'{{"card": {json.dumps(windows.provenance["card"])}, "windows": ['.encode())
    for window in windows_json(windows):
        stream.write(((", " if window["index"] else "") + json.dumps(window)).encode())
    stream.write(b"]}")
    stream.seek(0)
    return stream


def recordings_file(output: Path) -> tuple[BinaryIO, str]:
    """The output of `recordings.write` as an open file, and its ending.

    Parquet contains its card and is sent as it is; anything else is a zip.
    """
    stream = tempfile.TemporaryFile(prefix=PREFIX)  # noqa: SIM115  # closed when it is sent
    tables = [output / "recordings.parquet", output.with_suffix(".parquet")]
    path = next((one for one in tables if one.is_file()), None)
    if path is None:
        _zip(output.parent, stream)
    else:
        with path.open("rb") as content:
            shutil.copyfileobj(content, stream)
    stream.seek(0)
    return stream, "zip" if path is None else "parquet"


def chunks(stream: BinaryIO) -> Iterator[bytes]:
    """A file in small parts; closed at the end."""
    with stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def _zip(folder: Path, stream: BinaryIO) -> None:
    """The content of a folder as a zip; the same files give the same bytes."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _DATE)
                entry.compress_type = zipfile.ZIP_DEFLATED
                with path.open("rb") as content, archive.open(entry, "w") as target:
                    shutil.copyfileobj(content, target)
