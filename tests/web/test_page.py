"""The page in a browser, against a running server: one walk for each tab, and slow details."""

from __future__ import annotations

import re
import struct
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
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def opened(browser: Any, url: str) -> Iterator[tuple[OpenPage, list[str]]]:
    """Opens pages; and what went wrong in them: errors, failed requests, requests elsewhere."""
    problems: list[str] = []

    def listen(page: Page) -> None:
        def failed(request: Any) -> None:
            # Chromium calls a stream aborted whose last bytes the page has read already;
            # that nothing is missing is stated by the windows that the tests count.
            if not urlsplit(request.url).path.endswith("/stream"):
                problems.append(f"failed: {request.url} {request.failure}")

        def sent(request: Any) -> None:
            is_local = request.url.startswith(("blob:", "data:", "about:"))
            if urlsplit(request.url).hostname != "127.0.0.1" and not is_local:
                problems.append(f"to another host: {request.url}")

        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("requestfailed", failed)
        page.on("request", sent)

    with ExitStack() as stack:

        def start(address: str | None = None, *, is_ready: bool = True, **options: Any) -> Page:
            context = browser.new_context(**{"viewport": DESKTOP, **options})
            context.set_default_timeout(PATIENCE_MS)
            stack.callback(context.close)
            context.on("page", listen)
            page = context.new_page()
            page.goto(address or url)
            if is_ready:
                page.locator("#start:enabled").wait_for()
            return page

        yield start, problems


@pytest.fixture(scope="module")
def only_page(opened: tuple[OpenPage, list[str]]) -> Page:
    page = opened[0](permissions=["clipboard-read", "clipboard-write"], accept_downloads=True)
    page.evaluate(
        "window.shift = 0; new PerformanceObserver(list => list.getEntries().forEach(entry =>"
        " { window.shift += entry.value; })).observe({type: 'layout-shift', buffered: true})"
    )
    return page


@pytest.fixture
def expected() -> list[str]:
    """Patterns of problems that a test provokes."""
    return []


@pytest.fixture
def page(only_page: Page, opened: Any, expected: list[str]) -> Iterator[Page]:
    """The page of all walks; nothing may go wrong in it."""
    yield only_page
    require_no(opened[1], expected)


@pytest.fixture
def open_page(opened: Any, expected: list[str]) -> Iterator[OpenPage]:
    """Opens further pages; nothing may go wrong in them."""
    yield opened[0]
    require_no(opened[1], expected)


def require_no(problems: list[str], expected: list[str]) -> None:
    found, problems[:] = list(problems), []
    assert [one for one in found if not any(re.search(each, one) for each in expected)] == []


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


def json_of(page: Page, **fields: Any) -> Any:
    """The response of /api/generate."""
    return page.evaluate(
        """body => fetch("api/generate", {method: "POST", body: JSON.stringify(body),
           headers: {"Content-Type": "application/json"}}).then(answer => answer.json())""",
        fields,
    )


def red_png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = b"".join(b"\0" + b"\xc0\x20\x20" * 16 for _ in range(9))
    header = struct.pack(">IIBBBBB", 16, 9, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def test_explore(page: Page, tmp_path: Path, expected: list[str]) -> None:
    """Windows arrive; the replay moves, pauses and scrubs; traces are in every unit."""
    assert page.inner_text("#nothing strong") == "No windows yet."
    page.select_option("#task", "reading")
    generate(page, 2, seed=1)
    assert page.evaluate("window.shift") < 0.02, "nothing jumps"
    assert re.fullmatch(r"2 windows in [\d.]+ s\.", page.inner_text("#status"))
    assert "deg/s" in page.inner_text("#facts")
    before = picture(page)
    page.wait_for_timeout(150)
    assert picture(page) != before
    page.click("#play")
    still = picture(page)
    page.wait_for_timeout(100)
    assert picture(page) == still
    page.fill("#scrub", "1200")
    assert seconds(page) == 1.2
    scrubbed = picture(page)
    for layer in ("fixations", "saccades", "trail"):
        page.uncheck(f"#show-{layer}")
    assert picture(page) != scrubbed

    (window,) = json_of(page, task="reading", n=1, seed=1)["windows"]
    gaze = np.array([window["x"], window["y"]])
    pixels = SCREENS["reading"].to_pixels(gaze)
    shown = {"pixels": pixels, "degrees of visual angle": SCREENS["reading"].to_degrees(pixels)}
    page.locator("#traces .trace").first.wait_for()
    for unit, label in (("px", "pixels"), ("deg", "degrees of visual angle")):
        page.select_option("#unit", unit)
        page.locator("#traces .annotation-text", has_text=f"x, {label}").wait_for()
        drawn = page.evaluate("document.querySelector('#traces').data.map(one => [...one.y])")
        np.testing.assert_allclose(drawn[:2], shown[label], atol=0.01)
    page.click(".thumb >> nth=1")
    assert page.inner_text("#window-title") == "Window 2"

    # A picture behind the gaze is shown and not sent.
    (tmp_path / "scene.png").write_bytes(red_png())
    page.click("#play")
    requests: list[str] = []
    page.on("request", lambda one: requests.append(one.url))
    before = picture(page)
    page.set_input_files("#background", str(tmp_path / "scene.png"))
    page.locator("#background-off").wait_for()
    assert picture(page) != before
    assert "not sent" in page.inner_text(".background .note")
    page.click("#background-off")
    assert [url for url in requests if not url.startswith("blob:")] == []

    # An invalid value shows the error of the server and keeps the windows.
    expected.append("422")
    page.fill("#seed", "-1")
    page.click("#start")
    page.locator("#status.error").wait_for()
    assert page.inner_text("#status") == "“Seed” must be 0 or more, not -1"
    assert page.locator(".thumb.ready").count() == 2
    # A long job is cancelled.
    page.fill("#seed", "0")
    page.fill("#n", "400")
    page.click("#start")
    expect(page.locator(".thumb")).to_have_count(400)
    page.locator(".thumb.ready").first.wait_for()
    page.click("#cancel")
    expect(page.locator("#status")).to_contain_text("Cancelled")
    assert 0 < page.locator(".thumb").count() < 400


def test_compare(page: Page, study: Path, tmp_path: Path, expected: list[str]) -> None:
    """Recordings are refused, completed in the form, read with their paths, compared, cancelled."""
    expected.append("422")
    page.click("#tab-compare")
    assert page.url.endswith("#compare")
    assert page.inner_text("#real-summary") == "No recording yet."
    (tmp_path / "notes.txt").write_text("nothing of use\n")
    choose(page, tmp_path / "notes.txt")
    page.locator("#recording-status.error").wait_for()
    assert page.inner_text("#recording-status").startswith("notes.txt")
    assert page.locator("#evaluate").is_disabled()

    choose(page, study / "recordings.csv")
    expect(page.locator("#recording-status")).to_contain_text("“Screen, pixels”")
    assert page.evaluate("document.activeElement.name") == "screen"
    page.fill("[name=screen]", "big")
    page.keyboard.press("Enter")
    expect(page.locator("#recording-status")).to_contain_text("must look like 1280x720, not 'big'")
    page.fill("[name=screen]", "1280x720")
    page.select_option("[name=unit]", "px")
    page.select_option("[name=origin]", "top-left")
    record_forms(page)
    page.click("#read-again")
    page.locator("#evaluate:enabled").wait_for()
    fields = {"screen": "1280x720", "unit": "px", "origin": "top-left", "files": "recordings.csv"}
    assert fields.items() <= dict(filled(page)).items(), "the chosen file was kept"

    folder = tmp_path / "lab"
    for path in recording_files(study):
        for name in ("p1", "p2"):
            (folder / name).mkdir(parents=True, exist_ok=True)
            (folder / name / path.name).write_bytes(path.read_bytes())
    (folder / ".hidden").write_text("not sent")
    page.set_input_files("#folder", str(folder))
    page.locator("#evaluate:enabled").wait_for()
    expect(page.locator("#real-summary")).to_contain_text("4 files: ")
    assert sorted(path for name, path in filled(page) if name == "files") == [
        f"lab/{name}/recordings.{ending}" for name in ("p1", "p2") for ending in ("csv", "json")
    ]

    page.fill("#compare-n", "6")
    page.click("#evaluate:enabled")
    expect(page.locator("#compare-status")).to_have_text(
        "“Synthetic windows” must be 25 or more for a comparison, not 6"
    )
    page.fill("#compare-n", "400")
    page.click("#evaluate:enabled")
    expect(page.locator("#compare-status")).to_contain_text(re.compile(r"Generating: \d+ of 400"))
    page.click("#compare-cancel")
    expect(page.locator("#compare-status")).to_have_text("Cancelled.")
    assert page.locator("#compare-results").is_hidden()


def test_blind(page: Page, study: Path, tmp_path: Path) -> None:
    """The blind test leads from its explanation to its score, with pairs of the recorded tasks."""
    page.click("#tab-blind")
    assert "20 pairs" in page.inner_text("#blind-explain")
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    with page.expect_response("**/api/real") as answer:
        choose(page, *with_tasks(study, tmp_path, "free_viewing", "Reading"))
    found = {"free_viewing": "free viewing", "Reading": "reading"}
    assert answer.value.json()["model_tasks"] == found
    page.click("#blind-start:enabled")
    for number in range(20):
        expect(page.locator("#blind-round")).to_have_text(f"Pair {number + 1} of 20")
        if number == 0:
            assert page.inner_text("#choose-left .tag") == ""
        page.keyboard.press("ArrowLeft" if number % 2 else "ArrowRight")
    page.locator("#blind-score").wait_for()
    right, total = map(int, page.inner_text("#score").split(" of "))
    assert total == 20
    share = r"95 % interval of that share is \d+ % to \d+ %"
    assert re.search(share, page.inner_text("#score-note"))
    assert page.locator(".mistake").count() == 20 - right
    page.locator(".mistake").last.click()
    tags = {page.inner_text(f"#choose-{side} .tag") for side in ("left", "right")}
    assert tags == {"real", "synthetic"}
    streams = [parse_qs(urlsplit(url).query) for url in asked if "generate/stream" in url]
    assert {one["task"][0] for one in streams} == {"free viewing", "reading"}
    assert sum(int(one["n"][0]) for one in streams) == 20


def test_export(page: Page, tmp_path: Path) -> None:
    """Every download has the shown windows; the buttons copy the command and the program."""
    page.click("#tab-explore")
    page.select_option("#task", "reading")
    generate(page, 2, seed=5)
    page.click("#tab-export")
    settings = {"model": page.input_value("#model"), "task": "reading", "n": 2, "seed": 5}
    generated = json_of(page, **settings)
    expected = np.array([[one["x"], one["y"]] for one in generated["windows"]])
    size = [[generated["card"]["screen"][name]] for name in ("width_px", "height_px")]
    for format in ("parquet", "csv", "bids", "asc"):
        with page.expect_download() as caught:
            page.click(f"[data-format={format}]")
        name = caught.value.suggested_filename
        assert name.endswith("seed5.parquet" if format == "parquet" else f"seed5.{format}.zip")
        path = tmp_path / name
        caught.value.save_as(path)
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                archive.extractall(tmp_path / format)
            path = tmp_path / format / ("gaze.csv" if format == "csv" else "gaze")
        card = read_card(path)
        assert card is not None
        assert (card["synthetic"], card["seed"]) == (True, 5)
        pixels = [gaze for one in read_recordings([path]) for gaze in one.gaze_px.values()]
        found = [gaze * 2 / size - 1 for gaze in pixels]
        np.testing.assert_allclose(found, expected, atol=2e-4)
        page.locator("#formats button:enabled").first.wait_for()
        assert page.inner_text("#export-status").startswith(f"Saved {name}")
    for name, start in (("command", "gazediffusion generate"), ("python", "import gazediffusion")):
        page.click(f"[data-copy={name}]")
        page.locator(f"[data-copy={name}]", has_text="Copied").wait_for()
        text = page.evaluate("navigator.clipboard.readText()")
        assert text == page.locator(f"#{name}").text_content()
        assert text.startswith(start)
    for name in TABS:
        page.click(f"#tab-{name}")
        assert page.evaluate("document.documentElement.scrollWidth") <= DESKTOP["width"]


def test_the_address_names_the_tab_and_statistics_are_those_of_scipy(page: Page) -> None:
    from scipy.stats import binomtest

    page.click("#tab-blind")
    page.click("#tab-compare")
    page.click("#tab-explore")
    assert "#" not in page.url
    for name, go in (
        ("compare", page.go_back),
        ("blind", page.go_back),
        ("compare", page.go_forward),
    ):
        go()
        assert page.locator(f"#{name}").is_visible()
        assert page.url.endswith(f"#{name}")
    for name, tab in (("export", "export"), ("generate", "explore"), ("main", "explore")):
        page.evaluate(f"location.hash = '#{name}'")
        page.locator(f"#{tab}").wait_for()
    pairs = [(0, 20), (9, 20), (16, 20), (20, 20), (3, 7)]
    found = page.evaluate(
        "pairs => import('./static/statistics.js').then(({binomialInterval}) =>"
        " pairs.map(([k, n]) => binomialInterval(k, n)))",
        pairs,
    )
    for (k, n), interval in zip(pairs, found, strict=True):
        exact = binomtest(k, n).proportion_ci(0.95, "exact")
        assert interval == pytest.approx([exact.low, exact.high], abs=1e-6)


@pytest.mark.slow
def test_losses_are_drawn_as_gaps_and_labels_as_shades(
    open_page: OpenPage, lossy_run: Path, labelling_run: Path
) -> None:
    plain = open_page()
    for name in ("track_loss", "labels"):
        expect(plain.locator(f"#{name}")).to_be_disabled()
    lost = (
        gd.load(lossy_run).sample(6, task="reading", seed=4, track_loss=True, batch_size=1).is_lost
    )
    number = int(np.argmax(lost.sum(axis=1)))
    with live_server(Settings(model=str(lossy_run))) as url:
        page = open_page(url)
        page.select_option("#task", "reading")
        page.check("#track_loss")
        generate(page, 6, seed=4)
        page.click(f".thumb >> nth={number}")
        gaps = "[...(document.querySelector('#traces').data?.[0].y || [NaN])].map(Number.isNaN)"
        n_lost = int(lost[number].sum())
        page.wait_for_function(f"n => {gaps}.filter(Boolean).length === n", arg=n_lost)
        assert page.evaluate(gaps) == lost[number].tolist()
        assert "NaN" not in page.inner_text("#facts")
    labelled = gd.load(labelling_run).sample(2, task="dots", labels=True, batch_size=1)
    number = int(np.argmax([len(set(one)) for one in labelled.cut_labels().tolist()]))
    events = labelled.events(number, by_labels=True)
    with live_server(Settings(model=str(labelling_run))) as url:
        page = open_page(url)
        page.select_option("#task", "dots")
        expect(page.locator("#show-pursuits")).to_be_disabled()
        page.check("#labels")
        generate(page, 2)
        page.click(f".thumb >> nth={number}")
        page.locator("#classes.labelled").wait_for()
        n_shapes = "document.querySelector('#traces').layout.shapes.length"
        page.wait_for_function(f"n => {n_shapes} === n", arg=len(events))
        shapes = page.evaluate(
            "document.querySelector('#traces').layout.shapes.map(one => [one.x0, one.x1])"
        )
        assert shapes == [[one.onset_ms / 1000, one.offset_ms / 1000] for one in events]
        classes = page.evaluate("document.querySelector('#traces').data[2].customdata")
        numbers = [1 + gd.EVENT_CLASSES.index(name) for name in classes]
        assert numbers == labelled.cut_labels()[number].tolist()


@pytest.mark.slow
def test_zoom_of_the_traces_is_the_loop_of_the_replay(open_page: OpenPage) -> None:
    page = open_page()
    generate(page, 1)
    page.locator("#traces .nsewdrag").first.wait_for()
    page.click("#play")
    area = page.locator("#traces .nsewdrag").first.bounding_box()
    for k, share in enumerate((0.25, 0.6)):
        place = (area["x"] + share * area["width"], area["y"] + area["height"] / 2)
        page.mouse.move(*place, steps=4)
        page.mouse.up() if k else page.mouse.down()
    expect(page.locator("#loop")).to_contain_text("Looping")
    first, last = (float(one) for one in re.findall(r"[\d.]+(?= s)", page.inner_text("#loop")))
    assert [first, last] == pytest.approx([0.25 * 1.98, 0.6 * 1.98], abs=0.05)
    page.select_option("#speed", "4")
    page.click("#play")
    times = []
    for _ in range(8):
        page.wait_for_timeout(60)
        times.append(seconds(page))
    assert first - 0.01 <= min(times) < max(times) <= last + 0.01
    page.click("#zoom-all")
    assert "Drag to zoom" in page.inner_text("#loop")


@pytest.mark.slow
def test_a_recording_is_compared_with_a_named_floor_and_an_interval(
    open_page: OpenPage, study: Path, tmp_path: Path
) -> None:
    config = SimulationConfig(
        n_participants=3, minutes=2.0, rate_hz=250, seed=9, screen=SCREEN, binocular=False
    )
    write_simulation(config, tmp_path / "long", "csv")
    page = open_page()
    page.click("#tab-compare")
    page.fill("#compare-n", "25")
    choose(page, *recording_files(tmp_path / "long"))
    compare(page)
    assert page.locator("#bars .bar:not(.scale)").count() == 7
    interval = r"Median ratio to the floor [\d.]+ \(95 % interval [\d.]+ to [\d.]+\)"
    assert re.match(interval, page.inner_text("#headline"))
    floor = "two groups of gap-free segments of 3 participants"
    assert floor in page.inner_text("#floor")
    page.select_option("#family", "degrees")
    page.locator("#marginals .annotation-text", has_text="degrees of visual angle").wait_for()
    record_forms(page)
    with page.context.expect_page() as opened:
        page.click("#report")
    report = opened.value
    report.wait_for_url(re.compile("^blob:"))
    report.locator("th button").first.click()  # The policies of both pages allow its script.
    assert report.locator("th[aria-sort=ascending]").count() == 1
    assert floor in report.inner_text("body")
    ((field, _),) = filled(page)
    assert field == "comparison", "the one in view, neither read nor generated again"
    page.fill("#compare-n", "26")
    assert page.locator("#compare-results").is_hidden(), "results of other settings are cleared"

    choose(page, *with_tasks(study, tmp_path, "searching"))
    page.locator("#task-ask").wait_for()
    assert "This model has no task searching." in page.inner_text("#task-ask span")
    assert page.locator("#evaluate").is_disabled()
    page.select_option("#recorded-task", "reading")
    compare(page)
    assert "tasks do not match" not in page.inner_text("#compare-notes")
    assert page.inner_text("#headline").startswith("No ratio to the floor: the recording cannot be")


@pytest.mark.slow
def test_everything_can_be_done_with_the_keyboard(open_page: OpenPage) -> None:
    page = open_page(reduced_motion="reduce", color_scheme="dark")

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
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    page.locator(".thumb.ready >> nth=5").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#window-title") == "Window 2"
    still = picture(page)
    page.wait_for_timeout(200)
    assert picture(page) == still, "reduced motion is respected"
    tab_to("replay")
    for key, at in (
        ("Home", 0),
        ("ArrowRight", 0.1),
        ("ArrowRight", 0.2),
        ("Shift+ArrowLeft", 0.19),
    ):
        page.keyboard.press(key)
        assert seconds(page) == at
    page.focus("#tab-explore")
    for name in (*TABS[1:], TABS[0]):
        page.keyboard.press("ArrowRight")
        assert focus() == f"tab-{name}"

    def brightness() -> int:
        value = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", value)[:3]))

    assert brightness() < 600, "colours follow the system until the button is used"
    page.click("#theme")
    page.reload()
    assert brightness() > 600


@pytest.mark.slow
def test_nothing_is_wider_than_a_phone_and_a_dropped_folder_keeps_its_paths(
    open_page: OpenPage, study: Path
) -> None:
    page = open_page(viewport=PHONE, has_touch=True, is_mobile=True)
    generate(page, 6)
    for name in TABS:
        page.click(f"#tab-{name}")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page = open_page()
    page.click("#tab-compare")
    record_forms(page)
    box = page.locator("#drop").bounding_box()
    devtools = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        data = {"items": [], "files": [str(study)], "dragOperationsMask": 1}
        place = {"x": box["x"] + 20, "y": box["y"] + 20}
        devtools.send("Input.dispatchDragEvent", {"type": kind, "data": data, **place})
    page.locator("#evaluate:enabled").wait_for()
    names = {path for name, path in filled(page) if name == "files"}
    paths = [path for path in study.rglob("*") if path.is_file()]
    assert names == {path.relative_to(study.parent).as_posix() for path in paths}


@pytest.mark.slow
def test_a_lost_connection_is_reported_and_restored(
    open_page: OpenPage, expected: list[str]
) -> None:
    expected.extend(["ERR_", "Failed to load", "failed: "])
    page = open_page()
    page.context.set_offline(True)
    page.click("#start")
    page.locator("#status.error").wait_for()
    assert "gazediffusion serve" in page.inner_text("#status")
    page.route("**/api/models", lambda route: route.abort())
    page.context.set_offline(False)
    page.reload()
    page.locator("#offline").wait_for()
    page.unroute("**/api/models")
    page.click("#retry")
    page.locator("#offline").wait_for(state="hidden")
    generate(page, 1)


@pytest.mark.slow
def test_the_token_of_the_address_goes_with_every_request_in_a_header(
    open_page: OpenPage, run_folder: Path, study: Path, expected: list[str]
) -> None:
    settings = Settings(model=str(run_folder), real=study, token=TOKEN)
    with live_server(settings) as url:
        page = open_page(f"{url}/?token=open%20sesame")
        assert "token" not in page.url, "it has left the address bar"
        asked: list[Any] = []
        page.on("request", lambda one: asked.append(one))
        page.reload()
        generate(page, 1)
        page.click("#tab-blind")
        page.locator("#blind-start:enabled").wait_for()
        assert "recording given to the server" in page.inner_text("#real-summary")
        to_api = [one for one in asked if "/api/" in one.url]
        assert len(to_api) >= 2
        assert all(one.headers["authorization"] == f"Bearer {TOKEN}" for one in to_api)
        assert not any("token" in one.url for one in asked)
        expected.append("401")
        bare = open_page(url, is_ready=False)
        bare.locator("#offline").wait_for()
        assert "token" in bare.inner_text("#offline p")
