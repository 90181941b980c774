"""Windows as objects of polars, pymovements, MNE and torch."""

from __future__ import annotations

import pickle
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.test_windows import make_windows
from tests.data.writers.test_windows import LENGTH, SCREEN_OF, TASKS, mixture


def test_a_frame_has_each_window_in_units_of_its_own_screen() -> None:
    windows = mixture()
    frame = windows.to_frame()
    assert frame.columns == [
        "window", "participant", "task", "trial", "t_ms", "x_px", "y_px", "x_deg", "y_deg",
    ]  # fmt: skip
    for unit in ("px", "deg"):
        found = frame.select(f"x_{unit}", f"y_{unit}").to_numpy().reshape(4, LENGTH, 2)
        np.testing.assert_array_equal(found.transpose(0, 2, 1), windows.to_numpy(unit))
    assert frame["y_deg"][LENGTH - 1] == pytest.approx(8.79, abs=1e-4)
    assert frame["t_ms"][: LENGTH + 1].to_list() == [*(4.0 * k for k in range(LENGTH)), 0.0]
    assert frame["task"].gather_every(LENGTH).to_list() == list(TASKS)


def test_a_frame_of_recorded_windows_names_participant_and_trial() -> None:
    windows = make_windows()
    frame = windows.to_frame().gather_every(windows.length)
    assert frame["window"].to_list() == list(range(18))
    assert frame.row(17)[1:5] == ("bert", "movies", "1", 0.0)


def test_degrees_are_left_out_where_no_size_is_known_and_null_beside_one_that_is() -> None:
    gaze = np.zeros((2, 2, 10))
    assert "x_deg" not in Windows.from_array(gaze, 250, Screen(800, 600)).to_frame().columns
    screens = [Screen(800, 600), SCREEN_OF["movies"]]
    mixed = Windows.from_array(gaze, 250, screens, tasks=["a", "b"]).to_frame()
    assert mixed["x_deg"].is_null().to_list() == [True] * 10 + [False] * 10


def imported(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return __import__(name)


def test_pymovements_computes_our_degrees() -> None:
    imported("pymovements")
    windows = mixture().of_task("reading")
    gaze = windows.to_pymovements()
    gaze.pix2deg()
    degrees = np.array(gaze.samples["position"].to_list()).reshape(2, LENGTH, 2)
    np.testing.assert_allclose(degrees.transpose(0, 2, 1), windows.to_numpy("deg"), atol=1e-4)
    assert gaze.experiment.sampling_rate == 250
    assert gaze.trial_columns == ["window", "participant", "task", "trial"]
    gaze.pos2vel("neighbors")  # computed trial by trial: none across the border
    assert gaze.samples["velocity"].to_list()[LENGTH] == [None, None]


def test_pymovements_has_one_screen() -> None:
    imported("pymovements")
    with pytest.raises(GazeError, match=r"2 screens.*of_task"):
        mixture().to_pymovements()


def test_mne_epochs_are_eye_tracking_channels_in_pixels_with_metadata() -> None:
    mne = imported("mne")
    windows = mixture()
    epochs = windows.to_mne()
    assert epochs.get_channel_types() == ["eyegaze", "eyegaze"]
    pixel = mne.io.constants.FIFF.FIFF_UNIT_PX
    assert [int(channel["unit"]) for channel in epochs.info["chs"]] == [pixel, pixel]
    assert [channel["loc"][4] for channel in epochs.info["chs"]] == [-1, 1]  # x, then y
    np.testing.assert_allclose(epochs.get_data(), windows.to_numpy("px"))
    assert epochs.info["sfreq"] == 250
    assert epochs.metadata["task"].tolist() == list(TASKS)
    np.testing.assert_allclose(
        epochs["reading"].get_data(), windows.of_task("reading").to_numpy("px")
    )
    assert len(epochs["participant == 'synthetic'"]) == 4


def test_a_torch_loader_collates_gaze_tasks_and_participants() -> None:
    windows = make_windows()
    dataset = windows.to_torch()
    assert isinstance(dataset, Dataset)
    batches = list(DataLoader(dataset, batch_size=4))
    assert sum(len(batch["window"]) for batch in batches) == 18
    gaze = torch.cat([batch["gaze"] for batch in batches])
    assert gaze.dtype == torch.float32
    np.testing.assert_array_equal(gaze.numpy(), windows.cut())
    for name, expected in (("task", windows.task), ("participant", windows.participant)):
        found = torch.cat([batch[name] for batch in batches])
        assert found.dtype == torch.int64
        assert found.tolist() == expected.tolist()


def test_a_torch_dataset_reaches_worker_processes_and_ends() -> None:
    dataset: Any = make_windows().to_torch()
    again = pickle.loads(pickle.dumps(dataset))
    assert torch.equal(again[3]["gaze"], dataset[3]["gaze"])
    assert dataset[-1]["window"] == 17
    with pytest.raises(IndexError):
        dataset[18]


def test_the_gaze_of_a_torch_dataset_can_be_changed_without_changing_the_windows() -> None:
    windows = make_windows()
    dataset: Any = windows.to_torch()
    dataset[0]["gaze"].zero_()
    assert windows[0].any()


@pytest.mark.parametrize(
    ("method", "package"),
    [("to_frame", "polars"), ("to_pymovements", "pymovements"), ("to_mne", "mne"),
     ("to_mne", "pandas"), ("to_torch", "torch")],
)  # fmt: skip
def test_a_missing_package_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, method: str, package: str
) -> None:
    imported("mne")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(GazeError, match=f"{package} is not installed; .*pip install {package}"):
        getattr(make_windows(), method)()


def test_no_windows_are_no_epochs() -> None:
    imported("mne")
    with pytest.raises(GazeError, match="no windows"):
        make_windows().select(np.zeros(18, dtype=bool)).to_mne()
