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
from urllib.parse import urlsplit

import numpy as np
import polars as pl
import pytest

from gazediffusion.data.readers import read_recordings
from gazediffusion.data.recordings import Recording
from tests.browser import CHROMIUM, FLAGS
from tests.web.conftest import SCREENS

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
                if expected is None and "/api/generate/stream" not in request.url:
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


def drop(page: Page, files: list[Path], selector: str = "#compare-files") -> None:
    page.set_input_files(selector, [str(path) for path in files])


def recording_files(study: Path) -> list[Path]:
    return [study / "recordings.csv", study / "recordings.json"]


def test_windows_arrive_and_the_replay_moves_pauses_and_scrubs(open_page: OpenPage) -> None:
    page = open_page()
    assert page.inner_text("#nothing strong") == "No windows yet."
    assert page.locator("#play").is_disabled()
    generate(page, 3)
    assert re.fullmatch(r"3 windows in [\d.]+ s\.", page.inner_text("#status"))
    assert page.locator(".thumb").count() == 3
    assert page.get_attribute(".thumb >> nth=0", "aria-selected") == "true"
    assert "°/s" in page.inner_text("#facts")
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
    expected = {"px": pixels, "deg": screen.to_degrees(pixels)}
    page.locator("#traces .trace").first.wait_for()
    for unit, label in (("px", "x, px"), ("deg", "x, °")):
        page.select_option("#unit", unit)
        page.locator("#traces .annotation-text", has_text=label).wait_for()
        drawn = page.evaluate("document.querySelector('#traces').data.map(one => [...one.y])")
        np.testing.assert_allclose(drawn[:2], expected[unit], atol=0.01)


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
    page.wait_for_timeout(100)
    page.mouse.click(*at(0.5))
    assert seconds(page) == pytest.approx((first + last) / 2, abs=0.03)
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
    assert "not sent" in page.inner_text(".background .note")
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


def test_a_dropped_recording_is_compared_and_reported(open_page: OpenPage, study: Path) -> None:
    page = open_page()
    page.locator("#start:enabled").wait_for()
    page.click("#tab-compare")
    assert page.inner_text("#real-summary") == "No recording yet."
    assert page.locator("#evaluate").is_disabled()
    page.fill("#compare-n", "12")
    drop(page, recording_files(study))
    page.locator("#marginals .trace").first.wait_for()
    page.locator("#evaluate:enabled").wait_for()
    assert "3 participants" in page.inner_text("#real-summary")
    assert page.locator("#bars .bar:not(.scale)").count() == 7
    assert re.fullmatch(r"[\d.]+\N{MULTIPLICATION SIGN}", page.inner_text("#bars .overall b"))
    assert page.inner_text("#headline").startswith("Median ratio to the floor ")
    assert "compared with" in page.inner_text("#compare-notes")
    assert "Synthetic has 12 windows" in page.inner_text("#compare-notes")
    assert page.locator("#sequence .trace").count() >= 2
    assert page.locator("#marginals .xtitle, #marginals .annotation-text").count() == 9
    page.select_option("#family", "events")
    page.locator("#marginals .annotation-text", has_text="fixation duration").wait_for()
    with page.context.expect_page() as opened:
        page.click("#report")
    report = opened.value
    report.wait_for_url(re.compile("^blob:"))
    report.locator("h1").wait_for()
    header = report.locator("th button").first
    header.click()  # The report's own script works: the policies of both pages agree.
    assert report.locator("th[aria-sort=ascending]").count() == 1


def test_a_file_that_is_no_recording_is_refused_with_the_text_of_the_server(
    open_page: OpenPage, tmp_path: Path
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing of use\n")
    page = open_page(expected="422")
    page.locator("#start:enabled").wait_for()
    page.click("#tab-compare")
    drop(page, [path])
    page.locator("#compare-status.error").wait_for()
    assert "notes.txt" in page.inner_text("#compare-status")
    assert page.locator("#evaluate").is_disabled()


def test_the_blind_test_leads_from_its_explanation_to_its_score(
    open_page: OpenPage, study: Path
) -> None:
    page = open_page()
    page.locator("#start:enabled").wait_for()
    page.click("#tab-blind")
    assert "--real FILE" in page.inner_text("#blind-explain")
    assert page.locator("#blind-start").is_disabled()
    drop(page, recording_files(study), "#blind-files")
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


def unpacked(path: Path) -> Path:
    if path.suffix != ".zip":
        return path
    folder = path.with_suffix("")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return folder / "gaze"


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
        assert name.endswith(f"seed5.{format}" if format in ("parquet", "csv") else f"{format}.zip")
        path = tmp_path / name
        caught.value.save_as(path)
        path = unpacked(path)
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
    assert page.inner_text("#status") == "seed must be 0 or more, not -1"
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
    open_page: OpenPage, viewport: dict[str, int], tmp_path: Path
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
        page.screenshot(path=tmp_path / f"{name}.png", full_page=True)


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


def test_the_token_of_the_address_goes_with_every_request_in_a_header(
    open_page: OpenPage, servers: list[str]
) -> None:
    page = open_page(server=1)
    assert "token" not in page.url, "it has left the address bar"
    asked: list[Any] = []
    page.on("request", lambda one: asked.append(one))
    page.reload()
    generate(page, 1)
    page.click("#tab-blind")
    page.locator("#blind-start:enabled").wait_for()
    assert "recording given to the server" in page.inner_text("#blind-explain")
    page.click("#tab-compare")
    page.locator("#evaluate:enabled").wait_for()
    to_api = [one for one in asked if "/api/" in one.url]
    assert len(to_api) >= 2
    assert all(one.headers["authorization"] == f"Bearer {TOKEN}" for one in to_api)
    assert not any("token" in one.url for one in asked)

    bare = open_page(expected="401", url=servers[1].split("?")[0])
    bare.locator("#offline").wait_for()
    assert "token" in bare.inner_text("#offline p")
