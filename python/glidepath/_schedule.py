# SPDX-License-Identifier: Apache-2.0
"""Schedules: the learning rate of a whole run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath import _core
from glidepath._core import InputError
from glidepath._results import Recorded

if TYPE_CHECKING:
    from glidepath._core import ScheduleRecord
    from glidepath._trace import Trace

__all__ = ["Schedule"]

Floats = NDArray[np.float64]


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
        from glidepath._trace import _column

        super().__init__(_core.ScheduleRecord.of(step=_column(step, "step"), lr=_column(lr, "lr")))

    @classmethod
    def _of(cls, record: ScheduleRecord) -> Schedule:
        schedule = cls.__new__(cls)
        schedule._record = record
        return schedule

    @classmethod
    def constant(cls, lr: float) -> Schedule:
        """Keep one learning rate throughout."""
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
        peak, steps, warmup, final : float
            As for `cosine`.
        decay : float, optional
            Share of the steps, in (0, 1], over which the rate falls.

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
    def logged(cls, trace: Trace) -> Schedule | None:
        """Take the learning rate that a run logged, where it was planned.

        Parameters
        ----------
        trace : Trace

        Returns
        -------
        Schedule or None
            Gaps take the nearest earlier rate, the first ones the first known. None unless more
            than half of the points have a rate.
        """
        record = _core.ScheduleRecord.logged([trace])
        return None if record is None else cls._of(record)

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
        """
        rates = self._record.at(np.atleast_1d(np.asarray(step, dtype=np.float64)))
        return float(rates[0]) if np.ndim(step) == 0 else rates

    def to_dict(self) -> dict[str, list[float]]:
        """Give plain lists, fit for JSON."""
        return {"step": self.step.tolist(), "lr": self.lr.tolist()}

    @classmethod
    def from_dict(cls, state: Any) -> Schedule:
        """Read what `to_dict` wrote; InputError on anything else."""
        if not isinstance(state, Mapping) or set(state) != {"step", "lr"}:
            raise InputError(f"schedule: expected 'step' and 'lr', got {state!r:.80}")
        return cls(state["step"], state["lr"])

    def _summary(self) -> str:
        low, high = float(self.lr.min()), float(self.lr.max())
        if low == high:
            return f"constant {high:g}"
        ends = f"steps {self.step[0]:g} to {self.step[-1]:g}"
        return f"{self.step.size} points, {ends}, peak {high:g}, final {self.lr[-1]:g}"

    def _rows(self) -> Iterator[tuple[str, str]]:
        for i in np.unique(np.linspace(0, self.step.size - 1, 6).astype(int)):
            yield f"step {self.step[i]:g}", f"{self.lr[i]:g}"

    def plot(self, ax: Any = None) -> Any:
        """Draw the learning rate over the steps; returns the matplotlib Axes."""
        from glidepath._results import require

        if ax is None:
            ax = require("matplotlib.pyplot").subplots()[1]
        ax.plot(self.step, self.lr)
        ax.set_xlabel("step")
        ax.set_ylabel("learning rate")
        ax.set_ylim(bottom=0.0)
        return ax
