# SPDX-License-Identifier: Apache-2.0
"""Random settings of the small tasks: half near the best known, the rest worse or hopeless."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from runs import Optimizer, Run, Schedule

SIZES = ("small", "base", "large")
OPTIMIZERS: dict[Optimizer, float] = {"adamw": 0.5, "sgd": 0.2, "rmsprop": 0.15, "adagrad": 0.15}
# Powers of ten from a good learning rate, and how likely: half of the runs, then three tenths.
DISTANCES = (((0.0, 0.4), 0.5), ((0.4, 1.3), 0.3), ((1.8, 3.0), 0.2))


@dataclass(frozen=True)
class Search:
    """What is drawn from for a collection: a group for each size and batch."""

    collection: str
    good_lr: float  # of AdamW
    good_sgd_lr: float
    batches: Sequence[int]
    steps: Sequence[int]  # of each size
    log_every: int
    runs: int
    weight_decays: Sequence[float] = (0.0, 0.01, 0.1)


SEARCHES = (
    Search("numbers-translation", 5e-3, 1e-1, (4, 16), (600, 450, 300), 3, 21),
    Search("tones-conv", 5e-3, 5e-2, (8, 32), (1500, 1200, 800), 5, 21),
    Search("cancer-mlp", 5e-3, 5e-2, (16, 64), (1500, 1200, 1000), 5, 36),
    Search("diabetes-mlp", 5e-3, 3e-2, (16, 64), (1500, 1200, 1000), 5, 36),
    Search("cartpole-policy", 2e-2, 1e-1, (6, 12), (200, 200, 200), 2, 21),
    Search("digits-contrastive", 3e-3, 1e-1, (32, 96), (1000, 800, 800), 5, 36),
    Search("digits-diffusion", 3e-3, 5e-2, (16, 64), (1200, 1000, 800), 5, 26),
    Search("sums-mlp", 1e-2, 3e-1, (128, 577), (2000, 2000, 1600), 8, 21, (0.1, 0.5, 1.0, 2.0)),
    Search("ratings-factors", 1e-2, 1e0, (64, 512), (1500, 1500, 1200), 5, 36),
    Search("graph-convolution", 1e-2, 1e0, (32, 200), (800, 700, 600), 4, 36, (0.0, 0.01, 0.5)),
)


def _lr(good: float, rng: np.random.Generator) -> float:
    ranges, chances = zip(*DISTANCES, strict=True)
    near, far = ranges[rng.choice(len(ranges), p=chances)]
    power = rng.choice([-1, 1]) * rng.uniform(near, far)
    return float(f"{good * 10**power:.0e}")


def _draw(search: Search, number: int) -> Run:
    """Draw run `number` of a search; its group follows from the number."""
    rng = np.random.default_rng([8, *search.collection.encode(), number])
    size = number % len(SIZES)
    batch = search.batches[number // len(SIZES) % len(search.batches)]
    optimizer: Optimizer = rng.choice(list(OPTIMIZERS), p=list(OPTIMIZERS.values()))
    # A step of RMSprop is about one of Adam; Adagrad's shrink as it goes.
    factor = {"adamw": 1.0, "sgd": 1.0, "rmsprop": 0.5, "adagrad": 4.0}[optimizer]
    good = search.good_sgd_lr if optimizer == "sgd" else factor * search.good_lr
    return Run(
        search.collection,
        SIZES[size],
        rng.choice(get_args(Schedule)),
        _lr(good, rng),
        batch,
        search.steps[size],
        number,
        log_every=search.log_every,
        optimizer=optimizer,
        warmup=float(rng.choice([0.0, 0.05, 0.2])),
        clip=float(rng.choice([1.0, math.inf], p=[0.75, 0.25])),
        weight_decay=float(rng.choice(search.weight_decays)) if optimizer == "adamw" else 0.01,
    )


def searched() -> Iterator[Run]:
    """Draw every run of every search, the first of each, then the second of each, and so on."""
    for number in range(max(search.runs for search in SEARCHES)):
        for search in SEARCHES:
            if number < search.runs:
                yield _draw(search, number)
