"""Generate gaze of two tasks with the packaged model, evaluate it and draw it.

    python examples/demo.py [FOLDER] [-n 100 --quality default]

Each set is compared with the packaged summary of participants who did the same task. No recordings
are needed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.progress import Progress, TaskID

import gazediffusion as gd

TASKS = ("movies", "reading")


def update(bar: Progress, task: TaskID, phase: str, done: float, total: float, note: str) -> None:
    bar.update(task, completed=done)


def main(
    folder: Path, n: int = 100, quality: str = "default", tasks: Sequence[str] = TASKS
) -> None:
    model = gd.load("default")
    shown = {}
    for task in tasks:
        with Progress(transient=True) as bar:
            number = bar.add_task(f"generating {task}", total=n)
            progress = partial(update, bar, number)
            shown[task] = model.sample(n, task=task, quality=quality, progress=progress)
        shown[task].save(folder / f"{task}.parquet", overwrite=True)
        result = gd.evaluate(synthetic={task: shown[task]})
        result.save(folder / f"report-{task}", overwrite=True)
        print(result.headline())
        print(f"wrote {folder / task}.parquet, {folder / f'report-{task}'}/report.html")
    title = "Synthetic gaze, packaged model"
    picture = gd.plot_windows(shown, folder / "gallery.png", title, overwrite=True)
    print(f"wrote {picture}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("demo"))
    parser.add_argument("-n", type=int, default=100)
    parser.add_argument("--quality", default="default", help="default or best")
    arguments = parser.parse_args()
    main(arguments.folder, arguments.n, arguments.quality)
