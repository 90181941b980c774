"""Deep two-sample test: can a network tell synthetic from real windows of other participants?

A residual network is trained on snippets of training participants and of synthetic windows and
tested on held-out participants and other synthetic windows. The result is the area under the ROC
curve (AUC) for several lengths of snippets, of gaze as it is and below 30 Hz: 0.5 is chance, 1
always recognised. Beside it: the same test between two groups of real participants (the floor) and
for planted defects of known size, which a test that works must find. Frequency bands and events
are taken out of the tested windows to see where the network looks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.subsampling import evenly_spaced
from gazediffusion.document import Estimate
from gazediffusion.evaluation import occlusion
from gazediffusion.evaluation.auc import Draws, Wins
from gazediffusion.evaluation.deep_result import DeepConfig, DeepTest
from gazediffusion.evaluation.distances import draw_weights
from gazediffusion.evaluation.gaze_sets import GazeSet, stream
from gazediffusion.evaluation.trials import (
    MIN_TESTED,
    MIN_WINDOWS,
    Defect,
    RealSets,
    Trial,
    jitter,
    median_step,
    scaled,
)
from gazediffusion.seeds import seed_for

if TYPE_CHECKING:
    import torch

    from gazediffusion.evaluation.snippet_network import Fitting, SnippetNetwork

Floats = NDArray[np.floating[Any]]
Results = dict[str, Any]
Progress = Callable[[str], None]

# Planted defects: white noise of this share of the median step; gaze scaled about its mean.
JITTER, SCALE = 1.0, 1.25
# Windows of each side whose gradients are taken.
_N_SALIENCY = 256
_N_REPLICATES = 500
_FITTED = 200  # windows that scales are fitted to


def deep_tests(
    training: GazeSet,
    held_out: GazeSet,
    synthetic: Mapping[str, GazeSet],
    config: DeepConfig,
    seed: int = 0,
    progress: Progress = lambda name: None,
    with_references: bool = True,
    defects: Mapping[str, Defect] | None = None,
    on_set: Callable[[Results], None] = lambda so_far: None,
) -> Results:
    """The test of every synthetic set, the floor and the planted defects, as plain values.

    training, held_out: real participants to train on and to test. with_references: False leaves
    out the floor and the planted defects. defects: other ones than jitter and speed, by name; none
    of an empty mapping. on_set: called with the results so far when a set is done.
    """
    from gazediffusion.device import choose_device

    device = choose_device(config.device)
    config = config.on(device)
    real = RealSets(training, held_out, config.n_windows, seed)
    step = median_step(training.gaze[evenly_spaced(len(training.gaze), _FITTED)])
    if defects is None:
        defects = {
            f"planted: jitter of {JITTER:g} median step": jitter(JITTER, step),
            f"planted: all speeds times {SCALE:g}": scaled(SCALE),
        }
    trials: dict[str, Callable[[int], Trial]] = {
        name: lambda k, one=one: real.against(one, k)  # type: ignore[misc]
        for name, one in synthetic.items()
    }
    if with_references:
        trials["floor"] = real.between_participants
        for name, defect in defects.items():
            trials[name] = lambda k, name=name, defect=defect: (  # type: ignore[misc]
                real.with_defect(name, defect, k)
            )
    cells = config.cells(training.gaze.shape[-1], training.rate_hz)
    # Refuse what cannot be done before hours of training.
    first = {name: of(0) for name, of in trials.items()}
    work = _Work(config, cells, seed, device, progress, len(trials))
    results: Results = {
        "settings": {**asdict(config), "seed": seed, "tests": list(cells), "jitter": JITTER * step},
        "floor": None,
        "planted": {},
        "synthetic": {},
    }
    for name, of in trials.items():
        tested = [first[name] if k == 0 else of(k) for k in range(config.n_seeds or 1)]
        found = work.test(name, tested).to_plain()
        if name in synthetic:
            results["synthetic"][name] = found
        elif name in defects:
            results["planted"][name] = found
        else:
            results["floor"] = found
        on_set(results)
    return results


class _Work:
    """The trainings of all sets, one after another, with progress."""

    def __init__(
        self,
        config: DeepConfig,
        cells: Mapping[str, tuple[int, float | None]],
        seed: int,
        device: torch.device,
        progress: Progress,
        n_sets: int,
    ) -> None:
        self.config, self.cells, self.seed, self.device = config, cells, seed, device
        self.progress = progress
        self.n_trainings = n_sets * len(cells) * (config.n_seeds or 1)
        self.n_done = 0
        self.n_steps = 0
        self.begun = time.monotonic()

    def test(self, name: str, trials: list[Trial]) -> DeepTest:
        """All trials of one set."""
        found: dict[str, list[Results]] = {cell: [] for cell in self.cells}
        for number, trial in enumerate(trials):
            masks = [self._masks(one) for one in trial.test]
            for low_pass_hz in dict.fromkeys(hz for _, hz in self.cells.values()):
                encoded = _Encoded(trial, low_pass_hz, self.device)
                for cell, (_, hz) in self.cells.items():
                    if hz == low_pass_hz:
                        found[cell].append(self._run(name, cell, trial, number, masks, encoded))
        sides = [max(int(trial.test[k].group.max()) for trial in trials) + 1 for k in (0, 1)]
        rng = stream(self.seed, f"{name}, deep intervals")
        first, second = (draw_weights(n, _N_REPLICATES, rng) for n in sides)
        drawn = Draws(first, second, len(trials), rng)

        def estimates(key: str, cell: str) -> dict[str, Estimate]:
            names = dict.fromkeys(one for run in found[cell] for one in run[key])
            return {
                one: drawn.estimate([run[key][one] for run in found[cell] if one in run[key]])
                for one in names
            }

        return DeepTest(
            auc={cell: drawn.estimate([one["wins"] for one in found[cell]]) for cell in found},
            by_task={cell: estimates("by_task", cell) for cell in found},
            without={cell: of for cell in found if (of := estimates("without", cell))},
            saliency={
                cell: _mean([one["saliency"] for one in runs])
                for cell, runs in found.items()
                if runs[0]["saliency"]
            },
            n_train=len(trials[0].train[0].gaze),
            n_test=len(trials[0].test[0].gaze),
        )

    def _masks(self, one: GazeSet) -> occlusion.Masks | None:
        if not self.config.with_occlusion:
            return None
        return occlusion.event_masks(one.gaze, one.screens, one.rate_hz)

    def _run(
        self,
        name: str,
        cell: str,
        trial: Trial,
        number: int,
        masks: list[occlusion.Masks | None],
        encoded: _Encoded,
    ) -> Results:
        """One training and what it finds on the tested windows."""
        from gazediffusion.evaluation.snippet_network import Fitting, fit, n_crops_of, scores

        length, low_pass_hz = self.cells[cell]
        fitting = Fitting(
            widths=self.config.widths,
            n_steps=self.config.n_steps or 1,
            batch_size=self.config.batch_size or 2,
        )
        n_before = self.n_steps

        def on_step(step: int) -> None:
            self.n_steps = n_before + step
            self._show(name, cell, number, step, fitting)

        key = seed_for(self.seed, number, *cell.encode())
        network = fit(encoded.train, encoded.stop, length, fitting, key, on_step)
        self.n_done, test = self.n_done + 1, encoded.test
        n_crops = n_crops_of(test[0].shape[-1], length)
        logits = [scores(network, one, length, n_crops).cpu().numpy() for one in test]
        found: Results = {
            "wins": Wins.of(trial.test, logits),
            "by_task": _by_task(trial.test, logits),
            "without": {},
            "saliency": {},
        }
        is_longest = length == max(one for one, _ in self.cells.values())
        if self.config.with_occlusion and is_longest:

            def again(sets: list[GazeSet], *responses: occlusion.Response) -> Wins:
                logits = [
                    scores(network, encoded.encode(one, *responses), length, n_crops).cpu().numpy()
                    for one in sets
                ]
                return Wins.of((sets[0], sets[1]), logits)

            found["without"] = _without(trial.test, masks, low_pass_hz, again)
            found["saliency"] = _saliency(network, test, masks, trial.test[0].rate_hz)
        return found

    def _show(self, name: str, cell: str, number: int, step: int, fitting: Fitting) -> None:
        """Which training, its steps a second, and the time left at most."""
        seconds = time.monotonic() - self.begun
        done = self.n_done + step / fitting.n_steps
        left = seconds / done * (self.n_trainings - done)
        self.progress(
            f"deep test: {name}, {cell}, seed {number + 1} of {self.config.n_seeds}, training "
            f"{self.n_done + 1} of {self.n_trainings}, step {step}, "
            f"{self.n_steps / max(seconds, 1e-9):.0f} steps/s, "
            f"at most {left // 60:.0f}:{left % 60:02.0f} left"
        )


class _Encoded:
    """Channels (window, 4, time) of a trial on the device, of gaze below a frequency if given.

    Scales are those of the training participants.
    """

    def __init__(self, trial: Trial, low_pass_hz: float | None, device: torch.device) -> None:
        from gazediffusion.models.representations import Joint

        training = trial.train[0]
        self.device, self.rate_hz = device, training.rate_hz
        self.filters = [occlusion.low_pass(low_pass_hz)] if low_pass_hz else []
        fitted = training.gaze[evenly_spaced(len(training.gaze), _FITTED)]
        self.representation = Joint.of_gaze(self._filtered(fitted).cpu().numpy(), self.rate_hz)
        self.train, self.stop, self.test = (
            (self.encode(a), self.encode(b)) for a, b in (trial.train, trial.stop, trial.test)
        )

    def encode(self, one: GazeSet, *responses: occlusion.Response) -> torch.Tensor:
        """The channels of a set, through further filters where given."""
        return self.representation.encode(self._filtered(one.gaze, *responses))

    def _filtered(self, gaze: Floats, *responses: occlusion.Response) -> torch.Tensor:
        import torch

        given = torch.from_numpy(np.ascontiguousarray(gaze, dtype=np.float32)).to(self.device)
        return occlusion.filtered(given, self.rate_hz, [*self.filters, *responses])


def _by_task(sides: tuple[GazeSet, GazeSet], logits: list[Floats]) -> dict[str, Wins]:
    """Wins among the windows of each task that both sides have enough of."""
    tasks = [np.array(one.tasks, dtype=object) for one in sides]
    found = {}
    for task in sorted(set(tasks[0]) & set(tasks[1])):
        rows = tasks[0] == task, tasks[1] == task
        n_participants = len(np.unique(sides[0].group[rows[0]]))
        if min(row.sum() for row in rows) >= MIN_WINDOWS and n_participants >= MIN_TESTED:
            found[task] = Wins.of(sides, logits, rows)
    return found


def _without(
    sides: tuple[GazeSet, GazeSet],
    masks: list[occlusion.Masks | None],
    low_pass_hz: float | None,
    again: Callable[..., Wins],
) -> dict[str, Wins]:
    """Wins when a frequency band or an event is taken out of the tested windows."""
    found = {}
    for name, band in occlusion.bands(sides[0].rate_hz, low_pass_hz).items():
        found[name] = again(list(sides), occlusion.without_band(*band))
    if masks[0] is not None and masks[1] is not None:
        for event in masks[0]:
            found[event] = again(
                [
                    replace(one, gaze=occlusion.without_samples(one.gaze, of[event]))
                    for one, of in zip(sides, masks, strict=True)
                    if of is not None
                ]
            )
    return found


def _saliency(
    network: SnippetNetwork,
    test: tuple[torch.Tensor, torch.Tensor],
    masks: list[occlusion.Masks | None],
    rate_hz: float,
) -> Results:
    """Size of the input gradient over time and in events, relative to its mean."""
    from gazediffusion.evaluation.snippet_network import input_gradients

    kept = [one[:_N_SALIENCY] for one in test]
    size = np.concatenate([input_gradients(network, one).cpu().numpy() for one in kept])
    size = size / max(float(size.mean()), 1e-30)
    n_seconds = max(1, round(size.shape[-1] / rate_hz))
    found: Results = {"time": [float(p.mean()) for p in np.array_split(size, n_seconds, axis=1)]}
    if masks[0] is not None and masks[1] is not None:
        for event in masks[0]:
            is_event = np.concatenate([of[event][:_N_SALIENCY] for of in masks if of is not None])
            if is_event.any():
                found[event] = float(size[is_event].mean())
    return found


def _mean(runs: list[Results]) -> Results:
    """Means over trials of numbers and of lists of numbers, by name."""
    return {
        key: np.mean([one[key] for one in runs if key in one], axis=0).tolist() for key in runs[0]
    }
