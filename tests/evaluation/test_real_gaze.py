"""Summaries of real gaze: they evaluate as the recordings do, and name no participant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.evaluation import EvaluationConfig, compare_with, evaluate
from gazediffusion.evaluation.headline import ratio_entries
from gazediffusion.evaluation.packaging import MIN_PARTICIPANTS, summarise
from gazediffusion.evaluation.quantities import measure
from gazediffusion.evaluation.real_gaze import (
    RealGaze,
    find_summary,
    packaged_summaries,
    summaries_folder,
    summary_of_task,
)
from gazediffusion.evaluation.result import ALL, plain_values
from gazediffusion.evaluation.sets import GazeSet
from gazediffusion.storage import read_json
from tests.conftest import RunCommand
from tests.gaze import as_synthetic, simulated_windows, with_noise

QUICK = EvaluationConfig(quick=True)
Results = dict[str, Any]
# Training participants of the simulation who are not training participants here.
OTHERS = 3


def against(
    summary: Results, sets: dict[str, Windows], config: EvaluationConfig = QUICK
) -> Results:
    """The plain results of a comparison with all tasks of a summary."""
    return dict(plain_values(compare_with(RealGaze(summary), sets, config)))


@pytest.fixture(scope="module")
def all_windows() -> Windows:
    return simulated_windows()


@pytest.fixture(scope="module")
def others(all_windows: Windows) -> Windows:
    names = sorted(set(all_windows.participants) - all_windows.validation)[:OTHERS]
    places = [all_windows.participants.index(name) for name in names]
    return all_windows.select(np.isin(all_windows.participant, places))


@pytest.fixture(scope="module")
def windows(all_windows: Windows, others: Windows) -> Windows:
    """All but the others: three participants held out, four training."""
    return all_windows.select(~np.isin(all_windows.participant, others.participant))


@pytest.fixture(scope="module")
def summary(windows: Windows) -> Results:
    """As it is after a file."""
    # Its bins are those of a draw of few training participants; this draw's are near those that
    # an evaluation of the recordings uses.
    found = summarise(windows, "simulated", "nobody", n_draws=1)
    return dict(json.loads(json.dumps(found, allow_nan=False)))


@pytest.fixture(scope="module")
def sets(others: Windows) -> dict[str, Windows]:
    """Other participants, and the same with two planted defects; no set will be cut."""
    some = others.select(np.linspace(0, len(others) - 1, 120).astype(int))
    shrunk = some.dequantized(0).cut() * np.float32(0.6)
    return {
        "others": as_synthetic(some),
        "noisy": with_noise(some, 0.03),
        "shrunk": Windows.from_array(shrunk, some.rate_hz, some.screen),
    }


@pytest.fixture(scope="module")
def by_recordings(windows: Windows, sets: dict[str, Windows]) -> Results:
    return evaluate(windows.held_out, sets, windows.train, QUICK).results


@pytest.fixture(scope="module")
def by_summary(summary: Results, sets: dict[str, Windows]) -> Results:
    return against(summary, sets)


def rows_of(results: Results) -> dict[str, Results]:
    return {f"{row['family']}.{row['name']}": row for row in results["quantities"]}


def test_the_results_have_the_form_of_an_evaluation(
    by_recordings: Results, by_summary: Results
) -> None:
    assert list(by_recordings) == list(by_summary)
    assert set(rows_of(by_recordings)) == set(rows_of(by_summary))
    assert by_summary["about"]["n_common"] == by_recordings["about"]["n_common"]
    for key in ("scalars", "tests", "curves", "means", "about"):
        assert len(by_recordings[key]) == len(by_summary[key]), key
    theirs, ours = (rows_of(one)["features.x_std"] for one in (by_recordings, by_summary))
    assert list(theirs) == list(ours)
    assert list(theirs["histogram"]) == list(ours["histogram"])
    assert list(theirs["distances"]["js"]) == list(ours["distances"]["js"])
    for name in ("real", "others", "shrunk"):
        assert theirs["mean"][name] == pytest.approx(ours["mean"][name], rel=1e-4)
    for name, curve in by_recordings["curves"].items():
        found = by_summary["curves"][name]
        assert found["x"] == curve["x"]
        np.testing.assert_allclose(found["sets"]["real"], curve["sets"]["real"], rtol=1e-4)


def test_a_summary_evaluates_as_the_recordings_do(
    by_recordings: Results, by_summary: Results
) -> None:
    theirs, ours = rows_of(by_recordings), rows_of(by_summary)
    for key, row in theirs.items():
        for kind in ("js", "ks"):
            one, other = row["distances"][kind], ours[key]["distances"][kind]
            a, b = one["synthetic"]["others"]["value"], other["synthetic"]["others"]["value"]
            assert b == pytest.approx(a, rel=0.25, abs=0.001), (key, kind)
    for one, other in zip(by_recordings["scalars"], by_summary["scalars"], strict=True):
        cells = one["synthetic"]["others"], other["synthetic"]["others"]
        assert cells[1]["value"] == pytest.approx(cells[0]["value"], rel=0.01)
    families = by_recordings["ratios"]["families"]
    for family, ratios in by_summary["ratios"]["families"].items():
        assert ratios["others"] == pytest.approx(families[family]["others"], rel=0.3), family
    overall = by_recordings["ratios"]["overall"]["others"]
    assert by_summary["ratios"]["overall"]["others"] == pytest.approx(overall, rel=0.15)


def test_a_planted_defect_is_seen_by_the_same_quantities(
    by_recordings: Results, by_summary: Results
) -> None:
    for name in ("noisy", "shrunk"):
        seen, also = (
            {key for key, row in rows_of(one).items()
             if (row["distances"]["js"]["synthetic"][name]["ratio"] or 0) > limit}
            for one, limit in ((by_recordings, 3.0), (by_summary, 1.5))
        )  # fmt: skip
        assert len(seen) > 5
        assert seen <= also
        assert by_summary["ratios"]["overall"][name] > 2 * by_summary["ratios"]["overall"]["others"]


def test_jensen_shannon_is_scipys_on_the_bins_of_the_summary(
    windows: Windows, summary: Results, sets: dict[str, Windows]
) -> None:
    some = sets["others"].select(np.arange(60))
    gaze = GazeSet.of("some", some, True)
    measured = measure(gaze.gaze, 250.0, windows.screen, ("position",), gaze.group)
    found = rows_of(against(summary, {"some": some}))
    for key in ("features.mean_speed", "events.fixation_duration_s", "directions.turning_angle"):
        edges = RealGaze(summary).edges[key]
        inside = np.clip(measured.quantities[key].values, edges[0], edges[-1])
        counts = np.histogram(inside, edges)[0]
        expected = jensenshannon(summary["parts"][ALL]["quantities"][key]["real"], counts) ** 2
        value = found[key]["distances"]["js"]["synthetic"]["some"]["value"]
        assert value == pytest.approx(expected, rel=0.02)


def test_few_windows_have_the_floor_of_few_windows(
    summary: Results, sets: dict[str, Windows]
) -> None:
    whole = RealGaze(summary)
    sizes = whole.part["sizes"]
    floors = [whole.floors("features.x_std", n)["floor"]["js"] for n in sizes]
    assert floors == pytest.approx(whole.part["quantities"]["features.x_std"]["floor"]["js"])
    assert floors[0] > 1.5 * floors[-1]
    between = whole.floors("features.x_std", 35)["floor"]["js"]
    assert floors[1] < between < floors[0]
    few = {"few": sets["others"].select(np.arange(0, 120, 3))}
    found = against(summary, few)
    assert found["about"]["n_common"] == 40
    assert found["ratios"]["families"]["features"]["few"] == pytest.approx(1.0, abs=0.4)


def test_what_needs_recordings_says_so(by_recordings: Results, by_summary: Results) -> None:
    assert list(by_summary["tests"]) == list(by_recordings["tests"])
    assert all("needs recordings" in one["not_computable"] for one in by_summary["tests"].values())
    assert by_summary["differences"] == []
    assert any("please cite: nobody" in note for note in by_summary["about"]["notes"])


def test_gaze_that_does_not_move_is_far_from_real_gaze(windows: Windows, summary: Results) -> None:
    still = np.zeros((60, 2, windows.length), dtype=np.float32)
    sets = {"still": Windows.from_array(still, windows.rate_hz, windows.screen)}
    found = against(summary, sets)
    assert found["ratios"]["overall"]["still"] > 3
    json.dumps(found, allow_nan=False)


def with_tasks(windows: Windows, tasks: tuple[str, ...], number: Any) -> Results:
    """The summary of a quarter of the windows, each segment of the task of this number."""
    few = windows.select(np.arange(0, len(windows), 4))
    named = replace(few, tasks=tasks, segment_task=np.asarray(number, dtype=np.int32))
    return summarise(named, "tasks", "nobody", n_draws=1)


@pytest.fixture(scope="module")
def of_tasks(windows: Windows) -> Results:
    """Mostly reading, some dots, and stills by one participant alone."""
    number = np.arange(len(windows.segment_starts)) % 3 == 0
    is_alone = windows.segment_participant == windows.train.participant[0]
    return with_tasks(windows, ("reading", "dots", "stills"), np.where(is_alone, 2, number))


def test_tasks_of_few_participants_have_no_part_of_their_own(of_tasks: Results) -> None:
    assert of_tasks["left_out"] == {
        "stills": "0 held-out and 1 training participants",
        "dots": "without it, what is left out is of 0 held-out and 1 training participants",
    }
    assert list(of_tasks["parts"]) == [ALL, "reading"]
    assert of_tasks["fewest_people"] >= MIN_PARTICIPANTS
    assert RealGaze(of_tasks, "reading").name == "tasks/reading"
    with pytest.raises(GazeError, match="no task 'stills'; too few participants"):
        RealGaze(of_tasks, "stills")
    with pytest.raises(GazeError, match="did you mean 'reading'"):
        RealGaze(of_tasks, "readin")


def test_tasks_of_many_participants_have_a_part_of_their_own(windows: Windows) -> None:
    found = with_tasks(windows, ("reading", "dots"), np.arange(len(windows.segment_starts)) % 2)
    assert list(found["parts"]) == [ALL, "reading", "dots"]
    n_all, *n_tasks = (part["sets"]["real"]["n_windows"] for part in found["parts"].values())
    assert n_all == sum(n_tasks)


def test_too_few_participants_are_no_summary(windows: Windows) -> None:
    with pytest.raises(
        GazeError, match="needs 3 participants on either side, not 0 held-out and 4"
    ):
        summarise(windows.train, "few", "nobody")


def inside(value: Any) -> Iterator[Any]:
    """A value and all within it, keys included."""
    yield value
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from inside(item)
    if isinstance(value, dict):
        yield from value


def words_of(value: Any) -> set[str]:
    return {one for one in inside(value) if isinstance(one, str)}


def require_private(summary: Results) -> None:
    """No list is as long as the windows or the participants: all are of bins, sizes or curves."""
    assert summary["fewest_people"] >= MIN_PARTICIPANTS
    n_frequencies, n_lags = (summary["length"] - 1) // 2, round(0.4 * summary["rate_hz"]) + 1
    for part in summary["parts"].values():
        assert min(one["n_participants"] for one in part["sets"].values()) >= MIN_PARTICIPANTS
        allowed = {50, 100, len(part["sizes"]), 1, n_lags, n_frequencies}
        allowed.add(-(-(summary["length"] - 1) // 10))  # the speed profile, thinned
        for values in (one for one in inside(part) if isinstance(one, list)):
            assert len(values) in allowed
            assert not any(isinstance(one, str | list | dict) for one in values)
        for row in part["quantities"].values():
            assert row.keys() == {"low", "high", "real", "train", "mean", "n", "floor", "halves"}
            assert len(row["real"]) == len(row["train"])
            assert sum(row["real"]) == pytest.approx(1, abs=1e-3)


def test_a_summary_names_nobody_and_holds_no_rows(
    windows: Windows, summary: Results, of_tasks: Results
) -> None:
    for one in (summary, of_tasks):
        require_private(one)
        assert not words_of(one) & {*windows.participants, *windows.segment_trial}


@pytest.mark.parametrize("name", ["gazecom", "bioeye"])
def test_the_shipped_summaries_are_private_small_and_cited(name: str) -> None:
    path = summaries_folder() / f"{name}.json.gz"
    assert path.stat().st_size < 120_000
    summary = read_json(path)
    require_private(summary)
    assert (summary["length"], summary["rate_hz"]) == (2000, 250)
    assert any(word in summary["citation"] for word in ("J Vision 10(10):28", "BTAS.2015"))
    parts = summary["parts"]
    assert set(parts) | set(summary["left_out"]) == {ALL, *summary["tasks"]}
    known = {ALL, *summary["tasks"], *summary["left_out"].values(), summary["name"]}
    known |= {
        summary[key] for key in ("format", "gazediffusion_version", "citation", "data_sha256")
    }
    known |= {*summary, *summary["screen"], *parts[ALL], *parts[ALL]["quantities"]}
    known |= {*parts[ALL]["temporal"], "real", "train", "n_windows", "n_participants"}
    known |= {"low", "high", "mean", "floor", "halves", "js", "ks", "w1", "l1"}
    assert words_of(summary) <= known | {"slope", "intercept", "spread", "n"}


def test_the_summary_of_the_task_is_chosen() -> None:
    assert packaged_summaries() == ["bioeye", "gazecom"]
    for task, name in (("reading", "bioeye/reading"), ("movies", "gazecom/movies")):
        found = summary_of_task(task)
        assert found is not None
        assert found.name == name
    assert summary_of_task("knitting") is None
    with pytest.raises(GazeError, match="no summary 'gazcom'; did you mean 'gazecom'"):
        find_summary("gazcom")


def walks(n: int, tasks: list[str] | str) -> Windows:
    """Random walks of 8 s on the screens of their tasks."""
    steps = np.random.default_rng(0).normal(0, 0.004, (n, 2, 2000))
    names = [tasks] * n if isinstance(tasks, str) else tasks
    screens = [find_summary("bioeye" if one == "reading" else "gazecom").screen for one in names]
    gaze = np.clip(steps.cumsum(axis=2), -1, 1)
    return Windows.from_array(gaze, 250.0, screens, tasks=names)


def test_each_window_is_compared_with_the_summary_of_its_own_task() -> None:
    mixture = walks(105, (["reading", "movies"] * 60)[:100] + ["dots"] * 3 + ["stills"] * 2)
    config = EvaluationConfig(protocols=("velocity",))
    found = evaluate(None, {"mix": mixture}, config=config)
    assert list(found.parts) == ["reading", "movies"]
    for task, name in (("reading", "bioeye/reading"), ("movies", "gazecom/movies")):
        alone = evaluate(name, {"mix": mixture.of_task(task)}, config=config)
        assert alone.parts[task]["quantities"] == found.parts[task]["quantities"]
        assert f"the summary {name}:" in found.parts[task]["about"]["compared"]
    assert any("needs 25 windows: 3 windows of mix left out" in one for one in found.warnings)
    assert any("no summary holds the task 'stills': 2 windows" in one for one in found.warnings)
    assert found.ratio == pytest.approx(np.median(
        [value for part in found.parts.values() for value in ratio_entries(part, "mix").values()]
    ))  # fmt: skip


def test_windows_without_a_task_are_compared_with_the_default_summary() -> None:
    found = evaluate(None, walks(30, "synthetic"), config=EvaluationConfig(protocols=("velocity",)))
    assert list(found.parts) == [ALL]
    assert "summary gazecom:" in found.results["about"]["compared"]
    assert any("is not known: compared with gazecom" in one for one in found.warnings)
    with pytest.raises(GazeError, match="no summary holds the task 'knitting'"):
        evaluate(None, walks(30, "knitting"))


@pytest.mark.usefixtures("one_figure")
def test_evaluate_without_real_compares_with_the_summary_of_the_card(
    tmp_path: Path, run: RunCommand
) -> None:
    steps = np.random.default_rng(0).normal(0, 0.004, (30, 2, 2000)).astype(np.float32)
    card = {"GazediffusionCard": {"sampling": {"task": "reading"}}}
    paths = []
    for name, gaze in {"walk": np.clip(steps.cumsum(axis=2), -1, 1), "still": 0 * steps}.items():
        paths.append(tmp_path / f"{name}.safetensors")
        Windows.from_array(gaze, 250.0, find_summary("bioeye").screen).save(paths[-1])
        paths[-1].with_suffix(".json").write_text(json.dumps(card))
    given = ("evaluate", "--protocol", "velocity", "-o", tmp_path / "report", "--synthetic", *paths)
    code, out, _ = run(*given)
    assert code == 0
    assert "summary bioeye/reading" in out
    results = read_json(tmp_path / "report" / "results.json")["parts"]["reading"]
    assert results["about"]["n_common"] == 30
    assert results["ratios"]["overall"]["still"] > results["ratios"]["overall"]["walk"] > 2
    assert "BTAS.2015.7358750" in (tmp_path / "report" / "report.html").read_text()
