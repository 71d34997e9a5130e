#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Errors of laws for the speeds of pairs of which nothing was measured but each job alone.

    python bench/accuracy/unseen_pairs.py MIG_FOLDER

Prints, for the pairs under MPS and the halves of a card of `glidepath._bench.sharing`, the mean
absolute error of the law that plans rest on, with and without the activity of the memory, of what
one would try first, and of other exponents of the same law. The one constant of a rival is fitted
to the other models: what is printed leaves both models of a pair out. The last lines bound what any
law of this form can do: every exponent of the metrics named is fitted, in hindsight to the very
speeds it is compared with, and without both models.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from glidepath._bench import sharing

Floats = NDArray[np.float64]
Slowdown = Callable[[float, Floats, Floats, Floats, Floats], Floats]  # of c, u1, m1, u2, m2


def left_out(folder: Path, slowdown: Slowdown) -> float:
    """Mean error where c is fitted without the models of the pair."""
    alone, found = sharing.profiles(folder), sharing.pairs(folder)
    own = [alone[pair.first] for pair in found]
    other = [alone[pair.second] for pair in found]
    u1, m1 = (np.array([getattr(p, name) for p in own]) for name in _READ)
    u2, m2 = (np.array([getattr(p, name) for p in other]) for name in _READ)
    speed = np.array([pair.speed for pair in found])
    models = [{pair.first[0], pair.second[0]} for pair in found]
    errors = []
    for held in sorted({tuple(sorted(both)) for both in models}):
        out = np.array([both == set(held) for both in models])
        seen = np.array([not both & set(held) for both in models])

        def miss(c: float, at: NDArray[np.bool_]) -> float:
            guess = 1.0 / slowdown(c, u1[at], m1[at], u2[at], m2[at])
            return float(np.abs(guess - speed[at]).mean())

        best = minimize_scalar(miss, bounds=(1e-3, 4.0), args=(seen,), method="bounded").x
        errors.append(miss(best, out) * out.sum())
    return float(sum(errors) / len(found))


_READ = ("sm_activity", "memory_activity")


def product_errors(logs: Floats, speed: Floats, models: list[set[str]]) -> tuple[float, float]:
    """Mean errors of 1 + c times powers of what `logs` holds: in hindsight, models left out."""
    x = np.column_stack([np.ones(speed.size), logs - logs.mean(axis=0)])

    def errors(powers: Floats, at: NDArray[np.bool_]) -> Floats:
        return np.abs(1.0 / (1.0 + np.exp(x[at] @ powers)) - speed[at])

    def fitted(at: NDArray[np.bool_]) -> Floats:
        slowdown = np.log(np.maximum(1.0 / speed[at] - 1.0, 0.03))
        start = np.linalg.lstsq(x[at], slowdown, rcond=None)[0]
        tries = [
            minimize(
                lambda b: errors(b, at).mean() + 1e-3 * b[1:] @ b[1:],
                scale * start,
                method="Nelder-Mead",
                options={"maxiter": 4000, "xatol": 1e-4, "fatol": 1e-6},
            )
            for scale in (0.0, 0.5, 1.0)
        ]
        return min(tries, key=lambda tried: tried.fun).x

    everything = np.ones(speed.size, dtype=bool)
    unseen = np.zeros(speed.size)
    for held in sorted({tuple(sorted(each)) for each in models}):
        out = np.array([each == set(held) for each in models])
        unseen[out] = errors(fitted(np.array([not each & set(held) for each in models])), out)
    return float(errors(fitted(everything), everything).mean()), float(unseen.mean())


def products(folder: Path) -> None:
    """Print what the best exponents of any metrics leave, of pairs and of halves."""
    alone, found = sharing.profiles(folder), sharing.pairs(folder)
    halves = list(sharing.halves(folder))
    cases = {
        "MPS": (
            ([pair.first for pair in found], [pair.second for pair in found]),
            [pair.speed for pair in found],
        ),
        "MIG": (([kind for kind, _ in halves],), [speed for _, speed in halves]),
    }
    for (mode, (sides, speeds)), metrics in product(cases.items(), _PRODUCTS):
        logs = np.log([[getattr(alone[k], m) for k in side] for m in metrics for side in sides]).T
        models = [{model for model, _ in kinds} for kinds in zip(*sides, strict=True)]
        hindsight, unseen = product_errors(logs, np.array(speeds), models)
        print(
            f"{mode}, 1 + c times powers of {', '.join(metrics)}: {hindsight:.3f} in hindsight, ",
            end="",
        )
        print(f"{unseen:.3f} models left out")
    again: dict[tuple[sharing.Kind, sharing.Kind], list[float]] = {}
    for pair in found:
        again.setdefault((pair.first, pair.second), []).append(pair.speed)
    apart = [
        abs(speed - np.mean(speeds[:i] + speeds[i + 1 :]))
        for speeds in again.values()
        if len(speeds) > 1
        for i, speed in enumerate(speeds)
    ]
    print(f"MPS, the mean of the same pair's other measurements: {np.mean(apart):.3f}")


_PRODUCTS = (
    ("sm_activity",),
    _READ,
    (*_READ, "mean_watts"),
    (*_READ, "mean_watts", "step_seconds"),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name, law in (
        ("u and m", sharing.planned("mps")),
        ("u alone", sharing.planned("mps", memory=False)),
    ):
        print(f"MPS, as planned with {name}: {sharing.pair_errors(folder, law).mean():.3f}")
    rivals: dict[str, Slowdown] = {
        "c": lambda c, u1, m1, u2, m2: np.full_like(u1, 1.0 + c),
        "max(1, u1 + u2)": lambda c, u1, m1, u2, m2: np.maximum(1.0, u1 + u2),
        "1 + 1.06 u1 u2": lambda c, u1, m1, u2, m2: 1.0 + 1.06 * u1 * u2,
        "1 + c u1 u2": lambda c, u1, m1, u2, m2: 1.0 + c * u1 * u2,
        "1 + c u2^2": lambda c, u1, m1, u2, m2: 1.0 + c * u2**2,
    }
    for name, law in rivals.items():
        print(f"MPS, {name}, models left out: {left_out(folder, law):.3f}")
    for a, b, g in product((0.5, 1.0), (1.0, 2.0, 3.0), (0.0, 0.5, 1.0)):
        error = left_out(
            folder,
            lambda c, u1, m1, u2, m2, a=a, b=b, g=g: (
                1.0 + c * u1**a * u2**b * ((u2 + m2) / (u1 + m1)) ** g
            ),
        )
        print(f"MPS, 1 + c u1^{a:g} u2^{b:g} (h2 / h1)^{g:g}, models left out: {error:.3f}")
    for name, half in (
        ("as planned with u and m", sharing.planned("mig")),
        ("as planned with u alone", sharing.planned("mig", memory=False)),
        (
            "1.045 max(1, 2 u)^0.67",
            lambda a, b: (1 / (1.045 * max(1, 2 * a.sm_activity) ** 0.67),) * 2,
        ),
        ("a half", lambda a, b: (0.5, 0.5)),
    ):
        print(f"MIG, {name}: {sharing.half_errors(folder, half).mean():.3f}")
    products(folder)


if __name__ == "__main__":
    main()
