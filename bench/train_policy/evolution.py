# SPDX-License-Identifier: Apache-2.0
"""CMA-ES (Hansen 2016, arXiv:1604.00772) with mirrored samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Evolution:
    """A normal law over vectors that moves to where a function is small."""

    def __init__(self, start: Floats, step: float, population: int, seed: int) -> None:
        self.centre, self.step, self.generation = np.array(start, float), step, 0
        self.rng = np.random.default_rng(seed)
        n = len(self.centre)
        self.half = population // 2
        weights = np.log(self.half + 0.5) - np.log(np.arange(1, self.half + 1))
        self.weights = weights / weights.sum()
        self.mass = 1 / float((self.weights**2).sum())
        self.rate_step = (self.mass + 2) / (n + self.mass + 5)
        root = np.sqrt((self.mass - 1) / (n + 1))
        self.damping = 1 + 2 * max(0.0, float(root) - 1) + self.rate_step
        self.rate_path = (4 + self.mass / n) / (n + 4 + 2 * self.mass / n)
        self.rate_one = 2 / ((n + 1.3) ** 2 + self.mass)
        many = 2 * (self.mass - 2 + 1 / self.mass) / ((n + 2) ** 2 + self.mass)
        self.rate_many = min(1 - self.rate_one, many)
        self.covariance = np.eye(n)
        self.path, self.step_path = np.zeros(n), np.zeros(n)
        self.length = np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))

    def ask(self) -> Floats:
        """Vectors to try, shape (population, n)."""
        values, self.axes = np.linalg.eigh(self.covariance)
        self.scales = np.sqrt(np.maximum(values, 1e-12))
        z = self.rng.standard_normal((self.half, len(self.centre)))
        self.moves = (np.concatenate([z, -z]) * self.scales) @ self.axes.T
        return self.centre + self.step * self.moves

    def tell(self, values: Floats) -> None:
        """Move: the value of each vector, the least is the best."""
        best = self.moves[np.argsort(values, kind="stable")[: self.half]]
        move = self.weights @ best
        self.centre = self.centre + self.step * move
        self.generation += 1
        white = self.axes @ ((self.axes.T @ move) / self.scales)
        c, cs = self.rate_path, self.rate_step
        self.step_path = (1 - cs) * self.step_path + np.sqrt(cs * (2 - cs) * self.mass) * white
        norm = float(np.linalg.norm(self.step_path))
        settled = 1 - (1 - cs) ** (2 * self.generation)
        slow = norm / np.sqrt(settled) < (1.4 + 2 / (len(self.centre) + 1)) * self.length
        self.path = (1 - c) * self.path + slow * np.sqrt(c * (2 - c) * self.mass) * move
        self.covariance = (
            (1 - self.rate_one - self.rate_many) * self.covariance
            + self.rate_one * np.outer(self.path, self.path)
            + self.rate_many * (best.T * self.weights) @ best
        )
        self.step *= np.exp(min(1.0, cs / self.damping * (norm / self.length - 1)))
