"""Put a version of the benchmark into the package: a definition of each task.

    python runs/define_benchmark.py WINDOWS.safetensors ... [--draws 40] [--only TASK ...]

A few minutes a task on one core. A version that was published never changes: the script refuses to
write over a definition; raise VERSION in evaluation/benchmark_definition.py first. Definitions hold
histograms, mean curves and centres of balls, never rows (docs/benchmark.md).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from gazediffusion.data.windows import Windows
from gazediffusion.evaluation.benchmark_defining import N_DRAWS, define
from gazediffusion.evaluation.benchmark_definition import VERSION, definitions_folder
from gazediffusion.files import written_whole

BIOEYE = "BioEye 2015 - Competition on Biometrics via Eye Movements, doi 10.1109/BTAS.2015.7358750"
CITATIONS = {
    "reading": BIOEYE,
    "movies": "Dorr, Martinetz, Gegenfurtner, Barth 2010, Variability of eye movements when "
    "viewing dynamic natural scenes, J Vision 10(10):28",
    "dots": BIOEYE,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the definitions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    parser.add_argument("--only", nargs="+", help="tasks", default=list(CITATIONS))
    parser.add_argument("--folder", type=Path, default=definitions_folder(VERSION))
    given = parser.parse_args(arguments)
    for windows in map(Windows.load, given.windows):
        for task in (one for one in given.only if one in windows.tasks):
            content = define(
                windows,
                task,
                CITATIONS[task],
                n_draws=given.draws,
                progress=lambda name, task=task: print(f"{task}: {name}", end="\r"),  # type: ignore[misc]
            )
            path = given.folder / f"{task}.json"
            with written_whole(path, overwrite=False) as temporary:
                text = json.dumps(content, separators=(",", ":"), allow_nan=False)
                temporary.write_text(text + "\n", encoding="utf-8")
            row = {key: content["training_row"][key] for key in ("ratio", "n_above", "coverage")}
            print(f"wrote {path}: {path.stat().st_size / 1000:.0f} kB; real windows: {row}")


if __name__ == "__main__":
    main()
