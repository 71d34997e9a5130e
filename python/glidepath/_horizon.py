# SPDX-License-Identifier: Apache-2.0
"""How far a run is forecast when nobody says so, one rule for every verb; and its forecast.

1. The budget that was given.
2. The step at which the log says that the run ends (`Trace.planned_steps`), unless it is there.
3. The end of the schedule that was given, unless the run is there.
4. The last step of the file, where only a part of the run was to be used, if that is later.
5. Ten times the steps seen, as for `glidepath.Watch`: a run is not called lost for want of a plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from glidepath import _words
from glidepath._answer import best_keys, forecast_keys, reach_keys, run_keys
from glidepath._core import InputError, open_budget, reached_by_name
from glidepath._forecast import forecast
from glidepath._reach import best_so_far, reach
from glidepath._schedule import inferred

if TYPE_CHECKING:
    from glidepath._forecast import Forecast
    from glidepath._past_runs import PastRuns
    from glidepath._reach import BestSoFar, Reach
    from glidepath._schedule import Schedule
    from glidepath._trace import Trace

_STEPS = 50  # of a forecast, closer together near the last observation


@dataclass(frozen=True, slots=True)
class Horizon:
    """How far a run is forecast and with which learning rates, each with its reason."""

    budget: float
    budget_from: str
    schedule: Schedule | None = None
    schedule_from: str | None = None

    def keys(self) -> dict[str, Any]:
        """Give it as keys of an answer."""
        return {
            "budget": self.budget,
            "budget_from": self.budget_from,
            "schedule_from": self.schedule_from,
        }


def horizon(
    seen: Trace,
    *,
    budget: float | None = None,
    file_end: float | None = None,
    schedule: Schedule | None = None,
    schedule_from: str | None = None,
) -> Horizon:
    """Choose how far a run is forecast, and its schedule where the logged rates make it clear.

    `seen` has at least one point; `file_end` is the last step of the run in its file, where `seen`
    is a part of it; budget and schedule are the user's, the latter called `schedule_from` in the
    answer, which is needed with it. The budget that comes of it is after the
    last step seen, unless the user gave one that is not.
    """
    end, why = _end(seen, budget, file_end, schedule, schedule_from)
    if schedule is None:
        found = inferred(seen)
        if found is not None:
            schedule_from, schedule = f"{found[0]}, inferred from the logged rates", found[1]
    return Horizon(end, why, schedule, schedule_from)


@dataclass(frozen=True, slots=True)
class Look:
    """A run as far as it was observed, and its forecast."""

    seen: Trace
    horizon: Horizon
    ahead: Forecast
    best: BestSoFar
    reach: Reach | None
    reached_by: str

    def keys(self) -> dict[str, Any]:
        """Give it as keys of an answer."""
        row = run_keys(self.seen) | forecast_keys(self.ahead) | best_keys(self.best)
        row |= self.horizon.keys()
        budget = self.horizon.budget
        return row | reach_keys(self.reach, row["observed_to"], self.reached_by, budget=budget)


def look(
    seen: Trace,
    plan: Horizon,
    *,
    target: float | None = None,
    reached_by: str | None = None,
    past: PastRuns | None = None,
) -> Look:
    """Forecast a run as far as planned, and when it reaches its target.

    A run that has spent its budget is forecast at its next step.
    """
    rates = plan.schedule
    ahead = outlook(seen, plan, past=past)
    by = reached_by or reached_by_name(seen.metric)
    best = best_so_far(seen, budget=plan.budget, schedule=rates, past=past, reached_by=by)
    if target is None:
        return Look(seen, plan, ahead, best, None, by)
    law = reach(seen, target, budget=plan.budget, schedule=rates, past=past, reached_by=by)
    return Look(seen, plan, ahead, best, law, by)


def outlook(seen: Trace, plan: Horizon, *, past: PastRuns | None = None) -> Forecast:
    """Forecast a run as far as planned, at the same steps whatever part of glidepath asks.

    Between some of its steps a forecast is interpolated, so that which they are counts.
    """
    last = float(seen.step[-1])
    left = max(plan.budget, step_after(last)) - last
    steps = np.unique(last + np.geomspace(left / _STEPS, left, _STEPS))
    try:
        return forecast(seen, steps[steps > last], schedule=plan.schedule, past=past)
    except InputError as error:  # such as of a schedule that is not that of every run of a file
        raise InputError(f"{seen.name}: {error}" if seen.name else str(error)) from None


def step_after(last: float) -> float:
    """Give the next step; beyond 2^53, as of a clock in nanoseconds, the next that there is."""
    return max(last + 1.0, math.nextafter(last, math.inf))


def in_words(keys: Mapping[str, Any]) -> str:
    """Say the budget, the schedule and the reading of an answer."""
    return f"budget {_words.count(keys['budget'])} ({keys['budget_from']}){_rest_in_words(keys)}"


def reasons_in_words(keys: Mapping[str, Any]) -> str:
    """Say the same without the step, which differs between runs."""
    return f"budget: {keys['budget_from']}{_rest_in_words(keys)}"


def _rest_in_words(keys: Mapping[str, Any]) -> str:
    rate, reading = keys.get("schedule_from"), keys.get("reached_by")
    return (f"; learning rate {rate}" if rate else "") + (
        f"; target read by the {reading}" if reading else ""
    )


def _end(
    seen: Trace,
    budget: float | None,
    file_end: float | None,
    schedule: Schedule | None,
    schedule_from: str | None,
) -> tuple[float, str]:
    last = float(seen.step[-1])
    if budget is not None:
        return budget, "--budget"
    planned: float | None = seen.planned_steps
    if planned is not None and planned > last:
        return planned, "planned by the log"
    known = last if file_end is None else max(last, file_end)
    if schedule is not None and schedule.step[-1] > known:
        return float(schedule.step[-1]), f"end of {schedule_from}"
    if file_end is not None and file_end > last:
        return file_end, "last step of the file"
    end = open_budget(float(seen.step[0]), last)
    ended = "its plan has ended: " if planned is not None else ""
    return (end if end > last else step_after(last)), f"{ended}ten times the steps seen"
