# SPDX-License-Identifier: Apache-2.0
"""The numbers behind the pictures of this folder (matplotlib) and of `_report.figures` (plotly)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath._columns import Floats

if TYPE_CHECKING:
    from glidepath._reach import Reach

_SHOWN_POINTS, _BINS = 400, 60  # of a line, and of a density
_LARGEST_DRAWN = 1e300  # matplotlib adds margins, and overflows beyond


@dataclass(frozen=True, slots=True)
class Box:
    """A block of neighbouring GPUs of one tier held by one job."""

    tier: int
    lane: int  # the lowest GPU of the block
    gpus: int
    start_s: float
    end_s: float
    job: int


def thinned(step: Floats, loss: Floats) -> tuple[Floats, Floats]:
    """Take the points of a run that a line shows, evenly by their number, the last among them."""
    stride = -(-len(step) // _SHOWN_POINTS)
    return step[::-1][::stride][::-1], loss[::-1][::stride][::-1]


def drawable(values: ArrayLike) -> Floats:
    """Give values as they are, but the largest ones no larger than can be drawn."""
    known = np.array(values, dtype=float)
    known[np.isfinite(known)] = np.clip(known[np.isfinite(known)], -_LARGEST_DRAWN, _LARGEST_DRAWN)
    return known


def binned(time: Floats, values: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Give the middles of spans of time, as many as a line shows; mean, least, largest in each.

    Spans without a value are left out.
    """
    known = np.isfinite(values)
    time, values = time[known], values[known]
    if time.size <= _SHOWN_POINTS:
        return time, values, values, values
    edges = np.linspace(time[0], time[-1], _SHOWN_POINTS + 1)
    begins = np.unique(np.searchsorted(time, edges[:-1]))
    counts = np.diff(np.append(begins, time.size))
    middle = np.add.reduceat(time, begins) / counts
    mean = np.add.reduceat(values, begins) / counts
    return middle, mean, np.minimum.reduceat(values, begins), np.maximum.reduceat(values, begins)


def main_bands(levels: Floats) -> list[tuple[int, int, float]]:
    """Choose two central bands, the widest and the one nearest to one half.

    A band is (low row, high row, coverage); a level without its mirror image is in none.
    """
    bands = []
    for low, level in enumerate(levels):
        high = int(np.argmin(np.abs(levels - (1.0 - level))))
        if level < 0.5 and abs(levels[high] - (1.0 - level)) < 1e-9:
            bands.append((low, high, float(1.0 - 2.0 * level)))
    bands.sort(key=lambda band: -band[2])
    return bands[:1] + sorted(bands[1:], key=lambda band: abs(band[2] - 0.5))[:1]


def loss_limits(*columns: ArrayLike) -> tuple[float, float] | None:
    """Find the range of losses to show: the first steps may be far above all others."""
    if not columns:
        return None
    values = np.concatenate([np.ravel(np.asarray(column, dtype=float)) for column in columns])
    values = drawable(values[np.isfinite(values)])
    if values.size == 0:
        return None
    low, high = float(values.min()), float(values.max())
    body = float(np.quantile(values, 0.97))
    if high - low > 2.5 * (body - low) > 0:
        high = body + 0.3 * (body - low)
    margin = 0.06 * (high - low) or 0.05 * max(abs(high), 1e-3)
    return low - margin, high + margin


def reach_density(reach: Reach) -> tuple[Floats, Floats]:
    """Give edges (one more than bins) in steps and the probability of each bin; the rest is never.

    Empty arrays when the target is surely not reached.
    """
    reached = 1.0 - reach.prob_never
    if reached <= 1e-9:
        return np.empty(0), np.empty(0)
    low = reach.quantile(0.002 * reached)
    high = reach.quantile(0.999 * reached)
    if not (np.isfinite(low) and np.isfinite(high)):
        return np.empty(0), np.empty(0)
    if high <= low:
        return np.array([low, low + 1.0]), np.array([reached])
    pad = 0.02 * (high - low)
    edges = np.linspace(max(low - pad, 0.0), high + pad, _BINS + 1)
    cdf = np.array([reach.prob_by(float(edge)) for edge in edges])
    return edges, np.diff(cdf)


def gantt(spans: Mapping[str, NDArray[Any]]) -> tuple[list[Box], dict[int, int]]:
    """Give the boxes of a Gantt chart, and the number of lanes (GPUs drawn) of each tier.

    A simulation says how many GPUs of a tier a job held; which of them is chosen here: the lowest
    neighbouring block that is free, else the lowest free ones in pieces.
    """
    order = np.lexsort((spans["job"], spans["start_s"]))
    free: dict[int, list[float]] = {}  # of each tier, the time from which each lane is free
    boxes: list[Box] = []
    for row in order:
        tier, gpus = int(spans["tier"][row]), int(spans["gpus"][row])
        start, end = float(spans["start_s"][row]), float(spans["end_s"][row])
        if end <= start:
            continue
        lanes = free.setdefault(tier, [])
        for lane, count in _blocks(lanes, gpus, start + 1e-9 * max(abs(start), 1.0)):
            boxes.append(Box(tier, lane, count, start, end, int(spans["job"][row])))
            for held in range(lane, lane + count):
                if held == len(lanes):
                    lanes.append(end)
                else:
                    lanes[held] = end
    return boxes, {tier: len(lanes) for tier, lanes in sorted(free.items())}


def _blocks(lanes: Sequence[float], gpus: int, now: float) -> list[tuple[int, int]]:
    """Find lanes for `gpus` GPUs: (first lane, count) of each piece."""
    free = [lane for lane, until in enumerate(lanes) if until <= now]
    free += range(len(lanes), len(lanes) + gpus)
    for first in range(len(free) - gpus + 1):
        # A whole block inside the lanes in use so far is better than new lanes.
        if free[first + gpus - 1] - free[first] == gpus - 1 and free[first + gpus - 1] < len(lanes):
            return [(free[first], gpus)]
    pieces: list[tuple[int, int]] = []
    for lane in free[:gpus]:
        if pieces and pieces[-1][0] + pieces[-1][1] == lane:
            pieces[-1] = (pieces[-1][0], pieces[-1][1] + 1)
        else:
            pieces.append((lane, 1))
    return pieces


def busy_gpus(spans: Mapping[str, NDArray[Any]]) -> tuple[Floats, Floats]:
    """Give times (s) and the GPUs held from each on."""
    time = np.concatenate([spans["start_s"], spans["end_s"]])
    change = np.concatenate([spans["gpus"], -spans["gpus"]]).astype(float)
    if time.size == 0:
        return np.zeros(1), np.zeros(1)
    at, inverse = np.unique(time, return_inverse=True)
    return at.astype(float), np.cumsum(np.bincount(inverse, weights=change))


def coverage(pit_values: ArrayLike, nominal: ArrayLike) -> Floats:
    """Give the fraction of runs inside the central interval of each nominal coverage."""
    values = np.asarray(pit_values, dtype=float)[:, None]
    half = np.asarray(nominal, dtype=float)[None, :] / 2.0
    return np.asarray(np.mean(np.abs(values - 0.5) <= half + 1e-12, axis=0))
