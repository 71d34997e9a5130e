# SPDX-License-Identifier: Apache-2.0
"""A workload played to its end under the pilot: what it would do, before it does.

The pilot is the one that steers real clusters, its loop and its decision log included. Simulated
are the cluster, the jobs with their logs, and the time between two rounds.
"""

from __future__ import annotations

import math
import os
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np

from glidepath._core import InputError, IoError, Tier
from glidepath._hardware import JOULES_PER_KWH
from glidepath._verdicts import meaning
from glidepath._workload import Workload
from glidepath.engines.slurm._model import ClusterJob, ClusterTier
from glidepath.engines.slurm._options import PilotOptions
from glidepath.engines.slurm._pilot import Pilot, Round
from glidepath.engines.slurm.simulated import SimulatedCluster, SimulatedRun

__all__ = ["Rehearsal", "RehearsalEvent", "rehearse"]

_TICK_S = 5.0  # how finely time passes between two rounds
_BEGIN_S = 1.8e9  # the time of the first submission

EventKind = Literal["start", "suspend", "requeue", "cancel", "end"]
# What an action of the pilot is called here; the others touch no GPU.
_WORDS: dict[str, EventKind] = {"stop": "cancel", "checkpoint": "suspend", "requeue": "requeue"}


@dataclass(frozen=True, slots=True)
class RehearsalEvent:
    """Something that happened to a job.

    Attributes
    ----------
    at_s : float
        Seconds since the first submission.
    job : str
    kind : {"start", "suspend", "requeue", "cancel", "end"}
        It got GPUs; was signalled to save and give them back; was sent back to the queue; was ended
        by the pilot; ended by itself.
    tier : str
        Where it starts or was; empty for a job that waits.
    reason : str
        Why, in the words of the pilot.
    """

    at_s: float
    job: str
    kind: EventKind
    tier: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a pilot did with a workload.

    Attributes
    ----------
    events : tuple of RehearsalEvent
        In order of time.
    rounds : int
        How often the pilot decided.
    metrics : dict
        Metrics of `glidepath.Simulation` by name: seconds, kWh, counts; ``outcomes`` counts how
        the jobs ended.
    """

    events: tuple[RehearsalEvent, ...]
    rounds: int
    metrics: dict[str, Any]


class _Clock(threading.Event):
    """The wait between two rounds: it passes in the cluster, and not on the wall."""

    def __init__(self, pass_time: Callable[[float], bool]) -> None:
        super().__init__()
        self._pass_time = pass_time

    def wait(self, timeout: float | None = None) -> bool:
        if self._pass_time(timeout or 0.0):
            self.set()
        return self.is_set()


def rehearse(
    workload: Workload,
    options: PilotOptions | None = None,
    *,
    checkpoint: Literal["usr1", "none"] = "usr1",
    log: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Rehearsal:
    """Play a workload under the pilot that steers Slurm.

    Parameters
    ----------
    workload : Workload
        Each tier is a partition, each job is submitted to the first one on which it can run. Jobs
        with a curve log it and say target and budget; the others are played without a log.
    options : PilotOptions, optional
        Those of the pilot, which always acts. Each start of a job takes ``restart_s``.
    checkpoint : {"usr1", "none"}
        What the comments of the jobs say: they may be moved while they run, or not.
    log : path, optional
        Where the decision log is kept, for ``glidepath slurm why``; by default nowhere.
    progress : callable, optional
        Called with (jobs ended, jobs) after each round.

    Returns
    -------
    Rehearsal

    Raises
    ------
    InputError
        A job that fits on no tier, a checkpoint that is neither, a log that exists.
    IoError
        A decision log that cannot be written.
    """
    if checkpoint not in ("usr1", "none"):
        raise InputError(f"checkpoint is {checkpoint!r}, expected 'usr1' or 'none'")
    if log is not None and Path(log).exists():
        raise InputError(f"{os.fspath(log)}: exists; a rehearsal begins a decision log of its own")
    settings = replace(options or PilotOptions(), mode="act")
    with TemporaryDirectory(prefix="glidepath-rehearsal-") as folder:
        stage = _Stage(workload, settings, checkpoint, Path(folder), progress)
        stage.pass_time(0.0)
        pilot = Pilot(
            stage.cluster,
            log or Path(folder) / "decisions.db",
            settings,
            clock=lambda: stage.cluster.now_s,
        )
        pilot.run(stop=_Clock(stage.pass_time), on_round=stage.note)
        return Rehearsal(tuple(stage.happened()), stage.rounds, stage.metrics())


class _Stage:
    """The cluster, the jobs that are still to come, and what was seen."""

    def __init__(
        self,
        workload: Workload,
        settings: PilotOptions,
        checkpoint: str,
        folder: Path,
        progress: Callable[[int, int], object] | None,
    ) -> None:
        self.workload, self.columns = workload, workload.jobs
        tiers = _cluster_tiers(workload)
        self.cluster = SimulatedCluster(tiers, folder, user=None, now_s=_BEGIN_S)
        self.begin_s = float(np.min(self.columns["submit_s"]))
        order = np.argsort(self.columns["submit_s"], kind="stable")
        self.coming = [
            (
                _BEGIN_S + float(self.columns["submit_s"][i]) - self.begin_s,
                _run(workload, self.columns, int(i), tiers, checkpoint, settings.restart_s, folder),
            )
            for i in order
        ]
        self.jobs = len(order)
        self.rounds = 0
        self.acted: list[RehearsalEvent] = []
        self.placed: dict[str, list[tuple[float, str]]] = {}
        self.reached: set[str] = set()
        self.progress = progress

    def pass_time(self, seconds: float) -> bool:
        """Let time pass until the next round, with the submissions on the way; True at the end."""
        cluster, until = self.cluster, self.cluster.now_s + seconds
        if not cluster.live and self.coming:
            until = max(until, self.coming[0][0])  # nothing happens before
        while True:
            while self.coming and self.coming[0][0] <= cluster.now_s:
                cluster.submit(self.coming.pop(0)[1])
            if not cluster.live and self.coming:
                cluster.now_s = min(until, self.coming[0][0])
            if cluster.now_s >= until:
                break
            stop = min([until, *(at for at, _ in self.coming[:1])])
            cluster.advance(stop - cluster.now_s, _TICK_S)
        return not cluster.live and not self.coming

    def note(self, result: Round) -> None:
        """Keep what a round did."""
        if result.trouble:
            raise IoError(f"the rehearsal ended early: {result.trouble}")
        self.rounds += 1
        views = {view.job.id: view for view in result.views}
        for outcome in result.outcomes:
            action = outcome.action
            job, view = action.job.id, views[action.job.id]
            if outcome.status != "done":
                continue
            if action.kind == "place":
                self.placed.setdefault(job, []).append((result.at_s, action.why))
            elif action.kind in _WORDS:
                if action.kind == "stop" and meaning(view.forecast.verdict).is_reached:
                    self.reached.add(job)
                tier = "" if action.job.state == "PENDING" else view.tier
                self._add(result.at_s, job, _WORDS[action.kind], tier, action.why)
        if self.progress is not None:
            self.progress(sum(bool(run.ended) for run in self.cluster.runs.values()), self.jobs)

    def _add(self, at_s: float, job: str, kind: EventKind, tier: str, reason: str) -> None:
        self.acted.append(RehearsalEvent(at_s - _BEGIN_S, job, kind, tier, reason))

    def happened(self) -> list[RehearsalEvent]:
        """Put what the pilot did and what Slurm and the jobs did in order of time."""
        for job, run in self.cluster.runs.items():
            before_s = -math.inf
            for tier, start_s, end_s in run.spans:
                why = [why for at, why in self.placed.get(job, ()) if before_s <= at <= start_s]
                self._add(start_s, job, "start", tier, why[-1] if why else "is next in its queue")
                before_s = end_s
            if run.ended != "CANCELLED":
                said = "its budget is spent" if run.ended == "DONE" else run.ended.lower()
                self._add(run.end_s, job, "end", run.spans[-1][0], said)
        return sorted(self.acted, key=lambda event: event.at_s)

    def metrics(self) -> dict[str, Any]:
        """Work out what `glidepath.simulate` says of a policy, from who held which GPUs when.

        The simulator adds these numbers up as it moves its own jobs. Here the pilot and a played
        Slurm move them, which no policy of the simulator can: so they are counted from the spans.
        """
        workload, columns = self.workload, self.columns
        runs = [self.cluster.runs[str(job)] for job in columns["job"]]
        held_s = np.array([sum(end - start for _, start, end in run.spans) for run in runs])
        submit_s = columns["submit_s"] - self.begin_s
        end_s = np.array([run.end_s - _BEGIN_S for run in runs])
        jct_s = end_s - submit_s
        wait_s = np.maximum(0.0, jct_s - held_s)
        makespan_s = float(end_s.max() - submit_s.min())
        users = len(set(columns["user"])) if "user" in columns else 1
        tiers = {shown.name: t for shown, t in zip(self.cluster.tiers, workload.tiers, strict=True)}
        use = columns.get("utilization", np.ones(len(runs)))
        joules = makespan_s * sum(tier.gpus * tier.idle_watts for tier in workload.tiers)
        for run, share in zip(runs, use, strict=True):
            for name, start_s, stop_s in run.spans:
                extra = share * (tiers[name].busy_watts - tiers[name].idle_watts)
                joules += run.job.gpus * (stop_s - start_s) * extra
        return {
            "policy": "pilot",
            "workload": workload.name,
            "mean_jct_s": float(jct_s.mean()),
            "p95_jct_s": float(np.percentile(jct_s, 95)),
            "mean_wait_s": float(wait_s.mean()),
            "total_wait_s": float(wait_s.sum()),
            "mean_wait_per_user_s": float(wait_s.sum()) / users,
            "makespan_s": makespan_s,
            "preemptions": sum(max(0, len(run.spans) - 1) for run in runs),
            "gpu_seconds": float(held_s @ columns["gpus"]),
            "energy_kwh": float(joules) / JOULES_PER_KWH,
            "outcomes": dict(sorted(Counter(self._outcome(run) for run in runs).items())),
        }

    def _outcome(self, run: SimulatedRun) -> str:
        if run.ended == "CANCELLED":
            return "target" if run.job.id in self.reached else "never"
        return "finished" if run.ended == "DONE" else "unfinished"


# ---- a workload as Slurm sees it


def _cluster_tiers(workload: Workload) -> list[ClusterTier]:
    """Make a partition of each tier, with the one speed by which Slurm's pilot knows it."""
    speeds = _relative_speeds(workload)
    return [
        ClusterTier(
            _word(tier.name), tier.gpu, (f"{_word(tier.name)}0",), tier.gpus, tier.gpus_per_node,
            speed,
        )
        for tier, speed in zip(workload.tiers, speeds, strict=True)
    ]  # fmt: skip


def _word(name: str) -> str:
    """Write a name so that a comment can list it."""
    return re.sub(r"[\s,=|]+", "-", name)


def _relative_speeds(workload: Workload) -> list[float]:
    """Give each tier's median over jobs of their pace there by that on their fastest tier."""
    rates = workload.jobs.get("steps_per_s")
    if rates is None:
        return [1.0] * len(workload.tiers)
    shares = rates / rates.max(axis=1, keepdims=True)
    return [float(np.median(share[share > 0])) if (share > 0).any() else 1.0 for share in shares.T]


def _run(
    workload: Workload,
    columns: dict[str, Any],
    i: int,
    tiers: list[ClusterTier],
    checkpoint: str,
    restart_s: float,
    folder: Path,
) -> SimulatedRun:
    """Make the job of a row, and the truth about it."""

    def of(key: str, default: float) -> float:
        return float(columns[key][i]) if key in columns else default

    name, gpus = str(columns["job"][i]), int(of("gpus", 1))
    rates = columns["steps_per_s"][i] if "steps_per_s" in columns else np.ones(len(tiers))
    paces = {
        shown.name: float(rate)
        for shown, tier, rate in zip(tiers, workload.tiers, rates, strict=True)
        if rate > 0 and gpus <= tier.gpus and _fits(tier, of("memory_gb", 0.0))
    }
    if not paces:
        raise InputError(f"job {name} fits on no tier")
    duration_s, truth = of("duration_s", 0.0), int(of("truth", -1))
    words = [f"glidepath checkpoint={checkpoint} tiers={','.join(paces)}"]
    loss = None
    if truth >= 0:
        words.append(f"target={of('target_loss', 0.0)!r} budget={of('budget_steps', 0.0)!r}")
        curve = workload.curves[truth]
        loss = dict(zip(curve.step.astype(int).tolist(), curve.loss.tolist(), strict=True)).get
    if of("weight", 1.0) != 1.0:
        words.append(f"weight={of('weight', 1.0)!r}")
    user = str(columns["user"][i]) if "user" in columns else ""
    job = ClusterJob(
        name, user, "PENDING", next(iter(paces)), gpus=gpus, comment=" ".join(words),
        workdir=str(folder),
    )  # fmt: skip
    budget = math.ceil(duration_s if duration_s > 0 else of("budget_steps", 0.0))
    return SimulatedRun(job, loss, budget, paces, load_s=restart_s)


def _fits(tier: Tier, memory_gb: float) -> bool:
    return tier.memory_gb <= 0 or memory_gb <= tier.memory_gb
