# SPDX-License-Identifier: Apache-2.0
"""What is written beside each collection about its runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NOTES = (
    "value is the mean minibatch metric since the previous logged step; lr is that of the logged "
    "step; valid_loss is that of a fixed held-out sample, empty where not evaluated; wall_seconds "
    "counts training and validation since the run's first step, on one core of a machine that had "
    "other work; memory_mb is the peak resident memory of the run's process so far. Spikes are "
    "left in."
)
METRIC_NOTES = (
    "value is the metric after the step; lr and wall_seconds are those of the run's other file. "
    "Nothing is smoothed."
)


@dataclass(frozen=True)
class About:
    """What was trained and what the values are."""

    setup: str
    metric: str = "training loss (cross-entropy, nats)"
    direction: Literal["min", "max"] = "min"
    notes: str = NOTES
    beside: str = ""  # the collection with the losses and settings of the same runs


ABOUT = {
    "docs-transformer": About(
        setup=(
            "Decoder-only byte-level transformers (pre-norm, relative positions) predict the "
            "next byte of the Python language reference, 64 bytes at a time."
        ),
    ),
    "docs-lstm": About(
        setup=(
            "Byte-level LSTMs predict the next byte of the docstrings of Python's standard "
            "library, 48 bytes at a time, from a zero state."
        ),
    ),
    "docstring-t5": About(
        setup=(
            "T5-style encoder-decoders over bytes (relative positions, RMSNorm, no biases), "
            "trained from scratch, write the summary line of a standard-library docstring from "
            "its body."
        ),
    ),
    "digits-mlp": About(
        setup=(
            "Fully connected ReLU networks classify scikit-learn's 8x8 digits with fresh "
            "Gaussian noise on every training image; the held-out images have none."
        ),
    ),
    "digits-cnn": About(
        setup=(
            "Convolutional ReLU networks classify scikit-learn's 8x8 digits with fresh Gaussian "
            "noise on every training image; the held-out images have none."
        ),
    ),
    "numbers-translation": About(
        setup=(
            "T5-style encoder-decoders over words translate numbers below a million from English "
            "to French words; 4000 numbers made from a seed, 300 of them held out."
        ),
    ),
    "tones-conv": About(
        setup=(
            "Convolutional ReLU networks classify log spectrograms of 12 made keywords, four "
            "gliding tones each, by speakers that differ in pitch, start, loudness and noise."
        ),
    ),
    "cancer-mlp": About(
        setup=(
            "Fully connected ReLU networks classify scikit-learn's breast cancer table with "
            "fresh Gaussian noise on every training row; the 169 held-out rows have none."
        ),
    ),
    "diabetes-mlp": About(
        setup=(
            "Fully connected ReLU networks regress the standardised score of scikit-learn's "
            "diabetes table; 132 of 442 rows are held out."
        ),
        metric="training loss (mean squared error)",
    ),
    "cartpole-policy": About(
        setup=(
            "Policies balance a pole on a cart by REINFORCE; a batch is that many episodes of at "
            "most 200 steps, each step worth 1."
        ),
        metric="mean return of the episodes played",
        direction="max",
    ),
    "digits-contrastive": About(
        setup=(
            "Fully connected ReLU encoders tell two shifted and noised views of a digit of "
            "scikit-learn from those of the other digits of the minibatch, without labels "
            "(InfoNCE)."
        ),
    ),
    "digits-diffusion": About(
        setup=(
            "Residual networks guess the noise added to scikit-learn's 8x8 digits at 40 times of "
            "a cosine schedule, as denoising diffusion does."
        ),
        metric="training loss (mean squared error of the noise)",
    ),
    "sums-mlp": About(
        setup=("Embeddings and a ReLU layer add residues modulo 31, trained on 60 % of the table."),
    ),
    "ratings-factors": About(
        setup=(
            "Matrix factorisation with biases of 7000 made ratings of 300 items by 400 users, "
            "1400 of them held out."
        ),
        metric="training loss (mean squared error)",
    ),
    "graph-convolution": About(
        setup=(
            "Graph convolutions with dropped inputs name the communities of a made network of "
            "500 nodes from the labels of 200."
        ),
    ),
}
