# SPDX-License-Identifier: Apache-2.0
"""Slurm's commands over a simulated cluster: the text that a real 22.05 answers, without one.

What it prints was compared with a real slurmctld's output (tests/python/test_slurm_text.py holds a
recording); what it accepts and refuses is what the real one accepts and refuses of a plain user.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from glidepath.engines.slurm import Answer, ClusterError, ClusterJob, ClusterTier
from glidepath.engines.slurm._text import NODE_FIELDS, QUEUE_FIELDS, format_of
from glidepath.engines.slurm.simulated import SimulatedCluster, SimulatedRun


def _clock(seconds: float) -> str:
    if math.isinf(seconds):
        return "UNLIMITED"
    days, rest = divmod(int(seconds), 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock.removeprefix("00:")


def queue_text(jobs: Sequence[ClusterJob]) -> str:
    """What squeue prints for these jobs."""
    lines = []
    for job in jobs:
        gres = f"gres:gpu:{job.gpu_type}:" if job.gpu_type else "gres:gpu:"
        fields = {
            "JobArrayID": job.id,
            "JobID": job.number or job.id.partition("_")[0],
            "UserName": job.user,
            "State": job.state,
            "Partition": job.partition,
            "Reason": job.reason or "None",
            "PriorityLong": str(job.priority),
            "SubmitTime": str(int(job.submit_s)),
            "StartTime": str(int(job.start_s)) if job.start_s else "N/A",
            "EligibleTime": str(int(job.eligible_s)),
            "TimeLimit": _clock(job.limit_s),
            "TimeUsed": _clock(job.used_s),
            "Nice": str(job.nice),
            "NumNodes": "1",
            "NodeList": ",".join(job.nodes),
            "tres-per-node": f"{gres}{job.gpus}" if job.gpus else "N/A",
            "tres-per-job": "N/A",
            "tres-per-socket": "N/A",
            "tres-per-task": "N/A",
            "NumTasks": "1",
            "tres-alloc": "cpu=1,mem=1G,node=1,billing=1",
            "RestartCnt": str(job.restarts),
            "Comment": job.comment or "(null)",
            "Name": job.name or "train",
            "WorkDir": job.workdir,
            "STDOUT": job.stdout or "/dev/null",
        }
        lines.append("".join(f"{fields[name]}\x1f" for name in QUEUE_FIELDS) + "\x1e\n")
    return "".join(lines)


def nodes_text(tiers: Sequence[ClusterTier]) -> str:
    """What sinfo prints for these tiers."""
    lines = []
    for tier in tiers:
        for node in tier.nodes:
            gres = f"gpu:{tier.gpu}:{tier.gpus // len(tier.nodes)}"
            fields = dict(zip(NODE_FIELDS, (node, tier.name, "mixed", gres, "up"), strict=True))
            lines.append("".join(f"{fields[name]}\x1f" for name in NODE_FIELDS) + "\x1e\n")
    return "".join(lines)


class SlurmStub:
    """A `Runner`. `before` sees each command first and may change the cluster, or raise."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self.before: Callable[[Sequence[str]], None] = lambda _: None
        self.after: Callable[[Sequence[str]], None] = lambda _: None
        self.sent: list[tuple[str, ...]] = []  # commands that change something
        self.touched: list[tuple[ClusterJob, tuple[str, ...]]] = []

    def __call__(self, command: Sequence[str], timeout_s: float) -> Answer:
        self.before(command)
        answer = self._answer(tuple(command))
        self.after(command)
        return answer

    def _answer(self, command: tuple[str, ...]) -> Answer:
        match command:
            case ("sinfo", "-h", "-N", "-O", what):
                assert what == format_of(NODE_FIELDS)
                return Answer(0, nodes_text(self.cluster.tiers))
            case ("squeue", "-h", "-r", "-O", what):
                assert what == format_of(QUEUE_FIELDS)
                return Answer(0, queue_text([run.job for run in self.cluster.live]))
            case ("squeue", "-h", "-r", "-O", what, "-j", ids):
                assert what == format_of(QUEUE_FIELDS)
                wanted = ids.split(",")
                found = [run.job for run in self.cluster.live if run.job.id in wanted]
                if not found and len(wanted) == 1:
                    return Answer(1, "", "slurm_load_jobs error: Invalid job id specified")
                return Answer(0, queue_text(found))
            case ("squeue", "-h", "-s", "-o", "%i", "-j", ids):
                return Answer(0, "".join(f"{job}.batch\n" for job in ids.split(",")))
        self.sent.append(command)
        match command:
            case ("scancel", "--signal=USR1", "--batch", *ids):
                return self._each(command, ids, lambda run: self.cluster.signal(run.job.id))
            case ("scancel", *ids):
                return self._each(command, ids, lambda run: self.cluster.cancel(run.job.id))
            case ("scontrol", "requeue", ids):
                return self._each(command, ids.split(","), self._requeue)
            case ("scontrol", "update", ids, *changes):
                listed = ids.removeprefix("JobId=").split(",")
                return self._each(command, listed, lambda run: self._update(run, changes))
        raise AssertionError(f"no such command: {command}")

    def _each(
        self,
        command: tuple[str, ...],
        ids: Sequence[str],
        act: Callable[[SimulatedRun], str | None],
    ) -> Answer:
        errors = []
        for job in ids:
            run = self.cluster.runs.get(job)
            if run is None or run.ended:
                errors.append(f"Invalid job id specified for job {job}")
                continue
            self.touched.append((run.job, command))
            said = act(run)
            if said:
                errors.append(f"{said} for job {job}")
        return Answer(1 if errors else 0, "", "\n".join(errors))

    def _requeue(self, run: SimulatedRun) -> str | None:
        if run.job.state != "RUNNING":
            return "Job is pending execution"
        self.cluster.requeue(run.job.id)
        return None

    def _update(self, run: SimulatedRun, changes: Sequence[str]) -> str | None:
        job = run.job
        for change in changes:
            key, _, value = change.partition("=")
            pending = job.state == "PENDING"
            match key:
                case "Comment":
                    self.cluster.update(job.id, comment=value)
                case "Partition" if pending:
                    if value not in {tier.name for tier in self.cluster.tiers}:
                        return "Invalid partition name specified"
                    self.cluster.update(job.id, partition=value)
                case "StartTime" if pending:
                    now, plus, seconds = value.partition("+")
                    assert now == "now"
                    at = int(self.cluster.now_s) + int(seconds) if plus else self.cluster.now_s
                    self.cluster.update(job.id, eligible_s=float(at))
                case "TimeLimit":
                    if not pending and 60 * int(value) > job.limit_s:
                        return "Access/permission denied"
                    self.cluster.update(job.id, limit_s=60.0 * int(value))
                case "Nice":
                    if int(value) < job.nice:
                        return "Access/permission denied"
                    self.cluster.update(job.id, nice=int(value))
                case _:
                    return "Job is no longer pending execution"
        return None


def down(command: Sequence[str]) -> None:
    """Stand for a `before` of a controller that is away."""
    raise ClusterError(f"{command[0]}: Unable to contact slurm controller (connect failure)")
