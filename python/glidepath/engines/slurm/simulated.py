# SPDX-License-Identifier: Apache-2.0
"""A cluster in memory that behaves as Slurm does: for rehearsals and for tests of a `Pilot`.

Time passes only in `advance`. Jobs start first come, first served within their partition, write
their logs to real files, finish at their budget, are killed at their time limit, and upon SIGUSR1
save and requeue themselves where their `usr1` says so.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from glidepath.engines.slurm._model import Action, Cluster, ClusterJob, ClusterTier, Outcome

__all__ = ["SimulatedCluster", "SimulatedRun"]

REQUEUE_DELAY_S = 120.0  # as in Slurm
COMPLETING_S = 1.0


@dataclass
class SimulatedRun:
    """A training run with the truth about it, which no policy sees.

    Attributes
    ----------
    job : ClusterJob
        As it is submitted.
    loss : callable
        Value of the metric at a step.
    budget : int
        Step at which the script ends.
    steps_per_s : float
        On a tier of speed 1.
    usr1 : {"requeue", "save", "ignore", "die"}
        Response to SIGUSR1: save and requeue itself, save and train on, train on, or end.
    save_every : int
        Steps between the checkpoints that it writes by itself; 0 = none.
    load_s : float
        Seconds from each start to the first step; until then SIGUSR1 kills it.
    """

    job: ClusterJob
    loss: Callable[[int], float]
    budget: int
    steps_per_s: float = 1.0
    usr1: str = "requeue"
    save_every: int = 0
    load_s: float = 0.0
    step: int = 0
    saved: int = 0
    ended: str = ""  # DONE, TIMEOUT, CANCELLED, FAILED
    end_s: float = math.nan
    state_since_s: float = 0.0
    fraction: float = 0.0
    requeues: bool = False


class SimulatedCluster:
    """A `Scheduler` in memory.

    Parameters
    ----------
    tiers : sequence of ClusterTier
        Each is a partition, too.
    folder : path_like
        Where the logs of the jobs go.
    user : str
        The user whose jobs may be changed.
    now_s : float
        The time at the start.
    """

    def __init__(
        self,
        tiers: Sequence[ClusterTier],
        folder: str | os.PathLike[str],
        *,
        user: str = "me",
        now_s: float = 1.8e9,
    ) -> None:
        self.tiers = tuple(tiers)
        self.folder = Path(folder)
        self.user = user
        self.now_s = now_s
        self.runs: dict[str, SimulatedRun] = {}

    # ------------------------------------------------------------------------------------- people

    def submit(self, run: SimulatedRun) -> None:
        """Put a job in the queue now."""
        run.job = replace(
            run.job, state="PENDING", submit_s=self.now_s, eligible_s=self.now_s, start_s=0.0
        )
        self.runs[run.job.id] = run

    def log_of(self, run: SimulatedRun) -> Path:
        """Name the log that a job writes."""
        return self.folder / f"glidepath-{run.job.id}.csv"

    @property
    def live(self) -> list[SimulatedRun]:
        """Jobs in the queue."""
        return [run for run in self.runs.values() if not run.ended]

    # --------------------------------------------------------------------------------------- time

    def advance(self, seconds: float, tick_s: float = 1.0) -> None:
        """Let time pass."""
        end = self.now_s + seconds
        while self.now_s < end - 1e-9:
            step = min(tick_s, end - self.now_s)
            self.now_s += step
            for run in self.live:
                if run.job.state == "RUNNING":
                    self._train(run, step)
                elif (
                    run.job.state == "COMPLETING" and self.now_s - run.state_since_s >= COMPLETING_S
                ):
                    self._settle(run)
            self._start()

    def _train(self, run: SimulatedRun, seconds: float) -> None:
        tier = next(p for p in self.tiers if run.job.nodes[0] in p.nodes)
        run.job = replace(run.job, used_s=run.job.used_s + seconds)
        seconds = min(seconds, max(0.0, run.job.used_s - run.load_s))
        run.fraction += seconds * run.steps_per_s * tier.speed
        steps, run.fraction = int(run.fraction), run.fraction % 1
        if steps:
            self._write(run, steps, seconds)
        if run.step >= run.budget:
            self._end(run, "DONE")
        elif run.job.used_s >= run.job.limit_s:
            self._end(run, "TIMEOUT")

    def _write(self, run: SimulatedRun, steps: int, seconds: float) -> None:
        path = self.log_of(run)
        new = not path.exists()
        with path.open("a", encoding="utf-8") as log:
            if new:
                log.write("step,loss,seconds\n")
            for k in range(1, steps + 1):
                if run.step >= run.budget:
                    break
                run.step += 1
                at = self.now_s - seconds * (1 - k / steps)
                log.write(f"{run.step},{run.loss(run.step):.8g},{at:.3f}\n")
                if run.save_every and run.step % run.save_every == 0:
                    run.saved = run.step
        os.utime(path, (self.now_s, self.now_s))  # files live in the time of the cluster

    def _settle(self, run: SimulatedRun) -> None:
        if run.requeues:
            run.requeues = False
            run.step, run.fraction = run.saved, 0.0
            run.job = replace(
                run.job,
                state="PENDING",
                reason="BeginTime",
                nodes=(),
                used_s=0.0,
                start_s=0.0,
                submit_s=self.now_s,  # so Slurm says
                eligible_s=max(run.job.eligible_s, self.now_s + REQUEUE_DELAY_S),
                restarts=run.job.restarts + 1,
            )
        else:
            run.ended = "CANCELLED"

    def _start(self) -> None:
        busy = dict.fromkeys((tier.name for tier in self.tiers), 0)
        for run in self.live:
            for tier in self.tiers:
                if run.job.nodes and run.job.nodes[0] in tier.nodes:
                    busy[tier.name] += run.job.gpus
        waiting = [run for run in self.live if run.job.state == "PENDING"]
        blocked: set[str] = set()
        for run in sorted(waiting, key=lambda r: (r.job.nice, r.job.submit_s, r.job.id)):
            job = run.job
            found = [p for p in self.tiers if p.name == job.partition]
            if job.held or job.reason == "Dependency" or not found or found[0].name in blocked:
                continue
            tier = found[0]
            if job.eligible_s > self.now_s:
                run.job = replace(job, reason="BeginTime")
            elif busy[tier.name] + job.gpus > tier.gpus:
                run.job = replace(job, reason="Resources")
                blocked.add(tier.name)
            else:
                busy[tier.name] += job.gpus
                run.job = replace(
                    job, state="RUNNING", reason="", start_s=self.now_s, nodes=tier.nodes[:1]
                )

    def _end(self, run: SimulatedRun, how: str) -> None:
        run.ended, run.end_s = how, self.now_s
        run.job = replace(run.job, state=how, nodes=())

    # -------------------------------------------------------------------------------------- levers

    def update(self, job_id: str, **changes: object) -> None:
        """Change fields of a job, as `scontrol update` does."""
        run = self.runs[job_id]
        if "eligible_s" in changes and run.job.state == "PENDING" and not run.job.held:
            changes["reason"] = ""
        run.job = replace(run.job, **changes)  # type: ignore[arg-type]

    def cancel(self, job_id: str) -> None:
        """End a job."""
        run = self.runs[job_id]
        run.end_s = self.now_s
        if run.job.state == "PENDING":
            run.ended = "CANCELLED"
        else:
            self._leave(run, requeues=False)

    def requeue(self, job_id: str) -> None:
        """Put a running job back in the queue."""
        self._leave(self.runs[job_id], requeues=True)

    def signal(self, job_id: str) -> None:
        """Send SIGUSR1."""
        run = self.runs[job_id]
        if run.job.state != "RUNNING":
            return
        if run.job.used_s <= run.load_s:
            self._end(run, "FAILED")
            return
        if run.usr1 in ("requeue", "save"):
            run.saved = run.step
        if run.usr1 == "requeue":
            self._leave(run, requeues=True)
        elif run.usr1 == "die":
            self._end(run, "FAILED")

    def _leave(self, run: SimulatedRun, *, requeues: bool) -> None:
        run.requeues = requeues
        run.state_since_s = self.now_s
        run.job = replace(run.job, state="COMPLETING")

    # -------------------------------------------------------------------------------------- engine

    def read(self) -> Cluster:
        """Jobs and tiers now."""
        return Cluster(self.now_s, tuple(run.job for run in self.live), self.tiers)

    def reread(self, ids: Sequence[str]) -> dict[str, ClusterJob]:
        """Look again at some jobs."""
        return {run.job.id: run.job for run in self.live if run.job.id in ids}

    def may_touch(self, job: ClusterJob) -> bool:
        """Whether the job takes part and is the user's."""
        return job.user == self.user and job.request is not None

    def reader(self, job: ClusterJob) -> str:
        """Every log is ours."""
        return ""

    def commands(self, actions: Sequence[Action]) -> list[tuple[str, ...]]:
        """Give the actions as words."""
        return [(action.kind, action.job.id, action.tier) for action in actions]

    def send(self, actions: Sequence[Action]) -> list[Outcome]:
        """Check, then act."""
        outcomes = []
        for action in actions:
            now = self.reread([action.job.id]).get(action.job.id)
            if now is None:
                outcomes.append(Outcome(action, "gone"))
            elif not self.may_touch(now) or not now.same_situation(action.job):
                outcomes.append(Outcome(action, "changed", f"now {now.state}"))
            else:
                self._apply(action)
                outcomes.append(Outcome(action, "done"))
        return outcomes

    def _apply(self, action: Action) -> None:
        job = action.job.id
        if action.comment:
            self.update(job, comment=action.comment)
        match action.kind:
            case "stop":
                self.cancel(job)
            case "checkpoint":
                self.signal(job)
            case "requeue":
                self.requeue(job)
            case "place":
                self.update(job, partition=action.tier, eligible_s=self.now_s)
            case "defer":
                self.update(job, eligible_s=float(action.until_s))
            case "limit":
                self.update(job, limit_s=60.0 * action.limit_min)
            case "rank":
                self.update(job, nice=action.nice)
            case "annotate":
                pass
