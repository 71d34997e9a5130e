# SPDX-License-Identifier: Apache-2.0
"""The planner: which jobs run now, on which GPUs, with a certificate of how good the choice is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from glidepath import _core
from glidepath._arguments import checked, one_or_many
from glidepath._columns import Floats
from glidepath._core import Allocation, Pairs, Snapshot, Tier
from glidepath._results import Result, counted, require

_PLAN = _core.PlanOptions()  # the defaults of the library
REMAINING_SAMPLES = 32  # equally likely, of the steps that a job still needs


def _no_prices() -> Floats:
    return np.zeros(0)


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
    fallback : str
        Why the objective ``learned`` was taken for ``jct``; empty where it was not.
    tiers : sequence of Tier
        Tiers of the snapshot; `plot` draws them.
    """

    allocations: Sequence[Allocation] = ()
    stop: Sequence[int] = ()
    value: float = 0.0
    bound: float = 0.0
    gap: float = 0.0
    prices: Floats = field(default_factory=_no_prices)
    reasons: Mapping[int, str] = field(default_factory=dict)
    fallback: str = ""
    tiers: Sequence[Tier] = ()

    def _summary(self) -> str:
        gpus = sum(allocation.gpus for allocation in self.allocations)
        return (
            f"{counted(len(self.allocations), 'job')} on {counted(gpus, 'GPU')}, "
            f"{len(self.stop)} ended, value {self.value:.4g}/s, gap {self.gap:.2%}"
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw who holds which GPUs of each tier, and what a GPU of it is worth."""
        if self.allocations and not self.tiers:
            raise _core.InputError("plan: nothing to draw on, give the tiers: Plan(..., tiers=...)")
        from glidepath._pictures import clusters

        return clusters.plan(self, self.tiers, ax=ax)

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


@checked
def plan(
    snapshot: Snapshot,
    *,
    objective: str | Mapping[str, float] | Sequence[str] = _PLAN.objective,
    slack: float = _PLAN.slack,
    round_s: float = _PLAN.round_s,
    gap: float = _PLAN.gap,
    stop_probability: float = _PLAN.stop_probability,
    outrun_probability: float = _PLAN.outrun_probability,
    power_cap_w: float = _PLAN.power_cap_w,
    user_quota: Mapping[str, int] | None = None,
    group_quota: Mapping[str, int] | None = None,
    in_nodes: bool = _PLAN.in_nodes,
    sharing: str = _PLAN.sharing,
    pairs: Pairs | None = None,
    joule_value: float = _PLAN.joule_value,
    hysteresis: float = _PLAN.hysteresis,
    min_run_s: float = _PLAN.min_run_s,
    ageing_s: float = _PLAN.ageing_s,
    max_wait_s: float = _PLAN.max_wait_s,
    learned: str | os.PathLike[str] | ArrayLike | None = None,
    reasons: bool = _PLAN.reasons,
    prices: ArrayLike | None = None,
) -> Plan:
    """Plan one round of the live jobs.

    Each option of a job gets a value per second; `solve_round` picks the best set. Classes of
    `Job.priority` are served strictly one after the other. Jobs that reached their target or never
    will are ended.

    Parameters
    ----------
    snapshot : Snapshot
    objective : str, dict of str to float, or sequence of str
        ``jct`` (weight x rate x Gittins index of the forecast), ``known_size`` (weight x rate /
        expected steps), ``quality`` (expected fall of the loss, SLAQ), ``deadline`` (what running
        now adds to the chance of meeting it), ``fairness`` (max-min of finish-time fairness),
        ``energy`` and ``cost`` (Gittins index, options by joules or price per step), ``edp``
        (energy-delay product: options by rate^2 / power; to the three all tiers are alike where
        none says its watts or price), ``learned`` (``jct`` times a correction
        that was learned; ``jct`` where it does not hold, see `Plan.fallback`). A dict weighs
        several, each normalised to mean 1. A sequence is an order: a later one only chooses among
        plans that are best by those before it. ``deadline`` has a thousandth of ``jct`` in it, for
        jobs that no deadline urges: what follows it, but ``jct``, counts with ``slack``.
    slack : float
        Share of its best value that each objective of an order may give up for those after it;
        refused without an order.
    round_s : float
        Seconds until the next plan: the horizon of ``quality``, ``deadline`` and ``fairness``, and
        the time that a job without a forecast is taken to need at least.
    gap : float
        As in `solve_round`: a fraction, 0 to 1.
    stop_probability : float
        A job ends once P(reached) or P(never) is at least this.
    outrun_probability : float
        Past this quantile of its forecast a job is served by least attained service.
    power_cap_w : float
        Watts that the GPUs in use may draw together; refused where no tier says its watts.
    user_quota, group_quota : dict of str to int
        GPUs that the jobs of a user or group may hold; users and groups not named have no limit.
    in_nodes : bool
        Gangs must fit in nodes of `Tier.gpus_per_node`.
    sharing : str
        ``exclusive``, or how waiting jobs may join running ones: ``naive``, ``mps``, ``mig``.
    pairs : Pairs, optional
        Measured and learned speeds of pairs by `Job.kind`; the others come from the activities.
        Refused where jobs do not share.
    joule_value : float
        Value of a joule saved, taken off every option; refused where no tier says its watts.
    hysteresis : float
        A challenger's value must exceed that of a running job by this share.
    min_run_s : float
        A start is not preempted before, unless the power cap or a quota leaves it no room. The same
        holds for a job that is not `preemptible`: its reason says so.
    ageing_s : float
        tau in weight x (1 + (waited / tau)^2).
    max_wait_s : float
        After this wait a job is placed before all others; while it does not fit, the GPUs that
        are free next are kept for it and only jobs that end before it starts may use them.
    learned : path or array_like, shape (66,), optional
        A file of `write_learned_values`, or its values, for the objective ``learned``; by default
        `learned_values`. Without a unit: factors and weights of logarithms.
    reasons : bool
        Write a line for each job.
    prices : array_like, shape (tiers,), optional
        ``.prices`` of the plan before, per GPU-second, to start from.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        Naming the job: a repeated id, or an allocation of an unknown job. Naming the limit or
        option that is out of range, and the objective, tier or way of sharing that is not known.

    Notes
    -----
    A broken job (a negative or NaN number, no option that fits) gets no GPU and the reason
    ``"cannot be planned: ..."``; the others are planned as if it were not there. A job is ended by
    the law of its `remaining_steps` (`stop_probability`), not by the verdict of a `Watch`.
    """
    given = locals()
    del given["snapshot"]
    options = _core.PlanOptions(**given)
    return Plan._from_record(_core.plan(snapshot, options), tiers=snapshot.tiers)


@checked
def violations(
    snapshot: Snapshot,
    plan: Plan,
    *,
    power_cap_w: float = _PLAN.power_cap_w,
    user_quota: Mapping[str, int] | None = None,
    group_quota: Mapping[str, int] | None = None,
    in_nodes: bool = _PLAN.in_nodes,
    sharing: str = _PLAN.sharing,
    min_run_s: float = _PLAN.min_run_s,
) -> list[str]:
    """Say what is wrong with a plan, one sentence each; empty means that it can be carried out.

    Parameters
    ----------
    snapshot : Snapshot
    plan : Plan
    power_cap_w, user_quota, group_quota, in_nodes, sharing, min_run_s
        The limits of `plan`, checked where they are given; without a way of sharing GPUs no two
        jobs may begin to.

    Returns
    -------
    list of str

    Raises
    ------
    InputError
        An unknown way of sharing, or a limit that `plan` refuses.
    """
    given = locals()
    del given["snapshot"], given["plan"]
    limits = _core.PlanLimits(**given)
    return _core.violations(snapshot, plan, limits)


@checked
def gittins_index(samples: ArrayLike) -> float:
    """Gittins index of equally likely samples of remaining service (inf = never).

    sup over d of P(S <= d) / E[min(S, d)], optimal for the mean completion time in the M/G/1 queue
    (Gittins 1989; Aalto, Ayesta, Righter 2009). A known size gives 1 / size.

    Parameters
    ----------
    samples : float or array_like, shape (n,)
        Remaining service, in any unit; inf = never.

    Returns
    -------
    float
        In one over that unit.

    Raises
    ------
    InputError
        No samples, or one below 0.
    """
    return _core.gittins_index(one_or_many(samples))
