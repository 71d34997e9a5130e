# SPDX-License-Identifier: Apache-2.0
"""The forecast of a job: what its log says about the rest of the run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from glidepath import _core, _words
from glidepath._core import InputError, open_budget, reached_by_name
from glidepath._judge import judge
from glidepath._plan import REMAINING_SAMPLES
from glidepath._reach import reach
from glidepath._trace import Trace
from glidepath._verdicts import meaning
from glidepath._watch import Decision, Watch
from glidepath.engines.slurm._comment import JobRequest
from glidepath.engines.slurm._model import ClusterJob
from glidepath.engines.slurm._options import PilotOptions
from glidepath.engines.slurm._traces import Progress

OLDER_LOG = "the log is older than the job"  # of an earlier run: no reason to do anything
AHEAD_LOG = "the log is dated ahead of the clock"  # and may be older than the job all the same


@dataclass(frozen=True, slots=True)
class JobForecast:
    """What a log says about the rest of a run.

    Attributes
    ----------
    verdict : str
        As in `glidepath.Decision`. Without a budget of the user's it is unknown in place of never.
    probability : float
        Probability of reaching the target within the budget; NaN without a target.
    last_step, last_value : float
        The last observation.
    remaining : tuple of float
        Steps that the job still needs, equally likely samples in increasing order; inf = never.
        Without a target the steps to its budget; empty where neither is known or it diverged.
    steps_per_s : float or None
        Pace on the tier where the job ran last.
    stop : bool
        Whether the run should end: it reached its target, or was lost at several looks in a row.
    reason : str
        The numbers behind a verdict of reached, never or diverged, in words.
    problem : str
        Why there is no forecast; empty where there is one.
    logged_s : float
        Time of the last change of the log.
    reached_by : str or None
        The reading by which the target is reached; None where no log was read.
    metric : str or None
        The metric that was read; None where no log was.
    few_points : bool
        Whether there are fewer points than a verdict takes.
    """

    verdict: str = "unknown"
    probability: float = math.nan
    last_step: float = 0.0
    last_value: float = math.nan
    remaining: tuple[float, ...] = ()
    steps_per_s: float | None = None
    stop: bool = False
    reason: str = ""
    problem: str = ""
    logged_s: float = 0.0
    reached_by: str | None = None
    metric: str | None = None
    few_points: bool = False

    def quantile(self, level: float) -> float:
        """Quantile of the remaining steps; NaN where they are unknown."""
        return _core.sample_quantile(self.remaining, level) if self.remaining else math.nan


@dataclass(slots=True)
class JobView:
    """A job with its request, its forecast, and what the plan does with it."""

    job: ClusterJob
    request: JobRequest
    forecast: JobForecast = field(default_factory=JobForecast)
    tier: str = ""  # where it is
    planned: str = ""  # where it shall run now; "" = nowhere
    reason: str = ""
    finish_s: tuple[float, float, float] | None = None  # quantiles 0.1, 0.5, 0.9, from now
    starts_s: tuple[float, float, float] | None = None  # the same of the start of one that waits
    base_rate: float | None = None  # steps per second at speed 1
    kept_waiting: bool = False  # by somebody: held, or to begin later, or after another job


def forecast_job(progress: Progress, request: JobRequest, options: PilotOptions) -> JobForecast:
    """Forecast one run from its log."""
    trace, target, budget = progress.trace, request.target, request.budget
    if trace is None:
        return JobForecast(problem=progress.problem)
    step = progress.last_step
    value = math.nan if progress.nonfinite_steps else float(trace.loss[-1])
    reached_by = options.reached_by or reached_by_name(trace.metric)
    seen = JobForecast(
        last_step=step,
        last_value=value,
        steps_per_s=progress.steps_per_s,
        reached_by=reached_by,
        metric=trace.metric,
        few_points=int(np.isfinite(trace.loss).sum()) < _core.MIN_WATCHED_POINTS,
    )
    try:
        decision, stop = _judge(trace, reached_by, progress, request, options)
        means = meaning(decision.verdict)
        if means.is_reached:
            why = f"reached {target:g} by step {_words.count(step)}"
            return replace(
                seen,
                verdict=decision.verdict,
                probability=1.0,
                remaining=(0.0,),
                stop=True,
                reason=why,
            )
        if target is not None and budget is not None and budget <= step:
            why = "the budget is spent"
            return replace(
                seen, verdict="never", probability=0.0, remaining=(math.inf,), stop=True, reason=why
            )
        if means.is_settled:  # it diverged
            chance = math.nan if target is None else 0.0
            why = decision.reason
            return replace(
                seen, verdict=decision.verdict, probability=chance, stop=stop, reason=why
            )
        if target is None:
            left = () if budget is None else (max(0.0, budget - step),)
            return replace(
                seen, remaining=left, problem="no target, no budget" if budget is None else ""
            )
        probability, remaining = _law(trace, reached_by, step, target, budget)
    except InputError as error:
        return replace(seen, problem=str(error))
    seen = replace(seen, probability=probability, remaining=remaining)
    if not means.is_lost:
        return replace(seen, verdict=decision.verdict)
    if budget is None:  # it may run as long as it likes
        return seen
    return replace(seen, verdict=decision.verdict, stop=stop, reason=decision.reason)


def _judge(
    trace: Trace,
    reached_by: str,
    progress: Progress,
    request: JobRequest,
    options: PilotOptions,
) -> tuple[Decision, bool]:
    """Ask a watch."""
    verdict: dict[str, Any] = {}
    if request.target is not None:
        verdict = {"target": request.target, "alpha": options.alpha, "reached_by": reached_by}
        verdict["budget"] = request.budget
    watch = Watch(direction=trace.direction, **verdict)
    points = list(zip(trace.step.tolist(), trace.loss.tolist(), strict=True))
    points += [(step, math.nan) for step in progress.nonfinite_steps]
    return judge(watch, points)


def _law(
    trace: Trace, reached_by: str, step: float, target: float, budget: float | None
) -> tuple[float, tuple[float, ...]]:
    """Forecast the chance of the target, and draw the steps that the run still needs."""
    end = budget if budget is not None else open_budget(float(trace.step[0]), max(step, 1.0))
    law = reach(trace, target, budget=end, reached_by=reached_by)
    remaining = tuple(law.remaining_steps(REMAINING_SAMPLES).tolist())
    if math.isinf(remaining[0]):  # hardly any chance: unless it is ended, it runs to its budget
        remaining = (end - step,)
    return 1 - float(law.prob_never), remaining
