# SPDX-License-Identifier: Apache-2.0
"""Fit: which curve goes through these points, and how sure each parameter is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath import _core
from glidepath._arguments import checked
from glidepath._core import FitScore, InputError
from glidepath._results import Recorded, Result, require
from glidepath._trace import Trace, as_trace, as_traces, refuse_traces, unmasked, values_of

if TYPE_CHECKING:
    from glidepath._core import FitRecord

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


def _robust(robust: bool | str) -> str:
    if isinstance(robust, (bool, np.bool_)):
        return "cauchy" if robust else "none"
    return robust


_NO_BOUND = float("-inf")


def _or_none(bound: float | None) -> float:
    return _NO_BOUND if bound is None else bound


@checked
def usable(status: str) -> bool:
    """Whether the curve of such a fit may be used beyond its points.

    Parameters
    ----------
    status : str
        As in `Fit`.

    Returns
    -------
    bool
        False for ``"too_few_points"`` and ``"not_finite"``, where every number is NaN, and for
        ``"poor"``, where the numbers describe the past but not where the curve goes.

    Raises
    ------
    InputError
        When there is no such status.
    """
    return _core.usable(status)


class Fit(Recorded):
    """A curve through the points of one trace; `fit` makes them."""

    __slots__ = ()
    _record: FitRecord

    @property
    def family(self) -> str:
        """Name of the family."""
        return self._record.family

    @property
    def status(self) -> str:
        """Whether the numbers can be used; see `usable`.

        ``"converged"``, ``"iteration_limit"``, ``"too_few_points"``, ``"flat"``, ``"not_finite"``
        or ``"poor"``: converged, but the curve misses the end of the points. Under
        ``"too_few_points"`` and ``"not_finite"`` every number is NaN.
        """
        return self._record.status

    @property
    def params(self) -> dict[str, float]:
        """Parameters by name."""
        return self._record.params

    @property
    def stderr(self) -> dict[str, float]:
        """Standard errors by name.

        0 for one that rests on a bound, infinite where the points cannot tell.
        """
        return self._record.stderr

    @property
    def at_bound(self) -> tuple[str, ...]:
        """Names of the parameters that rest on a bound of the search."""
        return tuple(name for name, rests in self._record.at_bound.items() if rests)

    @property
    def covariance(self) -> Floats:
        """Covariance of the parameters in the order of `params`, shape (p, p)."""
        return self._record.covariance

    @property
    def sigma(self) -> float:
        """Residual standard deviation, in the unit of the loss."""
        return self._record.sigma

    @property
    def rss(self) -> float:
        """Residual sum of squares, in the square of the unit of the loss."""
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
        """Number of points used: families that need a positive step leave out the others."""
        return self._record.points

    @property
    def last_step(self) -> float:
        """Last step of the trace."""
        return self._record.last_step

    @property
    def scores(self) -> tuple[FitScore, ...]:
        """Every family tried, where the family was chosen."""
        return tuple(self._record.scores)

    def _check(self) -> None:
        for name in ("sigma", "rss", "points"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name):g}, expected 0 or more")

    def predict(self, steps: ArrayLike) -> Floats:
        """Evaluate the curve.

        Parameters
        ----------
        steps : float or array_like, shape (h,)

        Returns
        -------
        ndarray, shape (h,)
            NaN or infinite where the family has no value, such as a power of a negative step.

        Raises
        ------
        InputError
            When `steps` has more than one dimension.
        """
        return self._record.predict(values_of(steps, "steps"))

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

    def plot(self, ax: Any = None, *, trace: Trace | None = None) -> Any:
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
        from glidepath._pictures import runs

        return runs.fit(self, trace, ax=ax)

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

    def _check(self) -> None:
        expected = FAMILIES.get(self.family)
        if expected is None:
            known = ", ".join(FAMILIES)
            raise ValueError(f"family is {self.family!r:.40}, expected one of {known}")
        if set(self.params) != set(expected):
            given = ", ".join(self.params) or "empty"
            raise ValueError(f"params is {given:.40}, expected {', '.join(expected)}")
        if not {self.sigma.size} == {self.status.size, *(p.size for p in self.params.values())}:
            raise ValueError("its columns have different lengths")
        unknown = set(self.status.tolist()) - set(_STATUSES.tolist())
        if unknown:
            known = ", ".join(_STATUSES.tolist())
            raise ValueError(f"status is {min(unknown)!r:.40}, expected one of {known}")
        if np.any(self.sigma < 0):
            raise ValueError(f"sigma is {self.sigma.min():g}, expected 0 or more")

    def predict(self, steps: ArrayLike, *, threads: int = 0) -> Floats:
        """Evaluate every curve at every step.

        Parameters
        ----------
        steps : float or array_like, shape (h,)
        threads : int, optional
            0 uses all cores.

        Returns
        -------
        ndarray, shape (m, h)

        Raises
        ------
        InputError
            When `steps` has more than one dimension, or for a negative number of threads.
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


@checked
def fit(
    trace: Points | tuple[ArrayLike, ArrayLike],
    *,
    family: str = "auto",
    robust: bool | str = False,
    lowest_floor: float | None = None,
    weight: ArrayLike | None = None,
    solver: str = "closed_form",
    starts: int | None = None,
    from_step: float | None = None,
) -> Fit:
    """Fit a curve to one trace by least squares.

    The whole range of shapes is searched, not the neighbourhood of one start; rates, shapes and
    `half` are positive and `shift` is not negative.

    Parameters
    ----------
    trace : Trace or tuple of two arrays
        Or its steps and losses.
    family : str, optional
        ``"pow2"``, ``"pow3"``, ``"pow4"``, ``"exp3"``, ``"weibull4"``, ``"mmf4"``, ``"log2"`` or
        ``"powexp"``; ``"auto"`` takes the best by AICc among those that the points allow.
    robust : bool or {"huber", "cauchy"}, optional
        Count large residuals for less, so that spikes hardly matter; True is ``"cauchy"``. Slower.
    lowest_floor : float, optional
        Lowest value the metric can take, in the unit of the loss; no fitted floor is below it.
        Refused for ``"pow2"`` and ``"log2"``, which do not level off.
    weight : array_like, shape (n,), optional
        What each point counts for, relative to the others; 1 by default.
    solver : {"closed_form", "ceres"}, optional
        ``"ceres"`` is the slow reference for the same problem.
    starts : int, optional
        Starts of the reference, which also fits robust losses; 4 by default, refused elsewhere.
    from_step : float, optional
        Leave out the points before this step: a warm-up, or a start that no family follows.

    Returns
    -------
    Fit
        Read `status` first: a trace that cannot be fitted is an answer, not an exception.

    Raises
    ------
    InputError
        When the family is unknown, an option is out of range or the first argument is no trace.
    """
    run = as_trace(trace, "fit")
    how, least, begin = _robust(robust), _or_none(lowest_floor), _or_none(from_step)
    return Fit._of(_core.fit(run.step, run.loss, weight, family, how, least, solver, starts, begin))


@overload
def fit_batch(
    step: Iterable[Points],
    *,
    family: str = "auto",
    robust: bool | str = False,
    lowest_floor: float | None = None,
    from_step: float | None = None,
    threads: int = 0,
) -> list[Fit]: ...
@overload
def fit_batch(
    step: ArrayLike,
    loss: ArrayLike,
    *,
    family: str,
    lowest_floor: float | None = None,
    from_step: float | None = None,
    threads: int = 0,
) -> FitBatch: ...
@checked
def fit_batch(
    step: Iterable[Points] | ArrayLike,
    loss: ArrayLike | None = None,
    *,
    family: str = "auto",
    robust: bool | str = False,
    lowest_floor: float | None = None,
    from_step: float | None = None,
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
    lowest_floor, from_step : float, optional
        As in `fit`, in the units of the loss and of the steps.
    threads : int, optional
        0 uses all cores. The answer is the same for any number, and for any split of the rows.

    Returns
    -------
    list of Fit or FitBatch
        For traces a list, entry i the `fit` of trace i; for rows one `FitBatch`.

    Raises
    ------
    InputError
        An unknown family or robust loss, shapes that do not match, or steps that do not increase.
    """
    if loss is None:
        kept = as_traces(step, "fit_batch")
        records = _core.fit_batch(
            steps=[trace.step for trace in kept],
            losses=[trace.loss for trace in kept],
            family=family,
            robust=_robust(robust),
            lowest_floor=_or_none(lowest_floor),
            from_step=_or_none(from_step),
            threads=threads,
        )
        return [Fit._of(record) for record in records]
    refuse_traces(step, "fit_batch")
    if _robust(robust) != "none":
        raise InputError(
            "fit_batch: robust is for traces, rows over shared steps are fitted by least squares"
        )
    found = _core.fit_rows(
        step=unmasked(step),
        loss=unmasked(loss),
        family=family,
        lowest_floor=_or_none(lowest_floor),
        from_step=_or_none(from_step),
        threads=threads,
    )
    params, sigma, status = found.params, found.sigma, _STATUSES[found.status]
    for column in (*params.values(), sigma, status):
        column.flags.writeable = False
    return FitBatch(family=found.family, params=params, sigma=sigma, status=status)


@checked
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
    params : mapping of str to float or array_like, shape (m,)
        Every parameter of the family by name, in units of the loss and of the steps.
    steps : float or array_like, shape (h,)
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
        When there is no such family, or a parameter is missing or of another length.
    TypeError
        When `out` has another type or shape.
    """
    names = FAMILIES.get(family)
    if names is None:
        known = ", ".join(FAMILIES)
        raise InputError(f"evaluate_batch: family is {family!r:.80}, expected one of {known}")
    if set(names) != set(params):
        given = ", ".join(params) or "empty"
        raise InputError(f"evaluate_batch: params is {given}, expected {', '.join(names)}")
    columns = [values_of(params[name], name) for name in names]
    return _core.evaluate_columns(family, columns, values_of(steps, "steps"), threads, out)


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
        return f"{self.kind} {self.status}, sigma {self.sigma:.3g}, {self.points} points"


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
    return ScheduleLaw(
        kind=kind,
        status=found.status,
        params={name: getattr(found, name) for name in _LAW_PARAMS[kind]},
        sigma=found.sigma,
        rss=found.rss,
        points=found.points,
    )
