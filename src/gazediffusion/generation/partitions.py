"""Sets in parts: a folder of Parquet files, each of a fixed number of windows, and its manifest.

A plan says which windows each part has. The bytes of a part are a function of the plan and its
number, so that any process of any machine may write it. A part is put into place when it is whole;
then its hash is noted in the folder's journal (`journal`). When all parts are there, card, README
and manifest are written and the journal is removed. The same call resumes from the parts whose hash
fits. The folder may be a URL.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from gazediffusion.data.export.card import readme_of
from gazediffusion.data.export.windows import projected, write_part
from gazediffusion.errors import GazeError
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.generation.journal import FORMAT, MANIFEST, Part, journal_of
from gazediffusion.generation.sets import SetConfig, make_card
from gazediffusion.storage import (
    is_file,
    names_in,
    naming_failure,
    read_json,
    read_parquet_header,
    remove,
    require_free,
    require_writable,
    sha256_of,
    work_place,
    write_json,
    written_whole,
)

Progress = Callable[[float], None]
_PARTS = "part-*.parquet"
# A CPU core generates so many windows in about a minute; an interrupt loses no more.
LEAST_PART_SIZE = 256
_N_READERS = 8  # threads that check hashes


@dataclass(frozen=True)
class Plan:
    """Which windows are in which part, and how they are generated.

    part_size: windows of each part but the last; None is 256, or the batch size where that is more.
    Batches begin anew in each part.
    """

    generator: DiffusionGenerator
    config: SetConfig
    part_size: int | None = None

    def __post_init__(self) -> None:
        if self.part_size is not None and self.part_size < 1:
            raise GazeError(f"`part_size` must be 1 or more, not {self.part_size}")
        self.config.n_samples(self.generator)

    @property
    def n_each(self) -> int:
        """Windows of each part but the last."""
        return self.part_size or max(LEAST_PART_SIZE, self.generator.batch_size)

    @property
    def n_parts(self) -> int:
        """How many parts there are."""
        return -(-self.config.n // self.n_each)

    def span(self, number: int) -> tuple[int, int]:
        """First window of a part, and the first after it."""
        first = number * self.n_each
        return first, min(first + self.n_each, self.config.n)

    @cached_property
    def card(self) -> dict[str, Any]:
        """The card of the whole set."""
        return make_card(self.generator, self.config)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides the bytes of the parts, but for the device."""
        sizes = {"part_size": self.n_each, "batch_size": self.generator.batch_size}
        return hashlib.sha256(json.dumps([self.card, sizes], sort_keys=True).encode()).hexdigest()

    def on_device(self, device: torch.device | str) -> Plan:
        """The same plan with a copy of the network on a device."""
        run = self.generator.run.to(device)
        config = self.config
        if config.labeller is not None:
            config = replace(config, labeller=replace(config.labeller, run=run))
        return replace(self, generator=replace(self.generator, run=run), config=config)

    def write(self, folder: Path, number: int, progress: Progress = lambda done: None) -> Part:
        """Generate a part and put it into the folder; progress: called with its windows done."""
        generator, config = self.generator, self.config
        first, stop = self.span(number)
        n_samples, pieces, at = config.n_samples(generator), [], first
        for gaze in generator.pieces(first, stop, config.seed, lambda done: progress(done - first)):
            windows = config.windows(generator, gaze, at)
            pieces.append(projected(windows, config.screen, n_samples))
            at += len(gaze)
        device = next(generator.run.network.parameters()).device.type
        part = Part(number, first, stop - first, "", device)
        card = {**self.card, "part": {"first_window": first, "of_windows": config.n}}
        screens = [config.screen] if config.screen else generator.screens.values()
        with written_whole(folder / part.name) as temporary:
            write_part(temporary, lambda: pieces, card, screens, first, config.grid_px)
            digest = sha256_of(temporary)
        return replace(part, sha256=digest)


class PartFolder:
    """The folder of a plan's parts: which are there, and the files that say so."""

    def __init__(self, folder: Path | str, plan: Plan) -> None:
        self.folder = Path(folder)
        self.plan = plan
        self.journal = journal_of(self.folder)
        self.parts: dict[int, Part] = {}

    @property
    def n_done(self) -> int:
        """Windows of the parts that are there."""
        return sum(part.n for part in self.parts.values())

    @property
    def missing(self) -> list[int]:
        """Numbers of the parts that are not there."""
        return [number for number in range(self.plan.n_parts) if number not in self.parts]

    @property
    def is_complete(self) -> bool:
        """Whether all parts are there, and their manifest."""
        return not self.missing and is_file(self.folder / MANIFEST)

    def open(self, overwrite: bool = False) -> None:
        """Find the whole parts of this plan in the folder, and remove damaged ones.

        overwrite: replace the parts of another plan, which are refused otherwise.
        """
        digest, known = self._known()
        if digest is None:
            require_free(self.folder, known_by=MANIFEST)
            require_writable(self.folder / MANIFEST)
        elif digest != self.plan.digest:
            self._replace(overwrite)
            known = []
        self.clean()
        with ThreadPoolExecutor(_N_READERS) as readers:
            is_whole = list(readers.map(self._is_whole, known))
        self.parts = {one.number: one for one, whole in zip(known, is_whole, strict=True) if whole}
        if self.is_complete:
            return
        with naming_failure(self.folder):
            names = {part.name for part in self.parts.values()}
            self.journal.begin(self.plan.digest, self.parts.values())
            for name in (MANIFEST, *names_in(self.folder, _PARTS)):
                if name not in names:
                    remove(self.folder / name)

    def add(self, part: Part) -> None:
        """Note a part that was put into the folder."""
        self.parts[part.number] = part
        self.journal.add(part)

    def finish(self) -> list[Path]:
        """Write card, README and manifest; returns the folder and these three."""
        card, readme, manifest = (
            self.folder / name for name in ("card.json", "README.md", MANIFEST)
        )
        if not self.is_complete:
            parts = [self.parts[number] for number in range(self.plan.n_parts)]
            headers = [read_parquet_header(self.folder / part.name) or {} for part in parts]
            complete = _with_measured(self.plan.card, headers)
            listed = [{"file": part.name, **_without_number(part)} for part in parts]
            write_json(card, complete)
            with written_whole(readme) as temporary:
                temporary.write_text(readme_of(complete, "parquet"), encoding="utf-8")
            sizes = {"n_windows": self.plan.config.n, "part_size": self.plan.n_each}
            sizes["batch_size"] = self.plan.generator.batch_size
            about = {"format": FORMAT, "plan": self.plan.digest, **sizes}
            write_json(manifest, {**about, "parts": listed})
            self.journal.remove()
        self.clean()
        return [self.folder, card, readme, manifest]

    def clean(self) -> None:
        """Remove what killed writers left."""
        for path in work_place(self.folder / MANIFEST).glob(f".{_PARTS}.*.part"):
            with contextlib.suppress(OSError):
                path.unlink()

    def _known(self) -> tuple[str | None, list[Part]]:
        """Digest of the plan whose parts are in the folder, and the parts it knows of."""
        manifest = self.folder / MANIFEST
        digest, parts = self.journal.read()
        if digest is not None:
            return digest, parts
        if not is_file(manifest):
            return None, []
        fields = read_json(manifest)
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            return None, []
        try:
            listed = [
                Part(number, **{key: value for key, value in one.items() if key != "file"})
                for number, one in enumerate(fields["parts"])
            ]
            return str(fields["plan"]), listed
        except (KeyError, TypeError, AttributeError) as error:
            raise GazeError(f"the manifest is damaged ({error})", path=manifest) from error

    def _replace(self, overwrite: bool) -> None:
        if not overwrite:
            raise GazeError(
                "this folder has parts of other windows or settings",
                path=self.folder,
                remedy="name a new one, or give `overwrite` to replace them",
            )
        with naming_failure(self.folder):
            for pattern in (MANIFEST, "card.json", "README.md", _PARTS):
                for name in names_in(self.folder, pattern):
                    remove(self.folder / name)
            self.journal.remove()

    def _is_whole(self, part: Part) -> bool:
        path = self.folder / part.name
        is_of_plan = part.number < self.plan.n_parts
        return is_of_plan and is_file(path) and sha256_of(path) == part.sha256


def require_plan(folder: Path, digest: str) -> None:
    """Refuse a folder that is not the one of the plan: a machine that does not share it."""
    if journal_of(folder).read()[0] != digest:
        raise GazeError(
            "a worker does not see this folder",
            path=folder,
            remedy="name a folder that all machines of the cluster share",
        )


def write_here(
    found: PartFolder, on_part: Callable[[Part], None], progress: Progress = lambda done: None
) -> None:
    """Write the missing parts in this process; progress: called with the windows there."""
    for number in found.missing:
        n_before = found.n_done

        def counted(done: float, n_before: int = n_before) -> None:
            progress(n_before + done)

        on_part(found.plan.write(found.folder, number, counted))


def _without_number(part: Part) -> dict[str, Any]:
    return {key: value for key, value in asdict(part).items() if key != "number"}


def _with_measured(card: dict[str, Any], of_parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
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
