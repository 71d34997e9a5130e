# SPDX-License-Identifier: Apache-2.0
"""When the waiting jobs of a cluster will start, by its own backfill."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from glidepath._core import Allocation, Job, Option, Snapshot, Tier
from glidepath._starts import start_times
from glidepath.engines.slurm._job_forecast import JobView
from glidepath.engines.slurm._model import Cluster, ClusterJob, ClusterTier

_SHARES = 32  # of a time limit that a job without a forecast may use, equally likely


def set_starts(cluster: Cluster, views: Sequence[JobView]) -> None:
    """Work out when each waiting job has GPUs: quantiles 0.1, 0.5, 0.9, in seconds from now.

    All jobs of the queue are played forward, also those that do not take part. What a job still
    needs is what its log says, else any share of its time limit, each as likely (Mu'alem and
    Feitelson 2001); the backfill counts on the limits. Nobody knows who will submit more.
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
        tier = cluster.tier_of(job)
        if tier is None or job.gpus < 1 or not _counts(job):
            continue
        if job.id in known and known[job.id].kept_waiting:
            continue
        number, gpus = len(jobs), job.gpus
        if job.state == "RUNNING":
            gpus = cluster.held_gpus(job)
            if not 0 < gpus <= free[tier.name]:
                continue
            free[tier.name] -= gpus
            running.append(Allocation(number, names[tier.name], gpus, job.start_s))
        ids.append(job.id)
        believed[number] = max(0.0, job.limit_s - job.used_s)
        jobs.append(
            Job(
                number,
                [Option(names[tier.name], gpus, 1.0)],
                submit_s=job.submit_s,
                remaining_steps=_seconds_left(job, tier, known),
                attained_s=job.used_s,
            )
        )
    tiers = [Tier(tier.name, tier.gpus, 1, gpu=tier.gpu) for tier in cluster.tiers]
    snapshot = Snapshot(tiers, jobs, running=running, now_s=cluster.now_s)
    times = start_times(snapshot, "slurm_backfill", believed=believed)
    for number, (low, middle, high) in zip(times.job, times.quantiles.T.tolist(), strict=True):
        view = known.get(ids[number])
        if view is not None:
            view.starts_s = (low, middle, high)


def _counts(job: ClusterJob) -> bool:
    """Whether a job holds GPUs, or gets some without anybody's help."""
    if job.state != "PENDING":
        return job.state == "RUNNING"
    return not job.held and not job.reason.startswith("Dependency")


def _seconds_left(job: ClusterJob, tier: ClusterTier, known: Mapping[str, JobView]) -> list[float]:
    view = known.get(job.id)
    most = max(0.0, job.limit_s - job.used_s)
    if view is not None and view.forecast.remaining and view.base_rate:
        pace = view.base_rate * tier.speed
        return [min(most, steps / pace) for steps in view.forecast.remaining]
    if math.isinf(most):
        return [most]
    return [most * (k + 0.5) / _SHARES for k in range(_SHARES)]
