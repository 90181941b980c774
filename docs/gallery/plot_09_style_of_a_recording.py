"""
Gaze in the style of a participant
==================================

Participants differ: some make long fixations, some large saccades. Half a minute of a recording is
enough to generate more gaze in its style, for instance to augment a study.
"""

import matplotlib.pyplot as plt
import numpy as np

import gazediffusion as gd

model = gd.load("default")

# %%
# Two participants. They are synthetic here, so that the example needs no data: windows with many
# and with few saccades. Any recording of eight seconds or more takes their place
# (``like=gd.read("recording.asc")``).


def n_saccades(windows):
    """Saccades of each window."""
    return np.array(
        [
            sum(event.event == "saccade" for event in windows.events(number))
            for number in range(len(windows))
        ]
    )


pool = model.sample(16, task="movies", seed=0)
order = np.argsort(n_saccades(pool))
participants = {"few saccades": pool.select(order[:4]), "many saccades": pool.select(order[-4:])}

# %%
# Windows in the style of each.

figure, axes = plt.subplots(figsize=(7, 4))
for number, (name, recorded) in enumerate(participants.items()):
    alike = model.sample(8, like=recorded, task="movies", seed=1)
    for offset, windows, marker, colour in ((0, recorded, "s", "C0"), (0.3, alike, "o", "C1")):
        counts = n_saccades(windows)
        axes.plot(np.full(len(counts), number + offset), counts, marker, color=colour, alpha=0.6)
        axes.plot(number + offset, counts.mean(), "_", color="k", markersize=28)
    print(f"{name}: {n_saccades(recorded).mean():.1f} given, {n_saccades(alike).mean():.1f} alike")
axes.plot([], "s", color="C0", label="given")
axes.plot([], "o", color="C1", label="generated like it")
axes.plot([], "_", color="k", markersize=20, label="mean")
axes.set_xticks([0.15, 1.15], participants)
axes.set(ylabel="saccades per window of 8 s", xlim=(-0.3, 1.8))
axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()
