"""The lock on an output, what is kept, what is removed, and when an output is complete."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazediffusion as gd
from gazediffusion.errors import GazeError, StoppedError
from gazediffusion.jobs import Job, differences, locked

HOLD = """
import sys, time
from pathlib import Path
from gazediffusion.jobs import Job
with Job(Path(sys.argv[1]), {"seed": 0}) as job:
    job.once("piece", lambda path: path.write_text("kept"))
    half = job.output.with_name(f".{job.output.name}.1-0123abcd.part")
    half.mkdir()
    (half / "a").write_text("half")
    print("held", flush=True)
    time.sleep(600)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_second_job_is_said_at_once_and_a_killed_one_leaves_no_lock(tmp_path: Path) -> None:
    output = tmp_path / "new" / "gaze.parquet"
    command = [sys.executable, "-c", HOLD, str(output)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        begun = time.monotonic()
        with pytest.raises(GazeError, match=r"gaze\.parquet: another command is writing this"):
            Job(output, {"seed": 0}).__enter__()
        with Job(output.with_name("other"), {}):  # of another output
            pass
        assert time.monotonic() - begun < 1
        process.kill()
    with Job(output, {"seed": 0}) as job:  # what was kept is not made again, what was half is gone
        assert job.has("piece")
        assert job.once("piece", lambda path: path.write_text("again")).read_text() == "kept"
        assert names(output.parent) == [job.kept.name, ".gaze.parquet.lock"]
    assert names(output.parent) == []


def test_an_error_keeps_the_work_and_success_removes_all_of_it(tmp_path: Path) -> None:
    def failed(seed: int) -> None:
        with Job(tmp_path / "set", {"seed": seed}) as job:
            job.once("piece", lambda path: path.mkdir())
            raise RuntimeError

    with Job(tmp_path / "set.csv", {}) as other:  # a name that begins alike
        other.once("piece", lambda path: path.touch())
        for seed in (0, 1):
            with pytest.raises(RuntimeError):
                failed(seed)
        assert len(list(tmp_path.glob(".set.*.work/piece"))) == 3
        with Job(tmp_path / "set", {"seed": 1}) as job:
            assert job.has("piece")
        assert other.has("piece")
    assert names(tmp_path) == []


def test_a_complete_output_is_that_of_the_same_settings(tmp_path: Path) -> None:
    output = tmp_path / "set"
    there: dict[str, Any] = {"seed": 0, "source": {"sha256": "a"}, "measured": 7}
    with Job(output, {"seed": 0, "source": {"sha256": "a"}}, there=lambda: there) as job:
        assert job.is_complete
    other = {"seed": 1, "source": {"sha256": "b"}}
    line = r"set: this was made with other settings or inputs \(seed 0, not 1, source sha256 a, not"
    with pytest.raises(GazeError, match=line), Job(output, other, there=lambda: there):
        raise AssertionError
    with Job(output, other, there=lambda: there, overwrite=True) as job:
        assert not job.is_complete
    assert names(tmp_path) == []


def test_differences_name_a_few_and_long_values_by_their_name() -> None:
    assert differences({"a": 1, "more": 2}, {"a": 1}) == ""
    assert differences({}, {"a": [1, 2]}) == "a"
    assert differences({"a": "x" * 90}, {"a": "y"}) == "a"
    found = differences({}, dict.fromkeys("abcdefg", 1))
    assert found == ", ".join(f"{one} None, not 1" for one in "abcde") + " and 2 more"


def test_steps_are_shown_and_a_stop_says_what_is_kept(tmp_path: Path) -> None:
    shown: list[Any] = []
    job = Job(tmp_path / "set", {}, lambda *given: shown.append(given), lambda: len(shown) > 1)
    job.step("generating", 1, 4)
    with pytest.raises(StoppedError, match="generating stopped: 2 of 4 are kept"):
        job.step("generating", 2, 4, "fast")
    job.step("generating", 4, 4)  # what is done is not stopped
    assert shown[1] == ("generating", 2, 4, "fast")


def test_at_a_url_there_is_no_lock() -> None:
    with locked(Path("memory://a/set")), locked(Path("memory://a/set")):
        pass


def test_a_complete_report_is_left_alone_whatever_its_inputs_are_called(tmp_path: Path) -> None:
    gaze = np.random.default_rng(0).normal(0, 0.01, (40, 2, 2000)).cumsum(axis=-1).clip(-1, 1)
    windows = gd.Windows.from_array(gaze, 250, gd.Screen(1680, 1050, 47.4, 29.7, 55))
    windows.save(tmp_path / "walk.npz")
    config, output = gd.EvaluationConfig(quick=True), tmp_path / "report"
    how: dict[str, Any] = {"config": config, "summary": "bioeye/reading", "output": output}
    gd.evaluate_files({"walk": tmp_path / "walk.npz"}, **how)
    written = {one: one.stat().st_mtime_ns for one in output.iterdir()}
    (tmp_path / "walk.npz").rename(tmp_path / "renamed.npz")
    (tmp_path / "walk.json").rename(tmp_path / "renamed.json")
    with pytest.raises(gd.CompleteError, match="report is complete"):
        gd.evaluate_files({"walk": tmp_path / "renamed.npz"}, **how)
    windows.select(np.arange(39)).save(tmp_path / "other.npz")
    with pytest.raises(GazeError, match=r"settings or inputs \(inputs walk\)"):
        gd.evaluate_files({"walk": tmp_path / "other.npz"}, **how)
    assert {one: one.stat().st_mtime_ns for one in output.iterdir()} == written
