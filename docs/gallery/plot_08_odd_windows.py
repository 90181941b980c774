"""
Find odd windows
================

Which windows of a recording should somebody look at? Scores compare each with the gaze the model
knows, as percentiles among held-out participants. Here defects are planted; most are found.
"""

import matplotlib.pyplot as plt
import numpy as np

import gazediffusion as gd

model = gd.load("default")
gaze = model.sample(6, task="reading", seed=0)

# %%
# One window stays as it is, the others get a defect each.

array, screen = gaze.to_numpy("px"), gaze.screen
rng = np.random.default_rng(0)
names = ["as it is", "jitter 1 px", "jitter 3 px", "grid of 8 px", "2 s interpolated", "reversed"]
array[1] += rng.normal(0, 1, array[1].shape)
array[2] += rng.normal(0, 3, array[2].shape)
array[3] = np.round(array[3] / 8) * 8
array[4][:, 900:1400] = np.linspace(array[4][:, 900], array[4][:, 1400], 500).T
array[5] = array[5][:, ::-1]
damaged = gd.Windows.from_array(array, gaze.rate_hz, screen, tasks="reading", unit="px")

scores = gd.score(damaged, model=model, has_likelihood=False)
frame = scores.to_frame()

# %%
# The denoising error sees noise, the distance of its profile over noise levels sees also gaze that
# is too regular. Neither sees a slow interpolation: no score finds every defect.

figure, axes = plt.subplots(figsize=(8, 4))
place = np.arange(len(names))
for column, label, shift, hatch in (
    ("denoising_error_percentile", "denoising error", -0.2, ""),
    ("profile_percentile", "profile distance", 0.2, "//"),
):
    axes.barh(place + shift, frame[column], height=0.38, label=label, hatch=hatch)
axes.axvline(99, color="0.3", linestyle="--", label="99th percentile")
axes.set_yticks(place, names)
axes.invert_yaxis()
axes.set(xlabel="percentile among windows of held-out participants", xlim=(0, 101))
axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()

# %%
# Where to look, in each window: the oddest half second.

print(frame.select("trial", "oddest_span_ms", "oddest_span_percentile"))
