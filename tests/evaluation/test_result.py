"""The typed result: ratios, headline, table, JSON and reports."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.evaluation import Evaluation, EvaluationConfig, evaluate
from gazediffusion.evaluation.headline import ratio_entries
from gazediffusion.evaluation.result import ALL, plain_values
from gazediffusion.screen import Screen
from tests.gaze import as_synthetic, simulated_windows, with_noise

QUICK = EvaluationConfig(quick=True)


@pytest.fixture(scope="module")
def windows() -> Windows:
    return simulated_windows()


@pytest.fixture(scope="module")
def quick(windows: Windows) -> Evaluation:
    return evaluate(windows.held_out, as_synthetic(windows.train), windows.train, QUICK)


def test_the_ratio_is_the_median_of_31_ratios(quick: Evaluation) -> None:
    entries = ratio_entries(quick.results, "synthetic")
    assert len(entries) == 31
    assert quick.ratio == np.median(list(entries.values()))
    assert quick.ratios == {"synthetic": quick.ratio}
    assert quick.headlines["synthetic"].ratio.value == quick.ratio
    assert quick.headlines["synthetic"].worst_ratio.value == max(entries.values())


def test_the_ratio_of_several_sets_names_them(windows: Windows) -> None:
    sets = {"one": as_synthetic(windows.train), "two": with_noise(windows.train, 0.03)}
    found = evaluate(windows.held_out, sets, windows.train, QUICK)
    assert found.ratios["one"] < found.ratios["two"]
    with pytest.raises(GazeError, match=r"2 synthetic sets \(one, two\)"):
        _ = found.ratio


def test_ratios_of_parts_are_pooled_and_all_tasks_stand_for_all(quick: Evaluation) -> None:
    other = plain_values(quick.results)
    for row in other["scalars"]:
        row["synthetic"]["synthetic"]["ratio"] *= 10
    pooled = [
        value
        for part in (quick.results, other)
        for value in ratio_entries(part, "synthetic").values()
    ]
    assert Evaluation({"a": quick.results, "b": other}).ratio == np.median(pooled)
    assert Evaluation({ALL: quick.results, "b": other}).ratio == quick.ratio
    both = Evaluation({"a": quick.results, "b": other})
    assert "a: synthetic" in both.headlines
    with pytest.raises(GazeError, match=r"2 parts \(a, b\)"):
        _ = both.results


def test_the_table_has_a_row_for_each_distance_of_each_quantity(quick: Evaluation) -> None:
    table = quick.table()
    results = quick.results
    assert len(table) == 3 * len(results["quantities"]) + len(results["scalars"])
    row = table.row(
        by_predicate=(pl.col("family") == "features")
        & (pl.col("quantity") == "x_std")
        & (pl.col("distance") == "js"),
        named=True,
    )
    found = next(one for one in results["quantities"] if one["name"] == "x_std")
    cell = found["distances"]["js"]["synthetic"]["synthetic"]
    assert (row["value"], row["ratio"]) == (cell["value"], cell["ratio"])
    assert (row["unit"], row["part"]) == ("normalized units", ALL)
    assert row["n_windows"] == results["about"]["n_common"]


def test_json_and_repr(quick: Evaluation, tmp_path: Path) -> None:
    text = quick.to_json(tmp_path / "results.json")
    assert (tmp_path / "results.json").read_text() == text
    assert json.loads(text)["parts"] == quick.parts
    assert repr(quick) == f"Evaluation(ratio to the floor: synthetic {quick.ratio:.2f})"


def test_the_page_is_written_where_it_is_asked_for(
    quick: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gazediffusion.plotting.evaluation.FIGURES", {})
    page = quick.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == page
    assert "data:image/" in page  # the gallery


def test_plain_values_are_what_json_holds() -> None:
    given = {"a": np.array([1.0, np.nan]), 2: (np.float32(0.5), np.int64(3)), "c": [np.inf, True]}
    assert plain_values(given) == {"a": [1.0, None], "2": [0.5, 3], "c": [None, True]}
    assert plain_values({"a": 0.123456789, "b": 1234567}, digits=3) == {"a": 0.123, "b": 1234567}


def test_arrays_are_evaluated_as_windows_are(windows: Windows) -> None:
    real, training = (one.dequantized(0) for one in (windows.held_out, windows.train))
    given = {"ours": as_synthetic(windows.train, 3)}
    names = [[one.participants[k] for k in one.participant] for one in (real, training)]
    arrays = [
        Windows.from_array(one.cut(), one.rate_hz, one.screen, participants=who)
        for one, who in zip((real, training), names, strict=True)
    ]
    expected = evaluate(arrays[0], given, arrays[1], QUICK)
    found = evaluate(
        real.cut(), {"ours": given["ours"].cut()}, training.cut(), QUICK, rate_hz=250,
        screen=windows.screen, participants=names[0], reference_participants=names[1],
    )  # fmt: skip
    assert found.parts == expected.parts
    unnamed = evaluate(real.cut(), given, training.cut(), QUICK, rate_hz=250, screen=windows.screen)
    assert unnamed.ratio == expected.ratio
    assert unnamed.results["sets"]["real"]["n_participants"] == len(real)


@pytest.mark.parametrize("missing", ["rate_hz", "screen"])
def test_arrays_need_rate_and_screen(missing: str) -> None:
    gaze = np.zeros((3, 2, 500))
    given = {"rate_hz": 250.0, "screen": Screen(1280, 720)}
    del given[missing]
    with pytest.raises(GazeError, match=f"give `{missing}`"):
        evaluate(gaze, gaze, **given)  # type: ignore[arg-type]


def test_protocols_are_position_velocity_or_both() -> None:
    with pytest.raises(GazeError, match="`protocols` must be position, velocity or both"):
        EvaluationConfig(protocols=("speed",))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["real", "train", "half a", "real, second draw"])
def test_names_of_the_real_sets_are_refused(windows: Windows, name: str) -> None:
    with pytest.raises(GazeError, match="cannot be named"):
        evaluate(windows.held_out, {name: windows.train}, windows.train, QUICK)
