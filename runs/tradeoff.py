"""Speed against fidelity: the figure of `generate --quality`.

    python runs/tradeoff.py MODEL WINDOWS.safetensors ... -o FOLDER [-n 400]

For several samplers and numbers of steps: seconds per window on this machine, and ratios to the
floor over the windows files, overall and the worst (see `gazediffusion evaluate`). Each sampler is
evaluated once and kept in FOLDER/tradeoff.json. FOLDER/tradeoff.png shows all, and names those of
--quality.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import gazediffusion as gd
from gazediffusion.diffusion.solvers import evaluations
from gazediffusion.evaluation.loading import evaluate_model
from gazediffusion.files import read_json, write_json
from gazediffusion.generation.qualities import QUALITIES
from gazediffusion.plotting.style import BLUE, GREY, ORANGE, house_style, save_figure

QUICK = gd.EvaluationConfig(quick=True)
SAMPLERS = [
    *(("multistep", n) for n in (6, 8, 10, 12)),
    *(("unipc", n) for n in (12, 15, 20, 40)),
    ("heun", 10),
]
COLOURS = {"multistep": BLUE, "unipc": GREY, "heun": ORANGE}
PANELS = {"overall": "overall ratio to the floor", "worst": "worst ratio of 31"}


def measure(
    model: gd.Model, sampler: str, steps: int, files: list[gd.Windows], n: int
) -> dict[str, Any]:
    """Time and ratios of one sampler."""
    generator = model.generator(sampler=sampler, steps=steps)
    list(generator.pieces(0, 2, 0))
    n_timed = 2 * generator.batch_size
    started = time.perf_counter()
    list(generator.pieces(0, n_timed, 0))
    seconds = (time.perf_counter() - started) / n_timed
    found = [
        evaluate_model(model.run, one, n, QUICK, sampler=sampler, steps=steps) for one in files
    ]
    headlines = [one.headlines["model"] for one in found]
    return {
        "sampler": sampler,
        "steps": steps,
        "evaluations": evaluations(sampler, steps),  # type: ignore[arg-type]
        "bf16": generator.bf16,
        "seconds": seconds,
        "median": float(np.median([one.ratio.value for one in headlines])),
        "worst": max(one.worst_ratio.value or 0.0 for one in headlines),
        "overall": float(np.mean([one.results["ratios"]["overall"]["model"] for one in found])),
    }


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Seconds per window against the ratios; labels are network evaluations per window."""
    import matplotlib.pyplot as plt

    names = {setting: f" ({name})" for name, setting in QUALITIES["edm"].items()}
    with house_style():
        figure, all_axes = plt.subplots(1, 2, figsize=(9, 3.6))
        for axes, (key, label) in zip(all_axes, PANELS.items(), strict=True):
            for sampler, colour in COLOURS.items():
                points = [(row["seconds"], row[key]) for row in rows if row["sampler"] == sampler]
                axes.plot(*zip(*points, strict=True), "o-", color=colour, label=sampler)
            for row in rows:
                text = f"{row['evaluations']}{names.get((row['sampler'], row['steps']), '')}"
                shift, side = (
                    ((2, -12), "right") if row["sampler"] == "multistep" else ((2, 6), "left")
                )
                place = {"xytext": shift, "textcoords": "offset points", "ha": side}
                axes.annotate(text, (row["seconds"], row[key]), fontsize="small", **place)
            axes.axhline(1, color=GREY, linewidth=0.8)
            axes.set(xlabel="seconds per window", ylabel=label, yscale="log", xlim=(0, None))
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        all_axes[0].set_title("numbers: network evaluations per window", loc="left")
        all_axes[1].legend()
        save_figure(figure, path)


def main() -> None:
    """Evaluate what is missing, then draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("-n", type=int, default=400)
    given = parser.parse_args()
    model = gd.load(given.model)
    files = [gd.Windows.load(path) for path in given.windows]
    path = given.output / "tradeoff.json"
    rows: list[dict[str, Any]] = read_json(path)["rows"] if path.is_file() else []
    done = {(row["sampler"], row["steps"]) for row in rows}
    for sampler, steps in SAMPLERS:
        if (sampler, steps) not in done:
            rows.append(measure(model, sampler, steps, files, given.n))
            write_json(path, {"model": model.run.weights_sha256, "n": given.n, "rows": rows})
            print(rows[-1], flush=True)
    draw(rows, given.output / "tradeoff.png")
    print(f"wrote {path}, {given.output / 'tradeoff.png'}")


if __name__ == "__main__":
    main()
