"""
Fill a blink, several times
===========================

A gap is sampled given the gaze on both sides. Several draws show what is not known: pupil-locked
averages, saccade counts and fixation maps can be computed over them.
"""

import matplotlib.pyplot as plt
import numpy as np

import gazediffusion as gd

# %%
# A simulated recording with blinks, as an EyeLink would write it.

config = gd.SimulationConfig(n_participants=1, minutes=0.4, rate_hz=250, seed=4, binocular=False)
recording = next(gd.simulate(config)).recording
draws = gd.load("default").fill(recording, draws=5, seed=0)
print(len(draws), "draws,", draws[0].is_filled["right"].sum(), "samples filled")

# %%
# Known samples are kept to the bit; ``Recording.is_filled`` marks the others.

is_filled = draws[0].is_filled["right"]
edges = np.flatnonzero(np.diff(is_filled.astype(int)))
first, stop = edges[0] + 1, edges[1] + 1
shown = slice(max(first - 150, 0), stop + 150)
seconds = recording.time_ms / 1000

figure, axes = plt.subplots(2, 1, figsize=(8, 5), sharex=True)
for row, name in enumerate("xy"):
    for number, draw in enumerate(draws):
        label = "5 draws" if number == 0 else None
        gap = slice(first - 1, stop + 1)
        axes[row].plot(
            seconds[gap], draw.gaze_px["right"][row, gap], color="C1", linewidth=1, label=label
        )
    known = np.where(is_filled, np.nan, draws[0].gaze_px["right"][row])
    axes[row].plot(seconds[shown], known[shown], color="C0", label="recorded")
    axes[row].axvspan(seconds[first], seconds[stop], color="0.85", zorder=0, label="blink")
    axes[row].set_ylabel(f"{name} (px)")
axes[1].set_xlabel("time (s)")
axes[0].legend(loc="best", fontsize=11)
plt.show()

# %%
# For files: ``gazediffusion fill recording.asc -o filled --draws 5`` (:doc:`/howto/fill_gaps`).
