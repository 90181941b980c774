"""The deep two-sample test of the benchmark's rows, several at a time; no other figure changes.

    python runs/benchmark_deep.py reading=BIOEYE.safetensors dots=BIOEYE.safetensors
        movies=GAZECOM.safetensors [--peers ../shared/peers] [--sets FOLDER] [--workers 8]
        [--rows docs/benchmark] [-o docs/benchmark]

Of every row ROWS/TASK/NAME.json the set is generated again (our qualities, baselines) or read (the
peers' files; the paper's recipes from FOLDER/TASK-NAME.safetensors). Rows whose set is missing are
left. The floor of a task is computed once. A row is written as soon as it is done, and rows of
OUTPUT that are done with the same settings are not computed again. Settings: `DEEP` of
`gazediffusion.evaluation.benchmark`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import gazediffusion as gd
from benchmark import PAPER, ROWS, candidates, of_task, stem_of, tables
from gazediffusion.document import Estimate
from gazediffusion.evaluation.benchmark import DEEP, deep_floor, with_deep_test
from gazediffusion.evaluation.benchmark_definition import find_definition
from gazediffusion.evaluation.benchmark_row import DEEP_SETTINGS
from gazediffusion.evaluation.result import plain_values

FLOOR = "floor"
Floor = Mapping[str, Estimate]
BEGUN = time.monotonic()


@dataclass(frozen=True)
class Job:
    """The test of one row, or of the floor of its task."""

    task: str
    stem: str
    real: Path
    row: Path | None
    peers: Path | None
    sets: Path | None
    deep: gd.DeepConfig


def test(job: Job) -> dict[str, Any]:
    """The deep figures of a job, by field of the row; in a process of its own."""
    import torch

    torch.set_num_threads(1)
    definition, real = find_definition(job.task), gd.Windows.load(job.real)
    if job.row is None:
        return {"deep_floor": deep_floor(definition, real, job.deep)}
    found = candidates(job.task, real, job.peers, job.sets, models=True)
    made = next(make() for name, _, _, make in found if stem_of(name) == job.stem)
    row = gd.BenchmarkRow.load(job.row)
    row = with_deep_test(row, definition, of_task(made, job.task), real, {}, job.deep)
    return {key: one for key, one in vars(row).items() if key.startswith("deep_")}


def jobs_of(given: argparse.Namespace, deep: gd.DeepConfig) -> Iterator[Job]:
    """What is not done yet: floors, then our sets, which train longest, then the others."""
    found: list[Job] = []
    for task, real in (one.split("=", 1) for one in given.windows):
        shared = (given.peers, given.sets, deep)
        done = done_rows(given.output, task, deep)
        can_be_made = {
            stem_of(name)
            for name, *_ in candidates(task, gd.Windows.load(real), given.peers, given.sets, True)
            if name not in PAPER.values() or stored(given.sets, task, name).exists()
        }
        rows = {path.stem: path for path in sorted((given.rows / task).glob("*.json"))}
        for stem in rows.keys() - can_be_made:
            print(f"{task}: {stem}: its set is not there, left as it is", flush=True)
        left = [stem for stem in rows if stem in can_be_made and stem not in done]
        if left and not done:
            found.append(Job(task, FLOOR, Path(real), None, *shared))
        found.extend(Job(task, stem, Path(real), rows[stem], *shared) for stem in left)
    order = {FLOOR: 0, "gazediffusion": 1}
    yield from sorted(found, key=lambda job: order.get(job.stem.split("-")[0], 2))


def stored(sets: Path | None, task: str, name: str) -> Path:
    """The file with the set of a recipe of the paper."""
    of_name = {words: model for model, words in PAPER.items()}
    return (sets or Path("-")) / f"{task}-{of_name[name]}.safetensors"


def done_rows(output: Path, task: str, deep: gd.DeepConfig) -> dict[str, gd.BenchmarkRow]:
    """The rows of a task that have been tested with these settings, by the name of the file."""
    settings = plain_values({key: getattr(deep, key) for key in DEEP_SETTINGS})
    rows = {path.stem: gd.BenchmarkRow.load(path) for path in (output / task).glob("*.json")}
    return {stem: row for stem, row in rows.items() if row.deep_settings == settings}


def add(job: Job, found: dict[str, Any], floor: Floor, output: Path) -> None:
    """Write a row with its deep figures, and print them."""
    assert job.row is not None
    row = replace(gd.BenchmarkRow.load(job.row), **found | {"deep_floor": floor})
    row.save(output / job.task / job.row.name, overwrite=True)
    is_same = row.deep_windows_sha256 == row.windows_sha256
    show(job, row.deep_auc, "" if is_same else " (windows generated anew)")


def show(job: Job, auc: Floor, more: str = "") -> None:
    """A line of what is done."""
    words = ", ".join(f"{test} {one.value:.2f}" for test, one in auc.items())
    seconds = time.monotonic() - BEGUN
    print(f"{seconds:4.0f} s  {job.task}: {job.stem}: {words}{more}", flush=True)


def work(jobs: Sequence[Job], output: Path, n_workers: int, limit: float | None) -> int:
    """Do the jobs; how many failed or were not done within the limit."""
    floors: dict[str, Floor] = {}
    for job in jobs:
        if done := done_rows(output, job.task, job.deep):
            floors[job.task] = next(iter(done.values())).deep_floor
    n_left, waiting = len(jobs), list[tuple[Job, dict[str, Any]]]()
    pool = ProcessPoolExecutor(n_workers, get_context("spawn"))
    running = {pool.submit(test, job): job for job in jobs}
    try:
        for future in as_completed(running, limit):
            job = running[future]
            try:
                found = future.result()
            except Exception as error:  # the other rows go on
                print(f"{job.task}: {job.stem}: failed: {error!r}", flush=True)
                continue
            n_left -= 1
            if job.row is None:
                floors[job.task] = found["deep_floor"]
                show(job, found["deep_floor"])
            else:
                waiting.append((job, found))
            for one in [one for one in waiting if one[0].task in floors]:
                waiting.remove(one)
                add(*one, floors[one[0].task], output)
    except TimeoutError:
        print(f"stopped after {limit:g} s", flush=True)
        for worker in list(pool._processes.values()):
            worker.kill()
    pool.shutdown(cancel_futures=True)
    return n_left


def main(arguments: Sequence[str] | None = None) -> int:
    """Test what is not done; 1 where something is left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", nargs="+", metavar="TASK=WINDOWS")
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--sets", type=Path)
    parser.add_argument("--workers", type=int, default=8, help="processes, each on the GPU")
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--limit", type=float, help="seconds after which the rest is left")
    parser.add_argument("--tiny", action="store_true", help="a try: a few steps")
    parser.add_argument("-o", "--output", type=Path, default=ROWS)
    given = parser.parse_args(arguments)
    deep = replace(DEEP, n_seeds=1, n_steps=2, batch_size=4) if given.tiny else DEEP
    jobs = list(jobs_of(given, deep))
    n_left = work(jobs, given.output, given.workers, given.limit)
    print(f"{len(jobs) - n_left} of {len(jobs)} in {time.monotonic() - BEGUN:.0f} s", flush=True)
    for task, text in tables(given.output).items():
        print(f"\n{task}\n\n{text.split(chr(10) * 2)[-1]}")
    return int(n_left > 0)


if __name__ == "__main__":
    sys.exit(main())
