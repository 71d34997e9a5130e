# SPDX-License-Identifier: Apache-2.0
"""Jobs on the same GPU: speeds of pairs and mixes, slices of a card and who runs on which."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from numpy.typing import ArrayLike

from glidepath import _core
from glidepath._arguments import checked
from glidepath._columns import Floats
from glidepath._core import JobKind, KindPair, Pairs, Partition, Profile, Slice, Tier


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
def mix_speeds(
    jobs: Sequence[Profile], sharing: str, tier: Tier, *, pairs: Pairs | None = None
) -> Floats:
    """Speeds of up to four jobs on one GPU.

    Parameters
    ----------
    jobs : list of Profile
        Each job alone; one to four.
    sharing : str
        ``naive`` (time slices) or ``mps``.
    tier : Tier
        The GPU and its memory.
    pairs : Pairs, optional
        Measured and learned pairs, as in `shared_speeds`.

    Returns
    -------
    ndarray, shape (jobs,)
        A share of each job's speed alone, from its `shared_speeds` with each of the others: their
        product under ``mps``, and under ``naive``, whose jobs take turns, the slowdowns added up;
        above 1 where that was measured. All 0 when together they need more than the card's memory.

    Raises
    ------
    InputError
        No job or more than four, another way of sharing, activities out of range.
    """
    return _core.mix_speeds(jobs, sharing, tier, pairs=pairs)


def slices() -> list[Slice]:
    """List the slices of a card: 7g, 4g, 3g, 2g, 1g.

    Returns
    -------
    list of Slice
    """
    return _core.slices()


def partitions() -> list[Partition]:
    """List the 19 ways to cut a card, without jobs.

    Returns
    -------
    list of Partition
    """
    return _core.partitions()


@checked
def slice_speeds(jobs: Sequence[Profile], tier: Tier) -> Floats:
    """Predict the speeds of jobs on the slices of a card.

    Parameters
    ----------
    jobs : list of Profile
        Each job alone on the whole card: `mean_watts` decides where it is known, else the
        activities.
    tier : Tier
        The card: its memory, idle and busy power.

    Returns
    -------
    ndarray, shape (jobs, slices)
        Share of the speed on the whole card, by the columns of `slices`; 0 where the slice has too
        little memory. A step takes `step_seconds` over it.

    Raises
    ------
    InputError
        Power below the idle or above the busy one of the tier, activities out of range.
    """
    return _core.slice_speeds(jobs, tier)


@checked
def best_partition(speeds: ArrayLike) -> Partition:
    """Cut a card for jobs and say who runs on which slice.

    Parameters
    ----------
    speeds : array_like, shape (jobs, slices)
        Those of up to 7 jobs, as `slice_speeds` gives them, or measured; 0 = does not run there.

    Returns
    -------
    Partition
        The greatest sum of speeds among the partitions that run the most jobs; exact.

    Raises
    ------
    InputError
        More than 7 jobs, a speed below 0 or not finite, or another number of columns than slices.
    """
    return _core.best_partition(speeds)


@checked
def read_pairs(path: str | os.PathLike[str]) -> list[KindPair]:
    """Read measured pairs of jobs on the same GPUs.

    Parameters
    ----------
    path : path
        CSV ``gpu,job_a,job_b,slowdown_a,slowdown_b``, plain or gzip, perhaps with ``sharing``.

    Returns
    -------
    list of KindPair

    Raises
    ------
    IoError
        Naming file and line.
    """
    return _core.read_pairs(path)


@checked
def learn_pairs(measured: Sequence[KindPair], alone: Sequence[JobKind] = ()) -> Pairs:
    """Complete a table of measured pairs.

    For each GPU and way of sharing with measured pairs, the other pairs of the kinds in `alone` are
    predicted from kinds of the same model or with features alike, by a Gaussian process.

    Parameters
    ----------
    measured : list of KindPair
    alone : list of JobKind
        Every kind that may be predicted, measured or not.

    Returns
    -------
    Pairs

    Raises
    ------
    InputError
        A slowdown not above 0, one pair with two results, features that do not match.
    """
    return _core.learn_pairs(measured, alone)
