from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.plotting.gaze import draw_path, gallery, plot_windows, recording_overview
from gazediffusion.plotting.style import house_style
from gazediffusion.screen import Screen
from tests.conftest import SCREEN, wandering_gaze

GAZE = SCREEN.to_normalized(wandering_gaze(2000))
ONE = Windows.from_array(GAZE[None], 250.0, SCREEN)


def test_the_overview_shows_both_representations() -> None:
    with house_style():
        figure = recording_overview(GAZE, GAZE[:, :1000], 250.0, SCREEN, "one trial")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title[:3] for title in titles] == ["(a)", "(b)", "(c)", "(d)", "(e)"]
    speed = figure.axes[4].lines[0].get_ydata()
    expected = np.hypot(*np.diff(GAZE[:, :1000])) * 250
    np.testing.assert_allclose(np.asarray(speed)[1:], expected, rtol=1e-4, atol=1e-3)


def test_every_axis_of_overview_and_gallery_has_a_unit_and_paths_a_time_scale() -> None:
    with house_style():
        figures = [
            recording_overview(GAZE, GAZE[:, :1000], 250.0, SCREEN, "one trial"),
            gallery({"one": ONE}, "", 1),
        ]
    for figure in figures:
        labels = [text for axes in figure.axes for text in (axes.get_xlabel(), axes.get_ylabel())]
        assert all("unit" in text or text == "time (s)" for text in labels if text)
    path, traces, scale = figures[1].axes
    assert scale.get_ylabel() == "time (s)"
    assert scale.get_ylim() == pytest.approx((0.0, 1999 / 250))
    figures[1].draw_without_rendering()
    legend = traces.get_legend()
    assert path.get_legend() is None
    assert legend is not None
    assert not legend.get_window_extent().overlaps(traces.patch.get_window_extent().padded(-5))


def test_the_vertical_axis_points_down_as_on_the_screen() -> None:
    import matplotlib.pyplot as plt

    with house_style():
        figure, axes = plt.subplots()
        draw_path(GAZE, axes)
        bottom, top = axes.get_ylim()
        plt.close(figure)
    assert bottom > top


def test_pictures_are_written_whole_in_the_format_of_their_ending(tmp_path: Path) -> None:
    starts = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    for ending, start in starts.items():
        path = plot_windows({"a": ONE, "b": ONE}, tmp_path / f"gallery{ending}", "two")
        assert path.read_bytes().startswith(start)
    assert len(list(tmp_path.iterdir())) == 3


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GazeError, match=r"\.png, \.svg or \.pdf"):
        plot_windows(ONE, tmp_path / "gallery.gif")
    assert not any(tmp_path.iterdir())


def test_each_window_is_drawn_in_the_proportions_of_its_screen() -> None:
    tall = Screen(600, 800)
    mixture = Windows.from_array(np.stack([GAZE, GAZE]), 250.0, [SCREEN, tall], tasks=["a", "b"])
    with house_style():
        figure = gallery({"both": mixture}, "two screens", 4)
    ratios = [axes.get_aspect() for axes in figure.axes[:2]]
    assert ratios == [720 / 1280, 800 / 600]
