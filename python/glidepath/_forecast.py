# SPDX-License-Identifier: Apache-2.0
"""Forecasts: what a run will log, from what it has logged, and when it reaches its target."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath import _core
from glidepath._answer import SHOWN_LEVELS
from glidepath._arguments import checked, number
from glidepath._core import InputError
from glidepath._json import plain, restored, restoring
from glidepath._metrics import reached_by_name
from glidepath._past_runs import constants_of, past_of
from glidepath._pictures import series
from glidepath._results import Recorded, require, same
from glidepath._trace import array_of, as_trace, as_traces, refuse_traces, values_of

if TYPE_CHECKING:
    from glidepath._core import (
        BestSoFarRecord,
        ForecastBatchRecord,
        ForecastRecord,
        ReachRecord,
        ScheduleRecord,
    )
    from glidepath._past_runs import PastRuns
    from glidepath._schedule import Schedule
    from glidepath._trace import Trace

Floats = NDArray[np.float64]


def ends_of(coverage: float) -> tuple[float, float]:
    """Levels between which the central interval of a coverage lies."""
    if not 0.0 < coverage < 1.0:
        raise InputError(f"forecast: coverage {coverage:g} is not between 0 and 1")
    return (1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0


class Forecast(Recorded):
    """Predictive distribution of one run at the steps `at`; `forecast` makes them."""

    __slots__ = ("_trace",)
    _record: ForecastRecord

    _trace: Trace | None

    @classmethod
    def _of(cls, record: ForecastRecord, trace: Trace | None = None) -> Forecast:
        made = super()._of(record)
        made._trace = trace
        return made

    @property
    def at(self) -> Floats:
        """Steps of the forecast, shape (h,), in the unit of the trace."""
        return self._record.at

    @property
    def median(self) -> Floats:
        """Point forecast, the median of the noise-free curve, shape (h,), in the loss's unit."""
        return self._record.median

    @property
    def quantiles(self) -> Floats:
        """Quantiles of the raw (noisy) observation, shape (len(levels), h)."""
        return self._record.quantiles

    @property
    def levels(self) -> Floats:
        """Levels of the quantiles, shape (k,), in (0, 1)."""
        return self._record.levels

    @property
    def curve_quantiles(self) -> Floats:
        """Quantiles of the noise-free curve, shape (len(levels), h)."""
        return self._record.curve_quantiles

    @property
    def status(self) -> str:
        """``"good"``, ``"too_few_points"``, ``"flat"`` or ``"not_finite"``.

        Every status comes with finite numbers.
        """
        return self._record.status

    def quantile(self, p: float) -> Floats:
        """Give the quantile `p`, in (0, 1), of the raw observation at each step, shape (h,)."""
        return self._record.quantile(p)

    def curve_quantile(self, p: float) -> Floats:
        """Give the quantile `p`, in (0, 1), of the noise-free curve at each step, shape (h,)."""
        return self._record.curve_quantile(p)

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Give the central interval that holds the raw observation with probability `coverage`.

        Parameters
        ----------
        coverage : float
            In (0, 1), such as 0.8 for the quantiles 0.1 and 0.9.

        Returns
        -------
        low, high : ndarray, shape (h,)

        Raises
        ------
        InputError
            When the coverage is not in (0, 1).
        """
        low, high = ends_of(coverage)
        return self.quantile(low), self.quantile(high)

    def prob_below(self, target: float) -> Floats:
        """Give the probability that the observation at each step is at or below `target`."""
        return self._record.prob_below(target)

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and same(self._trace, getattr(other, "_trace", None))

    def __reduce__(self) -> tuple[Any, ...]:
        return self._of, (self._record, self._trace)

    def to_dict(self) -> dict[str, Any]:
        """Give plain lists and numbers, fit for JSON, with the run that was observed."""
        return super().to_dict() | {"trace": plain(self._trace)}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Forecast:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""
        from glidepath._trace import Trace

        with restoring("Forecast"):
            record = {name: value for name, value in state.items() if name != "trace"}
            made = super().from_dict(record)
            made._trace = restored(state["trace"], Trace | None)
            return made

    def _summary(self) -> str:
        low, high = (self.quantile(p)[-1] for p in (SHOWN_LEVELS[0], SHOWN_LEVELS[-1]))
        return (
            f"{self.median[-1]:.5g} at step {self.at[-1]:g}, "
            f"80 % within {low:.5g} to {high:.5g}, {self.status}"
        )

    def _rows(self) -> Iterator[tuple[str, str]]:
        low, high = (self.quantile(p) for p in (SHOWN_LEVELS[0], SHOWN_LEVELS[-1]))
        for i in np.unique(np.linspace(0, self.at.size - 1, 6).astype(int)):
            yield (
                f"step {self.at[i]:g}",
                f"{self.median[i]:.5g}, 80 % within {low[i]:.5g} to {high[i]:.5g}",
            )

    def to_pandas(self) -> Any:
        """Give a pandas DataFrame, one row per step, the quantiles as columns."""
        columns: dict[str, Floats] = {"median": self.median}
        for level, row in zip(self.levels, self.quantiles, strict=True):
            columns[f"q{level:g}"] = row
        return require("pandas").DataFrame(columns, index=self.at).rename_axis("step")

    def plot(self, ax: Any = None) -> Any:
        """Draw the fan chart; returns the matplotlib Axes."""
        from glidepath._pictures import plots

        return plots.forecast(self, trace=self._trace, ax=ax)


class ForecastBatch(Recorded):
    """Forecasts of many runs over shared steps; `forecast_batch` makes them."""

    __slots__ = ()
    _record: ForecastBatchRecord

    @property
    def at(self) -> Floats:
        """Steps of the forecasts, shape (h,)."""
        return self._record.at

    @property
    def median(self) -> Floats:
        """Point forecasts, shape (m, h), in the unit of each row's losses."""
        return self._record.median

    @property
    def quantiles(self) -> Floats:
        """Quantiles of the raw observation, shape (len(levels), m, h)."""
        return self._record.quantiles.reshape(self.levels.size, *self.median.shape)

    @property
    def levels(self) -> Floats:
        """Levels of the quantiles, shape (k,), in (0, 1)."""
        return self._record.levels

    @property
    def status(self) -> NDArray[np.str_]:
        """Status of each row, shape (m,), as in `Forecast`."""
        return np.array(self._record.status, dtype=np.str_)

    def quantile(self, p: float) -> Floats:
        """Give the quantiles of a level of `levels`, shape (m, h); InputError for another one."""
        at = np.flatnonzero(np.abs(self.levels - p) < 1e-9)
        if not at.size:
            known = ", ".join(f"{level:g}" for level in self.levels)
            raise InputError(f"forecast_batch: no level {p:g}, known: {known}")
        rows: Floats = self.quantiles[at[0]]
        return rows

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Give central intervals as `Forecast.interval`, each of shape (m, h), between `levels`."""
        low, high = ends_of(coverage)
        return self.quantile(low), self.quantile(high)

    def to_pandas(self) -> Any:
        """Give a pandas DataFrame, one row per run and step, the quantiles as columns."""
        pandas = require("pandas")
        columns = {"median": self.median.ravel()}
        for level, rows in zip(self.levels, self.quantiles, strict=True):
            columns[f"q{level:g}"] = rows.ravel()
        index = pandas.MultiIndex.from_product([range(len(self)), self.at], names=["run", "step"])
        return pandas.DataFrame(columns, index=index)

    def __len__(self) -> int:
        return len(self._record.status)

    def _summary(self) -> str:
        good = int(np.count_nonzero(self.status == "good"))
        return f"{len(self)} runs at {self.at.size} steps, {good} good"


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
        """Give the probability that the target is reached at or before `step`."""
        if math.isnan(step):
            raise InputError("reach: the step is NaN")
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
        """
        return self._record.remaining_steps(n)

    def _summary(self) -> str:
        if self.prob_never == 0.0:
            return f"target {self.target:g} reached at step {self.step[-1]:g}"
        summary = (
            f"target {self.target:g} within {self.budget:g} with probability "
            f"{series.chance(1.0 - self.prob_never)}"
        )
        if self.prob_never < 1.0:
            summary += f", if so by step {self.quantile(0.5, if_reached=True):.5g} (median)"
        return f"{summary}, {self.status}"

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "never", series.chance(self.prob_never)
        for p in SHOWN_LEVELS:
            at = self.quantile(p)
            yield f"{p:.0%} by", "never" if math.isinf(at) else f"step {at:.5g}"
        if 0.0 < self.prob_never < 1.0:
            low, median, high = (self.quantile(p, if_reached=True) for p in SHOWN_LEVELS)
            yield "if at all", f"step {median:.5g} (80 %: {low:.5g} to {high:.5g})"

    def plot(self, ax: Any = None) -> Any:
        """Draw the density of the step and the mass of never; returns the matplotlib Axes."""
        from glidepath._pictures import plots

        return plots.reach(self, ax=ax)


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
            f"{series.chance(self.prob_past)}, {self.status}"
        )


def _schedule_of(schedule: Schedule | None) -> ScheduleRecord | None:
    from glidepath._schedule import Schedule

    if schedule is None:
        return None
    if not isinstance(schedule, Schedule):
        raise InputError(
            f"schedule: expected a gp.Schedule, got {type(schedule).__name__}: "
            "gp.Schedule(step, lr)"
        )
    return schedule._record


def _levels_of(levels: ArrayLike | None) -> Floats | None:
    if levels is None:
        return None
    found = values_of(levels, "levels")
    if found.size == 0:
        raise InputError("forecast: no levels")
    return found


@checked
def forecast(
    trace: Trace | tuple[ArrayLike, ArrayLike],
    at: ArrayLike,
    *,
    schedule: Schedule | None = None,
    past: Sequence[Trace] | PastRuns | None = None,
    levels: ArrayLike | None = None,
    constants: str | None = None,
) -> Forecast:
    """Forecast what a run will log at the steps `at`.

    A fixed grid of curve shapes and noise structures, everything linear integrated in closed form,
    weighted by evidence and a learned prior: see docs/method/forecast.md.

    Parameters
    ----------
    trace : Trace or tuple of two arrays
        What was observed, or its steps and losses.
    at : float or array_like, shape (h,)
        Strictly increasing steps past the last observed one.
    schedule : Schedule, optional
        Learning rate of the whole run. Where the trace logged a rate, that one counts for the past.
        A constant schedule changes no forecast: it has no effect that could be foreseen.
    past : PastRuns or list of Trace, optional
        Finished runs of the same user, model or study and direction. They become curve shapes; a
        plain list serves as shapes only, `PastRuns` has learned the widths of intervals besides.
    levels : array_like, shape (k,), optional
        Quantile levels in (0, 1), increasing; default 0.05, 0.10 ... 0.95.
    constants : str, optional
        Text of a table of constants; default: the learned one.

    Returns
    -------
    Forecast

    Raises
    ------
    InputError
        When the steps do not increase past the last observed one, when the schedule contradicts the
        learning rate of the trace, or when a past run has the other direction.
    """
    trace = as_trace(trace, "forecast")
    record = _core.forecast(
        trace,
        values_of(at, "at"),
        schedule=_schedule_of(schedule),
        past=past_of(past),
        levels=_levels_of(levels),
        constants=constants_of(constants),
    )
    return Forecast._of(record, trace)


@checked
def forecast_batch(
    step: ArrayLike,
    loss: ArrayLike,
    at: ArrayLike,
    *,
    threads: int = 0,
    levels: ArrayLike | None = None,
    direction: str = "min",
    constants: str | None = None,
) -> ForecastBatch:
    """Forecast many runs over shared steps; row i is the single forecast of row i, byte for byte.

    Parameters
    ----------
    step : array_like, shape (n,)
        Observed steps of all runs.
    loss : array_like, shape (m, n)
        Observed losses, a row for each run.
    at : float or array_like, shape (h,)
        Strictly increasing steps past the last observed one.
    threads : int, optional
        0 uses all cores. The numbers do not depend on it.
    levels : array_like, shape (k,), optional
        As for `forecast`.
    direction : {"min", "max"}, optional
        Whether the metric is better when low or when high.
    constants : str, optional
        As for `forecast`.

    Returns
    -------
    ForecastBatch

    Raises
    ------
    InputError
        When a length differs or the steps do not increase past the last observed one.
    """
    refuse_traces(step, "forecast_batch")
    record = _core.forecast_batch(
        step=array_of(step, "step"),
        loss=array_of(loss, "loss", 2),
        at=values_of(at, "at"),
        threads=threads,
        levels=_levels_of(levels),
        direction=direction,
        constants=constants_of(constants),
    )
    return ForecastBatch._of(record)


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
    reached_by : {"curve", "point"}, optional
        ``"curve"``: the target is reached where the median of the newest tenth of the logged values
        is at or beyond it (5 to 63 of them, a quarter at most), so that noise decides nothing.
        ``"point"``: where one value is. By default what the name of the metric says: a point of
        evaluations (``val_loss``) and scores (``accuracy``), else the curve.
    schedule, past, constants : optional
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
    end = _planned("reach", trace) if budget is None else number(budget)
    (found,) = _reach(
        "reach",
        (trace,),
        np.array([number(target)]),
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
    reached_by : {"curve", "point"}, optional
        As for `reach`, for all runs; by default what the name of each metric says.
    schedule, past, constants : optional
        As for `forecast`, for all runs.
    threads : int, optional
        0 uses all cores. The numbers do not depend on it.

    Returns
    -------
    list of Reach

    Raises
    ------
    InputError
        As for `reach`, when the runs have different directions or different readings by name, or
        when there is neither one target nor one for each run.
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
    reached_by : {"curve", "point"}, optional
        What a level is, as for `reach`.
    schedule, past, constants : optional
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
        step=trace.step,
        loss=trace.loss,
        lr=trace.lr,
        budget=_planned("best_so_far", trace) if budget is None else number(budget),
        schedule=_schedule_of(schedule),
        past=past_of(past),
        direction=trace.direction,
        reached_by=reached_by_name(trace.metric) if reached_by is None else reached_by,
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
    readings = {reached_by_name(run.metric) for run in runs} if reached_by is None else {reached_by}
    if len(readings) > 1:
        raise InputError(
            f"{verb}: of some metrics a target is reached by the curve, of others by a point: "
            "give reached_by"
        )
    records = _core.reach_batch(
        runs,
        targets,
        budgets,
        schedule=_schedule_of(schedule),
        past=past_of(past),
        direction=directions.pop(),
        constants=constants_of(constants),
        reached_by=readings.pop() if readings else "curve",
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
