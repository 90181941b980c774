from __future__ import annotations

import json
import math
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gazediffusion.errors import GazeError
from gazediffusion.network.checkpoint import load_run, read_metrics
from gazediffusion.network.pretrained import load_model
from gazediffusion.network.recipes import Recipe
from gazediffusion.training.training import Epoch, held_out_bound, train_epochs
from tests.processes import Command
from tests.runs import TINY, TINY_VELOCITY, saved_windows, short_windows, trained_run

FILES = ("config.json", "best.safetensors", "last.safetensors", "state.safetensors",
         "metrics.jsonl")  # fmt: skip


def content(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.mark.parametrize("recipe", [TINY, TINY_VELOCITY], ids=["position", "velocity"])
def test_the_loss_falls_on_held_out_participants(tmp_path: Path, recipe: Recipe) -> None:
    longer = replace(recipe, epochs=25)
    windows = saved_windows(tmp_path / "w.safetensors", longer.protocol)
    epochs = list(train_epochs(windows, tmp_path / "run", longer, seed=0, device="cpu"))
    assert [epoch.epoch for epoch in epochs] == list(range(25))
    first, last = epochs[0].validation_loss, epochs[-1].validation_loss
    assert first is not None
    assert last is not None
    assert last < 0.7 * first
    assert read_metrics(tmp_path / "run") == [vars(epoch) for epoch in epochs]


def test_windows_with_losses_are_refused(tmp_path: Path) -> None:
    windows = short_windows()
    gaze = windows.gaze.copy()
    gaze[:, 30] = np.nan
    with pytest.raises(GazeError, match="these windows have losses"):
        list(train_epochs(replace(windows, gaze=gaze), tmp_path / "run", TINY, seed=0))
    assert not (tmp_path / "run").exists()


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    windows = saved_windows(tmp_path / "w.safetensors")
    straight = list(train_epochs(windows, tmp_path / "straight", TINY, seed=0, device="cpu"))
    resumed: list[Epoch] = []
    for stop_after in (2, 3, 1, 100):  # steps, in the middle of epochs too
        n = 0

        def should_stop() -> bool:
            nonlocal n
            n += 1
            return n >= stop_after  # noqa: B023

        resumed += train_epochs(
            windows, tmp_path / "resumed", TINY, seed=0, device="cpu", should_stop=should_stop
        )
    assert resumed == straight
    assert content(tmp_path / "resumed") == content(tmp_path / "straight")


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    windows = saved_windows(tmp_path / "w.safetensors")
    list(train_epochs(windows, tmp_path / "run", TINY, seed=0, device="cpu"))
    before = content(tmp_path / "run")
    assert list(train_epochs(windows, tmp_path / "run", TINY, seed=0, device="cpu")) == []
    assert content(tmp_path / "run") == before


def test_lines_written_after_the_last_saved_state_are_removed(tmp_path: Path) -> None:
    windows = saved_windows(tmp_path / "w.safetensors")
    list(train_epochs(windows, tmp_path / "straight", TINY, seed=0, device="cpu"))
    loop = train_epochs(windows, tmp_path / "run", TINY, seed=0, device="cpu", save_every_s=1e9)
    next(iter(loop))  # one epoch is written down, no state is saved: as if killed here
    del loop
    with open(tmp_path / "run" / "metrics.jsonl", "a") as stream:
        stream.write('{"epoch": 1, "half a li')
    list(train_epochs(windows, tmp_path / "run", TINY, seed=0, device="cpu"))
    assert content(tmp_path / "run") == content(tmp_path / "straight")


def test_without_held_out_participants_the_latest_weights_are_the_best(tmp_path: Path) -> None:
    windows = replace(saved_windows(tmp_path / "w.safetensors"), validation=frozenset())
    epochs = list(train_epochs(windows, tmp_path / "run", TINY, seed=0, device="cpu"))
    assert all(epoch.validation_loss is None and epoch.is_best for epoch in epochs)
    assert (tmp_path / "run" / "best.safetensors").is_file()


def test_a_loss_that_is_not_a_number_stops_the_run_and_keeps_the_last_good_state(
    tmp_path: Path,
) -> None:
    windows = saved_windows(tmp_path / "w.safetensors")
    n = 0

    def after_four() -> bool:
        nonlocal n
        n += 1
        return n >= 4

    list(
        train_epochs(windows, tmp_path / "run", TINY, seed=0, device="cpu", should_stop=after_four)
    )
    good = content(tmp_path / "run")
    broken = replace(windows, grid_px=np.nan)  # dequantization then gives no numbers
    with pytest.raises(GazeError, match=r"not a number at step 4; the last good checkpoint"):
        list(train_epochs(broken, tmp_path / "run", TINY, seed=0, device="cpu"))
    assert content(tmp_path / "run") == good


def test_another_run_in_the_folder_is_refused(tmp_path: Path) -> None:
    windows = saved_windows(tmp_path / "w.safetensors")
    list(train_epochs(windows, tmp_path / "run", TINY, seed=0, device="cpu"))
    with pytest.raises(GazeError, match="seed: 0 in the folder, 1 asked for"):
        next(iter(train_epochs(windows, tmp_path / "run", TINY, seed=1, device="cpu")))
    longer = replace(TINY, epochs=9)
    with pytest.raises(GazeError, match="epochs: 3 in the folder, 9 asked for"):
        next(iter(train_epochs(windows, tmp_path / "run", longer, seed=0, device="cpu")))
    with pytest.raises(GazeError, match="there is a run in this folder"):
        next(
            iter(train_epochs(windows, tmp_path / "run", TINY, seed=0, device="cpu", resume=False))
        )
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(GazeError, match="not an empty folder"):
        next(iter(train_epochs(windows, tmp_path / "other", TINY, seed=0, device="cpu")))


def test_windows_of_another_recipe_or_length_are_refused(tmp_path: Path) -> None:
    windows = saved_windows(tmp_path / "w.safetensors")
    with pytest.raises(GazeError, match="these are position windows"):
        next(iter(train_epochs(windows, tmp_path / "run", TINY_VELOCITY, device="cpu")))
    with pytest.raises(GazeError, match="60 samples does not fit"):
        next(iter(train_epochs(replace(windows, length=60), tmp_path / "run", TINY, device="cpu")))
    assert not (tmp_path / "run").exists()


def test_a_damaged_state_is_refused(tmp_path: Path) -> None:
    windows = saved_windows(tmp_path / "w.safetensors")
    list(train_epochs(windows, tmp_path / "run", TINY, seed=0, device="cpu"))
    state = tmp_path / "run" / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-20])
    with pytest.raises(GazeError, match="damaged or cut short"):
        list(train_epochs(windows, tmp_path / "run", TINY, seed=0, device="cpu"))


EPOCHS = 8  # of a run that is stopped and resumed


def train(tmp_path: Path, run: str, file_bytes: int | None = None) -> Command:
    words = f"--recipe position-tiny --epochs {EPOCHS} --batch-size 4 --device cpu --save-every 0"
    files = ["train", str(tmp_path / "w.safetensors"), "-o", str(tmp_path / run)]
    return Command([*files, *words.split()], tmp_path, file_bytes)


@pytest.mark.slow
def test_kill_9_at_random_moments_gives_the_bytes_of_the_uninterrupted_run(
    tmp_path: Path,
) -> None:
    saved_windows(tmp_path / "w.safetensors")
    assert train(tmp_path, "straight").end()[0] == 0
    folder = tmp_path / "killed"
    rng = random.Random(0)
    for _ in range(3):
        seen = folder.stat().st_mtime_ns if folder.exists() else 0
        command = train(tmp_path, "killed")
        command.wait_for(lambda: folder.exists() and folder.stat().st_mtime_ns != seen)  # noqa: B023
        time.sleep(rng.uniform(0, 0.1))
        command.send(signal.SIGKILL)
        assert command.end()[0] == -signal.SIGKILL
    assert train(tmp_path, "killed").end()[0] == 0
    assert content(folder) == content(tmp_path / "straight")


def test_a_full_disk_says_so_and_keeps_the_last_state(tmp_path: Path) -> None:
    saved_windows(tmp_path / "w.safetensors")
    code, _, errors = train(tmp_path, "run", file_bytes=2_000_000).end()
    assert code == 2, errors
    assert "state.safetensors: cannot be written (File too large)" in errors
    assert "Traceback" not in errors
    assert not [path for path in (tmp_path / "run").iterdir() if path.name.endswith(".part")]
    assert train(tmp_path, "run").end()[0] == 0


def test_the_bound_falls_with_training(tmp_path: Path) -> None:
    windows = saved_windows(tmp_path / "w.safetensors")
    totals = []
    for n_epochs in (1, 30):
        folder = tmp_path / f"run{n_epochs}"
        list(train_epochs(windows, folder, replace(TINY, epochs=n_epochs), seed=0, device="cpu"))
        totals.append(held_out_bound(load_run(folder), windows, n_windows=4, n_times=10).total)
    assert totals[1] < totals[0]


@pytest.mark.parametrize("recipe", [TINY, TINY_VELOCITY], ids=["position", "velocity"])
def test_few_steps_and_all_steps_give_one_bound_in_both_representations(
    tmp_path: Path, recipe: Recipe
) -> None:
    short = replace(recipe, diffusion_steps=100, epochs=1)
    run = load_run(trained_run(tmp_path / "run", short))
    windows = short_windows(recipe.protocol)
    every = held_out_bound(run, windows, n_windows=8, n_times=None)
    few = held_out_bound(run, windows, n_windows=8, n_times=6)
    assert (every.n_windows, every.n_steps, few.n_steps) == (8, 99, 6)
    assert few.total == pytest.approx(every.total, abs=3 * few.standard_error)
    # Velocities are positions in units of c_v / rate, each but the first.
    scale = math.log(windows.rate_hz / 7.0) * 63 / 64 if recipe is TINY_VELOCITY else 0.0
    assert every.total_in_position == pytest.approx(every.total - scale)
    with pytest.raises(GazeError, match="`n_windows` must be 2 or more"):
        held_out_bound(run, windows, n_windows=1)


def test_the_bound_of_a_model_that_is_no_ddpm_is_refused() -> None:
    joint = load_model("joint", "best", torch.device("cpu"))
    with pytest.raises(GazeError, match=r"of a DDPM, and recipe steerable is none; .*evaluate"):
        held_out_bound(joint, short_windows())


def test_ctrl_c_saves_and_the_same_command_resumes(tmp_path: Path) -> None:
    saved_windows(tmp_path / "w.safetensors")
    command = train(tmp_path, "run")
    command.wait_for((tmp_path / "run" / "metrics.jsonl").exists)
    command.send(signal.SIGINT)
    code, said, errors = command.end()
    assert code == 130, errors
    assert "the same command resumes" in said
    assert "Traceback" not in errors
    n_done = len(read_metrics(tmp_path / "run"))
    assert 0 < n_done < EPOCHS
    assert train(tmp_path, "run").end()[0] == 0
    lines = [
        json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    ]
    assert [line["epoch"] for line in lines] == list(range(EPOCHS))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_captured_step_equals_the_eager_one() -> None:
    from gazediffusion.training.learner import Learner

    gpu = torch.device("cuda")
    x0 = torch.randn(4, 2, 64, device=gpu)
    t, eps = torch.randint(1, 1001, (4,), device=gpu), torch.randn_like(x0)
    losses = []
    for fast in (False, True):
        learner = Learner(TINY, 0, gpu, "fp32", compiled=fast, captured=fast)
        losses.append([float(learner.step((x0, t, eps), 1e-3, 0.1)) for _ in range(5)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
