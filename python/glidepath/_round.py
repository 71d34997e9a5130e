# SPDX-License-Identifier: Apache-2.0
"""One round: the most valuable options within the capacity, with a certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath import _core
from glidepath._arguments import check_threads, checked, one_or_many
from glidepath._columns import Floats
from glidepath._results import Result

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RoundPlan(Result):
    """The best choice found for one round; value <= optimum <= bound.

    Attributes
    ----------
    chosen : ndarray of int64, shape (chosen,)
        Indices into the options, increasing.
    value, bound : float
        Sum of the chosen options' values, and a bound that no choice exceeds, in the unit of the
        options' values.
    gap : float
        (bound - value) / bound, a fraction; 0 when both are 0.
    prices : ndarray, shape (tiers,)
        Value of one more GPU of each tier.
    """

    chosen: Integers
    value: float
    bound: float
    gap: float
    prices: Floats

    def _summary(self) -> str:
        return f"{len(self.chosen)} chosen, value {self.value:.6g}, gap {self.gap:.2%}"


@checked
def solve_round(
    job: ArrayLike,
    tier: ArrayLike,
    gpus: ArrayLike,
    value: ArrayLike,
    capacity: ArrayLike,
    *,
    gap: float = _core.ROUND_GAP,
    prices: ArrayLike | None = None,
    threads: int = 1,
    watts: ArrayLike | None = None,
    power_cap_w: float = math.inf,
    user: ArrayLike | None = None,
    user_quota: ArrayLike | None = None,
    group: ArrayLike | None = None,
    group_quota: ArrayLike | None = None,
    node_gpus: ArrayLike | None = None,
    taken_tier: ArrayLike | None = None,
    taken_gpus: ArrayLike | None = None,
) -> RoundPlan:
    """Choose at most one option per job, most valuable within the capacity of each tier.

    The multiple-choice multi-dimensional knapsack by Lagrangian prices (Geoffrion 1974), repair and
    a search of the core (Balas, Zemel 1980). Up to 8 jobs are solved exactly.

    Parameters
    ----------
    job, tier, gpus : array_like of int64, shape (options,)
        Option i lets ``job[i]`` hold ``gpus[i]`` GPUs of tier ``tier[i]``.
    value : array_like of float, shape (options,)
        0 to 1e15, in any one unit.
    capacity : int or array_like of int64, shape (tiers,)
        GPUs of each tier. One number, here and in the other columns, is a column of one.
    gap : float
        Search on while the fraction (bound - value) / bound, 0 to 1, is above this.
    prices : array_like of float, shape (tiers,), optional
        Prices per GPU of the round before, to start from.
    threads : int
        0 = all cores. Changes no byte of the result.
    watts : array_like of float, shape (options,), optional
        Power of each option; together at most `power_cap_w`, but for 1e-10 of it and, for each job,
        1e-8 of the largest draw. What adds up to the cap keeps to it. Without one they limit
        nothing.
    power_cap_w : float
        Needs `watts`.
    user : array_like of int64, shape (options,), optional
        Index into the quota that the option's GPUs count against, whatever their tier; the same for
        all options of a job.
    user_quota : array_like of int64, shape (users,), optional
        GPUs of all tiers together; needs `user`, its column of indices.
    group : array_like of int64, shape (options,), optional
        The same index into the quotas of groups; its GPUs count against both.
    group_quota : array_like of int64, shape (groups,), optional
        GPUs of all tiers together; needs `group`.
    node_gpus : array_like of int64, shape (tiers,), optional
        GPUs per node; 0 = gangs may be spread anywhere. A gang up to a node fits in one node, a
        larger one takes whole nodes and its rest a part of another.
    taken_tier, taken_gpus : array_like of int64, shape (gangs,), optional
        Gangs that stay where they are: they take of `capacity` and of the nodes.

    Returns
    -------
    RoundPlan

    Raises
    ------
    InputError
        Naming the option: a negative or NaN value, an unknown tier, a gang below 1. Naming a limit
        without its column.
    """
    check_threads(threads)
    given = {name: one_or_many(value) for name, value in locals().items()}
    scalars = {"gap": gap, "threads": threads, "power_cap_w": power_cap_w}
    return RoundPlan._from_record(_core.solve_round(**given | scalars))
