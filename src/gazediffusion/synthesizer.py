"""A synthesizer of gaze for pymovements: objects with samples, experiment and events.

It is requested in pymovements' issues: generators of gaze to integrate (25, of 2022), and a class
that is initialised with a method and its parameters and whose `synthesize(n)` gives as many gaze
objects as are needed, not arrays, with randomization; rather one method that always gives a single
object and one that always gives a list than one with two types (1019, of 2025).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gazediffusion.model import Model, load

if TYPE_CHECKING:
    import pymovements

    from gazediffusion.data.windows import Windows


class Synthesizer:
    """Synthesizes pymovements' `Gaze` objects with a model.

    model: a packaged model, a run folder, `hf:owner/name` or a loaded model. given: as to
    `Model.sample`, as `task`, `quality` and `labels`. Every object has
    its own summary statistics, drawn from those of the training participants.

    >>> import gazediffusion as gd
    >>> synthesizer = gd.Synthesizer(task="reading", labels=True)
    >>> gazes = synthesizer.synthesize(2, seed=0)
    >>> [len(gaze.samples) for gaze in gazes], gazes[0].experiment.sampling_rate
    ([2000, 2000], 250.0)
    >>> "fixation" in gazes[0].events.frame["name"]
    True
    """

    def __init__(
        self,
        model: Model | Path | str = "default",
        *,
        device: str = "auto",
        **given: Any,
    ) -> None:
        self.model = model if isinstance(model, Model) else load(model, device=device)
        self.settings = given
        self.model.sampling(1, **self.settings)  # refuses what cannot be generated

    def __repr__(self) -> str:
        given = [f"{key}={value!r}" for key, value in self.settings.items() if value]
        return f"Synthesizer({', '.join([self.model.name, *given])})"

    def synthesize(self, n: int, seed: int = 0) -> list[pymovements.Gaze]:
        """The first n objects of a seed, always a list; object k of a seed is always the same.

        Each has pixels, an experiment with screen and rate, and the trial columns participant, task
        and trial. With labels its events are fixations, saccades, pursuits and noise; with losses
        also blinks. metadata states that it is synthetic, by which model and from which seed.
        """
        return list(self.synthesize_dataset(n, seed).gaze)

    def synthesize_one(self, seed: int = 0) -> pymovements.Gaze:
        """The first object of a seed, always one."""
        return self.synthesize(1, seed)[0]

    def synthesize_dataset(self, n: int, seed: int = 0) -> pymovements.Dataset:
        """The same objects as a `Dataset` in memory, whose methods apply to all of them."""
        windows: Windows = self.model.sample(n, seed=seed, **self.settings)
        card = windows.provenance["card"]
        dataset = windows.to_recordings().to_pymovements()
        for gaze in dataset.gaze:
            gaze.metadata |= {
                "synthetic": True,
                "gazediffusion_version": card["gazediffusion_version"],
                "model": card["model"],
                "seed": seed,
            }
        return dataset
