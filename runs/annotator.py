"""Fit the annotator of a model: how much labels of generated gaze vary, as hand labels do.

    python runs/annotator.py GAZECOM.safetensors --model joint -n 600 [--fit labels.json]

GAZECOM: windows with hand labels (`prepare`). Training participants alone take part. A network
that was trained on the others labels the windows of each participant. It agrees less with the hand
labels of these windows than with their most probable labels; the ratio of both is what drawn labels
of generated gaze are to have, relative to its most probable labels, in F1 of samples and of events.
The strength of each class and the scatter of its borders are searched for together (Nelder and Mead
1965, least squares). A border between two classes is that of the class with more scatter; fixations
have none of their own. --fit writes both (`gazediffusion generate --annotator-labels` reads them as
labels.json in the model's folder).
Prints a table in Markdown; runs/labels.py has the agreement with held-out participants.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import gazediffusion as gd
from gazediffusion.evaluation.detectors import NetworkDetector
from gazediffusion.evaluation.event_scores import match_events, match_samples
from gazediffusion.evaluation.labelled_events import labelled_throughout
from gazediffusion.generation.label_sequences import Annotator, most_probable_sequence
from gazediffusion.generation.labelling import Labeller
from gazediffusion.geometry import Floats

N_FOLDS, STEPS = 3, 400
N_EVALUATIONS = 300  # of the search
BEGINNING = (0.8, 0.5, 0.7, 2.0, 0.8, 4.0, 10.0)  # of the search: strengths, borders
SCATTERED = gd.EVENT_CLASSES[1:]  # classes with a scatter of their own
Labels = NDArray[np.uint8]


def agreement(labels: Labels, found: Sequence[Labels]) -> Floats:
    """F1 (samples or events, class), mean over the labels of several detectors.

    It is one of a class that neither has.
    """
    scores = [
        [np.nan_to_num(match(labels, one).f1(), nan=1.0) for match in (match_samples, match_events)]
        for one in found
    ]
    return np.asarray(np.mean(scores, axis=0))


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


def fitted(
    probabilities: Floats, found: Sequence[Labels], target: Floats, fitted_on: Mapping[str, Any]
) -> Annotator:
    """The annotator whose labels have the agreement `target` (score, class) with those found."""

    def annotator(logs: Floats) -> Annotator:
        values, n = np.exp(logs).tolist(), len(gd.EVENT_CLASSES)
        borders = dict(zip(SCATTERED, values[n:], strict=True))
        strengths = dict(zip(gd.EVENT_CLASSES, values[:n], strict=True))
        return Annotator(strengths, {gd.EVENT_CLASSES[0]: 0.0, **borders}, fitted_on)

    def loss(logs: Floats) -> float:
        drawn = annotator(logs).draw(probabilities, 1) + np.uint8(1)
        return float(((100 * (agreement(drawn, found) - target)) ** 2).sum())

    start = np.log(BEGINNING)
    simplex = start + np.concatenate([np.zeros((1, len(start))), 0.5 * np.eye(len(start))])
    options: Any = {
        "initial_simplex": simplex,
        "maxfev": N_EVALUATIONS,
        "xatol": 0.03,
        "fatol": 0.05,
    }
    return annotator(minimize(loss, start, method="Nelder-Mead", options=options).x)


def main(given: Sequence[str] | None = None) -> None:
    """Fit, write where asked to, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path)
    parser.add_argument("--model", default="joint")
    parser.add_argument("--task", default="movies")
    parser.add_argument("-n", type=int, default=600, help="real windows, and generated ones")
    parser.add_argument("--fit", type=Path, help="write strengths and borders")
    arguments = parser.parse_args(given)
    windows = gd.Windows.load(arguments.windows).of_task(arguments.task).dequantized(0)
    train = labelled_throughout(windows).train
    some, model = train.subsample(arguments.n), gd.load(arguments.model)
    labeller = Labeller(model.run, model.generator().batch_size)
    generated = model.sample(arguments.n, task=arguments.task, seed=1)
    print(f"generated {len(generated)} windows", flush=True)
    probable = labeller.labels(some.cut())
    p = labeller.probabilities(generated.cut())
    own, made = by_others(train, some, generated, str(model.device))
    hand, clean = (agreement(one, [own]) for one in (some.cut_labels(), probable))
    before = agreement(most_probable_sequence(p) + np.uint8(1), made)
    target = before * np.divide(hand, clean, out=np.ones_like(clean), where=clean > 0)
    annotator = fitted(
        p,
        made,
        target,
        {
            "task": arguments.task,
            "n_windows": len(some),
            "n_participants": len(np.unique(some.participant)),
            "weights_sha256": model.run.weights_sha256,
        },
    )
    after = agreement(annotator.draw(p, 0) + np.uint8(1), made)
    rows = {
        "hand labels, training participants": hand,
        "most probable labels of the same gaze": clean,
        "most probable labels of generated gaze": before,
        "asked for: the same ratio": target,
        "drawn labels of generated gaze": after,
    }
    print(f"\n| F1 of the folds' networks | score | {' | '.join(gd.EVENT_CLASSES)} |")
    print(f"|---|---|{'---:|' * len(gd.EVENT_CLASSES)}")
    for name, scores in rows.items():
        for score, values in zip(("samples", "events"), scores, strict=True):
            print(f"| {name} | {score} | {' | '.join(f'{one:.3f}' for one in values)} |")
    for name, fit in (("strengths", annotator.strengths), ("borders (samples)", annotator.borders)):
        print(f"\n{name}: {', '.join(f'{one} {value:.2f}' for one, value in fit.items())}")
    if arguments.fit:
        annotator.save(arguments.fit)
        print(f"\nwrote {arguments.fit}")


if __name__ == "__main__":
    main()
