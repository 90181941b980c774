"""Reading and writing files so that nothing is half-written and every failure is one clear line.

Output goes to a temporary name beside its target and is renamed when complete; a full or
unwritable disk, or an interrupt, leaves the target as it was.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gazediffusion.errors import GazeError

_NUMBERS = re.compile(r"\[\n[\s\d.,eE+-]+\]")  # a list of numbers, in indented JSON


def read_bytes(path: Path) -> bytes:
    """The whole content of a file; an empty or unreadable one is a `GazeError`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise GazeError(f"cannot be read ({error.strerror})", path=path) from error
    if not content.strip():
        raise GazeError("the file is empty", path=path, remedy="check the export or the download")
    return content


def decode_text(content: bytes, path: Path) -> str:
    """Text of a file that is UTF-8 (with or without mark), UTF-16 with a mark, or Latin-1.

    Eye-tracker software on Windows writes all of these. NUL bytes mean it is not text at all.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif b"\x00" in content:
        raise GazeError("this is a binary file, not text", path=path)
    else:
        encoding = "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding == "utf-16":
            raise GazeError("the UTF-16 text is damaged", path=path) from error
        return content.decode("latin-1")


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it into place when the block succeeds.

    Works for a file and for a folder (make the folder at the yielded path). A folder that holds
    anything is never replaced: that is an error before anything is written.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if path.is_dir() and any(path.iterdir()):
            raise GazeError("this folder is not empty", path=path, remedy="name a new one")
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise GazeError(f"cannot be written ({error.strerror or error})", path=path) from error
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def require_writable(path: Path) -> None:
    """Fail before the long work, not after it, when `path` cannot be written."""
    with written_whole(path.with_name(f"{path.name}.probe")) as temporary:
        temporary.touch()
    path.with_name(f"{path.name}.probe").unlink(missing_ok=True)


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON file whole; a list of numbers takes one line."""
    text = _NUMBERS.sub(lambda found: " ".join(found[0].split()), json.dumps(values, indent=2))
    with written_whole(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """What a JSON file holds."""
    try:
        return json.loads(read_bytes(path))
    except ValueError as error:
        raise GazeError(f"the file is damaged ({error})", path=path) from error


def read_safetensors(
    path: Path, framework: str, problem: str, remedy: str | None = None
) -> tuple[dict[str, Any], Any]:
    """Tensors and our JSON header (None where there is none) of a safetensors file.

    framework: "np" or "pt". problem and remedy: what is said of a file that is none.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework=framework) as stream:
            header = json.loads((stream.metadata() or {}).get("gazediffusion", "null"))
            names = list(stream.keys())
            return {name: stream.get_tensor(name) for name in names}, header
    except (SafetensorError, ValueError, TypeError, OSError, RecursionError) as error:
        read_bytes(path)  # an empty or unreadable file has a clearer line of its own
        raise GazeError(problem, path=path, remedy=remedy) from error


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, as hexadecimal digits."""
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        read_bytes(path)  # says in one line what is wrong with it
        raise


def sha256_source(text: str) -> str:
    """The SHA-256 of an inline style or script, as a content security policy names it."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
