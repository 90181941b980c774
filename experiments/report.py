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

import gazediffusion as gd
from gazediffusion.data.recordings import true_segments
from gazediffusion.data.scanpaths import Scanpath, Targets
from gazediffusion.data.windows import conversions_of
from gazediffusion.generation.steering import Constraints
from gazediffusion.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, house_style, save_figure
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
    sampler = model.sampler(seed=seed, task=task, quality=quality)
    sampler = replace(sampler, constraints=Constraints(**given), is_taskless=task is None)
    return sampler.windows(0, n)


def in_degrees(windows: gd.Windows, gaze: Floats) -> Floats:
    """Normalized gaze (window, 2, time) in degrees of each window's screen, NaN where it is NaN."""
    to_degrees, _ = conversions_of("deg")
    return windows.on_screens(gaze.astype(np.float32), to_degrees).astype(np.float64)


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
        return f"{value} [{low}, {high}]" if value else ""
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


# Pictures of documents; all gaze in them is synthetic.

# Fixations of a scanpath: pixels on the screen of movies, and ms.
SCANPATH = np.array(
    [[300, 200, 300], [980, 180, 260], [900, 520, 420], [420, 560, 240], [640, 360, 500]]
)
# Jumps of a target: ms, and pixels on the screen of dots.
JUMPS = np.array(
    [[0, 840, 525], [900, 300, 250], [2100, 1400, 800], [3000, 1300, 240], [4600, 500, 820],
     [6000, 840, 300], [7000, 1100, 700]]
)  # fmt: skip
GAPS_S, N_DRAWS, FRONT_S = ((2.0, 2.2), (4.5, 5.0)), 5, 8
EVENT_COLOURS = {"saccade": ORANGE, "pursuit": GREEN, "noise": PURPLE}
BELOW: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.22)}


def seconds_of(windows: gd.Windows) -> Floats:
    """The time of each sample."""
    return np.arange(windows.length) / windows.rate_hz


def draw_xy(axis: Any, windows: gd.Windows, **look: Any) -> None:
    """x and y of the first window over time, in pixels."""
    for row, colour, name in zip(windows.to_numpy("px")[0], (BLUE, ORANGE), "xy", strict=True):
        axis.plot(seconds_of(windows), row, color=colour, label=name, **look)
    axis.set(xlabel="time (s)", ylabel="position (px)")
    axis.legend(**BELOW, ncols=2)


def front(model: gd.Model, seed: int) -> Any:
    """Film viewing and reading on their screens, coloured by time; the reading over time."""
    import matplotlib.pyplot as plt
    from matplotlib.collections import LineCollection

    figure, axes = plt.subplots(1, 3, figsize=(14, 4), width_ratios=(1.25, 1.05, 1.2))
    for axis, task, name in zip(
        axes, ("movies", "reading"), ("film viewing", "reading"), strict=False
    ):
        windows = model.sample(1, task=task, seed=seed)
        points, screen = windows.to_numpy("px")[0].T, windows.screen
        lines = np.stack([points[:-1], points[1:]], axis=1)
        path = LineCollection(list(lines), cmap="viridis", linewidths=2)
        path.set_array(np.linspace(0, FRONT_S, len(lines)))
        axis.add_collection(path)
        axis.set(xlim=(0, screen.width_px), ylim=(screen.height_px, 0), aspect="equal")
        axis.set(xlabel="x (px)", ylabel="y (px)", title=f"{name}, {FRONT_S} s")
    figure.colorbar(path, ax=axes[1], label="time (s)", shrink=0.8)
    draw_xy(axes[2], windows, linewidth=2)
    axes[2].set_title("the same reading over time")
    return figure


def steering(model: gd.Model, seed: int) -> Any:
    """A scanpath, a jumping target, a minute of gaze."""
    import matplotlib.pyplot as plt

    movies, dots = (model.screen_of(task) for task in ("movies", "dots"))
    x, y = movies.to_normalized(SCANPATH[:, :2].T.astype(np.float32))
    free, ms = np.full(len(SCANPATH), np.nan), SCANPATH[:, 2].astype(float)
    scanpath = Scanpath("drawn", x, y, free, ms)
    places = dots.to_normalized(JUMPS[:, 1:].T.astype(np.float32))
    target = Targets("drawn", JUMPS[:, 0].astype(float), places[0], places[1])
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 4), width_ratios=(13, 11, 12))
    for k, colour in enumerate((BLUE, GREEN, ORANGE)):
        made = model.sample(1, task="movies", scanpath=[scanpath], seed=seed + k)
        left.plot(*made.to_numpy("px")[0], color=colour, linewidth=0.8)
    left.scatter(*SCANPATH[:, :2].T, s=ms / 2, color=GREY, alpha=0.4)
    for k, (at_x, at_y, _) in enumerate(SCANPATH, start=1):
        left.annotate(str(k), (at_x, at_y), xytext=(10, 8), textcoords="offset points")
    left.set(xlim=(0, 1280), ylim=(720, 0), xlabel="x (px)", ylabel="y (px)", aspect="equal")
    made = model.sample(4, task="dots", targets=[target], seconds=8, seed=seed)
    for k, gaze in enumerate(made.to_numpy("px")):
        label = None if k else "gaze, four windows"
        middle.plot(seconds_of(made), gaze[0], color=BLUE, linewidth=0.7, alpha=0.7, label=label)
    edges = [*JUMPS[:, 0] / 1000, 8]
    middle.stairs(JUMPS[:, 1], edges, baseline=None, color=ORANGE, label="target")
    middle.set(xlabel="time (s)", ylabel="x (px)", ylim=(0, 1680))
    middle.legend(**BELOW, ncols=2, columnspacing=0.8)
    draw_xy(right, model.sample(1, task="reading", seconds=60, seed=seed), linewidth=0.6)
    names = ("a scanpath, three times", "a target", "a minute of reading")
    for axis, name in zip((left, middle, right), names, strict=True):
        axis.set_title(name, loc="left")
    return figure


def filling(model: gd.Model, seed: int) -> Any:
    """One panel for each gap: the gaze that was cut out, and draws given both sides."""
    import matplotlib.pyplot as plt

    whole = model.sample(1, task="movies", seed=seed)
    known, seconds = whole.cut().copy(), seconds_of(whole)
    for first, stop in GAPS_S:
        known[..., round(first * whole.rate_hz) : round(stop * whole.rate_hz)] = np.nan
    draws = kept_to(model, "movies", seed + 1, N_DRAWS, known=np.repeat(known, N_DRAWS, axis=0))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3))
    for axis, (first, stop) in zip(axes, GAPS_S, strict=True):
        near = (seconds > first - 0.4) & (seconds < stop + 0.4)
        inside = (seconds >= first - 0.004) & (seconds <= stop)
        for k, draw in enumerate(draws.to_numpy("px")):
            label = None if k else "draws"
            axis.plot(seconds[inside], draw[0, inside], color=ORANGE, label=label)
        axis.plot(seconds[near], whole.to_numpy("px")[0, 0, near], color=BLUE, label="cut out")
        axis.axvspan(first, stop, color=GREY, alpha=0.15)
        axis.set(xlabel="time (s)", ylabel="x (px)")
        axis.set_title(f"a gap of {1000 * (stop - first):.0f} ms", loc="left")
    axes[1].legend(loc="best")
    return figure


def losses(model: gd.Model, seed: int) -> Any:
    """For each of two tasks, the first window with two losses or more, over the same without."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 4.6), sharex=True)
    for column, task in zip(axes.T, ("movies", "reading"), strict=True):
        lossy, plain = (model.sample(12, task=task, seed=seed, losses=one) for one in (True, False))
        k = int(np.argmax([len(true_segments(one)) >= 2 for one in lossy.is_lost]))
        seconds = seconds_of(lossy)
        for axis, number in zip(column, (0, 1), strict=True):
            sets = (("without losses", plain, GREY), ("with losses", lossy, BLUE))
            for label, windows, colour in sets:
                axis.plot(seconds, windows.to_numpy("deg")[k, number], color=colour, label=label)
            for first, stop in true_segments(lossy.is_lost[k]).tolist():
                axis.axvspan(seconds[first], stop / lossy.rate_hz, color=ORANGE, alpha=0.3)
        column[0].set_title(f"{task}, window {k} of seed {seed}", loc="left")
        column[1].set_xlabel("time (s)")
    for axis, name in zip(axes[:, 0], ("x (deg)", "y, down (deg)"), strict=True):
        axis.set_ylabel(name)
    axes[1, 0].legend(loc="upper center", bbox_to_anchor=(0.64, 1))
    return figure


def labels(model: gd.Model, seed: int) -> Any:
    """The window of 48 with most pursuits, its events shaded."""
    import matplotlib.pyplot as plt

    made = model.sample(48, task="movies", labels=True, seed=seed)
    classes = made.cut_labels()
    numbers = {name: gd.EVENT_CLASSES.index(name) + 1 for name in EVENT_COLOURS}
    k = int(np.argmax([len(true_segments(one == numbers["pursuit"])) for one in classes]))
    figure, axes = plt.subplots(2, 1, figsize=(9, 3.8), sharex=True)
    pairs = zip(axes, made.to_numpy("deg")[k], ("x (deg)", "y, down (deg)"), strict=True)
    for axis, gaze, name in pairs:
        axis.plot(seconds_of(made), gaze, color=BLUE)
        axis.set_ylabel(name)
        for event, colour in EVENT_COLOURS.items():
            for number, span in enumerate(true_segments(classes[k] == numbers[event]).tolist()):
                first, stop = np.array(span) / made.rate_hz
                label = None if number else event
                axis.axvspan(first, stop, color=colour, alpha=0.35, label=label)
    axes[0].set_title(f"movies, window {k} of seed {seed}; fixations unshaded", loc="left")
    axes[1].set_xlabel("time (s)")
    axes[1].legend(loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=3)
    return figure


PICTURES = {one.__name__: one for one in (front, steering, filling, losses, labels)}


def draw(names: Sequence[str], seed: int) -> None:
    """Draw pictures into docs/images."""
    import matplotlib.pyplot as plt

    model = gd.load("default")
    with house_style():
        plt.rcParams["font.size"] = 13  # readable at half the size
        for name in names:
            save_small(PICTURES[name](model, seed), IMAGES / f"{name}.png")


def save_small(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib, a PNG file in few colours, small enough for the repository."""
    from PIL import Image

    save_figure(figure, path)
    n_colours = 192 if path.stem == "front" else 32
    picture = Image.open(path).convert("RGB")
    picture.quantize(colors=n_colours, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"wrote {path}")


def main() -> None:
    """Write or check the pages, print a hash, or draw pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--hash", metavar="MODEL")
    parser.add_argument("--pictures", nargs="*", choices=PICTURES)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.pictures is not None:
        draw(given.pictures or list(PICTURES), given.seed)
        return
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
