"""Augmented sets: files in the study's format, a card, and what happens when a call is stopped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazediffusion as gd
from gazediffusion.cli.console import Bar
from gazediffusion.data.recordings import Recording
from gazediffusion.data.writers import write_into
from gazediffusion.errors import GazeError
from gazediffusion.generation.labelling import Labeller
from gazediffusion.generation.sampler import Sampler
from gazediffusion.screen import Screen
from gazediffusion.training.training import train_epochs
from tests.conftest import RunCommand
from tests.generation.test_augmentation import recording
from tests.training.test_joint import JOINT
from tests.training.test_joint import parts as joint_parts

STUDY = [recording(name, 4.0, trial=trial) for name in ("P1", "P2", "P3") for trial in "12"]


def written(folder: Path, format: str = "csv", study: list[Recording] = STUDY) -> Path:
    write_into(folder, [(one, ()) for one in study], format)
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("format", ["asc", "bids", "csv", "parquet"])
def test_a_set_has_the_studys_format_and_no_recording_of_it(
    run: RunCommand, steerable_folder: Path, tmp_path: Path, format: str
) -> None:
    source = written(tmp_path / "in", format)
    config = gd.PrepareConfig(rate_hz=20.0, seconds=3.2)
    (held_out,) = gd.prepare(gd.read(source), config).validation
    code, said, errors = run(
        "augment", source, "-o", tmp_path / "out", "--times", 2, "--model", steerable_folder
    )
    assert code == 0, errors
    assert "generated 8 recordings, 0.5 min, in the style of 2 participants" in said
    assert f"held out: {held_out}" in said
    augmented = sorted({"P1", "P2", "P3"} - {held_out})
    names = [f"{one}-synthetic-{k}" for one in augmented for k in (1, 2)]
    if format in ("asc", "bids"):
        names = [one.replace("-", "") for one in names]
    found = list(gd.read(tmp_path / "out"))
    assert [one.participant for one in found] == [one for one in names for _ in "12"]
    assert {one.task for one in found} == {"dots"}
    assert [one.trial for one in found if one.participant == names[0]] == (
        ["0", "1"] if format == "asc" else ["1", "2"]
    )
    assert {len(one) for one in found} == {80}
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    assert card["synthetic"] is True
    assert card["split"]["held_out"] == [held_out]
    row = card["participants"][0]
    assert row["participant"] == augmented[0]
    assert (row["recordings"], row["seconds"], row["synthetic_seconds"]) == (2, 8.0, 16.0)
    assert row["style_seconds"] == 6.4
    readme = (tmp_path / "out" / "README.md").read_text()
    assert f"| {augmented[0]} | dots | 2 | 8.0 | 6.4 | {augmented[0]}-synthetic-1 to" in readme
    assert "personal data" in readme
    assert not list(tmp_path.glob(".*.work"))
    described = gd.describe(tmp_path / "out")
    assert described["in_words"] == readme
    if format == "bids":
        assert (
            "no participant was recorded"
            in (tmp_path / "out" / "dataset_description.json").read_text()
        )
    if format == "asc":
        text = next((tmp_path / "out").glob("*.asc")).read_text()
        assert "no participant was recorded" in text
        assert "EFIX" in text or "ESACC" in text


@pytest.mark.parametrize("format", ["asc", "bids", "csv", "parquet"])
def test_labels_are_read_again_from_every_format_and_change_no_gaze(
    run: RunCommand, steerable_folder: Path, tmp_path: Path, format: str
) -> None:
    source = written(tmp_path / "in", format)
    command = ("augment", source, "--times", 1, "--model", steerable_folder, "-o")
    assert run(*command, tmp_path / "plain")[0] == 0
    code, _, errors = run(*command, tmp_path / "out", "--labels")
    assert code == 0, errors
    model = gd.load(steerable_folder, device="cpu")
    augmenter = model.augmenter(times=1)
    study = augmenter.read(gd.read(source))
    expected = {}
    for batch in augmenter.batches(study):
        gaze = np.concatenate(list(batch.sampler.pieces(0, batch.n)))
        for k, labels in enumerate(Labeller.of_generated(batch.sampler).labels(gaze)):
            participant = f"{batch.originals[k].participant}-synthetic-1"
            expected[participant.replace("-", ""), k] = labels[:80]
    numbers: dict[str, int] = {}
    for plain, one in zip(gd.read(tmp_path / "plain"), gd.read(tmp_path / "out"), strict=True):
        assert plain.labels is None
        assert one.labels is not None
        (before,), (after,) = plain.gaze_px.values(), one.gaze_px.values()
        np.testing.assert_array_equal(before, after)
        name = one.participant.replace("-", "")
        number = numbers[name] = numbers.get(name, -1) + 1
        np.testing.assert_array_equal(one.labels, expected[name, number])
    assert sum(numbers.values()) == 2
    assert len(np.unique(np.concatenate(list(expected.values())))) > 1
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    assert card["labels"]["by"] == "the model's, given the gaze; not by hand"
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "- event labels: of every sample; the model's" in readme
    assert "- event labels: none" in (tmp_path / "plain" / "README.md").read_text()


def test_recordings_of_a_labelled_study_have_labels(
    run: RunCommand, steerable_folder: Path, tmp_path: Path
) -> None:
    labels = np.repeat(np.array([1, 2, 1, 4], np.uint8), 20)
    study = [replace(one, labels=labels) for one in STUDY]
    source = written(tmp_path / "in", "csv", study)
    options: dict[str, tuple[str, ...]] = {"by-default": (), "without": ("--no-labels",)}
    for name, given in options.items():
        command = ("augment", source, "--times", 1, "--model", steerable_folder, *given)
        code, _, errors = run(*command, "-o", tmp_path / name)
        assert code == 0, errors
        for one in gd.read(tmp_path / name):
            assert (one.labels is None) is (name == "without")
            if one.labels is not None:
                assert (one.labels > 0).all()


def test_a_model_without_labels_adds_none(run: RunCommand, tmp_path: Path) -> None:
    list(train_epochs(joint_parts(), tmp_path / "run", JOINT, seed=0, device="cpu"))
    labels = np.repeat(np.array([1, 2], np.uint8), 32)
    screen = joint_parts()[0].screens[0]
    study = [
        replace(recording(name, 0.256, 250.0, "reading", screen=screen), labels=labels)
        for name in ("P1", "P2", "P3")
    ]
    source = written(tmp_path / "in", "csv", study)
    command = ("augment", source, "--times", 1, "--model", tmp_path / "run")
    code, _, errors = run(*command, "-o", tmp_path / "refused", "--labels")
    assert code == 2
    assert "this model has no labels" in errors
    code, _, errors = run(*command, "-o", tmp_path / "out")
    assert code == 0, errors
    assert {one.labels is None for one in gd.read(tmp_path / "out")} == {True}


def test_study_and_synthetic_recordings_are_read_together(
    steerable_folder: Path, tmp_path: Path
) -> None:
    source = written(tmp_path / "in")
    gd.augment(source, tmp_path / "out", steerable_folder, times=2, held_out=["P1"])
    both = gd.read([source, tmp_path / "out"])
    assert {one.participant for one in both} == {
        "P1", "P2", "P3",
        "P2-synthetic-1", "P2-synthetic-2", "P3-synthetic-1", "P3-synthetic-2",
    }  # fmt: skip


def test_the_same_seed_gives_the_same_bytes_and_nothing_is_overwritten(
    run: RunCommand, steerable_folder: Path, tmp_path: Path
) -> None:
    source = written(tmp_path / "in")
    command = ("augment", source, "--model", steerable_folder, "--times", 1, "-o")
    for name in ("a", "b"):
        assert run(*command, tmp_path / name)[0] == 0
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    code, _, errors = run(*command, tmp_path / "a", "--seed", 1)
    assert code == 2
    assert "--overwrite" in errors
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert run(*command, tmp_path / "a", "--seed", 1, "--overwrite")[0] == 0
    assert files_of(tmp_path / "a") != files_of(tmp_path / "b")


def test_one_table_may_be_asked_for(steerable_folder: Path, tmp_path: Path) -> None:
    source = written(tmp_path / "in", "asc")
    made = gd.augment(source, tmp_path / "gaze.parquet", steerable_folder, times=1)
    assert [path.name for path in made.paths] == ["gaze.parquet", "gaze.json", "gaze.md"]
    assert len(list(gd.read(tmp_path / "gaze.parquet"))) == 4
    assert gd.describe(tmp_path / "gaze.parquet")["format"] == "gazediffusion-augmented"


def test_coordinates_are_on_the_studys_grid(steerable_folder: Path, tmp_path: Path) -> None:
    source = written(tmp_path / "in")
    gd.augment(source, tmp_path / "out", steerable_folder, times=1)
    for one in gd.read(tmp_path / "out"):
        (gaze_px,) = one.gaze_px.values()
        np.testing.assert_allclose(gaze_px * 10, np.rint(gaze_px * 10), atol=2e-3)


def test_an_interrupted_call_resumes_from_its_pieces(
    steerable_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = written(tmp_path / "in")
    settings: Any = {"times": 3, "batch_size": 2, "validation_fraction": 0.0}

    def stop_in_the_second(phase: str, done: float, total: float, note: str) -> None:
        if phase == "generating":
            assert total == 3 * 6 * 2  # 4 s are two windows of the model
            if done > 2 * 6 + 1:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gd.augment(
            source, tmp_path / "out", steerable_folder, progress=stop_in_the_second, **settings
        )
    assert not (tmp_path / "out").exists()
    (work,) = tmp_path.glob(".out.*.work")
    kept = {path: path.stat().st_mtime_ns for path in work.rglob("*.npz")}
    assert len(kept) == 3
    gd.augment(source, tmp_path / "whole", steerable_folder, **settings)
    sampled: list[int] = []
    pieces = Sampler.pieces

    def counted(self: Sampler, first: int, stop: int, *rest: Any) -> Any:
        sampled.append(stop - first)
        return pieces(self, first, stop, *rest)

    monkeypatch.setattr(Sampler, "pieces", counted)
    gd.augment(source, tmp_path / "out", steerable_folder, **settings)
    assert sum(sampled) == 3 * 6 - 2 * 3
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")
    assert not list(tmp_path.glob(".*.work"))


def test_ctrl_c_says_what_is_kept(
    run: RunCommand, steerable_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show = Bar.__call__

    def interrupt(bars: Bar, phase: str, *given: Any) -> None:
        show(bars, phase, *given)
        if phase == "generating":
            raise KeyboardInterrupt

    monkeypatch.setattr(Bar, "__call__", interrupt)
    source = written(tmp_path / "in")
    code, said, errors = run("augment", source, "-o", tmp_path / "out", "--model", steerable_folder)
    assert code == 130
    assert "windows are generated and kept beside" in said
    assert said.rstrip().endswith("the same command resumes")
    assert "Traceback" not in errors


def test_the_split_may_be_that_of_a_windows_file(
    run: RunCommand, steerable_folder: Path, tmp_path: Path
) -> None:
    source = written(tmp_path / "in")
    config = gd.PrepareConfig(rate_hz=20.0, seconds=3.2, validation_fraction=0.5, split_seed=1)
    windows = gd.prepare(gd.read(source), config)
    windows.save(tmp_path / "w.safetensors")
    command = ("augment", source, "-o", tmp_path / "out", "--model", steerable_folder)
    split = ("--split", tmp_path / "w.safetensors")
    code, said, errors = run(*command, *split, "--times", 1)
    assert code == 0, errors
    assert f"held out: {', '.join(sorted(windows.validation))}" in said
    code, _, errors = run(*command, *split, "--held-out", "P1")
    assert code == 2
    assert "give --held-out or --split, not both" in errors


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--held-out", "P9"), "--held-out names 'P9', who was not recorded"),
        (("--times", "0"), "--times must lie between 1 and 1000"),
        (("--task", "a=dots", "--task", "dots"), "--task must be one task"),
        (("--task", "search=dots"), "--task names 'search'"),
        (("--model", "position"), "not conditioned on"),
        (("--val-fraction", "0", "--held-out", "P1", "--quality", "good"), "--quality must be"),
    ],
)
def test_an_error_is_one_line_and_writes_nothing(
    run: RunCommand,
    steerable_folder: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    problem: str,
) -> None:
    rate_hz = 250.0 if "position" in options else 20.0
    study = [recording(name, 10.0, rate_hz) for name in ("P1", "P2", "P3")]
    source = written(tmp_path / "in", "csv", study)
    model = () if "--model" in options else ("--model", steerable_folder)
    code, _, errors = run("augment", source, "-o", tmp_path / "out", *model, *options)
    assert code == 2
    assert problem in errors
    assert len(errors.strip().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("format", ["parquet", "asc"])
def test_what_a_format_cannot_hold_is_refused_before_anything_is_generated(
    steerable_folder: Path, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Screen(1920, 1080, 60.0, 33.75, 90.0)
    if format == "parquet":
        study = [recording("P1"), recording("P2", rate_hz=40.0)]
    else:
        study = [recording("P1", trial="1"), recording("P1", trial="2", screen=other)]
    for number, one in enumerate(study):
        written(tmp_path / f"in{number}", format, [one])
    monkeypatch.setattr(Sampler, "pieces", None)
    recordings = gd.read([tmp_path / "in0", tmp_path / "in1"])
    with pytest.raises(GazeError, match="cannot hold both"):
        gd.augment(recordings, tmp_path / "out", steerable_folder, validation_fraction=0.0)
    assert not (tmp_path / "out").exists()


def test_a_screen_of_unknown_size_is_warned_of(steerable_folder: Path, tmp_path: Path) -> None:
    unknown = Screen(1280, 720)
    study = [replace(one, screen=unknown) for one in STUDY]
    source = written(tmp_path / "in", "csv", study)
    with pytest.raises(GazeError, match="has no size"):
        gd.augment(source, tmp_path / "out", steerable_folder, times=1)
