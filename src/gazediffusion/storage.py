"""Local paths and URLs alike: read, write whole, fetch, hash.

A local path is `pathlib`'s. A URL (`s3://bucket/key`, `gs://`, `memory://`) is handed on as a
`Path` too, which writes it `s3:/bucket/key`; universal-pathlib serves it, imported when the first
one is used. Output goes to a temporary name and is renamed, or uploaded, when it is complete, so
that nothing is half-written. A folder at a URL is many objects: a mark stands in it while it is
uploaded, and a folder with the mark is not read. Inputs are fetched whole into a temporary folder.
"""

from __future__ import annotations

import base64
import contextlib
import fnmatch
import glob
import gzip
import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from gazediffusion.errors import URL, GazeError, path_text, shown, shown_copies

INCOMPLETE = ".incomplete"  # in a folder that is being written
MAX_UNPACKED_BYTES = 2 << 30
_N_TRANSFERS = 8
_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "memory": "fsspec"}
_CREDENTIALS = {"s3": "AWS_ACCESS_KEY_ID or AWS_PROFILE", "gs": "GOOGLE_APPLICATION_CREDENTIALS"}
_NUMBERS = re.compile(r"\[\n[\s\d.,eE+-]+\]")  # a list of numbers, in indented JSON

# Copies that were fetched: what the storage said of the object, and the copy's time of change.
_fetched: dict[Path, tuple[str, int]] = {}
_folder: list[tempfile.TemporaryDirectory[str]] = []


def is_remote(path: Path | str) -> bool:
    """Whether a path is a URL.

    >>> is_remote("s3://bucket/gaze"), is_remote(Path("s3://bucket/gaze")), is_remote("s3/gaze")
    (True, True, False)
    """
    return URL.match(path_text(path)) is not None


def url_of(path: Path | str) -> str:
    """The URL of a path that is one.

    >>> url_of(Path("s3://bucket/study") / "P01.asc")
    's3://bucket/study/P01.asc'
    """
    return URL.sub(r"\1://", path_text(path)).rstrip("/")


def origin_of(path: Path) -> dict[str, str]:
    """`url` of a fetched copy, for provenance; nothing for a local file."""
    return {"url": shown(path)} if is_remote(shown(path)) else {}


@contextlib.contextmanager
def reached(path: Path | str, *passed: type[Exception]) -> Iterator[Any]:
    """A local path, or the `UPath` of a URL, whose failures become one line.

    passed: errors that are not the storage's.
    """
    if not is_remote(path):
        yield Path(path)
        return
    url = url_of(path)
    scheme, _, rest = url.partition("://")
    if "@" in rest.partition("/")[0]:
        remedy = f"set {_CREDENTIALS.get(scheme)}"
        raise GazeError("credentials do not belong in a URL", path=path, remedy=remedy)
    try:
        from upath import UPath

        place = UPath(url, use_listings_cache=False)
        _ = place.fs
    except ImportError as error:
        problem = f"{scheme}:// needs {_PACKAGES[scheme]}"
        remedy = "pip install 'gazediffusion[cloud]'"
        raise GazeError(problem, path=path, remedy=remedy) from error
    try:
        yield place
    except Exception as error:  # fsspec, botocore, aiohttp and gcsfs have no common class
        if isinstance(error, (GazeError, *passed)):
            raise
        raise _failure(error, path, scheme, rest) from error


def _failure(error: Exception, path: Path | str, scheme: str, rest: str) -> GazeError:
    """One line for what went wrong at SCHEME://REST; it never has credentials in it."""
    account = _CREDENTIALS.get(scheme, "the credentials")
    if isinstance(error, FileNotFoundError):
        is_bucket = "bucket" in str(error).lower() or "/" not in rest
        what = "bucket" if is_bucket and scheme != "memory" else "file or folder"
        return GazeError(f"there is no such {what}", path=path)
    if isinstance(error, PermissionError):
        remedy = f"check {account} and the rights of the account"
        return GazeError("access is denied", path=path, remedy=remedy)
    if "Credentials" in type(error).__name__:
        return GazeError("there are no credentials", path=path, remedy=f"set {account}")
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    remedy = "check the connection and try again"
    return GazeError(f"the storage failed ({reason})", path=path, remedy=remedy)


def is_file(path: Path) -> bool:
    """Whether there is a file, or an object."""
    with reached(path) as place:
        return bool(place.is_file())


def size_of(path: Path) -> int:
    """Bytes of a file or object."""
    with reached(path) as place:
        return int(place.stat().st_size)


def remove(path: Path) -> None:
    """Remove a file or object, if it is there."""
    with reached(path) as place, contextlib.suppress(FileNotFoundError):
        place.unlink()


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A file or object, to read bytes from; of an object only what is read is transferred."""
    with reached(path, ValueError) as place, place.open("rb") as stream:
        yield stream


def names_in(folder: Path, pattern: str = "*") -> list[str]:
    """Names of the files of a folder, or of all objects below a URL, that fit a pattern.

    Of objects the names are relative to the folder, as `figures/gaze.png`.
    """
    if not is_remote(folder):
        return sorted(path.name for path in folder.glob(pattern))
    with reached(folder) as place:
        found = sorted(_objects(place))
    # `**/` is any number of folders, none as well; `*` crosses them here.
    patterns = {pattern, pattern.removeprefix("**/")}
    return [one for one in found if any(fnmatch.fnmatchcase(one, fit) for fit in patterns)]


def _objects(place: Any, depth: int | None = None) -> dict[str, Any]:
    """What the storage says of the objects below a folder, by their relative name."""
    folder, found = place.path.strip("/"), place.fs.find(place.path, maxdepth=depth, detail=True)
    below = {
        name.lstrip("/").removeprefix(folder).lstrip("/"): info
        for name, info in found.items()
        if info["type"] == "file" and not name.endswith("/")
    }
    return {name: info for name, info in below.items() if name}


def fetched(path: Path | str, beside: Sequence[str] = ()) -> Path:
    """A local copy of a URL, kept until this process ends; a local path as it is.

    beside: patterns of files in the same folder that are fetched too, as sidecars. The copies keep
    the names of their folders, which readers need; fsspec's `filecache` does not.
    """
    if not is_remote(path):
        return Path(path)
    path = Path(path)
    with reached(path) as place:
        info, home = place.fs.info(place.path), path.parent
        if info["type"] == "file":
            others = _objects(place.parent, 1) if beside else {}
            fits = [k for k in others if any(fnmatch.fnmatchcase(k, one) for one in beside)]
            found = {path.name: info, **{name: others[name] for name in fits}}
        else:
            every, home = _objects(place), path
            if INCOMPLETE in every:
                remedy = "give the command that wrote it again"
                raise GazeError("this folder is not complete", path=path, remedy=remedy)
            found = {name: one for name, one in every.items() if not _is_hidden(name)}
            if not found:
                raise FileNotFoundError(place.path)
            folder = _copy_of(path)
            for old in [one for one in folder.rglob("*") if one.is_file()]:
                if old.relative_to(folder).as_posix() not in found:
                    old.unlink()
                    _fetched.pop(old, None)
        _each(lambda name: _copied(place.fs, found[name], home / name), list(found))
    return _copy_of(path)


def fetched_matches(pattern: str, beside: Callable[[str], Sequence[str]]) -> list[Path]:
    """Local copies of what a URL names: an object, a folder, or all that fit its wildcards.

    beside: the sidecars of an object by its name, as for `fetched`.
    """
    if not glob.has_magic(pattern):
        return [fetched(pattern, beside(PurePosixPath(pattern).name))]
    with reached(pattern) as place:
        found = sorted(place.fs.glob(place.path))
    if not found:
        raise GazeError("nothing matches this pattern", path=pattern)
    scheme = url_of(pattern).partition("://")[0]
    urls = [f"{scheme}://{one.lstrip('/')}" for one in found]
    return [fetched(url, beside(PurePosixPath(url).name)) for url in urls]


def _copied(fs: Any, info: Mapping[str, Any], path: Path) -> None:
    """Fetch an object, if it has changed since it was fetched last."""
    stated = {"size", "ETag", "etag", "created", "generation"} & {*info}
    copy, known = _copy_of(path), str(sorted((key, str(info[key])) for key in stated))
    if copy.is_file() and _fetched.get(copy) == (known, copy.stat().st_mtime_ns):
        return
    copy.parent.mkdir(parents=True, exist_ok=True)
    part = copy.with_name(f".{copy.name}.part")
    fs.get_file(info["name"], str(part))
    n_bytes = part.stat().st_size
    if n_bytes != info["size"]:
        part.unlink()
        raise GazeError(f"{n_bytes} of {info['size']} bytes were received", path=path)
    os.replace(part, copy)
    _fetched[copy] = known, copy.stat().st_mtime_ns


def _copy_of(path: Path) -> Path:
    """Where the copy of a URL is; names that lead out of the folder of copies are refused."""
    scheme, _, name = url_of(path).partition("://")
    parts = name.split("/")
    if {"", ".", ".."} & {*parts} or any("\\" in part for part in parts):
        raise GazeError("this name cannot be a local file's", path=path)
    if not _folder:
        _folder.append(tempfile.TemporaryDirectory(prefix="gazediffusion-"))
        shown_copies.append(Path(_folder[0].name).as_posix())
    return Path(_folder[0].name, scheme, *parts)


def _each(do: Callable[[str], Any], names: Sequence[str]) -> None:
    """Do it for each name, several at a time; the first failure is raised."""
    with ThreadPoolExecutor(_N_TRANSFERS) as workers:
        list(workers.map(do, names))


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in PurePosixPath(name).parts)


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
        with open(fetched(path), "rb") as stream:
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
    encoding = "utf-16" if is_utf_16(content) else "utf-8-sig"
    if encoding != "utf-16" and b"\x00" in content:
        raise GazeError("this is a binary file, not text", path=path)
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding == "utf-16":
            raise GazeError("the UTF-16 text is damaged", path=path) from error
        return content.decode("latin-1")


def is_utf_16(content: bytes) -> bool:
    """Whether bytes begin with the mark of UTF-16."""
    return content.startswith((b"\xff\xfe", b"\xfe\xff"))


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
        with opened(path) as stream:
            metadata = parquet.read_metadata(stream).metadata or {}
        header = json.loads(metadata.get(b"gazediffusion", b"null"))
    except (ArrowException, ValueError, OSError, RecursionError):
        return None
    return header if isinstance(header, dict) else None


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, as hexadecimal digits."""
    try:
        with opened(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
    except OSError:
        read_bytes(path)  # says in one line what is wrong with it
        raise


def content_hash(given: Path | str) -> str:
    """SHA-256 of a file, or of all files of a folder; a name that is no path stays as it is."""
    path = fetched(given)
    if path.is_file():
        return sha256_of(path)
    if not path.is_dir():
        return str(given)
    files = sorted(one for one in path.rglob("*") if one.is_file())
    lines = (f"{one.relative_to(path).as_posix()} {sha256_of(one)}\n" for one in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def sha256_source(text: str) -> str:
    """The SHA-256 of an inline style or script, as a content security policy names it."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def cache_dir() -> Path:
    """Where this package keeps files between commands."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "gazediffusion"


def work_place(output: Path) -> Path:
    """The local folder for unfinished work on an output: beside it, or for a URL in the cache."""
    if not is_remote(output):
        return output.parent
    digest = hashlib.sha256(url_of(output.parent).encode()).hexdigest()
    return cache_dir() / "outputs" / digest[:16]


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
        remedy = f"name it without an ending, as {path.stem}"
        raise GazeError("a folder is written", path=path, remedy=remedy)
    replacing = "or give `overwrite` to replace it"
    with naming_failure(path):
        in_folder = _names_in(path)
        if in_folder is not None:
            is_ours = known_by is not None and bool(names_in(path, known_by))
            if in_folder and not (overwrite and is_ours):
                remedy = f"name a new one, {replacing}" if is_ours else "name a new one"
                raise GazeError("this folder is not empty", path=path, remedy=remedy)
        elif not (is_file(path) if is_remote(path) else path.exists()):
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
    names = names_in(path)
    return names if names and INCOMPLETE not in names else None


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
    temporary = work_place(path) / f".{path.name}.{writer}.part"
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
        put(source, target)
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


def put(source: Path, target: Path) -> None:
    """Upload a file or folder to a URL; what was in the folder before is replaced."""
    if not source.is_dir():
        _put_file(source, target)
        return
    new = [one.relative_to(source).as_posix() for one in source.rglob("*") if one.is_file()]
    write_mark(target, "This folder is being uploaded.\n")
    old = {*names_in(target)} - {*new, INCOMPLETE}
    _each(lambda name: _put_file(source / name, target / name), sorted(new))
    _each(lambda name: remove(target / name), sorted(old))
    remove(target / INCOMPLETE)


def write_mark(folder: Path, text: str) -> None:
    """Mark a folder as incomplete."""
    with reached(folder / INCOMPLETE) as place:
        place.write_bytes(text.encode())


def _put_file(source: Path, target: Path) -> None:
    with reached(target) as place:
        place.fs.put_file(str(source), place.path)
        n_bytes, size = place.fs.info(place.path)["size"], source.stat().st_size
    if n_bytes != size:
        raise GazeError(f"the upload is incomplete: {n_bytes} of {size} bytes", path=target)


def require_writable(path: Path) -> None:
    """Fail before the long work, not after it, when `path` cannot be written."""
    probe = path.with_name(f".{path.name}.{os.getpid()}.probe")
    with written_whole(probe) as temporary:
        temporary.touch()
    remove(probe)


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON file whole; a list of numbers takes one line."""
    text = _NUMBERS.sub(lambda found: " ".join(found[0].split()), json.dumps(values, indent=2))
    with written_whole(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


@contextlib.contextmanager
def working_copy(folder: Path | str, is_writer: bool = True) -> Iterator[Path]:
    """A local folder to work in; changes in the copy of a URL are uploaded at the end.

    `upload_changes` uploads them meanwhile. is_writer: False for processes beside the one that
    writes, which have an empty folder.
    """
    path = Path(folder)
    if not is_remote(path):
        yield path
    elif not is_writer:
        with tempfile.TemporaryDirectory() as empty:
            yield Path(empty)
    else:
        copy = _copy_of(path)
        if names_in(path):
            fetched(path)
        else:
            shutil.rmtree(copy, ignore_errors=True)
            copy.mkdir(parents=True)
        try:
            yield copy
        finally:
            upload_changes(copy)


def place_of(folder: Path) -> Path:
    """Where a folder is worked on: the local copy of one at a URL, or the folder itself."""
    return _copy_of(folder) if is_remote(folder) else folder


def upload_changes(copy: Path) -> None:
    """Upload what has changed in a fetched folder since, oldest first; other folders are left."""
    url = Path(shown(copy))
    if not is_remote(url):
        return
    files = [path for path in copy.rglob("*") if path.is_file()]
    times = {path: path.stat().st_mtime_ns for path in files if not _is_hidden(path.name)}
    for path in sorted(times, key=lambda one: (times[one], one)):
        if _fetched.get(path, ("", 0))[1] != times[path]:
            _put_file(path, url / path.relative_to(copy).as_posix())
            _fetched[path] = "", times[path]
    for path in [one for one in _fetched if copy in one.parents and one not in times]:
        remove(url / path.relative_to(copy).as_posix())
        del _fetched[path]
