# SPDX-License-Identifier: Apache-2.0
"""Fits of many curves at once: a list of them, or columns of one family over shared steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath import _core
from glidepath._arguments import checked
from glidepath._columns import Floats, unmasked, values_of
from glidepath._core import InputError
from glidepath._fit import FAMILIES, Fit, Points, _or_none, _robust
from glidepath._results import Result, counted, require
from glidepath._trace import as_traces, refuse_traces

_STATUSES = np.array(_core.FIT_STATUSES)


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
        """Give a pandas DataFrame, one row per curve."""
        return require("pandas").DataFrame(
            {**self.params, "sigma": self.sigma, "status": self.status}
        )

    def _summary(self) -> str:
        converged = int(np.count_nonzero(self.status == "converged"))
        return f"{counted(len(self), f'{self.family} curve')}, {converged} converged"


@overload
def fit_batch(
    step: Iterable[Points],
    *,
    family: str = "auto",
    robust: bool | str = False,
    lowest_floor: float | None = None,
    weight: Iterable[ArrayLike] | None = None,
    solver: str = "closed_form",
    starts: int | None = None,
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
    weight: Iterable[ArrayLike] | None = None,
    solver: str = "closed_form",
    starts: int | None = None,
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
    lowest_floor : float, optional
        As in `fit`, in the unit of the loss.
    weight : iterable of array_like, shape (n,), optional
        As in `fit`, one for each trace: relative to its other points; for traces only.
    solver, starts : optional
        As in `fit`; for traces only.
    from_step : float, optional
        As in `fit`, in the unit of the steps.
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
            weights=_weights(weight, len(kept)),
            family=family,
            robust=_robust(robust),
            lowest_floor=_or_none(lowest_floor),
            solver=solver,
            starts=starts,
            from_step=_or_none(from_step),
            threads=threads,
        )
        return [Fit._of(record) for record in records]
    refuse_traces(step, "fit_batch")
    _refuse_of_traces(
        robust=_robust(robust) != "none",
        weight=weight is not None,
        solver=solver != "closed_form",
        starts=starts is not None,
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


def _weights(weight: Iterable[ArrayLike] | None, traces: int) -> list[ArrayLike]:
    if weight is None:
        return []
    weights = list(weight)
    if len(weights) != traces:
        raise InputError(
            f"fit_batch: weight has {len(weights)} columns, expected {traces}, one for each trace"
        )
    return weights


def _refuse_of_traces(**given: bool) -> None:
    """Refuse for rows what only a fit of traces reads."""
    for name in (name for name, is_given in given.items() if is_given):
        raise InputError(
            f"fit_batch: {name} is for traces, rows over shared steps are fitted by least squares"
        )


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
