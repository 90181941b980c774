"""The page in a browser, against a running server."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import polars as pl
import pytest

import gazediffusion as gd
from gazediffusion.data.readers import read_recordings
from gazediffusion.data.recordings import Recording
from gazediffusion.data.simulation import write_simulation
from gazediffusion.data.writers.card import read_card
from gazediffusion.settings import SimulationConfig
from gazediffusion.web.settings import Settings
from tests.browser import CHROMIUM, FLAGS
from tests.conftest import SCREEN
from tests.web.conftest import SCREENS, live_server

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = sync_api.expect
if not Path(CHROMIUM).exists():
    pytest.skip("chromium is not installed", allow_module_level=True)

DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
TABS = ("explore", "compare", "blind", "export")
TOKEN = "open sesame"
PATIENCE_MS = 90_000  # of a busy machine
Page = Any
OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def servers(run_folder: Path, study: Path) -> Iterator[list[str]]:
    """The page's address on a plain server, and on one with --real and a token."""
    command = [sys.executable, "-m", "gazediffusion", "serve", "--port", "0", "--no-open"]
    command += ["--model", str(run_folder)]
    extra: list[list[str]] = [[], ["--real", str(study), "--token", TOKEN]]
    with ExitStack() as stack:
        started = []
        for arguments in extra:
            process = subprocess.Popen(
                [*command, *arguments],
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "200"},
            )
            stack.callback(process.communicate)
            stack.callback(process.kill)
            started.append(process)
        urls = []
        for process in started:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None
            urls.append(found[0])
        yield urls


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(servers: list[str], browser: Any) -> Iterator[OpenPage]:
    """Open the page; at the end no error, failed request or request to another host is allowed.

    expected: a pattern of console lines that the test provokes.
    """
    problems: list[str] = []
    with ExitStack() as stack:

        def listen(page: Page, expected: str | None) -> None:
            def report(line: str) -> None:
                if expected is None or not re.search(expected, line):
                    problems.append(line)

            def failed(request: Any) -> None:
                # Chromium calls a stream aborted whose last bytes the page has read already;
                # that nothing is missing is stated by the windows that the tests count.
                if expected is None and not urlsplit(request.url).path.endswith("/stream"):
                    problems.append(f"failed: {request.url} {request.failure}")

            def sent(request: Any) -> None:
                local = ("blob:", "data:", "about:")
                if urlsplit(request.url).hostname != "127.0.0.1" and not request.url.startswith(
                    local
                ):
                    problems.append(f"to another host: {request.url}")

            page.on("console", lambda message: report(message.text))
            page.on("pageerror", lambda error: report(str(error)))
            page.on("requestfailed", failed)
            page.on("request", sent)

        def start(
            expected: str | None = None, server: int = 0, url: str | None = None, **options: Any
        ) -> Page:
            context = browser.new_context(**{"viewport": DESKTOP, **options})
            context.set_default_timeout(PATIENCE_MS)
            stack.callback(context.close)
            context.on("page", lambda page: listen(page, expected))
            page = context.new_page()
            page.goto(url or servers[server])
            return page

        yield start
    assert problems == []


def generate(page: Page, n: int = 3, seed: int = 0) -> None:
    page.locator("#start:enabled").wait_for()
    page.fill("#n", str(n))
    page.fill("#seed", str(seed))
    page.click("#start")
    page.locator(f".thumb.ready >> nth={n - 1}").wait_for()
    page.locator("#start:enabled").wait_for()


def picture(page: Page, selector: str = "#replay") -> str:
    text: str = page.locator(selector).evaluate("canvas => canvas.toDataURL()")
    return text


def seconds(page: Page) -> float:
    return float(page.inner_text("#time").split()[0])


def choose(page: Page, *files: Path) -> None:
    page.set_input_files("#files", [str(path) for path in files])


def recording_files(study: Path) -> list[Path]:
    return [study / "recordings.csv", study / "recordings.json"]


def with_tasks(study: Path, folder: Path, *tasks: str) -> list[Path]:
    """The same recordings with other tasks, one after the other by participant."""
    table = pl.read_csv(study / "recordings.csv", schema_overrides={"participant": pl.String})
    numbers = {name: k % len(tasks) for k, name in enumerate(table["participant"].unique().sort())}
    task = pl.col("participant").replace_strict({k: tasks[n] for k, n in numbers.items()})
    table.with_columns(task=task).write_csv(folder / "recordings.csv")
    (folder / "recordings.json").write_bytes((study / "recordings.json").read_bytes())
    return recording_files(folder)


def open_compare(page: Page, n: int = 25) -> None:
    """The tab to compare in, with as little work as possible."""
    page.locator("#start:enabled").wait_for()
    page.click("#tab-compare")
    page.fill("#compare-n", str(n))


def compare(page: Page) -> None:
    page.click("#evaluate:enabled")
    page.locator("#compare-results").wait_for()
    page.locator("#evaluate:enabled").wait_for()


def record_forms(page: Page) -> None:
    """Keep the fields of forms that the page fills, and the names of their files."""
    page.evaluate(
        """() => { window.sent = []; const append = FormData.prototype.append;
        FormData.prototype.append = function (name, value, path) {
          window.sent.push([name, path || value]);
          return append.call(this, name, value, ...(path ? [path] : [])); } }"""
    )


def filled(page: Page) -> list[list[str]]:
    """The fields of forms since the last call."""
    found: list[list[str]] = page.evaluate("window.sent.splice(0)")
    return found


@pytest.fixture(scope="module")
def long_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings that are long enough for a floor of 25 windows and more."""
    folder = tmp_path_factory.mktemp("long") / "study"
    config = SimulationConfig(
        n_participants=3, minutes=1.0, rate_hz=250, seed=9, screen=SCREEN, binocular=False
    )
    write_simulation(config, folder, "csv")
    return folder


def test_windows_arrive_and_the_replay_moves_pauses_and_scrubs(open_page: OpenPage) -> None:
    page = open_page()
    assert page.inner_text("#nothing strong") == "No windows yet."
    assert page.locator("#play").is_disabled()
    generate(page, 3)
    assert re.fullmatch(r"3 windows in [\d.]+ s\.", page.inner_text("#status"))
    assert page.locator(".thumb").count() == 3
    assert page.get_attribute(".thumb >> nth=0", "aria-selected") == "true"
    assert "deg/s" in page.inner_text("#facts")
    before = picture(page)
    page.wait_for_timeout(200)
    assert picture(page) != before

    page.click("#play")
    assert page.get_attribute("#play", "aria-label") == "Play"
    still = picture(page)
    page.wait_for_timeout(150)
    assert picture(page) == still
    page.fill("#scrub", "1200")
    assert seconds(page) == 1.2
    assert picture(page) != still
    scrubbed = picture(page)
    page.uncheck("#show-fixations")
    page.uncheck("#show-saccades")
    page.uncheck("#show-trail")
    assert picture(page) != scrubbed

    page.select_option("#speed", "0.25")
    page.click(".thumb >> nth=2")
    assert page.inner_text("#window-title") == "Window 3"
    page.wait_for_timeout(300)
    assert 0 < seconds(page) < 0.3


@pytest.mark.slow
def test_every_window_of_a_mixture_is_shown_on_its_own_screen(open_page: OpenPage) -> None:
    page = open_page()
    generate(page, 5, seed=1)
    shown = set()
    for number in range(5):
        page.click(f".thumb >> nth={number}")
        task = page.inner_text("#window-task")
        screen = SCREENS[task]
        shown.add(task)
        words = f"{screen.width_px}\N{MULTIPLICATION SIGN}{screen.height_px} px"
        assert page.inner_text("#window-screen").startswith(words)
        ratio = screen.width_px / screen.height_px
        for selector in ("#stage", f".thumb >> nth={number} >> canvas"):
            box = page.locator(selector).bounding_box()
            assert box["width"] / box["height"] == pytest.approx(ratio, rel=0.02)
    assert shown == set(SCREENS), "a mixture of both tasks"


def test_traces_are_in_pixels_and_degrees_of_the_window_s_screen(open_page: OpenPage) -> None:
    page = open_page()
    page.select_option("#task", "reading")
    generate(page, 1, seed=1)
    (window,) = page.evaluate(
        """fetch("api/generate", {method: "POST", body: '{"task": "reading", "n": 1, "seed": 1}',
           headers: {"Content-Type": "application/json"}})
           .then(response => response.json()).then(found => found.windows)"""
    )
    screen = SCREENS["reading"]
    pixels = screen.to_pixels(np.array([window["x"], window["y"]]))
    expected = {
        "px": pixels,
        "deg": screen.to_degrees(pixels),
        "norm": np.array([window["x"], window["y"]]),
    }
    page.locator("#traces .trace").first.wait_for()
    for unit, label in (
        ("px", "x, pixels"),
        ("deg", "x, degrees of visual angle"),
        ("norm", "x, normalized units"),
    ):
        page.select_option("#unit", unit)
        page.locator("#traces .annotation-text", has_text=label).wait_for()
        drawn = page.evaluate("document.querySelector('#traces').data.map(one => [...one.y])")
        np.testing.assert_allclose(drawn[:2], expected[unit], atol=0.01)


@pytest.mark.slow
def test_losses_are_asked_for_and_drawn_as_gaps(open_page: OpenPage, lossy_run: Path) -> None:
    plain = open_page()
    plain.locator("#start:enabled").wait_for()
    expect(plain.locator("#losses")).to_be_disabled()
    with live_server(Settings(model=str(lossy_run))) as url:
        page = open_page(url=url)
        page.select_option("#task", "reading")
        expected = gd.load(lossy_run).sample(6, task="reading", seed=4, losses=True, batch_size=1)
        lossy = int(np.argmax(expected.is_lost.sum(axis=1)))
        assert 0 < expected.is_lost[lossy].sum() < expected.length

        def drawn(n_lost: int) -> tuple[list[bool], str]:
            """Gaps in the trace of x of the window with most losses, and its thumbnail."""
            generate(page, 6, seed=4)
            page.click(f".thumb >> nth={lossy}")
            gaps = "[...(document.querySelector('#traces').data?.[0].y || [NaN])].map(Number.isNaN)"
            page.wait_for_function(f"n => {gaps}.filter(Boolean).length === n", arg=n_lost)
            return page.evaluate(gaps), picture(page, f".thumb >> nth={lossy} >> canvas")

        _, whole_picture = drawn(0)
        page.check("#losses")
        assert "The windows shown are of" in page.inner_text("#status")
        gaps, gaps_picture = drawn(int(expected.is_lost[lossy].sum()))
        assert gaps == expected.is_lost[lossy].tolist()
        assert gaps_picture != whole_picture
        facts = page.inner_text("#facts")
        assert "NaN" not in facts
        assert "deg/s" in facts
        page.click("#tab-export")
        assert " --losses" in page.inner_text("#command")


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.slow
def test_labels_are_drawn_with_a_legend_and_move_nothing(
    open_page: OpenPage, labelling_run: Path, viewport: dict[str, int]
) -> None:
    plain = open_page()
    plain.locator("#start:enabled").wait_for()
    expect(plain.locator("#labels")).to_be_disabled()
    assert plain.get_attribute("#labels-label", "title") == "This model has no labels."
    expected = gd.load(labelling_run).sample(2, task="dots", labels=True, batch_size=1)
    number = int(np.argmax([len(set(one)) for one in expected.cut_labels().tolist()]))
    events = expected.events(number, by_labels=True)
    assert {one.event for one in events} > {"fixation", "saccade"}
    with live_server(Settings(model=str(labelling_run))) as url:
        is_phone = viewport is PHONE
        page = open_page(url=url, viewport=viewport, has_touch=is_phone, is_mobile=is_phone)
        page.select_option("#task", "dots")

        def tops() -> list[float]:
            found: list[float] = page.evaluate(
                """["#classes", ".plot-box", "#facts", ".layers", ".background", "#gallery"].map(
                one => document.querySelector(one).getBoundingClientRect().top + scrollY)"""
            )
            return found

        def shapes() -> list[Any]:
            found: list[Any] = page.evaluate(
                """document.querySelector("#traces").layout.shapes.map(
                one => [one.type, one.fillcolor, one.x0, one.x1])"""
            )
            return found

        empty = tops()
        generate(page, 2)
        page.click(f".thumb >> nth={number}")
        page.locator("#traces .trace").first.wait_for()
        page.click("#play")
        assert tops() == pytest.approx(empty, abs=0.5)
        assert shapes()[-1][0] == "line", "the threshold of the detector"
        expect(page.locator("#classes .pursuit")).to_be_hidden()
        expect(page.locator("#show-pursuits")).to_be_disabled()
        page.check("#labels")
        assert "The windows shown are of" in page.inner_text("#status")
        generate(page, 2)
        page.click(f".thumb >> nth={number}")
        page.locator("#classes.labelled").wait_for()
        n_events = "document.querySelector('#traces').layout.shapes.length"
        page.wait_for_function(f"n => {n_events} === n", arg=len(events))
        assert tops() == pytest.approx(empty, abs=0.5)
        expect(page.locator("#classes .pursuit")).to_be_visible()
        expect(page.locator("#classes .noise")).to_be_visible()
        expect(page.locator("#show-pursuits")).to_be_enabled()
        legend: dict[str, str] = page.evaluate(
            """Object.fromEntries(["fixation", "saccade", "pursuit", "noise"].map(name =>
            [name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`)]))"""
        )
        assert len(set(legend.values())) == len(gd.EVENT_CLASSES)
        drawn = [
            ["rect", legend[one.event].strip(), one.onset_ms / 1000, one.offset_ms / 1000]
            for one in events
        ]
        assert shapes() == drawn
        classes = page.evaluate("document.querySelector('#traces').data[2].customdata")
        numbers = [1 + gd.EVENT_CLASSES.index(name) for name in classes]
        assert numbers == expected.cut_labels()[number].tolist()
        page.click("#tab-export")
        assert " --labels" in page.inner_text("#command")


def test_pursuits_are_a_layer_of_the_replay(open_page: OpenPage) -> None:
    page = open_page()
    strokes = page.evaluate(
        """import("./static/draw.js").then(({ drawPursuits }) => {
          const found = [];
          const context = { beginPath: () => found.push([]), stroke: () => null,
            moveTo: (...place) => found.at(-1).push(place),
            lineTo: (...place) => found.at(-1).push(place) };
          const gaze = { x: Float32Array.of(-1, -0.5, 0, 0.5, 1), y: new Float32Array(5), rate: 250,
            events: [{ kind: "fixation", onset_ms: 0, offset_ms: 4 },
                     { kind: "pursuit", onset_ms: 4, offset_ms: 12 }] };
          const surface = { context, width: 100, height: 100 };
          for (const time of [2, 8, 20]) drawPursuits(surface, gaze, 0, time, { green: "green" });
          return found;
        })"""
    )
    assert strokes == [[[25, 50], [50, 50]], [[25, 50], [50, 50], [75, 50]]]


@pytest.mark.slow
def test_zoom_of_the_traces_is_the_loop_of_the_replay(open_page: OpenPage) -> None:
    page = open_page()
    generate(page, 1)
    page.locator("#traces .nsewdrag").first.wait_for()
    page.click("#play")
    assert "Drag to zoom" in page.inner_text("#loop")
    area = page.locator("#traces .nsewdrag").first.bounding_box()

    def at(share: float) -> tuple[float, float]:
        return area["x"] + share * area["width"], area["y"] + area["height"] / 2

    page.mouse.move(*at(0.25))
    page.mouse.down()
    page.mouse.move(*at(0.6), steps=4)
    page.mouse.up()
    expect(page.locator("#loop")).to_contain_text("Looping")
    first, last = (float(one) for one in re.findall(r"[\d.]+(?= s)", page.inner_text("#loop")))
    assert first == pytest.approx(0.25 * 1.98, abs=0.05)
    assert last == pytest.approx(0.6 * 1.98, abs=0.05)
    page.select_option("#speed", "4")
    page.click("#play")
    times = []
    for _ in range(8):
        page.wait_for_timeout(60)
        times.append(seconds(page))
    assert min(times) >= first - 0.01
    assert max(times) <= last + 0.01
    assert len(set(times)) > 2
    page.click("#play")

    page.mouse.move(*at(0.5))
    page.locator("#traces .hovertext").first.wait_for()
    page.mouse.click(*at(0.5))
    page.wait_for_function(
        "at => Math.abs(parseFloat(document.querySelector('#time').textContent) - at) < 0.03",
        arg=(first + last) / 2,
        timeout=PATIENCE_MS,
    )
    cursor = page.locator("#cursor").bounding_box()
    assert cursor["x"] == pytest.approx(at(0.5)[0], abs=6)

    page.click("#zoom-all")
    assert "Drag to zoom" in page.inner_text("#loop")
    page.click("#zoom-in")
    assert "Looping" in page.inner_text("#loop")


def test_a_background_image_is_shown_and_not_sent(open_page: OpenPage, tmp_path: Path) -> None:
    path = tmp_path / "scene.png"
    path.write_bytes(red_png())
    page = open_page()
    page.locator("#start:enabled").wait_for()
    requests: list[str] = []
    page.on("request", lambda one: requests.append(one.url))
    before = picture(page)
    page.set_input_files("#background", str(path))
    page.locator("#background-off").wait_for()
    assert picture(page) != before
    note = page.inner_text(".background .note")
    assert note.startswith("The gaze does not follow this picture")
    assert "not sent" in note
    page.click("#background-off")
    assert picture(page) == before
    assert [url for url in requests if not url.startswith("blob:")] == []


def red_png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = b"".join(b"\0" + b"\xc0\x20\x20" * 16 for _ in range(9))
    header = struct.pack(">IIBBBBB", 16, 9, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


@pytest.mark.slow
def test_a_recording_is_compared_with_a_named_floor_and_an_interval(
    open_page: OpenPage, long_study: Path
) -> None:
    page = open_page()
    open_compare(page)
    assert page.inner_text("#real-summary") == "No recording yet."
    assert page.locator("#evaluate").is_disabled()
    choose(page, *recording_files(long_study))
    page.locator("#evaluate:enabled").wait_for()
    assert "3 participants" in page.inner_text("#real-summary")
    assert page.locator("#task-ask").is_hidden(), "free_viewing is the model's free viewing"
    compare(page)
    page.locator("#marginals .trace").first.wait_for()
    assert page.locator("#bars .bar:not(.scale)").count() == 7
    assert page.locator("#bars .range").count() == 1
    assert re.fullmatch(r"[\d.]+\N{MULTIPLICATION SIGN}", page.inner_text("#bars .overall b"))
    interval = r"\(95 % interval [\d.]+ to [\d.]+\)"
    assert re.match(
        rf"Median ratio to the floor [\d.]+ {interval}, with 25 windows per set; ",
        page.inner_text("#headline"),
    )
    floor = "two groups of gap-free segments of 3 participants"
    assert floor in page.inner_text("#floor")
    assert "113 recorded windows of 3 participants and 25 synthetic windows" in page.inner_text(
        "#compare-notes"
    )
    assert "tasks do not match" not in page.inner_text("#compare-notes")
    assert page.locator("#sequence .trace").count() >= 2
    words = page.locator("#marginals .annotation-text").all_text_contents()
    assert "normalized units per sample" in words
    page.select_option("#family", "degrees")
    page.locator("#marginals .annotation-text", has_text="degrees of visual angle").wait_for()
    page.select_option("#family", "velocity")
    page.locator(
        "#marginals .annotation-text", has_text="normalized units per second"
    ).first.wait_for()

    sent: list[str] = []
    page.on("request", lambda one: sent.append(urlsplit(one.url).path))
    record_forms(page)
    with page.context.expect_page() as opened:
        page.click("#report")
    report = opened.value
    report.wait_for_url(re.compile("^blob:"))
    report.locator("h1").wait_for()
    assert floor in report.inner_text("body")
    header = report.locator("th button").first
    header.click()  # The report's own script works: the policies of both pages agree.
    assert report.locator("th[aria-sort=ascending]").count() == 1
    assert [one for one in sent if "/api/" in one] == ["/api/report/stream"]
    ((field, _),) = filled(page)
    assert field == "comparison", "the one in view, neither read nor generated again"

    page.fill("#compare-n", "26")
    assert page.locator("#compare-results").is_hidden(), "results of other settings are cleared"
    assert page.locator("#evaluate").is_enabled()
    assert "113 windows" in page.inner_text("#real-summary"), "the recording is still there"
    choose(page, *recording_files(long_study))
    page.locator("#evaluate:disabled").wait_for()


@pytest.mark.slow
def test_few_windows_get_no_ratio_and_fewer_are_refused(open_page: OpenPage, study: Path) -> None:
    page = open_page()
    open_compare(page, 6)
    choose(page, *recording_files(study))
    page.click("#evaluate:enabled")
    expect(page.locator("#compare-status")).to_have_text(
        "“Synthetic windows” must be 25 or more for a comparison, not 6"
    )
    page.fill("#compare-n", "25")
    assert page.inner_text("#compare-status") == ""
    compare(page)
    assert page.inner_text("#headline").startswith("No ratio to the floor: the recording cannot be")
    assert page.locator("#bars").is_hidden()
    page.locator("#marginals .trace").first.wait_for()

    page.go_back()
    page.fill("#seed", "3")
    page.click("#tab-compare")
    assert page.locator("#compare-results").is_hidden(), "results of another seed are cleared"
    assert page.locator("#evaluate").is_enabled()


@pytest.mark.slow
def test_an_unknown_task_is_asked_for_in_both_tabs(
    open_page: OpenPage, study: Path, tmp_path: Path
) -> None:
    page = open_page()
    open_compare(page)
    choose(page, *with_tasks(study, tmp_path, "searching"))
    page.locator("#task-ask").wait_for()
    assert "This model has no task searching." in page.inner_text("#task-ask span")
    assert page.locator("#evaluate").is_disabled()
    page.click("#tab-blind")
    assert page.locator("#blind #task-ask").is_visible()
    assert page.locator("#blind-start").is_disabled()
    page.select_option("#recorded-task", "reading")
    with page.expect_request("**/api/generate/stream*") as asked:
        page.click("#blind-start:enabled")
    assert "task=reading" in asked.value.url
    expect(page.locator("#blind-round")).to_contain_text("Pair 1 of 20")
    page.click("#tab-compare")
    assert page.input_value("#recorded-task") == "reading"
    compare(page)
    assert "tasks do not match" not in page.inner_text("#compare-notes")
    page.select_option("#recorded-task", "free viewing")
    assert page.locator("#compare-results").is_hidden()
    page.click("#tab-blind")
    assert page.locator("#blind-test").is_hidden(), "the test of another task is over"


def test_pairs_of_the_blind_test_are_of_the_recorded_tasks(
    open_page: OpenPage, study: Path, tmp_path: Path
) -> None:
    page = open_page()
    page.locator("#start:enabled").wait_for()
    page.click("#tab-blind")
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    with page.expect_response("**/api/real") as answer:
        choose(page, *with_tasks(study, tmp_path, "free_viewing", "Reading"))
    assert answer.value.json()["model_tasks"] == {
        "free_viewing": "free viewing",
        "Reading": "reading",
    }
    page.click("#blind-start:enabled")
    for number in range(20):
        expect(page.locator("#blind-round")).to_have_text(f"Pair {number + 1} of 20")
        page.keyboard.press("ArrowLeft")
    streams = [parse_qs(urlsplit(url).query) for url in asked if "generate/stream" in url]
    assert {one["task"][0] for one in streams} == {"free viewing", "reading"}
    assert sum(int(one["n"][0]) for one in streams) == 20


def test_a_recording_without_a_screen_is_completed_in_the_form(
    open_page: OpenPage, study: Path
) -> None:
    page = open_page(expected="422")
    page.locator("#start:enabled").wait_for()
    page.click("#tab-blind")
    choose(page, study / "recordings.csv")
    page.locator("#recording-status.error").wait_for()
    assert "“Screen, pixels”" in page.inner_text("#recording-status")
    assert "`" not in page.inner_text("#recording-status")
    assert page.evaluate("document.activeElement.name") == "screen"
    page.fill("[name=screen]", "big")
    page.keyboard.press("Enter")
    expect(page.locator("#recording-status")).to_contain_text("must look like 1280x720, not 'big'")
    page.fill("[name=screen]", "1280x720")
    page.select_option("[name=unit]", "px")
    page.select_option("[name=origin]", "top-left")
    record_forms(page)
    page.click("#read-again")
    page.locator("#blind-start:enabled").wait_for()
    assert "58 windows" in page.inner_text("#real-summary")
    fields = {"screen": "1280x720", "unit": "px", "origin": "top-left", "files": "recordings.csv"}
    assert fields.items() <= dict(filled(page)).items(), "the chosen file was kept"
    page.click("#tab-compare")
    assert page.locator("#evaluate").is_enabled()
    page.click("#about-recording summary")
    page.fill("[name=distance_cm]", "60")
    page.keyboard.press("Tab")
    assert page.locator("#evaluate").is_disabled(), "the windows were read with another distance"


def folder_of(study: Path, folder: Path) -> Path:
    for name in ("p1", "p2"):
        (folder / "lab" / name).mkdir(parents=True)
        for path in recording_files(study):
            (folder / "lab" / name / path.name).write_bytes(path.read_bytes())
    (folder / "lab" / ".hidden").write_text("not sent")
    return folder / "lab"


@pytest.mark.parametrize("way", ["chosen", "dropped"])
def test_a_folder_keeps_its_paths(
    open_page: OpenPage, study: Path, tmp_path: Path, way: str
) -> None:
    folder = folder_of(study, tmp_path)
    page = open_page()
    page.locator("#start:enabled").wait_for()
    page.click("#tab-compare")
    record_forms(page)
    if way == "chosen":
        page.set_input_files("#folder", str(folder))
    else:
        drop_from_the_desktop(page, folder)
    page.locator("#evaluate:enabled").wait_for()
    assert sorted(path for name, path in filled(page) if name == "files") == [
        f"lab/{name}/recordings.{ending}" for name in ("p1", "p2") for ending in ("csv", "json")
    ]
    assert page.inner_text("#real-summary").startswith("4 files: 116 windows")


def drop_from_the_desktop(page: Page, path: Path) -> None:
    box = page.locator("#drop").bounding_box()
    devtools = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
        place = {"x": box["x"] + 20, "y": box["y"] + 20}
        devtools.send("Input.dispatchDragEvent", {"type": kind, "data": data, **place})


def test_a_comparison_is_cancelled(open_page: OpenPage, study: Path) -> None:
    page = open_page(expected="^$")
    open_compare(page, 400)
    choose(page, *recording_files(study))
    page.click("#evaluate:enabled")
    expect(page.locator("#compare-status")).to_contain_text(re.compile(r"Generating: \d+ of 400"))
    assert 0 < float(page.locator("#compare-progress").evaluate("bar => bar.value")) < 1
    page.click("#compare-cancel")
    expect(page.locator("#compare-status")).to_have_text("Cancelled.")
    assert page.locator("#compare-cancel").is_hidden()
    assert page.locator("#compare-results").is_hidden()
    page.locator("#evaluate:enabled").wait_for()


def test_the_address_names_the_tab_and_back_and_forward_move(
    open_page: OpenPage, servers: list[str]
) -> None:
    page = open_page(url=f"{servers[0]}#blind")
    assert page.locator("#blind").is_visible()
    assert page.title().startswith("Blind test")
    page.locator("#start:enabled").wait_for(state="attached")
    assert page.locator("#blind").is_visible(), "also when the server has responded"
    page.click("#tab-compare")
    page.click("#tab-explore")
    assert "#" not in page.url
    page.go_back()
    assert page.locator("#compare").is_visible()
    assert page.url.endswith("#compare")
    page.go_back()
    assert page.locator("#blind").is_visible()
    page.go_forward()
    assert page.locator("#compare").is_visible()
    page.evaluate("location.hash = '#export'")
    page.locator("#export").wait_for()
    page.evaluate("location.hash = '#generate'")
    page.locator("#explore").wait_for()
    page.evaluate("location.hash = '#main'")
    assert page.locator("#explore").is_visible()


def test_a_file_that_is_no_recording_is_refused_with_the_text_of_the_server(
    open_page: OpenPage, tmp_path: Path
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing of use\n")
    page = open_page(expected="422")
    page.locator("#start:enabled").wait_for()
    page.click("#tab-compare")
    choose(page, path)
    page.locator("#recording-status.error").wait_for()
    assert page.inner_text("#recording-status").startswith("notes.txt")
    assert page.locator("#evaluate").is_disabled()


def test_the_blind_test_leads_from_its_explanation_to_its_score(
    open_page: OpenPage, study: Path
) -> None:
    page = open_page()
    page.locator("#start:enabled").wait_for()
    page.click("#tab-blind")
    assert "--real FILE" in page.inner_text("#blind-explain")
    assert page.locator("#blind-start").is_disabled()
    choose(page, *recording_files(study))
    page.click("#blind-start:enabled")
    page.locator("#blind-test").wait_for()
    for number in range(20):
        expect(page.locator("#blind-round")).to_have_text(f"Pair {number + 1} of 20")
        if number == 0:
            before = [picture(page, f"#choose-{side} canvas") for side in ("left", "right")]
            page.wait_for_timeout(150)
            after = [picture(page, f"#choose-{side} canvas") for side in ("left", "right")]
            assert before[0] != after[0]
            assert before[1] != after[1]
            assert page.inner_text("#choose-left .tag") == ""
        page.keyboard.press("ArrowLeft" if number % 2 else "ArrowRight")
    page.locator("#blind-score").wait_for()
    right, total = map(int, page.inner_text("#score").split(" of "))
    assert total == 20
    assert re.search(
        r"95 % interval of that share is \d+ % to \d+ %", page.inner_text("#score-note")
    )
    assert page.locator(".mistake").count() == 20 - right
    page.locator(".mistake").last.click()
    assert page.locator(".mistake").last.get_attribute("aria-pressed") == "true"
    tags = {page.inner_text(f"#choose-{side} .tag") for side in ("left", "right")}
    assert tags == {"real", "synthetic"}
    page.click("#again")
    expect(page.locator("#blind-round")).to_contain_text("Pair 1 of 20")


def test_statistics_are_those_of_scipy(open_page: OpenPage) -> None:
    from scipy.stats import binomtest

    page = open_page()
    found = page.evaluate(
        "import('./static/statistics.js').then(({binomialInterval}) =>"
        " [[0, 20], [9, 20], [16, 20], [20, 20], [3, 7]].map(([k, n]) => binomialInterval(k, n)))"
    )
    for (k, n), interval in zip([(0, 20), (9, 20), (16, 20), (20, 20), (3, 7)], found, strict=True):
        expected = binomtest(k, n).proportion_ci(0.95, "exact")
        assert interval == pytest.approx([expected.low, expected.high], abs=1e-6)


def unpacked(path: Path, format: str) -> Path:
    if path.suffix != ".zip":
        return path
    folder = path.with_suffix("")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return folder / ("gaze.csv" if format == "csv" else "gaze")


def read_with_pymovements(path: Path, format: str) -> list[list[float]]:
    """All positions in pixels, as pymovements holds them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pymovements as pm

        columns = {"time_column": "t_ms", "time_unit": "ms", "pixel_columns": ["x_px", "y_px"]}
        if format == "parquet":
            tables = [pm.Gaze(pl.read_parquet(path), **columns)]
        elif format == "csv":
            tables = [pm.gaze.from_csv(path, **columns)]
        elif format == "asc":
            tables = [pm.gaze.from_asc(one) for one in sorted(path.rglob("*.asc"))]
        else:
            tables = [read_bids(one) for one in sorted(path.rglob("*_physio.tsv.gz"))]
        return [pixel for table in tables for pixel in table.samples["pixel"].to_list()]


def read_bids(path: Path) -> Any:
    import pymovements as pm

    names = json.loads(Path(str(path).replace(".tsv.gz", ".json")).read_text())["Columns"]
    return pm.gaze.from_csv(
        path,
        pixel_columns=["x_coordinate", "y_coordinate"],
        read_csv_kwargs={"separator": "\t", "has_header": False, "new_columns": names},
    )


def test_every_download_has_the_shown_windows_and_is_read_back(
    open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(accept_downloads=True)
    page.locator("#start:enabled").wait_for()
    page.click("#tab-export")
    page.click("#export-empty button")
    page.select_option("#task", "reading")
    generate(page, 2, seed=5)
    model = page.input_value("#model")
    page.click("#tab-export")
    fields = {"model": model, "task": "reading", "n": 2, "seed": 5, "format": "json"}
    generated = page.evaluate(
        """body => fetch("api/generate", {method: "POST", body: JSON.stringify(body),
           headers: {"Content-Type": "application/json"}}).then(answer => answer.json())""",
        fields,
    )
    expected = np.array([[one["x"], one["y"]] for one in generated["windows"]])
    for format in ("parquet", "csv", "bids", "asc"):
        with page.expect_download() as caught:
            page.click(f"[data-format={format}]")
        name = caught.value.suggested_filename
        assert name.endswith("seed5.parquet" if format == "parquet" else f"seed5.{format}.zip")
        path = tmp_path / name
        caught.value.save_as(path)
        path = unpacked(path, format)
        card = read_card(path)
        assert card is not None
        assert (card["synthetic"], card["seed"]) == (True, 5)
        found = [normalized(one, generated["card"]) for one in read_recordings([path])]
        np.testing.assert_allclose(found, expected, atol=2e-4)
        theirs = read_with_pymovements(path, format)
        assert len(theirs) == expected.shape[0] * expected.shape[2]
        np.testing.assert_allclose(to_normalized(np.array(theirs).T, generated["card"]),
                                   np.concatenate(list(expected), axis=1), atol=2e-4)  # fmt: skip
        page.locator("#formats button:enabled").first.wait_for()
        assert page.inner_text("#export-status").startswith(f"Saved {name}")


def to_normalized(gaze_px: np.ndarray[Any, Any], card: dict[str, Any]) -> np.ndarray[Any, Any]:
    size = np.array([[card["screen"]["width_px"]], [card["screen"]["height_px"]]])
    return np.asarray(gaze_px * 2 / size - 1)


def normalized(recording: Recording, card: dict[str, Any]) -> np.ndarray[Any, Any]:
    (gaze,) = recording.gaze_px.values()
    return to_normalized(gaze, card)


def test_copy_buttons_copy_the_command_and_the_program(open_page: OpenPage) -> None:
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    generate(page, 1, seed=11)
    page.click("#tab-export")
    for name, start in (
        ("command", "gazediffusion generate"),
        ("python", "import gazediffusion as gd"),
    ):
        page.click(f"[data-copy={name}]")
        page.locator(f"[data-copy={name}]", has_text="Copied").wait_for()
        text = page.evaluate("navigator.clipboard.readText()")
        assert text == page.locator(f"#{name}").text_content()
        assert text.startswith(start)
        assert "seed" in text
        assert "11" in text


def test_an_invalid_value_shows_the_error_of_the_server_and_keeps_the_windows(
    open_page: OpenPage,
) -> None:
    page = open_page(expected="422")
    generate(page, 2)
    page.fill("#seed", "-1")
    page.click("#start")
    page.locator("#status.error").wait_for()
    assert page.inner_text("#status") == "“Seed” must be 0 or more, not -1"
    assert page.locator(".thumb.ready").count() == 2
    assert page.locator("#start").is_enabled()
    page.click("#dice")
    assert int(page.input_value("#seed")) >= 0
    generate(page, 1, seed=4)
    assert "error" not in (page.get_attribute("#status", "class") or "")


def test_a_long_job_is_cancelled(open_page: OpenPage) -> None:
    page = open_page()
    page.locator("#start:enabled").wait_for()
    page.fill("#n", "400")
    page.click("#start")
    page.locator(".thumb.ready").first.wait_for()
    assert page.locator(".thumb").count() == 400
    page.click("#cancel")
    expect(page.locator("#status")).to_contain_text("Cancelled")
    assert 0 < page.locator(".thumb").count() < 400
    generate(page, 1)


def test_everything_can_be_done_with_the_keyboard(open_page: OpenPage) -> None:
    page = open_page()
    page.locator("#start:enabled").wait_for()

    def focus() -> str:
        name: str = page.evaluate("document.activeElement.id")
        return name

    def tab_to(name: str) -> None:
        for _ in range(40):
            if focus() == name:
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {name}")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    tab_to("start")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    page.locator(".thumb.ready >> nth=5").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "option"
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#window-title") == "Window 2"
    tab_to("replay")
    page.keyboard.press("Space")
    assert page.get_attribute("#play", "aria-label") == "Play"
    page.keyboard.press("Home")
    assert seconds(page) == 0
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert seconds(page) == 0.2
    page.keyboard.press("Shift+ArrowLeft")
    assert seconds(page) == 0.19
    page.keyboard.press("Space")
    assert page.get_attribute("#play", "aria-label") == "Pause"
    tab_to("zoom-in")
    page.keyboard.press("Enter")
    assert "Looping" in page.inner_text("#loop")
    page.focus("#tab-explore")
    for name in (*TABS[1:], TABS[0]):
        page.keyboard.press("ArrowRight")
        assert focus() == f"tab-{name}"
        assert page.locator(f"#{name}").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.slow
def test_colours_follow_the_system_until_the_button_is_used(
    open_page: OpenPage, scheme: str
) -> None:
    page = open_page(color_scheme=scheme)
    generate(page, 1)

    def brightness() -> int:
        value = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", value)[:3]))

    page.locator("#traces .trace").first.wait_for()
    before, shown = brightness(), picture(page)
    assert (before > 600) == (scheme == "light")
    page.click("#theme")
    assert (brightness() > 600) == (scheme == "dark")
    assert picture(page) != shown
    page.reload()
    assert (brightness() > 600) == (scheme == "dark")


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_nothing_jumps_and_nothing_is_wider_than_the_screen(
    open_page: OpenPage, viewport: dict[str, int]
) -> None:
    is_phone = viewport is PHONE
    page = open_page(viewport=viewport, has_touch=is_phone, is_mobile=is_phone)
    page.evaluate(
        "window.shift = 0; new PerformanceObserver(list => list.getEntries().forEach(entry =>"
        " { window.shift += entry.value; })).observe({type: 'layout-shift', buffered: true})"
    )
    generate(page, 6)
    page.locator("#traces .trace").first.wait_for()
    assert page.evaluate("window.shift") < 0.02
    for name in TABS:
        page.click(f"#tab-{name}")
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


@pytest.mark.slow
def test_reduced_motion_is_respected(open_page: OpenPage) -> None:
    page = open_page(reduced_motion="reduce")
    generate(page, 1)
    assert page.get_attribute("#play", "aria-label") == "Play"
    before = picture(page)
    page.wait_for_timeout(200)
    assert picture(page) == before
    page.click("#play")
    page.wait_for_timeout(200)
    assert picture(page) != before


def test_a_lost_connection_is_reported_and_restored(open_page: OpenPage) -> None:
    page = open_page(expected="ERR_|Failed to load")
    page.locator("#start:enabled").wait_for()
    page.context.set_offline(True)
    page.click("#start")
    page.locator("#status.error").wait_for()
    assert "gazediffusion serve" in page.inner_text("#status")
    page.route("**/api/models", lambda route: route.abort())
    page.context.set_offline(False)
    page.reload()
    page.locator("#offline").wait_for()
    assert "does not respond" in page.inner_text("#offline p")
    page.unroute("**/api/models")
    page.click("#retry")
    page.locator("#offline").wait_for(state="hidden")
    generate(page, 1)


@pytest.mark.slow
def test_the_token_of_the_address_goes_with_every_request_in_a_header(
    open_page: OpenPage, servers: list[str]
) -> None:
    page = open_page(server=1)
    page.locator("#start:enabled").wait_for()
    assert "token" not in page.url, "it has left the address bar"
    asked: list[Any] = []
    page.on("request", lambda one: asked.append(one))
    page.reload()
    generate(page, 1)
    page.click("#tab-blind")
    page.locator("#blind-start:enabled").wait_for()
    assert "recording given to the server" in page.inner_text("#real-summary")
    page.click("#tab-compare")
    page.locator("#evaluate:enabled").wait_for()
    to_api = [one for one in asked if "/api/" in one.url]
    assert len(to_api) >= 2
    assert all(one.headers["authorization"] == f"Bearer {TOKEN}" for one in to_api)
    assert not any("token" in one.url for one in asked)

    bare = open_page(expected="401", url=servers[1].split("?")[0])
    bare.locator("#offline").wait_for()
    assert "token" in bare.inner_text("#offline p")
