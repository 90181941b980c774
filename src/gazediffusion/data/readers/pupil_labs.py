"""Pupil Labs exports: `gaze.csv` of Neon and Pupil Cloud, gaze positions of Pupil Core.

Gaze is in the image of the scene camera, which moves with the head: the "screen" is that image,
1600 x 1200 for Neon and 1280 x 720 for Core unless the user says otherwise. Where gaze was mapped
to a surface or a reference image, that is the screen, whose size the file does not state; a sample
beside it is lost. All give one point for the two eyes, on an irregular clock. Core's coordinates
are normalized with the origin at the bottom left, those of Pupil Cloud at the top left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from gazediffusion.data.readers.columns import Column, Columns
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.tables import has_columns, open_table
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Origin, Screen, Unit

NAME = "pupil-labs"


@dataclass(frozen=True)
class _Layout:
    """The columns of one export, `gaze` with x or y in the place of the brackets.

    detected: where gaze met the surface. proof: a column that other tables lack.
    """

    time: str
    gaze: str
    unit: Unit
    origin: Origin
    detected: str | None = None
    camera: Screen | None = None
    proof: str | None = None

    @property
    def axes(self) -> tuple[str, str]:
        return self.gaze.format("x"), self.gaze.format("y")

    def fits(self, names: Collection[str]) -> bool:
        """Whether the columns that must be there are."""
        needed = {self.time, *self.axes, self.detected, self.proof}
        return needed.difference([None]).issubset(names)


_CLOUD, _CORE, _CORE_CAMERA = "timestamp [ns]", "gaze_timestamp", Screen(1280, 720)
_SURFACE = "gaze position on surface {} [normalized]"
_IMAGE = "gaze position in reference image {} [px]"
_LAYOUTS = (
    # Pupil Cloud: Marker Mapper, Reference Image Mapper, Neon's scene camera.
    _Layout(_CLOUD, _SURFACE, "norm", "top-left", "gaze detected on surface"),
    _Layout(_CLOUD, _IMAGE, "px", "top-left", "gaze detected in reference image"),
    _Layout(_CLOUD, "gaze {} [px]", "px", "top-left", camera=Screen(1600, 1200)),
    # Pupil Core: surfaces of newer and older versions, scene camera of both. Older versions name
    # the columns of pupil positions alike, but for the data that gaze is based on.
    _Layout(_CORE, "{}_norm", "norm", "bottom-left", "on_surf"),
    _Layout(_CORE, "{}_norm", "norm", "bottom-left", "on_srf"),
    _Layout(_CORE, "norm_pos_{}", "norm", "bottom-left", camera=_CORE_CAMERA),
    _Layout(
        "timestamp", "norm_pos_{}", "norm", "bottom-left", camera=_CORE_CAMERA, proof="base_data"
    ),
)

# Pupil Labs' own default for "useful" gaze in Pupil Player and its exports' documentation.
_MIN_CONFIDENCE = 0.6


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the header is that of a gaze export; its fixations, blinks and IMU have others."""
    is_csv = path.suffix.lower() == ".csv"
    return is_csv and has_columns(lambda names, _: _layout_of(names), head, path)


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The recordings of one export: one per recording and section."""
    table = open_table(path)
    names = table.names
    layout = _layout_of(names)
    if layout is None:
        raise GazeError(
            "the columns are those of no gaze export of Pupil Labs",
            path=path,
            remedy="export the gaze again, or read it with the `format` table",
        )
    is_seen = pl.lit(True)
    if layout.detected is not None:
        is_seen = is_seen & _cell(layout.detected).is_in(["true", "1", "1.0"])
    if "worn" in names:
        is_seen = is_seen & ~_cell("worn").is_in(["0", "0.0", "false"])
    if "confidence" in names:
        table = table.with_numbers("confidence")
        is_seen = is_seen & (pl.col("confidence") >= _MIN_CONFIDENCE)
    x, y = layout.axes
    columns = Columns(
        time=Column(layout.time, "ns" if layout.time.endswith("[ns]") else "s"),
        gaze={"cyclopean": (Column(x, layout.unit), Column(y, layout.unit))},
        trial=[name for name in ("recording id", "section id") if name in names],
        blink={"cyclopean": "blink id"} if "blink id" in names else {},
        origin=layout.origin,
    )
    table = table.seen_where(is_seen, (x, y))
    return recordings(table, columns, options, None, NAME, assumed=layout.camera)


def _layout_of(names: Collection[str]) -> _Layout | None:
    return next((one for one in _LAYOUTS if one.fits(names)), None)


def _cell(name: str) -> pl.Expr:
    return pl.col(name).str.strip_chars().str.to_lowercase().fill_null("")
