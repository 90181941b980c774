"""From recordings to synthetic gaze with a small model: simulate, prepare, train, generate.

    python examples/own_recordings.py [FOLDER] [--epochs 40 --windows 8]

Replace the simulated recordings by a folder of your own. The tiny recipe trains for a minute on a
laptop and only shows the steps; use recipe="joint" on a GPU, or `gd.load("default").fine_tune`.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np

import gazediffusion as gd


def main(folder: Path, n_epochs: int = 40, n_windows: int = 8, minutes: float = 1.0) -> None:
    simulation = gd.SimulationConfig(n_participants=10, minutes=minutes)
    gd.write_simulation(simulation, folder / "recordings", "asc", overwrite=True)

    recordings = gd.read(folder / "recordings")
    print(recordings)
    gd.plot_recording(recordings, gd.PrepareConfig(), folder / "recording.png", overwrite=True)
    windows = gd.prepare(recordings)
    windows.save(folder / "windows.safetensors", overwrite=True)
    windows = gd.Windows.load(folder / "windows.safetensors")
    print(windows)

    shutil.rmtree(folder / "run", ignore_errors=True)  # otherwise training would resume
    model = gd.train(
        windows,
        folder / "run",
        "position-tiny",
        epochs=n_epochs,
        on_epoch=lambda one: print(f"epoch {one.epoch}: held-out loss {one.validation_loss:.4f}"),
    )
    synthetic = model.sample(n_windows)
    synthetic.save(folder / "gaze.parquet", overwrite=True)
    sets = {"simulated, held out": windows.held_out, "synthetic, tiny model": synthetic}
    title = "Simulated gaze and samples of a tiny model"
    gd.plot_windows(sets, folder / "gallery.png", title, overwrite=True)
    for name, one in sets.items():
        path = np.hypot(*np.diff(one.to_numpy(), axis=2).transpose(1, 0, 2)).sum(axis=1)
        print(f"{name}: mean path length {path.mean():.1f} normalized units")
    for name in ("recordings", "windows.safetensors", "run", "gaze.parquet", "gallery.png"):
        print(f"wrote {folder / name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("own"))
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--windows", type=int, default=8)
    arguments = parser.parse_args()
    main(arguments.folder, arguments.epochs, arguments.windows)
