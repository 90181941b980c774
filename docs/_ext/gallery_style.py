"""One style of figures in the gallery, and nothing left of the files that an example writes."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "gallery"


def reset(gallery: dict[str, Any], file: str) -> None:
    """Set colours and sizes of figures, and remove what an example wrote beside itself."""
    for path in FOLDER.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.suffix not in (".py", ".rst"):
            path.unlink()
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib import cycler

    plt.rcdefaults()
    plt.rcParams.update(
        {
            "figure.dpi": 110,
            "savefig.dpi": 110,
            "figure.constrained_layout.use": True,
            "font.size": 13,
            "axes.spines.top": False,
            "axes.spines.right": False,
            # Okabe and Ito (2008): distinguishable with any colour vision.
            "axes.prop_cycle": cycler(
                color=["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
            ),
        }
    )
    warnings.simplefilter("ignore", UserWarning)
