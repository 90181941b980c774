"""The whole way on simulated recordings: simulate, read back, prepare, draw.

python examples/demo.py [FOLDER]
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from gazediffusion import PrepareConfig, SimulationConfig, find_sources, prepare, write_simulation
from gazediffusion.console import inspection_table, out, print_windows, recording_bar
from gazediffusion.figures import house_style, save_figure, window_gallery
from gazediffusion.inspection import inspect
from gazediffusion.overview import draw_overview


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    write_simulation(SimulationConfig(n_participants=10, minutes=2), folder / "recordings", "asc")
    sources = find_sources([folder / "recordings"])
    config = PrepareConfig()

    out.print(inspection_table(inspect(sources, config), config.seconds))
    draw_overview(sources, config, folder / "recording.png")

    with recording_bar("preparing", len(sources)) as progress:
        windows = prepare(sources, config, progress)
    windows.save(folder / "windows.safetensors")
    print_windows(windows)

    chosen = windows.select(windows.starts.argsort()[:: max(1, len(windows) // 4)][:4])
    names = [f"participant {windows.participants[k]}" for k in chosen.participant]
    with house_style():
        gallery = window_gallery(
            chosen.cut(), names, windows.rate_hz, windows.screen, "Four simulated windows of 8 s"
        )
        save_figure(gallery, folder / "windows.png")
    for name in ("recordings", "recording.png", "windows.safetensors", "windows.png"):
        out.print(f"wrote {folder / name}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
