"""Experiments: each runs with --tiny and writes its result; known answers of what they compute."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import gazediffusion as gd
from gazediffusion.seeds import STREAMS
from tests.test_architecture import loaded_by
from tests.test_documents import ROOT

sys.path.append(str(ROOT / "experiments"))
import filling
import report
import scores
import steering

SCREEN = gd.Screen(1280, 720, 40.0, 22.5, 45.0)
# Its tables with --tiny.
TABLES = {
    "augmentation": {"task", "who"},
    "benchmark": {"dots"},
    "deep": {"auc"},
    "filling": {"tiny"},
    "joint": {"headline"},
    "labels": {"scores", "confusion", "worth"},
    "package": {"model"},
    "scores": {"auc"},
    "steering": {"scanpaths", "targets", "joints", "style", "identification"},
}


def test_every_experiment_is_listed_and_there_are_ten() -> None:
    names = {path.stem for path in (ROOT / "experiments").glob("*.py")}
    assert names == {*TABLES, "report"}


@pytest.mark.parametrize("name", TABLES)
def test_an_experiment_says_what_it_is_called_with(name: str) -> None:
    doc = str(__import__(name).__doc__)
    assert f"\n    python experiments/{name}.py " in doc


def test_the_deep_test_runs_on_a_gpu_machine_that_has_little_but_torch() -> None:
    loaded = loaded_by(f"import sys; sys.path.append({str(ROOT / 'experiments')!r}); import deep")
    assert not {"polars", "pymovements", "scipy", "sklearn", "matplotlib", "PIL"} & loaded


# `package` and `benchmark` take a second or two, all others longer.
@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_an_experiment_writes_one_stamped_result(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / f"{name}.json"
    monkeypatch.setattr(sys, "argv", [name, "--tiny", "--device", "cpu", "-o", str(output)])
    __import__(name).main()
    content = json.loads(output.read_text())
    assert set(content["tables"]) == TABLES[name]
    assert (content["name"], content["streams"]) == (name, STREAMS)
    assert all(len(digest) == 64 for digest in content["weights"].values())
    for table in content["tables"].values():
        assert table["rows"]
        assert {len(row) for row in table["rows"]} == {len(table["columns"])}


def windows_of(gaze: Any) -> gd.Windows:
    return gd.Windows.from_array(np.asarray(gaze, np.float32), 250, SCREEN)


# Measured with streams 1, before streams were keyed by purpose and place, and not yet again.
# Whoever measures one again takes its name from here.
STALE = ("benchmark", "deep", "filling", "joint", "labels", "speed_cpu", "speed_gpu", "steering")


def test_results_were_measured_with_the_packaged_weights_and_present_streams() -> None:
    known = [f"{name}.json: random streams 1, now 2" for name in STALE]
    assert report.stale() == known


def test_pages_have_the_numbers_of_the_results() -> None:
    for page in report.pages():
        text = page.read_text(encoding="utf-8")
        assert report.rendered(text) == text, f"{page}: python experiments/report.py"


def test_a_page_takes_tables_and_numbers(tmp_path: Path) -> None:
    rows = [["a", [1.5, 1, 2]], ["b", None]]
    content: dict[str, Any] = {"tables": {"t": {"columns": ["set", "x y"], "rows": rows}}}
    (tmp_path / "r.json").write_text(json.dumps(content))
    table, number = (
        f"<!-- results.r.tables.t{path} -->" for path in ("[set=a]", ".rows.0.1.0 .2f")
    )
    shown = "| set | x y |\n|---|---:|\n| a | 1.5 [1, 2] |"
    text = f"{table}<!-- end --> {number}?<!-- end -->"
    expected = f"{table}\n\n{shown}\n\n<!-- end --> {number}1.50<!-- end -->"
    assert report.rendered(text, tmp_path) == expected
    with pytest.raises(SystemExit, match=r"results\.r\.tables\.u: nothing is there"):
        report.rendered("<!-- results.r.tables.u --><!-- end -->", tmp_path)
    content |= {"streams": STREAMS + 1, "weights": {}}
    (tmp_path / "r.json").write_text(json.dumps(content))
    assert report.stale(tmp_path) == [f"r.json: random streams {STREAMS + 1}, now {STREAMS}"]


def test_the_auc_is_that_of_sklearn() -> None:
    rng = np.random.default_rng(0)
    clean, odd = rng.integers(0, 9, 50).astype(float), rng.integers(2, 12, 40).astype(float)
    expected = roc_auc_score([0] * 50 + [1] * 40, np.concatenate([clean, odd]))
    assert scores.auc(clean, odd) == pytest.approx(expected)
    assert np.isnan(scores.auc(clean, np.array([np.nan])))


def test_oddities_do_what_they_say() -> None:
    rng = np.random.default_rng(0)
    gaze = np.cumsum(rng.normal(0, 1e-3, (6, 2, 500)), axis=2)
    windows = gd.Windows.from_array(gaze, 250, SCREEN, participants=list("aabbcc"))
    clean = scores.Clean(windows, windows, windows.cut(), rng)
    noise = scores.jitter(clean, 2.0) - clean.gaze
    np.testing.assert_allclose(noise.std(axis=(0, 2)) * [640, 360], [2, 2], rtol=0.05)
    moved = SCREEN.to_degrees(SCREEN.to_pixels(scores.drift(clean, 1.0) - clean.gaze))
    np.testing.assert_allclose(np.hypot(*(moved[:, :, -1] - moved[:, :, 0]).T), 1, rtol=0.02)
    joined = scores.stitched(clean)
    np.testing.assert_array_equal(joined[:, :, :250], clean.gaze[:, :, :250])
    same = (joined[:, None, :, 250:] == clean.gaze[None, :, :, 250:]).all(axis=(2, 3))
    assert (same.sum(axis=1) == 1).all()
    assert (same.argmax(axis=1) // 2 != np.arange(6) // 2).all()  # of another participant
    bends = np.abs(np.diff(scores.interpolated(clean, 1), n=2, axis=2)).max(axis=1) < 1e-6
    assert ((bends.sum(axis=1) >= 37) & (bends.sum(axis=1) <= 77)).all()
    assert len(scores.wrong_rate(clean, 1.5)) == 0  # the segments are as short as the windows


def test_interpolation_is_exact_where_it_must_be() -> None:
    ramp = np.linspace(-0.5, 0.5, 500, dtype=np.float32)
    windows = replace(windows_of(np.zeros((4, 2, 500))), gaze=np.tile(np.stack([ramp, -ramp]), 4))
    gaps = filling.Gaps(windows, 4, 100, seed=0)
    for method in ("linear", "PCHIP", "cubic"):
        np.testing.assert_allclose(gaps.interpolated(method), gaps.true, atol=1e-5)
    held = gaps.interpolated("hold")
    np.testing.assert_allclose(gaps.true[:, 0, 0] - held[:, 0, 0], 1 / 499, rtol=1e-3)


def test_draws_of_the_truths_own_distribution_cover_nine_tenths() -> None:
    rng = np.random.default_rng(0)
    true, drawn = rng.normal(size=(400, 2, 25)), rng.normal(size=(20, 400, 2, 25))
    assert filling.covered(true, drawn).mean() == pytest.approx(19 / 21, abs=0.01)


@pytest.mark.parametrize("length_ms", [50, 1000])
def test_other_gaps_of_one_distribution_are_at_the_floor(length_ms: int) -> None:
    gaze = np.cumsum(np.random.default_rng(1).normal(0, 1e-3, (60, 2, 2000)), axis=2)
    gaps = filling.Gaps(windows_of(gaze), 60, length_ms, seed=0)
    assert (np.abs(gaps.other_first - gaps.first) >= gaps.size).all()
    true, other = (
        filling.speed_counts(gaps, gaps.true_degrees, first)
        for first in (gaps.first, gaps.other_first)
    )
    assert (true.sum(axis=1) == gaps.size + 1).all()
    linear = filling.speed_counts(gaps, gaps.whole(gaps.interpolated("linear")), gaps.first)
    distance, multiple = filling.distances(other, linear, true)
    # The bias of JS between two samples of n independent speeds: (bins - 1) / 8 * (2 / n).
    assert distance == pytest.approx((filling.BINS - 1) / 4 / true.sum(), rel=0.6)
    assert multiple > 20


def test_a_saccade_to_the_target_is_a_response() -> None:
    gaze, target = np.zeros((2, 1000)), np.zeros((2, 1000))
    target[0, 300:] = 10.0
    gaze[0, 350:360] = np.linspace(0, 9.0, 10)
    gaze[0, 360:] = 9.0
    (row,) = steering.responses(gaze, target, 250.0)
    followed, latency, anticipated, gain, _, error = row
    assert (followed, anticipated) == (1.0, 0.0)
    assert latency == pytest.approx(200.0, abs=12)
    assert gain == pytest.approx(0.9, abs=0.05)
    assert error == pytest.approx(1.0, abs=0.01)
