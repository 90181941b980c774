"""The command line, run as users run it: arguments in, lines and files out, 0 or 2."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from gazediffusion.data.windows import Windows
from tests.conftest import RunCommand


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five simulated participants in one Parquet table."""
    from gazediffusion.data.simulation import write_simulation
    from gazediffusion.settings import SimulationConfig

    folder = tmp_path_factory.mktemp("study") / "study"
    config = SimulationConfig(n_participants=5, minutes=1.0, rate_hz=250, seed=3)
    write_simulation(config, folder, "parquet")
    return folder


def error_of(result: tuple[int, str, str]) -> str:
    """The error line of a failed command; fails unless it is one line with exit code 2."""
    code, _, lines = result
    assert code == 2, lines
    assert "Traceback" not in lines
    said = [line for line in lines.splitlines() if line.strip()]
    assert len(said) == 1
    assert said[0].startswith("error: ")
    return said[0]


def test_version_is_printed(run: RunCommand) -> None:
    code, said, _ = run("--version")
    assert (code, said.split()[0]) == (0, "gazediffusion")


@pytest.mark.parametrize("format", ["asc", "csv", "parquet", "bids", "columns"])
def test_simulated_files_of_every_format_are_inspected_and_prepared(
    run: RunCommand, tmp_path: Path, format: str
) -> None:
    code, said, _ = run(
        "simulate", "-o", tmp_path / "sim", "--participants", 3, "--minutes", 1,
        "--format", format, "--rate", 500,
    )  # fmt: skip
    assert code == 0
    assert "3 participants" in said
    code, said, _ = run("inspect", tmp_path / "sim")
    assert code == 0
    assert "500" in said
    code, said, lines = run("prepare", tmp_path / "sim", "-o", tmp_path / "w.safetensors")
    assert code == 0, lines
    assert f"wrote {tmp_path / 'w.safetensors'}" in said
    windows = Windows.load(tmp_path / "w.safetensors")
    assert len(windows.participants) == 3
    assert len(windows.validation) == 1
    assert len(windows) > 0


def test_inspect_draws_a_recording(run: RunCommand, study: Path, tmp_path: Path) -> None:
    code, said, _ = run("inspect", study, "--plot", tmp_path / "look.png")
    assert code == 0
    assert f"wrote {tmp_path / 'look.png'}" in said
    assert (tmp_path / "look.png").read_bytes().startswith(b"\x89PNG")


def test_info_tells_what_prepare_did(run: RunCommand, study: Path, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    code, prepared, _ = run("prepare", study, "-o", path, "--protocol", "velocity")
    assert code == 0
    code, said, _ = run("info", path)
    assert code == 0
    assert "velocity windows: 2000 samples at 250 Hz" in said
    assert "recordings.parquet" in said
    assert prepared.splitlines()[0] in said
    code, said, _ = run("info", path, "--json")
    described = json.loads(said)
    assert described["velocity_scale"] > 0
    assert described["provenance"]["config"]["protocol"] == "velocity"


def test_columns_can_be_named(run: RunCommand, study: Path, tmp_path: Path) -> None:
    table = pl.read_parquet(next(study.rglob("*.parquet")))
    x, y = (c for c in table.columns if c.endswith("_px") and "left" not in c)
    renamed = table.select("participant", Zeit="t_ms", Quer=x, Hoch=y, Nr="trial")
    renamed.write_csv(tmp_path / "labor.csv")
    names = "x=Quer,y=Hoch,t=Zeit,trial=Nr"
    where = (tmp_path / "labor.csv", "-o", tmp_path / "w.safetensors", "--screen", "1280x720")
    assert "no x and y columns" in error_of(run("prepare", *where))
    assert run("prepare", *where, "--columns", names)[0] == 0
    misspelt = names.replace("Quer", "Qer")
    wrong = error_of(run("prepare", *where, "--overwrite", "--columns", misspelt))
    assert "'Quer'" in wrong


CONTENTS = {
    "empty": ("a.csv", b"", "empty"),
    "header only": ("a.csv", b"t_ms,x_px,y_px\n", "no rows"),
    "non-numeric": ("a.csv", b"t_ms,x_px,y_px\n0,1,2\n4,one,2\n8,1,2\n", "line 3"),
    "backwards": ("a.csv", b"t_ms,x_px,y_px\n0,1,2\n4,1,2\n8,3,4\n2,1,2\n", "line 5"),
    "unknown columns": ("a.csv", b"when,left,down\n0,1,2\n4,1,2\n", "--columns"),
    "binary": ("a.bin", bytes(range(256)), "no eye-tracking format"),
    "EyeLink": ("a.edf", bytes(range(256)), "edf2asc a.edf"),
    "prose": ("a.txt", b"Dear reader,\nthis is a letter.\n", "column"),
}


@pytest.mark.parametrize(("name", "content", "problem"), CONTENTS.values(), ids=CONTENTS.keys())
def test_bad_files_are_named_with_the_place(
    run: RunCommand, tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    said = error_of(run("prepare", path, "-o", tmp_path / "w.safetensors", "--screen", "800x600"))
    assert name in said
    assert problem in said
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_an_unwritable_output_fails_before_the_work(
    run: RunCommand, study: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    said = error_of(run("prepare", study, "-o", tmp_path / "file" / "w.safetensors"))
    assert "cannot be written" in said


def test_a_full_disk_leaves_nothing_half_written(study: Path, tmp_path: Path) -> None:
    """A real limit on file size makes the write fail in the middle, as a full disk does."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    command = [sys.executable, "-m", "gazediffusion", "prepare", str(study)]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "w.safetensors")],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "w.safetensors: cannot be written (File too large)" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder, with the windows it was trained on beside it."""
    from tests.runs import trained_run

    return trained_run(tmp_path_factory.mktemp("trained") / "run")


def test_train_generate_and_info_in_turn(run: RunCommand, trained: Path, tmp_path: Path) -> None:
    windows = trained.with_suffix(".safetensors")
    small = ("--recipe", "position-tiny", "--epochs", 2, "--batch-size", 4, "--device", "cpu")
    code, said, lines = run("train", windows, "-o", tmp_path / "run", *small)
    assert code == 0, lines
    assert f"wrote {tmp_path / 'run'}" in said
    assert "2 of 2 epochs" in said
    code, said, _ = run("train", windows, "-o", tmp_path / "run", *small)
    assert code == 0
    assert "complete already" in said
    code, said, _ = run("info", tmp_path / "run")
    assert "position-tiny run" in said
    code, said, _ = run("info", tmp_path / "run", "--bound", windows)
    assert code == 0
    assert "nats per dimension (position), standard error" in said
    code, said, _ = run("info", tmp_path / "run", "--bound", windows, "--json")
    assert json.loads(said)["variational_bound"]["n_steps"] == 8
    code, said, lines = run("info", "default", "--bound", windows)
    assert (code, said) == (2, "")
    assert "the variational bound is that of a DDPM" in lines
    code, said, lines = run(
        "generate", "-o", tmp_path / "gaze.csv", "--model", tmp_path / "run", "-n", 3,
        "--steps", 4, "--device", "cpu",
    )  # fmt: skip
    assert code == 0, lines
    assert "3 synthetic windows" in said
    code, said, _ = run("info", tmp_path / "gaze.csv")
    assert "No participant was recorded" in said
    code, said, _ = run("info", tmp_path / "gaze.csv", "--json")
    assert json.loads(said)["sampling"]["steps"] == 4


def test_tensorboard_is_written_when_asked(run: RunCommand, trained: Path, tmp_path: Path) -> None:
    code, _, lines = run(
        "train", trained.with_suffix(".safetensors"), "-o", tmp_path / "run", "--recipe",
        "position-tiny", "--epochs", 1, "--device", "cpu", "--tensorboard",
    )  # fmt: skip
    assert code == 0, lines
    assert list((tmp_path / "run" / "tensorboard").iterdir())


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A windows file of simulated participants, with a synthetic set beside it."""
    from tests.gaze import as_synthetic, simulated_windows

    folder = tmp_path_factory.mktemp("evaluated")
    windows = simulated_windows()
    windows.save(folder / "windows.safetensors")
    as_synthetic(windows.train).save(folder / "participants.safetensors")
    return folder


@pytest.mark.usefixtures("one_figure")
def test_baselines_are_generated_and_evaluated_in_one_report(
    run: RunCommand, evaluated: Path, tmp_path: Path
) -> None:
    windows = evaluated / "windows.safetensors"
    code, said, lines = run(
        "generate", "--model", "kinematic-markov", "--fit", windows, "-n", 60, "-o",
        tmp_path / "markov.safetensors",
    )  # fmt: skip
    assert code == 0, lines
    assert "60 windows of the baseline kinematic-markov" in said
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "results.json").write_text("of an earlier call")
    words = (
        "evaluate", "--real", windows, "--synthetic", evaluated / "participants.safetensors",
        f"markov={tmp_path / 'markov.safetensors'}", "-o", tmp_path / "report", "--quick",
        "--protocol", "position",
    )  # fmt: skip
    assert "not empty; name a new one, or give --overwrite" in error_of(run(*words))
    code, said, lines = run(*words, "--overwrite")
    assert code == 0, lines
    assert "median ratio" in said
    assert f"wrote {tmp_path / 'report'}" in said
    parts = json.loads((tmp_path / "report" / "results.json").read_text())["parts"]
    results = parts["all tasks"]
    assert list(results["sets"]["synthetic"]) == ["participants", "markov"]
    overall = results["ratios"]["overall"]
    assert overall["participants"] < overall["markov"]
    for name in ("report.html", "report.md"):
        assert "markov" in (tmp_path / "report" / name).read_text()


# A command, and what its one line says.
BAD = {
    "no such file": ("inspect nothing-here", "no such file or folder"),
    "nothing matches": ("inspect none*.csv", "nothing matches"),
    "wrong format name": ("inspect STUDY --input-format edf", "no format 'edf'"),
    "screen": ("inspect STUDY --screen wide", "--screen must look like"),
    "screen-cm alone": ("inspect STUDY --screen-cm 40x20", "need --screen"),
    "eye": ("inspect STUDY --eye left", "state it as eye in study.yaml"),
    "no flag": ("inspect STUDY --colour red", "No such option: --colour"),
    "plot ending": ("inspect STUDY --plot OUT/a.bmp", ".png, .svg or .pdf"),
    "ending": ("prepare STUDY -o OUT/w.bin", "ends in .safetensors"),
    "task": ("prepare STUDY -o OUT/w.safetensors --only x", "no recording of"),
    "rate": ("prepare STUDY -o OUT/w.safetensors --rate 1000", "below the target"),
    "seconds": ("prepare STUDY -o OUT/w.safetensors --seconds 900", "longest"),
    "info": ("info STUDY/recordings.parquet", "no safetensors file"),
    "simulate format": ("simulate -o OUT/s --format edf", "format"),
    "not empty": ("simulate -o STUDY", "not empty"),
    "simulate ending": ("simulate -o OUT/s.asc --format asc", "without an ending"),
    "dataset": ("inspect pymovements:GazeBas", "GazeBase"),
    "no windows": ("train none.safetensors -o OUT/r", "no such file"),
    "recipe": ("train WINDOWS -o OUT/r --recipe speed", "no recipe 'speed'"),
    "protocol": ("train WINDOWS -o OUT/r --recipe velocity", "these are position windows"),
    "epochs": ("train WINDOWS -o OUT/r --epochs 0", "--epochs must be 1"),
    "device": ("train WINDOWS -o OUT/r --device abacus", "--device abacus"),
    "precision": ("train WINDOWS -o OUT/r --precision int3", "--precision"),
    "seed": ("train WINDOWS -o OUT/r --seed -1", "--seed"),
    "no model": ("generate -o OUT/g --model nowhere", "no run folder"),
    "n": ("generate -o OUT/g --model RUN -n 0", "-n must be 1"),
    "steps": ("generate -o OUT/g --model RUN --steps 1001", "--steps must"),
    "eta": ("generate -o OUT/g --model RUN --set eta=7", "--set eta must"),
    "format": ("generate -o OUT/g --model RUN --format x", "no format 'x'"),
    "asc is a folder": (
        "generate -o OUT/g.asc --model RUN",
        "give --format asc and a name without",
    ),
    "asc as a file": ("generate -o OUT/g.asc --model RUN --format asc", "as g"),
    "bids as a file": (
        "generate -o OUT/g.parquet --model RUN --format bids",
        "bids is written as a folder, not as .parquet",
    ),
    "tsv": ("generate -o OUT/g.tsv --model RUN", "end the name in .parquet, .csv"),
    "mat": ("generate -o OUT/g.mat --model RUN", "no format ends in .mat"),
    "mismatch": (
        "generate -o OUT/g.csv --model RUN --format parquet",
        "--format is parquet, but the name ends in .csv; end the name in .parquet",
    ),
    "no baseline": ("generate --model markov --fit WINDOWS -o OUT/g.csv", "no baseline 'markov'"),
    "baseline without data": ("generate --model uniform -o OUT/g.csv", "with --fit"),
    "baseline with more": (
        "generate --model uniform --fit WINDOWS -o OUT/g.csv --at 1:2,3",
        "a baseline takes no --at",
    ),
    "bids without cm": (
        "generate -o OUT/g --model RUN --format bids -n 1 --screen 800x600",
        "--screen-cm",
    ),
    "info of a model": ("info nowhere", "no such file or folder"),
    "info folder": ("info OUT", "no run folder"),
    "evaluate: no real": ("evaluate --real nowhere --synthetic SETS -o OUT/r", "no such file"),
    "evaluate: same name": ("evaluate --real REAL --synthetic SETS SETS -o OUT/r", "two sets"),
    "evaluate: report.html": (
        "evaluate --real REAL --synthetic SETS -o OUT/r.html",
        "without an ending, as r",
    ),
    "evaluate: feature model": (
        "evaluate --real REAL --synthetic SETS -o OUT/r --feature-model OUT",
        "no run folder",
    ),
}


@pytest.mark.parametrize(("command", "problem"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_clear_line_and_nothing_is_written(
    run: RunCommand,
    study: Path,
    trained: Path,
    evaluated: Path,
    tmp_path: Path,
    command: str,
    problem: str,
) -> None:
    places = {
        "STUDY": study,
        "WINDOWS": trained.with_suffix(".safetensors"),
        "RUN": trained,
        "REAL": evaluated / "windows.safetensors",
        "SETS": evaluated / "participants.safetensors",
        "OUT": tmp_path,
    }
    for word, place in places.items():
        command = command.replace(word, str(place))
    assert problem in error_of(run(*command.split()))
    assert [path for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
