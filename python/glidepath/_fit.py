# SPDX-License-Identifier: Apache-2.0
"""Fit: which curve goes through these points, and how sure each parameter is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from glidepath import _core
from glidepath._arguments import checked
from glidepath._columns import Floats, values_of
from glidepath._core import FitScore
from glidepath._results import Recorded, counted, require
from glidepath._trace import Trace, as_trace

if TYPE_CHECKING:
    from glidepath._core import FitRecord


FAMILIES: dict[str, tuple[str, ...]] = _core.FAMILIES


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
        """Give a pandas DataFrame of `value` and `stderr`, one row per parameter by its name."""
        params, stderr = self.params, self.stderr
        return require("pandas").DataFrame(
            {"value": list(params.values()), "stderr": list(stderr.values())}, index=list(params)
        )

    def plot(self, ax: Any = None, *, trace: Trace | None = None) -> Any:
        """Draw the curve, over the points where the trace is given; returns the matplotlib Axes."""
        from glidepath._pictures import runs

        return runs.fit(self, trace, ax=ax)

    def _summary(self) -> str:
        values = ", ".join(f"{name} {value:.4g}" for name, value in self.params.items())
        points = counted(self.points, "point")
        return f"{self.family} {self.status}, {values}, sigma {self.sigma:.3g}, {points}"

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "status", self.status
        for (name, value), error in zip(self.params.items(), self.stderr.values(), strict=True):
            yield name, f"{value:.6g} ± {error:.2g}"
        yield "sigma", f"{self.sigma:.5g}"
        yield "aicc", f"{self.aicc:.5g}"
        yield "points", str(self.points)


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
