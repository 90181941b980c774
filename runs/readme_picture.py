"""Four synthetic windows of a run, for the README.

python runs/readme_picture.py RUN PICTURE
"""

from __future__ import annotations

import sys
from pathlib import Path

from gazediffusion import DiffusionGenerator, load_run
from gazediffusion.figures import house_style, save_figure, window_gallery


def main(run_folder: Path, picture: Path) -> None:
    """Generate and draw."""
    run = load_run(run_folder)
    windows = DiffusionGenerator(run, batch_size=4).sample(4)
    with house_style():
        figure = window_gallery(
            {f"recipe {run.config.recipe.name}": windows.cut()},
            windows.rate_hz,
            windows.screen,
            "Synthetic gaze",
        )
        save_figure(figure, picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
