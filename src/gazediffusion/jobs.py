"""One job: work on an output that shows how far it is, can be stopped, and resumes.

A job holds a lock of the operating system on its output, which a killed process loses; there is
none at a URL. What it has computed is kept in a hidden work folder, named by everything that
decides it, until the output is in place. A complete output is not made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gazediffusion.errors import CompleteError, GazeError, StoppedError, shown
from gazediffusion.storage import is_remote, naming_failure, remove, work_place, written_whole

# How far a job is: the phase of its work, what is done of how much, and a note.
Show = Callable[[str, float, float, str], None]
_MOST_NAMED = 5  # differences in one message


def nothing(phase: str, done: float, total: float, note: str = "") -> None:
    """Shows nothing."""


def never() -> bool:
    """Does not ask to stop."""
    return False


class Job:
    """Work on one output; use it in a `with` statement.

    decisive: everything that decides the output, as JSON: settings, and inputs by their hashes.
    there: gives what decided the complete output that is there, or None. `is_complete` says that it
    is that of this job; one of other settings is refused. overwrite: replace either.
    free: keys that decide the output, but not what is kept on the way to it.
    """

    def __init__(
        self,
        output: Path,
        decisive: Mapping[str, Any],
        show: Show = nothing,
        should_stop: Callable[[], bool] = never,
        there: Callable[[], Mapping[str, Any] | None] = lambda: None,
        overwrite: bool = False,
        free: Sequence[str] = (),
    ) -> None:
        self.output, self.show, self.should_stop = output, show, should_stop
        self.decisive, self.there, self.overwrite = plain(decisive), there, overwrite
        kept_by = {key: value for key, value in self.decisive.items() if key not in free}
        text = json.dumps(kept_by, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        self.kept = work_place(output) / f".{output.name}.{digest}.work"
        self.is_complete = False
        self._lock = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(locked(self.output))
            if not self.overwrite and (there := self.there()) is not None:
                self.require_same(there)
                self.is_complete = True
            remove_dead(self.output)
            self._lock = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            _remove(self.output, r"[0-9a-f]+\.work")
        self._lock.close()

    def require_same(self, there: Mapping[str, Any]) -> None:
        """Refuse an output of other settings or inputs, unless it is to be replaced."""
        if (changed := differences(there, self.decisive)) and not self.overwrite:
            raise GazeError(
                f"this was made with other settings or inputs ({changed})",
                path=self.output,
                remedy="name another output, or give `overwrite` to replace it",
            )

    def require_work(self) -> None:
        """Raise `CompleteError` where the output is complete: its result is not read back."""
        if self.is_complete:
            raise CompleteError(f"{shown(self.output)} is complete: same inputs, same settings")

    def has(self, name: str) -> bool:
        """Whether a piece of work is kept."""
        return (self.kept / name).exists()

    def once(self, name: str, make: Callable[[Path], object]) -> Path:
        """A piece of work, made at a path; one that a stopped call has kept is not made again."""
        if not self.has(name):
            with written_whole(self.kept / name) as temporary:
                make(temporary)
        return self.kept / name

    def step(self, phase: str, done: float, total: float, note: str = "") -> None:
        """Show how far the work is; stop on request."""
        self.show(phase, done, total, note)
        if done < total and self.should_stop():
            raise StoppedError(f"{phase} stopped: {done:g} of {total:g} are kept")


def files_read(show: Show, n_files: int) -> Callable[[Path, int], None]:
    """Shows the files that are read; call it with the file and the samples of each recording."""
    seen, n_samples, begun = set[Path](), 0, time.monotonic()

    def read(path: Path, n: int) -> None:
        nonlocal n_samples
        seen.add(path)
        n_samples += n
        rate = n_samples / max(time.monotonic() - begun, 1e-9) / 1e6
        show("reading", len(seen) - 1, n_files, f"{rate:.1f} M samples/s")

    return read


def plain(values: Any) -> Any:
    """Values as JSON gives them back."""
    return json.loads(json.dumps(values, default=str))


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """In words how the values of `there` differ from those of `here`; "" where they do not.

    >>> differences({"seed": 0, "model": {"steps": 6}}, {"seed": 1, "model": {"steps": 6}})
    'seed 0, not 1'
    """
    found = list(_differing(there, here))
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return ", ".join(found[:_MOST_NAMED]) + more


def _differing(there: Mapping[str, Any], here: Mapping[str, Any], of: str = "") -> Iterator[str]:
    for key, value in here.items():
        other = there.get(key)
        if isinstance(value, Mapping) and isinstance(other, Mapping):
            yield from _differing(other, value, f"{of}{key} ")
        elif other != value:
            both = f"{of}{key} {other}, not {value}"
            yield both if len(both) < 80 and isinstance(value, str | int | float) else f"{of}{key}"


@contextlib.contextmanager
def locked(output: Path) -> Iterator[None]:
    """Hold the lock on an output; another process that holds it is said at once."""
    if is_remote(output):
        yield
        return
    from filelock import FileLock, Timeout

    path = output.with_name(f".{output.name}.lock")
    with naming_failure(output):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            raise GazeError(
                "another command is writing this",
                path=output,
                remedy="wait for it, or name another output",
            ) from error
    try:
        yield
    finally:
        remove(path)  # while it is held: filelock takes no lock on a file without a name
        lock.release()


def remove_dead(output: Path, pattern: str | None = None) -> None:
    """Remove what killed processes left half-written at an output that is locked.

    pattern: of names, as a regular expression; None is the output's.
    """
    _remove(output, r"\d+-[0-9a-f]{8}\.part", pattern)
    if output.exists():  # else a killed process was about to replace it
        _remove(output, r"\d+\.old", pattern)


def _remove(output: Path, rest: str, pattern: str | None = None) -> None:
    """Remove hidden files and folders beside an output, named `.OUTPUT.REST`."""
    folder, fits = work_place(output), re.compile(rf"\.{pattern or re.escape(output.name)}\.{rest}")
    for path in folder.iterdir() if folder.is_dir() else ():
        if fits.fullmatch(path.name):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
