# SPDX-License-Identifier: Apache-2.0
"""What the log of a run says about the rest of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from glidepath._core import InputError
from glidepath._forecast import reach
from glidepath.engines.slurm._model import ClusterJob, Wish
from glidepath.engines.slurm._options import PilotOptions
from glidepath.engines.slurm._traces import Progress

__all__ = ["JobView", "Outlook", "look_ahead"]

_SAMPLES = 32  # of the remaining steps, equally likely


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a log says about the rest of a run.

    `verdict` is reached, will_reach, never, unknown, or TIMED when there is a budget but no target.
    """

    verdict: str = "unknown"
    probability: float = math.nan  # of reaching the target within the budget
    last_step: float = 0.0
    last_value: float = math.nan
    remaining: tuple[float, ...] = ()  # steps, equally likely; inf = never
    steps_per_s: float | None = None  # on the tier where it ran last
    problem: str = ""
    logged_s: float = 0.0  # when the log was last written to

    def quantile(self, level: float) -> float:
        """Remaining steps at a level."""
        if not self.remaining:
            return math.nan
        return self.remaining[min(len(self.remaining) - 1, int(level * len(self.remaining)))]


@dataclass(slots=True)
class JobView:
    """One line of the table: a job, what is known of it, and what shall become of it."""

    job: ClusterJob
    wish: Wish | None
    outlook: Outlook = field(default_factory=Outlook)
    tier: str = ""  # where it is
    planned: str = ""  # where it shall run now; "" = nowhere
    reason: str = ""
    finish_s: tuple[float, float, float] | None = None  # at 10, 50, 90 %, from now
    base_rate: float | None = None  # steps per second at speed 1


def look_ahead(progress: Progress, wish: Wish, options: PilotOptions) -> Outlook:
    """Forecast one run from its log."""
    trace = progress.trace
    if trace is None:
        return Outlook(problem=progress.problem)
    step, value = progress.last_step, float(trace.loss[-1])
    rate = progress.steps_per_s
    if wish.target is None:
        if wish.budget is None:
            return Outlook("unknown", math.nan, step, value, (), rate, "no target, no budget")
        left = (max(0.0, wish.budget - step),)
        return Outlook("timed", math.nan, step, value, left, rate)
    sign = -1.0 if wish.direction == "max" else 1.0
    if sign * progress.best <= sign * wish.target:
        return Outlook("reached", 1.0, step, value, (0.0,), rate)
    # Without a budget there is no such thing as missing it; ten times as far is far enough to plan.
    budget = wish.budget if wish.budget is not None else 10 * max(step, 1.0)
    if budget <= step:
        return Outlook("never", 0.0, step, value, (math.inf,), rate, "the budget is spent")
    try:
        law = reach(trace, wish.target, budget=budget)
    except InputError as error:
        return Outlook("unknown", math.nan, step, value, (), rate, str(error))
    levels = [(k + 0.5) / _SAMPLES for k in range(_SAMPLES)]
    remaining = tuple(max(0.0, float(law.quantile(level)) - step) for level in levels)
    if math.isinf(remaining[0]):  # likely all in vain; unless it is ended, it runs to its budget
        remaining = (budget - step,)
    never = float(law.prob_never)
    verdict = "unknown"
    if len(trace) >= options.min_points:
        if never >= options.stop_probability and wish.budget is not None:
            verdict = "never"
        elif 1 - never >= options.stop_probability:
            verdict = "will_reach"
    return Outlook(verdict, 1 - never, step, value, remaining, rate)
