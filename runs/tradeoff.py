"""Speed against fidelity: the figure behind `generate --quality`.

    python runs/tradeoff.py RUN_OR_MODEL WINDOWS.safetensors ... -o FOLDER [-n 400]

For several samplers and numbers of steps: seconds a window on this machine, and the ratios to the
floor over the windows files, all families together and the worst (see `gazediffusion evaluate`).
Each is evaluated once and kept in FOLDER/tradeoff.json; FOLDER/tradeoff.png shows all, with those
marked that --quality names.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.diffusion.solvers import evaluations
from gazediffusion.evaluation.evaluation import EvaluationConfig
from gazediffusion.evaluation.loading import evaluate_model
from gazediffusion.files import read_json, write_json
from gazediffusion.generation.generator import QUALITIES, DiffusionGenerator
from gazediffusion.models.checkpoint import Run
from gazediffusion.models.pretrained import load_model
from gazediffusion.plotting.style import BLUE, GREY, ORANGE, house_style, save_figure

QUICK = EvaluationConfig(quick=True)
WAYS = [
    *(("multistep", n) for n in (6, 8, 10, 12)),
    *(("unipc", n) for n in (12, 15, 20, 40)),
    ("heun", 10),
]


def judged(run: Run, way: tuple[str, int], files: list[Windows], n: int) -> dict[str, Any]:
    """Time and ratios of one sampler."""
    sampler, steps = way
    settings: dict[str, Any] = {
        "quality": "default",
        "sampler": sampler,
        "steps": steps,
    }
    generator = DiffusionGenerator.of_quality(run, **settings)
    list(generator.pieces(0, 2, 0))
    n_timed = 2 * generator.batch_size
    begun = time.perf_counter()
    list(generator.pieces(0, n_timed, 0))
    seconds = (time.perf_counter() - begun) / n_timed
    found = {
        windows.tasks[0]: evaluate_model(run, windows, n, QUICK, **settings) for windows in files
    }
    headlines = [one.headlines["model"] for one in found.values()]
    return {
        "sampler": sampler,
        "steps": steps,
        "evaluations": evaluations(sampler, steps),  # type: ignore[arg-type]
        "bf16": generator.bf16,
        "seconds": seconds,
        "median": float(np.median([one.ratio.value for one in headlines])),
        "worst": max(one.worst_ratio.value or 0.0 for one in headlines),
        "files": {
            task: {"overall": one.results["ratios"]["overall"]["model"]}
            for task, one in found.items()
        },
    }


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Seconds against the ratios: over all families, and the worst single one."""
    import matplotlib.pyplot as plt

    named = {way: name for name, way in QUALITIES["edm"].items()}

    def overall(row: dict[str, Any]) -> float:
        return float(np.mean([one["overall"] for one in row["files"].values()]))

    panels: list[tuple[str, Callable[[dict[str, Any]], float]]] = [
        ("overall ratio to the floor", overall),
        ("worst ratio of 31", lambda row: float(row["worst"])),
    ]
    with house_style():
        figure, all_axes = plt.subplots(1, 2, figsize=(9, 3.6))
        for axes, (label, value) in zip(all_axes, panels, strict=True):
            for sampler, colour in (("multistep", BLUE), ("unipc", GREY), ("heun", ORANGE)):
                chosen = [row for row in rows if row["sampler"] == sampler]
                seconds = [row["seconds"] for row in chosen]
                axes.plot(
                    seconds, [value(row) for row in chosen], "o-", color=colour, label=sampler
                )
            for row in rows:
                name = named.get((row["sampler"], row["steps"]))
                if not name and row["sampler"] == "multistep" and row["steps"] > 10:
                    continue  # next to its corrected twin
                text = f"{row['evaluations']}" + (f" ({name})" if name else "")
                place = (row["seconds"], value(row))
                if row["sampler"] == "multistep":
                    side, shift = "right", (-2, -12)
                else:  # the long name of the default stands above
                    side, shift = "left", (2, 6 if name or row["steps"] < 15 else -12)
                axes.annotate(
                    text, place, textcoords="offset points", xytext=shift, ha=side, fontsize=8
                )
            axes.axhline(1, color=GREY, linewidth=0.8)
            most = max(value(row) for row in rows)
            ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500) if tick < 2 * most]
            axes.set(xlabel="seconds a window", ylabel=label, yscale="log", xlim=(0, None))
            axes.set_yticks(ticks, labels=[str(tick) for tick in ticks])
            axes.minorticks_off()
        all_axes[0].set_title("Numbers: evaluations a window", loc="left", fontsize=9)
        all_axes[1].legend()
        save_figure(figure, path)


def main() -> None:
    """Judge what is missing, then draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("-n", type=int, default=400)
    given = parser.parse_args()
    run = load_model(given.model, device=choose_device("auto"))
    files = [Windows.load(path) for path in given.windows]
    kept = given.output / "tradeoff.json"
    rows: list[dict[str, Any]] = read_json(kept)["rows"] if kept.is_file() else []
    done = {(row["sampler"], row["steps"]) for row in rows}
    for way in WAYS:
        if way not in done:
            rows.append(judged(run, way, files, given.n))
            about = {"model": run.weights_sha256, "n": given.n, "rows": rows}
            write_json(kept, about)
            one = rows[-1]
            print(
                f"{way[0]:9} {way[1]:3} {one['seconds']:.4f} s  median {one['median']:.2f}  "
                f"worst {one['worst']:.2f}",
                flush=True,
            )
    draw(rows, given.output / "tradeoff.png")
    print(f"wrote {kept}, {given.output / 'tradeoff.png'}")


if __name__ == "__main__":
    main()
