# SPDX-License-Identifier: Apache-2.0
"""Forecasts: what a run will log, from what it has logged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath import _core
from glidepath._answer import SHOWN_LEVELS, quantile_name
from glidepath._arguments import checked
from glidepath._columns import Floats, array_of, values_of
from glidepath._core import InputError
from glidepath._json import plain, restored, restoring
from glidepath._past_runs import constants_of, past_of
from glidepath._results import Recorded, counted, require, same
from glidepath._schedule import schedule_record
from glidepath._trace import as_trace, refuse_traces

if TYPE_CHECKING:
    from glidepath._core import ForecastBatchRecord, ForecastRecord
    from glidepath._past_runs import PastRuns
    from glidepath._schedule import Schedule
    from glidepath._trace import Trace


def ends_of(coverage: float) -> tuple[float, float]:
    """Levels between which the central interval of a coverage lies."""
    if not 0.0 < coverage < 1.0:
        raise InputError(f"forecast: coverage is {coverage:g}, expected above 0 and below 1")
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

        Every status comes with finite numbers; those of a run without a finite value, and without
        past runs, mean nothing. The last is that of a run that ended in NaN or infinity, for longer
        than ever between two values.
        """
        return self._record.status

    def quantile(self, p: float) -> Floats:
        """Give the quantile `p`, in (0, 1), of the raw observation at each step, shape (h,).

        Raises
        ------
        InputError
            When `p` is not in (0, 1).
        """
        return self._record.quantile(p)

    def curve_quantile(self, p: float) -> Floats:
        """Give the quantile `p`, in (0, 1), of the noise-free curve at each step, shape (h,).

        Raises
        ------
        InputError
            When `p` is not in (0, 1).
        """
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
        """Give the probability that the observation at each step is at or below `target`, (h,).

        Raises
        ------
        InputError
            When the target is NaN.
        """
        return self._record.prob_below(target)

    def __eq__(self, other: object) -> bool:
        equal = super().__eq__(other)
        if equal is not True:  # NotImplemented has no truth
            return equal
        return same(self._trace, getattr(other, "_trace", None))

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

    @property
    def _is_blind(self) -> bool:
        """Whether there was nothing to forecast from: the numbers then mean nothing."""
        blind = self.status in ("too_few_points", "not_finite")  # past runs make it good
        return blind and self._trace is not None and not np.isfinite(self._trace.loss).any()

    def _summary(self) -> str:
        if self._is_blind:
            return f"no finite value to forecast from, {self.status}"
        low, high = (self.quantile(p)[-1] for p in (SHOWN_LEVELS[0], SHOWN_LEVELS[-1]))
        return (
            f"{self.median[-1]:.5g} at step {self.at[-1]:g}, "
            f"80 % within {low:.5g} to {high:.5g}, {self.status}"
        )

    def _rows(self) -> Iterator[tuple[str, str]]:
        if self._is_blind:
            return
        low, high = (self.quantile(p) for p in (SHOWN_LEVELS[0], SHOWN_LEVELS[-1]))
        for i in np.unique(np.linspace(0, self.at.size - 1, 6).astype(int)):
            yield (
                f"step {self.at[i]:g}",
                f"{self.median[i]:.5g}, 80 % within {low[i]:.5g} to {high[i]:.5g}",
            )

    def to_pandas(self) -> Any:
        """Give a pandas DataFrame, one row per step, the quantiles as columns such as ``q10``."""
        columns: dict[str, Floats] = {"median": self.median}
        for level, row in zip(self.levels, self.quantiles, strict=True):
            columns[quantile_name(level)] = row
        return require("pandas").DataFrame(columns, index=self.at).rename_axis("step")

    def plot(self, ax: Any = None) -> Any:
        """Draw the fan chart; returns the matplotlib Axes."""
        from glidepath._pictures import runs

        return runs.forecast(self, trace=self._trace, ax=ax)


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
        found = np.array(self._record.status, dtype=np.str_)
        found.flags.writeable = False
        return found

    def quantile(self, p: float) -> Floats:
        """Give the quantiles of a level of `levels`, shape (m, h); InputError for another one."""
        at = np.flatnonzero(np.abs(self.levels - p) < 1e-9)
        if not at.size:
            known = ", ".join(f"{level:g}" for level in self.levels)
            raise InputError(f"forecast_batch: no level {p:g}, expected one of {known}")
        rows: Floats = self.quantiles[at[0]]
        return rows

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Give central intervals as `Forecast.interval`, each of shape (m, h), between `levels`.

        Raises
        ------
        InputError
            When the coverage is not in (0, 1), or its ends are not among `levels`.
        """
        low, high = ends_of(coverage)
        return self.quantile(low), self.quantile(high)

    def to_pandas(self) -> Any:
        """Give a pandas DataFrame, one row per run and step, with columns such as ``q10``."""
        pandas = require("pandas")
        columns = {"median": self.median.ravel()}
        for level, rows in zip(self.levels, self.quantiles, strict=True):
            columns[quantile_name(level)] = rows.ravel()
        index = pandas.MultiIndex.from_product([range(len(self)), self.at], names=["run", "step"])
        return pandas.DataFrame(columns, index=index)

    def __len__(self) -> int:
        return len(self._record.status)

    def _summary(self) -> str:
        good = int(np.count_nonzero(self.status == "good"))
        return f"{counted(len(self), 'run')} at {counted(self.at.size, 'step')}, {good} good"


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
        A constant schedule changes no forecast, unless the log begins late: it has no effect that
        could be foreseen, but tells of the time before the log. Of a log that does not begin late
        at most seven tenths of the forecast go by the schedule.
    past : PastRuns or list of Trace, optional
        Finished runs of the same user, model or study and direction. They become curve shapes,
        which count as far as these runs forecast each other; a plain list serves as shapes only,
        `PastRuns` has learned the widths of intervals besides.
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
        schedule=schedule_record(schedule),
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
    schedule: Schedule | None = None,
    past: Sequence[Trace] | PastRuns | None = None,
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
    schedule, past : optional
        As for `forecast`, for all runs.
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
        When a length differs, the steps do not increase past the last observed one, or a past run
        has the other direction.
    """
    refuse_traces(step, "forecast_batch")
    record = _core.forecast_batch(
        step=array_of(step, "step"),
        loss=array_of(loss, "loss", 2),
        at=values_of(at, "at"),
        schedule=schedule_record(schedule),
        past=past_of(past),
        threads=threads,
        levels=_levels_of(levels),
        direction=direction,
        constants=constants_of(constants),
    )
    return ForecastBatch._of(record)
