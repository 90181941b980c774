"""Hashes of what the package computes, so that a change of code that should change no number does.

    python tests/golden.py --write [NAME ...]    # record tests/golden.json
    python tests/golden.py --check [NAME ...]    # compare with it

Without names all cases are meant; `generate` names every generate/... case.

Arrays are hashed, not the files around them, since cards hold versions and times. The hashes are
those of the machine that recorded them: another CPU, or another torch, rounds differently. So this
is no pytest test; record before a change and check after it, on one machine. Evaluations are
rounded first.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the sums of several threads differ

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = Path(__file__).with_suffix(".json")
TASKS = ("movies", "stills", "stop-motion", "trailers", "dots", "reading")
SCANPATH = "x_px,y_px,duration_ms\n640,360,300\n960,180,250\n300,500,\n700,300,400\n"
# Verbs by the command line: what is run, and the file whose bytes are hashed.
COMMANDS = {
    "csv": ("generate -n 2 --task {task} --seed 5 -o {out}/gaze.csv", "gaze.csv"),
    "rate": (
        "generate -n 1 --task {task} --rate 60 --set grid_px=0.1 -o {out}/gaze.csv",
        "gaze.csv",
    ),
    "asc": ("generate -n 1 --task {task} --seed 5 --format asc -o {out}/gaze", "gaze/*.asc"),
    "label": ("label {study} -o {out}/labelled.csv", "labelled.csv"),
}

Case = Callable[[Path], Any]


def digest(value: Any) -> str:
    """The sha256 of arrays, bytes, tables and plain values."""
    found = hashlib.sha256()
    for part in parts_of(value):
        found.update(part)
    return found.hexdigest()


def parts_of(value: Any) -> list[bytes]:
    """What of a value is hashed."""
    if isinstance(value, bytes):
        return [value]
    if isinstance(value, np.ndarray):
        return [
            repr((value.dtype.str, value.shape)).encode(),
            np.ascontiguousarray(value).tobytes(),
        ]
    if isinstance(value, Mapping):
        return [p for k in sorted(value) for p in (str(k).encode(), *parts_of(value[k]))]
    if isinstance(value, list | tuple):
        return [b"[", *(part for one in value for part in parts_of(one)), b"]"]
    return [repr(round(value, 12) if isinstance(value, float) else value).encode()]


def of_windows(windows: Any) -> list[Any]:
    """Gaze, labels and whose they are."""
    identity = {name: [str(one) for one in of] for name, of in windows.identity.items()}
    return [windows.to_numpy(), windows.cut_labels(), windows.cut_targets(), identity]


def of_recordings(recordings: Any) -> list[Any]:
    """Clock, gaze, labels and what was filled, of each recording."""
    return [
        [
            (one.participant, one.task, one.trial, one.rate_hz),
            one.time_ms,
            dict(one.gaze_px),
            dict(one.is_blink),
            dict(one.is_filled),
            np.zeros(0) if one.labels is None else one.labels,
        ]
        for one in recordings
    ]


@cache
def model(name: str = "default") -> Any:
    """A packaged model."""
    import gazediffusion as gd

    return gd.load(name, device="cpu")


@cache
def study() -> Path:
    """A simulated study of three participants as CSV, with blinks and losses."""
    return simulated("csv")


def simulated(format: str) -> Path:
    """The same simulated participants in a format."""
    import gazediffusion as gd

    folder = Path(tempfile.mkdtemp(prefix="golden-")) / format
    config = gd.SimulationConfig(n_participants=3, minutes=0.5, rate_hz=250, seed=5)
    gd.write_simulation(config, folder, format)
    return folder


@cache
def windows() -> Any:
    """Windows of the simulated study, for training and evaluation; short, to be fast."""
    import gazediffusion as gd

    config = gd.PrepareConfig(seconds=1.024, stride_s=0.256)
    folder = Path(tempfile.mkdtemp(prefix="golden-"))
    gd.prepare(gd.read(study()), config).save(folder / "windows.safetensors")
    return gd.Windows.load(folder / "windows.safetensors")


def generated(n: int = 2, name: str = "default", **settings: Any) -> Case:
    """A case: windows of a packaged model."""
    return lambda folder: of_windows(model(name).sample(n, **settings))


def given_scanpath(folder: Path) -> Any:
    """Gaze along a scanpath."""
    import gazediffusion as gd

    (folder / "scanpath.csv").write_text(SCANPATH)
    given = gd.read_scanpaths(folder / "scanpath.csv", model().screen_of("stills"))
    return of_windows(model().sample(1, task="stills", scanpath=given))


def like_recording(folder: Path) -> Any:
    """Gaze in the style of a recording."""
    import gazediffusion as gd

    first = [one for one in gd.read(study()) if one.participant == "01"]
    return of_windows(model().sample(1, task="stills", like=gd.Recordings.of(first)))


def filled(folder: Path) -> Any:
    """Gaps filled."""
    import gazediffusion as gd

    gd.fill(study(), folder / "filled", model(), task="stills", draws=1)
    return of_recordings(gd.read(folder / "filled"))


def labelled(folder: Path) -> Any:
    """Events labelled."""
    import gazediffusion as gd

    gd.label(study(), folder / "labelled", model())
    return of_recordings(gd.read(folder / "labelled"))


def augmented(folder: Path) -> Any:
    """Synthetic recordings of a study."""
    import gazediffusion as gd

    held_out = ["02", "03"]
    gd.augment(study(), folder / "more", model(), task="stills", times=1, held_out=held_out)
    return of_recordings(gd.read(folder / "more"))


def scored(folder: Path) -> Any:
    """Scores of every window."""
    import gazediffusion as gd

    frame = gd.score(study(), None, model(), n_noise=1, n_draws=1, n_steps=5).to_frame()
    return {name: frame[name].to_list() for name in frame.columns}


def evaluated(folder: Path) -> Any:
    """An evaluation against recorded windows, without provenance."""
    import gazediffusion as gd

    other = gd.simulate(gd.SimulationConfig(n_participants=3, minutes=0.4, rate_hz=250, seed=7))
    recordings = gd.Recordings.of(one.recording for one in other)
    synthetic = gd.prepare(recordings, gd.PrepareConfig(seconds=1.024, stride_s=0.256))
    config = gd.EvaluationConfig(n_bootstrap=20)
    return numbers(
        json.loads(gd.evaluate(windows(), {"other": synthetic}, config=config).to_json())
    )


def numbers(value: Any) -> Any:
    """Numbers with their names; texts, versions and provenance may change."""
    if isinstance(value, Mapping):
        kept = {k: numbers(v) for k, v in value.items() if k not in ("provenance", "versions")}
        return {k: v for k, v in kept.items() if v not in (None, {}, [])}
    if isinstance(value, list):
        return [v for v in map(numbers, value) if v is not None]
    return value if isinstance(value, int | float) else None


def trained(recipe: str) -> Case:
    """A case: a tiny model trained in one go, and stopped and resumed; both are the same."""

    def case(folder: Path) -> Any:
        import gazediffusion as gd

        of: dict[str, Any] = {"epochs": 1, "device": "cpu", "batch_size": 32}
        straight = gd.train(windows(), folder / "straight", recipe, **of)
        steps = 0

        def should_stop() -> bool:
            nonlocal steps
            steps += 1
            return steps > 1

        try:
            gd.train(windows(), folder / "stopped", recipe, should_stop=should_stop, **of)
            raise SystemExit(f"the training of {recipe} did not stop")
        except gd.StoppedError:
            resumed = gd.train(windows(), folder / "stopped", recipe, **of)
        found = [of_windows(one.sample(2, seed=1)) for one in (straight, resumed)]
        if digest(found[0]) != digest(found[1]):
            raise SystemExit(f"{recipe}: resumed is not as trained in one go")
        return found[0]

    return case


def prepared(format: str) -> Case:
    """A case: windows of simulated recordings of a format."""

    def case(folder: Path) -> Any:
        import gazediffusion as gd

        config = gd.PrepareConfig(seconds=4, stride_s=1)
        return of_windows(gd.prepare(gd.read(simulated(format)), config))

    return case


def by_command(arguments: str, output: str) -> Case:
    """A case: a command, and the bytes of a file that it writes."""

    def case(folder: Path) -> Any:
        given = arguments.format(out=folder, study=study(), task="stills")
        command = [sys.executable, "-m", "gazediffusion", *given.split()]
        subprocess.run(command, check=True, capture_output=True)
        written = sorted(folder.glob(output))
        return [path.read_bytes() for path in written] or sys.exit(f"no {output} was written")

    return case


CASES: dict[str, Case] = {
    **{f"generate/{task}": generated(task=task, seed=1) for task in TASKS},
    "generate/mixture": generated(3, seed=2),
    "generate/best": generated(1, task="stills", quality="best"),
    "generate/long": generated(1, task="reading", seconds=20),
    "generate/losses": generated(1, task="movies", track_loss=True, seed=3),
    "generate/labels": generated(2, task="movies", labels=True, seed=4),
    "generate/rate": generated(1, task="dots", rate_hz=60),
    "generate/waypoint": generated(1, task="stills", at=[(2.0, 0.5, -0.25)]),
    "generate/position": generated(1, "position", steps=4),
    "generate/velocity": generated(1, "velocity", steps=4),
    "generate/scanpath": given_scanpath,
    "generate/like": like_recording,
    "fill": filled,
    "label": labelled,
    "augment": augmented,
    "score": scored,
    "evaluate": evaluated,
    **{f"train/{recipe}": trained(recipe) for recipe in ("position-tiny", "steerable-tiny")},
    **{f"prepare/{format}": prepared(format) for format in ("asc", "bids", "csv")},
    **{f"command/{name}": by_command(*command) for name, command in COMMANDS.items()},
}


def chosen(names: list[str]) -> list[str]:
    """The cases named, whole or by what stands before the slash."""
    found = [case for case in CASES if not names or {case, case.split("/")[0]} & set(names)]
    return found or sys.exit(f"no case {' '.join(names)}; there are: {' '.join(CASES)}")


def computed(names: list[str]) -> dict[str, str]:
    """Case -> hash, with the seconds that each takes."""
    hashes = {}
    for name in names:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            hashes[name] = digest(CASES[name](Path(folder)))
        print(f"{time.perf_counter() - began:6.1f} s  {name}", flush=True)
    return hashes


def main() -> None:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    does = parser.add_mutually_exclusive_group(required=True)
    does.add_argument("--write", nargs="*", metavar="NAME", help="record all cases, or some")
    does.add_argument("--check", nargs="*", metavar="NAME", help="compare all cases, or some")
    given = parser.parse_args()
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if given.write is not None:
        hashes = {**golden, **computed(chosen(given.write))}
        kept = {name: hashes[name] for name in CASES if name in hashes}
        GOLDEN.write_text(json.dumps(kept, indent=2) + "\n")
        return
    found = computed(chosen(given.check))
    changed = [name for name, of in found.items() if golden.get(name) != of]
    sys.exit(f"changed: {' '.join(changed)}" if changed else None)


if __name__ == "__main__":
    main()
