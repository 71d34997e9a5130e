# SPDX-License-Identifier: Apache-2.0
"""The numbers of the objective ``learned``: those built in, and files of others."""

from __future__ import annotations

import os

from numpy.typing import ArrayLike

from glidepath import _core
from glidepath._arguments import checked
from glidepath._columns import Floats, array_of


def learned_values() -> Floats:
    """Weights of the objective ``learned`` that are built in, and the ranges in which they hold.

    Returns
    -------
    ndarray, shape (66,)
        17 weights of plans, 17 of orders of jobs, 3 of the patience of these, 17 of plans in which
        a job has a budget, 2 logarithms of shares of the budget that is left (what a job without a
        forecast needs at most, and one whose forecast never arrives), and the low and high ends of
        5 ranges: GPUs wanted over GPUs, largest gang, mean spread of the forecasts, restart in
        seconds, least speed of a job as a share of its best.
    """
    return _core.learned_values()


@checked
def read_learned_values(path: str | os.PathLike[str]) -> Floats:
    """Read the values of the objective ``learned`` from a file of `write_learned_values`.

    Parameters
    ----------
    path : path

    Returns
    -------
    ndarray, shape (66,)
        As `learned_values` has them.

    Raises
    ------
    IoError
        A file that is not there, is of another version, or is damaged.
    """
    return _core.read_learned_values(path)


@checked
def write_learned_values(values: ArrayLike, path: str | os.PathLike[str]) -> None:
    """Write values of the objective ``learned``, with a version and a checksum.

    Parameters
    ----------
    values : array_like, shape (66,)
        As `learned_values` has them, without a unit.
    path : path

    Returns
    -------
    None

    Raises
    ------
    InputError
        Another number of values, or one that is not finite.
    IoError
        A file that cannot be written.
    """
    _core.write_learned_values(array_of(values, "values").tolist(), path)
