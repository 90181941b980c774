"""
A minute of reading
===================

Gaze of any length: each window of eight seconds is given the end of the one before, and the time
since the recording began, so that the reader goes down the page.
"""

import matplotlib.pyplot as plt
import numpy as np

import gazediffusion as gd

model = gd.load("default")
gaze = model.sample(1, task="reading", seconds=60, seed=1, track_loss=True)
print(gaze, gaze.screen.in_words())

# %%
# With ``track_loss=True`` it blinks as the training participants did; lost samples are NaN.

seconds = np.arange(gaze.length) / gaze.rate_hz
x, y = gaze.to_numpy("px")[0]
is_lost = gaze.is_lost[0]

figure, axes = plt.subplots(2, 1, figsize=(9, 5.5), sharex=True)
for axis, values, name, colour in zip(axes, (x, y), "xy", ("C0", "C1"), strict=True):
    axis.plot(seconds, values, color=colour, linewidth=0.8)
    axis.set_ylabel(f"{name} (px)")
    for first in np.flatnonzero(np.diff(is_lost.astype(int), prepend=0) == 1):
        axis.axvline(seconds[first], color="0.6", linewidth=0.8, zorder=0)
axes[1].invert_yaxis()
axes[1].set_xlabel("time (s), grey: blinks and losses")
axes[0].set_title("a minute of synthetic reading")
plt.show()

print(f"{is_lost.mean():.1%} of the samples are lost")
