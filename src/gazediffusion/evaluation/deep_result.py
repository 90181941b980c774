"""Settings and results of the deep two-sample test, typed over plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gazediffusion.document import Estimate
from gazediffusion.errors import GazeError

if TYPE_CHECKING:
    import torch

Results = dict[str, Any]

ABOUT = (
    "AUC of a residual network that tells synthetic from real snippets, trained on training "
    "participants and tested on held-out participants and other synthetic windows. 0.5 is chance, "
    "1 always recognised; lower is better. Floor: two groups of real participants, which is 0.5 on "
    "average and scatters. Planted: half of the real windows with a defect of known size."
)


@dataclass(frozen=True)
class DeepConfig:
    """How the deep two-sample test is done; None is chosen by the device.

    seconds: lengths of snippets; a longer one than the windows is the whole window.
    low_pass_hz: the tests are also done below this frequency. n_windows: of a side at most, in
    training and in test. n_seeds: trials, each of another seed and fold of participants.
    n_steps, batch_size: of training at most; widths: of the network's blocks. device: auto, cpu
    or cuda. with_occlusion: also where the network looks.

    >>> import torch
    >>> DeepConfig(seconds=(2.0,)).on(torch.device("cpu")).n_steps
    300
    """

    seconds: tuple[float, ...] = (0.5, 2.0, 8.0)
    low_pass_hz: float = 30.0
    n_windows: int = 4000
    n_seeds: int | None = None
    n_steps: int | None = None
    batch_size: int | None = None
    widths: tuple[int, ...] = (32, 64, 96, 128)
    device: str = "auto"
    with_occlusion: bool = True

    def __post_init__(self) -> None:
        if not self.seconds or min(self.seconds) <= 0 or not self.low_pass_hz > 0:
            raise GazeError("`seconds` and `low_pass_hz` must be above 0")
        counts = self.n_windows, self.n_seeds, self.n_steps, self.batch_size, *self.widths
        if not self.widths or min(one for one in counts if one is not None) < 1:
            raise GazeError(
                "`n_windows`, `n_seeds`, `n_steps`, `batch_size`, `widths` are 1 or more"
            )

    def on(self, device: torch.device) -> DeepConfig:
        """The same with every setting chosen: minutes on a GPU, tens of minutes on two cores."""
        is_gpu = device.type == "cuda"
        n_seeds, n_steps, batch_size = (3, 1000, 256) if is_gpu else (2, 300, 64)
        return replace(
            self,
            n_seeds=self.n_seeds or n_seeds,
            n_steps=self.n_steps or n_steps,
            batch_size=self.batch_size or batch_size,
            device=device.type,
        )

    def cells(self, n_samples: int, rate_hz: float) -> dict[str, tuple[int, float | None]]:
        """Name -> (samples of a snippet, low-pass in Hz) of each test of windows like these."""
        lengths = sorted({min(round(one * rate_hz), n_samples) for one in self.seconds})
        filters = [None, self.low_pass_hz] if self.low_pass_hz < rate_hz / 2 else [None]
        return {
            f"{length / rate_hz:g} s" + (f" below {hz:g} Hz" if hz else ""): (length, hz)
            for hz in filters
            for length in lengths
        }


@dataclass(frozen=True)
class DeepTest:
    """What the test finds of one set; AUCs have 95 % intervals over participants and seeds.

    auc: by test, as "8 s below 30 Hz". by_task: of windows of one task, by test and task.
    without: AUC of the longest snippets by what is taken out of the tested windows, by test.
    saliency: size of the input gradient relative to its mean, by test: "time" (second of the
    window,) and each event. n_train, n_test: windows of a side.

    >>> test = DeepTest(auc={"2 s": Estimate(0.55, (0.50, 0.60))}, n_train=100, n_test=50)
    >>> test.auc["2 s"].value
    0.55
    """

    auc: dict[str, Estimate]
    by_task: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    without: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    saliency: dict[str, dict[str, Any]] = field(default_factory=dict)
    n_train: int = 0
    n_test: int = 0

    def to_plain(self) -> Results:
        """As it stands in results."""
        return {
            **asdict(self),
            "auc": _plain(self.auc),
            "by_task": {key: _plain(one) for key, one in self.by_task.items()},
            "without": {key: _plain(one) for key, one in self.without.items()},
        }

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> DeepTest:
        """Read what `to_plain` gave."""
        nested = {
            key: {test: _estimates(one) for test, one in row[key].items()}
            for key in ("by_task", "without")
        }
        return cls(**{**row, "auc": _estimates(row["auc"]), **nested})


def _plain(cells: Mapping[str, Estimate]) -> Results:
    return {
        key: {"value": one.value, "interval": list(one.interval or [])}
        for key, one in cells.items()
    }


def _estimates(cells: Mapping[str, Any]) -> dict[str, Estimate]:
    return {
        key: Estimate(one["value"], tuple(one["interval"]) or None) for key, one in cells.items()
    }
