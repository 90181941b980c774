"""The README's picture of the playground: a server, a browser, generated windows.

python runs/playground_picture.py docs/images/playground.png [--model joint --task reading --seed 7]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

from PIL import Image

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]


def main() -> None:
    """Start a server, generate in the page, take the picture."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--model", default="joint")
    parser.add_argument("--task", default="reading")
    parser.add_argument("--seed", default="7")
    parser.add_argument("--window", type=int, default=1, help="which of the six to show")
    parser.add_argument("--browser", default="/usr/bin/chromium")
    given = parser.parse_args()
    words = [sys.executable, "-m", "gazediffusion", "serve", "--port", "0", "--no-open"]
    words += ["--model", given.model]
    pipe, same = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(words, stdout=pipe, stderr=same, text=True) as server:
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=given.browser, args=FLAGS, timeout=60_000
                )
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                page.set_default_timeout(300_000)
                page.goto(_address(server))
                page.wait_for_selector("#start:enabled")
                page.select_option("#model", given.model)
                page.select_option("#task", given.task)
                page.fill("#seed", given.seed)
                page.click("#start")
                started = time.perf_counter()
                page.wait_for_selector(".thumb.ready >> nth=0")
                first = time.perf_counter() - started
                page.wait_for_selector(".thumb.ready >> nth=5")
                six = time.perf_counter() - started
                print(f"first window after {first:.1f} s, six {six:.1f} s")
                page.click(f".thumb >> nth={given.window}")
                page.click("#play")
                page.fill("#scrub", "6540")
                page.wait_for_selector("#traces .trace")
                page.wait_for_timeout(2500)
                page.evaluate("document.activeElement.blur()")
                page.mouse.move(1000, 3)
                page.wait_for_timeout(300)
                page.screenshot(path=str(given.output))
        finally:
            server.terminate()
    image = Image.open(given.output).convert("RGB").quantize(colors=128, dither=Image.Dither.NONE)
    image.save(given.output, optimize=True)
    print(f"wrote {given.output}: {given.output.stat().st_size / 1000:.0f} kB")


def _address(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    for line in server.stdout:
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        if found:
            return found.group()
    raise SystemExit("the server did not start")


if __name__ == "__main__":
    main()
