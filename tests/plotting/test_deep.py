"""The figure of the deep two-sample test shows what its results say."""

from __future__ import annotations

from typing import Any

import pytest

from gazediffusion.plotting.deep import deep_figure, draw_auc, draw_saliency
from gazediffusion.plotting.style import BLUE, house_style


def row(value: float) -> dict[str, Any]:
    cell = {"value": value, "interval": [value - 0.1, value + 0.05]}
    return {
        "auc": {"2 s": cell, "2 s below 30 Hz": cell},
        "without": {"2 s": {"0 to 2 Hz": cell}},
        "saliency": {"2 s": {"time": [0.9, 1.1]}},
    }


def deep_results() -> dict[str, Any]:
    """Results of a floor, a defect and two sets, of which the figure shows each."""
    synthetic = {"position": row(0.7), "kinematic-markov": row(0.95)}
    planted = {"jitter $": row(0.9)}
    return {"settings": {}, "floor": row(0.5), "planted": planted, "synthetic": synthetic}


def test_points_lie_at_the_values_with_their_intervals() -> None:
    import matplotlib.pyplot as plt

    with house_style():
        _, axes = plt.subplots()
        draw_auc({"ours": row(0.7)["auc"], "floor": row(0.5)["auc"]}, {"ours": BLUE}, axes)
        points: list[Any] = list(axes.containers)
        assert points[0].lines[0].get_ydata().tolist() == pytest.approx([0.7, 0.7])
        (ends,) = points[0].lines[2]
        assert ends.get_segments()[0][:, 1].tolist() == pytest.approx([0.6, 0.75])
        assert [one.get_text() for one in axes.get_xticklabels()] == ["2 s", "2 s\nbelow 30 Hz"]
        plt.close()


def test_saliency_has_a_step_for_each_second() -> None:
    import matplotlib.pyplot as plt

    with house_style():
        _, axes = plt.subplots()
        draw_saliency({"ours": [0.5, 1.5, 1.0]}, {}, axes)
        assert axes.patches[0].get_data().values.tolist() == [0.5, 1.5, 1.0]  # type: ignore[attr-defined]
        plt.close()


def test_the_figure_has_a_panel_for_each_part() -> None:
    import matplotlib.pyplot as plt

    with house_style():
        figure = deep_figure(deep_results(), {"position": BLUE})
        assert figure is not None
        assert len(figure.axes) == 3
        figure.canvas.draw()
        plt.close(figure)
    assert deep_figure({"not_computable": "why"}, {}) is None
