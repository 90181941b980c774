"""
Train an event detector on synthetic labels
===========================================

Hand labels are scarce. The packaged model gives gaze with the event class of every sample; a small
detector is trained on it and tested on simulated recordings whose true events are known.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import gazediffusion as gd
from gazediffusion.evaluation.labels import ForestDetector, match_samples

synthetic = gd.load("default").sample(12, task="movies", seed=0, labels=True)
print(synthetic, synthetic.cut_labels().shape)

# %%
# The labels of one window: 1 fixation, 2 saccade, 3 pursuit, 4 noise.

x_deg, labels = synthetic.to_numpy("deg")[0, 0], synthetic.cut_labels()[0]
seconds = np.arange(synthetic.length) / synthetic.rate_hz
figure, axes = plt.subplots(figsize=(8, 3.6))
for number, (name, marker) in enumerate(zip(gd.EVENT_CLASSES, "o^sx", strict=True), start=1):
    is_class = labels == number
    if is_class.any():
        axes.plot(seconds[is_class], x_deg[is_class], marker, markersize=3, label=name)
axes.set(xlabel="time (s)", ylabel="x (deg)", xlim=(0, 8))
axes.legend(loc="upper left", bbox_to_anchor=(1, 1), markerscale=2)
plt.show()

# %%
# Recordings to test on: simulated, with their true labels. Blinks have no gaze and are left out.

config = gd.SimulationConfig(n_participants=3, minutes=0.5, rate_hz=250, binocular=False, seed=1)
gaze, truth = [], []
for trial in gd.simulate(config):
    clean = np.nan_to_num(trial.recording.gaze_px["right"], nan=0.0)[:, :2000]
    gaze.append(config.screen.to_normalized(clean))
    truth.append(np.where(trial.labels == 4, 0, trial.labels)[:2000])
test = gd.Windows.from_array(np.stack(gaze), 250, config.screen, labels=np.stack(truth))
test = replace(test, gaze=np.clip(test.gaze, -1.2, 1.2))

# %%
# A random forest over features of each sample, and its F1 score by class.

detector = ForestDetector.fit([synthetic])
f1 = match_samples(test.cut_labels(), detector.labels(test)).f1()
figure, axes = plt.subplots(figsize=(5, 3))
axes.barh(gd.EVENT_CLASSES[:2], f1[:2])
axes.set(xlabel="F1 of samples (1 is perfect)", xlim=(0, 1))
axes.invert_yaxis()
plt.show()

# %%
# With your own labelled recordings: ``examples/train_detector.py`` and
# :doc:`/howto/label_events`.
