"""Model folders of the Hugging Face hub: local folders, and a hub on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import huggingface_hub as hub
import numpy as np
import pytest

import gazediffusion as gd
from gazediffusion.network.pretrained import pretrained_folder
from tests.network.hub_server import serving


def test_a_saved_folder_is_the_same_model(steerable_folder: Path, tmp_path: Path) -> None:
    model = gd.load(steerable_folder, device="cpu")
    files = model.save_pretrained(tmp_path / "saved", license="cc-by-4.0")
    names = {path.name for path in files}
    assert {"config.json", "model.safetensors", "README.md"} <= names
    assert not names & {"state.safetensors", "metrics.jsonl", "best.safetensors"}
    for again in (
        gd.load(tmp_path / "saved", device="cpu"),
        gd.Model.from_pretrained(tmp_path / "saved", device="cpu"),
    ):
        assert isinstance(again, gd.Model)
        assert again.run.epoch == model.run.epoch
        np.testing.assert_array_equal(
            again.sample(2, seed=3, steps=2).cut(), model.sample(2, seed=3, steps=2).cut()
        )
    assert again.save_pretrained(tmp_path / "twice")[0].exists()
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "twice" / name).read_bytes() == (tmp_path / "saved" / name).read_bytes()


def test_the_card_has_the_metadata_that_the_hub_reads(
    steerable_folder: Path, tmp_path: Path
) -> None:
    gd.load(steerable_folder, device="cpu").save_pretrained(tmp_path / "own", license="cc-by-4.0")
    own = hub.ModelCard.load(tmp_path / "own" / "README.md")
    assert own.data.library_name == "gazediffusion"
    assert own.data.license == "cc-by-4.0"
    assert "eye-tracking" in own.data.tags
    assert "windows of" in own.text
    gd.load("default").save_pretrained(tmp_path / "packaged")
    packaged = hub.ModelCard.load(tmp_path / "packaged" / "README.md")
    assert packaged.data.license == "mit"
    assert "Dorr, Martinetz" in packaged.text  # the data's terms go along
    for name in ("losses.json", "scores.json"):
        expected = (pretrained_folder() / "joint" / name).read_bytes()
        assert (tmp_path / "packaged" / name).read_bytes() == expected


def test_names_of_recordings_are_left_out(tmp_path: Path) -> None:
    model = gd.load("default", device="cpu")
    assert model.config.data["sources"]
    model.save_pretrained(tmp_path / "saved")
    saved = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert saved["data"] == {**model.config.data, "sources": []}


def test_nothing_is_replaced_unasked(steerable_folder: Path, tmp_path: Path) -> None:
    model = gd.load(steerable_folder, device="cpu")
    model.save_pretrained(tmp_path / "saved")
    with pytest.raises(gd.GazeError, match="overwrite"):
        model.save_pretrained(tmp_path / "saved")
    model.save_pretrained(tmp_path / "saved", overwrite=True)
    with pytest.raises(gd.GazeError, match="no last weights"):
        gd.load(tmp_path / "saved", weights="last")
    with pytest.raises(gd.GazeError, match="`revision` is of a repository"):
        gd.Model.from_pretrained(tmp_path / "saved", revision="main")


SHARED = """
import sys
import gazediffusion as gd
model = gd.load(sys.argv[1], device="cpu")
print(model.push_to_hub("lab/gaze", private=True, token="hf_none", message="first"))
first = gd.Model.from_pretrained("lab/gaze", device="cpu")
for again in (first, gd.load("hf:lab/gaze", device="cpu")):
    assert (again.sample(1, steps=2).cut() == model.sample(1, steps=2).cut()).all()
print(again.run.path)
try:
    gd.load("hf:lab/nothing")
except gd.GazeError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_model_is_pushed_to_a_hub_and_loaded_from_it(
    steerable_folder: Path, tmp_path: Path
) -> None:
    with serving() as server:
        environment = {
            **os.environ,
            "HF_ENDPOINT": server.address,
            "HF_HOME": str(tmp_path / "cache"),
            "HF_HUB_DISABLE_XET": "1",  # files travel within the commit
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        run = [sys.executable, "-W", "ignore", "-c", SHARED, str(steerable_folder)]
        done = subprocess.run(run, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        address, path, failure = done.stdout.splitlines()
        assert address.startswith(f"{server.address}/lab/gaze/commit/")
        assert path.startswith(str(tmp_path / "cache"))
        assert failure.startswith("the hub's repository lab/nothing cannot be reached")
        created, commit = server.said
        assert created.get("visibility") == "private" or created.get("private")
        assert commit["summary"] == "first"
        assert set(server.repositories["lab/gaze"]) >= {
            "README.md", "config.json", "model.safetensors", "conditioning.safetensors",
        }  # fmt: skip
