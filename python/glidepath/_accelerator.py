# SPDX-License-Identifier: Apache-2.0
"""How a job scales, the ways in which it can run, and the best of them under limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from glidepath import _core
from glidepath._arguments import checked, one_or_many
from glidepath._core import (
    BatchChoice,
    BatchLimits,
    Gpu,
    Job,
    Option,
    Pairs,
    Profile,
    Scaling,
    Tier,
)
from glidepath._results import Result

# The defaults of the library.
_PLACEMENT, _LIMITS = _core.PlacementOptions(), _core.RunLimits()


def catalogue() -> list[Gpu]:
    """List every GPU of the catalogue, in its order.

    Returns
    -------
    list of Gpu
    """
    return _core.catalogue()


@checked
def fit_scaling(
    gpus: ArrayLike,
    seconds: ArrayLike,
    *,
    nodes: ArrayLike | None = None,
    batch_per_gpu: ArrayLike | None = None,
) -> Scaling:
    """Fit how step time falls with GPUs and nodes.

    Non-negative least squares in relative error (Lawson and Hanson 1974).

    Parameters
    ----------
    gpus : int or array_like of int, shape (n,)
        GPUs of each measured gang.
    seconds : float or array_like of float, shape (n,)
        Its time per step.
    nodes : int or array_like of int, shape (n,), optional
        The number of nodes of each gang, one number that of all; 1 where it is not given.
    batch_per_gpu : float or array_like of float, shape (n,), optional
        Global batch / gpus where that changes, in any one unit, one number that of all; 1 where it
        is not given.

    Returns
    -------
    Scaling

    Raises
    ------
    InputError
        Naming the measurement: a count below 1, a time not above 0, more nodes than GPUs.
    """
    gpus, seconds = one_or_many(gpus), one_or_many(seconds)
    nodes, batch_per_gpu = (
        np.full(np.size(gpus), value) if value is not None and np.ndim(value) == 0 else value
        for value in (nodes, batch_per_gpu)
    )
    return _core.fit_scaling(gpus, seconds, nodes=nodes, batch_per_gpu=batch_per_gpu)


@checked
def best_batch(
    scaling: Scaling, limits: BatchLimits, *, gpus: int = 1, nodes: int = 1
) -> BatchChoice | None:
    """Choose the batch of a gang.

    The one of largest goodput, throughput x statistical efficiency, as Pollux and Sia define it:
    the best of whole batches per GPU and whole passes, all where one of them is at most 134,
    beyond that 1.5 % apart. `options_of` with ``batches=`` does so for each tier and gang.

    Parameters
    ----------
    scaling : Scaling
        A fit to measurements with ``batch_per_gpu`` in examples.
    limits : BatchLimits
    gpus, nodes : int
        The gang, and on how many nodes it is.

    Returns
    -------
    BatchChoice or None
        None where no whole number of examples for each GPU lies between the reference and the
        largest batch.

    Raises
    ------
    InputError
        Naming the value: a limit below 1 or above 1e9, the largest batch below the reference, a
        noise scale that is negative or not finite.
    """
    return _core.best_batch(scaling, limits, gpus=gpus, nodes=nodes)


@checked
def options_of(
    tiers: Sequence[Tier],
    scaling: Mapping[str, Scaling] | Sequence[Scaling | None],
    *,
    alone: Profile | None = None,
    batch: float = _PLACEMENT.batch,
    batches: BatchLimits | None = None,
    max_gpus: int = _PLACEMENT.max_gpus,
    utilization: float = _PLACEMENT.utilization,
    sharing: str = _PLACEMENT.sharing,
    partner: Profile | None = None,
    pairs: Pairs | None = None,
) -> list[Option]:
    """List the ways to run a job: tier x gang x sharing, each with its rate.

    Gangs are of 1, 2, 4, ... GPUs on as few nodes as they need, up to twice the largest that was
    measured on a tier: those that are faster than every smaller one.

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
    batches : BatchLimits, optional
        Where the batch may be chosen for each gang: rates are then goodput, see `best_batch`. Not
        with `batch`.
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
            known = ", ".join(sorted(names))
            raise _core.InputError(f"options_of: no tier '{unknown[0]}', expected one of {known}")
        scaling = [scaling.get(tier.name) for tier in tiers]
    options = _core.PlacementOptions(
        alone=alone or Profile(),
        batch=batch,
        batches=batches,
        max_gpus=max_gpus,
        utilization=utilization,
        sharing=sharing,
        partner=partner,
        pairs=pairs,
    )
    return _core.options_of(list(tiers), list(scaling), options)


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
    max_hours, max_watts : float
        Limits of the whole run from now on.
    max_node_watts : float
        Limit of what the gang's GPUs in one node draw together at full utilization.
    max_kwh, max_cost : float
        Limits of the whole run from now on.
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
        A job without forecast, one that fits no tier, a negative limit, `reached_by` without
        `target`, or a limit or `prefer` of power or money where no tier says its watts or price.
    """
    limits = _core.RunLimits(
        max_hours=max_hours,
        max_watts=max_watts,
        max_node_watts=max_node_watts,
        max_kwh=max_kwh,
        max_cost=max_cost,
        confidence=confidence,
        target=target,
        reached_by=reached_by,
    )
    return [
        AcceleratorChoice._from_record(choice, tier=tiers[choice.option.tier].name)
        for choice in _core.choose_accelerator(job, list(tiers), limits, prefer)
    ]
