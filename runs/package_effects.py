"""Add to a packaged model how its training participants differ: covariances between and within.

    python runs/package_effects.py NAME WINDOWS.safetensors ...

fits the conditioning prior of NAME again on the windows files that it was trained on and puts the
two covariances of each mixture component (conditioning/effects.py) into its tables. It stops if the
other tables of the new fit are not the packaged ones to rounding. These stay bit for bit.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

import gazediffusion as gd
from gazediffusion.conditioning.prior import Component, Prior
from gazediffusion.models.checkpoint import TABLES, save_tensors

TABLES_OF_FIT = ("weight", "step", "grid", "weights", "means", "factors", "drawn", "real")
ROUNDING = 1e-4


def with_effects(packaged: Component, fitted: Component) -> Component:
    """The packaged component with the covariances of the fitted one, which must be the same."""
    for name in TABLES_OF_FIT:
        here, there = getattr(packaged, name), getattr(fitted, name)
        if here.shape != there.shape or not np.allclose(here, there, rtol=ROUNDING, atol=ROUNDING):
            raise SystemExit(f"the table {name!r} of the new fit is not the packaged one")
    return replace(packaged, between=fitted.between, within=fitted.within)


def main() -> None:
    """Write the tables of the model named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("windows", nargs="+")
    given = parser.parse_args()
    model = gd.load(given.name, device="cpu")
    conditioning, path = model.config.conditioning, model.run.path / TABLES
    assert conditioning.prior is not None
    parts = [gd.Windows.load(one) for one in given.windows]
    fitted = Prior.fit(parts, conditioning.tasks, conditioning.prior.names)
    components = [
        [with_effects(*pair) for pair in zip(*both, strict=True)]
        for both in zip(conditioning.prior.components, fitted.components, strict=True)
    ]
    tables = conditioning.prior.with_components(components).to_tensors()
    save_tensors(path, tables, {"schema": conditioning.to_json()["schema"]})
    print(f"wrote {path}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
