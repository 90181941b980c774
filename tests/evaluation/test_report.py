"""The report: every number in Markdown and on the page, from results that could be anything."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from gazediffusion.evaluation import report
from gazediffusion.evaluation.metrics import Estimate
from gazediffusion.evaluation.report import Table, as_text, lay_out
from gazediffusion.evaluation.result import ALL, Evaluation
from gazediffusion.plotting.evaluation import FIGURES
from tests.browser import CHROMIUM, FLAGS
from tests.plotting.test_evaluation import make_results, windows

HOSTILE = ("<script>alert(1)</script>", "a|b*c`d](http://x) \"'&")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluation") / "report"
    shown = {"real, held out": windows(), "position": windows(seed=1)}
    paths = Evaluation({ALL: make_results()}, shown).save(folder)
    assert set(paths) == {path for path in folder.rglob("*") if path.is_file()}
    return folder


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes seconds; where words are tested it is left out."""
    monkeypatch.setattr(report, "draw_figures", lambda *_: {})


def visible(page: str) -> str:
    """The words of a page, without tags, styles and script."""
    page = re.sub(r"<(style|script)>.*?</\1>", " ", page, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", " ", page))


def compared_numbers(results: dict[str, Any]) -> list[float]:
    """Every number of the results that belongs in a table."""
    found: list[Any] = []
    rows = [one["distances"][kind] for one in results["quantities"] for kind in one["distances"]]
    for row in [*rows, *results["scalars"]]:
        found += [row["floor"], row["halves"]]
        for one in row["synthetic"].values():
            found += [one["value"], one["ratio"], *one["interval"]]
    found += [v for one in results["quantities"] for v in one["mean"].values()]
    for row in results["means"].values():
        found += [row["floor"], *row["synthetic"].values(), *row["ratio"].values()]
    for row in results["headline"].values():
        found += [row["ratio"]["value"], *row["ratio"]["interval"]]
        found += [row["worst_ratio"]["value"], *row["saccade_count_percent"]["interval"]]
    for row in [results["ratios"]["overall"], *results["ratios"]["families"].values()]:
        found += row.values()
    for fit in (results["main_sequence"].get("sets") or {}).values():
        found += [fit["slope"], fit["intercept"], fit["spread"], fit["n"]]
    for one in results["differences"]:
        found += [one["value"], *one["interval"]]
    for test in results["tests"].values():
        for row in [test.get("floor") or {}, *test.get("synthetic", {}).values()]:
            found += [v for v in row.values() if isinstance(v, float)]
            found += row.get("interval", [])
            found += [v for p in row.get("pairs", []) for v in (p["distance"], p["training_index"])]
    return found


def test_every_file_is_written_and_named(written: Path) -> None:
    names = {str(path.relative_to(written)) for path in written.rglob("*") if path.is_file()}
    assert {"report.html", "report.md", "results.json", "figures/main_sequence.svg"} <= names
    assert len(names) == 3 + 2 * 10
    sources = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (written / "report.md").read_text())
    assert len(set(sources)) == 10
    assert set(sources) <= names


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_every_number_stands_in_the_tables(written: Path, name: str) -> None:
    text = (written / name).read_text()
    words = set(re.findall(r"-?[\d.,]*\d(?:e-?\d+)?", visible(text) if "html" in name else text))
    numbers = compared_numbers(make_results())
    assert len(numbers) > 600
    assert [v for v in numbers if as_text(v) not in words] == []


@pytest.mark.parametrize("with_train", [True, False])
def test_every_distance_has_its_floor_beside_it(with_train: bool) -> None:
    results = make_results(with_train=with_train)
    blocks = [block for blocks in lay_out({ALL: results}).values() for block in blocks]
    tables = [block for block in blocks if isinstance(block, Table)]
    compared = [t for t in tables if t.title in (*report.DISTANCES.values(), report.PAIRWISE)]
    assert len(compared) == 5 * 3 + 1
    for table in compared:
        assert list(table.columns[1:3]) == ["floor", "halves"]
        assert all(isinstance(row[1], float) for row in (*table.rows, *table.foot))
        assert all(isinstance(cell, Estimate) for row in table.rows for cell in row[3:])


def test_the_page_begins_with_the_headline(written: Path) -> None:
    text = visible((written / "report.html").read_text())
    order = [
        "compared with 791 windows",
        "Warning: position has 12 windows",
        "1.23",
        "real, second draw",
        "Ratio to the floor by family",
        "JS divergence",
        "sha256",
    ]
    places = [text.index(word) for word in order]
    assert places == sorted(places)


@pytest.mark.usefixtures("without_figures")
def test_what_could_not_be_computed_says_why(tmp_path: Path) -> None:
    results = make_results(with_train=False)
    results["main_sequence"] = {"not_computable": "the screen's size is not known"}
    Evaluation({ALL: results}).save(tmp_path / "report")
    for text in (
        (tmp_path / "report" / "report.md").read_text(),
        visible((tmp_path / "report" / "report.html").read_text()),
    ):
        for why in (
            "Not computable: the Frechet Gaze Distance needs a trained position model",
            "Not computable: memorisation needs the training windows",
            "Main sequence: not computable: the screen's size is not known",
        ):
            assert why in text
        assert "real, training" not in text


@pytest.mark.usefixtures("without_figures")
def test_names_are_text_and_never_markup(tmp_path: Path) -> None:
    results = make_results(HOSTILE)
    results["about"]["notes"] = ["<img src=x onerror=alert(2)>"]
    Evaluation({ALL: results}, {HOSTILE[0]: windows(1)}).save(tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text()
    assert page.count("<script>") == 1
    assert "<img src=x" not in page
    assert all(name in visible(page) for name in HOSTILE)
    markdown = (tmp_path / "report" / "report.md").read_text()
    assert "<script>" not in markdown
    assert "<img" not in markdown
    assert re.search(r"(?<!\\)\]\(http", markdown) is None
    tables = [line for line in markdown.splitlines() if line.startswith("| quantity | floor")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in tables} == {6}


@pytest.mark.usefixtures("without_figures")
def test_every_part_has_its_headline_and_its_sections() -> None:
    evaluation = Evaluation({ALL: make_results(), "reading": make_results()})
    markdown = evaluation.to_markdown()
    for words in ("## all tasks: Events", "## reading: Events", "reading: Each synthetic set is"):
        assert words in markdown
    assert markdown.count("real, second draw") >= 4
    assert markdown.index("## Headline") < markdown.index("## all tasks: Ratio to the floor")


def test_figures_of_parts_lie_in_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gazediffusion.plotting.evaluation.FIGURES",
                        {"floor_ratios": FIGURES["floor_ratios"]})  # fmt: skip
    evaluation = Evaluation({"dots": make_results(), "reading": make_results()})
    paths = evaluation.save(tmp_path / "report")
    assert all(path.is_file() for path in paths)
    assert tmp_path / "report" / "figures" / "reading" / "floor_ratios.png" in paths
    sources = re.findall(r"\]\(([^)]+)\)", (tmp_path / "report" / "report.md").read_text())
    assert sources == ["figures/dots/floor_ratios.png", "figures/reading/floor_ratios.png"]


def test_the_headline_in_text_names_sets_warnings_and_intervals() -> None:
    text = Evaluation({ALL: make_results()}).headline()
    assert text.startswith("warning: position has 12 windows\nEach synthetic set is compared")
    assert "1.23 [0.987, 1.57]" in text
    assert "3 of 31 [1, 8]" in text
    assert "real, second draw" in text


def test_the_page_asks_for_nothing_from_outside(written: Path) -> None:
    page = (written / "report.html").read_text()
    assert "http://" not in page
    assert "https://" not in page
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(link.startswith(("#", "data:image/")) for link in links)
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page
    assert len(page) < 5_000_000


def test_the_results_come_back_from_json_in_their_order(written: Path) -> None:
    text = (written / "results.json").read_text()
    results = json.loads(text)["parts"][ALL]
    assert results == make_results()
    assert list(results["sets"]["synthetic"]) == ["position", "kinematic-markov"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.03123, "0.0312"),
        (2.5, "2.50"),
        (791, "791"),
        (1136.4, "1,136"),
        (999.7, "1,000"),
        (1.8e-4, "1.80e-4"),
        (-0.5, "-0.500"),
        (0.0, "0"),
        (None, "\u2013"),
        (Estimate(0.03, [0.02, 0.05], 2.5), "0.0300 \u00d72.50 [0.0200, 0.0500]"),
        (Estimate(None, None, None), "\u2013"),
    ],
)
def test_numbers_have_three_significant_digits(value: Any, text: str) -> None:
    assert as_text(value) == text


@pytest.mark.slow
def test_a_real_browser_opens_the_page_and_sorts_its_tables(written: Path, tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not Path(CHROMIUM).exists():
        pytest.skip("chromium is not installed")
    complaints: list[str] = []
    requests: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto((written / "report.html").as_uri())
        widths = page.eval_on_selector_all("img", "all => all.map(one => one.naturalWidth)")
        assert len(widths) == 10
        assert min(widths) > 0

        # Bars have their lengths, though the policy allows no style but the page's own.
        assert "unsafe-inline" not in page.content()
        track, reach = (
            page.locator(one).first.bounding_box()["width"] for one in (".track", ".track rect")
        )
        assert 0 < reach < track

        table = page.locator("table", has_text="JS divergence").first
        header = table.locator("th", has_text="position")

        def column() -> list[float]:
            cells = table.locator("tbody tr td:nth-child(4)")
            return [float(v) for v in cells.evaluate_all("all => all.map(c => c.dataset.sort)")]

        before, foot = column(), table.locator("tfoot").inner_text()
        assert header.get_attribute("aria-sort") == "none"
        header.locator("button").click()
        assert header.get_attribute("aria-sort") == "ascending"
        assert column() == sorted(before) != before
        header.locator("button").focus()
        page.keyboard.press("Enter")
        assert header.get_attribute("aria-sort") == "descending"
        assert column() == sorted(before, reverse=True)
        assert table.locator("tfoot").inner_text() == foot

        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.screenshot(path=tmp_path / f"report_{width}.png", full_page=True)
        browser.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
