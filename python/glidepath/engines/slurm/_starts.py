# SPDX-License-Identifier: Apache-2.0
"""When the waiting jobs of a cluster will start, by its own backfill."""

from __future__ import annotations

import math
from collections.abc import Sequence

from glidepath._core import Allocation, Job, Option, Snapshot, Tier
from glidepath._starts import start_times
from glidepath._verdicts import meaning
from glidepath.engines.slurm._job_forecast import JobView
from glidepath.engines.slurm._model import ARRAY_LIMIT, Cluster, ClusterJob, ClusterTier

_SHARES = 32  # of a time limit that a job without a forecast may use, equally likely


def set_starts(cluster: Cluster, views: Sequence[JobView], *, cancel: bool = True) -> None:
    """Work out when each waiting job has GPUs: quantiles 0.1, 0.5, 0.9, in seconds from now.

    All jobs of the queue are played forward, also those that do not take part. What a job still
    needs is what its log says, else any share of its time limit, each as likely (Mu'alem and
    Feitelson 2001); the backfill counts on the limits. A job that nobody ends at its target, by
    its own word or without `cancel`, runs on from there. Nobody knows who will submit more.
    """
    if not cluster.tiers:
        return
    known = {view.job.id: view for view in views}
    names = {tier.name: index for index, tier in enumerate(cluster.tiers)}
    jobs: list[Job] = []
    running: list[Allocation] = []
    ids: list[str] = []
    believed: dict[int, float] = {}
    free = {tier.name: tier.gpus for tier in cluster.tiers}
    for job in sorted(cluster.jobs, key=lambda job: (job.state != "RUNNING", job.submit_s)):
        tiers = _tiers_of(cluster, job)
        gpus = cluster.held_gpus(job) if job.state == "RUNNING" else job.gpus
        if not tiers or gpus < 1 or not _counts(cluster, job, known.get(job.id)):
            continue
        number = len(jobs)
        if job.state == "RUNNING":
            (tier,) = tiers
            if gpus > free[tier.name]:
                continue
            free[tier.name] -= gpus
            running.append(Allocation(number, names[tier.name], gpus, job.start_s))
        ids.append(job.id)
        believed[number] = max(0.0, job.limit_s - job.used_s)
        jobs.append(
            Job(
                number,
                [Option(names[tier.name], gpus, 1.0) for tier in tiers],
                submit_s=job.submit_s,
                remaining_steps=_seconds_left(job, tiers, known.get(job.id), cancel=cancel),
                attained_s=job.used_s,
            )
        )
    free_tiers = [Tier(tier.name, tier.gpus, 1, gpu=tier.gpu) for tier in cluster.tiers]
    snapshot = Snapshot(free_tiers, jobs, running=running, now_s=cluster.now_s)
    times = start_times(snapshot, "slurm_backfill", believed=believed)
    for number, (low, middle, high) in zip(times.job, times.quantiles.T.tolist(), strict=True):
        view = known.get(ids[number])
        if view is not None:
            view.starts_s = (low, middle, high)


def _tiers_of(cluster: Cluster, job: ClusterJob) -> list[ClusterTier]:
    """Find the tier on which a job runs, or those of its partitions on which it may start."""
    if job.state != "PENDING":
        here = cluster.tier_of(job)
        return [] if here is None else [here]
    listed = job.partition.split(",")
    found = [tier for tier in cluster.tiers if tier.name in listed]
    return [tier for tier in found if job.gpus <= tier.gpus] or found


def _counts(cluster: Cluster, job: ClusterJob, view: JobView | None) -> bool:
    """Whether a job holds GPUs, or gets some without anybody's help."""
    if job.state != "PENDING":
        return job.state == "RUNNING"
    if job.reason == ARRAY_LIMIT:
        return True  # it starts when another task of its array has ended
    if view is None:
        return not (job.kept_waiting(cluster.now_s) or job.barred)
    # Of a view the pilot has found out: a delay that it has set itself is none.
    return not view.kept_waiting


def _seconds_left(
    job: ClusterJob, tiers: Sequence[ClusterTier], view: JobView | None, *, cancel: bool
) -> list[float]:
    most = max(0.0, job.limit_s - job.used_s)
    remaining = () if view is None else _steps_left(view, cancel=cancel)
    if view is not None and remaining and view.base_rate:
        pace = view.base_rate * min(tier.speed for tier in tiers)
        return [min(most, steps / pace) for steps in remaining]
    if math.isinf(most):
        return [most]
    return [most * (k + 0.5) / _SHARES for k in range(_SHARES)]


def _steps_left(view: JobView, *, cancel: bool) -> Sequence[float]:
    """Give the likely steps that a job still makes; none where nothing is known."""
    ends = cancel and view.request.stop
    if ends or not meaning(view.forecast.verdict).is_reached:
        return view.forecast.remaining
    budget = view.request.budget
    return () if budget is None else (max(0.0, budget - view.forecast.last_step),)
