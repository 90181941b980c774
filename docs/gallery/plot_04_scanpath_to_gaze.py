"""
From a scanpath to gaze
=======================

A model of attention gives fixations; an eye tracker gives 250 positions a second. Turn the one into
the other, as often as needed.
"""

import matplotlib.pyplot as plt
import numpy as np

import gazediffusion as gd

model = gd.load("default")
screen = model.screen_of("movies")

# %%
# A table as a saliency model writes it: one row per fixation, durations in milliseconds.

with open("fixations.csv", "w") as file:
    file.write("order,x_px,y_px,duration_ms\n")
    file.write("1,300,200,300\n2,980,180,260\n3,900,520,420\n4,420,560,240\n5,640,360,500\n")
scanpaths = gd.read_scanpaths("fixations.csv", screen)

# %%
# Each window takes the scanpath; the seed decides the drift, the saccades and their curvature.

gaze = model.sample(3, task="movies", scanpath=scanpaths, seed=0)
path = scanpaths[0]
places_px = screen.to_pixels(np.stack([path.x, path.y]))

figure, axes = plt.subplots(figsize=(8, 4.8))
axes.scatter(*places_px, s=path.duration_ms, color="0.8", label="fixations asked for")
for number, one in enumerate(gaze.to_numpy("px")):
    axes.plot(*one, linewidth=1, label=f"gaze {number + 1}")
for number, (x, y) in enumerate(places_px.T, start=1):
    axes.annotate(str(number), (x, y), xytext=(14, 10), textcoords="offset points")
axes.set(
    xlim=(0, screen.width_px),
    ylim=(screen.height_px, 0),
    aspect="equal",
    xlabel="x (px)",
    ylabel="y (px)",
)
axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()

# %%
# The distance between each fixation asked for and the gaze in the middle of it.

on_screen = gaze.to_numpy("deg")
middle_ms = np.cumsum(path.duration_ms + 40) - 40 - path.duration_ms / 2
asked_deg = screen.to_degrees(places_px)
for number, one in enumerate(on_screen, start=1):
    found = one[:, (middle_ms * gaze.rate_hz / 1000).astype(int)]
    error = np.hypot(*(found - asked_deg))
    print(f"gaze {number}: median distance {np.median(error):.2f} deg")
