# SPDX-License-Identifier: Apache-2.0
"""The planner: which jobs run now, on which GPUs, with a certificate of how good the choice is."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath import _core
from glidepath._arguments import checked
from glidepath._core import (
    Allocation,
    Job,
    Option,
    Pairs,
    Profile,
    Scaling,
    Snapshot,
    Tier,
)
from glidepath._results import Result, require

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


# The defaults of the library.
_PLAN, _PLACEMENT = _core.PlanOptions(), _core.PlacementOptions()
_LIMITS = _core.RunLimits()


def _no_prices() -> Floats:
    return np.zeros(0)


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
        Search on while the fraction (bound - value) / bound is above this.
    prices : array_like of float, shape (tiers,), optional
        Prices per GPU of the round before, to start from.
    threads : int
        0 = all cores. Changes no byte of the result.
    watts : array_like of float, shape (options,), optional
        Power of each option, in whole milliwatts; together at most `power_cap_w`. Without a cap
        they limit nothing.
    power_cap_w : float
        Needs `watts`.
    user, group : array_like of int64, shape (options,), optional
        Index into the quota that the option's GPUs count against, whatever their tier.
    user_quota, group_quota : array_like of int64, shape (users,) and (groups,), optional
        GPUs of all tiers together. Each needs its column of indices.
    node_gpus : array_like of int64, shape (tiers,), optional
        GPUs per node; 0 = gangs may be spread anywhere. A gang up to a node fits in one node, a
        larger one takes whole nodes and its rest a part of another.

    Returns
    -------
    RoundPlan

    Raises
    ------
    InputError
        Naming the option: a negative or NaN value, an unknown tier, a gang below 1. Naming a limit
        without its column.
    """
    given = {name: _one_or_many(value) for name, value in locals().items()}
    scalars = {"gap": gap, "threads": threads, "power_cap_w": power_cap_w}
    return RoundPlan._from_record(_core.solve_round(**given | scalars))


def _one_or_many(values: ArrayLike | None) -> Any:
    """Give a number as a column of one."""
    return values if values is None or np.ndim(values) else np.atleast_1d(values)


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
            f"{len(self.allocations)} jobs on {gpus} GPUs, {len(self.stop)} ended, "
            f"value {self.value:.4g}/s, gap {self.gap:.2%}"
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw who holds which GPUs of each tier, and what a GPU of it is worth."""
        if self.allocations and not self.tiers:
            raise _core.InputError("plan: nothing to draw on, give the tiers: Plan(..., tiers=...)")
        from glidepath._pictures import plots

        return plots.plan(self, self.tiers, ax=ax)

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
        (energy-delay product: options by rate^2 / power), ``learned`` (``jct`` times a correction
        that was learned; ``jct`` where it does not hold, see `Plan.fallback`). A dict weighs
        several, each normalised to mean 1. A sequence is an order: a later one only chooses among
        plans that are best by those before it.
    slack : float
        Share of its best value that each objective of an order may give up for those after it;
        refused without an order.
    round_s : float
        Seconds until the next plan.
    gap : float
        As in `solve_round`: a fraction.
    stop_probability : float
        A job ends once P(reached) or P(never) is at least this.
    outrun_probability : float
        Past this quantile of its forecast a job is served by least attained service.
    power_cap_w : float
        Watts that the GPUs in use may draw together.
    user_quota, group_quota : dict of str to int
        GPUs that the jobs of a user or group may hold; who is not named is not limited.
    in_nodes : bool
        Gangs must fit in nodes of `Tier.gpus_per_node`.
    sharing : str
        ``exclusive``, or how waiting jobs may join running ones: ``naive``, ``mps``, ``mig``.
    pairs : Pairs, optional
        Measured and learned speeds of pairs by `Job.kind`; the others come from the activities.
        Refused where jobs do not share.
    joule_value : float
        Value of a joule saved, taken off every option.
    hysteresis : float
        A challenger's value must exceed that of a running job by this share.
    min_run_s : float
        A start is not preempted before, unless the power cap or a quota leaves it no room. The same
        holds for a job that is not `preemptible`: its reason says so.
    ageing_s : float
        tau in weight x (1 + (waited / tau)^2).
    max_wait_s : float
        After this wait a job is placed before all others; while it does not fit, the GPUs that
        are free next are kept for it and only jobs out of the way in time may fill them.
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
        Naming the job: a repeated id, or an allocation of an unknown job.

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
def read_learned_values(file: str | os.PathLike[str]) -> Floats:
    """Read the values of the objective ``learned`` from a file of `write_learned_values`.

    Parameters
    ----------
    file : path

    Returns
    -------
    ndarray, shape (66,)
        As `learned_values` has them.

    Raises
    ------
    IoError
        A file that is not there, is of another version, or is damaged.
    """
    return _core.read_learned_values(file)


@checked
def write_learned_values(values: ArrayLike, file: str | os.PathLike[str]) -> None:
    """Write values of the objective ``learned``, with a version and a checksum.

    Parameters
    ----------
    values : array_like, shape (66,)
        As `learned_values` has them, without a unit.
    file : path

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
    _core.write_learned_values(np.asarray(values, np.float64).ravel().tolist(), file)


class SharedSpeeds(NamedTuple):
    """Speeds of two jobs on the same GPUs, each as a share of its speed alone."""

    first: float
    second: float


@checked
def shared_speeds(
    first: Profile,
    second: Profile,
    sharing: str,
    *,
    gpu_memory_gb: float = 0.0,
    gpu: str = "",
    pairs: Pairs | None = None,
) -> SharedSpeeds:
    """Speeds of two jobs on the same GPUs, each as a share of its speed alone.

    Parameters
    ----------
    first, second : Profile
        Each job alone.
    sharing : str
        ``naive`` (time slices), ``mps`` or ``mig``.
    gpu_memory_gb : float
        Memory of the card: (0, 0) comes back when the pair does not fit; 0 = not known.
    gpu : str
        The card, as `pairs` names it.
    pairs : Pairs, optional
        Where these hold the kinds of the profiles on `gpu`, their speeds, measured or learned;
        else, and without, those predicted from the activities.

    Returns
    -------
    SharedSpeeds
        `first` and `second`, from 0; above 1 only where that was measured.

    Raises
    ------
    InputError
        An activity of multiprocessors outside 0 to 1, one of memory above 1, an unknown way of
        sharing, or one of `gpu` and `pairs` without the other.
    """
    if bool(gpu) != (pairs is not None):
        given, missing = ("gpu", "pairs") if gpu else ("pairs", "gpu")
        raise _core.InputError(f"shared_speeds: {given} without {missing}")
    speeds = _core.shared_speeds(first, second, sharing, gpu, gpu_memory_gb, pairs)
    return SharedSpeeds(speeds.first, speeds.second)


@checked
def options_of(
    tiers: Sequence[Tier],
    scaling: Mapping[str, Scaling] | Sequence[Scaling | None],
    *,
    alone: Profile | None = None,
    batch: float = _PLACEMENT.batch,
    max_gpus: int = _PLACEMENT.max_gpus,
    utilization: float = _PLACEMENT.utilization,
    sharing: str = _PLACEMENT.sharing,
    partner: Profile | None = None,
    pairs: Pairs | None = None,
) -> list[Option]:
    """List the ways to run a job: tier x gang x sharing, each with its rate.

    Gangs are of 1, 2, 4, ... GPUs on as few nodes as they need, up to twice the largest that was
    measured on a tier, and while each is faster than the one before.

    Parameters
    ----------
    tiers : sequence of Tier
    scaling : dict of str to Scaling, or sequence of Scaling or None
        Scaling of the job on each tier, by name or in order; None or absent = it does not run
        there.
    alone : Profile, optional
        Its memory keeps the job off small cards; its activity and kind say how it shares.
    batch : float
        Global batch, in the unit of the fit's ``batch_per_gpu``; 0 = the batch of each GPU stays
        what it was measured with.
    max_gpus : int
        Largest gang.
    utilization : float
        Utilization of each GPU when the job runs alone.
    sharing : str
        How it shares GPUs with `partner`: ``naive``, ``mps`` or ``mig``; neither without the other.
    partner : Profile, optional
        With one, each gang comes a second time at the speed beside it, where the pair fits the
        card.
    pairs : Pairs, optional
        Measured and learned pairs; the others are predicted from the activities.

    Returns
    -------
    list of Option
        By tier and gang, first those with GPUs of their own, then the shared ones.

    Raises
    ------
    InputError
        Naming the value: memory or batch negative, no GPU, a fit for an unknown tier.
    """
    if isinstance(scaling, Mapping):
        names = {tier.name for tier in tiers}
        unknown = [name for name in scaling if name not in names]
        if unknown:
            raise _core.InputError(
                f"options_of: no tier '{unknown[0]}', known: {', '.join(sorted(names))}"
            )
        scaling = [scaling.get(tier.name) for tier in tiers]
    options = _core.PlacementOptions(
        alone=alone or Profile(),
        batch=batch,
        max_gpus=max_gpus,
        utilization=utilization,
        sharing=sharing,
        partner=partner,
        pairs=pairs,
    )
    return _core.options_of(list(tiers), list(scaling), options)


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
        The limits of `plan`, checked where they are given.

    Returns
    -------
    list of str

    Raises
    ------
    InputError
        An unknown way of sharing.
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
    return _core.gittins_index(_one_or_many(samples))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AcceleratorChoice(Result):
    """One way to run a job, judged against what the run must keep to.

    Attributes
    ----------
    option : Option
    tier : str
    probability : float
        Probability of reaching the target within every limit.
    hours, hours_low, hours_high : float
        Median, 0.1 and 0.9 quantile of the time to the target; inf where it is more
        likely never reached.
    watts, kwh, cost : float
        Medians for the whole gang.
    node_watts : float
        At peak, of the gang's GPUs in one node.
    good : bool
        The probability is at least `confidence`.
    pareto : bool
        No other option is better in one respect and as good in the others.
    reason : str
    """

    option: Option
    tier: str
    probability: float
    hours: float
    hours_low: float
    hours_high: float
    watts: float
    kwh: float
    cost: float
    node_watts: float
    good: bool
    pareto: bool
    reason: str

    def _summary(self) -> str:
        front = ", on the front" if self.pareto else ""
        return f"{self.reason}, {self.hours:.3g} h, {self.kwh:.3g} kWh{front}"


def _samples(job: Job, target: float, reached_by: str | None) -> Floats:
    """Sample the steps that the job's own curve still needs to the target."""
    from glidepath._forecast import reach
    from glidepath._trace import Trace

    if not len(job.observed_step):
        raise _core.InputError(
            f"choose_accelerator: job {job.id} has no curve to forecast the target {target:g} from"
        )
    trace = Trace(job.observed_step, job.observed_loss)
    open_end = _core.open_budget(float(trace.step[0]), float(trace.step[-1]))
    budget = job.budget_steps if job.budget_steps > job.steps_done else open_end
    law = reach(trace, target, budget=budget, reached_by=reached_by)
    return law.remaining_steps(64)


@checked
def choose_accelerator(
    job: Job,
    tiers: Sequence[Tier],
    *,
    max_hours: float = _LIMITS.max_hours,
    max_watts: float = _LIMITS.max_watts,
    max_node_watts: float = _LIMITS.max_node_watts,
    max_kwh: float = _LIMITS.max_kwh,
    max_cost: float = _LIMITS.max_cost,
    target: float | None = None,
    reached_by: str | None = None,
    confidence: float = _LIMITS.confidence,
    prefer: str = "hours",
) -> list[AcceleratorChoice]:
    """Rank the ways to run one job under limits of time, power, energy, money and accuracy.

    Asking again with a new profile or a longer curve decides again.

    Parameters
    ----------
    job : Job
        With `remaining_steps`, or with the curve observed so far and `target`.
    tiers : sequence of Tier
        That the options of the job point to.
    max_hours, max_watts, max_kwh, max_cost : float
        Limits of the whole run from now on.
    max_node_watts : float
        Limit of what the gang's GPUs in one node draw together at full utilization.
    target : float, optional
        Loss to reach: the steps still needed are then forecast from the observed curve.
    reached_by : {"curve", "point"}, optional
        By what `target` is reached: as for `reach` of a loss, by the curve. The simulator ends a
        job at the first ``"point"``.
    confidence : float
        An option is good when it keeps to all limits with this probability.
    prefer : str
        What orders the good ones: ``hours``, ``kwh``, ``cost`` or ``watts``.

    Returns
    -------
    list of AcceleratorChoice
        The good ones first, then the others by falling probability.

    Raises
    ------
    InputError
        A job without forecast, one that fits no tier, a negative limit, or `reached_by` without
        `target`.
    """
    if target is not None:
        job = job.with_remaining(_samples(job, target, reached_by))
    elif reached_by is not None:
        raise _core.InputError("choose_accelerator: reached_by without target")
    limits = _core.RunLimits(
        max_hours=max_hours,
        max_watts=max_watts,
        max_node_watts=max_node_watts,
        max_kwh=max_kwh,
        max_cost=max_cost,
        confidence=confidence,
    )
    return [
        AcceleratorChoice._from_record(choice, tier=tiers[choice.option.tier].name)
        for choice in _core.choose_accelerator(job, list(tiers), limits, prefer)
    ]
