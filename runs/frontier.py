"""Speed against fidelity: seconds a window, median ratio to the floor and AUC of the deep test.

    python benchmarks/generate.py -o cpu.json                                # on each machine
    python runs/frontier.py --times cpu.json h200.json -o docs/images/frontier.png [--task movies]

Fidelity is that of the benchmark's rows (docs/benchmark, `runs/benchmark.py`): 300 windows, the
floor of real participants, 95 % intervals. Shown are the paper's sampler, 100 DDIM steps of its
network, and every quality of the packaged model. diffusers takes the same steps of the paper's
network, and so has its fidelity. Prints the table in Markdown and writes the figure.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gazediffusion as gd
from benchmark import ROWS
from gazediffusion.document import Estimate, Table, table_markdown
from gazediffusion.files import read_json
from gazediffusion.plotting.style import BLUE, GREEN, GREY, ORANGE, house_style
from pictures import save_small

TEST = "8 s"
# Row of the benchmark, and what the labels of benchmarks/generate.py hold.
WAYS = {
    "paper's sampler": ("the-paper-s-position-recipe", "paper:"),
    "diffusers, same network": ("the-paper-s-position-recipe", "diffusers"),
    "fast": ("gazediffusion-fast", ", fast, "),
    "default": ("gazediffusion-default", ", default, "),
    "best": ("gazediffusion-best", ", best, "),
}
COLOURS = (BLUE, ORANGE, GREEN)


@dataclass(frozen=True)
class Machine:
    """Seconds a window of each way that was measured on it."""

    name: str
    seconds: Mapping[str, float]

    @classmethod
    def load(cls, path: Path) -> Machine:
        """As benchmarks/generate.py wrote it; of two precisions the faster."""
        values = read_json(path)
        found = {}
        for way, (_, part) in WAYS.items():
            fitting = [one for label, one in values["seconds"].items() if part in label]
            if fitting:
                found[way] = min(fitting)
        return cls(values["machine"], found)


def table_of(rows: Mapping[str, gd.BenchmarkRow], machines: list[Machine]) -> Table:
    """Times and fidelity of every way."""
    columns = ["sampler", *(f"{one.name}, s a window" for one in machines), "ratio", f"AUC, {TEST}"]
    cells = [
        [
            way,
            *(f"{one.seconds[way]:.2g}" if way in one.seconds else "" for one in machines),
            row.ratio,
            row.deep_auc.get(TEST),
        ]
        for way, row in rows.items()
    ]
    return Table("Speed and fidelity", columns, cells)


def draw(rows: Mapping[str, gd.BenchmarkRow], machines: list[Machine], path: Path) -> None:
    """A point for each way and machine, with its interval, and the floor."""
    import matplotlib.pyplot as plt

    with house_style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), sharex=True)
        for way, row in rows.items():
            cells = {left: row.ratio, right: row.deep_auc.get(TEST)}
            for colour, machine in zip(COLOURS, machines, strict=False):
                for axes, cell in cells.items():
                    if way in machine.seconds and cell is not None:
                        _point(axes, machine.seconds[way], cell, colour, way)
        floors = [row.deep_floor[TEST] for row in rows.values() if TEST in row.deep_floor]
        if floors:
            low, high = floors[0].interval or (floors[0].value,) * 2
            right.axhspan(low, high, color=GREY, alpha=0.12, linewidth=0)
            right.axhline(floors[0].value, color=GREY, linewidth=0.8)
        left.axhline(1, color=GREY, linewidth=0.8)
        for colour, machine in zip(COLOURS, machines, strict=False):
            left.plot([], [], "o", color=colour, label=machine.name)
        left.legend(loc="center left")
        left.margins(x=0.2)
        left.set(xlabel="seconds a window", ylabel="median ratio to the floor", xscale="log")
        right.set(xlabel="seconds a window", ylabel=f"AUC of the deep test, {TEST}", xscale="log")
        right.set_title("grey: real participants against each other", loc="left")
        save_small(figure, path)


def _point(axes: Any, seconds: float, cell: Estimate, colour: str, way: str) -> None:
    axes.vlines(seconds, *(cell.interval or (cell.value,) * 2), color=colour, linewidth=0.8)
    axes.plot(seconds, cell.value, "o", color=colour, markersize=5)
    name = way.split(",")[0]
    is_above = name in ("default", "paper's sampler")
    place = {"xytext": (5, 6 if is_above else -12), "textcoords": "offset points"}
    axes.annotate(name, (seconds, cell.value), fontsize=8, **place)


def main() -> None:
    """Print the table and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=Path, nargs="+", required=True)
    parser.add_argument("--task", default="movies")
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    machines = [Machine.load(path) for path in given.times]
    rows = {
        way: gd.BenchmarkRow.load(given.rows / given.task / f"{row}.json")
        for way, (row, _) in WAYS.items()
    }
    print(table_markdown(table_of(rows, machines)))
    draw(rows, machines, given.output)


if __name__ == "__main__":
    main()
