"""Deep two-sample test of models, baselines and files, in one table.

    python runs/deep.py gazecom6.safetensors bioeye6.safetensors
        --synthetic default position kinematic-markov positional-markov [NAME=PATH ...]
        [--split-seed S] [-n 1800] [--seeds 3] [-o deep.json]

A set is NAME=WHAT or WHAT: a packaged model or run folder, which generates n windows with the
training participants' shares of tasks; a baseline, fitted to the training participants; or a
windows file, read as it is. Prints for each windows file where the networks look, then the AUC of
every set, of the floor and of the planted defects (docs/metrics.md). It leaves out the distances of
`gazediffusion evaluate --deep`, and needs neither polars nor pymovements.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gazediffusion as gd
from gazediffusion.document import Table, table_markdown
from gazediffusion.evaluation.deep_report import auc_table, deep_blocks, deep_sets
from gazediffusion.evaluation.deep_test import deep_tests
from gazediffusion.evaluation.gaze_sets import GazeSet, at_rate_of, synthetic_sets
from gazediffusion.evaluation.loading import split_again
from gazediffusion.evaluation.result import plain_values
from gazediffusion.evaluation.set_loading import load_set
from gazediffusion.evaluation.set_names import name_of
from gazediffusion.files import write_json
from gazediffusion.generation.baselines import BASELINES

BEGUN = time.monotonic()


def show(text: str) -> None:
    """Progress: on a terminal one line that changes, otherwise a line for each training."""
    seconds = time.monotonic() - BEGUN
    if sys.stderr.isatty():
        print(f"\r\033[K{seconds:5.0f} s  {text}", end="", file=sys.stderr, flush=True)
    elif "step 50," in text or "deep test" not in text:
        print(f"{seconds:5.0f} s  {text}", file=sys.stderr, flush=True)


def synthetic_of(windows: gd.Windows, what: str, n: int) -> gd.Windows:
    """The windows of a set."""
    if what in BASELINES:
        return at_rate_of(windows, what, gd.fit_baseline(what, windows).sample(n))
    return load_set(what, "synthetic", windows, n=n, reference=windows.train, progress=show)


def tested(
    windows: gd.Windows,
    sets: Mapping[str, str],
    n: int,
    config: gd.DeepConfig,
    seed: int,
    with_references: bool,
    on_set: Callable[[dict[str, Any]], None],
) -> None:
    """Give on_set the plain results of one windows file after each set: a limit loses one."""
    synthetic: dict[str, gd.Windows] = {}
    for name, what in sets.items():
        show(f"generating {name}")
        synthetic[name] = synthetic_of(windows, what, n)
    show("reading the real windows")
    real = GazeSet.of("train", windows.train), GazeSet.of("real", windows.held_out)
    of_name = {one.name: one for one in synthetic_sets(synthetic, seed, None)}
    deep_tests(*real, of_name, config, seed, show, with_references, on_set=on_set)


def main(arguments: Sequence[str] | None = None) -> None:
    """Test every set against every windows file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("--synthetic", nargs="+", required=True, metavar="NAME=WHAT")
    parser.add_argument("--split-seed", type=int, help="hold out other participants")
    parser.add_argument("-n", type=int, default=1800, help="windows generated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, help="trials; 3 on a GPU, 2 otherwise")
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.5, 2.0, 8.0])
    parser.add_argument("--steps", type=int, help="of a training at most")
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--widths", type=int, nargs="+", default=[32, 64, 96, 128])
    parser.add_argument("--windows-per-side", type=int, default=4000)
    parser.add_argument("--no-occlusion", action="store_true", help="AUC alone")
    parser.add_argument("--no-references", action="store_true", help="no floor, no defects")
    parser.add_argument("--device", default="auto")
    parser.add_argument("-o", "--output", type=Path, help="all results as JSON")
    given = parser.parse_args(arguments)
    config = gd.DeepConfig(
        seconds=tuple(given.seconds),
        n_windows=given.windows_per_side,
        n_seeds=given.seeds,
        n_steps=given.steps,
        batch_size=given.batch_size,
        widths=tuple(given.widths),
        device=given.device,
        with_occlusion=not given.no_occlusion,
    )
    sets = dict(name_of(one) for one in given.synthetic)
    found: dict[str, dict[str, Any]] = {}
    for path in given.windows:
        windows = gd.Windows.load(path)
        if given.split_seed is not None:
            windows = split_again(windows, given.split_seed)

        def keep(so_far: dict[str, Any], name: str = path.stem) -> None:
            found[name] = so_far
            rows = {f"{name}: {row}": one for row, one in deep_sets(so_far).items()}
            print(f"\n{table_markdown(auc_table(rows))}", flush=True)
            if given.output is not None:
                write_json(given.output, plain_values(found))

        references = not given.no_references
        tested(windows, sets, given.n, config, given.seed, references, keep)
    show(f"done in {time.monotonic() - BEGUN:.0f} s\n")
    rows: dict[str, Any] = {}
    for name, test in found.items():
        print(f"\n## {name}")
        for block in deep_blocks(test):
            if isinstance(block, Table) and block.title != auc_table({}).title:
                print(f"\n{table_markdown(block)}")
            elif isinstance(block, str):
                print(f"\n{block}")
        rows |= {f"{name}: {row}": one for row, one in deep_sets(test).items()}
    print("\n## AUC")
    print(f"\n{table_markdown(auc_table(rows))}")


if __name__ == "__main__":
    main()
