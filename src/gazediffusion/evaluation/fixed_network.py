"""A network trained once to tell real from synthetic snippets, for sets nobody may train against.

The deep two-sample test (`deep_test`) needs real windows to train on; this network is inside the
package, and its scores of held-out participants are in a definition as a histogram. It was trained
on half of the training participants, against baselines, planted defects and the packaged model
(`runs/define_benchmark.py`). It finds what these have in common with a set. It is not trained for
the set: an AUC near 0.5 does not say that no network can tell the set from real gaze.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.files import read_safetensors, sha256_of, written_whole

if TYPE_CHECKING:
    from gazediffusion.evaluation.snippet_network import SnippetNetwork
    from gazediffusion.models.representations import Joint

Floats = NDArray[np.float64]

NETWORK = "network.safetensors"
SECONDS = 2.0
N_BINS = 400


@dataclass(frozen=True, eq=False)
class FixedNetwork:
    """The network, the scales of its channels, the samples of a snippet, and its file's hash."""

    network: SnippetNetwork
    representation: Joint
    length: int
    sha256: str = ""

    def scores(self, gaze: NDArray[np.float32]) -> Floats:
        """Logits (window, snippet) of windows (window, 2, time), higher is less like real gaze."""
        import torch

        from gazediffusion.evaluation.snippet_network import n_crops_of, scores

        channels = self.representation.encode(torch.from_numpy(np.ascontiguousarray(gaze)))
        n_crops = n_crops_of(gaze.shape[-1], self.length)
        found = scores(self.network, channels, self.length, n_crops)
        return np.asarray(found.double().cpu().numpy())

    def save(self, path: Path) -> None:
        """Write the weights in 16 bits."""
        from safetensors.numpy import save_file

        tensors = {
            key: one.cpu().numpy().astype(np.float16)
            for key, one in self.network.state_dict().items()
            if one.is_floating_point()
        }
        about = {
            "widths": [block.inner[0].out_channels for block in self.network.blocks],
            "length": self.length,
            "representation": self.representation.to_json(),
        }
        with written_whole(path) as temporary:
            save_file(tensors, temporary, {"gazediffusion": json.dumps(about)})

    @classmethod
    def load(cls, path: Path) -> FixedNetwork:
        """Read what `save` wrote."""
        import torch

        from gazediffusion.evaluation.snippet_network import SnippetNetwork
        from gazediffusion.models.representations import Joint

        tensors, about = read_safetensors(path, "np", "this is no network of the benchmark")
        network = SnippetNetwork(tuple(about["widths"]), 0.0)
        weights = {key: torch.from_numpy(one.astype(np.float32)) for key, one in tensors.items()}
        network.load_state_dict(weights, strict=False)  # without the counters of batches
        return cls(
            network.eval(),
            Joint.from_json(about["representation"]),
            int(about["length"]),
            sha256_of(path),
        )


@lru_cache(maxsize=2)
def load_network(path: Path) -> FixedNetwork:
    """The network of a version, read once."""
    return FixedNetwork.load(path)


def histogram_of(scores: Floats) -> dict[str, Any]:
    """Shares of scores between their extremes, as in a definition."""
    counts, edges = np.histogram(scores.ravel(), N_BINS)
    return {"low": edges[0], "high": edges[-1], "share": counts / counts.sum()}


def shares_below(scores: Floats, real: Mapping[str, Any]) -> Floats:
    """For each window (window,) the share of real scores below its own, meaned over its snippets.

    Its mean over windows is the area under the ROC curve.
    """
    edges = np.linspace(real["low"], real["high"], len(real["share"]) + 1)
    below = np.concatenate([[0.0], np.cumsum(real["share"])])
    return np.asarray(np.interp(scores, edges, below / below[-1]).mean(axis=1))


def trained_network(
    real: Sequence[NDArray[np.float32]],
    synthetic: Sequence[NDArray[np.float32]],
    rate_hz: float,
    seed: int = 0,
    n_steps: int = 600,
    batch_size: int = 64,
    widths: tuple[int, ...] = (16, 32, 48, 64),
    on_step: Any = lambda step: None,
) -> FixedNetwork:
    """A network trained on real and on synthetic windows, (window, 2, time) each.

    real, synthetic: windows to train on, and windows that stop the training.
    """
    import torch

    from gazediffusion.evaluation.snippet_network import Fitting, fit
    from gazediffusion.models.representations import Joint

    representation = Joint.of_gaze(real[0], rate_hz)
    sides = [
        tuple(
            representation.encode(torch.from_numpy(np.ascontiguousarray(one[part])))
            for one in (real, synthetic)
        )
        for part in (0, 1)
    ]
    length = min(round(SECONDS * rate_hz), real[0].shape[-1])
    fitting = Fitting(widths, n_steps, batch_size, n_check=50)
    network = fit((sides[0][0], sides[0][1]), (sides[1][0], sides[1][1]), length, fitting, seed,
                  on_step)  # fmt: skip
    return FixedNetwork(network, representation, length)
