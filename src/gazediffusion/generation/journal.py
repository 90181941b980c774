"""The journal of a set in parts: which parts are written, and the hash of each.

In a folder it is one file, a line for each part. Object storage cannot append: there it is a small
object for each part, below `.journal/`. A part is noted after it is in place, so that a part
without its note is not whole.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gazediffusion.storage import (
    is_remote,
    names_in,
    naming_failure,
    reached,
    remove,
    written_whole,
)

# Of a set in parts: its format, and the file that says it is whole.
FORMAT = "gazediffusion-parts"
MANIFEST = "manifest.json"

JOURNAL = ".journal.jsonl"
OBJECTS = ".journal"
_PLAN = "plan.json"


@dataclass(frozen=True)
class Part:
    """A written part: windows first..first+n-1. device: the kind that generated them."""

    number: int
    first: int
    n: int
    sha256: str
    device: str

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"part-{self.number:06d}.parquet"


class Journal:
    """The journal in a folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL

    def read(self) -> tuple[str | None, list[Part]]:
        """Digest of the plan and the parts noted; None and none where there is no journal."""
        if not self.path.is_file():
            return None, []
        return _parsed(self.path.read_text(encoding="utf-8").splitlines())

    def begin(self, digest: str, parts: Iterable[Part]) -> None:
        """Note a plan and the parts of it that are there."""
        lines = [{"plan": digest}, *map(asdict, parts)]
        with written_whole(self.path) as temporary:
            temporary.write_text("".join(map(_line, lines)), encoding="utf-8")

    def add(self, part: Part) -> None:
        """Note a part that was put into the folder."""
        with naming_failure(self.path.parent), open(self.path, "a") as stream:
            stream.write(_line(asdict(part)))

    def remove(self) -> None:
        """Remove the journal."""
        self.path.unlink(missing_ok=True)


class ObjectJournal(Journal):
    """The journal below a URL."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / OBJECTS

    def read(self) -> tuple[str | None, list[Part]]:
        """As of a folder."""
        notes = read_objects(self.path, "*.json")
        return _parsed([note.decode("utf-8", "replace") for note in notes.values()])

    def begin(self, digest: str, parts: Iterable[Part]) -> None:
        """As of a folder; the notes of parts that are not there are removed first."""
        kept = {_note(part): part for part in parts}
        there = names_in(self.path)
        for name in there:
            if name not in (*kept, _PLAN):
                remove(self.path / name)
        write_object(self.path / _PLAN, _line({"plan": digest}).encode())
        for name, part in kept.items():
            if name not in there:
                self.add(part)

    def add(self, part: Part) -> None:
        """As of a folder."""
        write_object(self.path / _note(part), _line(asdict(part)).encode())

    def remove(self) -> None:
        """Remove the notes; the plan last, since without it there is no journal."""
        for name in sorted(names_in(self.path), key=lambda name: name == _PLAN):
            remove(self.path / name)


def journal_of(folder: Path) -> Journal:
    """The journal of the parts in a folder, or below a URL."""
    return ObjectJournal(folder) if is_remote(folder) else Journal(folder)


def _parsed(notes: Iterable[str]) -> tuple[str | None, list[Part]]:
    """Digest and parts of notes; one that was cut short is passed over."""
    digest, parts = None, {}
    for note in notes:
        with contextlib.suppress(ValueError, TypeError):
            fields = json.loads(note)
            if "plan" in fields:
                digest = str(fields["plan"])
            else:
                parts[int(fields["number"])] = Part(**fields)
    return digest, list(parts.values())


def _note(part: Part) -> str:
    return f"part-{part.number:06d}.json"


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields) + "\n"


def write_object(path: Path, content: bytes) -> None:
    """Write a small object."""
    with reached(path) as place:
        place.write_bytes(content)


def read_objects(folder: Path, pattern: str) -> dict[str, bytes]:
    """The content of small objects of a URL by name."""
    with reached(folder) as place:
        return {name: (place / name).read_bytes() for name in names_in(folder, pattern)}
