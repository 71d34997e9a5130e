# SPDX-License-Identifier: Apache-2.0
"""Decides the actions of one round from what was read, forecast and planned."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from glidepath._answer import SHOWN_LEVELS
from glidepath._core import Allocation, Job, Option, Snapshot, Tier
from glidepath._plan import Plan, plan
from glidepath._verdicts import meaning
from glidepath.engines.slurm._comment import FAR_S, JobRequest, Move, gist, note_of, with_note
from glidepath.engines.slurm._history import History
from glidepath.engines.slurm._job_forecast import AHEAD_LOG, OLDER_LOG, JobView
from glidepath.engines.slurm._model import (
    BEGINS_LATER,
    OF_A_PARTITION,
    Action,
    ActionKind,
    Cluster,
    ClusterJob,
    ClusterTier,
)
from glidepath.engines.slurm._options import PilotOptions

_MOVES_PER_HOUR = 2  # of one job
_COMES_UP_WITHIN_S = 10  # a command of Slurm, on a busy machine
_NOTES_PER_ROUND = 50  # each takes a command of its own
_LIMIT_GRID_MIN = (1, 2, 3, 5, 10, 15, 20, 30, 45, *(60 * h for h in (1, 1.5, 2, 3, 4, 6, 8, 12)))


class ActionPlanner:
    """Decides the actions of one round; each round has a planner of its own."""

    def __init__(
        self,
        cluster: Cluster,
        views: Sequence[JobView],
        history: History,
        options: PilotOptions,
    ) -> None:
        self.cluster = cluster
        self.views = views
        self.history = history
        self.options = options
        self.now_s = cluster.now_s
        self.tiers = {tier.name: tier for tier in cluster.tiers}
        self.free = {tier.name: tier.gpus for tier in cluster.tiers}
        self.moves_underway = 0
        self.actions: list[Action] = []

    def decide(self) -> list[Action]:
        """List at most one action a job, so that their order does not matter."""
        ours = {view.job.id for view in self.views}
        for job in self.cluster.jobs:  # GPUs that are not ours to plan with
            if job.id not in ours:
                self._occupy(job)
        live = [view for view in self.views if not self._settle(view)]
        self._plan(live)
        for view in self.views:
            self._add_trouble_of_log(view)
        self._limits()
        self._notes()
        return self._within_rate()

    # ---- one job at a time

    def _add_trouble_of_log(self, view: JobView) -> None:
        """Say beside what happens to a job why there is no forecast of it."""
        problem = view.forecast.problem
        expected = view.job.state != "PENDING" or problem in (OLDER_LOG, AHEAD_LOG)
        if expected and problem not in ("", view.request.problem):
            view.reason = "; ".join(filter(None, (view.reason, problem)))

    def _occupy(self, job: ClusterJob, tier: ClusterTier | None = None) -> None:
        if tier is not None:
            self.free[tier.name] -= job.gpus
            return
        here = self.cluster.tier_of(job) if job.state != "PENDING" else None
        if here is not None:
            self.free[here.name] -= self.cluster.held_gpus(job)

    def _settle(self, view: JobView) -> bool:
        """Settle a job that leaves no choice; False for a job to plan with."""
        job, request, forecast = view.job, view.request, view.forecast
        move = job.move
        may_end = self._may_end(request)
        wanted = self._wanted(job)
        if wanted:
            view.kept_waiting = True
            return self._leave(view, wanted)
        if move is not None and not self._arrived(job, move) and (may_end or move.to != "end"):
            self._go_on(view, move)
            return True
        if request.problem:
            return self._leave(view, request.problem)
        if job.state not in ("PENDING", "RUNNING"):
            return self._leave(view, f"is {job.state.lower()}")
        if job.gpus == 0:
            asks = "GPUs by socket" if job.gpus_by_socket else "no GPU"
            return self._leave(view, f"asks for {'parts of GPUs' if job.gpus_shared else asks}")
        if forecast.stop and may_end:
            waits = meaning(forecast.verdict).is_reached and job.state == "RUNNING"
            if waits and not self._listens(view):
                return self._leave(view, f"{forecast.reason}; saves once it logs a step")
            self._end(view, forecast.reason)
            return True
        if meaning(forecast.verdict).is_settled:
            return self._leave(view, f"{forecast.reason}; gets no other GPU")
        if job.barred:
            return self._bar(view)
        sent_back = self.history.sent_back.get(job.id)
        if sent_back:
            return self._leave(view, f"stays: Slurm did not start it elsewhere ({sent_back})")
        if job.state == "RUNNING":
            return self._settle_running(view)
        if not self._named_tiers(view):
            listed = self._submitted_to(job).split(",")
            other = next(name for name in listed if name not in self.tiers)
            return self._leave(view, f"names no tiers=, and {other} is not one: left as it is")
        return False

    def _may_end(self, request: JobRequest) -> bool:
        """Whether a job may be ended before its budget, be it by a time limit."""
        return self.options.cancel and request.stop

    def _bar(self, view: JobView) -> bool:
        """Leave a job alone that Slurm starts for no GPU, but not where it came by our doing."""
        job, home = view.job, self._submitted_to(view.job)
        view.kept_waiting = True
        self._leave(view, f"Slurm does not start it: {job.barred}")
        if home != job.partition and job.barred.startswith(OF_A_PARTITION):
            view.reason = f"goes back to {home}: Slurm does not start it here ({job.barred})"
            self._do("place", view, view.reason, tier=home)
        return True

    def _wanted(self, job: ClusterJob) -> str:
        """Why somebody wants a job to wait; empty where nobody does. Such a job is never touched.

        That also goes for a job on its way between tiers: whoever holds it has the last word.
        """
        why = job.kept_waiting(self.now_s)
        return "" if why == BEGINS_LATER and self._deferred(job) else why

    def _settle_running(self, view: JobView) -> bool:
        job = view.job
        down = self.cluster.down_node(job)
        if down:
            return self._leave(view, f"runs on: its node {down} takes no new job")
        if view.request.checkpoint == "none":
            return self._leave(view, "runs on: it writes no checkpoint")
        if self.history.moves[job.id] >= _MOVES_PER_HOUR:
            return self._leave(view, f"runs on: moved {self.history.moves[job.id]} times this hour")
        if view.tier not in {tier.name for tier in self._tiers_of(view)}:
            return self._leave(view, "runs on, outside its tiers")
        if not self._listens(view):
            return self._leave(view, "runs on: no step logged since it started")
        return False

    def _listens(self, view: JobView) -> bool:
        """Whether the job handles SIGUSR1 by now: before that, the signal kills it.

        A step logged since its start proves it; without a log it has the time that others get to
        save.
        """
        job, logged_s = view.job, view.forecast.logged_s
        if view.request.checkpoint != "usr1":
            return True
        if logged_s > 0:
            return logged_s > job.start_s + 1  # squeue cuts off the fraction of the start
        return self.now_s - job.start_s > self.options.grace_s

    def _leave(self, view: JobView, reason: str) -> bool:
        view.reason = reason
        if view.job.state != "PENDING":
            view.planned = view.tier
        self._occupy(view.job)
        return True

    def _arrived(self, job: ClusterJob, move: Move) -> bool:
        """Whether the job runs again since the order to move."""
        return job.state == "RUNNING" and job.start_s > move.since_s + 1

    def _go_on(self, view: JobView, move: Move) -> None:
        """Take the next step of a move."""
        job = view.job
        self.moves_underway += 1
        self._occupy(job)
        to = self.tiers.get(move.to)
        view.planned = to.name if to else ""
        if to is not None:
            self._occupy(job, to)
        waited = self.now_s - move.since_s
        if move.to == "end":
            view.reason = "reached its target, is writing its last checkpoint"
            if job.state == "PENDING" or (
                job.state == "RUNNING" and waited >= self.options.grace_s
            ):
                self._do("stop", view, "reached its target and had time to save")
        elif job.state == "PENDING":
            view.reason = f"restarts on {view.planned or 'the next free tier'}"
            comment = with_note(job.comment, view.reason)
            if to is None:
                self._do("annotate", view, "is back in the queue", comment=comment)
            else:
                self._do("place", view, view.reason, tier=to.name, comment=comment)
        elif job.state == "RUNNING" and waited >= self.options.grace_s:
            view.reason = f"is moved to {view.planned or 'the queue'}"
            self._do("requeue", view, f"had {waited:.0f} s to write a checkpoint")
        else:
            view.reason = f"is on its way to {view.planned or 'the queue'}"

    def _deferred(self, job: ClusterJob) -> bool:
        """Whether the start time that the job waits for was set by us.

        Slurm counts the seconds of a deferral from when the command has come up.
        """
        deferred = self.history.deferred.get(job.id)
        until = float(((deferred and deferred.detail) or {}).get("until", 0))
        return until - 2 < job.eligible_s < until + _COMES_UP_WITHIN_S

    def _end(self, view: JobView, why: str) -> None:
        job, request = view.job, view.request
        view.reason = why
        self._occupy(job)  # until it is gone
        saves = request.checkpoint == "usr1" and meaning(view.forecast.verdict).is_reached
        if job.state == "RUNNING" and saves:
            self._depart(view, "end", why)
        else:
            self._do("stop", view, why)

    def _depart(self, view: JobView, to: str, why: str) -> None:
        job, request = view.job, view.request
        note = f"moving={to}@{int(self.now_s)} {why}"
        kind: Literal["checkpoint", "requeue"] = (
            "checkpoint" if request.checkpoint == "usr1" else "requeue"
        )
        self._do(kind, view, why, tier=to, comment=with_note(job.comment, note))
        self.moves_underway += 1

    def _do(self, kind: ActionKind, view: JobView, why: str, **more: Any) -> None:
        if kind == "place":
            more["submitted_to"] = self._submitted_to(view.job)
        self.actions.append(Action(kind, view.job, why, **more))

    # ---- all jobs together

    def _tiers_of(self, view: JobView) -> list[ClusterTier]:
        """Find the tiers on which a job may run and which are large enough."""
        job, named = view.job, self._named_tiers(view)
        here = self.tiers.get(view.tier) if job.state == "RUNNING" else None
        return [
            tier
            for tier in self.cluster.tiers
            if tier.name in named and job.gpus <= tier.gpus and job.gpu_type in ("", tier.gpu)
            # A running job is not taken to a tier that may be slower.
            if here is None or here.comparable(tier)
        ]

    def _named_tiers(self, view: JobView) -> Sequence[str]:
        """Name the partitions between which a job may be moved: none where one is no tier."""
        if view.request.tiers:
            return view.request.tiers
        submitted_to = self._submitted_to(view.job).split(",")
        return submitted_to if self.tiers.keys() >= set(submitted_to) else ()

    def _submitted_to(self, job: ClusterJob) -> str:
        """List the partitions among which a job may start: of these we leave it one at a time."""
        return self.history.submitted_to.get(job.id, job.partition)

    def _keep(self, live: Sequence[JobView]) -> None:
        """Leave running jobs the GPUs that they hold, whatever else seems to be on their tiers."""
        held: Counter[str] = Counter()
        for view in live:
            if view.job.state == "RUNNING":
                held[view.tier] += view.job.gpus
        for name, gpus in held.items():
            self.free[name] = max(self.free[name], gpus)

    def _plan(self, live: Sequence[JobView]) -> None:
        candidates, options = [], []
        rates = sorted(v.base_rate for v in self.views if v.base_rate)
        usual = rates[len(rates) // 2] if rates else 1.0
        self._keep(live)
        for view in live:
            tiers = self._tiers_of(view)
            free = [tier for tier in tiers if view.job.gpus <= self.free[tier.name]]
            if not tiers:
                view.reason = "fits no tier that is up"
            elif not free:
                view.reason = "waits: others hold the GPUs of its tiers"
            else:
                view.base_rate = view.base_rate or usual
                self._finish(view)
                candidates.append(view)
                options.append(free)
        if not candidates:
            return
        names = list(self.tiers)
        jobs = [
            self._job(number, view, [(names.index(tier.name), tier) for tier in tiers])
            for number, (view, tiers) in enumerate(zip(candidates, options, strict=True))
        ]
        free_tiers = [
            # What is free for us, one GPU at a time: nodes are Slurm's business.
            Tier(name=tier.name, gpu=tier.gpu, nodes=max(0, self.free[tier.name]), gpus_per_node=1)
            for tier in self.cluster.tiers
        ]
        running = [
            Allocation(number, names.index(view.tier), view.job.gpus, view.job.start_s)
            for number, view in enumerate(candidates)
            if view.job.state == "RUNNING"
        ]
        made = plan(
            Snapshot(now_s=self.now_s, tiers=free_tiers, jobs=jobs, running=running),
            objective=self.options.objective,
            round_s=self.options.round_s,
            stop_probability=1.0,  # who ends is decided above
        )
        self._follow(made, candidates, names)

    def _job(self, number: int, view: JobView, tiers: Sequence[tuple[int, ClusterTier]]) -> Job:
        job, request, forecast = view.job, view.request, view.forecast
        rate = view.base_rate or 1.0
        budget = request.budget if request.budget is not None else 0.0
        return Job(
            id=number,
            user=job.user,
            submit_s=job.submit_s,
            weight=request.weight,
            options=[
                Option(tier=index, gpus=job.gpus, steps_per_s=rate * tier.speed)
                for index, tier in tiers
            ],
            # Without a log, time on a GPU stands for steps: the longer it ran, the longer it will.
            steps_done=max(forecast.last_step, job.used_s * rate),
            attained_s=job.used_s,
            attained_gpu_s=job.used_s * job.gpus,
            target_loss=request.target if request.target is not None else 0.0,
            budget_steps=budget,
            remaining_steps=list(forecast.remaining),
            restart_s=self.options.restart_s,
        )

    def _follow(self, made: Plan, views: Sequence[JobView], names: Sequence[str]) -> None:
        chosen = {a.job: names[a.tier] for a in made.allocations}
        for number, view in enumerate(views):
            job = view.job
            view.planned = chosen.get(number, "")
            view.reason = made.reasons.get(number, "")
            if made.fallback:
                view.reason += f" (by jct: {made.fallback})"
            if job.state == "RUNNING":
                if view.planned != view.tier:
                    why = view.reason or f"goes to {view.planned or 'the queue'}"
                    self._depart(view, view.planned or "-", why)
            elif view.planned:
                delayed = job.eligible_s > self.now_s + 1
                if job.partition != view.planned or (delayed and self.options.order == "defer"):
                    self._do("place", view, view.reason, tier=view.planned)
                if self.options.order == "nice" and job.nice != self._own_nice(job):
                    self._do("rank", view, view.reason, nice=self._own_nice(job))
            elif self.options.order == "nice":
                behind = self._own_nice(job) + 1000
                if job.nice != behind:
                    self._do("rank", view, view.reason, nice=behind)
            elif job.eligible_s < self.now_s + 1.2 * self.options.round_s:
                until = int(self.now_s + self.options.lease_s)
                self._do("defer", view, view.reason, until_s=until)

    def _own_nice(self, job: ClusterJob) -> int:
        return int(self.history.nices.get(job.id, job.nice))

    def _finish(self, view: JobView) -> None:
        """Work out when a running job will be done, on the tier where it runs."""
        forecast = view.forecast
        tier = self.tiers.get(view.tier)
        if view.job.state == "RUNNING" and tier and view.base_rate and forecast.remaining:
            pace = view.base_rate * tier.speed
            lo, mid, hi = (forecast.quantile(q) / pace for q in SHOWN_LEVELS)
            view.finish_s = (lo, mid, hi)

    def _limits(self) -> None:
        """Lower the limit of a job that waits to what it may still need, for backfill's sake."""
        busy = {action.job.id for action in self.actions}
        for view in self.views:
            job, request, forecast = view.job, view.request, view.forecast
            if job.state != "PENDING" or not forecast.remaining or request.budget is None:
                continue
            if job.id in busy or view.kept_waiting or job.move is not None:
                continue
            tiers = self._tiers_of(view)
            if request.checkpoint == "none" or not tiers or not view.base_rate:
                continue
            steps = request.budget - forecast.last_step
            if steps <= 0:
                continue
            # The last sample stands for the 98th percentile and above: where that is never, the
            # job gets the time for its whole budget.
            if self._may_end(request):
                steps = min(forecast.remaining[-1] * 1.1, steps)
            slowest = min(tier.speed for tier in tiers)
            need = (1.2 * steps / (view.base_rate * slowest) + self.options.restart_s) / 60
            minutes = _round_up(need)
            now, before = job.limit_s / 60, self.history.limits.get(job.id)
            lower = minutes <= 0.8 * now and 60 * minutes < FAR_S
            back = before is not None and now < need and now < before
            if lower or back:
                to = minutes if lower else int(min(float(minutes), before or math.inf))
                why = f"needs {need:.1f} minutes at most, even on its slowest tier"
                self._do("limit", view, why, limit_min=to)

    def _notes(self) -> None:
        """Write the forecast into the comment of a job, where it has changed."""
        busy = {action.job.id for action in self.actions}
        left = _NOTES_PER_ROUND
        for view in self.views:
            job = view.job
            if left == 0:
                return
            if job.id in busy or view.kept_waiting or job.request is None or view.request.problem:
                continue
            if job.state == "PENDING" and not self._named_tiers(view):
                continue  # left as it is
            if job.move is not None and not self._arrived(job, job.move):
                continue
            note = with_note(job.comment, note_of(view, self.now_s))
            told = self.history.annotated.get(job.id)
            old = str((told.detail or {}).get("note", "")) if told else ""
            stale = job.move is not None
            if stale or (gist(note) != gist(old) and note != job.comment):
                self._do("annotate", view, "tells the user", comment=note)
                left -= 1

    def _within_rate(self) -> list[Action]:
        """Drop actions that were refused lately, and disruptions beyond the limit of a round."""
        kept, disruptions = [], 0
        for action in self.actions:
            if (action.job.id, action.kind) in self.history.refused:
                continue
            if action.disruptive:
                disruptions += 1
                if disruptions > self.options.disruptions_per_round:
                    continue
            kept.append(action)
        return kept


def _round_up(minutes: float) -> int:
    for step in _LIMIT_GRID_MIN:
        if minutes <= step:
            return int(step)
    return int(math.ceil(min(minutes, FAR_S) / 360) * 360)
