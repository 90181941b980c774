"""A set as one file to send: written as the command line writes it, zipped where it is a folder.

The set is written in a temporary folder that is gone before the first byte is sent; what is sent
lies in a file without a name, which the system forgets when it is closed.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gazediffusion.generation.generator import DiffusionGenerator, Progress
from gazediffusion.generation.sets import write_set
from gazediffusion.web.uploads import PREFIX

if TYPE_CHECKING:
    from gazediffusion.web.orders import Order

_ZIPPED = ("bids", "asc")
_CHUNK = 1 << 16
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class _Made(DiffusionGenerator):
    """A generator whose windows are there already."""

    gaze: NDArray[np.float32] | None = None

    def pieces(
        self, first: int, stop: int, seed: int, progress: Progress = lambda done: None
    ) -> Iterator[NDArray[np.float32]]:
        assert self.gaze is not None
        yield self.gaze[first:stop]


def file_name(order: Order) -> str:
    """A name that says what the file is."""
    words = ["gaze", order.offer.name, order.generator.task or "", f"seed{order.config.seed}"]
    plain = [re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-")[:40] for word in words]
    format = order.config.format
    ending = f"{format}.zip" if format in _ZIPPED else format
    return f"{'-'.join(filter(None, plain))}.{ending}"


def packed(order: Order, gaze: NDArray[np.float32]) -> BinaryIO:
    """The set as an open file at its beginning, to be closed by the caller."""
    format = order.config.format
    settings = {one.name: getattr(order.generator, one.name) for one in fields(order.generator)}
    generator = _Made(**settings, gaze=gaze)
    stream = tempfile.TemporaryFile(prefix=PREFIX)  # noqa: SIM115  # closed when it is sent
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        if format in _ZIPPED:
            write_set(generator, order.config, Path(folder) / "gaze")
            _zip(Path(folder) / "gaze", stream)
        else:
            path, *_ = write_set(generator, order.config, Path(folder) / f"gaze.{format}")
            with open(path, "rb") as content:
                shutil.copyfileobj(content, stream)
    stream.seek(0)
    return stream


def chunks(stream: BinaryIO) -> Iterator[bytes]:
    """A file in small parts; closed at the end."""
    with stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def packed_json(order: Order, gaze: NDArray[np.float32]) -> BinaryIO:
    """The same as JSON, written a window at a time."""
    stream = tempfile.TemporaryFile(prefix=PREFIX)  # noqa: SIM115  # closed when it is sent
    stream.write(f'{{"card": {json.dumps(order.card())}, "windows": ['.encode())
    for window in order.windows(gaze, 0):
        stream.write(((", " if window["index"] else "") + json.dumps(window)).encode())
    stream.write(b"]}")
    stream.seek(0)
    return stream


def _zip(folder: Path, stream: BinaryIO) -> None:
    """A folder as a zip; the same files give the same bytes."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder.parent).as_posix(), _DATE)
                entry.compress_type = zipfile.ZIP_DEFLATED
                with path.open("rb") as content, archive.open(entry, "w") as target:
                    shutil.copyfileobj(content, target)
