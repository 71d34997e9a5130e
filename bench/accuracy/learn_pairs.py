#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Learn the constants of `src/hardware/pairs.cpp` from Gavel's table of pairs.

    python bench/accuracy/learn_pairs.py TRACES/gavel_throughputs.csv.gz [--without v100]

The six constants of the Gaussian process (three variances, noise, likeness between models, length)
are those under which the measured speeds of all GPU types together are most likely. It prints them
and, with every kind of job left out in turn, the error of its speeds and its partners'. `--without`
learns from the other GPU types and reports on that one: nothing of it was seen before.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import minimize

from glidepath._bench.hardware import Kind, read_sharing

Floats = NDArray[np.float64]
NAMES = ("kAlpha", "kBeta", "kGamma", "kNoise", "kOtherModel", "kLength")


class Gpu:
    """Directed pairs of one GPU type: kinds, their distances, who is beside whom, how fast."""

    def __init__(self, kinds: list[Kind], speeds: dict[tuple[str, str], float]) -> None:
        names = [kind.name for kind in kinds]
        x = np.array([kind.features for kind in kinds])
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        self.distance = np.sqrt(((x[:, None] - x[None]) ** 2).sum(axis=2))
        models = np.array([kind.model for kind in kinds])
        self.same = models[:, None] == models[None]
        self.first = np.array([names.index(a) for a, _ in speeds])
        self.other = np.array([names.index(b) for _, b in speeds])
        self.speed = np.array(list(speeds.values()))

    def covariance(self, theta: Floats) -> Floats:
        alpha, beta, gamma, noise = np.exp(theta[:4])
        likeness = np.exp(-self.distance / np.exp(theta[5]))
        likeness = np.where(self.same, likeness, likeness / (1.0 + np.exp(-theta[4])))
        suffers = likeness[np.ix_(self.first, self.first)]
        harms = likeness[np.ix_(self.other, self.other)]
        covariance: Floats = alpha * suffers + beta * harms + gamma * suffers * harms
        covariance[np.diag_indices_from(covariance)] += noise
        return covariance

    def surprise(self, theta: Floats) -> float:
        """Negative log likelihood."""
        try:
            root = cholesky(self.covariance(theta), lower=True)
        except LinAlgError:
            return 1e10
        z = solve_triangular(root, self.speed - self.speed.mean(), lower=True)
        return float(0.5 * z @ z + np.log(np.diag(root)).sum())

    def left_out(self, theta: Floats) -> Floats:
        """Errors of all pairs of a kind when none of them was seen, for each kind in turn."""
        inverse = np.linalg.inv(self.covariance(theta))
        pull = inverse @ (self.speed - self.speed.mean())
        errors = []
        for kind in np.unique(self.first):
            held = np.flatnonzero((self.first == kind) | (self.other == kind))
            rest = np.linalg.solve(inverse[np.ix_(held, held)], pull[held])
            guess = np.clip(self.speed[held] - rest, 0.05, max(1.0, self.speed.max()))
            errors.append(np.abs(guess - self.speed[held]))
        return np.concatenate(errors)


def main() -> None:
    """Learn, print the constants and the errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table")
    parser.add_argument("--without", default="", help="GPU type to report on, unseen")
    arguments = parser.parse_args()
    gpus = {name: Gpu(*data) for name, data in read_sharing(arguments.table).items()}
    seen = [gpu for name, gpu in gpus.items() if name != arguments.without]
    start = np.array([*np.log([0.01, 0.01, 0.01, 0.001]), -1.0, 1.0])
    # A weak prior keeps what the data do not tell within reach.
    found = minimize(
        lambda theta: sum(gpu.surprise(theta) for gpu in seen) + 0.02 * (theta**2).sum(),
        start,
        method="L-BFGS-B",
        options={"maxiter": 20},
    )
    values = [*np.exp(found.x[:4]), 1.0 / (1.0 + np.exp(-found.x[4])), np.exp(found.x[5])]
    for name, value in zip(NAMES, values, strict=True):
        print(f"constexpr double {name} = {value:.2g};")
    for name, gpu in gpus.items():
        if arguments.without in ("", name):
            errors = gpu.left_out(found.x)
            print(f"{name}: mean error of {errors.size} speeds {errors.mean():.3f}")


if __name__ == "__main__":
    main()
