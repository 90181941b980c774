from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gazediffusion.evaluation.quantities import FEATURES
from gazediffusion.network.unet import UNet
from gazediffusion.plotting.style import house_style
from gazediffusion.reproduction import figures
from gazediffusion.reproduction.figures import FIGURES, draw_figures
from gazediffusion.reproduction.plan import PAPER, TINY, Artefacts, Plan
from gazediffusion.reproduction.tables import Comparison
from tests.gaze import as_synthetic, simulated_windows
from tests.reproduction import made
from tests.reproduction.made import PLAN

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@pytest.fixture(scope="module")
def artefacts() -> Artefacts:
    shown = as_synthetic(simulated_windows(6, 0.6)).cut()[:8, :, :496]
    return replace(
        made.artefacts(),
        shown={PLAN.reference: shown},
        about={"rate_hz": 250.0, "screen_px": [1280, 720]},
    )


@pytest.fixture(autouse=True)
def style() -> Iterator[None]:
    import matplotlib.pyplot as plt

    with house_style():
        yield
    plt.close("all")


def drawn(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


def texts(figure: Figure) -> str:
    from matplotlib.text import Text

    found = [item.get_text() for item in figure.findobj(Text) if isinstance(item, Text)]
    return "\n".join(found)


@pytest.mark.parametrize(
    ("without", "missing"),
    [
        ({"shown": {}}, {"dataset_overview", "architecture", "generated_trajectories"}),
        (
            {"evaluations": {}},
            {
                "four_metrics",
                "velocity_marginals",
                "feature_marginals",
                "temporal_diagnostics",
            },
        ),
    ],
    ids=["shown", "evaluations"],
)
def test_what_was_not_made_costs_its_own_figures_only(
    artefacts: Artefacts, without: Mapping[str, Any], missing: set[str]
) -> None:
    partial = replace(artefacts, **without)
    assert {name for name, draw in FIGURES.items() if draw(partial) is None} == missing


def test_nothing_made_draws_nothing(tmp_path: Path) -> None:
    empty = Artefacts(PAPER, {}, {}, {}, {}, {})
    assert draw_figures(empty, tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("plan", [PAPER, TINY], ids=lambda plan: plan.name)
def test_architecture_says_what_the_network_is(artefacts: Artefacts, plan: Plan) -> None:
    network = plan.position.network
    said = texts(drawn(figures.architecture(replace(artefacts, plan=plan))))
    n_parameters = sum(weight.numel() for weight in UNet(network).parameters())
    assert f"{n_parameters:,} parameters" in said
    for level, width in enumerate(network.widths):
        assert f"residual block\n{width} \u00d7 {496 >> level}" in said
    assert f"{network.widths[-1]} \u00d7 62" in said
    assert f"{network.heads} heads of {network.head_width}" in said
    assert f"conv {network.kernel}" in said
    assert f"sinusoid {network.embedding}" in said
    assert f"{plan.position.sampling_steps} steps (position)" in said


def test_no_two_texts_of_the_architecture_overlap(artefacts: Artefacts) -> None:
    figure = drawn(figures.architecture(artefacts))
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts if text.get_text()]
    canvas = figure.bbox
    for place, box in enumerate(boxes):
        assert canvas.x0 <= box.x0 < box.x1 <= canvas.x1
        assert canvas.y0 <= box.y0 < box.y1 <= canvas.y1
        assert not any(box.overlaps(other) for other in boxes[place + 1 :])


def test_the_overview_shows_a_simulated_recording_of_45_s_beside_a_generated_window(
    artefacts: Artefacts,
) -> None:
    figure = drawn(figures.dataset_overview(artefacts))
    said = texts(figure)
    assert "generated window, position model" in said
    assert "recordings are not shown: terms of the data" in said
    titles = {axes.get_title(loc="left"): axes for axes in figure.axes}
    assert [title[:3] for title in titles if title] == [f"({letter})" for letter in "abcdefghij"]
    path: Any = titles["(a) simulated recording, 45 s"].collections[0]
    assert len(path.get_segments()) == 45 * 250 - 1
    window = artefacts.shown[PLAN.reference][0]
    generated = titles["(g) position, generated"].lines
    np.testing.assert_array_equal(generated[0].get_ydata(), window[0])
    simulated = np.asarray(titles["(b) position, simulated"].lines[0].get_ydata())
    assert simulated.shape == window[0].shape
    assert np.isfinite(simulated).all()


def test_feature_marginals_print_the_distances_of_the_reference_run(artefacts: Artefacts) -> None:
    results = artefacts.evaluations["position"]
    said = texts(drawn(figures.feature_marginals(artefacts)))
    features = [one for one in results["quantities"] if one["family"] == "features"]
    assert len(features) == len(FEATURES)
    for one in features:
        ks, js = (
            one["distances"][kind]["synthetic"][PLAN.reference]["value"] for kind in ("ks", "js")
        )
        floors = [one["distances"][kind]["floor"] for kind in ("ks", "js")]
        assert f"KS {ks:.3f} (floor {floors[0]:.3f})\nJS {js:.4f} (floor {floors[1]:.4f})" in said
        assert f"mean {one['mean'][PLAN.reference] / one['mean']['real']:.2f} of held-out" in said
    assert f"every other set: n = {results['about']['n_common']:,} windows" in said


def test_the_speed_histogram_reaches_the_saccades_and_says_where_js_ends(
    artefacts: Artefacts,
) -> None:
    figure = drawn(figures.four_metrics(artefacts))
    quantity = Comparison(artefacts.evaluations["position"]).quantity("directions", "speed")
    assert quantity is not None
    axes = figure.axes[0]
    assert axes.get_xlim()[1] == quantity["whole_histogram"]["edges"][-1]
    assert axes.get_xlim()[1] > 1.5 * quantity["histogram"]["edges"][-1]
    assert "JS in the bins up to the 99.5th percentile" in texts(figure)
    for angle in figure.axes[2:]:
        assert angle.get_xlim() == pytest.approx((-np.pi, np.pi))


def test_every_axis_has_a_unit(artefacts: Artefacts) -> None:
    without = ("autocorrelation", "epoch", "share of fixational motion\nleft unexplained")
    for name, draw in FIGURES.items():
        if name == "architecture":
            continue
        for axes in drawn(draw(artefacts)).axes:
            for label in (axes.get_xlabel(), axes.get_ylabel()):
                has_unit = "(" in label or "unit" in label or " per " in label
                assert not label or has_unit or label in without, f"{name}: {label}"
