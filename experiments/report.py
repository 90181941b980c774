"""Results of experiments: what every script writes, and the numbers that pages take from it.

    python experiments/report.py                  # write the numbers into README.md and docs/
    python experiments/report.py --check          # only compare; exit code 1 where they differ
    python experiments/report.py --hash joint     # of the tensors of a packaged model
    python experiments/report.py --pictures       # draw docs/images; five minutes on two cores
    python experiments/report.py --pictures losses labels

A script of this folder writes one file, docs/results/NAME.json, with its tables and what they were
measured with: the command, the hash of the model's tensors, the version of the random streams. A
page takes a table or a number between two comments, `<!-- results.NAME.tables.TABLE -->` and
`<!-- end -->`; a format may follow the path (`.2f`, `.1%`). A table is cut by a column's value:
`results.filling.tables.gazecom[method=linear]`; an underscore stands for a space.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

import gazediffusion as gd
from gazediffusion.data.windows import conversions_of
from gazediffusion.generation.long_gaze import Constraints
from gazediffusion.plotting.style import save_figure
from gazediffusion.seeds import STREAMS

ROOT = Path(__file__).parents[1]
RESULTS, IMAGES = ROOT / "docs" / "results", ROOT / "docs" / "images"
N_BOOTSTRAP = 300
Floats = NDArray[np.floating[Any]]
Cell = float | int | str | None | list[float | None]


def weights_hash(model: gd.Model) -> str:
    """SHA-256 of all tensors of a model, whatever their names and the encoding of the file."""
    run = model.run.to("cpu")
    networks = [run.network, *([run.distilled.network] if run.distilled else [])]
    tensors = [tensor for network in networks for tensor in network.state_dict().values()]
    digests = sorted(
        hashlib.sha256(f"{tuple(one.shape)}".encode() + one.contiguous().numpy().tobytes()).digest()
        for one in (tensor.detach().to(torch.float32) for tensor in tensors)
    )
    return hashlib.sha256(b"".join(digests)).hexdigest()


@dataclass
class Result:
    """What an experiment found: rows of tables, shown as they are added, and the file of it all.

    path: of the JSON file. models: measured ones. n: windows, gaps or recordings of a row.
    """

    path: Path
    models: Sequence[gd.Model] = ()
    n: int | None = None
    seeds: Sequence[int] = (0,)
    tables: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, given: argparse.Namespace, *models: gd.Model, n: int | None = None) -> Result:
        """The result of a script that was called with these options."""
        return cls(given.output, models, n, [given.seed])

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """One more row; the first row names the columns."""
        if table not in self.tables:
            self.tables[table] = {"columns": list(row), "rows": []}
            print(f"\n{table}\n\n{_head(list(row))}")
        assert list(row) == self.tables[table]["columns"]
        self.tables[table]["rows"].append([_plain(cell) for cell in row.values()])
        print(_line(self.tables[table]["rows"][-1]), flush=True)

    def say(self, text: str) -> None:
        """Progress on standard error, with the seconds since the beginning."""
        print(f"{time.monotonic() - self.begun:5.0f} s  {text}", file=sys.stderr, flush=True)

    def save(self) -> None:
        """Write the file."""
        is_gpu = any(one.device.type == "cuda" for one in self.models)
        content = {
            "name": self.path.stem,
            "command": shlex.join(
                ["python", f"experiments/{Path(sys.argv[0]).name}", *sys.argv[1:]]
            ),
            "weights": {one.run.path.name: weights_hash(one) for one in self.models},
            "streams": STREAMS,
            "n": self.n,
            "seeds": list(self.seeds),
            "minutes": round((time.monotonic() - self.begun) / 60, 1),
            "device": torch.cuda.get_device_name() if is_gpu else "cpu",
            "tables": self.tables,
            "values": {key: _plain(value) for key, value in self.values.items()},
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(content, indent=1, allow_nan=False)
        # A list of numbers or words stands in one line.
        text = re.sub(
            r"\[([^\[\]{}]*)\]",
            lambda one: f"[{re.sub(chr(10) + ' *', ' ', one[1]).strip()}]",
            text,
        )
        self.path.write_text(text + "\n", encoding="utf-8")
        print(f"wrote {self.path}")


def options(doc: str | None, name: str, model: str | None = "joint") -> argparse.ArgumentParser:
    """The options that all scripts have; without a model there is no --model."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if model is not None:
        parser.add_argument("--model", default=model, help="a packaged model or a run folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--tiny", action="store_true", help="a few simulated windows, in seconds")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / f"{name}.json")
    return parser


def over_groups(
    group: NDArray[Any], measure: Callable[[NDArray[np.int64]], Floats], n: int = N_BOOTSTRAP
) -> Iterator[list[float | None]]:
    """Each number of `measure(rows)` with its 95 % interval over groups, drawn with replacement."""
    rng = np.random.default_rng(0)
    rows = [np.flatnonzero(group == one) for one in np.unique(group)]
    drawn = [
        measure(np.concatenate([rows[k] for k in rng.integers(0, len(rows), len(rows))]))
        for _ in range(n)
    ]
    whole = measure(np.arange(len(group)))
    for value, replicates in zip(whole, np.array(drawn).reshape(n, -1).T, strict=True):
        yield with_interval(float(value), replicates)


def with_interval(value: float, replicates: Floats) -> list[float | None]:
    """A value and the limits between which 95 % of its replicates lie."""
    known = replicates[np.isfinite(replicates)]
    limits = np.percentile(known, [2.5, 97.5]).tolist() if len(known) else [None, None]
    return [value, *limits]


def tiny_windows(
    model: gd.Model, task: str, n: int = 12, seed: int = 0, **asked: Any
) -> gd.Windows:
    """n windows that stand for those of six participants, two of them held out.

    Twelve are generated; further ones are these with another beginning.
    """
    made = model.sample(12, task=task, seed=seed, **asked)
    shifts = (np.arange(n) // 12) * 50
    gaze = np.stack([np.roll(made[k % 12], by, axis=1) for k, by in enumerate(shifts.tolist())])
    if n > 12:
        made = gd.Windows.from_array(gaze, made.rate_hz, made.screen, tasks=task)
    names = "abcdef"
    return replace(
        made,
        participants=tuple(names),
        segment_participant=(np.arange(n) * len(names) // n).astype(np.int32),
        segment_trial=tuple(f"{1 + k % 2}-{k}" for k in range(n)),
        validation=frozenset("ef"),
    )


def kept_to(
    model: gd.Model, task: str | None, seed: int, n: int, quality: str = "default", **given: Any
) -> gd.Windows:
    """n windows that keep to `known`, `fixations` or `targets` (entry, 2, time), normalized.

    task: None is no task, the model's mixture of all.
    """
    generator = model.generator(task=task, quality=quality)
    generator = replace(generator, constraints=Constraints(**given), is_taskless=task is None)
    return generator.as_windows(np.concatenate(list(generator.pieces(0, n, seed))), seed)


def in_degrees(windows: gd.Windows, gaze: Floats) -> Floats:
    """Normalized gaze (window, 2, time) in degrees of each window's screen, NaN where it is NaN."""
    to_degrees, _ = conversions_of("deg")
    return windows.on_screens(gaze.astype(np.float32), to_degrees).astype(np.float64)


def save_small(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib, a PNG file in few colours, small enough for the repository."""
    save_figure(figure, path)
    if path.suffix.lower() == ".png":
        picture = Image.open(path).convert("RGB")
        picture.quantize(colors=32, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"wrote {path}")


# Pages.

_MARKED = re.compile(r"<!-- results\.(\S+?)(?: (\S+))? -->(.*?)<!-- end -->", re.DOTALL)


def pages() -> list[Path]:
    """The pages that may take numbers from results."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(one for one in found if "_build" not in one.parts)]


def rendered(text: str, folder: Path = RESULTS) -> str:
    """A page with the numbers of the results between its marks.

    >>> rendered("no marks, no change")
    'no marks, no change'
    """

    def fill(found: re.Match[str]) -> str:
        path, spec = found[1], found[2] or ""
        value = looked_up(path, folder)
        if isinstance(value, dict) and "rows" in value:
            rows = [_line(row, spec) for row in value["rows"]]
            shown = "\n".join(["", "", _head(value["columns"]), *rows, "", ""])
        else:
            shown = f"`{value}`" if path.endswith(".command") else shown_cell(value, spec)
        head = found[0][: found.start(3) - found.start()]
        return f"{head}{shown}<!-- end -->"

    return _MARKED.sub(fill, text)


def looked_up(path: str, folder: Path = RESULTS) -> Any:
    """The value at NAME.KEY.INDEX..., of a table only the rows of [column=value]; or SystemExit."""
    name, *keys = path.split(".")
    try:
        found: Any = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for key in keys:
            key, _, chosen = key.removesuffix("]").partition("[")
            found = found[int(key) if isinstance(found, list) else key]
            if chosen:
                column, asked = chosen.split("=")
                place = found["columns"].index(column.replace("_", " "))
                chosen_rows = (asked, asked.replace("_", " "))
                rows = [row for row in found["rows"] if str(row[place]) in chosen_rows]
                found = {**found, "rows": rows}
    except (OSError, LookupError, ValueError, TypeError) as error:
        raise SystemExit(f"results.{path}: nothing is there ({error!r})") from error
    return found


def shown_cell(cell: Cell, spec: str = "") -> str:
    """A cell in words: three digits, or the format; a number with its interval as 1 [0, 2].

    >>> shown_cell([0.1234, 0.1, None]), shown_cell(0.5, ".0%"), shown_cell(1234.0)
    ('0.123 [0.1, ]', '50 %', '1,234')
    """
    if isinstance(cell, list):
        value, low, high = (shown_cell(one, spec) for one in cell)
        return f"{value} [{low}, {high}]"
    if cell is None or isinstance(cell, str):
        return cell or ""
    if spec.endswith("%"):
        return f"{cell:{spec}}".replace("%", " %")
    if spec:
        return f"{cell:{spec}}"
    return f"{cell:,.0f}" if isinstance(cell, int) or abs(cell) >= 1000 else f"{cell:.3g}"


def _head(columns: Sequence[str]) -> str:
    return f"| {' | '.join(columns)} |\n|---|{'---:|' * (len(columns) - 1)}"


def _line(row: Sequence[Cell], spec: str = "") -> str:
    return f"| {' | '.join(shown_cell(cell, spec) for cell in row)} |"


def _plain(value: Any) -> Any:
    """A value for JSON: five digits, None for what is not finite."""
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, float | np.floating):
        return float(f"{value:.5g}") if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def stale(folder: Path = RESULTS) -> list[str]:
    """A line for each file that was measured with other weights or random streams."""
    lines, hashes = [], dict[str, str]()
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.get("streams", STREAMS) != STREAMS:
            lines.append(f"{path.name}: random streams {content['streams']}, now {STREAMS}")
        for name, digest in content.get("weights", {}).items():
            if name not in hashes:
                hashes[name] = weights_hash(gd.load(name, device="cpu"))
            if hashes[name] != digest:
                lines.append(f"{path.name}: measured with other weights of {name}")
    return lines


def main() -> None:
    """Write or check the pages, print a hash, or draw pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--hash", metavar="MODEL")
    given = parser.parse_args()
    if given.hash:
        print(weights_hash(gd.load(given.hash, device="cpu")))
        return
    problems = stale()
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if (new := rendered(text)) != text:
            problems += [f"{path.relative_to(ROOT)} differs from its results"]
            if not given.check:
                path.write_text(new, encoding="utf-8")
                print(f"wrote {problems.pop().split()[0]}")
    if problems:
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main()
