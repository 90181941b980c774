"""Reading and writing files so that nothing is half-written and every failure is one clear line.

Output goes to a temporary name beside its target and is renamed when complete; a full or
unwritable disk, or an interrupt, leaves the target as it was. What a user names as an output is
replaced only on request (`require_free`). Paths may be URLs (`storage`): their files are written
locally and uploaded when complete.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import json
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, cast

from gazediffusion import storage
from gazediffusion.errors import GazeError
from gazediffusion.urls import is_remote

MAX_UNPACKED_BYTES = 2 << 30

_NUMBERS = re.compile(r"\[\n[\s\d.,eE+-]+\]")  # a list of numbers, in indented JSON


def unpacked(path: Path) -> Path:
    """The path without the ending `.gz`: what a file would be called if it were not compressed."""
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


class _Gzip(gzip.GzipFile):
    """A gzip file that may not unpack to more than `MAX_UNPACKED_BYTES`."""

    def read(self, size: int | None = -1) -> bytes:
        is_whole = size is None or size < 0
        content = super().read(MAX_UNPACKED_BYTES + 1 if is_whole else size)
        if self.tell() > MAX_UNPACKED_BYTES:
            limit = f"{MAX_UNPACKED_BYTES / 2**30:g} GiB"
            raise GazeError(f"unpacks to more than {limit}", path=self.name, remedy="unpack it")
        return content


@contextlib.contextmanager
def open_unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to read its bytes, unpacked where they are gzip, whatever the file is called."""
    try:
        with open(storage.fetched(path), "rb") as stream:
            is_gzip = stream.peek(2).startswith(b"\x1f\x8b")
            yield cast("IO[bytes]", _Gzip(str(path), fileobj=stream) if is_gzip else stream)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise GazeError(f"the gzip file is damaged ({error})", path=path) from error
    except OSError as error:
        raise GazeError(f"cannot be read ({error.strerror})", path=path) from error


def read_bytes(path: Path) -> bytes:
    """The whole content of a file, unpacked; an empty or unreadable one is a `GazeError`."""
    with open_unpacked(path) as stream:
        content = stream.read()
    if not content.strip():
        raise GazeError("the file is empty", path=path, remedy="check the export or the download")
    return content


def decode_text(content: bytes, path: Path) -> str:
    """Text of a file that is UTF-8 (with or without mark), UTF-16 with a mark, or Latin-1.

    Eye-tracker software on Windows writes all of these. NUL bytes mean it is not text at all.
    """
    if is_utf_16(content):
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


def is_utf_16(content: bytes) -> bool:
    """Whether bytes begin with the mark of UTF-16."""
    return content.startswith((b"\xff\xfe", b"\xfe\xff"))


def ending_of(path: Path) -> str:
    """The ending of a name in small letters without its dot; "" for none and for a number.

    >>> ending_of(Path("gaze.CSV")), ending_of(Path("gaze")), ending_of(Path("noise-0.5"))
    ('csv', '', '')
    """
    ending = path.suffix[1:].lower()
    return "" if ending.isdigit() else ending


@contextlib.contextmanager
def naming_failure(path: Path) -> Iterator[None]:
    """Turn a failure of the system into one line that names the output."""
    try:
        yield
    except OSError as error:
        raise GazeError(f"cannot be written ({error.strerror or error})", path=path) from error


def require_free(path: Path, overwrite: bool = False, known_by: str | None = None) -> None:
    """Refuse to replace what is at `path`, unless `overwrite` says so.

    known_by: for a folder, a pattern of a file in it; a folder without such a file is another's and
    is never replaced. None: a file is written.
    """
    if known_by is not None and ending_of(path):
        raise GazeError(
            "a folder is written", path=path, remedy=f"name it without an ending, as {path.stem}"
        )
    replacing = "or give `overwrite` to replace it"
    with naming_failure(path):
        in_folder = _names_in(path)
        if in_folder is not None:
            is_ours = known_by is not None and bool(storage.names_in(path, known_by))
            if in_folder and not (overwrite and is_ours):
                remedy = f"name a new one, {replacing}" if is_ours else "name a new one"
                raise GazeError("this folder is not empty", path=path, remedy=remedy)
        elif not _exists(path):
            return
        elif known_by is not None:
            raise GazeError("this is a file", path=path, remedy="name a folder")
        elif not overwrite:
            problem = "this file exists already"
            raise GazeError(problem, path=path, remedy=f"name another, {replacing}")


def _names_in(path: Path) -> list[str] | None:
    """What is in a folder; None where there is none. An upload that was cut is as good as none."""
    if not is_remote(path):
        return os.listdir(path) if path.is_dir() else None
    names = storage.names_in(path)
    return names if names and storage.INCOMPLETE not in names else None


def _exists(path: Path) -> bool:
    return storage.is_file(path) if is_remote(path) else path.exists()


@contextlib.contextmanager
def written_whole(
    path: Path, overwrite: bool = True, known_by: str | None = None
) -> Iterator[Path]:
    """Yield a temporary path beside `path`; put it into place when the block succeeds.

    Works for a file and for a folder (make the folder at the yielded path). What must not be
    replaced is an error before anything is written; see `require_free`.
    """
    path = Path(path)
    # Machines that share a folder may have processes of the same number.
    writer = f"{os.getpid()}-{secrets.token_hex(4)}"
    temporary = storage.work_place(path) / f".{path.name}.{writer}.part"
    try:
        require_free(path, overwrite, known_by)
        with naming_failure(path):
            temporary.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            put_in_place(temporary, path)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def put_in_place(source: Path, target: Path) -> None:
    """Rename a file or folder; what is at the target is replaced, and kept where that fails.

    To a URL it is uploaded, and the source stays.
    """
    if is_remote(target):
        storage.put(source, target)
        return
    if not source.is_dir() or not target.is_dir() or target.is_symlink():
        os.replace(source, target)
        return
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    os.replace(target, old)
    try:
        os.replace(source, target)
    except OSError:
        os.replace(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def require_writable(path: Path) -> None:
    """Fail before the long work, not after it, when `path` cannot be written."""
    probe = path.with_name(f".{path.name}.{os.getpid()}.probe")
    with written_whole(probe) as temporary:
        temporary.touch()
    storage.remove(probe)


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


@contextlib.contextmanager
def table_of(path: Path, format: str, damage: str) -> Iterator[Any]:
    """The values of a JSON file of this format; `damage` is said where they cannot be used."""
    try:
        values = read_json(path)
        if values["format"] != format:
            raise ValueError("another format")
        yield values
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise GazeError(f"{damage} ({error})", path=path) from error


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


def read_parquet_header(path: Path) -> dict[str, Any] | None:
    """Our JSON in the metadata of a Parquet file; None where there is none."""
    from pyarrow import ArrowException, parquet

    try:
        with storage.opened(path) as stream:
            metadata = parquet.read_metadata(stream).metadata or {}
        header = json.loads(metadata.get(b"gazediffusion", b"null"))
    except (ArrowException, ValueError, OSError, RecursionError):
        return None
    return header if isinstance(header, dict) else None


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, as hexadecimal digits."""
    try:
        with storage.opened(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
    except OSError:
        read_bytes(path)  # says in one line what is wrong with it
        raise


def sha256_source(text: str) -> str:
    """The SHA-256 of an inline style or script, as a content security policy names it."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
