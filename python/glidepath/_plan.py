# SPDX-License-Identifier: Apache-2.0
"""The planner: which jobs run now, on which GPUs, with a certificate of how good the choice is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath import _core
from glidepath._core import Allocation, Job, Option, Snapshot, Tier, catalogue
from glidepath._results import Result, require

__all__ = [
    "Allocation",
    "Job",
    "Option",
    "Plan",
    "RoundPlan",
    "Snapshot",
    "Tier",
    "catalogue",
    "gittins_index",
    "plan",
    "solve_round",
    "violations",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def _no_prices() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RoundPlan(Result):
    """The best choice found for one round; value <= optimum <= bound.

    Attributes
    ----------
    chosen : ndarray of int64
        Indices into the options, increasing.
    value, bound : float
    gap : float
        (bound - value) / bound, 0 when both are 0.
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


def solve_round(
    job: ArrayLike,
    tier: ArrayLike,
    gpus: ArrayLike,
    value: ArrayLike,
    capacity: ArrayLike,
    *,
    gap: float = 1e-3,
    prices: ArrayLike | None = None,
    threads: int = 1,
    watts: ArrayLike | None = None,
    power_cap_w: float = math.inf,
    user: ArrayLike | None = None,
    user_quota: ArrayLike | None = None,
    group: ArrayLike | None = None,
    group_quota: ArrayLike | None = None,
    node_gpus: ArrayLike | None = None,
) -> RoundPlan:
    """Choose at most one option per job, most valuable within the capacity of each tier.

    The multiple-choice multi-dimensional knapsack by Lagrangian prices (Geoffrion 1974), repair and
    a search of the core (Balas, Zemel 1980). Up to 8 jobs are solved exactly.

    Parameters
    ----------
    job, tier, gpus : array_like of int64, shape (options,)
        Option i lets ``job[i]`` hold ``gpus[i]`` GPUs of tier ``tier[i]``.
    value : array_like of float, shape (options,)
        0 to 1e15.
    capacity : array_like of int64, shape (tiers,)
    gap : float
        Search on while (bound - value) / bound is above this.
    prices : array_like of float, shape (tiers,), optional
        Of the round before, to start from.
    threads : int
        0 = all cores. Changes no byte of the result.
    watts : array_like of float, shape (options,), optional
        Power of each option, in whole milliwatts; together at most `power_cap_w`.
    power_cap_w : float
    user, group : array_like of int64, shape (options,), optional
        Index into the quota that the option's GPUs count against, whatever their tier.
    user_quota, group_quota : array_like of int64, optional
    node_gpus : array_like of int64, shape (tiers,), optional
        GPUs per node; 0 = gangs may be spread anywhere. A gang up to a node fits in one node, a
        larger one takes whole nodes and its rest a part of another.

    Returns
    -------
    RoundPlan

    Raises
    ------
    InputError
        Naming the option: a negative or NaN value, an unknown tier, a gang below 1.
    """
    return RoundPlan(
        *_core.solve_round(
            job,
            tier,
            gpus,
            value,
            capacity,
            gap,
            prices,
            threads,
            watts,
            power_cap_w,
            user,
            user_quota,
            group,
            group_quota,
            node_gpus,
        )
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan(Result):
    """Who runs now, and why. A policy of your own may return one with `allocations` alone.

    Attributes
    ----------
    allocations : sequence of Allocation
        Every job that shall run now, the kept ones included.
    stop : sequence of int
        Jobs to end for good: target reached, or out of reach.
    value, bound, gap : float
        Value per second, certificate, and (bound - value) / bound.
    prices : ndarray, shape (tiers,)
        Value of a GPU-second of each tier now.
    reasons : dict of int to str
        One line for each job.
    """

    allocations: Sequence[Allocation] = ()
    stop: Sequence[int] = ()
    value: float = 0.0
    bound: float = 0.0
    gap: float = 0.0
    prices: Floats = field(default_factory=_no_prices)
    reasons: Mapping[int, str] = field(default_factory=dict)

    def _summary(self) -> str:
        gpus = sum(allocation.gpus for allocation in self.allocations)
        return (
            f"{len(self.allocations)} jobs on {gpus} GPUs, {len(self.stop)} ended, "
            f"value {self.value:.4g}/s, gap {self.gap:.2%}"
        )

    def _rows(self) -> Iterator[tuple[str, str]]:
        for job, reason in self.reasons.items():
            yield f"job {job}", reason

    def to_pandas(self) -> Any:
        """One row per allocation, with its reason."""
        pandas = require("pandas")
        return pandas.DataFrame(
            [
                {
                    "job": a.job,
                    "tier": a.tier,
                    "gpus": a.gpus,
                    "since_s": a.since_s,
                    "reason": self.reasons.get(a.job, ""),
                }
                for a in self.allocations
            ],
            columns=["job", "tier", "gpus", "since_s", "reason"],
        )


def plan(
    snapshot: Snapshot,
    *,
    objective: str = "jct",
    round_s: float = 360.0,
    gap: float = 1e-3,
    hysteresis: float = 0.05,
    stop_probability: float = 0.98,
    reasons: bool = True,
    prices: ArrayLike | None = None,
) -> Plan:
    """Plan one round of the live jobs.

    A second of a job is worth weight x rate x Gittins index of its forecast, net of the restart it
    would have to pay; jobs that reached their target or never will are ended.

    Parameters
    ----------
    snapshot : Snapshot
    objective : str
        ``"jct"``: mean job completion time.
    round_s : float
        Seconds until the next plan.
    gap : float
        As in `solve_round`.
    hysteresis : float
        A challenger's value must exceed that of a running job by this share.
    stop_probability : float
        A job ends once P(reached) or P(never) is at least this.
    reasons : bool
        Write a line for each job.
    prices : array_like, optional
        ``.prices`` of the plan before, to start from.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        Naming the job: fits no tier, a negative rate, a repeated id.
    """
    return Plan(
        *_core.plan(
            snapshot, objective, round_s, gap, hysteresis, stop_probability, reasons, prices
        )
    )


def violations(snapshot: Snapshot, plan: Plan) -> list[str]:
    """Say what is wrong with a plan, one sentence each; empty means that it can be carried out."""
    return _core.violations(snapshot, plan)


def gittins_index(samples: ArrayLike) -> float:
    """Gittins index of equally likely samples of remaining service (inf = never).

    sup over d of P(S <= d) / E[min(S, d)], optimal for the mean completion time in the M/G/1 queue
    (Gittins 1989; Aalto, Ayesta, Righter 2009). A known size gives 1 / size.
    """
    return _core.gittins_index(samples)
