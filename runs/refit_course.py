"""Fit the course of long gaze of a packaged model again: a change of `conditioning/course.py`.

    python runs/refit_course.py NAME GAZECOM.safetensors BIOEYE.safetensors

The files are those the model was trained on. Weights, prior and the calibrated gain of targets stay
as they are; `config.json` of src/gazediffusion/models/pretrained/NAME is written. Takes seconds.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import gazediffusion as gd
from gazediffusion.conditioning.course import Course
from gazediffusion.files import read_json, write_json
from gazediffusion.models.checkpoint import CONFIG
from gazediffusion.models.pretrained import pretrained_folder


def main() -> None:
    """Write the course of the model named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("windows", type=Path, nargs="+")
    given = parser.parse_args()
    conditioning = gd.load(given.name).config.conditioning
    parts = [gd.Windows.load(path) for path in given.windows]
    course = Course.fit(parts, conditioning.tasks)
    targets = dict(course.targets)
    for task, before in conditioning.course.targets.items():
        targets[task] = replace(targets[task], generated_gain=before.generated_gain)
    path = pretrained_folder() / given.name / CONFIG
    values = read_json(path)
    values["conditioning"]["course"] = replace(course, targets=targets).to_json()
    write_json(path, values)
    print(f"wrote {path}: targets of {', '.join(targets)}; pages of {', '.join(course.pages)}")


if __name__ == "__main__":
    main()
