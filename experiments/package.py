"""Put things into the package: a trained run, and definitions and summaries of real gaze.

    python experiments/package.py model RUN NAME [--levels 511]        # a minute
    python experiments/package.py definitions WINDOWS ...              # minutes a task on one core
    python experiments/package.py summary WINDOWS gazecom              # minutes on one core

model        rounded weights and configuration of a run folder or of a packaged model, which is
             rounded again, into network/pretrained/NAME. The model card (README.md there) is
             written by hand.
definitions  of the benchmark, one of each task. A version that was published never changes: the
             script refuses to write over a definition; raise VERSION first. Definitions hold
             histograms, mean curves and centres of balls, never rows.
summary      histograms, mean curves and floors of real gaze, for evaluations without recordings.

The result says what was written: its size, and of a definition how far training participants are.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import gazediffusion as gd
from gazediffusion.evaluation.packaging import N_DRAWS, define, summarise
from gazediffusion.evaluation.real_gaze import SUFFIX, VERSION, definitions_folder, summaries_folder
from gazediffusion.network.pretrained import WEIGHTS, load_model, pretrained_folder, save_pretrained
from gazediffusion.storage import written_whole
from report import Result, options

# What the data's authors ask to be cited.
GAZECOM = "Dorr, Martinetz, Gegenfurtner, Barth 2010, Variability of eye movements when viewing "
GAZECOM += "dynamic natural scenes, J Vision 10(10):28"
BIOEYE = "BioEye 2015 - Competition on Biometrics via Eye Movements, doi 10.1109/BTAS.2015.7358750"
CITATIONS = {"gazecom": GAZECOM, "bioeye": BIOEYE}
OF_TASK = {"reading": BIOEYE, "movies": GAZECOM, "dots": BIOEYE}


def package_model(result: Result, source: str, name: str, levels: int, folder: Path) -> None:
    """Round a run's weights and write them."""
    save_pretrained(load_model(source), folder / name, levels)
    size = (folder / name / WEIGHTS).stat().st_size / 1e6
    result.add("model", {"model": name, "levels": levels, "MB": size})


def package_definitions(result: Result, windows: gd.Windows, folder: Path, n_draws: int) -> None:
    """Write the definition of each task of a windows file."""
    for task in (one for one in OF_TASK if one in windows.tasks):
        content = define(windows, task, OF_TASK[task], n_draws=n_draws)
        path = folder / f"{task}.json"
        with written_whole(path, overwrite=False) as temporary:
            text = json.dumps(content, separators=(",", ":"), allow_nan=False)
            temporary.write_text(text + "\n", encoding="utf-8")
        row = {key: content["training_row"][key]["value"] for key in ("ratio", "n_above")}
        result.add("definitions", {"task": task, "kB": path.stat().st_size / 1000, **row})


def package_summary(result: Result, windows: gd.Windows, name: str, folder: Path) -> None:
    """Write the summary of a windows file."""
    summary = summarise(windows, name, CITATIONS[name])
    path = folder / (name + SUFFIX)
    with written_whole(path) as temporary:
        text = json.dumps(summary, separators=(",", ":")) + "\n"
        temporary.write_bytes(gzip.compress(text.encode(), mtime=0))
    about = {"tasks": ", ".join(summary["parts"]), "left out": ", ".join(summary["left_out"])}
    result.add("summary", {"name": name, "kB": path.stat().st_size / 1000, **about})


def main() -> None:
    """Write what is asked for."""
    parser = options(__doc__, "package", model=None)
    parser.add_argument("what", nargs="?", choices=("model", "definitions", "summary"))
    parser.add_argument("given", nargs="*", help="run and name, windows, or windows and name")
    parser.add_argument("--levels", type=int, default=511)
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    parser.add_argument("--folder", type=Path, help="instead of the package's own")
    given = parser.parse_args()
    result = Result.of(given)
    if given.tiny:
        folder = given.output.parent / "packaged"
        package_model(result, "joint", "tiny", 15, folder)
    elif given.what == "model":
        folder = given.folder or pretrained_folder()
        source, name = given.given
        package_model(result, source, name, given.levels, folder)
    elif given.what == "definitions":
        folder = given.folder or definitions_folder(VERSION)
        for path in given.given:
            package_definitions(result, gd.Windows.load(path), folder, given.draws)
    else:
        path, name = given.given
        folder = given.folder or summaries_folder()
        package_summary(result, gd.Windows.load(path), name, folder)
    result.save()


if __name__ == "__main__":
    main()
