"""Large sets in parts: a folder of Parquet files, each of a fixed number of windows.

The bytes of a part are a function of the set's settings and of its number, so that any process of
any machine may write it. A part is whole when its name exists. While parts are missing, a mark in
the folder states the settings, and the same call writes what is missing.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gazediffusion.data.writers.card import readme_of
from gazediffusion.data.writers.sets import write_part
from gazediffusion.errors import GazeError, shown
from gazediffusion.generation.sampler import Sampler
from gazediffusion.generation.scheduling import Progress
from gazediffusion.generation.sets import Sampling
from gazediffusion.jobs import Job, Show, nothing, plain, remove_dead
from gazediffusion.parallel import in_order, is_in_this_process, ray_connection
from gazediffusion.storage import (
    INCOMPLETE,
    is_file,
    is_remote,
    names_in,
    opened,
    read_json,
    read_parquet_header,
    remove,
    require_free,
    require_writable,
    url_of,
    write_json,
    write_mark,
    written_whole,
)

DEVICES = ("auto", "cpu", "cuda")
# A CPU core generates so many windows in about a minute; an interrupt loses no more.
LEAST_PART_SIZE = 256
_PARTS = "part-*.parquet"


@dataclass(frozen=True)
class Parts:
    """How a set is written in parts.

    engine: local (this process) or ray (a cluster, whose nodes share the folder); both write the
    same parts. part_size: windows of each part; None is 256, or the batch size where that is more.
    address, n_workers: of a cluster, and their maximum number. device: of its workers: auto (a
    GPU each where the cluster has some), cpu or cuda.

    >>> import gazediffusion as gd
    >>> parts = gd.Parts(part_size=2)
    >>> files = gd.load("default").sample_to("set", 3, parts=parts, task="dots")
    >>> len(list(files[0].glob("*.parquet")))
    2
    """

    engine: str = "local"
    part_size: int | None = None
    address: str | None = None
    n_workers: int | None = None
    device: str = "auto"

    def __post_init__(self) -> None:
        is_in_this_process(self.engine, self.n_workers, self.address)
        if self.engine == "local" and self.n_workers is not None:
            raise GazeError("`n_workers` needs `engine` ray")
        if self.engine == "ray" and self.device not in DEVICES:
            raise GazeError(f"`device` must be auto, cpu or cuda on a cluster, not {self.device!r}")
        if self.part_size is not None and self.part_size < 1:
            raise GazeError(f"`part_size` must be 1 or more, not {self.part_size}")


def write_dataset(
    sampling: Sampling,
    folder: Path,
    parts: Parts,
    progress: Show = nothing,
    say: Callable[[str], None] = lambda line: None,
    overwrite: bool = False,
) -> list[Path]:
    """Write what is missing of a set in parts; returns the folder, its card and its README."""
    n, batch_size = sampling.n, sampling.sampler.batch_size
    part_size = parts.part_size or max(LEAST_PART_SIZE, batch_size)
    work = WritePart(sampling, folder, part_size)
    settings = {"part_size": part_size, "batch_size": batch_size}
    decisive = plain({**sampling.card(), "format_written": "parquet", "parts": settings})
    card, readme = folder / "card.json", folder / "README.md"
    if _begun(folder) is None and not _is_set(folder):
        require_free(folder, known_by="card.json")

    def there() -> Any:
        return read_json(card) if _is_set(folder) else None

    with (
        ray_connection(parts.address) if parts.engine == "ray" else contextlib.nullcontext(),
        Job(folder, decisive, progress, there=there, overwrite=overwrite) as job,
    ):
        if job.is_complete:
            return [folder, card, readme]
        require_writable(card)
        begun = _begun(folder)
        if begun is not None:
            job.require_same(begun)
        if begun != decisive:
            for name in ("card.json", "README.md", *names_in(folder, _PARTS)):
                remove(folder / name)
        remove_dead(folder / work.name(0), r"part-\d{6}\.parquet")
        write_mark(folder, json.dumps(decisive))
        written = set(names_in(folder, _PARTS))
        missing = [one for one in work.numbers if work.name(one) not in written]
        n_done = n - sum(map(work.n_of, missing))
        if n_done:
            say(f"resuming {shown(folder)}: {n_done} of {n} windows are there")
        job.step("generating", n_done, n)
        work = replace(work, progress=lambda done: job.step("generating", n_done + done, n))
        if parts.engine == "ray":
            work = work.sendable(parts.device)
        given = parts.engine, parts.n_workers, parts.address
        with closing(in_order(work, missing, *given)) as found:
            for n_windows in found:
                n_done += n_windows
                job.step("generating", n_done, n)
        headers = (read_parquet_header(folder / work.name(one)) or {} for one in work.numbers)
        complete = _with_measured(decisive, headers)
        with written_whole(readme) as temporary:
            temporary.write_text(readme_of(complete, "parquet"), encoding="utf-8")
        write_json(card, complete)
        remove(folder / INCOMPLETE)
    return [folder, card, readme]


@dataclass(frozen=True)
class WritePart:
    """Writes a part of a set, by its number, into a folder; returns how many windows it has."""

    sampling: Sampling
    folder: Path
    part_size: int
    progress: Progress = lambda done: None
    may_use_gpu: bool = False

    @property
    def numbers(self) -> range:
        """Of all parts."""
        return range(-(-self.sampling.n // self.part_size))

    def name(self, number: int) -> str:
        """The name of a part's file."""
        return f"part-{number:06d}.parquet"

    def n_of(self, number: int) -> int:
        """Windows of a part."""
        return min(self.part_size, self.sampling.n - number * self.part_size)

    def sendable(self, device: str) -> WritePart:
        """The same for workers of a cluster: it shows nothing, and has the network on the CPU."""
        folder = Path(url_of(self.folder)) if is_remote(self.folder) else self.folder.resolve()
        sent = replace(self, folder=folder, progress=_unseen, may_use_gpu=device != "cpu")
        return sent.on_device("cpu")

    def on_device(self, device: str) -> WritePart:
        """The same with a copy of the network on a device."""
        sampler, labeller = self.sampling.sampler, self.sampling.labeller
        assert isinstance(sampler, Sampler)
        run = sampler.run.to(device)
        labeller = None if labeller is None else replace(labeller, run=run)
        sampling = replace(self.sampling, sampler=replace(sampler, run=run), labeller=labeller)
        return replace(self, sampling=sampling)

    def __call__(self, number: int) -> int:
        """Write the part."""
        if not is_file(self.folder / INCOMPLETE):
            raise GazeError(
                "a worker does not see this folder",
                path=self.folder,
                remedy="name a folder that all machines of the cluster share",
            )
        sampling, first, n = self.sampling, number * self.part_size, self.n_of(number)
        pieces, at = [], first
        for gaze in sampling.sampler.pieces(
            first, first + n, lambda done: self.progress(done - first)
        ):
            pieces.append(sampling.finished(gaze, at))
            at += len(gaze)
        card = {**sampling.card(), "part": {"first_window": first, "of_windows": sampling.n}}
        screens = sampling.screens.values()
        with written_whole(self.folder / self.name(number)) as temporary:
            write_part(temporary, lambda: pieces, card, screens, first, sampling.grid_px)
        return n


def _unseen(done: float) -> None:
    """Progress of a worker, which is not shown."""


def _begun(folder: Path) -> dict[str, Any] | None:
    """What decides the set in parts that is begun in a folder; None where none is."""
    if not is_file(folder / INCOMPLETE):
        return None
    with opened(folder / INCOMPLETE) as stream, contextlib.suppress(ValueError):
        return dict(json.loads(stream.read()))
    return None  # the mark of an upload


def _is_set(folder: Path) -> bool:
    """Whether a complete set in parts is in a folder."""
    card = folder / "card.json"
    return not is_file(folder / INCOMPLETE) and is_file(card) and "parts" in read_json(card)


def _with_measured(card: Mapping[str, Any], of_parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """A card with what is measured in the windows: the steps of each task, the share lost."""
    steps: dict[str, set[tuple[float, ...]]] = {}
    n_lost = 0.0
    for one in of_parts:
        for task, found in one.get("resolution_px", {}).items():
            steps.setdefault(task, set()).update(map(tuple, found))
        n_lost += one.get("share_lost", 0.0) * one.get("n_windows", 0)
    measured: dict[str, Any] = {}
    if steps:
        by_task = {task: [list(one) for one in sorted(steps[task])] for task in sorted(steps)}
        measured["resolution_px"] = by_task
    if "losses" in card:
        measured["share_lost"] = round(n_lost / card["n_windows"], 6)
    return {**card, **measured}
