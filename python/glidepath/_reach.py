# SPDX-License-Identifier: Apache-2.0
"""When a run reaches its target, and whether its best level is already past."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from glidepath import _core, _words
from glidepath._answer import SHOWN_LEVELS
from glidepath._arguments import checked, number_of
from glidepath._columns import Floats, values_of
from glidepath._core import InputError
from glidepath._past_runs import constants_of, past_of
from glidepath._results import Recorded
from glidepath._schedule import schedule_record
from glidepath._trace import as_trace, as_traces

if TYPE_CHECKING:
    from glidepath._core import BestSoFarRecord, ReachRecord
    from glidepath._past_runs import PastRuns
    from glidepath._schedule import Schedule
    from glidepath._trace import Trace


class Reach(Recorded):
    """Law of the first step at which a run has reached its target; `reach` makes them."""

    __slots__ = ()
    _record: ReachRecord

    @property
    def step(self) -> Floats:
        """Increasing grid from the last observed step to the budget, shape (n,)."""
        return self._record.step

    @property
    def cdf(self) -> Floats:
        """Probability that the target is reached by each step of the grid, shape (n,)."""
        return self._record.cdf

    @property
    def prob_never(self) -> float:
        """Probability that the target is not reached within the budget."""
        return self._record.prob_never

    @property
    def target(self) -> float:
        """Loss to reach."""
        return self._record.target

    @property
    def budget(self) -> float:
        """Step after which the run ends."""
        return self._record.budget

    @property
    def status(self) -> str:
        """Status of the underlying forecast."""
        return self._record.status

    def prob_by(self, step: float) -> float:
        """Give the probability that the target is reached at or before `step`.

        As of this budget: with past runs, what counts beside the curve depends on it.

        Raises
        ------
        InputError
            When the step is NaN.
        """
        if math.isnan(step):
            raise InputError("reach: step is nan, expected a number")
        return self._record.prob_by(step)

    def quantile(self, p: float, *, if_reached: bool = False) -> float:
        """Give the smallest step by which the target is reached with probability `p`.

        Parameters
        ----------
        p : float
            In 0 to 1.
        if_reached : bool, optional
            Take the law given that the target is reached within the budget.

        Returns
        -------
        float
            inf where the target is reached within the budget with probability below `p`; with
            `if_reached` only where it cannot be reached.

        Raises
        ------
        InputError
            When `p` is no probability.
        """
        return self._record.quantile_if_reached(p) if if_reached else self._record.quantile(p)

    def remaining_steps(self, n: int) -> Floats:
        """Give `n` equally likely numbers of steps from the last observed one to the target.

        Parameters
        ----------
        n : int
            At least 1.

        Returns
        -------
        ndarray, shape (n,)
            Increasing and not negative: 0 where the target is reached already, inf for never. What
            `Job.remaining_steps` takes.

        Raises
        ------
        InputError
            When `n` is below 1.
        """
        return self._record.remaining_steps(n)

    def _summary(self) -> str:
        if self.prob_never == 0.0:
            return f"target {self.target:g} reached at step {self.step[-1]:g}"
        summary = (
            f"target {self.target:g} within {self.budget:g} with probability "
            f"{_words.chance(1.0 - self.prob_never)}"
        )
        if self.prob_never < 1.0:
            summary += f", if so by step {self.quantile(0.5, if_reached=True):.5g} (median)"
        return f"{summary}, {self.status}"

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "never", _words.chance(self.prob_never)
        for p in SHOWN_LEVELS:
            at = self.quantile(p)
            yield f"{p:.0%} by", "never" if math.isinf(at) else f"step {at:.5g}"
        if 0.0 < self.prob_never < 1.0:
            low, median, high = (self.quantile(p, if_reached=True) for p in SHOWN_LEVELS)
            yield "if at all", f"step {median:.5g} (80 %: {low:.5g} to {high:.5g})"

    def plot(self, ax: Any = None) -> Any:
        """Draw the density of the step and the mass of never; returns the matplotlib Axes."""
        from glidepath._pictures import runs

        return runs.reach(self, ax=ax)


class BestSoFar(Recorded):
    """The best level of a run so far, and whether it stays the best; `best_so_far` makes them."""

    __slots__ = ()
    _record: BestSoFarRecord

    @property
    def step(self) -> float:
        """Step at which the best level was reached; NaN where no value is finite."""
        return self._record.step

    @property
    def value(self) -> float:
        """The best level, in the unit of the loss; NaN where no value is finite."""
        return self._record.value

    @property
    def prob_past(self) -> float:
        """Probability that no later level is better, up to the budget; NaN as above."""
        return self._record.prob_past

    @property
    def budget(self) -> float:
        """Step after which the run ends."""
        return self._record.budget

    @property
    def status(self) -> str:
        """Status of the underlying forecast."""
        return self._record.status

    def _summary(self) -> str:
        if math.isnan(self.value):
            return f"no finite value, {self.status}"
        return (
            f"best {self.value:.5g} at step {self.step:g}, already past with probability "
            f"{_words.chance(self.prob_past)}, {self.status}"
        )


@checked
def reach(
    trace: Trace | tuple[ArrayLike, ArrayLike],
    target: float,
    *,
    budget: float | None = None,
    schedule: Schedule | None = None,
    past: Sequence[Trace] | PastRuns | None = None,
    reached_by: str | None = None,
    constants: str | None = None,
) -> Reach:
    """Forecast the first step at which a run has reached `target`.

    Parameters
    ----------
    trace : Trace or tuple of two arrays
        What was observed, or its steps and losses.
    target : float
        Loss to reach.
    budget : float, optional
        Absolute step after which the run ends; default: `trace.planned_steps`.
    schedule, past : optional
        As for `forecast`.
    reached_by : {"curve", "point"}, optional
        ``"curve"``: the target is reached where the median of the newest tenth of the logged values
        is at or beyond it (5 to 63 of them, a quarter at most), so that noise decides nothing.
        ``"point"``: where one value is. By default what the name of the metric says: a point of
        evaluations (``val_loss``) and scores (``accuracy``), else the curve.
    constants : optional
        As for `forecast`.

    Returns
    -------
    Reach

    Raises
    ------
    InputError
        When the target is NaN, when the budget is missing or not finite, or as for `forecast`.
    """
    trace = as_trace(trace, "reach")
    end = _planned("reach", trace) if budget is None else number_of(budget)
    (found,) = _reach(
        "reach",
        (trace,),
        np.array([number_of(target)]),
        np.array([end]),
        schedule=schedule,
        past=past,
        reached_by=reached_by,
        threads=1,
        constants=constants,
    )
    return found


@checked
def reach_batch(
    traces: Sequence[Trace],
    targets: ArrayLike,
    *,
    budgets: ArrayLike | None = None,
    schedule: Schedule | None = None,
    past: Sequence[Trace] | PastRuns | None = None,
    reached_by: str | None = None,
    threads: int = 0,
    constants: str | None = None,
) -> list[Reach]:
    """Forecast when each of many runs reaches its target; entry i is `reach` of trace i.

    Parameters
    ----------
    traces : list of Trace
        Runs of one direction, each with steps of its own.
    targets : float or array_like, shape (m,)
        Loss to reach, in the unit of the loss: one for all runs, or one for each.
    budgets : float or array_like, shape (m,), optional
        Absolute step after which a run ends: one for all runs, or one for each; default:
        `planned_steps` of each trace.
    schedule, past : optional
        As for `forecast`, for all runs.
    reached_by : {"curve", "point"}, optional
        As for `reach`, for all runs; by default what the name of each metric says.
    threads : int, optional
        0 uses all cores. The numbers do not depend on it.
    constants : optional
        As for `forecast`, for all runs.

    Returns
    -------
    list of Reach

    Raises
    ------
    InputError
        As for `reach`, when the runs have different directions, or when there is neither one target
        nor one for each run.
    """
    runs = as_traces(traces, "reach_batch")
    steps = [_planned("reach", run) for run in runs] if budgets is None else budgets
    return _reach(
        "reach_batch",
        runs,
        values_of(targets, "targets"),
        values_of(steps, "budgets"),
        schedule=schedule,
        past=past,
        reached_by=reached_by,
        threads=threads,
        constants=constants,
    )


@checked
def best_so_far(
    trace: Trace | tuple[ArrayLike, ArrayLike],
    *,
    budget: float | None = None,
    schedule: Schedule | None = None,
    past: Sequence[Trace] | PastRuns | None = None,
    reached_by: str | None = None,
    constants: str | None = None,
) -> BestSoFar:
    """Find the best level of a run so far, and the probability that it stays the best.

    A level is the median of the newest tenth of the logged values, or one of them, as for the
    target of `reach`. Early stopping by it: stop where `prob_past` is at least 0.95, say.

    Parameters
    ----------
    trace : Trace or tuple of two arrays
        What was observed, or its steps and losses.
    budget : float, optional
        Absolute step after which the run ends; default: `trace.planned_steps`.
    schedule, past : optional
        As for `forecast`.
    reached_by : {"curve", "point"}, optional
        What a level is, as for `reach`.
    constants : optional
        As for `forecast`.

    Returns
    -------
    BestSoFar

    Raises
    ------
    InputError
        When the budget is missing or not finite, or as for `forecast`.
    """
    trace = as_trace(trace, "best_so_far")
    record = _core.best_so_far(
        trace,
        budget=_planned("best_so_far", trace) if budget is None else number_of(budget),
        schedule=schedule_record(schedule),
        past=past_of(past),
        reached_by=reached_by,
        constants=constants_of(constants),
    )
    return BestSoFar._of(record)


def _reach(
    verb: str,
    runs: tuple[Trace, ...],
    targets: Floats,
    budgets: Floats,
    *,
    schedule: Schedule | None,
    past: Sequence[Trace] | PastRuns | None,
    reached_by: str | None,
    threads: int,
    constants: str | None,
) -> list[Reach]:
    """Forecast when runs of one direction reach their targets."""
    directions = {run.direction for run in runs} or {"min"}
    if len(directions) > 1:
        raise InputError(f"{verb}: the traces mix directions 'min' and 'max'")
    records = _core.reach_batch(
        runs,
        targets,
        budgets,
        schedule=schedule_record(schedule),
        past=past_of(past),
        direction=directions.pop(),
        constants=constants_of(constants),
        reached_by=reached_by,
        threads=threads,
    )
    return [Reach._of(record) for record in records]


def _planned(verb: str, run: Trace) -> float:
    if run.planned_steps is None:
        raise InputError(
            f"{verb}: {run.name or 'the trace'} has no planned_steps: give the budget, the step "
            "after which the run ends"
        )
    return run.planned_steps
