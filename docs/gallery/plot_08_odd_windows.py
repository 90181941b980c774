"""
Find odd windows
================

Which windows of a recording should somebody look at? A score compares each with the gaze the model
knows, as a percentile among held-out participants. Here a defect is planted and found.
"""

import matplotlib.pyplot as plt
import numpy as np

import gazediffusion as gd

model = gd.load("default")
gaze = model.sample(8, task="reading", seed=0, quality="fast")

# %%
# Two of eight windows get jitter of a pixel, as of a loose head mount.

array, screen = gaze.to_numpy("px"), gaze.screen
rng = np.random.default_rng(0)
array[[2, 5]] += rng.normal(0, 1.0, array[[2, 5]].shape)
damaged = gd.Windows.from_array(array, gaze.rate_hz, screen, tasks="reading", unit="px")

scores = gd.score(damaged, model=model, has_likelihood=False)
frame = scores.to_frame()
print(frame.select("trial", "profile_percentile", "oddest_span_ms"))

# %%
# The oddest first. Above the 99th percentile fewer than one in a hundred real windows lie.

figure, axes = plt.subplots(figsize=(7, 3.6))
percentile = frame["profile_percentile"].to_numpy()
is_damaged = np.isin(np.arange(8), [2, 5])
place = np.arange(8)
for chosen, colour, mark, name in (
    (is_damaged, "C1", "//", "with jitter of 1 px"),
    (~is_damaged, "C0", "", "as generated"),
):
    axes.bar(place[chosen], percentile[chosen], color=colour, hatch=mark, label=name)
axes.axhline(99, color="0.4", linestyle="--")
axes.set(xlabel="window", ylabel="percentile among\nreal windows", ylim=(0, 105))
axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()
