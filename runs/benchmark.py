"""Rows of the benchmark for this package, its baselines, the paper's recipes and peers' files.

    python runs/benchmark.py reading BIOEYE.safetensors [--peers ../shared/peers] [--models]
        [--real] [--sets FOLDER] [-o docs/benchmark] [--only NAME ...]
    python runs/benchmark.py --page        # the tables of docs/benchmark.md from the rows there

A row is a file docs/benchmark/TASK/NAME.json, as `gazediffusion benchmark` writes it. `--sets`: a
folder with windows that were generated before, TASK-NAME.safetensors. `--models` generates those
of the packaged models that are missing: seconds on a GPU, many minutes on two cores, the paper's
networks hours. `--real` adds the deep two-sample test; runs/benchmark_deep.py does so for all rows
that are there, several at a time.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

import gazediffusion as gd
from gazediffusion.evaluation.benchmark_definition import find_definition
from gazediffusion.evaluation.benchmark_row import deep_table, markdown_table, training_row
from gazediffusion.generation.baselines import BASELINES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmark.md"
ROWS = ROOT / "docs" / "benchmark"
TASKS = ("reading", "movies", "dots")
THIS = "training participants of this dataset"
EYEGAN = "https://github.com/aeye-lab/sp-eyegan"
SDG = "https://github.com/gghatano/eye-tracking-sdg"
# Name of the row, data that the generator saw, link; by the name of the peer's file.
PEERS = {
    "sp_eyegan_text": ("SP-EyeGAN, text", "GazeBase", EYEGAN),
    "sp_eyegan_random": ("SP-EyeGAN, random", "GazeBase", EYEGAN),
    "sdg_rules": ("eye-tracking-sdg, rules", "nothing", SDG),
    "sdg_fitted": ("eye-tracking-sdg, fitted", THIS, SDG),
}
PAPER = {"position": "the paper's position recipe", "velocity": "the paper's velocity recipe"}
FILMS = "films of GazeCom, other participants held out"
Make = Callable[[], gd.Windows]


def peer_windows(path: Path, task: str) -> gd.Windows:
    """Windows of a peer's file; positions beyond the screen are clipped as recorded ones are."""
    found = np.load(path)
    size = [float(one) for one in re.findall(r"[\d.]+", str(found["screen"]))]
    screen = gd.Screen(int(size[0]), int(size[1]), *size[2:])
    gaze = (found["gaze_int16"] * found["scale"]).clip(-1.5, 1.5)
    return gd.Windows.from_array(gaze, float(found["rate_hz"]), screen, tasks=task)


def candidates(
    task: str, windows: gd.Windows | None, peers: Path | None, sets: Path | None, models: bool
) -> Iterator[tuple[str, str, str, Make]]:
    """Name, data that it saw, link, and windows of each generator."""
    n = find_definition(task).n_windows

    def stored(file: str, make: Make | None) -> Make | None:
        path = None if sets is None else sets / f"{task}-{file}.safetensors"
        return partial(gd.Windows.load, path) if path is not None and path.exists() else make

    def generated(model: str, quality: str, of: str | None) -> gd.Windows:
        return gd.load(model).sample(n, task=of, seed=0, quality=quality)

    for quality in ("fast", "default", "best"):
        make = partial(generated, "default", quality, task) if models else None
        if found := stored(quality, make):
            yield f"gazediffusion, {quality}", THIS, "", found
    for model, name in PAPER.items():
        make = partial(generated, model, "default", None) if models else None
        if found := stored(model, make):
            yield name, FILMS, "", found
    if windows is not None:
        of_task = windows.of_task(task)
        for name in BASELINES:
            fitted = partial(gd.fit_baseline, name, of_task)
            yield f"baseline {name}", THIS, "", lambda fitted=fitted: fitted().sample(n, 0)  # type: ignore[misc]
    if task == "reading" and peers is not None:
        for file, (name, data, link) in PEERS.items():
            if (path := peers / f"{file}.npz").exists():
                yield name, data, link, partial(peer_windows, path, task)


def stem_of(name: str) -> str:
    """A file name of a row's name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def of_task(made: gd.Windows, task: str) -> gd.Windows:
    """The windows as of a task; the paper's models know one, films."""
    return replace(made, tasks=(task,)) if len(made.tasks) == 1 else made


def measure(given: argparse.Namespace) -> None:
    """Write the rows that are asked for."""
    windows = None if given.windows is None else gd.Windows.load(given.windows)
    real = windows if given.real else None
    for name, data, link, make in candidates(
        given.task, windows, given.peers, given.sets, given.models
    ):
        if given.only and stem_of(name) not in given.only:
            continue
        print(f"{given.task}: {name}", flush=True)
        made = of_task(make(), given.task)
        show = partial(print, end="   \r", flush=True)
        row = gd.benchmark(
            made, given.task, name=name, trained_on=data, link=link, real=real, progress=show
        )
        row.save(given.output / given.task / f"{stem_of(name)}.json", overwrite=True)


def tables(folder: Path) -> dict[str, str]:
    """The tables of the page by task, of the rows in a folder."""
    found = {}
    for task in TASKS:
        rows = [gd.BenchmarkRow.load(path) for path in sorted((folder / task).glob("*.json"))]
        if rows:
            rows = [training_row(find_definition(task, rows[0].benchmark_version)), *rows]
            found[task] = "\n\n".join(filter(None, [markdown_table(rows), deep_table(rows)]))
    return found


def page(text: str, folder: Path) -> str:
    """The page with the tables of the rows in a folder."""
    for task, table in tables(folder).items():
        marks = f"<!-- {task} -->\n", f"\n<!-- /{task} -->"
        begin, end = text.index(marks[0]) + len(marks[0]), text.index(marks[1])
        text = text[:begin] + table + text[end:]
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure rows, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", nargs="?", choices=TASKS)
    parser.add_argument("windows", nargs="?", type=Path, help="for baselines and --real")
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--sets", type=Path)
    parser.add_argument("--models", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--only", nargs="+", help="file names of rows")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("-o", "--output", type=Path, default=ROWS)
    given = parser.parse_args(arguments)
    if given.task is not None:
        measure(given)
        print(tables(given.output)[given.task])
    if given.page:
        text = page(PAGE.read_text(encoding="utf-8"), given.output)
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
