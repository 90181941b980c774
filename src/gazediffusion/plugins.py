"""Plug-ins: readers, exporters, metrics and generators that other packages add by entry points.

A package names its objects in its pyproject.toml, under `gazediffusion.readers`, `.exporters`,
`.metrics` or `.generators`; the entry point's name is what users type. What an object must offer is
the protocol of its group below. An object that cannot be loaded or fails is one line that names its
package. docs/plugins.md describes them, examples/plugin is a package with one of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from gazediffusion.errors import GazeError, suggestion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gazediffusion.data.events import Event
    from gazediffusion.data.readers import ReadOptions
    from gazediffusion.data.recordings import Recording
    from gazediffusion.data.windows import Windows
    from gazediffusion.screen import Screen

Group = Literal["readers", "exporters", "metrics", "generators"]


class ReaderPlugin(Protocol):
    """Reads a file format: `inspect`, `prepare` and `read` take its files as any others."""

    def matches(self, path: Path, head: bytes, options: ReadOptions) -> bool:
        """Whether a file that begins with `head` is of this format; `path` lacks its `.gz`."""
        ...

    def read(self, path: Path, options: ReadOptions) -> Iterator[Recording]:
        """The recordings of one file, one after another. Bad input is a `GazeError`."""
        ...


class ExporterPlugin(Protocol):
    """Writes a file format: `generate --format NAME`, `simulate --format NAME`, `Windows.save`.

    is_file: whether all recordings go into one file, which ends in the format's name; `generate -o
    gaze.NAME` then needs no format. Otherwise they go into a folder.
    """

    is_file: bool

    def write(self, recordings: Iterable[tuple[Recording, Sequence[Event]]], path: Path) -> None:
        """Write recordings with their events to `path`: a new file, or a folder that is there."""
        ...


class MetricPlugin(Protocol):
    """A number for each window: `evaluate` reports its distances, floors and intervals.

    title, unit: as tables and figures name it. It does not count in the headline, which stays
    comparable between machines with and without the plug-in.
    """

    title: str
    unit: str

    def values(
        self, gaze: NDArray[np.float32], rate_hz: float, screens: Sequence[Screen]
    ) -> NDArray[np.floating[Any]]:
        """Numbers (window,) of gaze (window, 2, time), normalized to the screen of each window.

        NaN where a window has no such number.
        """
        ...


class FittedGenerator(Protocol):
    """What `GeneratorPlugin.fit` returns."""

    def draw(
        self, streams: Sequence[np.random.Generator], length: int
    ) -> NDArray[np.floating[Any]]:
        """Normalized gaze (window, 2, length), one window per stream, from its stream only."""
        ...


class GeneratorPlugin(Protocol):
    """Generates windows after a fit, as `generate --model NAME --fit WINDOWS`."""

    def fit(self, train: Windows) -> FittedGenerator:
        """Fit to the windows of the training participants."""
        ...


_MUST_HAVE: dict[str, tuple[str, ...]] = {
    "readers": ("matches", "read"),
    "exporters": ("is_file", "write"),
    "metrics": ("title", "unit", "values"),
    "generators": ("fit",),
}


@dataclass(frozen=True)
class Plugin:
    """An object of a group by its name; package: which brought it, with its version.

    >>> Plugin("metrics", "length", "example 1.0", len).call(len, [1, 2, 3])
    3
    """

    group: Group
    name: str
    package: str
    value: Any

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of the plug-in returns; its failure is one line with its package."""
        try:
            return function(*arguments)
        except GazeError:
            raise
        except Exception as error:
            raise self.failure(error) from error

    def failure(self, error: BaseException) -> GazeError:
        """The line that states what failed, and its package."""
        return _failure(f"the {self.group.removesuffix('s')} {self.name!r}", self.package, error)


def find_plugins(group: Group, taken: Iterable[str] = ()) -> dict[str, Plugin]:
    """The plug-ins of a group that are installed, by name.

    taken: built-in names, which a plug-in may not have. A plug-in that cannot be loaded, lacks
    what its group needs or has a name that is taken is an error which names its package.

    >>> find_plugins("metrics")
    {}
    """
    if group not in get_args(Group):
        raise GazeError(f"no group {group!r}", remedy=suggestion(group, list(get_args(Group))))
    found = _found(group)
    for name in taken:
        if name in found:
            raise _unusable(found[name].group, name, found[name].package, "the name is ours")
    return dict(found)


@cache
def _found(group: Group) -> dict[str, Plugin]:
    found: dict[str, Plugin] = {}
    for entry in entry_points(group=f"gazediffusion.{group}"):
        package = _package_of(entry)
        if entry.name in found:
            if package == found[entry.name].package:
                continue  # one package that is on the path twice
            raise _unusable(group, entry.name, package, f"{found[entry.name].package} has it too")
        try:
            value = entry.load()
        except Exception as error:
            what = f"the {group.removesuffix('s')} {entry.name!r}"
            raise _failure(what, package, error) from error
        lacking = [word for word in _MUST_HAVE[group] if not hasattr(value, word)]
        if lacking:
            raise _unusable(group, entry.name, package, f"it lacks {', '.join(lacking)}")
        found[entry.name] = Plugin(group, entry.name, package, value)
    return found


def _package_of(entry: EntryPoint) -> str:
    dist = entry.dist
    return "an unknown package" if dist is None else f"{dist.name} {dist.version}"


def _failure(what: str, package: str, error: BaseException) -> GazeError:
    words = str(error) or type(error).__name__
    problem = f"{what} of the plug-in package {package} fails ({type(error).__name__}: {words})"
    return GazeError(problem, remedy=_remedy(package))


def _unusable(group: str, name: str, package: str, why: str) -> GazeError:
    what = f"the {group.removesuffix('s')} {name!r} of the plug-in package {package}"
    return GazeError(f"{what} cannot be used: {why}", remedy=_remedy(package))


def _remedy(package: str) -> str:
    return f"update it, or remove it: pip uninstall {package.split(' ')[0]}"
