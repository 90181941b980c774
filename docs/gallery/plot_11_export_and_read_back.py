"""
Files for other tools: BIDS and EyeLink
=======================================

Synthetic gaze is written as an eye tracker would write it, so that a pipeline can be tested end to
end before the first participant arrives. Read it back and compare.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gazediffusion as gd

model = gd.load("default")
settings = {"task": "reading", "track_loss": True, "overwrite": True}
model.sample_to("eyelink", 2, format="asc", **settings)
model.sample_to("bids", 2, format="bids", **settings)

# %%
# What is in an EyeLink file.

path = next(Path("eyelink").rglob("*.asc"))
print("\n".join(path.read_text().splitlines()[:14]))

# %%
# The readers of the package, or any other, read both.

read = {name: next(iter(gd.read(name))) for name in ("eyelink", "bids")}
for name, recording in read.items():
    print(f"{name}: {recording.format}, {len(recording)} samples, {recording.screen.in_words()}")

# %%
# Both formats hold the same gaze, to a tenth of a pixel in EyeLink's.

figure, axes = plt.subplots(figsize=(8, 3.6))
for (name, recording), style, width in zip(read.items(), ("-", "--"), (3, 1.5), strict=True):
    x_px = next(iter(recording.gaze_px.values()))[0]
    seconds = (recording.time_ms - recording.time_ms[0]) / 1000
    axes.plot(seconds, x_px, style, linewidth=width, label=name)
axes.set(xlabel="time (s)", ylabel="x (px)", xlim=(0, 8))
axes.legend(ncols=2, loc="lower right")
plt.show()

first, second = (next(iter(one.gaze_px.values())) for one in read.values())
print(f"largest difference: {np.nanmax(np.abs(first - second)):.2f} px")
