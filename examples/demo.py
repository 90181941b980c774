"""What the package does with nothing but itself: generate gaze, judge it, look at it.

    python examples/demo.py [FOLDER] [-n 100]

The model inside the package generates two tasks; each set is compared with the summary of real
people doing that task, and its report written. The picture shows windows of both.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from gazediffusion import DiffusionGenerator, SetConfig, write_set
from gazediffusion.cli.console import generation_bar, out, print_evaluation, steps_line
from gazediffusion.device import choose_device
from gazediffusion.evaluation.evaluation import EvaluationConfig
from gazediffusion.evaluation.loading import load_set
from gazediffusion.evaluation.report import write_report
from gazediffusion.evaluation.summary import evaluate_against, find_summary, summary_for
from gazediffusion.models.pretrained import load_model
from gazediffusion.plotting.style import house_style, save_figure, window_gallery

TASKS = ("movies", "reading")


def main(folder: Path, n_windows: int = 100) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    device = choose_device("auto")
    model = load_model("default", device=device)
    shown = {}
    for task in TASKS:
        generator = DiffusionGenerator.of_quality(model, "default", task=task)
        file = folder / f"{task}.parquet"
        with generation_bar(n_windows) as progress:
            write_set(generator, SetConfig(n_windows), file, progress)

        people = find_summary(summary_for({task}))
        config = EvaluationConfig(n_bootstrap=0)
        with steps_line() as step:
            windows = load_set(str(file), "synthetic", people)
            results = evaluate_against(people.summary, {task: windows}, config, people.task, step)
            shown[task] = windows.cut()[:4]
            write_report(results, folder / f"report-{task}", {task: shown[task]})
        print_evaluation(results)

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
