"""Fit the annotator of a model: how much labels of generated gaze vary, as hand labels do.

    python runs/annotator.py GAZECOM.safetensors --model joint -n 600 [--fit labels.json]

GAZECOM: windows with hand labels (`prepare`). Training participants alone take part. A network
that was trained on the others labels the windows of each participant. It agrees less with the hand
labels of these windows than with their most probable labels; the ratio of both sample F1 is what
drawn labels of generated gaze are to have, relative to its most probable labels. The strengths
for which they have it are searched for by class. --fit writes them (`gazediffusion generate
--annotator-labels` reads them as labels.json in the model's folder). Prints a table in Markdown;
runs/labels.py has the agreement with held-out participants.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gazediffusion as gd
from gazediffusion.evaluation.detectors import NetworkDetector
from gazediffusion.evaluation.event_scores import match_samples
from gazediffusion.generation.label_sequences import Annotator, most_probable_sequence
from gazediffusion.generation.labelling import Labeller
from gazediffusion.geometry import Floats

N_FOLDS, STEPS = 3, 400
N_ROUNDS, N_AVERAGED = 14, 6  # of the search; each takes another draw
MOST = 5.0  # of a strength: where no agreement is left to lose
Labels = NDArray[np.uint8]


def disagreement(labels: Labels, found: Sequence[Labels]) -> Floats:
    """One less the sample F1 of each class, mean over the labels of several detectors.

    It is zero of a class that neither has.
    """
    scores = [np.nan_to_num(match_samples(labels, one).f1(), nan=1.0) for one in found]
    return np.asarray(1 - np.mean(scores, axis=0))


def by_others(
    train: gd.Windows, some: gd.Windows, generated: gd.Windows, device: str
) -> tuple[Labels, list[Labels]]:
    """Labels of some windows, and of generated ones, by networks that know no participant of them.

    Each network is trained on windows of the participants of other folds.
    """
    names = np.random.default_rng(0).permutation(np.unique(some.participant))
    own = np.empty((len(some), some.length), dtype=np.uint8)
    made = []
    for fold in range(N_FOLDS):
        is_left_out = np.isin(train.participant, names[fold::N_FOLDS])
        rest = train.select(np.flatnonzero(~is_left_out)).subsample(len(some))
        detector = NetworkDetector.fit([rest], fold, STEPS, device=device)
        here = np.flatnonzero(np.isin(some.participant, names[fold::N_FOLDS]))
        own[here] = detector.labels(some.select(here))
        made.append(detector.labels(generated))
        print(f"fold {fold + 1} of {N_FOLDS}", flush=True)
    return own, made


def fitted(probabilities: Floats, found: Sequence[Labels], target: Floats) -> dict[str, float]:
    """The strengths with which drawn labels agree with those found as `target` says, by class.

    What disagrees beyond the most probable labels grows about with the square of a strength.
    """
    least = disagreement(most_probable_sequence(probabilities) + np.uint8(1), found)
    asked = np.maximum(1 - target - least, 0.0)
    strengths, kept = np.ones(len(target)), []
    for number in range(N_ROUNDS):
        drawn = Annotator(_named(strengths), {}).draw(probabilities, number) + np.uint8(1)
        excess = np.maximum(disagreement(drawn, found) - least, 1e-6)
        strengths = np.minimum(strengths * np.sqrt(np.clip(asked / excess, 0.25, 4)), MOST)
        kept.append(strengths)
    return _named(np.mean(kept[-N_AVERAGED:], axis=0))


def _named(strengths: Floats) -> dict[str, float]:
    return dict(zip(gd.EVENT_CLASSES, np.round(strengths, 3).tolist(), strict=True))


def main(given: Sequence[str] | None = None) -> None:
    """Fit, write where asked to, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path)
    parser.add_argument("--model", default="joint")
    parser.add_argument("--task", default="movies")
    parser.add_argument("-n", type=int, default=600, help="real windows, and generated ones")
    parser.add_argument("--fit", type=Path, help="write the strengths")
    arguments = parser.parse_args(given)
    windows = gd.Windows.load(arguments.windows).of_task(arguments.task).dequantized(0)
    train = windows.select(np.flatnonzero((windows.cut_labels() > 0).all(axis=1))).train
    some, model = train.subsample(arguments.n), gd.load(arguments.model)
    labeller = Labeller(model.run, model.generator().batch_size)
    generated = model.sample(arguments.n, task=arguments.task, seed=1)
    print(f"generated {len(generated)} windows", flush=True)
    probable = labeller.labels(some.cut())
    p = labeller.probabilities(generated.cut())
    own, made = by_others(train, some, generated, str(model.device))
    hand, clean = (1 - disagreement(one, [own]) for one in (some.cut_labels(), probable))
    before = 1 - disagreement(most_probable_sequence(p) + np.uint8(1), made)
    target = before * np.divide(hand, clean, out=np.ones_like(clean), where=clean > 0)
    annotator = Annotator(
        fitted(p, made, target),
        {
            "task": arguments.task,
            "n_windows": len(some),
            "n_participants": len(np.unique(some.participant)),
            "weights_sha256": model.run.weights_sha256,
        },
    )
    after = 1 - disagreement(annotator.draw(p, 0) + np.uint8(1), made)
    columns = ["hand labels", "most probable", "generated, most probable", "asked for", "drawn"]
    print(f"\n| class | {' | '.join(columns)} | strength |\n|---|{'---:|' * 6}")
    for k, name in enumerate(gd.EVENT_CLASSES):
        cells = [f"{one[k]:.3f}" for one in (hand, clean, before, target, after)]
        print(f"| {name} | {' | '.join(cells)} | {annotator.strengths[name]:.3f} |")
    if arguments.fit:
        annotator.save(arguments.fit)
        print(f"\nwrote {arguments.fit}")


if __name__ == "__main__":
    main()
