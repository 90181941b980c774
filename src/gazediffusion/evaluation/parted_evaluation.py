"""The sets in parts of an evaluation: a sample of each is evaluated, then all windows are counted.

The sample is evaluated as any set. It is all that classifier, memorisation, coverage and the other
tests of whole windows see. All windows are then counted in the bins that the evaluation used
(whole_sets.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.gaze_sets import MAX_WINDOWS, MIN_WINDOWS
from gazediffusion.evaluation.parted_sets import Engine, PartedSet, PartReader, is_in_parts
from gazediffusion.evaluation.quantities import Measured
from gazediffusion.evaluation.result import ALL, EvaluationConfig, Results
from gazediffusion.evaluation.set_tests import Progress
from gazediffusion.evaluation.summary import (
    DEFAULT,
    UNLABELLED,
    Like,
    Summary,
    find_summary,
    summary_of_task,
)
from gazediffusion.evaluation.whole_sets import Against, add_whole
from gazediffusion.geometry import Screen
from gazediffusion.parallel import ray_connection


@dataclass(eq=False)
class PartedEvaluation:
    """The sets in parts among those of an evaluation, by name; n_sample: windows drawn of each.

    opened: the sets that were looked at. against: the real side by part of the evaluation.
    """

    paths: dict[str, Path]
    config: EvaluationConfig
    engine: Engine
    n_sample: int
    progress: Progress
    opened: dict[str, PartedSet] = field(default_factory=dict)
    against: dict[str, Against] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        synthetic: Mapping[str, Path | str],
        config: EvaluationConfig,
        engine: Engine,
        n_sample: int | None,
        progress: Progress,
    ) -> PartedEvaluation:
        """Those in parts of some sets; settings of parts are refused where none is."""
        paths = {name: Path(path) for name, path in synthetic.items() if is_in_parts(path)}
        engine.require_possible()
        if not paths and (engine != Engine() or n_sample is not None):
            given = "n_sample" if n_sample is not None else engine.given
            raise GazeError(f"`{given}` is for sets in parts, and no set is", remedy="leave it out")
        if n_sample is not None and not MIN_WINDOWS <= n_sample <= MAX_WINDOWS:
            raise GazeError(
                f"`n_sample` must be from {MIN_WINDOWS} to {MAX_WINDOWS}, not {n_sample}"
            )
        return cls(paths, config, engine, n_sample or MAX_WINDOWS, progress)

    @contextmanager
    def connected(self) -> Iterator[None]:
        """One connection to the cluster for all that is read."""
        if self.engine.name != "ray" or not self.paths:
            yield
            return
        with ray_connection(self.engine.address):
            yield

    def open(
        self, name: str, like: Like, known_tasks: list[str], screen: Screen | None
    ) -> PartedSet:
        """A set, looked at once."""
        if name not in self.opened:
            reader = PartReader.of(self.paths[name], like, known_tasks, screen)
            self.opened[name] = PartedSet.open(name, reader, self.engine, self.progress)
            if len(self.opened[name]) == 0:
                raise GazeError("no window of the set is whole", path=self.paths[name])
        return self.opened[name]

    def sample(self, given: PartedSet, task: str | None = None, by_task: bool = False) -> Windows:
        """Windows that are evaluated: drawn of one task, of each (by_task), or of all together."""
        groups = [given] if task is None else [given.of_tasks([task])]
        if by_task:
            known = [(one,) for one in given.index.names if one not in UNLABELLED]
            groups = [given.of_tasks(one) for one in (*known, UNLABELLED)]
        drawn = [one.drawn(self.config.seed, self.n_sample) for one in groups]
        chosen = np.concatenate(drawn)
        if len(groups) > 1:
            place = np.empty(len(given), dtype=np.int64)
            place[given.order] = np.arange(len(given))
            chosen = chosen[np.argsort(place[chosen])]
        return given.windows(chosen, self.engine, self.progress)

    def measured(
        self, part: str, results: Results, real: Windows, base: Windows, measured: Measured
    ) -> None:
        """Keep what counting needs of a part's real windows."""
        if self.paths:
            self.progress("bins")
            self.against[part] = Against.of_windows(results, real, base, measured)

    def summarised(self, parts: Mapping[str, Results], summary: str | None) -> None:
        """Keep what counting needs of the summaries that parts were compared with."""
        for part, results in parts.items() if self.paths else ():
            found: Summary | None = find_summary(summary or DEFAULT)
            if summary is None and part != ALL:
                found = summary_of_task(part)
            assert found is not None
            self.against[part] = Against.of_summary(results, found)

    def count(self, parts: Mapping[str, Results], is_by_label: bool) -> None:
        """Count all windows of the sets, and add them to the results of each part.

        is_by_label: the parts are of the windows of a task each, ALL of those that name none.
        """
        tasks: dict[str, tuple[str, ...] | None] = {part: (part,) for part in parts}
        if not is_by_label:
            tasks |= dict.fromkeys([ALL] if len(parts) > 1 else parts)
        elif ALL in parts:
            tasks[ALL] = tuple(UNLABELLED)
        for name, one in self.opened.items():
            add_whole(
                parts, one, self.against, tasks, self.config.protocols, self.engine, self.progress
            )
            for results in parts.values():
                whole = results.get("whole", {}).get("synthetic", {})
                if name in whole:
                    n = int(results["sets"]["synthetic"][name]["n_windows"])
                    whole[name]["sample"] = {"n": n, "seed": self.config.seed}
                    results["about"]["notes"].append(_note(name, n, whole[name]))


def _note(name: str, n: int, found: Results) -> str:
    """What of a set the tables and tests are of."""
    total = found["n_windows"]
    if n >= total:
        return f"{name} is in parts: all its {total:,} windows were drawn, and counted part by part"
    return (
        f"{name} is in parts: distances to the floor and the tests of whole windows (classifier, "
        f"memorisation, coverage and others) are of {n:,} of its {total:,} windows, drawn with "
        f"seed {found['sample']['seed']}; under All windows every window is counted"
    )
