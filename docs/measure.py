"""The package as a tree and in numbers: sizes, files that a command enters, modules loaded.

    python docs/measure.py            # renew the tree and the tables of docs/architecture.md
    python docs/measure.py --check    # is the tree of the page current?

Sizes leave out comments, blank lines and layout. Files entered are those of the package in which a
function is called once the imports are done; bodies of modules and classes do not count.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import subprocess
import sys
import tempfile
import token
import tokenize
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "gazediffusion"
PAGE = ROOT / "docs" / "architecture.md"
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.ENCODING,
    token.NEWLINE,
    token.INDENT,
    token.DEDENT,
    token.ENDMARKER,
}
GENERATE = "generate -n 10 -o gaze.parquet"
# At most so many files entered, and modules loaded.
FILES_OF_GENERATE, FILES_OF_TRAIN, MODULES_OF_LOAD = 38, 43, 42
# Runs in a process of its own and prints the files entered and the modules loaded.
TRACE = """
import inspect, json, sys, threading
import gazediffusion
root, entered, importing = gazediffusion.__file__.removesuffix("__init__.py"), set(), {}

def is_import(frame):
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(root):
            return not frame.f_code.co_filename.endswith("__main__.py")
        frame = frame.f_back
    return False

def enter(frame, event, _):
    code = frame.f_code
    is_function = code.co_flags & inspect.CO_OPTIMIZED and code.co_flags & inspect.CO_NEWLOCALS
    if event == "call" and code.co_filename.startswith(root) and is_function:
        if code.co_filename not in entered and not is_import(frame.f_back):
            entered.add(code.co_filename)

arguments = sys.argv[1:]
if arguments != ["load"]:
    import gazediffusion.cli
sys.argv = ["gazediffusion", *arguments]
sys.setprofile(enter)
threading.setprofile(enter)
try:
    if arguments == ["load"]:
        gazediffusion.load("default")
    else:
        gazediffusion.cli.main()
except SystemExit as stop:
    assert not stop.code, stop.code
finally:
    sys.setprofile(None)
loaded = sorted(name for name in sys.modules if name.partition(".")[0] == "gazediffusion")
print(json.dumps({"files": sorted(one.removeprefix(root) for one in entered), "modules": loaded}))
"""


def trace(arguments: Sequence[str], folder: Path) -> dict[str, list[str]]:
    """Files that a command enters, and modules it loads; the command `load` loads the default."""
    command = [sys.executable, "-c", TRACE, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if run.returncode:
        raise SystemExit(f"error: {' '.join(arguments)} failed:\n{run.stderr}")
    found: dict[str, list[str]] = json.loads(run.stdout.splitlines()[-1])
    return found


def traces(folder: Path) -> dict[str, dict[str, list[str]]]:
    """`trace` of the three commands that the bounds are for."""
    import gazediffusion as gd

    config = gd.SimulationConfig(n_participants=4, minutes=0.5, rate_hz=250, task="reading")
    gd.prepare(gd.Recordings.of(one.recording for one in gd.simulate(config))).save(
        folder / "windows.safetensors"
    )
    train = "train windows.safetensors --recipe steerable-tiny --epochs 1 -o run --device cpu"
    return {
        GENERATE: trace(GENERATE.split(), folder),
        "train": trace(train.split(), folder),
        'load("default")': trace(["load"], folder),
    }


def measured(paths: Sequence[Path]) -> tuple[int, int, int, float]:
    """Files, lines, tokens and characters a line."""
    texts = [path.read_text(encoding="utf-8") for path in paths]
    lines = [line for text in texts for line in text.splitlines()]
    n_tokens = sum(
        one.type not in LAYOUT
        for text in texts
        for one in tokenize.generate_tokens(io.StringIO(text).readline)
    )
    return len(paths), len(lines), n_tokens, sum(len(line) + 1 for line in lines) / len(lines)


def tracked(*patterns: str) -> list[Path]:
    """Files of the repository that match."""
    command = ["git", "ls-files", "-z", *patterns]
    names = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def sizes() -> str:
    """Sizes as a Markdown table."""
    groups = {
        "`src`": ["src/*.py"],
        "`tests`": ["tests/*.py"],
        "all Python": ["*.py"],
    }
    rows = ["| | files | lines | tokens | characters a line |", "|---|---:|---:|---:|---:|"]
    for name, patterns in groups.items():
        files, lines, n_tokens, width = measured(tracked(*patterns))
        rows.append(f"| {name} | {files} | {lines:,} | {n_tokens:,} | {width:.1f} |")
    pages = tracked("*.md")
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in pages)
    return "\n".join([*rows, "", f"{len(pages)} pages, {words:,} words.", ""])


def first_line(path: Path) -> str:
    """The first line of a file's docstring, without its full stop."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n")[0].removesuffix(".")


def tree() -> str:
    """Every file with the first line of its docstring, as a code block."""
    lines = []
    for path in sorted(SOURCE.rglob("*.py"), key=lambda one: (len(one.parents), str(one))):
        lines.append((str(path.relative_to(SOURCE)), first_line(path)))
    lines.sort(key=lambda one: (one[0].rpartition("/")[0], not one[0].endswith("__init__.py"), one))
    width = max(len(name) for name, _ in lines) + 2
    return "```\n" + "\n".join(f"{name:{width}}{about}" for name, about in lines) + "\n```\n"


def hops() -> str:
    """What the commands enter and load, as a Markdown table with a list."""
    with tempfile.TemporaryDirectory() as folder:
        found = traces(Path(folder))
    rows = ["| | files entered | modules loaded |", "|---|---:|---:|"]
    for name, one in found.items():
        rows.append(f"| `{name}` | {len(one['files'])} | {len(one['modules'])} |")
    entered = found[GENERATE]["files"]
    listed = ", ".join(f"`{name.removesuffix('.py')}`" for name in entered)
    return "\n".join([*rows, "", f"`generate` enters {listed}.", ""])


def main(arguments: Sequence[str] | None = None) -> None:
    """Renew or check the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare the tree only")
    given = parser.parse_args(arguments)
    page = PAGE.read_text(encoding="utf-8")
    parts = {"tree": tree} if given.check else {"tree": tree, "hops": hops, "sizes": sizes}
    current = page
    for name, make in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, is_there, rest = current.partition(begin)
        if not is_there or end not in rest:
            raise SystemExit(f"error: {PAGE} has no <!-- {name} --> ... <!-- /{name} -->")
        current = before + begin + make() + end + rest.partition(end)[2]
    if given.check and page != current:
        raise SystemExit("error: the tree of the page is old; run python docs/measure.py")
    PAGE.write_text(current, encoding="utf-8")


if __name__ == "__main__":
    main()
