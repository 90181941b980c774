"""The paper's published numbers, under the keys that tables.py gives the same numbers.

Basnet et al., "Diffusion models for eye-gaze trajectory generation using position and velocity
representations". JS is in nats (its KS and JS pairs are impossible in bits); speeds are in
normalized units per sample, durations in seconds. Each block names its table or section.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Published:
    """A number of the paper, with its SD over three seeds where one is given."""

    mean: float
    sd: float | None = None


Table = dict[str, dict[str, Published]]


def _table(columns: Sequence[str], rows: Mapping[str, Any]) -> Table:
    """Published numbers by row and column; pairs are mean and SD, None is not given."""
    table: Table = {}
    for name, values in rows.items():
        found = (values,) if len(columns) == 1 else values
        table[name] = {
            column: Published(*value) if isinstance(value, tuple) else Published(value)
            for column, value in zip(columns, found, strict=True)
            if value is not None
        }
    return table


# Section "Dataset" and appendix table "Combined hyperparameter configuration".
N_PARTICIPANTS = 28
N_HELD_OUT_PARTICIPANTS = 5
N_TRAIN_WINDOWS = {"position": 3265, "velocity": 425}
N_HELD_OUT_WINDOWS = {"position": 1136, "velocity": 127}
N_PARAMETERS = 19_350_914
N_EPOCHS = 500

# Abstract, and sections "Position-space model" and "Velocity-space model".
HIGHEST_FEATURE_JS = 0.030
MARKOV_REDUCTION_PERCENT = {"ks": 71.4, "js": 93.0}
FGD_BELOW_NAIVE_PERCENT = 99
EVENT_BOUNDS_PERCENT = {"fixation_duration_s": 2, "fixation_count": 2, "saccade_peak_speed": 1}
SACCADE_UNDERCOUNT_PERCENT = 15
BEST_VALIDATION_LOSS = Published(0.0060, 0.0001)
REFERENCE_EPOCH = 462
REFERENCE_TRAINING_LOSS = 0.0074
AUG_GAP_TO_TRTR = 0.006
VELOCITY_HIGHEST_JS = Published(0.015, 0.005)
HIGHEST_RHO1 = 0.06
PSD_ORDER = 1e-4

# Table "Position-space model. Feature-level agreement" (tab:position_features). Its row "Mean" is
# the mean of eight, without path length. The abstract gives the mean JS of nine; the mean KS of
# nine follows from the nine rows.
_FEATURES = _table(
    ("ks", "js"),
    {
        "mean_speed": ((0.149, 0.036), (0.0249, 0.0096)),
        "max_speed": ((0.150, 0.034), (0.0152, 0.0062)),
        "path_length": ((0.149, 0.036), (0.0249, 0.0096)),
        "x_range": ((0.159, 0.020), (0.0122, 0.0035)),
        "y_range": ((0.115, 0.012), (0.0067, 0.0018)),
        "x_std": ((0.186, 0.016), (0.0206, 0.0030)),
        "y_std": ((0.101, 0.016), (0.0051, 0.0013)),
        "displacement": ((0.142, 0.011), (0.0100, 0.0019)),
        "fixation_ratio": ((0.099, 0.056), (0.0296, 0.0173)),
        "mean of eight": ((0.138, 0.013), (0.0155, 0.0038)),
        "mean of nine": (0.139, (0.016, 0.004)),
    },
)
# Appendix table "Wasserstein-1 distance per kinematic feature" (tab:appendix_position_w1).
_W1 = _table(
    ("w1",),
    {
        "mean_speed": (0.0006, 0.0002),
        "max_speed": (0.0379, 0.0075),
        "path_length": (1.2195, 0.3671),
        "x_range": (0.1355, 0.0254),
        "y_range": (0.1071, 0.0056),
        "x_std": (0.0631, 0.0065),
        "y_std": (0.0361, 0.0038),
        "displacement": (0.1390, 0.0204),
        "fixation_ratio": (0.0163, 0.0114),
    },
)
# Appendix table "Kinematic Markov baseline" (tab:appendix_markov_perfeature): eight features.
_MARKOV = _table(
    ("real", "ks", "js"),
    {
        "mean_speed": (0.0058, 0.731, 0.347),
        "max_speed": (0.2095, 0.460, 0.355),
        "x_range": (1.4699, 0.589, 0.225),
        "y_range": (1.3502, 0.348, 0.108),
        "x_std": (0.4405, 0.339, 0.112),
        "y_std": (0.3815, 0.157, 0.049),
        "displacement": (1.0730, 0.435, 0.155),
        "fixation_ratio": (0.9121, 0.790, 0.416),
        "mean of eight": (None, 0.481, 0.221),
    },
)
# Section "Position-space model": Frechet Gaze Distance of the model and four baselines.
_FGD = _table(
    ("fgd",),
    {
        "diffusion": (13.79, 2.97),
        "kinematic-markov": 1648.77,
        "positional-markov": 467.49,
        "uniform": 2752.88,
        "gaussian": 2699.22,
    },
)
# Appendix table "I-VT fixation and saccade statistics" (tab:appendix_ivt), reference run.
_EVENTS = _table(
    ("real", "generated", "ks", "js"),
    {
        "fixation_duration_s": (0.344, 0.351, 0.053, 0.0017),
        "fixation_dispersion": (0.0074, 0.0108, 0.162, 0.0442),
        "fixation_count": (21.81, 21.41, 0.112, 0.0155),
        "saccade_amplitude": (0.183, 0.217, 0.104, 0.0027),
        "saccade_peak_speed": (0.0624, 0.0618, 0.049, 0.0012),
        "saccade_duration_s": (0.0167, 0.0195, 0.111, 0.0057),
        "saccade_count": (26.79, 22.82, 0.299, 0.0703),
    },
)
for _row in _EVENTS.values():
    _above = 100.0 * (_row["generated"].mean / _row["real"].mean - 1.0)
    _row["above_real"] = Published(float(f"{_above:.3g}"))
# Appendix table "Position-space sampling ablations" (tab:appendix_ddim_ablation), reference run.
# Steps and weights: mean speed. Eta: mean of the eight features.
_SAMPLING = _table(
    ("ks", "js"),
    {
        "steps 10": (0.191, 0.0565),
        "steps 25": (0.211, 0.0348),
        "steps 50": (0.180, 0.0243),
        "steps 100": (0.158, 0.0186),
        "steps 200": (0.151, 0.0140),
        "eta 0": (0.135, 0.0135),
        "eta 0.2": (0.162, 0.0168),
        "eta 0.5": (0.257, 0.0528),
        "eta 1": (0.356, 0.1015),
        "raw": (0.277, None),
        "ema": (0.158, None),
    },
)
# Section "Position-space model", ablation of the objective, reference run.
_OBJECTIVE = _table(("loss", "fgd"), {"eps": (0.0059, 11.86), "x0": (0.0995, 16782.0)})
# Section "Position-space model", on validation loss; the reference run from its ablations.
_SEEDS = _table(
    ("loss", "js_8", "ks_8", "fgd"),
    {
        "paper, seed 123": (0.006147, 0.01225, None, 12.35),
        "paper, reference run": (0.0059, 0.0135, 0.135, 11.86),
    },
)
# Appendix table "Downstream TSTR protocol" (tab:appendix_tstr), with the text's digits. The text
# says AUG was computed for the reference run alone; the table gives it an SD.
_DOWNSTREAM = _table(
    ("r2", "mae"),
    {
        "trtr": ((0.7999, 0.0467), 1.9219),
        "tstr": ((0.6612, 0.0219), (2.7423, 0.0970)),
        "aug": ((0.794, 0.02), (2.04, 0.09)),
        "tstr / trtr": (82.7, None),
    },
)
# Table "Velocity-space model" (tab:velocity_results). The mean of five is the abstract's.
_VELOCITY = _table(
    ("js", "rho1", "psd"),
    {
        "v_x": ((2.19e-3, 0.50e-3), (0.0278, 0.0038), (1.31e-4, 0.02e-4)),
        "v_y": ((7.31e-3, 0.89e-3), (0.0568, 0.0092), (1.52e-4, 0.04e-4)),
        "speed": ((8.34e-3, 1.36e-3), (0.0157, 0.0026), (1.82e-4, 0.12e-4)),
        "log_speed": ((0.0146, 0.0049), (0.0530, 0.0115), (1.72e-4, 0.36e-4)),
        "turning_angle": ((3.0e-4, 2.0e-4), None, None),
        "path_length": ((0.207, 0.020), None, None),
        "mean of five": (0.0065, None, None),
    },
)

# table -> row -> column -> number
NUMBERS: dict[str, Table] = {
    "features": _FEATURES,
    "w1": _W1,
    "markov": _MARKOV,
    "fgd": _FGD,
    "events": _EVENTS,
    "event-distances": _EVENTS,
    "sampling": _SAMPLING,
    "objective": _OBJECTIVE,
    "seeds": _SEEDS,
    "downstream": _DOWNSTREAM,
    "velocity": _VELOCITY,
}


def find(table: str, row: str, column: str) -> Published | None:
    """The paper's number of a key, if it gives one."""
    return NUMBERS.get(table, {}).get(row, {}).get(column)
