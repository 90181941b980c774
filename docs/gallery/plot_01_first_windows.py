"""
First windows of a task
=======================

Generate eight seconds of reading and of film viewing, look at them, and save them.
"""

import matplotlib.pyplot as plt
import numpy as np

import gazediffusion as gd

model = gd.load("default")
print(model)

# %%
# A task is chosen by its name. Window k of a seed is always the same window, and each window has
# the screen, rate and resolution of its task.

gaze = {task: model.sample(2, task=task, seed=3) for task in ("reading", "movies")}
print(gaze["reading"], gaze["reading"].screen.in_words())

# %%
# The path on the screen above, x(t) and y(t) below.

figure, axes = plt.subplots(2, 2, figsize=(9, 6), height_ratios=(1.4, 1))
for column, (task, windows) in enumerate(gaze.items()):
    path_px, path_deg = windows.to_numpy("px")[0], windows.to_numpy("deg")[0]
    seconds = np.arange(windows.length) / windows.rate_hz
    screen = windows.screen
    axes[0, column].plot(*path_px, linewidth=0.9)
    axes[0, column].set(
        title=f"synthetic {task}",
        xlim=(0, screen.width_px),
        ylim=(screen.height_px, 0),
        aspect="equal",
        xlabel="x (px)",
        ylabel="y (px)",
    )
    axes[1, column].plot(seconds, path_deg[0], label="x")
    axes[1, column].plot(seconds, path_deg[1], label="y", linestyle="--")
    axes[1, column].set(xlabel="time (s)", ylabel="position (deg)")
axes[1, 1].legend(ncols=2)
plt.show()

# %%
# One row per sample, with the card of the model inside the file.

gaze["reading"].save("reading.parquet", overwrite=True)
gaze["reading"].to_frame().head(3)

# %%
# On the command line: ``gazediffusion generate -n 2 --task reading --seed 3 -o reading.parquet``.
