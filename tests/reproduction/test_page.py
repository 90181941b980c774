"""The page says what the results say, all of it and nothing else."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest

from gazediffusion.reproduction.page import FIGURES, render, written
from gazediffusion.reproduction.tables import TABLES, make_results
from tests.reproduction.made import artefacts


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return {**make_results(artefacts()), "figures": list(FIGURES)}


@pytest.fixture(scope="module")
def page(results: dict[str, Any]) -> str:
    return render(results)


def test_the_page_has_every_table_claim_and_figure(results: dict[str, Any], page: str) -> None:
    for table in results["tables"].values():
        assert f"\n## {table['title']}\n" in page
        assert table["about"] in page
    for claim in results["claims"]:
        assert claim["claim"] in page
        assert claim["ours"] in page
    for name in FIGURES:
        assert page.count(f"](figures/{name}.png)") == 1
    assert results["about"]["command"] in page


def test_the_page_has_every_number_of_the_tables(results: dict[str, Any], page: str) -> None:
    lines = page.split("\n")
    for table in results["tables"].values():
        start = lines.index(f"## {table['title']}") + 4
        for line, row in zip(lines[start:], table["rows"], strict=False):
            cells = [cell.strip(" *") for cell in line.strip("|").split(" | ")]
            keys = [column["key"] for column in table["columns"]]
            assert cells == [row["label"], *(written(row, key) for key in keys)]


def test_nothing_on_the_page_is_undefined(page: str) -> None:
    assert not re.search(r"\b(nan|None|inf)\b", page)


def test_tables_are_whole(page: str) -> None:
    blocks = re.findall(r"(?:^\|.*\n)+", page, flags=re.MULTILINE)
    assert len(blocks) == len(TABLES) + 2
    for block in blocks:
        assert len({line.count("|") for line in block.splitlines()}) == 1, block


def test_the_page_comes_from_the_file_alone(results: dict[str, Any], page: str) -> None:
    assert render(json.loads(json.dumps(results))) == page
    assert page.endswith("\n")
    assert not page.endswith("\n\n")


@pytest.mark.parametrize("name", TABLES)
def test_a_changed_number_changes_the_page(results: dict[str, Any], page: str, name: str) -> None:
    changed = copy.deepcopy(results)
    table = changed["tables"][name]
    for column in table["columns"]:
        before = table["rows"][0].get(column["key"])
        if isinstance(before, float | dict):
            table["rows"][0][column["key"]] = 0.777123
            assert render(changed) != page
            table["rows"][0][column["key"]] = before


def test_the_summary_has_the_headline_numbers(results: dict[str, Any], page: str) -> None:
    summary = page.split("\n\n")[1]
    nine = next(
        row for row in results["tables"]["features"]["rows"] if row["name"] == "mean of nine"
    )
    for key in ("js", "js_floor", "js_ratio"):
        assert written(nine, key) in summary
    verdicts = [claim["verdict"] for claim in results["claims"]]
    assert f"Of {len(verdicts)} claims" in summary
    assert f"{verdicts.count('holds')} hold here" in summary


def test_wall_time_is_summed_over_recorded_runs(page: str) -> None:
    # 10, 20, 30, 40 and 60 minutes; the first velocity run was not timed.
    assert "NVIDIA H200: 2.67 GPU hours for 5 runs; not recorded for 1." in page


def test_the_coarsest_detail_is_told_by_numbers(results: dict[str, Any], page: str) -> None:
    ratio = 0.01 / results["about"]["median_step"]
    assert f"sqrt(beta_1) = 0.0100 to positions, {ratio:#.3g}" in page


@pytest.mark.parametrize("kept", [[], ["features"], ["fgd", "levels"], ["velocity", "training"]])
def test_absent_tables_and_figures_are_left_out(results: dict[str, Any], kept: list[str]) -> None:
    few = {
        **results,
        "tables": {name: results["tables"][name] for name in kept},
        "claims": [],
        "figures": [],
    }
    page = render(few)
    assert page.count("\n## ") == 2 + len(kept) + ("training" in kept)
    assert "![" not in page
    assert "Where the abstract's claims stand" not in page


def test_a_figure_without_its_table_is_still_shown(results: dict[str, Any]) -> None:
    few = {**results, "tables": {}, "figures": ["four_metrics"]}
    assert "## More figures\n\n![" in render(few)


def test_a_page_of_tiny_networks_says_so(results: dict[str, Any], page: str) -> None:
    assert "tiny networks" not in page
    assert "tiny networks" in render({**results, "about": {**results["about"], "tiny": True}})


def test_a_page_without_any_evaluation_can_be_written(results: dict[str, Any]) -> None:
    about = {
        **results["about"],
        "n_compared": {},
        "median_step": None,
        "task": None,
        "choices": {**results["about"]["choices"], "js_bins": None},
    }
    page = render({**results, "about": about, "tables": {}, "claims": []})
    assert "None" not in page
    assert "no task is named" in page


def test_the_published_page_is_what_its_results_say() -> None:
    import json
    from pathlib import Path

    folder = Path(__file__).parents[2] / "docs" / "results"
    results = json.loads((folder / "results.json").read_text())
    assert (folder / "README.md").read_text() == render(results)
    for name in results["figures"]:
        assert (folder / "figures" / f"{name}.png").is_file()
    assert not results["about"]["tiny"]
