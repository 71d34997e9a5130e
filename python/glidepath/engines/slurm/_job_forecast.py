# SPDX-License-Identifier: Apache-2.0
"""The forecast of a job: what its log says about the rest of the run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from glidepath._core import InputError
from glidepath._forecast import Reach, reach
from glidepath._trace import Trace
from glidepath._verdicts import Verdict
from glidepath.engines.slurm._model import ClusterJob, JobRequest
from glidepath.engines.slurm._options import PilotOptions
from glidepath.engines.slurm._traces import Progress

__all__ = ["JobForecast", "JobView", "forecast_job"]

_SAMPLES = 32  # of the remaining steps, equally likely
_OPEN_BUDGET = 10  # times the steps seen, where the comment has no budget


@dataclass(frozen=True, slots=True)
class JobForecast:
    """What a log says about the rest of a run.

    Attributes
    ----------
    verdict : str
        As in `glidepath.Decision`; unknown without a target.
    probability : float
        Probability of reaching the target within the budget; NaN without a target.
    last_step, last_value : float
        The last observation.
    remaining : tuple of float
        Steps that the job still needs, equally likely samples in increasing order; inf = never.
        Without a target the steps to its budget; empty where neither is known.
    steps_per_s : float or None
        Pace on the tier where the job ran last.
    problem : str
        Why there is no forecast; empty where there is one.
    logged_s : float
        Time of the last change of the log.
    """

    verdict: Verdict = "unknown"
    probability: float = math.nan
    last_step: float = 0.0
    last_value: float = math.nan
    remaining: tuple[float, ...] = ()
    steps_per_s: float | None = None
    problem: str = ""
    logged_s: float = 0.0

    def quantile(self, level: float) -> float:
        """Quantile of the remaining steps; NaN where they are unknown."""
        if not self.remaining:
            return math.nan
        return self.remaining[min(len(self.remaining) - 1, int(level * len(self.remaining)))]


@dataclass(slots=True)
class JobView:
    """A job with its request, its forecast, and what the plan does with it."""

    job: ClusterJob
    request: JobRequest | None
    forecast: JobForecast = field(default_factory=JobForecast)
    tier: str = ""  # where it is
    planned: str = ""  # where it shall run now; "" = nowhere
    reason: str = ""
    finish_s: tuple[float, float, float] | None = None  # quantiles 0.1, 0.5, 0.9, from now
    base_rate: float | None = None  # steps per second at speed 1


def forecast_job(progress: Progress, request: JobRequest, options: PilotOptions) -> JobForecast:
    """Forecast one run from its log."""
    trace = progress.trace
    if trace is None:
        return JobForecast(problem=progress.problem)
    step, value = progress.last_step, float(trace.loss[-1])
    rate = progress.steps_per_s
    if request.target is None:
        if request.budget is None:
            return JobForecast("unknown", math.nan, step, value, (), rate, "no target, no budget")
        left = (max(0.0, request.budget - step),)
        return JobForecast("unknown", math.nan, step, value, left, rate)
    sign = -1.0 if request.direction == "max" else 1.0
    if sign * progress.best <= sign * request.target:
        return JobForecast("reached", 1.0, step, value, (0.0,), rate)
    budget = request.budget if request.budget is not None else _OPEN_BUDGET * max(step, 1.0)
    if budget <= step:
        return JobForecast("never", 0.0, step, value, (math.inf,), rate, "the budget is spent")
    try:
        law = _reach(trace, request.target, budget)
    except InputError as error:
        return JobForecast("unknown", math.nan, step, value, (), rate, str(error))
    levels = [(k + 0.5) / _SAMPLES for k in range(_SAMPLES)]
    remaining = tuple(max(0.0, float(law.quantile(level)) - step) for level in levels)
    if math.isinf(remaining[0]):  # hardly any chance: unless it is ended, it runs to its budget
        remaining = (budget - step,)
    never = float(law.prob_never)
    verdict = _verdict(never, len(trace), request, options)
    return JobForecast(verdict, 1 - never, step, value, remaining, rate)


def _reach(trace: Trace, target: float, budget: float) -> Reach:
    return reach(trace, target, budget=budget)


def _verdict(prob_never: float, points: int, request: JobRequest, options: PilotOptions) -> Verdict:
    if points < options.min_points:
        return "unknown"
    if prob_never >= options.stop_probability and request.budget is not None:
        return "never"
    return "will_reach" if 1 - prob_never >= options.stop_probability else "unknown"
