"""Damaged and hostile uploads to a running server: its answers, memory and response to others.

    python benchmarks/hostile_uploads.py [-n 2000] [--model RUN]

Uploads are sent by four clients at a time while another asks for the models and for /health, again
and again. Without --model a tiny joint model is trained first. Every upload is drawn with a seed.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import io
import json
import random
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from serve import study, tiny_model

PATHS = ("/api/real", "/api/real", "/api/real", "/api/evaluate", "/api/evaluate/stream")
HEADER = "multipart/form-data; boundary=x"
Part = tuple[str, bytes]


class Hostile:
    """Draws uploads: damaged copies of valid files, bombs, and forms that are none."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        import polars as pl

        import gazediffusion as gd

        self.rng = random.Random(seed)
        csv = min(study(folder).glob("*.csv"))
        rows = csv.read_bytes().splitlines(keepends=True)[:600]
        table = folder / "valid"
        table.mkdir(exist_ok=True)
        frame = pl.read_csv(b"".join(rows))
        frame.write_parquet(table / "a.parquet")
        gd.write_simulation(
            gd.SimulationConfig(n_participants=1, minutes=0.1, rate_hz=250), table / "asc", "asc"
        )
        gaze = np.random.default_rng(0).normal(0, 0.1, (8, 2, 100))
        gd.Windows.from_array(gaze, 250, gd.Screen(1280, 720)).save(table / "w.safetensors")
        self.valid: dict[str, bytes] = {
            "a.csv": b"".join(rows),
            "sub-1_task-a_physio.tsv.gz": gzip.compress(b"".join(rows).replace(b",", b"\t")),
            "a.parquet": (table / "a.parquet").read_bytes(),
            "a.asc": min((table / "asc").glob("*.asc")).read_bytes()[:40_000],
            "w.safetensors": (table / "w.safetensors").read_bytes(),
        }
        self.kinds: list[Callable[[], tuple[bytes, str]]] = [
            *[self.damaged] * 8,
            self.rows_bomb,
            self.nested_gzip,
            self.many_columns,
            self.parquet_bomb,
            self.zip_bomb,
            *[self.windows_file] * 4,
            self.names,
            self.many_parts,
            self.part_header,
            self.no_form,
            self.fields,
        ]

    def draw(self) -> tuple[str, str, bytes, str]:
        """Kind, path, body and content type of one upload."""
        kind = self.rng.choice(self.kinds)
        body, content_type = kind()
        return kind.__name__, self.rng.choice(PATHS), body, content_type

    def form(self, *files: Part, **fields: str) -> tuple[bytes, str]:
        """Files and fields as a form."""
        named = [(f'name="files"; filename="{name}"', content) for name, content in files]
        named += [(f'name="{name}"', value.encode()) for name, value in fields.items()]
        parts = [
            b"--x\r\nContent-Disposition: form-data; "
            + head.encode()
            + b"\r\n\r\n"
            + body
            + b"\r\n"
            for head, body in named
        ]
        return b"".join(parts) + b"--x--\r\n", HEADER

    def damaged(self) -> tuple[bytes, str]:
        """A valid file with bytes changed, cut, repeated or inserted."""
        name, content = self.rng.choice(list(self.valid.items()))
        data = bytearray(content)
        for _ in range(self.rng.choice([1, 3, 20])):
            at, length = self.rng.randrange(len(data)), self.rng.choice([1, 4, 200])
            how = self.rng.randrange(4)
            if how == 0:
                data[at : at + length] = self.rng.randbytes(length)
            elif how == 1:
                del data[at : at + length]
                data = data or bytearray(b"0")
            elif how == 2:
                data[at:at] = data[at : at + length] * self.rng.choice([1, 50])
            else:
                data[at:at] = self.rng.choice([b"\x00", b"\xff\xfe", b"NaN", b"1e999", b'"', b"\r"])
        return self.form((name, bytes(data)), screen=self.rng.choice(["", "1280x720"]))

    def rows_bomb(self) -> tuple[bytes, str]:
        """A few hundred kilobytes that unpack to as many megabytes of rows."""
        n = self.rng.choice([5, 60]) * 10**6
        row = b"0,1,2\n"
        packed = gzip.compress(b"t,x,y\n" + row * (n // 6 // 10), 1)
        name = self.rng.choice(["bomb.csv.gz", "sub-1_physio.tsv.gz"])
        return self.form((name, packed * 10), screen="1280x720")

    def nested_gzip(self) -> tuple[bytes, str]:
        """A gzip file of a gzip file."""
        return self.form(("a.csv.gz", gzip.compress(gzip.compress(b"0" * 10**7))))

    def many_columns(self) -> tuple[bytes, str]:
        """A table of up to 200,000 columns."""
        n = self.rng.choice([1500, 20_000, 200_000])
        head = b",".join(b"c%d" % k for k in range(n))
        if self.rng.random() < 0.3:
            head = b",".join(b"%d" % k for k in range(n))
        return self.form(("wide.csv", head + b"\n" + b",".join([b"1"] * n) + b"\n"))

    def parquet_bomb(self) -> tuple[bytes, str]:
        """Equal rows, which Parquet packs to nothing."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table, stream = pa.table({name: np.zeros(3 * 10**6) for name in "txy"}), io.BytesIO()
        pq.write_table(table, stream)
        return self.form(("a.parquet", stream.getvalue()), screen="1280x720")

    def zip_bomb(self) -> tuple[bytes, str]:
        """An archive of zeros under the name of an NPZ file."""
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for k in range(self.rng.choice([1, 1200])):
                archive.writestr(f"{k}.npy", b"0" * 10**5)
        return self.form(("a.npz", stream.getvalue()))

    def windows_file(self) -> tuple[bytes, str]:
        """A windows file with a valid checksum whose header or indices are wrong."""
        from safetensors.numpy import load, save

        content = self.valid["w.safetensors"]
        size = int.from_bytes(content[:8], "little")
        header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["gazediffusion"])
        tensors = {name: one.copy() for name, one in load(content).items()}
        odd: Any = self.rng.choice(["two", None, -1, 10**40, [], {}, "x" * 10**5, 1.5, True])
        if self.rng.random() < 0.5:
            header[self.rng.choice(list(header))] = odd
        else:
            name = self.rng.choice(list(tensors))
            number = self.rng.choice([-1, 10**4, 2**31 - 1])
            tensors[name][..., self.rng.randrange(tensors[name].shape[-1])] = number
            if self.rng.random() < 0.3:
                tensors[name] = tensors[name].reshape(1, -1)
        header["data_sha256"] = checksum(tensors)
        body = save(tensors, metadata={"gazediffusion": json.dumps(header)})
        return self.form(("w.safetensors", body))

    def names(self) -> tuple[bytes, str]:
        """File names that collide, are too long, or look like paths."""
        odd = [
            "a.csv",
            "a.csv/b.csv",
            "../../etc/x.csv",
            "x" * 3000 + ".csv",
            "",
            ".",
            "..",
            "a/" * 60,
        ]
        odd += ["\u202e.csv", "con", "a\x00b.csv", "%2e%2e/x.csv", "'; rm -rf.csv"]
        given = self.rng.choices(odd, k=self.rng.choice([3, 40, 300]))
        return self.form(*((name, self.valid["a.csv"][:300]) for name in given))

    def many_parts(self) -> tuple[bytes, str]:
        """Thousands of parts."""
        n = self.rng.choice([999, 5000])
        if self.rng.random() < 0.5:
            return self.form(*((f"{k}.csv", b"t,x,y\n") for k in range(n)))
        return self.form(**{f"f{k}": "1" for k in range(n)})

    def part_header(self) -> tuple[bytes, str]:
        """A part with a huge, odd or missing header."""
        head = self.rng.choice(
            [
                b"Content-Disposition: form-data; name=" + b"x" * 10**6,
                b"X: y\r\n" * 20_000,
                b'Content-Disposition: form-data; filename="a.csv"',
                b"Content-Disposition: form-data",
                b"no header at all",
                b'Content-Disposition: form-data; name="files"; filename="\xff\xfe.csv"',
            ]
        )
        return b"--x\r\n" + head + b"\r\n\r\n1\r\n--x--\r\n", HEADER

    def no_form(self) -> tuple[bytes, str]:
        """A body that is no form, or not the one announced."""
        types = [HEADER, "multipart/form-data", "multipart/form-data; boundary=" + "y" * 500]
        types += ["application/json", "text/plain", "application/x-www-form-urlencoded", "\xe4"]
        bodies = [
            self.rng.randbytes(2000),
            b"",
            b"[" * 20_000,
            b'{"n": NaN}',
            b"--x",
            b"\r\n" * 9999,
        ]
        return self.rng.choice(bodies), self.rng.choice(types)

    def fields(self) -> tuple[bytes, str]:
        """Valid files with fields that are none."""
        odd = [
            "",
            "nan",
            "inf",
            "-1",
            "1e999",
            "9" * 5000,
            "\x00",
            "[]",
            "x=1,y",
            "deg",
            "1x1",
            "true",
        ]
        odd += ["9" * 300 + "x1", "1e-300x1e-300"]
        names = ["screen", "screen_cm", "distance_cm", "unit", "origin", "columns", "source_rate"]
        names += [
            "n",
            "seed",
            "quality",
            "task",
            "model",
            "seconds",
            "override_screen",
            "comparison",
        ]
        chosen = {name: self.rng.choice(odd) for name in self.rng.sample(names, 4)}
        return self.form(("a.csv", self.valid["a.csv"]), **chosen)


def checksum(tensors: dict[str, Any]) -> str:
    """The checksum that a windows file of these tensors states."""
    import hashlib

    digest = hashlib.sha256()
    for name in sorted(tensors):
        one = np.ascontiguousarray(tensors[name])
        digest.update(f"{name}{one.dtype.str}{one.shape}".encode())
        digest.update(one.data)
    return digest.hexdigest()


@dataclass
class Seen:
    """What the server did."""

    statuses: dict[str, Counter[int]] = field(default_factory=dict)
    defects: list[str] = field(default_factory=list)
    memory_mb: float = 0.0
    light_s: list[float] = field(default_factory=list)
    slowest_s: dict[str, float] = field(default_factory=dict)


def memory_mb(pid: int) -> float:
    """Resident memory of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    total = 0.0
    try:
        for one in [pid, *map(int, children.read_text().split())]:
            found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{one}/status").read_text())
            total += int(found[1]) / 1024 if found else 0.0
    except OSError:
        pass  # It has just ended.
    return total


async def attack(url: str, pid: int, n: int, hostile: Hostile, n_clients: int = 4) -> Seen:
    """Send n uploads; watch memory and the answers to another client meanwhile."""
    seen = Seen()
    uploads = iter([hostile.draw() for _ in range(n)])  # ahead, so that drawing delays no answer
    for path in ("/api/generate/stream?n=1", "/health", "/api/models"):
        httpx2.get(url + path, timeout=300)  # The model and what answers need are loaded.
    is_over = asyncio.Event()

    async def send() -> None:
        async with httpx2.AsyncClient(base_url=url, timeout=300) as client:
            for kind, path, body, content_type in uploads:
                headers = {b"Content-Type": content_type.encode("latin-1")}
                started = time.monotonic()
                while True:
                    try:
                        answer = await client.post(path, content=body, headers=headers)
                    except httpx2.HTTPError as error:
                        seen.defects.append(f"{kind}: {error!r}")
                        break
                    if answer.status_code != 429:
                        break
                    await asyncio.sleep(0.2)
                taken_s = time.monotonic() - started
                seen.slowest_s[kind] = max(seen.slowest_s.get(kind, 0.0), taken_s)
                seen.statuses.setdefault(kind, Counter())[answer.status_code] += 1
                if answer.status_code >= 500 or "cannot be read (" in answer.text:
                    seen.defects.append(f"{kind}: {answer.status_code} {answer.text[:200]}")

    async def watch() -> None:
        async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
            while not is_over.is_set():
                for path in ("/health", "/api/models"):
                    started = time.monotonic()
                    answer = await client.get(path)
                    seen.light_s.append(time.monotonic() - started)
                    if answer.status_code != 200:
                        seen.defects.append(f"{path}: {answer.status_code}")
                seen.memory_mb = max(seen.memory_mb, memory_mb(pid))
                await asyncio.sleep(0.05)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(send() for _ in range(n_clients)))
    is_over.set()
    await watching
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = arguments.model or tiny_model(folder)
        hostile = Hostile(folder, arguments.seed)
        command = ["gazediffusion", "serve", "--port", "0", "--no-open", "--model", str(model)]
        server = subprocess.Popen(
            [sys.executable, "-u", "-m", *command], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+:\d+", server.stdout.readline())
            assert found is not None
            started = time.monotonic()
            seen = asyncio.run(attack(found[0], server.pid, arguments.n, hostile))
        finally:
            server.terminate()
            server.wait()
    total = sum((one for one in seen.statuses.values()), Counter())
    columns = sorted(total)
    print(f"{arguments.n} uploads in {time.monotonic() - started:.0f} s")
    print("| upload |", " | ".join(map(str, columns)), "| slowest (s) |")
    print("|---|" + "---:|" * (len(columns) + 1))
    seen.slowest_s["all"] = max(seen.slowest_s.values())
    for kind, counts in [*sorted(seen.statuses.items()), ("all", total)]:
        numbers = [str(counts[one]) for one in columns] + [f"{seen.slowest_s[kind]:.1f}"]
        print(f"| {kind} | {' | '.join(numbers)} |")
    print(f"most memory of server and worker: {seen.memory_mb:.0f} MB")
    print(
        f"light requests: {len(seen.light_s)}, median {np.median(seen.light_s) * 1000:.0f} ms, "
        f"slowest {max(seen.light_s):.2f} s"
    )
    for line, count in Counter(seen.defects).most_common(10):
        print(f"{count} times: {line}")


if __name__ == "__main__":
    main()
