# SPDX-License-Identifier: Apache-2.0
"""Forecasts: what a run will log, from what it has logged, and when it reaches its target."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath import _core
from glidepath._core import InputError
from glidepath._results import Result

if TYPE_CHECKING:
    from glidepath._trace import Trace

__all__ = [
    "Calibration",
    "Forecast",
    "ForecastBatch",
    "Reach",
    "calibrate",
    "forecast",
    "forecast_batch",
    "reach",
]

Floats = NDArray[np.float64]
# Learning rate ahead: values at the steps of the forecast, or (steps, values).
Schedule = ArrayLike | tuple[ArrayLike, ArrayLike]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Forecast(Result):
    """Predictive distribution of one run at the steps `at`.

    Attributes
    ----------
    at : ndarray, shape (h,)
        Steps of the forecast, in the unit of the trace.
    median : ndarray, shape (h,)
        Median of the noise-free curve, in the unit of the loss.
    quantiles : ndarray, shape (len(levels), h)
        Quantiles of the raw (noisy) observation.
    levels : ndarray, shape (k,)
        Levels of `quantiles`, in (0, 1).
    curve_quantiles : ndarray, shape (len(levels), h)
        Quantiles of the noise-free curve.
    status : str
        ``"good"``, ``"too_few_points"``, ``"flat"`` or ``"not_finite"``; every status comes with
        finite numbers.
    """

    at: Floats
    median: Floats
    quantiles: Floats
    levels: Floats
    curve_quantiles: Floats
    status: str
    _law: dict[str, Floats]
    _trace: Trace | None = None

    def quantile(self, q: float) -> Floats:
        """Quantile `q` in (0, 1) of the raw observation at each step."""
        return _core.forecast_quantile(self.at, self._law, float(q), True)

    def curve_quantile(self, q: float) -> Floats:
        """Quantile `q` in (0, 1) of the noise-free curve at each step."""
        return _core.forecast_quantile(self.at, self._law, float(q), False)

    def prob_below(self, target: float) -> Floats:
        """Give the probability that the observation at each step is at or below `target`."""
        return _core.forecast_prob_below(self.at, self._law, float(target))

    def _summary(self) -> str:
        low, high = self.quantile(0.1)[-1], self.quantile(0.9)[-1]
        return (
            f"{self.median[-1]:.5g} at step {self.at[-1]:g}, "
            f"80 % within {low:.5g} to {high:.5g}, {self.status}"
        )

    def _rows(self) -> Iterator[tuple[str, str]]:
        low, high = self.quantile(0.1), self.quantile(0.9)
        for i in np.unique(np.linspace(0, self.at.size - 1, 6).astype(int)):
            yield (
                f"step {self.at[i]:g}",
                f"{self.median[i]:.5g}, 80 % within {low[i]:.5g} to {high[i]:.5g}",
            )

    def to_pandas(self) -> Any:
        """Give a pandas DataFrame, one row per step, the quantiles as columns."""
        from glidepath._results import require

        columns: dict[str, Floats] = {"median": self.median}
        for level, row in zip(self.levels, self.quantiles, strict=True):
            columns[f"q{level:g}"] = row
        return require("pandas").DataFrame(columns, index=self.at).rename_axis("step")

    def plot(self, ax: Any = None) -> Any:
        """Draw the fan chart; returns the matplotlib Axes."""
        from glidepath._pictures import plots

        return plots.forecast(self, trace=self._trace, ax=ax)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ForecastBatch(Result):
    """Forecasts of many runs over shared steps.

    Attributes
    ----------
    at : ndarray, shape (h,)
    median : ndarray, shape (m, h)
        Medians of the noise-free curve, in the unit of each row's losses.
    quantiles : ndarray, shape (len(levels), m, h)
        Of the raw observation.
    levels : ndarray, shape (k,)
        In (0, 1).
    status : ndarray of str, shape (m,)
    """

    at: Floats
    median: Floats
    quantiles: Floats
    levels: Floats
    status: NDArray[np.str_]

    def _summary(self) -> str:
        good = int(np.count_nonzero(self.status == "good"))
        return f"{self.median.shape[0]} runs at {self.at.size} steps, {good} good"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reach(Result):
    """Law of the first step at which a run reaches its target.

    Attributes
    ----------
    step : ndarray, shape (n,)
        Increasing grid from the last observed step to the budget.
    cdf : ndarray, shape (n,)
        Probability that the target is reached by each step of the grid.
    prob_never : float
        Probability that it is not reached within the budget.
    target, budget : float
        The loss to reach, and the step after which the run ends.
    status : str
        Of the forecast behind it.
    """

    step: Floats
    cdf: Floats
    prob_never: float
    target: float
    budget: float
    status: str

    def prob_by(self, step: float) -> float:
        """Probability that the target is reached at or before `step`."""
        if not step >= self.step[0]:
            return 0.0
        return float(np.interp(step, self.step, self.cdf))

    def quantile(self, p: float, *, if_reached: bool = False) -> float:
        """Smallest step by which it is reached with probability `p`; inf where never.

        With `if_reached` of the law given that it is reached within the budget: when, if at all;
        inf only where that is impossible.
        """
        if not 0.0 <= p <= 1.0:
            raise InputError(f"reach: probability {p:g} is not in 0 to 1")
        if if_reached:
            p = p * float(self.cdf[-1]) if self.cdf[-1] > 0.0 else math.inf
        if p > self.cdf[-1]:
            return math.inf
        i = int(np.searchsorted(self.cdf, p))
        if i == 0:
            return float(self.step[0])
        part = (p - self.cdf[i - 1]) / (self.cdf[i] - self.cdf[i - 1])
        return float(self.step[i - 1] + part * (self.step[i] - self.step[i - 1]))

    def _summary(self) -> str:
        if self.prob_never == 0.0:
            return f"target {self.target:g} reached at step {self.step[-1]:g}"
        said = (
            f"target {self.target:g} within {self.budget:g} with probability "
            f"{1.0 - self.prob_never:.3f}"
        )
        if self.prob_never < 1.0:
            said += f", if so by step {self.quantile(0.5, if_reached=True):.5g} (median)"
        return f"{said}, {self.status}"

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "never", f"{self.prob_never:.3f}"
        for p in (0.1, 0.5, 0.9):
            at = self.quantile(p)
            yield f"{p:.0%} by", "never" if math.isinf(at) else f"step {at:.5g}"
        if 0.0 < self.prob_never < 1.0:
            low, median, high = (self.quantile(p, if_reached=True) for p in (0.1, 0.5, 0.9))
            yield "if at all", f"step {median:.5g} (80 %: {low:.5g} to {high:.5g})"

    def plot(self, ax: Any = None) -> Any:
        """Draw the density of the step and the mass of never; returns the matplotlib Axes."""
        from glidepath._pictures import plots

        return plots.reach(self, ax=ax)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Calibration(Result):
    """Widths learned from finished runs by `calibrate`, or one run at a time by `update`.

    Attributes
    ----------
    horizon : ndarray, shape (n,)
        log(step / last observed step), increasing; empty = nothing learned yet, the default.
    factor : ndarray, shape (n,)
        Factor of the half-widths at each horizon.
    runs : int
        Finished runs behind it.
    scheduled_factor : ndarray, shape (n,) or (0,)
        The same for forecasts that know the learning rate ahead (`lr_ahead`), from the runs that
        logged one; empty = there was none, and such forecasts keep their widths.
    scheduled_runs : int
        Finished runs behind that.
    schedule_helps : bool
        False where those runs were forecast worse for knowing their learning rate: forecasts then
        leave `lr_ahead` out of account.
    """

    horizon: Floats = field(default_factory=lambda: np.empty(0))
    factor: Floats = field(default_factory=lambda: np.empty(0))
    runs: int = 0
    scheduled_factor: Floats = field(default_factory=lambda: np.empty(0))
    scheduled_runs: int = 0
    schedule_helps: bool = True

    _FORMAT: ClassVar[str] = "glidepath.calibration"

    def to_dict(self) -> dict[str, Any]:
        """Give plain lists and numbers, fit for JSON."""
        return {
            "format": self._FORMAT,
            "version": 2,
            "horizon": self.horizon.tolist(),
            "factor": self.factor.tolist(),
            "runs": self.runs,
            "scheduled_factor": self.scheduled_factor.tolist(),
            "scheduled_runs": self.scheduled_runs,
            "schedule_helps": self.schedule_helps,
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Calibration:
        """Read what `to_dict` wrote, of version 1, too; InputError on anything else."""
        if state.get("format") != cls._FORMAT or state.get("version") not in (1, 2):
            raise InputError(
                f"calibration: expected format '{cls._FORMAT}' version 1 or 2, got "
                f"{state.get('format')!r} version {state.get('version')!r}"
            )
        missing = {"horizon", "factor", "runs"} - set(state)
        if missing:
            raise InputError(f"calibration: no {min(missing)!r}")
        horizon, factor, scheduled = (
            np.asarray(state.get(key, ()), dtype=np.float64)
            for key in ("horizon", "factor", "scheduled_factor")
        )
        if horizon.shape != factor.shape or horizon.ndim != 1:
            raise InputError(f"calibration: {horizon.size} horizons, {factor.size} factors")
        if scheduled.shape not in (horizon.shape, (0,)):
            raise InputError(
                f"calibration: {horizon.size} horizons, {scheduled.size} scheduled factors"
            )
        factors = np.concatenate((factor, scheduled))
        if not (
            np.all(np.isfinite(factors)) and np.all(factors > 0) and np.all(np.diff(horizon) > 0)
        ):
            raise InputError("calibration: factors must be positive and horizons increase")
        return cls(
            horizon,
            factor,
            int(state["runs"]),
            scheduled,
            int(state.get("scheduled_runs", 0)),
            bool(state.get("schedule_helps", True)),
        )

    def _given(self) -> tuple[Any, ...]:
        """All fields in their order, which is what the compiled module takes and gives."""
        return tuple(getattr(self, f.name) for f in fields(self))

    @classmethod
    def _of(cls, given: tuple[Any, ...]) -> Calibration:
        horizon, factor, runs, scheduled, scheduled_runs, helps = given
        return cls(
            np.array(horizon), np.array(factor), runs, np.array(scheduled), scheduled_runs, helps
        )

    def update(
        self,
        finished: Trace,
        *,
        past: Sequence[Trace] | None = None,
        constants: str | None = None,
    ) -> Calibration:
        """Learn from one more run, online (adaptive conformal inference, Gibbs and Candès 2021).

        Where the 80 % interval missed the run, the factor of that horizon grows by 8 %; where it
        held, it falls by 2 %. In the long run 80 % of the runs are covered, whatever their kind
        and even if that changes; `calibrate` learns faster from runs that are at hand together.

        Parameters
        ----------
        finished : Trace
            A run of fewer than 8 points says nothing.
        past, constants : optional
            As for `calibrate`.

        Returns
        -------
        Calibration
            A new one; this one stays as it is.

        Raises
        ------
        InputError
            This calibration has horizons that `calibrate` does not give.
        """
        given = _options(None, past=past, constants=constants)
        return Calibration._of(
            _core.calibrate_online(
                self._given(), _runs([finished]) or [], finished.direction, given
            )
        )

    def _summary(self) -> str:
        plain, scheduled = (
            ", ".join(f"{f:.3g}" for f in factor) for factor in (self.factor, self.scheduled_factor)
        )
        said = f"half-widths times {plain}, from {self.runs} runs"
        if not self.schedule_helps:
            return f"{said}; schedules mislead on them and are left out of account"
        if self.scheduled_runs:
            said += f"; with a schedule times {scheduled}, from {self.scheduled_runs}"
        return said


@functools.lru_cache(maxsize=16)
def _constants(text: str) -> Any:
    """Parse a table of constants."""
    return _core.read_constants(text)


def _runs(
    past: Sequence[Trace] | None, direction: str | None = None
) -> list[tuple[Floats, Floats, Floats | None]] | None:
    """Columns of runs; InputError where one has another `direction` than the run they serve."""
    if past is None:
        return None
    for run in past:
        if direction not in (None, run.direction):
            raise InputError(
                f"past: {run.name!r} has direction {run.direction!r}, the live run {direction!r}"
            )
    return [(run.step, run.loss, run.lr) for run in past]


def _options(
    trace: Trace | None,
    *,
    lr_ahead: Schedule | None = None,
    past: Sequence[Trace] | None = None,
    levels: ArrayLike | None = None,
    calibration: Any = None,
    constants: str | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if trace is not None:
        given["direction"] = trace.direction
        if trace.lr is not None and lr_ahead is not None:
            given["lr"] = trace.lr
            if isinstance(lr_ahead, tuple) and len(lr_ahead) == 2 and np.ndim(lr_ahead[0]) == 1:
                given["lr_step"], given["lr_ahead"] = lr_ahead
            else:
                given["lr_ahead"] = lr_ahead
    if past is not None:
        given["past"] = _runs(past, None if trace is None else trace.direction)
    if levels is not None:
        given["levels"] = np.asarray(levels, dtype=np.float64)
        if given["levels"].size == 0:
            raise InputError("forecast: no levels")
    if calibration is not None:
        given["calibration"] = calibration._given()
    if constants is not None:
        given["constants"] = _constants(constants)
    return given


def forecast(
    trace: Trace,
    steps: ArrayLike,
    *,
    lr_ahead: Schedule | None = None,
    past: Sequence[Trace] | None = None,
    levels: ArrayLike | None = None,
    calibration: Any = None,
    constants: str | None = None,
) -> Forecast:
    """Forecast what a run will log at `steps`.

    A fixed grid of curve shapes and noise structures, everything linear integrated in closed form,
    weighted by evidence and a learned prior: see docs/method/forecast.md.

    Parameters
    ----------
    trace : Trace
        What was observed. With `trace.lr` and `lr_ahead` the schedule is taken into account.
    steps : array_like, shape (h,)
        Strictly increasing, past the last observed step.
    lr_ahead : array_like, shape (h,), or (steps, lr), optional
        Planned learning rate at `steps`, or at steps of its own.
    past : list of Trace, optional
        Finished runs of the same user, model or study and direction; they become curve shapes.
    levels : array_like, shape (k,), optional
        Quantile levels in (0, 1), increasing; default 0.05, 0.10 ... 0.95.
    calibration : Calibration, optional
        Widths learned from finished runs by `calibrate`, and whether to heed `lr_ahead`.
    constants : str, optional
        Text of a table of constants; default: the learned one.

    Returns
    -------
    Forecast

    Raises
    ------
    InputError
        When the steps do not increase past the last observed one, or a length differs.
    """
    given = _options(
        trace,
        lr_ahead=lr_ahead,
        past=past,
        levels=levels,
        calibration=calibration,
        constants=constants,
    )
    steps, levels, mean, quantiles, curve, status, law = _core.forecast(
        trace.step, trace.loss, steps, given
    )
    return Forecast(steps, mean, quantiles, levels, curve, status, law, trace)


def forecast_batch(
    step: ArrayLike,
    loss: ArrayLike,
    steps: ArrayLike,
    *,
    threads: int = 0,
    levels: ArrayLike | None = None,
    direction: str = "min",
    constants: str | None = None,
) -> ForecastBatch:
    """Forecast many runs over shared steps; row i is the single forecast of row i, exactly.

    Parameters
    ----------
    step : array_like, shape (n,)
    loss : array_like, shape (m, n)
    steps : array_like, shape (h,)
    threads : int, optional
        0 = all cores. The numbers do not depend on it.
    levels : array_like, shape (k,), optional
    direction : {"min", "max"}, optional
    constants : str, optional

    Returns
    -------
    ForecastBatch

    Raises
    ------
    InputError
        When a length differs or the steps do not increase past the last observed one.
    """
    given = _options(None, levels=levels, constants=constants)
    given["direction"] = direction
    steps, levels, mean, quantiles, status = _core.forecast_batch(step, loss, steps, threads, given)
    return ForecastBatch(steps, mean, quantiles, levels, np.array(status))


def reach(
    trace: Trace,
    target: float,
    *,
    budget: float,
    lr_ahead: Schedule | None = None,
    past: Sequence[Trace] | None = None,
    calibration: Any = None,
    constants: str | None = None,
) -> Reach:
    """Forecast the first step at which a run is at or below `target` (at or above, if it rises).

    Parameters
    ----------
    trace : Trace
    target : float
        Loss to reach.
    budget : float
        Absolute step after which the run ends.
    lr_ahead : array_like, shape (h,), or (steps, lr), optional
        Planned learning rate; an array is taken at equal distances from the last observed step to
        the budget.
    past : list of Trace, optional
    calibration : Calibration, optional
    constants : str, optional

    Returns
    -------
    Reach

    Raises
    ------
    InputError
        A target that is NaN, a budget that is not finite, or a length that differs.
    """
    if lr_ahead is not None and not (
        isinstance(lr_ahead, tuple) and len(lr_ahead) == 2 and np.ndim(lr_ahead[0]) == 1
    ):
        values = np.asarray(lr_ahead, dtype=np.float64)
        last = float(trace.step[-1]) if len(trace.step) else 0.0
        lr_ahead = (last + (budget - last) * np.arange(1, values.size + 1) / values.size, values)
        if budget <= last:
            lr_ahead = None
    given = _options(
        trace, lr_ahead=lr_ahead, past=past, calibration=calibration, constants=constants
    )
    grid, cdf, never, status = _core.reach(
        trace.step, trace.loss, float(target), float(budget), given
    )
    return Reach(grid, cdf, never, float(target), float(budget), status)


def calibrate(
    finished: Sequence[Trace],
    *,
    past: Sequence[Trace] | None = None,
    constants: str | None = None,
    threads: int = 0,
) -> Calibration:
    """Learn widths from finished runs (split conformal prediction), and whether schedules help.

    Each run is forecast from its first 10 to 80 %; its score at a horizon is the distance of what
    came from the median, in half-widths of the 80 % interval. The factor at a horizon is the
    quantile of the scores that would have covered 80 % of the runs, shrunk towards 1 while they
    are few (Vovk, Gammerman and Shafer 2005; Lei et al. 2018).

    Runs with a learning rate are forecast once more with it known, as `forecast` does it with
    `lr_ahead`: such forecasts get factors of their own, and where five runs or more were forecast
    clearly worse for knowing it, `schedule_helps` is False and later forecasts ignore it.

    Parameters
    ----------
    finished : list of Trace
        At least one; runs of fewer than 8 points say nothing.
    past : list of Trace, optional
        Calibrate forecasts that use these past runs; a run never helps to forecast itself.
    constants : str, optional
    threads : int, optional

    Returns
    -------
    Calibration

    Raises
    ------
    InputError
        No finished runs, or constants that are no table.
    """
    if not finished:
        raise InputError("calibrate: no finished runs")
    directions = {trace.direction for trace in finished}
    if len(directions) > 1:
        raise InputError("calibrate: the runs mix directions 'min' and 'max'")
    given = _options(None, past=past, constants=constants)
    return Calibration._of(
        _core.calibrate(_runs(list(finished)) or [], directions.pop(), given, int(threads))
    )
