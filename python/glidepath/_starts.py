# SPDX-License-Identifier: Apache-2.0
"""When each waiting job will start: a snapshot played forward under a policy, many times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath import _core, _words
from glidepath._answer import quantile_name
from glidepath._arguments import check_threads, checked
from glidepath._columns import values_of
from glidepath._core import InputError, Job, Snapshot
from glidepath._results import Result, require


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StartTimes(Result):
    """The law of each waiting job's start.

    Attributes
    ----------
    job : ndarray of int64, shape (n,)
        The waiting jobs, in the order of the snapshot.
    levels : ndarray, shape (k,)
    quantiles : ndarray, shape (k, n)
        Seconds from now until the job has GPUs; inf = not within the horizon.
    """

    job: NDArray[np.int64]
    levels: NDArray[np.float64]
    quantiles: NDArray[np.float64]

    def _summary(self) -> str:
        return f"{len(self.job)} waiting jobs"

    def _rows(self) -> Iterator[tuple[str, str]]:
        for job, column in zip(self.job, self.quantiles.T, strict=True):
            yield str(job), ", ".join(_words.duration(t) for t in column)

    def plot(self, ax: Any = None) -> Any:
        """Draw the median start of each waiting job, and the outermost quantiles; the Axes."""
        from glidepath._pictures import clusters

        return clusters.starts(self, ax=ax)

    def to_pandas(self) -> Any:
        """One row per job, one column per level, such as ``q10``."""
        return require("pandas").DataFrame(
            self.quantiles.T, index=self.job, columns=list(map(quantile_name, self.levels))
        )


_DEFAULTS = _core.StartOptions()


@checked
def start_times(
    snapshot: Snapshot,
    policy: str = "best_value",
    *,
    samples: int = _DEFAULTS.samples,
    seed: int = _DEFAULTS.seed,
    horizon_s: float | None = None,
    levels: ArrayLike | None = None,
    recent: Sequence[Job] = (),
    believed: Mapping[int, float] | None = None,
    threads: int = 0,
) -> StartTimes:
    """Say when each waiting job will start, as a law.

    Each sample draws what the running and the waiting jobs still need from
    `Job.remaining_steps`, and which jobs will come from `recent`, and plays the policy forward
    until every job that waits now has had GPUs.

    Under ``best_value`` jobs with options of several gangs are given GPUs as `plan` does it.

    Parameters
    ----------
    snapshot : Snapshot
        Each job with `remaining_steps` or, at least, `budget_steps`. One that no tier can hold,
        by its GPUs and memory, never starts. Under other policies than ``best_value`` one with
        options of several gangs takes the fastest that has room, in an order by the gang of its
        first option.
    policy : str
        ``fifo``, ``first_fit``, ``slurm_backfill``, ``sjf``, ``srtf``, ``srsf``, ``las``,
        ``gittins`` or ``best_value``.
    samples : int
        Stratified: of n samples each job has one in each n-th of its law. Ever fewer of them play
        on as fewer jobs wait, down to a sixteenth, and stand for the others.
    seed : int
        What is drawn for a job in a sample depends on (seed, samples, sample, job) alone.
    horizon_s : float, optional
        A job that has not started by then counts as inf; 30 days by default. So does one that
        still waits when 20 times as many jobs have come as there are in `snapshot` and `recent`.
    levels : float or array_like, shape (k,), optional
        Levels of the quantiles, increasing, between 0 and 1; 0.1, 0.5 and 0.9 by default.
    recent : sequence of Job
        The jobs submitted of late, whether they have ended or not, each with the law of its steps
        (of a job that ended: all its steps, and `steps_done` 0). New jobs keep arriving as these
        did since the first of them, at an uncertain pace and no more than can be served:
        stretches of the recent past are played again from random moments of it. Without it
        no job arrives.
    believed : mapping of int to float, optional
        Steps that the policy takes a job still to need, by `Job.id`, where that is not what its
        law says: from a time limit, or a point forecast. Where a policy looks at sizes.
    threads : int
        0 = all cores. Changes no byte of the result.

    Returns
    -------
    StartTimes

    Raises
    ------
    InputError
        A policy that is not played forward, a job about which nothing is known or that shares its
        GPUs, more GPUs held than a tier has, a recent job from the future, an option out of range.
        Also a job with a broken value, such as a weight of -1: `plan` leaves it out, but it may or
        may not hold others up.
    """
    check_threads(threads)
    given: dict[str, Any] = {
        "samples": samples,
        "seed": seed,
        "recent": list(recent),
        "believed": believed,
    }
    if horizon_s is not None:
        given["horizon_s"] = horizon_s
    if levels is not None:
        given["levels"] = values_of(levels, "levels")
        if not given["levels"].size:
            raise InputError("start_times: no levels")
    options = _core.StartOptions(**given)
    return StartTimes._from_record(_core.start_times(snapshot, policy, options, threads))
