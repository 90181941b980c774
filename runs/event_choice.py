"""Fit by which odds windows with labels are chosen by their events.

    python runs/event_choice.py GAZECOM.safetensors --model joint -n 1200 [--fit events.json]

GAZECOM: windows with hand labels (`prepare`). Those of training participants are labelled by the
model, as generated ones are; windows without hand labels, as of repeated films, are left out.
Windows are generated twice, with the same conditions and other noise. The weight of an event is
that by which the expected number of events in the window taken is that of the training
participants' windows (`generation/event_choice.py`). --fit writes it (`generate --labels
--candidates 2` reads it as events.json in the model's folder). Prints a table in Markdown:
runs/labels.py --candidates 2 has what is chosen beside held-out participants.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import gazediffusion as gd
from gazediffusion.evaluation.labelled_events import labelled_throughout
from gazediffusion.generation.event_choice import EventChoice, count_events, fitted_weight
from gazediffusion.generation.labelling import Labeller

SEED = 2  # others are evaluated


def main(given: Sequence[str] | None = None) -> None:
    """Fit, write where asked to, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path)
    parser.add_argument("--model", default="joint")
    parser.add_argument("--task", default="movies")
    parser.add_argument("--event", default="pursuit", choices=gd.EVENT_CLASSES)
    parser.add_argument("-n", type=int, default=1200, help="real windows, and pairs")
    parser.add_argument("--fit", type=Path, help="write the weight")
    arguments = parser.parse_args(given)
    windows = gd.Windows.load(arguments.windows).of_task(arguments.task).dequantized(0)
    train = labelled_throughout(windows).train
    some, model = train.subsample(arguments.n), gd.load(arguments.model)
    generator = model.generator(task=arguments.task)
    labeller = Labeller(model.run, generator.batch_size, generator.bf16)
    recorded = labeller.labels(some.cut())
    print(f"labelled {len(some)} windows of training participants", flush=True)
    pair = []
    for replicate in range(2):
        every = replace(generator, replicate=replicate)
        pair.append(labeller.labels(every.sample(arguments.n, SEED).cut()))
        print(f"generated {arguments.n} windows", flush=True)
    column = gd.EVENT_CLASSES.index(arguments.event)
    one, other = (count_events(labels)[:, column] for labels in pair)
    weight = fitted_weight(one, other, float(count_events(recorded)[:, column].mean()))
    fitted_on = {
        "n_windows": len(some),
        "n_participants": len(np.unique(some.participant)),
        "weights_sha256": model.run.weights_sha256,
    }
    choice = EventChoice(arguments.task, {arguments.event: weight}, fitted_on)
    is_second = choice.takes_second(count_events(pair[0]), count_events(pair[1]), SEED, 0)
    chosen = np.where(is_second[:, None], pair[1], pair[0])
    print(f"\n| {arguments.event} | events a window | share of samples |\n|---|---:|---:|")
    rows = {"training participants": recorded, "generated": pair[0], "chosen from two": chosen}
    for name, labels in rows.items():
        share = (labels == column + 1).mean()
        print(f"| {name} | {count_events(labels)[:, column].mean():.2f} | {100 * share:.1f} % |")
    apart = np.corrcoef(one, other)[0, 1]
    print(f"\nweight {weight:.3f}; correlation of both numbers of events {apart:.2f}")
    if arguments.fit:
        choice.save(arguments.fit)
        print(f"\nwrote {arguments.fit}")


if __name__ == "__main__":
    main()
