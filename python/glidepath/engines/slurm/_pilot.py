# SPDX-License-Identifier: Apache-2.0
"""The round: read, forecast, plan, decide, check again, act, write down.

All memory between rounds is in the cluster itself and in the decision log, so a process may end at
any point and another may go on.
"""

from __future__ import annotations

import os
import shlex
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from glidepath._core import InputError
from glidepath._results import counted
from glidepath.engines.slurm._action_planner import ActionPlanner
from glidepath.engines.slurm._comment import JobRequest
from glidepath.engines.slurm._decision_log import DecisionLog, Event, LogError
from glidepath.engines.slurm._history import History, action_event
from glidepath.engines.slurm._job_forecast import (
    AHEAD_LOG,
    OLDER_LOG,
    JobForecast,
    JobView,
    forecast_job,
)
from glidepath.engines.slurm._model import (
    Action,
    Cluster,
    ClusterError,
    ClusterJob,
    Outcome,
    Scheduler,
)
from glidepath.engines.slurm._options import PilotOptions
from glidepath.engines.slurm._starts import set_starts
from glidepath.engines.slurm._traces import Progress, TraceStore, trace_path

_STATES = ("PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING", "REQUEUED")


@dataclass(frozen=True, slots=True)
class Round:
    """What one round saw and did.

    `trouble` says what stopped it, `remark` what it lacks to do more.
    """

    number: int
    at_s: float
    mode: str
    views: tuple[JobView, ...] = ()
    actions: tuple[Action, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    trouble: str = ""
    moves_underway: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    remark: str = ""

    @property
    def summary(self) -> str:
        """One line."""
        if self.trouble:
            return self.trouble
        running = sum(view.job.state == "RUNNING" for view in self.views)
        kinds = Counter(action.kind for action in self.actions)
        doing = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        verb = "did" if self.mode == "act" else "would"
        return f"{counted(len(self.views), 'job')}, {running} running; {verb}: {doing or 'nothing'}"


class Pilot:
    """Plans and steers the jobs of a scheduler.

    Parameters
    ----------
    scheduler : Scheduler
    log : path_like
        The decision log, an SQLite file; made where there is none.
    options : PilotOptions

    Notes
    -----
    A pilot keeps what it read of the logs in memory, for speed only.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        log: str | os.PathLike[str],
        options: PilotOptions | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.scheduler = scheduler
        self.log_path = Path(log)
        self.options = options or PilotOptions()
        self._clock = clock
        self._log: DecisionLog | None = None
        self._inside = False
        self._store = TraceStore()
        self._forecasts: dict[str, tuple[Progress, JobRequest, JobForecast]] = {}

    # --------------------------------------------------------------------------------------- loop

    def run(
        self,
        *,
        rounds: int | None = None,
        stop: threading.Event | None = None,
        on_round: Callable[[Round], None] = lambda _: None,
    ) -> None:
        """Do rounds until `rounds` are over or `stop` is set; after trouble, wait and try again.

        While a job is on its way between tiers the next round comes after a second at most. Set
        `stop` from another thread: a signal handler of the waiting thread may find it locked.
        """
        with self:
            self._run(rounds, stop or threading.Event(), on_round)

    def _run(
        self, rounds: int | None, stop: threading.Event, on_round: Callable[[Round], None]
    ) -> None:
        done = failures = 0
        while not stop.is_set() and (rounds is None or done < rounds):
            result = self.round()
            on_round(result)
            done += 1
            failures = failures + 1 if result.trouble else 0
            wait = self.options.round_s
            if failures:
                wait = max(1.0, min(wait, 2.0**failures, 60.0)) if wait > 1 else wait
            elif result.moves_underway:
                wait = min(wait, 1.0)
            if rounds is None or done < rounds:
                stop.wait(wait)

    def look(self) -> Round:
        """See what a round would see and decide; change nothing, not even the log."""
        at_s = self._clock()
        try:
            path = self.log_path if self.log_path.exists() else None
            with DecisionLog(path, readonly=True) as log:
                cluster = self.scheduler.read()
                seen = self._decide(log, cluster, at_s, _Stopwatch())[0]
                set_starts(cluster, seen.views, cancel=self.options.cancel)
                return seen
        except (ClusterError, LogError) as error:
            return Round(0, at_s, "advise", trouble=str(error))

    def round(self) -> Round:
        """Do one round; whatever goes wrong with cluster, log or disk is in its `trouble`."""
        at_s, mode = self._clock(), self.options.mode
        keep = False
        try:
            self._log = self._log or DecisionLog(self.log_path)
            result = self._round(self._log, at_s)
            keep = self._inside
        except (ClusterError, InputError) as error:  # such as a tier that the cluster lacks
            result = Round(0, at_s, mode, trouble=str(error))
            keep = self._inside
        except LogError as error:  # opened anew next time: there may be room again
            result = Round(0, at_s, mode, trouble=str(error))
        except Exception as error:  # a pilot that ends steers no job at all
            result = Round(0, at_s, mode, trouble=f"the round failed: {error!r}"[:500])
        finally:
            if not keep:
                self._close()
        return result

    def __enter__(self) -> Pilot:
        """Keep the decision log open, and closed to other writers, from round to round."""
        self._inside = True
        return self

    def __exit__(self, *_: object) -> None:
        self._inside = False
        self._close()

    def _close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def _decide(
        self, log: DecisionLog, cluster: Cluster, at_s: float, watch: _Stopwatch
    ) -> tuple[Round, History]:
        seconds = {"read": watch.lap()}
        history = History.of(log, cluster, at_s, self.options)
        views = self._views(cluster, history)
        seconds["forecast"] = watch.lap()
        planner = ActionPlanner(cluster, views, history, self.options)
        actions = planner.decide()
        commands = tuple(self.scheduler.commands(actions))
        seconds["plan"] = watch.lap()
        decided = Round(
            0,
            at_s,
            self.options.mode,
            tuple(views),
            tuple(actions),
            commands,
            moves_underway=planner.moves_underway,
            seconds=seconds,
            remark=cluster.remark,
        )
        return decided, history

    def _round(self, log: DecisionLog, at_s: float) -> Round:
        watch = _Stopwatch()
        try:
            cluster = self.scheduler.read()
        except ClusterError as error:
            log.begin_round(at_s, self.options.mode, str(error))
            raise
        self._close_interrupted(log, cluster, at_s)
        decided, history = self._decide(log, cluster, at_s, watch)
        number = log.begin_round(at_s, self.options.mode, decided.summary)
        noted = [event for view in decided.views if (event := history.forecast_event(view))]
        if self.options.mode == "advise":
            log.add(number, at_s, noted + history.advice(decided.actions, self._words))
            return replace(decided, number=number)
        outcomes, trouble = self._act(log, number, at_s, decided.actions, noted)
        seconds = {**decided.seconds, "act": watch.lap()}
        return replace(
            decided, number=number, outcomes=tuple(outcomes), trouble=trouble, seconds=seconds
        )

    def _act(
        self,
        log: DecisionLog,
        number: int,
        at_s: float,
        actions: Sequence[Action],
        noted: list[Event],
    ) -> tuple[Sequence[Outcome], str]:
        """Write down the actions, carry them out, write down the outcomes."""
        intended = [action_event(a, "intended", self._words(a)) for a in actions]
        rows = log.add(number, at_s, noted + intended)[len(noted) :]
        trouble = ""
        try:
            outcomes = self.scheduler.send(actions)
        except ClusterError as error:  # the check before failed, so nothing was sent
            trouble = str(error)
            outcomes = [Outcome(action, "unknown", f"not sent: {error}") for action in actions]
        results = [
            action_event(o.action, o.status, "", o.detail, row)
            for o, row in zip(outcomes, rows, strict=True)
        ]
        try:
            log.add(number, self._clock(), results)
        except LogError as error:  # the next round closes what is open
            trouble = trouble or str(error)
        return outcomes, trouble

    def _words(self, action: Action) -> str:
        return "; ".join(shlex.join(command) for command in self.scheduler.commands([action]))

    def _close_interrupted(self, log: DecisionLog, cluster: Cluster, at_s: float) -> None:
        """Complete the records of actions whose process ended in between."""
        open_ends = log.interrupted()
        if not open_ends:
            return
        jobs = {job.id: job for job in cluster.jobs}
        events = []
        for event in open_ends:
            job = jobs.get(event.job)
            now = f"the job is {job.state} in {job.partition}" if job else "the job is gone"
            why = f"glidepath ended before it could note what came of it; {now}"
            events.append(
                Event(event.job, event.kind, "unknown", why, event.command, None, event.submit_s,
                      event.id)
            )  # fmt: skip
        log.add(log.begin_round(at_s, self.options.mode, "going on after an interruption"), at_s,
                events)  # fmt: skip

    # ----------------------------------------------------------------------------------- forecast

    def _views(self, cluster: Cluster, history: History) -> list[JobView]:
        """Read the logs of the jobs that take part, and forecast them."""
        views = []
        paths: dict[str, Path] = {}
        for job in cluster.jobs:
            if not self.scheduler.may_touch(job) or job.state not in _STATES:
                continue
            view = JobView(job, job.request or JobRequest())
            tier = cluster.tier_of(job)
            view.tier = tier.name if tier else ""
            views.append(view)
            path = trace_path(job, view.request, self.options.trace_patterns)
            if path is not None:
                paths[job.id] = path
        self._store.keep_only(set(paths.values()))
        known = {view.job.id for view in views}
        self._forecasts = {job: seen for job, seen in self._forecasts.items() if job in known}
        news = []
        for view in views:
            path = paths.get(view.job.id)
            forecast = self._known_forecast(view, path, cluster.now_s)
            if isinstance(forecast, JobForecast):
                view.forecast = forecast
            else:
                news.append((view, forecast))
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:  # outside of Python's lock
            forecasts = threads.map(lambda new: self._forecast(*new), news)
            for (view, _), forecast in zip(news, forecasts, strict=True):
                view.forecast = forecast
        for view in views:
            history.set_rate(view, cluster)
        return views

    def _known_forecast(
        self, view: JobView, path: Path | None, now_s: float
    ) -> JobForecast | Progress:
        """Read the log of a job; give its last forecast where the log has not changed."""
        job, request = view.job, view.request
        if request.problem:
            return JobForecast(problem=request.problem)
        if path is None:
            return JobForecast(
                problem="has not started" if job.state == "PENDING" else "no log found"
            )
        progress = self._store.read(
            path,
            metric=request.metric,
            direction=request.direction,
            user=self.scheduler.reader(job),
        )
        if _is_older(progress, job):
            return JobForecast(problem=OLDER_LOG, logged_s=_logged_s(progress, job))
        if progress.trace is not None and job.restarts == 0 and progress.modified_s > now_s + 60:
            # By such a clock nobody knows whether a log is older: as if it were from the start on.
            return JobForecast(problem=AHEAD_LOG, logged_s=max(1.0, job.start_s))
        known = self._forecasts.get(job.id)
        if known is not None and known[0] is progress and known[1] == request:
            return known[2]
        return progress

    def _forecast(self, view: JobView, progress: Progress) -> JobForecast:
        job, request = view.job, view.request
        try:
            forecast = forecast_job(progress, request, self.options)
        except Exception as error:  # whatever it was, it is the trouble of this job alone
            forecast = JobForecast(problem=f"no forecast: {error!r}"[:200])
        forecast = replace(forecast, logged_s=_logged_s(progress, job))
        if forecast.steps_per_s is None and job.restarts == 0 and job.start_s > 0:
            elapsed = progress.modified_s - job.start_s
            if elapsed > 1 and progress.last_step > 0:
                forecast = replace(forecast, steps_per_s=progress.last_step / elapsed)
        self._forecasts[job.id] = (progress, request, forecast)
        return forecast


def _is_older(progress: Progress, job: ClusterJob) -> bool:
    """Whether a log was last written before its job was there: by an earlier run, so far."""
    begin_s = job.start_s if job.state != "PENDING" else job.submit_s
    older = progress.modified_s < begin_s or progress.ends_in_header
    return progress.trace is not None and job.restarts == 0 and older


def _logged_s(progress: Progress, job: ClusterJob) -> float:
    """Give the time of the last step that a log has, or one that is not behind it."""
    begun = progress.ends_in_header and job.state != "PENDING"
    return min(progress.modified_s, job.start_s) if begun else progress.modified_s


@dataclass
class _Stopwatch:
    started: float = field(default_factory=time.perf_counter)

    def lap(self) -> float:
        now = time.perf_counter()
        lap, self.started = now - self.started, now
        return lap
