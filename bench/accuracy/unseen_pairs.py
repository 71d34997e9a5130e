#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Errors of laws for the speeds of pairs of which nothing was measured but each job alone.

    python bench/accuracy/unseen_pairs.py MIG_FOLDER

Prints, for the pairs under MPS and the halves of a card of `glidepath._bench.sharing`, the mean
absolute error of the law that plans rest on, with and without the activity of the memory, of what
one would try first, and of other exponents of the same law. The one constant of a rival is fitted
to the other models: what is printed leaves both models of a pair out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

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


if __name__ == "__main__":
    main()
