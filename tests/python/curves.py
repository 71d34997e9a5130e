# SPDX-License-Identifier: Apache-2.0
"""Generated runs that several tests of forecasts share."""

from __future__ import annotations

import re

import numpy as np

import glidepath as gp
from glidepath import _core


def curve(kind: str, total: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """A generated run: deterministic, the noise from a fixed stream."""
    t = np.arange(1.0, total + 1) * 7
    x = t / t[-1]
    value = {
        "power": lambda: 2 + 3 * (t / 7) ** -0.5,
        "exponential": lambda: 0.5 + np.exp(-5 * x),
        "rising": lambda: 1 + x**2,
        "steep": lambda: 100 * (t / 7) ** -1.2 + 0.01,
        "waving": lambda: 2 + 0.3 * np.cos(9 * x) + t**-0.3,
    }[kind]()
    return t, value * np.exp(noise * np.random.RandomState(0).standard_normal(total))


def constants_with(**numbers: float) -> str:
    """The learned constants with some of them changed."""
    table = _core.learned_table()
    for key, value in numbers.items():
        table, found = re.subn(rf"(?m)^{key} .*$", f"{key} {value:g}", table)
        assert found == 1
    return table


def finished_runs(count: int, noise: float = 0.02) -> list[gp.Trace]:
    t = np.arange(1.0, 81)
    return [
        gp.Trace(
            t,
            (1 + 0.1 * i + t ** -(0.3 + 0.02 * i))
            * np.exp(noise * np.random.RandomState(i).standard_normal(80)),
        )
        for i in range(count)
    ]


def annealed_runs(count: int, gain: float, noise: float = 0.02) -> list[gp.Trace]:
    """Power laws under cosine schedules, which fall by `gain` as the learning rate does."""
    t = np.arange(1.0, 121)
    lr = 0.5 * (1 + np.cos(np.pi * t / 120))
    spent = np.cumsum(lr)
    return [
        gp.Trace(
            t,
            (1 + 3 * spent ** -(0.3 + 0.02 * i))
            * np.exp(-gain * (1 - lr) + noise * np.random.RandomState(i).standard_normal(120)),
            lr=lr,
            name=f"run{i}",
        )
        for i in range(count)
    ]


def lagged(annealed: np.ndarray, points: float) -> np.ndarray:
    follows = [0.0]
    for value in annealed:
        follows.append(follows[-1] + (value - follows[-1]) / points)
    return np.array(follows[1:])


def schedule_law(total: int, warmup: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Step, loss and rate: a law in the sum of the rate, which rises straight, then a cosine."""
    t = np.arange(1.0, total + 1)
    cosine = 0.55 + 0.45 * np.cos(np.pi * (t - warmup) / (total - warmup))
    lr = np.where(t < warmup, t / warmup, cosine)
    annealed = np.where(t < warmup, 0.0, 1 - lr)
    noise = np.random.RandomState(seed).standard_normal(total)
    law = 2 + 12 * np.cumsum(lr) ** -0.5
    return t, law * np.exp(-0.05 * lagged(annealed, 0.02 * total) + 0.001 * noise), lr


def wide(f: gp.Forecast) -> np.ndarray:
    """Width of the 80 % interval of raw observations."""
    return f.quantile(0.9) - f.quantile(0.1)


def noisy_power_law(seed: int = 0, n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    t = np.arange(1.0, n + 1)
    noise = np.random.RandomState(seed).standard_normal(n)
    return t, (1 + 2 * t**-0.5) * np.exp(0.01 * noise)


AHEAD = [101.0, 150.0, 300.0]
