"""
Follow a target
===============

Gaze that follows a jumping dot has latencies, undershoot and corrective saccades. Test an algorithm
of calibration or of saccade latency on it: when and where the dot jumped is known.
"""

import matplotlib.pyplot as plt
import numpy as np

import gazediffusion as gd

model = gd.load("default")
screen = model.screen_of("dots")

# %%
# A target is a table of jumps: when, and where to.

time_ms = np.array([0.0, 1500.0, 3000.0, 4500.0, 6000.0])
x = np.array([0.0, -0.5, 0.4, -0.2, 0.55], dtype=np.float32)
y = np.array([0.0, 0.3, -0.4, 0.5, 0.0], dtype=np.float32)
target = gd.Targets("my dots", time_ms, x, y)

gaze = model.sample(8, task="dots", targets=[target], seconds=8, seed=0)
x_deg = gaze.to_numpy("deg")[:, 0]
seconds = np.arange(gaze.length) / gaze.rate_hz

figure, axes = plt.subplots(figsize=(8, 4))
axes.plot(seconds, x_deg.T, color="C0", linewidth=0.8, alpha=0.7)
axes.plot([], color="C0", label="gaze, 8 windows")
target_deg = screen.to_degrees(screen.to_pixels(np.stack([x, y])))[0]
axes.stairs(target_deg, [*time_ms / 1000, 8], baseline=None, color="C1", lw=2, label="target")
axes.set(xlabel="time (s)", ylabel="x (deg)", xlim=(0, 8))
axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()

# %%
# Latency of the first saccade after each jump.

latencies = []
for window in range(len(gaze)):
    onsets = np.array([one.onset_ms for one in gaze.events(window) if one.event == "saccade"])
    for jump_ms in time_ms[1:]:
        after = onsets[onsets > jump_ms + 80] - jump_ms
        latencies += after[:1].tolist()
print(f"{len(latencies)} jumps, median latency {np.median(latencies):.0f} ms")
