# SPDX-License-Identifier: Apache-2.0
"""How forecasts are scored: one row for each prefix and method, and means over rows.

Errors and scores are in units of the curve's range, so that curves of different metrics average,
and at most 1 for each prefix or point. A failure counts as error 1: a method must always answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glidepath._bench.accuracy.curves import Collection, group_of
from glidepath._bench.accuracy.protocol import (
    LEVELS,
    Answer,
    Method,
    Reply,
    answer_of,
    arrival_of,
    offers,
    reply_to,
)
from glidepath._columns import Floats
from glidepath._trace import Trace

Row = dict[str, Any]

CUTOFFS = (0.1, 0.2, 0.4, 0.6, 0.8)
FEWEST_SEEN, MOST_SEEN = 4, 0.9  # points, and share of them
LAST_SHARE = 0.03  # the final value is the mean of this share of the points
TARGET_SHARE, BUDGET_RUNS = 0.7, 3.0  # the level of a time to target, and the time allowed
WITHIN = (0.65, 0.95)  # coverage of a group by its 80 % intervals that is taken as right
BAD = 0.5
SHOWN_REASONS = 3
_LOW_ROW, _HIGH_ROW = 1, 17  # rows of LEVELS: the 80 % interval


@dataclass(frozen=True, slots=True)
class Prefix:
    """A curve cut after `points`: what a method sees, and what it forecasts."""

    collection: Collection
    curve: Trace
    cutoff: float
    points: int
    seed: int

    @property
    def seen(self) -> Trace:
        """The part of the curve that a method sees; without its name."""
        k, curve = self.points, self.curve
        lr = None if curve.lr is None else curve.lr[:k]
        return Trace(curve.step[:k], curve.loss[:k], lr=lr, metric=curve.metric)

    @property
    def at(self) -> Floats:
        """The steps to forecast: all that follow, to the end of the run."""
        return np.array(self.curve.step[self.points :])

    def offers(self, takes: tuple[str, ...], **more: Any) -> dict[str, Any]:
        """Give the keywords that a method takes."""
        return offers(
            takes, self.curve, lambda: self.collection.others(self.curve), seed=self.seed, **more
        )


def prefixes(
    collection: Collection, curve: Trace, cutoffs: Sequence[float], seed: int
) -> Iterator[Prefix]:
    """Cut a curve at each share of its points that leaves enough on both sides."""
    points = len(curve)
    done: set[int] = set()
    for cutoff in cutoffs:
        k = max(FEWEST_SEEN, math.ceil(cutoff * points))
        if k <= MOST_SEEN * points and k not in done:
            done.add(k)
            yield Prefix(collection, curve, cutoff, k, seed)


def tail_of(curve: Trace) -> int:
    """How many points the final value is the mean of."""
    return max(1, round(LAST_SHARE * len(curve)))


def final_of(curve: Trace) -> float:
    """The final value of a curve."""
    return float(curve.loss[-tail_of(curve) :].mean())


def score(method: Method, prefix: Prefix, target: float) -> Row:
    """Call one method on one prefix and score what it gives; `target` is for `prob_target`."""
    curve, at = prefix.curve, prefix.at
    seen, known = prefix.seen, prefix.offers(method.takes)
    came = reply_to(
        lambda: method.call(seen, at.copy(), **known), lambda given: answer_of(given, at)
    )
    row: Row = {
        "method": method.name,
        "collection": prefix.collection.name,
        "cutoff": prefix.cutoff,
        "run": curve.name,
        "points": len(curve),
        "seen": prefix.points,
        "truth": final_of(curve),
        "last": float(seen.loss[-1]),
        "cpu_ms": came.cpu_ms,
        "wall_ms": came.wall_ms,
        "failed": came.answer is None,
    }
    if came.answer is None:
        row.update(why=came.why, final=row["last"], error=1.0, crps=1.0, bias=0.0)
        return row
    with np.errstate(over="ignore"):  # of numbers as far off as 1e308: each error is at most 1
        row.update(_scores(came.answer, prefix))
    if came.answer.prob_below is not None:
        row["prob_target"] = came.answer.prob_below(target)
        row["target_reached"] = row["truth"] <= target
        row.update(_time_to_target(method, prefix))
    return row


def _scores(answer: Answer, prefix: Prefix) -> Row:
    """Error of the final value; scores of every point ahead."""
    loss, tail = prefix.curve.loss, tail_of(prefix.curve)
    size, truth, ahead = float(np.ptp(loss)), final_of(prefix.curve), loss[prefix.points :]
    off = (answer.median - ahead) / size
    final = float(answer.median[-tail:].mean())
    row = {
        "final": final,
        "error": min(abs(final - truth) / size, 1.0),
        "crps": float(np.minimum(np.abs(off), 1.0).mean()),
        "bias": float(np.clip(off, -1.0, 1.0).mean()),
    }
    if answer.quantiles is None:
        return row
    quantiles = answer.quantiles
    over = (ahead - quantiles) / size
    pinball = np.where(over >= 0, LEVELS[:, None] * over, (LEVELS[:, None] - 1) * over)
    low, high = quantiles[_LOW_ROW], quantiles[_HIGH_ROW]
    ends = np.concatenate(([0.0], LEVELS, [1.0]))
    return row | {
        "crps": float(np.minimum(2 * pinball.mean(0), 1.0).mean()),
        "cov80": float(((ahead >= low) & (ahead <= high)).mean()),
        "cov80_final": float(low[-tail:].mean() <= truth <= high[-tail:].mean()),
        "pit": float(ends[int((quantiles[:, -1] < ahead[-1]).sum())] + 0.025),
    }


def _time_to_target(method: Method, prefix: Prefix) -> Row:
    """Score when the level is reached that the run has at 70 %, with a budget of three runs.

    The run did reach it, so the law given that it does is scored. Only methods with a time to
    target of their own are.
    """
    curve, reach = prefix.curve, method.reach
    at, half = round(TARGET_SHARE * len(curve)), tail_of(curve)
    target = float(curve.loss[max(0, at - half) : at + half].mean())
    below = np.flatnonzero(curve.loss <= target)
    if reach is None or below.size == 0 or below[0] < prefix.points or at >= len(curve):
        return {}
    truth, budget = float(curve.step[below[0]]), BUDGET_RUNS * float(curve.step[-1])
    seen, known = (
        prefix.seen,
        prefix.offers(method.reach_takes, budget=budget, reached_by="point"),
    )
    came: Reply = reply_to(lambda: reach(seen, target, **known), arrival_of)
    if came.answer is None:
        return {"reach_failed": True, "reach_why": came.why}
    low, middle, high = came.answer.quantiles
    return {
        "reach_error": abs(math.log(max(min(middle, budget), 1e-300) / truth)),
        "reach_inside": float(low <= truth <= high),
    }


# --------------------------------------------------------------------------------------- means


def grouped(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    """Rows by what a key says of them, in the order in which they come."""
    parts: dict[Any, list[Row]] = {}
    for row in rows:
        parts.setdefault(key(row), []).append(row)
    return parts


def ranks(values: Floats) -> Floats:
    """Average ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - 0.5 * (counts - 1))[inverse])


def mean(rows: Sequence[Row], key: str) -> float:
    """Mean of a score over the rows that have it; NaN where none does."""
    values = [row[key] for row in rows if key in row]
    return float(np.mean(values)) if values else math.nan


def auc(probability: Floats, reached: NDArray[np.bool_]) -> float:
    """Area under the ROC curve; NaN where all or none were reached."""
    if reached.all() or not reached.any():
        return math.nan
    rank = ranks(probability)
    positive = int(reached.sum())
    area = rank[reached].sum() - positive * (positive + 1) / 2
    return float(area / (positive * (reached.size - positive)))


def summary(rows: Sequence[Row], base: Sequence[Row]) -> dict[str, float]:
    """Means over the rows of one method; `base` are those of the last value, for the skill."""
    correlations = []
    parts = grouped(rows, itemgetter("collection", "cutoff"))
    for _, part in sorted(parts.items()):
        if len(part) >= 8:
            a = ranks(np.array([r["final"] for r in part]))
            b = ranks(np.array([r["truth"] for r in part]))
            if a.std() > 0 and b.std() > 0:
                correlations.append(float(np.corrcoef(a, b)[0, 1]))
    errors = np.array([r["error"] for r in rows])
    naive = float(np.mean([r["error"] for r in base])) if base else math.nan
    return {
        "n": len(rows),
        "mae": float(errors.mean()),
        "median_error": float(np.median(errors)),
        "crps": mean(rows, "crps"),
        "bad": float(np.mean([r["failed"] or r["error"] > BAD for r in rows])),
        "skill": 1.0 - float(errors.mean()) / max(naive, 1e-12),
        "cov80": mean(rows, "cov80"),
        "cov80_final": mean(rows, "cov80_final"),
        "bias": mean(rows, "bias"),
        "rank": float(np.mean(correlations)) if correlations else math.nan,
        "cpu_ms": mean(rows, "cpu_ms"),
        "wall_ms": mean(rows, "wall_ms"),
        "n_failed": sum(bool(r["failed"]) for r in rows),
    }


def decisions(rows: Sequence[Row], alpha: float, seen: float) -> dict[str, float]:
    """Score the probabilities of one method's rows and its times to target, seen a share."""
    rows = [r for r in rows if "prob_target" in r]
    probability = np.array([r["prob_target"] for r in rows])
    reached = np.array([r["target_reached"] for r in rows], dtype=bool)
    stopped = probability < alpha
    timed = [r for r in rows if "reach_error" in r and r["cutoff"] == seen]
    errors = [r["reach_error"] for r in timed]
    return {
        "n": len(rows),
        "auc": auc(probability, reached) if rows else math.nan,
        "brier": float(np.mean((probability - reached) ** 2)) if rows else math.nan,
        "stopped": float(stopped.mean()) if rows else math.nan,
        "wrong": float(reached[stopped].mean()) if stopped.any() else math.nan,
        "reach_n": len(timed),
        "reach_error": float(np.median(errors)) if errors else math.nan,
        "reach_inside": mean(timed, "reach_inside"),
        "reach_failed": sum("reach_failed" in r for r in rows),
    }


def failures(rows: Sequence[Row], what: Mapping[str, str]) -> list[dict[str, Any]]:
    """How often each method failed at what, by the key of a row that says why, and why."""
    said: dict[tuple[str, str], Counter[str]] = {}
    calls: Counter[str] = Counter(row["method"] for row in rows)
    for method in calls:
        for key in what:
            why = Counter(row[key] for row in rows if row["method"] == method and key in row)
            if why:
                said[method, key] = why
    out = []
    for (method, key), why in said.items():
        words = "; ".join(f"{n} times {text}" for text, n in why.most_common(SHOWN_REASONS))
        more = len(why) - SHOWN_REASONS
        out.append(
            {
                "method": method,
                "what": what[key],
                "n_failed": why.total(),
                "n": calls[method],
                "why": f"{words}; and {more} other reasons" if more > 0 else words,
            }
        )
    return out


def _mean_of_groups(groups: dict[str, list[Row]], key: str) -> float:
    known = [m for rows in groups.values() if not math.isnan(m := mean(rows, key))]
    return float(np.mean(known)) if known else math.nan


def group_lines(rows: Sequence[Row], base: Sequence[Row]) -> list[dict[str, Any]]:
    """Means over groups of curves, each group weighing the same, over all and by share seen."""
    out = []
    for seen in (None, *sorted({row["cutoff"] for row in rows})):
        groups, naive = (
            grouped(
                [r for r in part if seen is None or r["cutoff"] == seen],
                lambda row: group_of(row["run"]),
            )
            for part in (rows, base)
        )
        found = {key: _mean_of_groups(groups, key) for key in ("error", "crps", "cov80", "bias")}
        cov = np.array([mean(part, "cov80") for part in groups.values()])
        out.append(
            {
                "seen": "all" if seen is None else f"{seen:g}",
                "n_groups": len(groups),
                "n": sum(map(len, groups.values())),
                "mae": found["error"],
                "crps": found["crps"],
                "cov80": found["cov80"],
                "within": float(np.mean((cov >= WITHIN[0]) & (cov <= WITHIN[1]))),
                "bias": found["bias"],
                "skill": 1.0 - found["error"] / max(_mean_of_groups(naive, "error"), 1e-12),
            }
        )
    return out
