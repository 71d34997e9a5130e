# SPDX-License-Identifier: Apache-2.0
"""Laws of the loss under any learning-rate schedule, fitted to runs that differ in theirs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import ArrayLike

from glidepath import _core
from glidepath._arguments import checked
from glidepath._columns import Floats
from glidepath._fit import Points
from glidepath._results import Result, counted
from glidepath._trace import as_traces


class Scheduled(Points, Protocol):
    """What a schedule law reads of a trace."""

    @property
    def lr(self) -> Floats | None:
        """Learning rate at each step, shape (n,)."""


_LAW_PARAMS = {
    "annealing": ("floor", "scale", "rate", "drop", "memory", "warmup"),
    "multi_power": ("floor", "scale", "rate", "drop", "speed", "shape", "power", "warmup"),
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScheduleLaw(Result):
    """A law of the loss under any learning-rate schedule; `fit_schedule_law` makes them.

    Attributes
    ----------
    kind : {"annealing", "multi_power"}
    status : str
        As in `Fit`.
    params : dict of str to float
        ``floor``, ``scale``, ``rate`` of the power of the summed learning rate; ``drop`` per unit
        of learning rate taken away; then ``memory`` in steps, or ``speed``, ``shape`` and
        ``power``; ``warmup``, the steps of a warm-up before the trace.
    sigma, rss : float
        Residual standard deviation, in the unit of the loss, and sum of squares.
    points : int
    """

    kind: str
    status: str
    params: dict[str, float]
    sigma: float
    rss: float
    points: int

    def predict(self, step: ArrayLike, lr: ArrayLike) -> Floats:
        """Predict the loss of a run with another schedule.

        Parameters
        ----------
        step : array_like, shape (n,)
            Strictly increasing, from the first step of the run as its trace would have it.
        lr : array_like, shape (n,)
            Learning rate at each step, linear between them.

        Returns
        -------
        ndarray, shape (n,)

        Raises
        ------
        InputError
            Columns of different length, steps that do not increase, a rate that is not finite or
            is negative.
        """
        values: dict[str, Any] = {"kind": self.kind, **self.params}
        return _core.ScheduleLawRecord(**values).predict(step, lr)

    def _summary(self) -> str:
        return f"{self.kind} {self.status}, sigma {self.sigma:.3g}, {counted(self.points, 'point')}"


@checked
def fit_schedule_law(traces: Iterable[Scheduled], *, kind: str = "annealing") -> ScheduleLaw:
    """Fit one law to several runs of a model that differ in learning-rate schedule.

    Parameters
    ----------
    traces : iterable of Trace
        Each with its `lr`.
    kind : {"annealing", "multi_power"}, optional
        Tissue, Wang and Wang (2024), or Luo et al. (2025).

    Returns
    -------
    ScheduleLaw

    Raises
    ------
    InputError
        When a trace has no learning rate or there is no such law.

    Notes
    -----
    With S(t) the sum of the learning rate η up to t, ``annealing`` is
    ``floor + scale S^-rate - drop Σ (η_before - η_after) τ (1 - exp(-(t - k) / τ))`` over the
    changes k, and ``multi_power`` has ``1 - (1 + speed η^-power (S(t) - S(k)))^-shape`` in place of
    the exponential.
    """
    runs = [
        _core.TraceRecord(trace.step, trace.loss, lr=trace.lr, name=str(number))
        for number, trace in enumerate(as_traces(traces, "fit_schedule_law"))
    ]
    found = _core.fit_schedule_law(runs, kind)
    params = {name: getattr(found, name) for name in _LAW_PARAMS[kind]}
    return ScheduleLaw._from_record(found, kind=kind, params=params)
