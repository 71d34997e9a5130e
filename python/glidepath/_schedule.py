# SPDX-License-Identifier: Apache-2.0
"""Schedules: the learning rate of a whole run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from glidepath import _core
from glidepath._columns import Floats, array_of, values_of
from glidepath._core import InputError
from glidepath._json import restoring
from glidepath._results import Recorded, counted, require
from glidepath._trace import as_trace

if TYPE_CHECKING:
    from glidepath._core import ScheduleRecord
    from glidepath._trace import Trace


# When the rates that a live run logged make its schedule clear; see `Schedule.infer`.
_MIN_POINTS = 20  # after the warm-up
_MIN_SHARE = 0.05  # of the plan, seen after the warm-up
_MAX_ERROR = 0.002  # median, as a share of the peak; logs round to three digits
_MAX_WORST = 0.01  # at every point, and of what the first half foresees of the second
_CLEARER = 5.0  # times the error that any other shape leaves at least
_MAX_FINAL = 0.5  # of the peak: the rate at the end of the plan
_FLAT_SHARE = 0.95  # of the plan: before, a decay may still follow


class Schedule(Recorded):
    """Learning rate of a whole run, past and planned.

    The rate is straight between the given steps, constant before the first and after the last.

    Parameters
    ----------
    step : array_like, shape (n,)
        Finite and strictly increasing, in the unit of the trace's steps; at least one.
    lr : array_like, shape (n,)
        Learning rate at each of them, finite and not negative.

    Raises
    ------
    InputError
        When the columns differ in length or hold something else.
    """

    __slots__ = ()
    _record: ScheduleRecord

    def __init__(self, step: ArrayLike, lr: ArrayLike) -> None:
        self._record = _core.ScheduleRecord(array_of(step, "step"), array_of(lr, "lr"))

    @classmethod
    def constant(cls, lr: float) -> Schedule:
        """Keep one learning rate throughout; InputError where it is negative or not finite."""
        return cls._of(_core.ScheduleRecord.constant(lr))

    @classmethod
    def cosine(
        cls, peak: float, steps: float, *, warmup: float = 0.0, final: float = 0.0
    ) -> Schedule:
        """Fall along half a cosine, in 128 straight pieces.

        Parameters
        ----------
        peak : float
            Learning rate at the end of the warm-up.
        steps : float
            Last step of the run.
        warmup : float, optional
            Steps over which the rate rises from 0 to `peak`, in a straight line.
        final : float, optional
            Learning rate at the last step.

        Returns
        -------
        Schedule

        Raises
        ------
        InputError
            When a rate is negative or the warm-up is not shorter than the run.
        """
        return cls._of(_core.ScheduleRecord.cosine(peak, steps, warmup=warmup, final=final))

    @classmethod
    def linear(
        cls, peak: float, steps: float, *, warmup: float = 0.0, final: float = 0.0
    ) -> Schedule:
        """Fall in a straight line; the parameters are those of `cosine`."""
        return cls._of(_core.ScheduleRecord.linear(peak, steps, warmup=warmup, final=final))

    @classmethod
    def wsd(
        cls,
        peak: float,
        steps: float,
        *,
        warmup: float = 0.0,
        decay: float = 0.2,
        final: float = 0.0,
    ) -> Schedule:
        """Warm up, stay at `peak`, then decay in a straight line over the last steps.

        Parameters
        ----------
        peak, steps, warmup : float
            As for `cosine`.
        decay : float, optional
            Share of the steps, in (0, 1], over which the rate falls.
        final : float, optional
            As for `cosine`.

        Returns
        -------
        Schedule

        Raises
        ------
        InputError
            As `cosine`, or when the decay begins within the warm-up.
        """
        record = _core.ScheduleRecord.wsd(peak, steps, warmup=warmup, decay=decay, final=final)
        return cls._of(record)

    @classmethod
    def logged(cls, trace: Trace | tuple[ArrayLike, ArrayLike]) -> Schedule | None:
        """Take the learning rate that a run logged, where it was planned.

        Parameters
        ----------
        trace : Trace

        Returns
        -------
        Schedule or None
            Gaps take the nearest earlier rate, the first ones the first known. None unless more
            than half of the points have a rate.

        Raises
        ------
        InputError
            For what is no trace, or a rate that is negative or infinite.
        """
        record = _core.ScheduleRecord.logged(as_trace(trace, "Schedule.logged"))
        return None if record is None else cls._of(record)

    @classmethod
    def infer(cls, trace: Trace | tuple[ArrayLike, ArrayLike]) -> Schedule | None:
        """Infer the schedule of a live run from the rates that it logged and its plan.

        Parameters
        ----------
        trace : Trace
            With `lr` and `planned_steps`.

        Returns
        -------
        Schedule or None
            The logged rates, then those that follow until the planned step. None unless linear,
            cosine, constant or WSD (linear decay) is clear: it is within 1 % of the peak at every
            point and within 0.2 % by the median, over at least 20 points and 5 % of the plan after
            the warm-up; its first half foresees the second; and the other shapes are five times as
            far off. While the rate is flat a decay may follow, so constant needs 95 % of the plan.

        Raises
        ------
        InputError
            As for `logged`.
        """
        found = inferred(as_trace(trace, "Schedule.infer"))
        return None if found is None else found[1]

    @property
    def step(self) -> Floats:
        """Steps at which the rate is given, shape (n,)."""
        return self._record.step

    @property
    def lr(self) -> Floats:
        """Learning rates at those steps, shape (n,)."""
        return self._record.lr

    def at(self, step: ArrayLike) -> Floats | float:
        """Evaluate the schedule.

        Parameters
        ----------
        step : float or array_like, shape (h,)

        Returns
        -------
        float or ndarray, shape (h,)
            Learning rate at each step.

        Raises
        ------
        InputError
            For an array of more than one dimension.
        """
        rates = self._record.at(values_of(step, "step"))
        return float(rates[0]) if np.ndim(step) == 0 else rates

    def to_dict(self) -> dict[str, list[float]]:
        """Give plain lists, fit for JSON."""
        return {"step": self.step.tolist(), "lr": self.lr.tolist()}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Schedule:
        """Read what `to_dict` wrote; InputError on anything else."""
        if not isinstance(state, Mapping) or set(state) != {"step", "lr"}:  # type: ignore[redundant-expr]
            raise InputError(f"schedule: expected 'step' and 'lr', got {state!r:.80}")
        with restoring("schedule"):
            return cls(state["step"], state["lr"])

    def _summary(self) -> str:
        low, high = float(self.lr.min()), float(self.lr.max())
        if low == high:
            return f"constant {high:g}"
        ends = f"steps {self.step[0]:g} to {self.step[-1]:g}"
        return f"{counted(self.step.size, 'point')}, {ends}, peak {high:g}, final {self.lr[-1]:g}"

    def _rows(self) -> Iterator[tuple[str, str]]:
        for i in np.unique(np.linspace(0, self.step.size - 1, 6).astype(int)):
            yield f"step {self.step[i]:g}", f"{self.lr[i]:g}"

    def plot(self, ax: Any = None) -> Any:
        """Draw the learning rate over the steps; returns the matplotlib Axes."""
        if ax is None:
            ax = require("matplotlib.pyplot").subplots()[1]
        ax.plot(self.step, self.lr)
        ax.set_xlabel("step")
        ax.set_ylabel("learning rate")
        ax.set_ylim(bottom=0.0)
        return ax


def inferred(trace: Trace) -> tuple[str, Schedule] | None:
    """Infer a schedule as `Schedule.infer` does; give its shape, too."""
    planned = trace.planned_steps
    if planned is None or trace.lr is None or not len(trace) or not trace.step[-1] < planned:
        return None
    known = np.isfinite(trace.lr)
    step, lr = trace.step[known], trace.lr[known]
    top = int(np.argmax(lr >= 0.9999 * lr.max(initial=0.0))) if lr.size else 0
    at, rate, peak = step[top:], lr[top:], lr.max(initial=0.0)
    if at.size < _MIN_POINTS or at[-1] - at[0] < _MIN_SHARE * planned or not peak > 0.0:
        return None
    if np.ptp(rate) <= 1e-6 * peak:
        if at[-1] - at[0] < _FLAT_SHARE * planned:
            return None
        return "constant", Schedule(np.append(step, planned), np.append(lr, rate[-1]))
    before = float(step[top - 1]) if top else 0.0
    errors: dict[str, float] = {}
    for shape in _SHAPES:
        fit = _fitted(shape, at, rate, planned, before)
        errors[shape] = math.inf if fit is None else fit[0]
    first, second = sorted(errors, key=errors.__getitem__)[:2]
    if errors[first] > _MAX_ERROR or errors[second] < _CLEARER * max(errors[first], 1e-7):
        return None
    fit = _fitted(first, at, rate, planned, before)
    half = _fitted(first, at[: at.size // 2], rate[: at.size // 2], planned, before)
    assert fit is not None
    for tried in (fit,) if first == "wsd" else (fit, half):
        if tried is None or np.abs(tried[1](at) - rate).max() > _MAX_WORST * peak:
            return None
    ahead = np.linspace(at[-1], planned, 129)[1:]
    later = np.clip(fit[1](ahead), 0.0, None)
    return first, Schedule(np.concatenate([step, ahead]), np.concatenate([lr, later]))


_SHAPES = ("linear", "cosine", "wsd")
_Fit = tuple[float, Callable[[Floats], Floats]]


def _fitted(shape: str, at: Floats, rate: Floats, planned: float, before: float) -> _Fit | None:
    """Fit one shape to the rates after the warm-up; give its median error and its rates.

    None where it does not fall by half until the plan ends, or falls below zero before.
    """
    peak = float(rate.max())
    flat = at[rate >= (1.0 - 1e-6) * peak]
    # Where the fall begins: a little before the second point for one that falls at once.
    starts = np.linspace(before, float(at[min(1, at.size - 1)]), 41)
    if shape == "wsd":
        if flat.size < _MIN_POINTS or at.size - flat.size < _MIN_POINTS // 2:
            return None
        falls = at > flat[-1]
        slope, level = np.polyfit(at[falls], rate[falls], 1)
        if not slope < 0.0:
            return None
        starts = np.array([(peak - level) / slope])
    best: _Fit | None = None
    for start in starts.tolist():
        share = _falls(shape, at, start, planned)
        design = np.stack([1.0 - share, share], axis=1)
        (high, low), *_ = np.linalg.lstsq(design, rate, rcond=None)
        if not -0.01 * peak <= low <= _MAX_FINAL * high:  # else it ends elsewhere than the plan
            continue
        error = float(np.median(np.abs(design @ (high, low) - rate))) / peak
        if best is None or error < best[0]:
            best = error, partial(_rates, shape, start, planned, float(high), float(low))
    return best


def _falls(shape: str, at: Floats, start: float, planned: float) -> Floats:
    """Share of its fall, from 0 to 1, that a rate has behind it."""
    share = np.clip((at - start) / (planned - start), 0.0, 1.0)
    return (1.0 - np.cos(np.pi * share)) / 2.0 if shape == "cosine" else share


def _rates(shape: str, start: float, planned: float, high: float, low: float, at: Floats) -> Floats:
    return high + (low - high) * _falls(shape, at, start, planned)


def schedule_record(schedule: Schedule | None) -> ScheduleRecord | None:
    """Give what the compiled verbs take, or refuse what is no schedule."""
    if schedule is None:
        return None
    if not isinstance(schedule, Schedule):
        raise InputError(
            f"schedule: expected a gp.Schedule, got {type(schedule).__name__}: "
            "gp.Schedule(step, lr)"
        )
    return schedule._record
