"""Files that only their maker's programs read: what each is, and how to get text out of it."""

from __future__ import annotations

from pathlib import Path

from gazediffusion.errors import GazeError

_EXPORT = "export the samples as text (.csv or .tsv) and read that"
_TOBII = "export it from Tobii Pro Lab (Data Export, tsv) and read that"
_KNOWN = {
    ".edf": (
        "an EyeLink file",
        "convert it with SR Research's edf2asc (edf2asc {name}) and read {stem}.asc",
    ),
    ".idf": (
        "an SMI file",
        "convert it with SMI's IDF Converter and read '{stem} Samples.txt'",
    ),
    ".tobii": ("a Tobii recording", _TOBII),
    ".ttgp": ("a Tobii recording", _TOBII),
    ".mat": ("a MATLAB file", _EXPORT),
    ".xls": ("an Excel file", _EXPORT),
    ".xlsx": ("an Excel file", _EXPORT),
    ".h5": ("an HDF5 file", _EXPORT),
    ".hdf5": ("an HDF5 file", _EXPORT),
}


def conversion_needed(path: Path) -> GazeError | None:
    """What is said of a file that must be converted first; None for any other."""
    known = _KNOWN.get(path.suffix.lower())
    if known is None:
        return None
    kind, remedy = known
    remedy = remedy.format(name=path.name, stem=path.stem)
    return GazeError(f"this is {kind}, which is not read", path=path, remedy=remedy)
