"""Sets in parts: what is in them, what is kept of them, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.generation.journal import JOURNAL, MANIFEST, Part
from gazediffusion.generation.partitions import PartFolder, Plan
from gazediffusion.storage import read_parquet_header, sha256_of

N, PART = 7, 3


@pytest.fixture(scope="module")
def model(steerable_folder: Path) -> gd.Model:
    return gd.load(steerable_folder, device="cpu")


def plan_of(model: gd.Model, n: int = N, part_size: int | None = PART, seed: int = 0) -> Plan:
    sampling = model.sampling(n, seed=seed, batch_size=2)
    return Plan(model.generator(n, seed, batch_size=2), sampling.config, part_size)


def written(plan: Plan, folder: Path) -> PartFolder:
    found = PartFolder(folder, plan)
    found.open()
    for number in found.missing:
        found.add(plan.write(folder, number))
    found.finish()
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def reopened(plan: Plan, folder: Path) -> list[int]:
    found = PartFolder(folder, plan)
    found.open()
    return found.missing


def test_parts_have_the_windows_of_the_set_in_order(tmp_path: Path, model: gd.Model) -> None:
    written(plan_of(model), tmp_path / "parts")
    expected = model.sample(N, batch_size=2)
    frame = pl.read_parquet(tmp_path / "parts" / "part-*.parquet")
    trials = frame["trial"].unique(maintain_order=True).to_list()
    assert trials == [str(k) for k in range(N)]
    gaze = frame.select("x_px", "y_px").to_numpy().reshape(N, -1, 2).transpose(0, 2, 1)
    np.testing.assert_allclose(gaze, expected.to_numpy("px"), rtol=1e-5, atol=2e-2)
    assert frame["task"].to_list()[:: expected.length] == list(expected.identity["task"])


def test_the_manifest_states_every_part(tmp_path: Path, model: gd.Model) -> None:
    folder = tmp_path / "parts"
    written(plan_of(model), folder)
    manifest = json.loads((folder / MANIFEST).read_text())
    assert (manifest["n_windows"], manifest["part_size"], manifest["batch_size"]) == (N, PART, 2)
    assert [(one["file"], one["first"], one["n"]) for one in manifest["parts"]] == [
        ("part-000000.parquet", 0, 3),
        ("part-000001.parquet", 3, 3),
        ("part-000002.parquet", 6, 1),
    ]
    for one in manifest["parts"]:
        assert one["sha256"] == sha256_of(folder / one["file"])
    assert sorted(files(folder)) == sorted(
        ["README.md", "card.json", MANIFEST, *(one["file"] for one in manifest["parts"])]
    )
    header = read_parquet_header(folder / "part-000001.parquet")
    assert header is not None
    assert header["synthetic"]
    assert header["part"] == {"first_window": 3, "of_windows": N}


def test_readers_description_and_card_know_the_folder(tmp_path: Path, model: gd.Model) -> None:
    written(plan_of(model), tmp_path / "parts")
    recordings = list(gd.read(tmp_path / "parts"))
    assert [one.trial for one in recordings] == [str(k) for k in range(N)]
    screens = {one.screen for one in recordings}
    assert screens == {model.screen_of(task) for task in {one.task for one in recordings}}
    described = gd.describe(tmp_path / "parts")
    assert (described["kind"], described["n_windows"], described["seed"]) == ("set", N, 0)
    assert f"**{N} synthetic windows**" in described["in_words"]


def test_the_card_is_that_of_the_set_in_one_file(tmp_path: Path, model: gd.Model) -> None:
    sampling = model.sampling(N, batch_size=2, losses=False, labels=True)
    generator = model.generator(N, batch_size=2)
    written(Plan(generator, sampling.config, PART), tmp_path / "parts")
    model.sample_to(tmp_path / "set", N, batch_size=2, labels=True)
    of_parts, of_set = (
        json.loads((tmp_path / name / "card.json").read_text()) for name in ("parts", "set")
    )
    assert of_parts == of_set
    columns = pl.read_parquet(tmp_path / "set" / "recordings.parquet").columns
    for path in (tmp_path / "parts").glob("part-*.parquet"):
        assert pl.read_parquet(path).columns == columns
    assert "event" in columns


def test_lost_and_damaged_parts_alone_are_written_again(tmp_path: Path, model: gd.Model) -> None:
    plan, folder = plan_of(model), tmp_path / "parts"
    written(plan, folder)
    before = files(folder)
    (folder / "part-000000.parquet").unlink()
    damaged = folder / "part-000001.parquet"
    damaged.write_bytes(before[damaged.name][:-100])
    kept = (folder / "part-000002.parquet").stat().st_mtime_ns
    found = PartFolder(folder, plan)
    found.open()
    assert found.missing == [0, 1]
    assert not found.is_complete
    # What is not whole can no longer be taken for it.
    assert sorted(files(folder)) == [JOURNAL, "README.md", "card.json", "part-000002.parquet"]
    written(plan, folder)
    assert files(folder) == before
    assert (folder / "part-000002.parquet").stat().st_mtime_ns == kept


def test_a_changed_byte_is_noticed(tmp_path: Path, model: gd.Model) -> None:
    plan, folder = plan_of(model), tmp_path / "parts"
    written(plan, folder)
    assert reopened(plan, folder) == []
    path = folder / "part-000001.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    assert reopened(plan, folder) == [1]


def test_a_stopped_call_leaves_a_journal_that_a_cut_line_does_not_spoil(
    tmp_path: Path, model: gd.Model
) -> None:
    plan, folder = plan_of(model), tmp_path / "parts"
    found = PartFolder(folder, plan)
    found.open()
    for number in (2, 0):
        found.add(plan.write(folder, number))
    with open(folder / JOURNAL, "a") as stream:
        stream.write('{"number": 1, "fi')
    # In place, but its hash was never noted; and what a killed writer left.
    plan.write(folder, 1)
    left = folder / ".part-000001.parquet.1-aa.part"
    left.write_bytes(b"half")
    again = PartFolder(folder, plan)
    again.open()
    assert again.missing == [1]
    assert again.n_done == 4
    assert not left.exists()
    assert not (folder / "part-000001.parquet").exists()
    written(plan, folder)
    written(plan, tmp_path / "straight")
    assert files(folder) == files(tmp_path / "straight")


def test_parts_of_other_settings_are_kept_unless_overwritten(
    tmp_path: Path, model: gd.Model
) -> None:
    folder = tmp_path / "parts"
    written(plan_of(model), folder)
    before = files(folder)
    for other in (
        plan_of(model, seed=1),
        plan_of(model, n=N + 1),
        plan_of(model, part_size=4),
        replace(plan_of(model), generator=model.generator(N, batch_size=1)),
    ):
        with pytest.raises(GazeError, match=r"other windows or settings; .*`overwrite`"):
            PartFolder(folder, other).open()
    assert files(folder) == before
    other = plan_of(model, part_size=4)
    found = PartFolder(folder, other)
    found.open(overwrite=True)
    assert found.missing == [0, 1]
    assert list(files(folder)) == [JOURNAL]


@pytest.mark.parametrize("name", ["notes.txt", "card.json", "recordings.parquet"])
def test_a_folder_of_something_else_is_refused(tmp_path: Path, model: gd.Model, name: str) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(GazeError, match="not empty"):
        PartFolder(tmp_path, plan_of(model)).open(overwrite=True)
    assert list(files(tmp_path)) == [name]


def test_a_name_with_an_ending_is_refused(tmp_path: Path, model: gd.Model) -> None:
    with pytest.raises(GazeError, match="a folder is written"):
        PartFolder(tmp_path / "gaze.parquet", plan_of(model)).open()


def test_the_size_of_parts_is_the_plans_alone(model: gd.Model) -> None:
    assert plan_of(model, n=1000, part_size=None).n_each == 256
    generator = model.generator(1000, batch_size=600)
    plan = Plan(generator, model.sampling(1000).config)
    assert (plan.n_each, plan.n_parts, plan.span(1)) == (600, 2, (600, 1000))
    with pytest.raises(GazeError, match="`part_size` must be 1 or more"):
        plan_of(model, part_size=0)


def test_a_plan_on_another_device_is_the_same_plan(model: gd.Model) -> None:
    sampling = model.sampling(N, labels=True)
    plan = Plan(model.generator(N), sampling.config)
    moved = plan.on_device(torch.device("meta"))
    assert moved.digest == plan.digest
    assert moved.config.labeller is not None
    assert moved.config.labeller.run is moved.generator.run
    assert next(moved.generator.run.network.parameters()).device.type == "meta"
    assert model.device.type == "cpu"


def test_a_damaged_manifest_is_named(tmp_path: Path, model: gd.Model) -> None:
    folder = tmp_path / "parts"
    written(plan_of(model), folder)
    fields = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**fields, "parts": [{"n": 3}]}))
    with pytest.raises(GazeError, match=r"manifest\.json: the manifest is damaged"):
        PartFolder(folder, plan_of(model)).open()


def test_parts_are_named_by_their_number() -> None:
    assert Part(12, 0, 1, "", "cpu").name == "part-000012.parquet"
