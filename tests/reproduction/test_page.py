"""The page says what the results say, all of it and nothing else."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gazediffusion.reproduction.page import FIGURES, render
from gazediffusion.reproduction.tables import PARTS, TABLES, Rows
from tests.reproduction.made import made_results


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return {**made_results(), "figures": list(FIGURES)}


@pytest.fixture(scope="module")
def page(results: dict[str, Any]) -> str:
    return render(results)


def lines_of(page: str, title: str) -> list[list[str]]:
    """The cells of a table, its head first."""
    block = page.split(f"**{title}**\n\n")[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in block.split("\n")]


def test_the_page_has_every_table_claim_and_figure(results: dict[str, Any], page: str) -> None:
    for table in results["tables"].values():
        assert f"\n**{table['title']}**\n" in page
        assert table["note"].split(". ")[0] in page
        assert f"\n## {table['section']}\n" in page
    for claim in results["claims"]:
        assert claim["claim"] in page
        assert re.sub(r"\](?=[(:\[])", r"\\]", claim["ours"]) in page
    for name in FIGURES:
        assert page.count(f"](figures/{name}.png)") == 1
    assert f"\n    {results['about']['command']}\n" in page


@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_every_number_of_the_tables(
    results: dict[str, Any], page: str, name: str
) -> None:
    table, rows = results["tables"][name], Rows.from_json(results["rows"]).table(name)
    head, _, *lines = lines_of(page, table["title"])
    cells = {line[0]: dict(zip(head, line, strict=True)) for line in lines}
    for row in rows:
        for part, word in PARTS.items():
            if getattr(row, part) is None:
                continue
            text = row.text(part, with_interval=True)
            if table["floor_below"]:
                found = cells["floor (training participants)" if part == "floor" else row.label]
                is_shown = part in ("ours", "paper", "floor")
                assert not is_shown or text == found[table["columns"][row.column]]
            else:
                title = table["columns"][row.column]
                assert text == cells[row.label].get(f"{title}, {word}", cells[row.label].get(title))


def test_nothing_on_the_page_is_undefined(page: str) -> None:
    assert not re.search(r"\b(nan|None|inf)\b", page)


def test_the_summary_has_the_headline_numbers(results: dict[str, Any], page: str) -> None:
    summary = page.split("\n## ")[1]
    nine = Rows.from_json(results["rows"]).find("features", "mean of nine", "js")
    for part in ("ours", "paper", "floor", "ratio"):
        assert f"| {nine.text(part)} |" in summary
    verdicts = [claim["verdict"] for claim in results["claims"]]
    assert f"Of {len(verdicts)} claims" in summary
    assert f"{verdicts.count('holds')} hold here" in summary


def test_wall_time_is_summed_over_recorded_runs(page: str) -> None:
    # 10, 20, 30, 40, 60 and 70 minutes; the first velocity run was not timed.
    assert "NVIDIA H200: 3.83 GPU hours for 6 runs; not recorded for 1." in page


@pytest.mark.parametrize("kept", [[], ["features"], ["fgd", "seeds"], ["velocity", "training"]])
def test_absent_tables_and_figures_are_left_out(results: dict[str, Any], kept: list[str]) -> None:
    few = {
        **results,
        "tables": {name: results["tables"][name] for name in kept},
        "rows": [row for row in results["rows"] if row["table"] in kept],
        "claims": [],
        "figures": [],
    }
    page = render(few)
    assert [name for name, table in TABLES.items() if f"**{table.title}**" in page] == kept
    assert ("## Training time" in page) == ("training" in kept)
    assert "![" not in page
    assert "Claims of the paper" not in page


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
    page = render({**results, "about": about, "tables": {}, "rows": [], "claims": []})
    assert "None" not in page
    assert "task: not named" in page
