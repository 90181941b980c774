"""What the package does with nothing but itself: generate gaze, evaluate it, look at it.

    python examples/demo.py [FOLDER] [-n 100]

The model inside the package generates two tasks; each set is compared with the summary of real
gaze in that task, and its report written. The picture shows windows of both.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gazediffusion import DiffusionGenerator, SetConfig, evaluate_files, write_set
from gazediffusion.cli.console import generation_bar, out, print_evaluation, steps_line
from gazediffusion.device import choose_device
from gazediffusion.models.pretrained import load_model
from gazediffusion.plotting.style import house_style, save_figure, window_gallery

TASKS = ("movies", "reading")


def main(folder: Path, n_windows: int = 100) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    device = choose_device("auto")
    model = load_model("default", device=device)
    shown: dict[str, NDArray[np.float32]] = {}
    for task in TASKS:
        generator = DiffusionGenerator.of_quality(model, "default", task=task)
        file = folder / f"{task}.parquet"
        with generation_bar(n_windows) as progress:
            write_set(generator, SetConfig(n_windows), file, progress)

        with steps_line() as step:
            evaluation = evaluate_files({task: file}, progress=step)
            evaluation.save(folder / f"report-{task}")
        shown |= evaluation.shown
        print_evaluation(evaluation)

    title = "Synthetic gaze by the model inside the package"
    with house_style():
        gallery = window_gallery(shown, model.config.rate_hz, model.config.screen, title)
        save_figure(gallery, folder / "gallery.png")
    for task in TASKS:
        out.print(f"wrote {folder / task}.parquet, {folder / f'report-{task}'}/report.html")
    out.print(f"wrote {folder / 'gallery.png'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("demo"))
    parser.add_argument("-n", type=int, default=100)
    arguments = parser.parse_args()
    main(arguments.folder, arguments.n)
