# SPDX-License-Identifier: Apache-2.0
"""Whether a run should end: one rule for every part that reads a log, asked of a `Watch`.

One look is not enough, as of many forecasts some are wrong: a run is lost where the verdict was so
at several looks in a row, a hundredth of the budget apart, as where its error rate was measured
(docs/live.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from glidepath import _words
from glidepath._answer import SHOWN_LEVELS
from glidepath._core import MIN_WATCHED_POINTS, WATCH_LOOKS, WATCH_PATIENCE
from glidepath._reach import reach
from glidepath._verdicts import meaning
from glidepath._watch import ALPHA, Decision, Watch

if TYPE_CHECKING:
    from glidepath._horizon import Horizon
    from glidepath._past_runs import PastRuns
    from glidepath._reach import Reach
    from glidepath._trace import Trace

PATIENCE: int = WATCH_PATIENCE  # looks in a row at which a run must be lost before it is stopped
LOOKS: int = WATCH_LOOKS  # at a run over its budget


def judge(watch: Watch, points: Sequence[tuple[float, float]]) -> tuple[Decision, bool]:
    """Add all points of a run to a watch; give its decision, and whether to stop the run.

    The looks are at the newest point and before it at the newest that lies apart: a share of the
    budget, or of nothing where that is not known or the run ends in NaN or infinity.
    """
    decision, stop = watch._record.judge([step for step, _ in points], [loss for _, loss in points])
    return Decision._of(decision), stop


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a log says of a run.

    Attributes
    ----------
    decision : Decision
        That of a `Watch`, which merges old points.
    stop : bool
        Whether the run should end.
    probability : float
        The chance of reaching the target within the budget, by all points; NaN without a target.
    reach : tuple of float
        Quantiles 0.1, 0.5 and 0.9 of the step at which the target is reached; inf = never.
    reason : str
        The numbers in a sentence.
    """

    decision: Decision
    stop: bool
    probability: float
    reach: tuple[float, ...]
    reason: str


def rule(
    trace: Trace,
    plan: Horizon,
    *,
    target: float | None,
    reached_by: str,
    past: PastRuns | None = None,
    alpha: float = ALPHA,
    law: Reach | None = None,
) -> Ruling:
    """Judge a run by its log, as far as planned; `law` is that of its target where it is known."""
    # The error rate of verdicts was measured without learned widths: docs/live.md.
    shapes = None if past is None else past.runs
    asked: dict[str, Any] = {}
    if target is not None:
        asked = {"target": target, "alpha": alpha, "reached_by": reached_by, "past": shapes}
        open_end = plan.budget <= 0  # of a log that begins below step 0
        asked |= {"budget": None if open_end else plan.budget, "schedule": plan.schedule}
    watch = Watch(direction=trace.direction, **asked)
    points = list(zip(trace.step.tolist(), trace.loss.tolist(), strict=True))
    decision, stop = judge(watch, points)
    means, last = meaning(decision.verdict), points[-1][0]
    steps = tuple(last + left for left in decision.steps_to_target)
    if target is None:
        return Ruling(decision, stop, decision.probability, steps, decision.reason)
    if means.is_reached or not (means.is_settled or last >= plan.budget):
        law = law or reach(
            trace,
            target,
            budget=plan.budget,
            schedule=plan.schedule,
            past=past,
            reached_by=reached_by,
        )
        steps = tuple(law.quantile(p) for p in SHOWN_LEVELS)
    if law is None or means.is_settled or last >= plan.budget:
        return Ruling(decision, stop, decision.probability, steps, decision.reason)
    chance = 1.0 - law.prob_never
    if np.isfinite(trace.loss).sum() < MIN_WATCHED_POINTS:
        return Ruling(decision, stop, chance, steps, decision.reason)
    said = f"reaches {target:g} by step {_words.count(plan.budget)} with probability"
    reason = f"{said} {_words.percent(chance)}{means.weighed}"
    return Ruling(decision, stop, chance, steps, reason)
