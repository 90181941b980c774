"""Lines of facts above a table's header, as SMI's and Tobii's programs write them.

`## Sample Rate: 500` and `Recording resolution: 1280 x 1024` state what the columns do not. Lines
that are no samples are left blank and not taken out, so that errors name the file's own lines.
"""

from __future__ import annotations

import re
from pathlib import Path

from gazediffusion.data.readers.tabular import header_of
from gazediffusion.storage import decode_text, read_bytes

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def read_text(path: Path) -> str:
    """The text of a file with plain line ends."""
    return _plain(decode_text(read_bytes(path), path))


def read_head(head: bytes, path: Path) -> str:
    """The whole lines of the first bytes of a text file."""
    if not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        # A head cut inside a character is no UTF-8; whole lines are.
        head = head[: head.rfind(b"\n") + 1] or head
    return _plain(decode_text(head, path))


def names_in(text: str, path: Path) -> list[str]:
    """The column names in the first line that is not blank."""
    return header_of(text.encode(), path)


def without_preamble(text: str, header: re.Pattern[str]) -> str:
    """The text with the lines above its header left blank."""
    found = header.search(text)
    start = found.start() if found else 0
    return "\n" * text.count("\n", 0, start) + text[start:]


def stated(text: str, name: str) -> str:
    """What a line `name: value` states; empty where there is none."""
    found = re.search(rf"^\W*{re.escape(name)} ?:[ \t]*(.*)$", text, re.MULTILINE | re.IGNORECASE)
    return found[1].strip() if found else ""


def numbers_stated(text: str, name: str, n: int) -> list[float] | None:
    """The `n` positive numbers in a line `name: value`, below a million; else None."""
    return numbers_in(stated(text, name), n)


def numbers_in(text: str, n: int) -> list[float] | None:
    """The `n` positive numbers in a text, as in `1280 x 1024`, below a million; else None."""
    numbers = [float(number) for number in _NUMBER.findall(text)]
    return numbers if len(numbers) == n and all(0 < one < 1e6 for one in numbers) else None


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
