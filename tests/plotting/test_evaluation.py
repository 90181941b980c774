from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazediffusion.data.windows import Windows
from gazediffusion.plotting.evaluation import (
    FIGURES,
    draw_all,
    draw_auc,
    draw_curve,
    draw_floor_ratios,
    draw_histogram,
    draw_main_sequence,
    draw_pair,
    set_styles,
)
from gazediffusion.plotting.style import BLUE, house_style
from tests.conftest import SCREEN

SETS = ("position", "kinematic-markov")
QUANTITIES = {
    "features": (
        "mean_speed max_speed path_length x_range y_range x_std y_std displacement fixation_ratio"
    ),
    "events": (
        "fixation_duration_s fixation_dispersion fixation_count saccade_amplitude "
        "saccade_peak_speed saccade_duration_s saccade_count"
    ),
    "directions": "speed direction turning_angle",
    "velocity": "v_x v_y speed log_speed turning_angle path_length",
    "degrees": "fixation_duration_s saccade_amplitude_deg microsaccades_per_s",
}


def deep_results() -> dict[str, Any]:
    """The AUC of a floor, a planted defect and two sets in two tests."""

    def row(value: float) -> dict[str, Any]:
        cell = {"value": value, "interval": [value - 0.1, value + 0.05]}
        return {"auc": {"2 s": cell, "8 s": cell}}

    synthetic = {"position": row(0.7), "kinematic-markov": row(0.95)}
    return {"floor": row(0.5), "planted": {"jitter $": row(0.9)}, "synthetic": synthetic}


def make_results(names: tuple[str, ...] = SETS, with_train: bool = True) -> dict[str, Any]:
    """Results as `evaluate` returns them, of made-up numbers that all differ."""
    rng = np.random.default_rng(0)
    every = [*(["real", "train"] if with_train else ["real"]), *names]

    def distance(size: float) -> dict[str, Any]:
        floor, halves, *values = (float(v) for v in size * rng.uniform(0.1, 1, 2 + len(names)))
        made = {
            n: {"value": v, "interval": [0.8 * v, 1.3 * v], "ratio": v / floor}
            for n, v in zip(names, values, strict=True)
        }
        return {"floor": floor, "halves": halves, "synthetic": made}

    def quantity(name: str, family: str) -> dict[str, Any]:
        is_window = family == "features" or name.endswith("count")
        values = {key: rng.gamma(4 + n, 0.3, 4000) for n, key in enumerate(every)}
        if name in ("v_x", "v_y", "direction", "turning_angle"):
            values = {key: v - v.mean() for key, v in values.items()}
        low, high = np.percentile(values["real"], [0.5, 99.5])
        edges = np.linspace(low, high, 51 if is_window else 101)
        densities = {key: np.histogram(v, edges, density=True)[0] for key, v in values.items()}
        return {
            "name": name,
            "title": name.replace("_", " "),
            "family": family,
            "unit": "s" if name.endswith("_s") else "",
            "level": "window" if is_window else "pooled",
            "mean": {key: float(v.mean()) for key, v in values.items()},
            "distances": {kind: distance(0.1) for kind in ("js", "ks", "w1")},
            "histogram": {
                "edges": edges.tolist(),
                **{key: d.tolist() for key, d in densities.items()},
            },
        }

    def curve(x_label: str, y_label: str) -> dict[str, Any]:
        x = np.linspace(0, 400, 101)
        lines = {key: np.exp(-x / (60 + 20 * n)).tolist() for n, key in enumerate(every)}
        return {"x": x.tolist(), "x_label": x_label, "y_label": y_label, "sets": lines}

    def sequence(number: int) -> dict[str, Any]:
        amplitude = rng.lognormal(0.5, 1.0, 400)
        peak = 10 ** (1.8 + 0.1 * number + 0.6 * np.log10(amplitude) + rng.normal(0, 0.1, 400))
        points = {"amplitude_deg": amplitude.tolist(), "peak_deg_s": peak.tolist()}
        fit = {
            "slope": 0.601 + number / 100,
            "intercept": 1.8 + 0.1 * number,
            "spread": 0.1,
            "n": 1234 + number,
        }
        return {**fit, **points}

    def pair(rank: int) -> dict[str, Any]:
        path = np.cumsum(rng.normal(0, 0.02, (2, 500)), axis=1)
        copy_of = -path + 0.3 + rng.normal(0, 0.004 * (rank + 1), path.shape)
        return {
            "distance": 0.0123 * (rank + 1),
            "synthetic_index": 17 * rank,
            "training_index": 31 * rank,
            "synthetic": copy_of.tolist(),
            "training": path.tolist(),
        }

    def per_set(make: Any) -> dict[str, Any]:
        return {name: make(number) for number, name in enumerate(names)}

    described = {"n_windows": 791, "n_participants": 8, "sha256": "0f" * 32}
    families = [*QUANTITIES, "temporal"]
    return {
        "format": "gazediffusion-evaluation",
        "format_version": 1,
        "about": {
            "gazediffusion_version": "0.1.0",
            "protocols": ["position", "velocity"],
            "quick": False,
            "seed": 0,
            "n_bootstrap": 200,
            "bins": {"window": 50, "pooled": 100},
            "n_common": 791,
            "versions": {"numpy": "2.3.4", "scipy": "1.16.3"},
            "compared": "Each synthetic set is compared with 791 windows of 8 participants.",
            "warnings": ["position has 12 windows"],
            "notes": ["velocity.csv was resampled from 1000 to 250 Hz"],
        },
        "sets": {
            "real": {"name": "windows.safetensors (held out)", **described},
            "train": {"name": "windows.safetensors", **described} if with_train else None,
            "synthetic": {name: {"name": f"{name}.npz", **described} for name in names},
        },
        "headline": {
            name: {
                "n_distances": 31,
                "worst": "horizontal velocity",
                "ratio": {"value": 1.234 + n, "interval": [0.987 + n, 1.567 + n]},
                "n_above": {"value": 3 + n, "interval": [1, 8]},
                "worst_ratio": {"value": 2.345 + n, "interval": None},
                "saccade_count_percent": {"value": -1.44 - n, "interval": [-3.21, 0.55]},
                "c2st": {"value": 0.534, "interval": None},
                "n_windows": 791,
            }
            for n, name in enumerate([*names, "real, second draw"])
        },
        "quantities": [
            quantity(name, family)
            for family, listed in QUANTITIES.items()
            for name in listed.split()
        ],
        "scalars": [
            {"name": name, "title": title, "family": "temporal", "unit": "", **distance(1e-3)}
            for name, title in (("rho1_speed", "delta rho1"), ("psd_speed", "D_PSD of speed"))
        ],
        "curves": {
            "speed_autocorrelation": curve("lag (ms)", "autocorrelation"),
            "speed_spectrum": curve("frequency (Hz)", "share of power"),
            "mean_speed_profile": curve("time (s)", "mean speed (normalized units/s)"),
        },
        "main_sequence": {"sets": {key: sequence(n) for n, key in enumerate(every)}},
        "ratios": {
            "definition": "Ratio to the floor: distance to held-out participants over the floor.",
            "families": {
                family: per_set(lambda n, k=k: 0.913 + 0.317 * k + 4.17 * n * (k + 1))
                for k, family in enumerate(families)
            },
            "overall": per_set(lambda n: 1.727 * (1 + 6 * n)),
        },
        "means": {
            f"{kind}_{n}": {
                "floor": 0.0189 * n,
                "synthetic": per_set(lambda m, n=n: 0.0246 * (m + n)),
                "ratio": per_set(lambda m, n=n: 1.357 * (m + n)),
            }
            for kind in ("js", "ks")
            for n in (8, 9)
        },
        "differences": [
            {
                "a": names[0],
                "b": names[1],
                "quantity": "mean JS of nine features",
                "value": -0.3123,
                "interval": [-0.3456, -0.2789],
                "is_different": True,
            }
        ],
        "tests": {
            "coverage": {
                "about": "Coverage: higher is better.",
                "floor": {"precision": 0.912, "coverage": 0.834} if with_train else None,
                "synthetic": per_set(lambda n: {"precision": 0.8 / (n + 1), "coverage": None}),
            },
            "c2st": {
                "about": "0.5 is chance; lower is better.",
                "floor": {"features_accuracy": 0.567},
                "synthetic": per_set(lambda n: {"features_accuracy": 0.655 + n / 5}),
            },
            "memorisation": {
                "about": "The share of copies is by chance 1 %.",
                "floor": None,
                "synthetic": per_set(
                    lambda n: {
                        "copy_share": 0.0112 * (n + 1),
                        "interval": [0.0051, 0.0234],
                        "pairs": [pair(rank) for rank in range(5)],
                    }
                ),
            }
            if with_train
            else {"not_computable": "memorisation needs the training windows"},
            "fgd": {"not_computable": "the Frechet Gaze Distance needs a trained position model"},
        },
    }


def windows(n: int = 4, seed: int = 0) -> Windows:
    steps = np.random.default_rng(seed).normal(0, 0.02, (n, 2, 400))
    return Windows.from_array(np.clip(np.cumsum(steps, axis=2), -1.2, 1.2), 250.0, SCREEN)


@pytest.fixture
def axes() -> Iterator[Any]:
    import matplotlib.pyplot as plt

    with house_style():
        figure, axes = plt.subplots()
        yield axes
        plt.close(figure)


def one_of_each_family(results: dict[str, Any]) -> dict[str, Any]:
    """Every panel takes time; the figures of all quantities are drawn in the tests of reports."""
    by_family = {row["family"]: row for row in results["quantities"]}
    return {**results, "quantities": list(by_family.values())}


def test_every_figure_is_written_as_png_and_svg(tmp_path: Path) -> None:
    shown = {"real": windows(1), "position": windows(1, 1)}
    results = one_of_each_family(make_results())
    results["quantities"].append({**results["quantities"][0], "family": "plug-ins"})
    results["tests"]["deep"] = deep_results()
    written = draw_all(results, tmp_path, shown)
    assert list(written) == [*FIGURES, "gallery"]
    for name, (png, svg) in written.items():
        assert (png, svg) == (tmp_path / f"{name}.png", tmp_path / f"{name}.svg")
        assert png.read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in svg.read_bytes()


def test_what_is_missing_has_no_picture_and_the_others_are_drawn(tmp_path: Path) -> None:
    results = one_of_each_family(make_results(with_train=False))
    results["main_sequence"] = {"not_computable": "the screen's size is not known"}
    results["curves"] = {}
    results["ratios"] = {"not_computable": "no floor"}
    written = draw_all(results, tmp_path)
    without = {"main_sequence", "temporal", "memorisation", "floor_ratios", "deep", "plug-ins"}
    assert set(written) == set(FIGURES) - without
    assert draw_all({"sets": {"synthetic": {}}}, tmp_path / "empty") == {}


def test_a_set_keeps_its_look_whatever_is_compared_with_it() -> None:
    names = tuple(f"set {n}" for n in range(30))
    styles = set_styles({"sets": {"synthetic": dict.fromkeys(names)}})
    assert len({(s.colour, str(s.line)) for s in styles.values()}) == 32
    alone = set_styles({"sets": {"synthetic": {"set 0": None}}})
    assert alone["set 0"] == styles["set 0"]


def test_names_are_not_formulas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = (r"$\frac$", "_hidden<script>")
    results = make_results(names)
    monkeypatch.setattr(
        "gazediffusion.plotting.evaluation.FIGURES",
        {name: FIGURES[name] for name in ("floor_ratios", "temporal", "memorisation")},
    )
    assert "floor_ratios" in draw_all(results, tmp_path, {names[0]: windows(1)})
    assert set_styles(results)["_hidden<script>"].label == " _hidden<script>"


def test_a_histogram_shows_every_set_over_the_same_bins(axes: Any) -> None:
    results = make_results()
    quantity = results["quantities"][0]
    draw_histogram(quantity, set_styles(results), axes)
    steps = {patch.get_label(): patch.get_data() for patch in axes.patches}
    assert set(steps) == {style.label for style in set_styles(results).values()}
    np.testing.assert_allclose(steps["position"].values, quantity["histogram"]["position"])
    assert axes.get_yscale() == "linear"


def test_one_spike_does_not_flatten_the_real_histogram(axes: Any) -> None:
    results = make_results()
    quantity = copy.deepcopy(results["quantities"][0])
    quantity["histogram"]["position"][0] = 1e6
    draw_histogram(quantity, set_styles(results), axes)
    assert axes.get_ylim()[1] <= 3.2 * max(quantity["histogram"]["real"])


def test_empty_bins_are_gaps_on_a_logarithmic_axis(axes: Any) -> None:
    results = make_results()
    quantity = copy.deepcopy(results["quantities"][0])
    quantity["histogram"]["real"][3] = 0.0
    draw_histogram(quantity, set_styles(results), axes, is_log=True)
    real = next(p for p in axes.patches if p.get_label() == "real, held out")
    assert np.isnan(real.get_data().values[3])
    assert axes.get_yscale() == "log"


def test_in_logarithms_the_tails_are_drawn_and_the_bins_of_js_end_at_dotted_lines(
    axes: Any,
) -> None:
    results = make_results()
    quantity = copy.deepcopy(results["quantities"][0])
    edges = [*quantity["histogram"]["edges"], 2 * quantity["histogram"]["edges"][-1]]
    density = {k: [*v, 1e-3] for k, v in quantity["histogram"].items() if k != "edges"}
    quantity["whole_histogram"] = {**density, "edges": edges}
    draw_histogram(quantity, set_styles(results), axes, is_log=True)
    real = next(p for p in axes.patches if p.get_label() == "real, held out")
    assert real.get_data().edges.tolist() == edges
    assert axes.get_xlim() == (edges[0], edges[-1])
    assert [line.get_xdata()[0] for line in axes.lines] == [edges[0], edges[-2]]


def test_a_curve_skips_sets_without_one(axes: Any) -> None:
    results = make_results()
    curve = results["curves"]["speed_autocorrelation"]
    curve["sets"]["position"] = None
    curve["sets"]["real"][5] = None
    draw_curve(curve, set_styles(results), axes)
    assert "position" not in [line.get_label() for line in axes.lines]
    assert len(axes.lines) == 3


def test_the_fit_of_the_main_sequence_is_the_line_drawn(axes: Any) -> None:
    results = make_results()
    draw_main_sequence(results["main_sequence"]["sets"], set_styles(results), axes)
    line = next(one for one in axes.lines if str(one.get_label()).startswith("position"))
    x, y = line.get_data()
    slope = np.diff(np.log10(y)) / np.diff(np.log10(x))
    np.testing.assert_allclose(slope, results["main_sequence"]["sets"]["position"]["slope"])


def test_ratios_stand_where_they_belong(axes: Any) -> None:
    results = make_results()
    draw_floor_ratios(results["ratios"], set_styles(results), axes)
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == ["overall", *results["ratios"]["families"]]
    overall = next(line for line in axes.lines if line.get_label() == "position")
    np.testing.assert_allclose(overall.get_xdata()[0], results["ratios"]["overall"]["position"])


def test_auc_lies_at_its_value_with_its_interval(axes: Any) -> None:
    sets = deep_results()["synthetic"]
    draw_auc({name: one["auc"] for name, one in sets.items()}, {"position": BLUE}, axes)
    points: list[Any] = list(axes.containers)
    assert points[0].lines[0].get_ydata().tolist() == pytest.approx([0.7, 0.7])
    (ends,) = points[0].lines[2]
    assert ends.get_segments()[0][:, 1].tolist() == pytest.approx([0.6, 0.75])
    assert [one.get_text() for one in axes.get_xticklabels()] == ["2 s", "8 s"]


def test_a_mirrored_and_shifted_copy_is_drawn_on_its_original(axes: Any) -> None:
    path = np.cumsum(np.random.default_rng(1).normal(0, 0.02, (2, 200)), axis=1)
    copied = path * [[-1.0], [1.0]] + 0.4
    draw_pair({"distance": 0.0, "training": path, "synthetic": copied}, "red", axes)
    training, synthetic = (np.array(line.get_data()) for line in axes.lines)
    np.testing.assert_allclose(synthetic, training, atol=1e-12)
