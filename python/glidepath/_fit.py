# SPDX-License-Identifier: Apache-2.0
"""Fit: which curve goes through these points, and how sure each parameter is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath import _core
from glidepath._core import InputError
from glidepath._results import Result, require, same

if TYPE_CHECKING:
    from glidepath._core import FitRecord

__all__ = [
    "Fit",
    "FitBatch",
    "FitScore",
    "ScheduleLaw",
    "evaluate_batch",
    "fit",
    "fit_batch",
    "fit_schedule_law",
]

Floats = NDArray[np.float64]

FAMILIES: dict[str, tuple[str, ...]] = _core.FAMILIES
_STATUSES = np.array(_core.FIT_STATUSES)


class Points(Protocol):
    """What a fit reads of a trace."""

    @property
    def step(self) -> Floats:
        """Strictly increasing steps, shape (n,)."""

    @property
    def loss(self) -> Floats:
        """The metric at each of them, shape (n,)."""


class FitScore(NamedTuple):
    """How one family did in the choice by AICc."""

    family: str
    aicc: float
    status: str


def _robust(robust: bool | str) -> str:
    if robust is True:
        return "cauchy"
    return robust or "squares"


_NO_FLOOR = -math.inf


def _floor(floor: float | None) -> float:
    return _NO_FLOOR if floor is None else floor


# Not frozen, which would triple what it takes to make one: there is nothing to assign to but the
# record.
@dataclass(slots=True, eq=False, repr=False)
class Fit(Result):
    """A curve through the points of one trace; `fit` makes them.

    Attributes
    ----------
    family : str
    status : str
        ``"converged"``, ``"iteration_limit"``, ``"too_few_points"``, ``"flat"`` or
        ``"not_finite"``. With the last two of ``"too_few_points"`` and ``"not_finite"`` every
        number is NaN.
    params, stderr : dict of str to float
        Parameters by name and their standard errors: 0 for one that rests on a bound, infinite
        where the points cannot tell.
    at_bound : tuple of str
        Parameters that rest on a bound of the search.
    covariance : ndarray, shape (p, p)
        Of the parameters, in the order of `params` and the products of their units.
    sigma : float
        Residual standard deviation, in the unit of the loss.
    rss, aicc, bic : float
        Residual sum of squares, in the square of the unit of the loss, and the two information
        criteria, which are dimensionless.
    points : int
        Points used: families that need a positive step leave out the others.
    last_step : float
    scores : tuple of FitScore
        Every family tried, where the family was chosen.
    """

    _record: FitRecord

    @property
    def family(self) -> str:
        """Name of the family."""
        return self._record.family

    @property
    def status(self) -> str:
        """Whether the numbers can be used."""
        return self._record.status

    @property
    def params(self) -> dict[str, float]:
        """Parameters by name."""
        return dict(zip(FAMILIES[self.family], self._record.params, strict=True))

    @property
    def stderr(self) -> dict[str, float]:
        """Standard errors by name."""
        return dict(zip(FAMILIES[self.family], self._record.stderr, strict=True))

    @property
    def at_bound(self) -> tuple[str, ...]:
        """Names of the parameters that rest on a bound."""
        names = FAMILIES[self.family]
        return tuple(n for n, at in zip(names, self._record.at_bound, strict=True) if at)

    @property
    def covariance(self) -> Floats:
        """Covariance of the parameters, shape (p, p)."""
        covariance: Floats = self._record.covariance
        return covariance

    @property
    def sigma(self) -> float:
        """Residual standard deviation."""
        return self._record.sigma

    @property
    def rss(self) -> float:
        """Residual sum of squares."""
        return self._record.rss

    @property
    def aicc(self) -> float:
        """Akaike's criterion, corrected for few points; infinite where they are too few."""
        return self._record.aicc

    @property
    def bic(self) -> float:
        """Schwarz's criterion."""
        return self._record.bic

    @property
    def points(self) -> int:
        """Number of points used."""
        return self._record.points

    @property
    def last_step(self) -> float:
        """Last step of the trace."""
        return self._record.last_step

    @property
    def scores(self) -> tuple[FitScore, ...]:
        """Families tried, where the family was chosen."""
        return tuple(FitScore(*score) for score in self._record.scores)

    def predict(self, steps: ArrayLike) -> Floats:
        """Evaluate the curve.

        Parameters
        ----------
        steps : array_like, shape (h,)

        Returns
        -------
        ndarray, shape (h,)
        """
        losses: Floats = self._record.predict(steps)
        return losses

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Fit)
        return same(self._record.state(), other._record.state())

    def __reduce__(self) -> tuple[Any, ...]:
        return Fit, (self._record,)

    def to_pandas(self) -> Any:
        """Make a DataFrame with one row per parameter.

        Returns
        -------
        pandas.DataFrame
            `value` and `stderr`, indexed by the parameter's name.
        """
        params, stderr = self.params, self.stderr
        return require("pandas").DataFrame(
            {"value": list(params.values()), "stderr": list(stderr.values())}, index=list(params)
        )

    def plot(self, ax: Any = None, *, trace: Points | None = None) -> Any:
        """Draw the curve, over the points where the trace is given.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure without it.
        trace : Trace, optional

        Returns
        -------
        matplotlib.axes.Axes
        """
        if ax is None:
            ax = require("matplotlib.pyplot").subplots()[1]
        last = self.last_step
        first = min(1.0, last) if trace is None else float(trace.step[0])
        if trace is not None:
            ax.plot(trace.step, trace.loss, ".", markersize=3, color="0.6", label="observed")
        steps = np.linspace(first, last, 400) if last > first else np.array([last])
        ax.plot(steps, self.predict(steps), label=self.family)
        ax.set_xlabel("step")
        ax.set_ylabel("loss")
        ax.legend()
        return ax

    def _summary(self) -> str:
        values = ", ".join(f"{name} {value:.4g}" for name, value in self.params.items())
        return (
            f"{self.family} {self.status}, {values}, sigma {self.sigma:.3g}, {self.points} points"
        )

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "status", self.status
        for (name, value), error in zip(self.params.items(), self.stderr.values(), strict=True):
            yield name, f"{value:.6g} ± {error:.2g}"
        yield "sigma", f"{self.sigma:.5g}"
        yield "aicc", f"{self.aicc:.5g}"
        yield "points", str(self.points)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FitBatch(Result):
    """Curves through the rows of a matrix; `fit_batch` makes them.

    Attributes
    ----------
    family : str
    params : dict of str to ndarray, shape (m,)
        In units of the loss and of the steps, as the formula of the family has them.
    sigma : ndarray, shape (m,)
        Residual standard deviation of each row, in the unit of its losses.
    status : ndarray of str, shape (m,)
        As in `Fit`.
    """

    family: str
    params: dict[str, Floats]
    sigma: Floats
    status: NDArray[np.str_]

    def __len__(self) -> int:
        return self.sigma.size

    def predict(self, steps: ArrayLike, *, threads: int = 0) -> Floats:
        """Evaluate every curve at every step.

        Parameters
        ----------
        steps : array_like, shape (h,)
        threads : int, optional
            0 uses all cores.

        Returns
        -------
        ndarray, shape (m, h)
        """
        return evaluate_batch(self.family, self.params, steps, threads=threads)

    def to_pandas(self) -> Any:
        """Make a DataFrame with one row per curve.

        Returns
        -------
        pandas.DataFrame
        """
        return require("pandas").DataFrame(
            {**self.params, "sigma": self.sigma, "status": self.status}
        )

    def _summary(self) -> str:
        converged = int(np.count_nonzero(self.status == "converged"))
        return f"{len(self)} {self.family} curves, {converged} converged"


def fit(
    trace: Points,
    *,
    family: str = "auto",
    robust: bool | str = False,
    floor: float | None = None,
    weight: ArrayLike | None = None,
    engine: str = "closed_form",
    starts: int = 4,
) -> Fit:
    """Fit a curve to one trace by least squares.

    The whole range of shapes is searched, not the neighbourhood of one start; rates, shapes and
    `half` are positive and `shift` is not negative.

    Parameters
    ----------
    trace : Trace
    family : str, optional
        ``"pow2"``, ``"pow3"``, ``"pow4"``, ``"exp3"``, ``"weibull4"``, ``"mmf4"``, ``"log2"`` or
        ``"powexp"``; ``"auto"`` takes the best by AICc among those that the points allow.
    robust : bool or {"huber", "cauchy"}, optional
        Shrug off spikes, by Cauchy's loss when True. Slower.
    floor : float, optional
        Lowest value the metric can take; no fitted floor is below it.
    weight : array_like, shape (n,), optional
        What each point counts for, relative to the others; 1 by default.
    engine : {"closed_form", "ceres"}, optional
        ``"ceres"`` is the slow reference for the same problem.
    starts : int, optional
        Starts of the reference.

    Returns
    -------
    Fit
        Read `status` first: a trace that cannot be fitted is an answer, not an exception.

    Raises
    ------
    InputError
        When the family is unknown or an option is out of range.
    """
    how = "squares" if robust is False else _robust(robust)
    least = _NO_FLOOR if floor is None else floor
    return Fit(_core.fit(trace.step, trace.loss, weight, family, how, least, engine, starts))


@overload
def fit_batch(
    step: Iterable[Points],
    *,
    family: str = "auto",
    robust: bool | str = False,
    floor: float | None = None,
    threads: int = 0,
) -> list[Fit]: ...
@overload
def fit_batch(
    step: ArrayLike,
    loss: ArrayLike,
    *,
    family: str,
    floor: float | None = None,
    threads: int = 0,
) -> FitBatch: ...
def fit_batch(
    step: Iterable[Points] | ArrayLike,
    loss: ArrayLike | None = None,
    *,
    family: str = "auto",
    robust: bool | str = False,
    floor: float | None = None,
    threads: int = 0,
) -> list[Fit] | FitBatch:
    """Fit many curves in parallel: traces with steps of their own, or rows over shared steps.

    Parameters
    ----------
    step : iterable of Trace, or array_like, shape (n,)
        Traces; or, with `loss`, the strictly increasing steps that all rows share.
    loss : array_like, shape (m, n), optional
        One curve a row. A row with a NaN gets its status, the others their answer.
    family : str, optional
        As in `fit`; rows over shared steps need one other than ``"auto"``.
    robust : bool or {"huber", "cauchy"}, optional
        As in `fit`; for traces only.
    floor : float, optional
        As in `fit`.
    threads : int, optional
        0 uses all cores. The answer is the same for any number, and for any split of the rows.

    Returns
    -------
    list of Fit or FitBatch
        Of traces a list, entry i the `fit` of trace i; of rows one `FitBatch`.

    Raises
    ------
    InputError
        An unknown family or robust loss, shapes that do not match, or steps that do not increase.
    """
    if loss is None:
        kept: list[Points] = list(step)  # type: ignore[arg-type]
        records = _core.fit_batch(
            [trace.step for trace in kept],
            [trace.loss for trace in kept],
            family,
            _robust(robust),
            _floor(floor),
            threads,
        )
        return [Fit(record) for record in records]
    if robust is not False:
        raise InputError(
            "fit_batch: robust is for traces, rows over shared steps are fitted by least squares"
        )
    columns, sigma, status = _core.fit_columns(step, loss, family, _floor(floor), threads)
    params = dict(zip(FAMILIES[family], columns, strict=True))
    return FitBatch(family, params, sigma, _STATUSES[status])


def evaluate_batch(
    family: str,
    params: Mapping[str, ArrayLike],
    steps: ArrayLike,
    *,
    threads: int = 0,
    out: Floats | None = None,
) -> Floats:
    """Evaluate many curves of one family.

    Parameters
    ----------
    family : str
    params : mapping of str to array_like, shape (m,)
        Every parameter of the family by name, in units of the loss and of the steps.
    steps : array_like, shape (h,)
    threads : int, optional
        0 uses all cores.
    out : ndarray, shape (m, h), optional
        C-contiguous float64 to write the losses into; a new array without it.

    Returns
    -------
    ndarray, shape (m, h)

    Raises
    ------
    InputError
        When a parameter is missing or of another length.
    TypeError
        When `out` has another type or shape.
    """
    names = FAMILIES.get(family)
    if names is not None and set(names) != set(params):
        raise InputError(
            f"evaluate: {family} has parameters {', '.join(names)}, got {', '.join(params)}"
        )
    columns = [params[name] for name in names or ()]
    result: Floats = _core.evaluate_columns(family, columns, steps, threads, out)
    return result


class Scheduled(Points, Protocol):
    """What a schedule law reads of a trace."""

    @property
    def lr(self) -> Floats | None:
        """Learning rate at each step, shape (n,)."""


_LAWS = {
    "annealing": ("floor", "scale", "rate", "drop", "memory", "warmup"),
    "multi_power": ("floor", "scale", "rate", "drop", "speed", "shape", "power", "warmup"),
}
_LAW_FIELDS = (
    "floor",
    "scale",
    "rate",
    "drop",
    "memory",
    "speed",
    "shape",
    "power",
    "warmup",
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScheduleLaw(Result):
    """A law of the loss under any learning-rate schedule; `fit_schedule_law` makes them.

    Attributes
    ----------
    law : {"annealing", "multi_power"}
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

    law: str
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
        """
        values = [self.params.get(name, 0.0) for name in _LAW_FIELDS]
        losses: Floats = _core.predict_law(self.law, values, step, lr)
        return losses

    def _summary(self) -> str:
        return f"{self.law} {self.status}, sigma {self.sigma:.3g}, {self.points} points"


def fit_schedule_law(traces: Iterable[Scheduled], *, law: str = "annealing") -> ScheduleLaw:
    """Fit one law to several runs of a model that differ in learning-rate schedule.

    Parameters
    ----------
    traces : iterable of Trace
        Each with its `lr`.
    law : {"annealing", "multi_power"}, optional
        Tissue, Wang and Wang (2024), or Luo et al. (2025).

    Returns
    -------
    ScheduleLaw

    Raises
    ------
    InputError
        When a trace has no learning rate or the law is unknown.

    Notes
    -----
    With S(t) the sum of the learning rate η up to t, ``annealing`` is
    ``floor + scale S^-rate - drop Σ (η_before - η_after) τ (1 - exp(-(t - k) / τ))`` over the
    changes k, and ``multi_power`` has ``1 - (1 + speed η^-power (S(t) - S(k)))^-shape`` in place of
    the exponential.
    """
    kept = list(traces)
    status, sigma, rss, points, values = _core.fit_law(
        [trace.step for trace in kept],
        [trace.loss for trace in kept],
        [trace.lr for trace in kept],
        law,
    )
    every = dict(zip(_LAW_FIELDS, values, strict=True))
    params = {name: every[name] for name in _LAWS[law]}
    return ScheduleLaw(law, status, params, sigma, rss, points)
