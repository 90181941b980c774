"""Object storage behind paths: `s3://`, `gs://` and `memory://` through fsspec.

An object appears when its upload is complete, and never changes in part. So inputs are fetched
whole into a temporary folder, which readers then read, and outputs are written to a local file and
uploaded whole. A folder is many objects: a mark stands in it while it is uploaded, and a folder
with the mark is not read. Nothing here is imported, and no server asked, before a URL is used.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import IO, Any

from gazediffusion.errors import GazeError
from gazediffusion.urls import is_remote, keep_copies_in, shown, url_of

INCOMPLETE = ".incomplete"  # in a folder whose upload has begun and not ended
_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "memory": "fsspec"}
_N_TRANSFERS = 8
_CREDENTIALS = {"s3": "AWS_ACCESS_KEY_ID or AWS_PROFILE", "gs": "GOOGLE_APPLICATION_CREDENTIALS"}

_lock = threading.RLock()
_folder: list[tempfile.TemporaryDirectory[str]] = []
# Copies that were fetched: what the storage said of the object, and the copy's time of change.
_fetched: dict[Path, tuple[str, int]] = {}


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


def is_file(path: Path) -> bool:
    """Whether there is a file, or an object."""
    if not is_remote(path):
        return path.is_file()
    with _named(path) as (fs, name):
        try:
            return bool(fs.info(name)["type"] == "file")
        except FileNotFoundError:
            return False


def size_of(path: Path) -> int:
    """Bytes of a file or object."""
    if not is_remote(path):
        return path.stat().st_size
    with _named(path) as (fs, name):
        return int(fs.info(name)["size"])


def names_in(folder: Path, pattern: str = "*") -> list[str]:
    """Names of the files of a folder, or of all objects below a URL, that fit a pattern.

    Of objects the names are relative to the folder, as `figures/gaze.png`.
    """
    if not is_remote(folder):
        return sorted(path.name for path in folder.glob(pattern))
    with _named(folder) as (fs, name):
        found = sorted(_objects(fs, name))
    return [one for one in found if _fits(one, pattern)]


def remove(path: Path) -> None:
    """Remove a file or object, if it is there."""
    if not is_remote(path):
        path.unlink(missing_ok=True)
        return
    with _named(path) as (fs, name), contextlib.suppress(FileNotFoundError):
        fs.rm_file(name)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A file or object, to read bytes from; of an object only what is read is transferred."""
    if not is_remote(path):
        with open(path, "rb") as stream:
            yield stream
        return
    with _named(path, ValueError) as (fs, name), fs.open(name, "rb") as stream:
        yield stream


def read_objects(folder: Path, pattern: str) -> dict[str, bytes]:
    """The content of small objects of a URL by name."""
    names = names_in(folder, pattern)
    with _named(folder) as (fs, name):
        return dict(zip(names, _all(lambda one: fs.cat_file(f"{name}/{one}"), names), strict=True))


def write_object(path: Path, content: bytes) -> None:
    """Write a small object."""
    with _named(path) as (fs, name):
        fs.pipe_file(name, content)


def put(source: Path, target: Path) -> None:
    """Upload a file or folder to a URL; what was in the folder before is replaced."""
    if not source.is_dir():
        _put_file(source, target)
        return
    files = sorted(path for path in source.rglob("*") if path.is_file())
    new = [path.relative_to(source).as_posix() for path in files]
    write_object(target / INCOMPLETE, b"This folder is being uploaded.\n")
    old = set(names_in(target)) - {*new, INCOMPLETE}
    _all(lambda name: _put_file(source / name, target / name), new)
    _all(lambda name: remove(target / name), sorted(old))
    remove(target / INCOMPLETE)


def _put_file(source: Path, target: Path) -> None:
    with _named(target) as (fs, name):
        fs.put_file(str(source), name)
        n_bytes = fs.info(name)["size"]
    if n_bytes != source.stat().st_size:
        raise GazeError(
            f"the upload is incomplete: {n_bytes} of {source.stat().st_size} bytes", path=target
        )


def fetched(path: Path | str, beside: Sequence[str] = ()) -> Path:
    """A local copy of a URL, kept until this process ends; a local path as it is.

    beside: patterns of files in the same folder that are fetched too, as sidecars.
    """
    if not is_remote(path):
        return Path(path)
    path = Path(path)
    with _named(path) as (fs, name):
        info = fs.info(name)
        if info["type"] == "file":
            copy = _copied(fs, name, info, path)
            for other, about in _objects(fs, name.rpartition("/")[0], 1).items() if beside else ():
                if any(fnmatch.fnmatchcase(other, pattern) for pattern in beside):
                    _copied(fs, about["name"], about, path.parent / other)
            return copy
        objects = _objects(fs, name)
        if INCOMPLETE in objects:
            raise GazeError(
                "the upload of this folder has not ended",
                path=path,
                remedy="give the command that wrote it again",
            )
        seen = {one: about for one, about in objects.items() if not _is_hidden(one)}
        if not seen:
            raise FileNotFoundError(name)
        _all(lambda one: _copied(fs, seen[one]["name"], seen[one], path / one), list(seen))
        folder = _copy_of(path)
        for old in [one for one in folder.rglob("*") if one.is_file()]:
            if old.relative_to(folder).as_posix() not in seen:
                old.unlink()
                _fetched.pop(old, None)
        return folder


def fetched_matches(pattern: str, beside: Callable[[str], Sequence[str]]) -> list[Path]:
    """Local copies of what a URL names: an object, a folder, or all that fit its wildcards.

    beside: the sidecars of an object by its name, as for `fetched`.
    """
    if not glob.has_magic(pattern):
        return [fetched(pattern, beside(PurePosixPath(pattern).name))]
    path = Path(pattern)
    with _named(path) as (fs, name):
        found = sorted(fs.glob(name))
        start = url_of(path).partition("://")[0]
    if not found:
        raise GazeError("nothing matches this pattern", path=path)
    urls = [f"{start}://{one.lstrip('/')}" for one in found]
    return [fetched(url, beside(PurePosixPath(url).name)) for url in urls]


@contextlib.contextmanager
def working_copy(
    folder: Path | str, is_writer: bool = True
) -> Iterator[tuple[Path, Callable[[Callable[..., None] | None], Callable[..., None]]]]:
    """A local folder to work in, and what makes a callback upload what has changed in it.

    Changes are uploaded at the end too, whatever happens. A local folder is worked in itself.
    is_writer: False for processes beside the one that writes, which have an empty folder.
    """
    path = Path(folder)
    if not is_remote(path):
        yield path, _as_it_is
        return
    if not is_writer:
        with tempfile.TemporaryDirectory() as empty:
            yield Path(empty), _as_it_is
        return
    copy = _copy_of(path)
    if names_in(path):
        fetched(path)
    else:
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir(parents=True)

    def uploading(callback: Callable[..., None] | None) -> Callable[..., None]:
        def called(*given: Any) -> None:
            upload_changes(copy)
            if callback is not None:
                callback(*given)

        return called

    try:
        yield copy, uploading
    finally:
        upload_changes(copy)


def _as_it_is(callback: Callable[..., None] | None) -> Callable[..., None]:
    return callback or (lambda *given: None)


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


def _copied(fs: Any, name: str, info: Mapping[str, Any], path: Path) -> Path:
    """The copy of an object, fetched again where the object has changed since."""
    copy, known = _copy_of(path), str(sorted((key, str(info[key])) for key in _STATED & {*info}))
    if copy.is_file() and _fetched.get(copy) == (known, copy.stat().st_mtime_ns):
        return copy
    copy.parent.mkdir(parents=True, exist_ok=True)
    temporary = copy.with_name(f".{copy.name}.part")
    fs.get_file(name, str(temporary))
    n_bytes = temporary.stat().st_size
    if n_bytes != info["size"]:
        temporary.unlink()
        raise GazeError(f"{n_bytes} of {info['size']} bytes were received", path=path)
    os.replace(temporary, copy)
    _fetched[copy] = known, copy.stat().st_mtime_ns
    return copy


_STATED = {"size", "ETag", "etag", "created", "generation"}


def _copy_of(path: Path) -> Path:
    """Where the copy of a URL is; names that lead out of the folder of copies are refused."""
    scheme, _, name = url_of(path).partition("://")
    parts = name.split("/")
    if {"", ".", ".."} & {*parts} or any("\\" in part for part in parts):
        raise GazeError("this name cannot be a local file's", path=path)
    with _lock:
        if not _folder:
            _folder.append(tempfile.TemporaryDirectory(prefix="gazediffusion-"))
            keep_copies_in(Path(_folder[0].name))
        return Path(_folder[0].name, scheme, *parts)


def _objects(fs: Any, folder: str, depth: int | None = None) -> dict[str, Any]:
    """What the storage says of the objects below a folder, by their relative name."""
    found = fs.find(folder, maxdepth=depth, detail=True)
    below = {
        name.lstrip("/").removeprefix(folder.lstrip("/")).lstrip("/"): info
        for name, info in found.items()
        if info["type"] == "file" and not name.endswith("/")
    }
    return {name: info for name, info in below.items() if name}


def _all(do: Callable[[str], Any], names: Sequence[str]) -> list[Any]:
    """What `do` gives for each name, several at a time; the first failure is raised."""
    if len(names) < 2:
        return [do(name) for name in names]
    with ThreadPoolExecutor(_N_TRANSFERS) as workers:
        return list(workers.map(do, names))


def _fits(name: str, pattern: str) -> bool:
    """Whether a relative name fits a pattern; `**/` is any number of folders."""
    anywhere = pattern.removeprefix("**/")
    return fnmatch.fnmatchcase(name, anywhere) or (
        anywhere != pattern and fnmatch.fnmatchcase(name, f"*/{anywhere}")
    )


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in PurePosixPath(name).parts)


@contextlib.contextmanager
def _named(path: Path, *passed: type[Exception]) -> Iterator[tuple[Any, str]]:
    """The file system of a URL and the name in it; a failure becomes one line with the URL.

    passed: errors that are not the storage's.
    """
    url = url_of(path)
    scheme, _, rest = url.partition("://")
    if "@" in rest.partition("/")[0]:
        remedy = f"set {_CREDENTIALS.get(scheme)}"
        raise GazeError("credentials do not belong in a URL", path=path, remedy=remedy)
    try:
        from fsspec.core import url_to_fs

        fs, name = url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        raise GazeError(
            f"{scheme}:// needs {_PACKAGES[scheme]}",
            path=path,
            remedy="pip install 'gazediffusion[cloud]'",
        ) from error
    try:
        yield fs, name
    except Exception as error:  # fsspec, botocore, aiohttp and gcsfs have no common class
        if isinstance(error, (GazeError, *passed)):
            raise
        raise _failure(error, path, scheme, rest) from error


def _failure(error: Exception, path: Path, scheme: str, rest: str) -> GazeError:
    """One line for what went wrong at a URL, SCHEME://REST; it never has credentials in it."""
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
