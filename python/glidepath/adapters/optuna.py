# SPDX-License-Identifier: Apache-2.0
"""Optuna: prune the trials that are not worth the epochs they still need."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glidepath._answer import SHOWN_LEVELS
from glidepath._arguments import checked
from glidepath._core import InputError
from glidepath._forecast import forecast
from glidepath._judge import LOOKS, judge
from glidepath._results import require
from glidepath._trace import Trace
from glidepath._verdicts import meaning
from glidepath._watch import Watch

__all__ = ["ForecastPruner"]

# A decision at the first report, and at the first past each of these shares of the budget.
_VALUE_LOOKS = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
_TARGET_LOOKS = tuple(k / LOOKS for k in range(1, LOOKS + 1))
_KEPT = 0.4  # times spend / sqrt(share): the part of the trials that their rank lets go on
_PACES, _GAINS = 2.0, 0.5  # behind the best by more of both: hopeless
_SPARED = "forecast_spared"


class _Curve:
    """What a trial has reported, oriented so that lower is better."""

    def __init__(self, reports: Sequence[tuple[int, float]], sign: float) -> None:
        self.step = np.array([step for step, _ in reports], dtype=float)
        self.value = sign * np.array([value for _, value in reports], dtype=float)
        self.sign = sign

    def at(self, step: float) -> float:
        """Give the last report at or before a step; the first where there is none."""
        return float(self.value[max(int(np.searchsorted(self.step, step, side="right")) - 1, 0)])


@dataclass(slots=True)
class _Field:
    """What the other trials of a study were at a step."""

    begun: int = 0
    spent: float = 0.0  # in budgets, what spared trials will still spend included
    seen: int = 0  # finished before the step, or got there
    ahead: int = 0  # of these
    running: int = 0
    best: Any = None  # complete trial


def _at(reports: Mapping[int, float], step: float) -> float:
    """Give what a trial had reported at a step, or last before it; NaN where nothing."""
    value = reports.get(int(step))
    if value is None:
        before = [known for known in reports if known <= step]
        value = reports[max(before)] if before else math.nan
    return value


class ForecastPruner(require("optuna").pruners.BasePruner):  # type: ignore[misc]
    """Prune trials whose chance to beat the best is not worth the epochs they still need.

    Parameters
    ----------
    budget : float
        Last step that a trial reports. A trial reports the value that the study optimises.
    target : float, optional
        Value to reach, by one report, as a trial reports evaluations. Trials that have diverged or
        will never reach it by `glidepath.Watch`, at five looks in a row a hundredth of the budget
        apart, are pruned, too.
    mode : {"act", "advise"}, optional
        ``"advise"`` prunes nothing and writes the same attributes.
    spend : float, optional
        About which share of the epochs of all trials the study may use, in (0, 1].

    Notes
    -----
    *The rule.* A trial is looked at when it first reports, and at 2, 4, 8, 16, 32 and 64 % of its
    budget.

    1. Rank: at a share s of the budget the best ``0.4 spend / sqrt(s)`` of all trials go on, by
       what each had reported at that step; those that were pruned before count as behind. With the
       default that is half of them at 4 %, a quarter at 16 %, an eighth at 64 %. The best so far
       always goes on, and so does the only trial that may yet be the first to complete.
    2. Hope: a trial is pruned that is behind the best complete trial by more than half of what that
       one still gained from here, and must in each doubling of its steps still to come gain more
       than twice what it gained in the last one.
    3. Spare: while the study, with this trial to its end, uses no more than `spend` of the budgets
       of all trials begun, only (2) prunes. What (1) saves beyond `spend` is so used on trials that
       begin slowly, which in some studies are the best.

    A trial that reports NaN or infinity is pruned at once.

    A study uses about `spend`: .18 at .16, .24 at .24, .33 at .36 on 20 of 22 recorded sweeps,
    whose trials report early. Studies of a dozen trials use some .03 more, and trials whose first
    report comes late at least what comes before it. The constants were chosen on these 22 and
    checked on 17 others; ``glidepath bench stoppers`` compares the pruner with Optuna's own.

    *What a trial carries.* User attributes: ``forecast_value`` and the 80 % interval
    ``forecast_low`` to ``forecast_high`` of the last report, seen from the newest look (absent
    before three reports), ``forecast_probability`` of beating the best complete trial,
    ``forecast_target_probability`` with a target, ``forecast_spared`` (1 where (3) keeps it),
    ``forecast_stop`` (1 where it is or would be pruned) and ``forecast_reason``.

    All that it knows is in the study's storage, so that a study goes on in another process, with
    parallel workers and with any sampler.

    Raises
    ------
    InputError
        For a budget, spend or mode out of range.
    """

    @checked
    def __init__(
        self,
        budget: float,
        *,
        target: float | None = None,
        mode: str = "act",
        spend: float = 0.24,
    ) -> None:
        if mode not in ("advise", "act"):
            raise InputError(f"mode is {mode!r}, expected 'advise' or 'act'")
        if not (math.isfinite(budget) and budget > 0):
            raise InputError(f"budget is {budget}, expected above 0 and finite")
        if not 0 < spend <= 1:
            raise InputError(f"spend is {spend}, expected above 0 to 1")
        if target is not None and not math.isfinite(target):
            raise InputError(f"target is {target}, expected a finite number")
        self._budget, self._target = float(budget), target
        self._mode, self._spend = mode, spend

    def prune(self, study: Any, trial: Any) -> bool:
        """Judge a trial by all values it has reported."""
        reports = sorted(trial.intermediate_values.items())
        if not reports:
            return False
        direction = "max" if study.direction.name == "MAXIMIZE" else "min"
        own = _Curve(reports, -1.0 if direction == "max" else 1.0)
        if not math.isfinite(own.value[-1]):
            reason = f"reported {reports[-1][1]} at step {reports[-1][0]}"
            return self._stop(study, trial, {}, reason, stop=True)
        looks = self._looks(own, _VALUE_LOOKS) or own.step.size == 1
        advice: dict[str, Any] = {}
        stop, reason = False, ""
        if looks and own.step[-1] < self._budget:
            field = self._field(study, trial, own, reports[-1][0])
            advice = self._forecast(own, direction, field.best)
            stop, reason = self._beaten(trial, own, field, advice)
        if self._target is not None and self._looks(own, _TARGET_LOOKS):
            watch = Watch(
                target=self._target, budget=self._budget, direction=direction, reached_by="point"
            )
            decision, ends = judge(watch, reports)
            if not math.isnan(decision.probability):
                advice["forecast_target_probability"] = decision.probability
            if ends and meaning(decision.verdict).is_lost:
                stop, reason = True, decision.reason
        return self._stop(study, trial, advice, reason, stop=stop) if advice or reason else False

    def _looks(self, own: _Curve, shares: Sequence[float]) -> bool:
        """Whether the last report is the first past one of these shares of the budget."""
        before = own.step[-2] / self._budget if own.step.size > 1 else 0.0
        return bisect(shares, own.step[-1] / self._budget) > bisect(shares, before)

    def _field(self, study: Any, trial: Any, own: _Curve, step: float) -> _Field:
        """Compare with the other trials of the study."""
        states = require("optuna").trial.TrialState
        sign = -1.0 if study.direction.name == "MAXIMIZE" else 1.0
        field, record = _Field(), math.inf
        for other in study.get_trials(deepcopy=False):
            reports = other.intermediate_values
            if other.number == trial.number or not reports:
                continue
            field.begun += 1
            last = max(reports)
            complete = other.state == states.COMPLETE
            running = other.state == states.RUNNING
            whole = complete or (running and _SPARED in other.user_attrs)
            field.spent += 1.0 if whole else min(last / self._budget, 1.0)
            reached = complete or last >= step
            field.running += running
            field.seen += reached or not running
            field.ahead += reached and sign * _at(reports, step) < own.value[-1]
            if complete and sign * other.value < record:
                field.best, record = other, sign * other.value
        return field

    def _forecast(self, own: _Curve, direction: str, best: Any) -> dict[str, Any]:
        """Forecast the last report; nothing where there are too few."""
        sign = -1.0 if direction == "max" else 1.0
        ok = np.isfinite(own.value)
        trace = Trace(own.step[ok], sign * own.value[ok], direction=direction)
        if len(trace) < 3:
            return {}
        ahead = forecast(trace, np.array([self._budget]))
        low, median, high = (float(ahead.quantile(p)[0]) for p in SHOWN_LEVELS)
        if not (math.isfinite(low) and math.isfinite(high)):
            return {}
        advice = {"forecast_value": median, "forecast_low": low, "forecast_high": high}
        if best is not None:
            below = float(ahead.prob_below(best.value)[0])
            advice["forecast_probability"] = below if sign > 0 else 1.0 - below
        return advice

    def _beaten(
        self, trial: Any, own: _Curve, field: _Field, advice: dict[str, Any]
    ) -> tuple[bool, str]:
        """Whether the trials before it leave no room for this one, and why."""
        share = float(own.step[-1]) / self._budget
        hopeless, why = self._hopeless(own, field.best, share)
        rank, of = field.ahead + 1, field.seen + 1
        kept = _KEPT * self._spend / math.sqrt(share) * of if share > 0 else math.inf
        reason = f"rank {rank} of {of} at {share:.2g} of the budget"
        if hopeless:
            return True, f"{reason}: {why}"
        spared = _SPARED in trial.user_attrs
        only = field.best is None and field.running == 0  # that may still be complete
        if spared or only or rank == 1 or rank <= kept:
            return False, reason + (", spared" if spared else "")
        if field.spent + 1.0 <= self._spend * (field.begun + 1):
            advice[_SPARED] = 1.0
            return False, f"{reason}, spared"
        return True, f"{reason}, where {kept:.2g} go on"

    def _hopeless(self, own: _Curve, best: Any, share: float) -> tuple[bool, str]:
        """Whether a trial is too far behind the best, at its own pace and by the best's gain."""
        sign = 1.0 if best is None or own.sign > 0 else -1.0
        if best is None or own.step.size == 1 or own.value[-1] < sign * best.value:
            return False, ""
        record, now = sign * best.value, float(own.value[-1])
        then = sign * _at(best.intermediate_values, own.step[-1])
        tiny = 1e-3 * abs(record) + 1e-12
        pace = max(own.at(own.step[-1] / 2.0) - now, 0.0)  # of the last doubling
        paces = (now - record) / (pace * -math.log2(share) + tiny)
        gains = (now - then) / (max(then - record, 0.0) + tiny)
        return paces > _PACES and gains > _GAINS, (
            f"to beat {best.value:g} of trial {best.number} it needs {paces:.2g} times its own"
            f" pace, and is behind by {gains:.2g} of what that gained from here"
        )

    def _stop(
        self, study: Any, trial: Any, advice: dict[str, Any], reason: str, *, stop: bool
    ) -> bool:
        """Write what the trial carries."""
        for name, word in {
            **advice,
            "forecast_stop": float(stop),
            "forecast_reason": reason,
        }.items():
            # As Optuna's own pruners do: a pruner is given no trial that it may write to.
            study._storage.set_trial_user_attr(trial._trial_id, name, word)
        return stop and self._mode == "act"
