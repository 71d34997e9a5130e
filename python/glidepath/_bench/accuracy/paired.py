# SPDX-License-Identifier: Apache-2.0
"""Intervals of means, and tests of differences, that keep curves together.

Prefixes of one curve, and curves of one group, are alike: the unit that is drawn is the group, in
a collection of fewer than five groups the curve. The bootstrap draws collections, then the units of
each (two stages; Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8;
Efron and Tibshirani, An Introduction to the Bootstrap, 1993). Methods share the draws, so that a
difference is drawn in pairs. Beside it stands the exact sign test over the units (Dixon and Mood,
JASA 41, 1946), which assumes nothing of sizes. Six units are the fewest that have an
interval and a p: of five, not even a sign test can be below .05.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glidepath._bench.accuracy.curves import group_of
from glidepath._columns import Floats

Row = dict[str, Any]
Unit = tuple[str, str]

DRAWS = 1000
FEWEST_GROUPS, FEWEST_UNITS = 5, 6
COVERAGE = 0.95


class Bootstrap:
    """Draws of the units of some rows, the same for every method and score."""

    def __init__(self, rows: Sequence[Row], *, draws: int = DRAWS) -> None:
        groups: dict[str, set[str]] = {}
        for row in rows:
            groups.setdefault(row["collection"], set()).add(group_of(row["run"]))
        self._grouped = {name for name, of in groups.items() if len(of) >= FEWEST_GROUPS}
        self.units: list[Unit] = sorted({self._unit(row) for row in rows})
        self._place = {unit: i for i, unit in enumerate(self.units)}
        self._weights = _weights([name for name, _ in self.units], draws)

    def _unit(self, row: Row) -> Unit:
        name = row["collection"]
        return name, group_of(row["run"]) if name in self._grouped else row["run"]

    def sums(self, rows: Sequence[Row], score: str) -> tuple[Floats, Floats]:
        """Sum of a score and number of rows of each unit."""
        total, count = np.zeros(len(self.units)), np.zeros(len(self.units))
        for row in rows:
            if score in row:
                place = self._place[self._unit(row)]
                total[place] += row[score]
                count[place] += 1
        return total, count

    def means(self, rows: Sequence[Row], score: str) -> Floats:
        """Mean over the rows in each draw, (draws,)."""
        total, count = self.sums(rows, score)
        return np.asarray((self._weights @ total) / np.maximum(self._weights @ count, 1e-300))

    def interval(self, rows: Sequence[Row], score: str) -> tuple[float, float]:
        """The 95 % interval of the mean of a score; NaN where there are too few units."""
        return self._interval(self.means(rows, score))

    def _interval(self, drawn: Floats) -> tuple[float, float]:
        if len(self.units) < FEWEST_UNITS:
            return math.nan, math.nan
        low, high = np.quantile(drawn, ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2))
        return float(low), float(high)

    def pair(self, rows: Sequence[Row], other: Sequence[Row], score: str) -> dict[str, Any]:
        """Difference of the means, its interval, and two tests that it is none."""
        drawn = self.means(rows, score) - self.means(other, score)
        (a, n), (b, m) = self.sums(rows, score), self.sums(other, score)
        each = a / np.maximum(n, 1) - b / np.maximum(m, 1)
        low, high = self._interval(drawn)
        extreme = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
        better, worse = int((each < 0).sum()), int((each > 0).sum())
        enough = len(self.units) >= FEWEST_UNITS
        return {
            "difference": float(a.sum() / max(n.sum(), 1) - b.sum() / max(m.sum(), 1)),
            "low": low,
            "high": high,
            "p_bootstrap": min(1.0, 2 * (1 + extreme) / (1 + drawn.size)) if enough else math.nan,
            "better": better,
            "worse": worse,
            "p_sign": sign_test(better, worse) if enough else math.nan,
        }


def _weights(collections: Sequence[str], draws: int) -> Floats:
    """How often each unit is in each draw, (draws, units)."""
    rng = np.random.default_rng(0)
    names = sorted(set(collections))
    copies = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=draws)
    weights = np.zeros((draws, len(collections)), dtype=np.float32)
    for i, name in enumerate(names):
        own = np.flatnonzero(np.array(collections) == name)
        share = np.full(own.size, 1 / own.size)
        weights[:, own] = rng.multinomial(copies[:, i] * own.size, share)
    return np.asarray(weights)


def sign_test(better: int, worse: int) -> float:
    """Two-sided probability of so uneven a count where both are equally likely; ties left out."""
    n = better + worse
    tail = sum(math.comb(n, k) for k in range(min(better, worse) + 1))
    return min(1.0, float(2 * tail / 2**n))
