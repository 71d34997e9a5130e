# SPDX-License-Identifier: Apache-2.0
"""A cluster in memory that behaves as Slurm does: for rehearsals and for tests of a `Pilot`.

Time passes only in `advance`. Jobs start first come, first served within their partition, write
their logs to real files, finish at their budget, are killed at their time limit, and upon SIGUSR1
save and requeue themselves where their `usr1` says so.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from glidepath.engines.slurm._commands import commands_of
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
    loss : callable or None
        Value of the metric at a step, None where it logs nothing there; None = it has no log.
    budget : int
        Step at which the script ends.
    steps_per_s : float or mapping of str to float
        On a tier of speed 1, or on each tier by its name.
    usr1 : {"requeue", "save", "ignore", "die"}
        Response to SIGUSR1: save and requeue itself, save and train on, train on, or end.
    save_every : int
        Steps between the checkpoints that it writes by itself; 0 = none.
    load_s : float
        Seconds from each start to the first step; until then SIGUSR1 kills it.
    spans : list of (str, float, float)
        Tier, start and end of each stretch with GPUs; the end of the last may be inf, not yet.
    """

    job: ClusterJob
    loss: Callable[[int], float | None] | None
    budget: int
    steps_per_s: float | Mapping[str, float] = 1.0
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
    spans: list[tuple[str, float, float]] = field(default_factory=list)

    def pace(self, tier: ClusterTier) -> float:
        """Steps per second on a tier."""
        if isinstance(self.steps_per_s, Mapping):
            return self.steps_per_s[tier.name]
        return self.steps_per_s * tier.speed


class SimulatedCluster:
    """A `Scheduler` in memory.

    Parameters
    ----------
    tiers : sequence of ClusterTier
        Each is a partition, too.
    folder : path_like
        Where the logs of the jobs go.
    user : str or None
        The user whose jobs may be changed; None = those of all users.
    now_s : float
        The time at the start.
    """

    def __init__(
        self,
        tiers: Sequence[ClusterTier],
        folder: str | os.PathLike[str],
        *,
        user: str | None = "me",
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
        run.fraction += seconds * run.pace(tier)
        steps, run.fraction = int(run.fraction), run.fraction % 1
        loss = run.loss
        if loss is None:
            run.step += steps
        elif steps:
            self._write(run, loss, steps, seconds)
        if run.step >= run.budget:
            self._end(run, "DONE")
        elif run.job.used_s >= run.job.limit_s:
            self._end(run, "TIMEOUT")

    def _write(
        self, run: SimulatedRun, loss: Callable[[int], float | None], steps: int, seconds: float
    ) -> None:
        rows = []
        for k in range(1, min(steps, run.budget - run.step) + 1):
            run.step += 1
            at = self.now_s - seconds * (1 - k / steps)
            value = loss(run.step)
            if value is not None:
                rows.append(f"{run.step},{value:.8g},{at:.3f}\n")
            if run.save_every and run.step % run.save_every == 0:
                run.saved = run.step
        if not rows:
            return
        path = self.log_of(run)
        if not path.exists():
            rows.insert(0, "step,loss,seconds\n")
        with path.open("a", encoding="utf-8") as log:
            log.writelines(rows)
        os.utime(path, (self.now_s, self.now_s))  # files live in the time of the cluster

    def _settle(self, run: SimulatedRun) -> None:
        self._free(run)
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
                run.spans.append((tier.name, self.now_s, math.inf))

    def _free(self, run: SimulatedRun) -> None:
        tier, start_s, _ = run.spans[-1]
        run.spans[-1] = tier, start_s, self.now_s

    def _end(self, run: SimulatedRun, how: str) -> None:
        self._free(run)
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
        return self.user in (None, job.user) and job.request is not None

    def reader(self, job: ClusterJob) -> str:
        """Every log is ours."""
        return ""

    def commands(self, actions: Sequence[Action]) -> list[tuple[str, ...]]:
        """Give the commands that Slurm would be sent."""
        return commands_of(actions, set(), self.now_s)

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
