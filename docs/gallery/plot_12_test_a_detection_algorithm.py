"""
Test an event detection algorithm
=================================

How does a velocity threshold do at noise of the tracker that you expect? Known events and any
amount of noise answer.
"""

import matplotlib.pyplot as plt
import numpy as np

import gazediffusion as gd

# %%
# Gaze with labels. The simulator knows its true events; the packaged model could give labelled gaze
# of a task instead (``model.sample(8, labels=True)``).

config = gd.SimulationConfig(n_participants=4, minutes=0.5, rate_hz=250, binocular=False, seed=2)
trials = list(gd.simulate(config))
rng = np.random.default_rng(0)


def f1_of_saccades(threshold_deg_s, noise_deg):
    """F1 score of the samples that an I-VT algorithm calls saccades (Salvucci, Goldberg 2000)."""
    hits = found = true = 0
    for trial in trials:
        gaze = trial.recording.screen.to_degrees(trial.recording.gaze_px["right"])
        gaze = gaze + rng.normal(0, noise_deg, gaze.shape)
        speed = np.hypot(*np.gradient(gaze, axis=1)) * config.rate_hz
        is_saccade = trial.labels == 2
        is_found = speed > threshold_deg_s
        usable = np.isfinite(speed) & (trial.labels > 0)
        hits += (is_saccade & is_found & usable).sum()
        found += (is_found & usable).sum()
        true += (is_saccade & usable).sum()
    return 2 * hits / (found + true)


# %%
# The best threshold moves with the noise.

thresholds = np.geomspace(8, 200, 15)
figure, axes = plt.subplots(figsize=(7, 4.2))
for noise_deg, style in ((0.0, "-"), (0.05, "--"), (0.15, ":")):
    scores = [f1_of_saccades(threshold, noise_deg) for threshold in thresholds]
    (line,) = axes.plot(thresholds, scores, style, linewidth=2, label=f"{noise_deg:g} deg")
    best = int(np.argmax(scores))
    axes.plot(thresholds[best], scores[best], "o", color=line.get_color(), markersize=9)
axes.set(
    xscale="log",
    xlabel="velocity threshold (deg/s)",
    ylabel="F1 of saccade samples",
    ylim=(0, 1),
)
axes.legend(title="added noise (SD)", loc="upper left", bbox_to_anchor=(1, 1))
plt.show()
