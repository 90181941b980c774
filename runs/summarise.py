"""Put a summary of real gaze into the package: histograms, mean curves and floors, never rows.

    python runs/summarise.py WINDOWS NAME    # writes evaluation/summaries/NAME.json.gz

Minutes on one core. What is in it and what is not: docs/metrics.md, "Without recordings".
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Sequence
from pathlib import Path

from gazediffusion.data.windows import Windows
from gazediffusion.evaluation.summarising import summarise
from gazediffusion.evaluation.summary import SUFFIX, summaries_folder
from gazediffusion.files import written_whole

# What the data's authors ask to be cited.
CITATIONS = {
    "gazecom": "Dorr, Martinetz, Gegenfurtner, Barth 2010, Variability of eye movements when "
    "viewing dynamic natural scenes, J Vision 10(10):28",
    "bioeye": "BioEye 2015 - Competition on Biometrics via Eye Movements, "
    "doi 10.1109/BTAS.2015.7358750",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Summarise the windows file named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path)
    parser.add_argument("name", choices=list(CITATIONS))
    given = parser.parse_args(arguments)
    summary = summarise(Windows.load(given.windows), given.name, CITATIONS[given.name])
    path = summaries_folder() / (given.name + SUFFIX)
    with written_whole(path) as temporary:
        text = json.dumps(summary, separators=(",", ":")) + "\n"
        temporary.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"wrote {path}: {path.stat().st_size / 1000:.0f} kB, tasks {', '.join(summary['parts'])}")
    for task, reason in summary["left_out"].items():
        print(f"  left out as a task of its own: {task} ({reason})")


if __name__ == "__main__":
    main()
