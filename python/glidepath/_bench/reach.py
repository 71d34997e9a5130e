# SPDX-License-Identifier: Apache-2.0
"""Time to target on runs that came to one: `glidepath bench reach`, `glidepath.bench.reach`.

Runs that are at the target at their sixth evaluation or later are seen 30, 50 and 70 % of the way
there. The budget is three times the true step; past runs are of other groups, and most of them end
at the target, as finished runs do.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from glidepath import _core
from glidepath._answer import SHOWN_LEVELS
from glidepath._arguments import checked
from glidepath._bench.accuracy.curves import (
    Source,
    check_seed,
    group_of,
    oriented,
    read_logs,
    unit_of,
)
from glidepath._bench.accuracy.methods import TIMES, Named, first_at, methods_of
from glidepath._bench.accuracy.protocol import (
    Arrival,
    Method,
    answer_of,
    arrival_of,
    chances,
    offers,
    reply_to,
)
from glidepath._bench.accuracy.scores import failures, grouped
from glidepath._core import InputError
from glidepath._results import Result
from glidepath._trace import Trace

Row = dict[str, Any]

SCHEMA = "glidepath.reach/2"
DEFAULT_METHODS = ("glidepath", "glidepath+past", "past-times", "past-times-scaled")
SHARES = (0.3, 0.5, 0.7)  # of the way to the target
FEWEST_BEFORE = 5  # evaluations before the target
BUDGET_TIMES = 3.0
WORST = 3.0  # error in log step that counts for a failure, or where it is never expected
HOPELESS = 0.02
GRID = 48  # steps at which a forecast is read for when it comes to the target


@dataclass(frozen=True, slots=True)
class Case:
    """A run seen until some way to its target, lower is better; past runs of other groups."""

    collection: str
    curve: Trace
    seen: Trace
    share: float
    target: float
    truth: float
    past: tuple[Trace, ...]

    @property
    def budget(self) -> float:
        """The last step allowed."""
        return BUDGET_TIMES * self.truth


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReachScores(Result):
    """Rows of a benchmark of times to target.

    Attributes
    ----------
    rows : list of dict
        One per method, run and share of the way: `method, collection, run, share, truth, error,
        inside, probability, hopeless, wall_ms, failed, why`.
    """

    rows: list[Row] = field(default_factory=list)

    def table(self) -> list[dict[str, Any]]:
        """A row for each collection and method, then the means over collections.

        `error`, the median of ``|log(median / true step)|``; `inside`, the share of true steps
        between the quantiles 0.1 and 0.9; `probability`, the mean probability of coming to the
        target, as all of these runs do; `hopeless`, the share with at most 2 %; `n_failed`, how
        many calls.
        """
        parts = grouped(self.rows, itemgetter("collection", "method"))
        out: list[dict[str, Any]] = [
            {"collection": name, "method": method, **_summary(rows)}
            for (name, method), rows in parts.items()
        ]
        names = {name for name, _ in parts}
        if len(names) > 1:
            for method, each in grouped(out, itemgetter("method")).items():
                means = {
                    key: float(np.mean([row[key] for row in each]))
                    for key in ("error", "inside", "probability", "hopeless", "wall_ms")
                }
                counts = {key: sum(row[key] for row in each) for key in ("n", "n_failed")}
                total = {"collection": f"mean of {len(names)}", "method": method, **means}
                out.append({key: (total | counts)[key] for key in each[0]})
        return out

    def failures(self) -> list[dict[str, Any]]:
        """How often each method that ever failed did, of how many calls, and why (most first)."""
        return failures(self.rows, {"why": "time to target"})

    def to_dict(self) -> dict[str, Any]:
        """Give a document of fixed schema, fit for JSON."""
        return {
            "schema": SCHEMA,
            "glidepath": _core.__version__,
            "table": self.table(),
            "failed_calls": self.failures(),
            "rows": self.rows,
        }

    def _summary(self) -> str:
        row = self.table()[-1]
        return f"{row['method']}: error {row['error']:.3f}, 10 to 90 % holds {row['inside']:.2f}"


def _summary(rows: Sequence[Row]) -> dict[str, Any]:
    def mean(key: str) -> float:
        return float(np.mean([row[key] for row in rows]))

    return {
        "n": len(rows),
        "error": float(np.median([row["error"] for row in rows])),
        **{key: mean(key) for key in ("inside", "probability", "hopeless", "wall_ms")},
        "n_failed": sum(row["failed"] for row in rows),
    }


@checked
def reach(
    source: Source,
    methods: Named = DEFAULT_METHODS,
    *,
    target: float | None = None,
    max_runs: int = 40,
    past_runs: int = 12,
    seed: int = 0,
    metric: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ReachScores:
    """Score when methods say that runs come to their target.

    A method says so by a function `reach(trace, target)` of its own, see `docs/benchmark.md`; for
    one without, the first step is taken at which its forecast is at the target: the probability of
    having come there by a step is the largest of being there at any step before. Lower values are
    better: a method gets a score as 1 - score, and its target too; ours take it for a score.

    Parameters
    ----------
    source : path_like or iterable of Trace
        As for `accuracy`; a collection without a target is passed over.
    methods : iterable of str or callable, or mapping of names to them, optional
        As for `accuracy`, and ``"past-times"`` (the quantiles of the steps at which past runs came
        to the target), ``"past-times-scaled"`` (by how late this run is at its best value).
    target : float, optional
        The value to reach; by default ``"target"`` in the JSON beside a collection.
    max_runs, past_runs : int, optional
        Runs of each collection, and past runs of each run, drawn with `seed`.
    seed : int, optional
    metric : str, optional
        As for `read_traces`.
    progress : callable, optional
        Called with the runs done and their number.

    Returns
    -------
    ReachScores

    Raises
    ------
    InputError, IoError, ImportError
        As for `accuracy`, and when no run comes to a target.
    """
    for name, number, least in (("max_runs", max_runs, 1), ("past_runs", past_runs, 0)):
        if number < least:
            raise InputError(f"bench: {name} is {number}, expected {least} or more")
    check_seed(seed)
    chosen = methods_of(methods, times=TIMES)
    goals = [
        (logs, _target_of(source, logs.name) if target is None else target)
        for logs in read_logs(source, metric)
    ]
    if all(goal is None for _, goal in goals):
        raise InputError('bench: no target: give one, or "target" in the JSON beside a file')
    cases = [
        case
        for logs, goal in goals
        if goal is not None
        for case in _cases(logs.name, logs.traces, goal, max_runs, past_runs, seed)
    ]
    if not cases:
        raise InputError(
            "bench: none of the runs drawn comes to a target at its sixth evaluation or later; give"
            ' another target, more runs, or "target" in the JSON beside a file'
        )
    rows = []
    for done, case in enumerate(cases):
        rows += [_score(method, case, seed) for method in chosen.values()]
        if progress is not None:
            progress(done + 1, len(cases))
    return ReachScores(rows)


def _target_of(source: Source, name: str) -> float | None:
    if not isinstance(source, (str, os.PathLike)):
        return None
    path = Path(source)
    beside = (path if path.is_dir() else path.parent) / f"{name}.json"
    found = None
    try:
        found = json.loads(beside.read_text()).get("target") if beside.is_file() else None
        return None if found is None else float(found)
    except (AttributeError, TypeError, ValueError):
        given = "missing" if found is None else f"{found!r:.80}"
        raise InputError(f"bench: {beside}: its target is {given}, expected a number") from None


def _cases(
    name: str, traces: Sequence[Trace], target: float, max_runs: int, past_runs: int, seed: int
) -> Iterator[Case]:
    runs = {trace.name: trace for trace in traces if len(trace)}
    unit = unit_of(runs.values())
    lower = dict(zip(runs, oriented(list(runs.values()), unit), strict=True))
    ids, chance = sorted(runs), np.random.RandomState(seed)
    for key in [ids[i] for i in chance.permutation(len(ids))[:max_runs]]:
        others = [other for other in ids if group_of(other) != group_of(key)]
        drawn = tuple(lower[others[i]] for i in chance.permutation(len(others))[:past_runs])
        sign = -1.0 if runs[key].direction == "max" else 1.0
        first = first_at(sign * runs[key].loss, sign * target)
        if first is None or first < FEWEST_BEFORE:
            continue
        run = lower[key]
        goal = target if runs[key].direction == "min" else 1.0 - target / unit
        for share in SHARES:
            points = max(3, round(share * first))
            if points < first:
                seen = replace(run.until(float(run.step[points - 1])), name="")
                yield Case(name, run, seen, share, goal, float(run.step[first]), drawn)


def _score(method: Method, case: Case, seed: int) -> Row:
    more = {"seed": seed, "budget": case.budget, "reached_by": "point"}

    def law() -> Arrival:
        if method.reach is None:
            return _derived(
                method, case, offers(method.takes, case.curve, lambda: case.past, **more)
            )
        known = offers(method.reach_takes, case.curve, lambda: case.past, **more)
        return arrival_of(method.reach(case.seen, case.target, **known))

    came = reply_to(law, lambda given: given)
    row: Row = {
        "method": method.name,
        "collection": case.collection,
        "run": case.curve.name,
        "share": case.share,
        "truth": case.truth,
        "wall_ms": came.wall_ms,
        "failed": came.answer is None,
    }
    if came.answer is None:
        return row | {
            "why": came.why,
            "error": WORST,
            "inside": 0.0,
            "probability": 0.0,
            "hopeless": 1.0,
        }
    low, middle, high = came.answer.quantiles
    expected = math.isfinite(middle) and middle > 0
    return row | {
        "error": abs(math.log(middle / case.truth)) if expected else WORST,
        "inside": float(low <= case.truth <= high),
        "probability": came.answer.probability,
        "hopeless": float(came.answer.probability <= HOPELESS),
    }


def _derived(method: Method, case: Case, known: dict[str, Any]) -> Arrival:
    """When a forecast comes to the target, by the largest chance of being there so far."""
    now = float(case.seen.step[-1])
    at = now + (case.budget - now) * np.geomspace(1 / GRID, 1.0, GRID)
    answer = answer_of(method.call(case.seen, at.copy(), **known), at)
    if answer.quantiles is None:
        there = (answer.median <= case.target).astype(float)
    else:
        there = np.array([chances(row)(case.target) for row in answer.quantiles.T])
    by = np.concatenate(([0.0], np.maximum.accumulate(there)))
    if by[-1] <= 0.0:
        return Arrival(0.0, (math.inf, math.inf, math.inf))
    steps = np.concatenate(([now], at))
    low, middle, high = (float(np.interp(p * by[-1], by, steps)) for p in SHOWN_LEVELS)
    return Arrival(float(by[-1]), (low, middle, high))
