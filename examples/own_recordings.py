"""The whole way on simulated recordings with a tiny model: simulate, prepare, train, generate.

    python examples/own_recordings.py [FOLDER] [--epochs 40 --windows 8]

The tiny model learns for a minute and is no model of gaze; it shows that the way works.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gazediffusion import (
    RECIPES,
    DiffusionGenerator,
    PrepareConfig,
    SetConfig,
    SimulationConfig,
    Windows,
    find_sources,
    inspect,
    load_run,
    prepare,
    train,
    write_set,
    write_simulation,
)
from gazediffusion.cli.console import (
    generation_bar,
    inspection_table,
    out,
    print_run,
    print_windows,
    recording_bar,
    training_bar,
)
from gazediffusion.plotting.overview import draw_overview
from gazediffusion.plotting.style import house_style, save_figure, window_gallery


def main(folder: Path, n_epochs: int = 40, n_windows: int = 8) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    write_simulation(SimulationConfig(n_participants=10, minutes=2), folder / "recordings", "asc")

    sources = find_sources([folder / "recordings"])
    config = PrepareConfig()
    out.print(inspection_table(inspect(sources, config), config.seconds))
    draw_overview(sources, config, folder / "recording.png")
    with recording_bar("preparing", len(sources)) as progress:
        prepare(sources, config, progress).save(folder / "windows.safetensors")
    windows = Windows.load(folder / "windows.safetensors")
    print_windows(windows)

    recipe = replace(RECIPES["position-tiny"], epochs=n_epochs)
    with training_bar(recipe.epochs) as bar:
        for epoch in train(windows, folder / "run", recipe, on_step=bar.on_step):
            bar.on_epoch(epoch)
    print_run(folder / "run")

    generator = DiffusionGenerator(load_run(folder / "run"))
    with generation_bar(n_windows) as show:
        write_set(generator, SetConfig(n_windows), folder / "gaze.parquet", show)
    synthetic = generator.sample(min(4, n_windows)).cut()
    simulated = windows.held_out.cut()[:: max(1, len(windows.held_out) // 4)][: len(synthetic)]
    with house_style():
        gallery = window_gallery(
            {"simulated, held out": simulated, "synthetic, tiny model": synthetic},
            windows.rate_hz,
            windows.screen,
            "Simulated gaze, and what a tiny model trained for a minute makes of it",
        )
        save_figure(gallery, folder / "gallery.png")

    for name, gaze in (("simulated", simulated), ("synthetic", synthetic)):
        out.print(f"{name}: {summary(gaze)}")
    for name in ("recordings", "windows.safetensors", "run", "gaze.parquet", "gallery.png"):
        out.print(f"wrote {folder / name}")


def summary(gaze: NDArray[np.float32]) -> str:
    """Path length and spread of windows (window, 2, time), in screen halves."""
    path = np.hypot(*np.diff(gaze, axis=2).transpose(1, 0, 2)).sum(axis=1)
    spread = gaze.std(axis=2).mean(axis=0)
    return f"path length {path.mean():.1f}, spread x {spread[0]:.2f}, y {spread[1]:.2f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("own"))
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--windows", type=int, default=8)
    arguments = parser.parse_args()
    main(arguments.folder, arguments.epochs, arguments.windows)
