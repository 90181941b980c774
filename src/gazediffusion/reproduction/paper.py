"""The paper's published numbers, under the names that quantities.py gives the same quantities.

Basnet et al., "Diffusion models for eye-gaze trajectory generation using position and velocity
representations". JS is in nats (its KS and JS pairs are impossible in bits); speeds are in
normalized units per sample, durations in seconds. Each block names its table or section.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A number of the paper, with its SD over three seeds where one is given."""

    mean: float
    sd: float | None = None


@dataclass(frozen=True)
class Agreement:
    """Distances of one distribution to that of real, held-out people."""

    ks: Published
    js: Published | None


def _agreement(ks: float, ks_sd: float, js: float, js_sd: float) -> Agreement:
    return Agreement(Published(ks, ks_sd), Published(js, js_sd))


def _single(ks: float, js: float | None) -> Agreement:
    return Agreement(Published(ks), None if js is None else Published(js))


# Section "Dataset" and appendix table "Combined hyperparameter configuration".
N_PARTICIPANTS = 28
N_HELD_OUT_PARTICIPANTS = 5
N_TRAIN_WINDOWS = {"position": 3265, "velocity": 425}
N_HELD_OUT_WINDOWS = {"position": 1136, "velocity": 127}
N_PARAMETERS = 19_350_914
N_EPOCHS = 500

# Table "Position-space model. Feature-level agreement" (tab:position_features).
FEATURES = {
    "mean_speed": _agreement(0.149, 0.036, 0.0249, 0.0096),
    "max_speed": _agreement(0.150, 0.034, 0.0152, 0.0062),
    "path_length": _agreement(0.149, 0.036, 0.0249, 0.0096),
    "x_range": _agreement(0.159, 0.020, 0.0122, 0.0035),
    "y_range": _agreement(0.115, 0.012, 0.0067, 0.0018),
    "x_std": _agreement(0.186, 0.016, 0.0206, 0.0030),
    "y_std": _agreement(0.101, 0.016, 0.0051, 0.0013),
    "displacement": _agreement(0.142, 0.011, 0.0100, 0.0019),
    "fixation_ratio": _agreement(0.099, 0.056, 0.0296, 0.0173),
}
# Its row "Mean" leaves path length out.
MEAN_OF_EIGHT = _agreement(0.138, 0.013, 0.0155, 0.0038)
# Abstract. The mean KS of nine is not given; it follows from the table's nine rows.
MEAN_JS_OF_NINE = Published(0.016, 0.004)
MEAN_KS_OF_NINE = Published(round(sum(one.ks.mean for one in FEATURES.values()) / 9, 3))
HIGHEST_FEATURE_JS = 0.030

# Appendix table "Wasserstein-1 distance per kinematic feature" (tab:appendix_position_w1).
W1 = {
    "mean_speed": Published(0.0006, 0.0002),
    "max_speed": Published(0.0379, 0.0075),
    "path_length": Published(1.2195, 0.3671),
    "x_range": Published(0.1355, 0.0254),
    "y_range": Published(0.1071, 0.0056),
    "x_std": Published(0.0631, 0.0065),
    "y_std": Published(0.0361, 0.0038),
    "displacement": Published(0.1390, 0.0204),
    "fixation_ratio": Published(0.0163, 0.0114),
}

# Appendix table "Kinematic Markov baseline" (tab:appendix_markov_perfeature): eight features.
REAL_MEANS = {
    "mean_speed": 0.0058,
    "max_speed": 0.2095,
    "x_range": 1.4699,
    "y_range": 1.3502,
    "x_std": 0.4405,
    "y_std": 0.3815,
    "displacement": 1.0730,
    "fixation_ratio": 0.9121,
}
MARKOV = {
    "mean_speed": _single(0.731, 0.347),
    "max_speed": _single(0.460, 0.355),
    "x_range": _single(0.589, 0.225),
    "y_range": _single(0.348, 0.108),
    "x_std": _single(0.339, 0.112),
    "y_std": _single(0.157, 0.049),
    "displacement": _single(0.435, 0.155),
    "fixation_ratio": _single(0.790, 0.416),
}
MARKOV_MEAN_OF_EIGHT = _single(0.481, 0.221)
# By how much the model's mean of eight is below the Markov baseline's, in percent.
MARKOV_REDUCTION_PERCENT = {"ks": 71.4, "js": 93.0}

# Section "Position-space model": Frechet Gaze Distance of the model and four baselines.
FGD = Published(13.79, 2.97)
FGD_BASELINES = {
    "kinematic-markov": 1648.77,
    "positional-markov": 467.49,
    "uniform": 2752.88,
    "gaussian": 2699.22,
}
# "More than 99 % below the naive ones".
FGD_BELOW_NAIVE_PERCENT = 99

# Appendix table "Position-space sampling ablations" (tab:appendix_ddim_ablation), reference run.
# Steps and weights: mean speed. Eta: mean of the eight features.
STEPS = {
    10: _single(0.191, 0.0565),
    25: _single(0.211, 0.0348),
    50: _single(0.180, 0.0243),
    100: _single(0.158, 0.0186),
    200: _single(0.151, 0.0140),
}
ETAS = {
    0.0: _single(0.135, 0.0135),
    0.2: _single(0.162, 0.0168),
    0.5: _single(0.257, 0.0528),
    1.0: _single(0.356, 0.1015),
}
WEIGHTS = {"raw": _single(0.277, None), "ema": _single(0.158, None)}


@dataclass(frozen=True)
class Event:
    """An I-VT statistic: means of real and generated windows, and their distances."""

    real: float
    generated: float
    ks: float
    js: float


# Appendix table "I-VT fixation and saccade statistics" (tab:appendix_ivt), reference run.
EVENTS = {
    "fixation_duration_s": Event(0.344, 0.351, 0.053, 0.0017),
    "fixation_dispersion": Event(0.0074, 0.0108, 0.162, 0.0442),
    "fixation_count": Event(21.81, 21.41, 0.112, 0.0155),
    "saccade_amplitude": Event(0.183, 0.217, 0.104, 0.0027),
    "saccade_peak_speed": Event(0.0624, 0.0618, 0.049, 0.0012),
    "saccade_duration_s": Event(0.0167, 0.0195, 0.111, 0.0057),
    "saccade_count": Event(26.79, 22.82, 0.299, 0.0703),
}
# Abstract and section "Position-space model": generated means within so many percent of real.
EVENT_BOUNDS_PERCENT = {"fixation_duration_s": 2, "fixation_count": 2, "saccade_peak_speed": 1}
SACCADE_UNDERCOUNT_PERCENT = 15


@dataclass(frozen=True)
class Objective:
    """What the network learns to predict: best validation loss and Frechet Gaze Distance."""

    validation_loss: float
    fgd: float


# Section "Position-space model", ablation of the objective, reference run.
OBJECTIVES = {"eps": Objective(0.0059, 11.86), "x0": Objective(0.0995, 16782.0)}

# Section "Position-space model", first paragraph.
BEST_VALIDATION_LOSS = Published(0.0060, 0.0001)
REFERENCE_EPOCH = 462
REFERENCE_TRAINING_LOSS = 0.0074


@dataclass(frozen=True)
class Seed:
    """One trained model of the paper; None is not given."""

    validation_loss: float
    mean_js_of_eight: float
    fgd: float
    mean_ks_of_eight: float | None


# Section "Position-space model", on validation loss; the reference run from its ablations.
SEEDS = {
    "seed 123": Seed(0.006147, 0.01225, 12.35, None),
    "reference run": Seed(0.0059, 0.0135, 11.86, 0.135),
}


@dataclass(frozen=True)
class Score:
    """A predictor of a window's number of fixations, tested on real windows."""

    r2: Published
    mae: Published


# Appendix table "Downstream TSTR protocol" (tab:appendix_tstr), with the text's digits. The text
# says AUG was computed for the reference run alone, the table gives it an SD.
DOWNSTREAM = {
    "trtr": Score(Published(0.7999, 0.0467), Published(1.9219)),
    "tstr": Score(Published(0.6612, 0.0219), Published(2.7423, 0.0970)),
    "aug": Score(Published(0.794, 0.02), Published(2.04, 0.09)),
}
TSTR_PERCENT_OF_TRTR = 82.7
AUG_GAP_TO_TRTR = 0.006


@dataclass(frozen=True)
class Motion:
    """A velocity quantity: JS, lag-one autocorrelation mismatch, spectral distance."""

    js: Published
    rho1: Published | None = None
    psd: Published | None = None


# Table "Velocity-space model" (tab:velocity_results).
VELOCITY = {
    "v_x": Motion(
        Published(2.19e-3, 0.50e-3), Published(0.0278, 0.0038), Published(1.31e-4, 0.02e-4)
    ),
    "v_y": Motion(
        Published(7.31e-3, 0.89e-3), Published(0.0568, 0.0092), Published(1.52e-4, 0.04e-4)
    ),
    "speed": Motion(
        Published(8.34e-3, 1.36e-3), Published(0.0157, 0.0026), Published(1.82e-4, 0.12e-4)
    ),
    "log_speed": Motion(
        Published(0.0146, 0.0049), Published(0.0530, 0.0115), Published(1.72e-4, 0.36e-4)
    ),
    "turning_angle": Motion(Published(3.0e-4, 2.0e-4)),
    "path_length": Motion(Published(0.207, 0.020)),
}
# Abstract: over the five without path length, and the highest of them.
VELOCITY_MEAN_JS = Published(0.0065)
VELOCITY_HIGHEST_JS = Published(0.015, 0.005)
# Section "Velocity-space model": every lag-one mismatch is below this; spectra are "of order".
HIGHEST_RHO1 = 0.06
PSD_ORDER = 1e-4
