# SPDX-License-Identifier: Apache-2.0
"""Optuna: prune the trials that are not worth the epochs they still need."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from glidepath._core import InputError
from glidepath._forecast import forecast
from glidepath._results import require
from glidepath._trace import Trace
from glidepath._watch import Watch
from glidepath.adapters._adviser import judge

__all__ = ["ForecastPruner"]

# A decision at the first report past each of these shares of a trial: each costs a forecast.
_LOOKS = (0.04, 0.06, 0.08, 0.11, 0.15, 0.2, 0.26, 0.34, 0.42, 0.5, 0.6, 0.7, 0.8, 0.9)
_INTERCEPT, _GAP, _NEED, _TRIALS = 1.1, 0.2, 0.45, 0.35  # of the log odds of beating the best
_STEEPNESS, _LARGEST = 30.0, 4.0  # of the scale on which gap and need are measured
_PRICE, _HASTE = 0.15, 7.0


class _Curve:
    """What a trial has reported, oriented so that lower is better."""

    def __init__(self, reports: Sequence[tuple[int, float]], sign: float) -> None:
        self.step = np.array([step for step, _ in reports], dtype=float)
        self.value = sign * np.array([value for _, value in reports], dtype=float)

    def at(self, step: float) -> float:
        """Give the last report at or before a step; the first where there is none."""
        return float(self.value[max(int(np.searchsorted(self.step, step, side="right")) - 1, 0)])

    def level(self, step: float) -> float:
        """Give the mean of the reports of the last sixth before a step, or the last."""
        near = self.value[(self.step > step * 5.0 / 6.0) & (self.step <= step)]
        mean = float(near.mean()) if near.size else math.nan
        return mean if math.isfinite(mean) else self.at(step)

    def progress(self, budget: float) -> float:
        """Give the share of the way from the first report to the budget, 0 to 1."""
        whole = budget - self.step[0]
        return min(float(self.step[-1] - self.step[0]) / whole, 1.0) if whole > 0 else 1.0


def _at(reports: Mapping[int, float], step: float, sign: float) -> float:
    """Give what a trial had reported at a step, or last before it; NaN where nothing."""
    value = reports.get(int(step))
    if value is None:
        before = [known for known in reports if known <= step]
        value = reports[max(before)] if before else math.nan
    return sign * value


def _stretched(ratio: float) -> float:
    ratio = max(-_LARGEST, min(ratio, _LARGEST))
    return math.copysign(math.log1p(_STEEPNESS * abs(ratio)), ratio)


def _log_odds(own: _Curve, best: _Curve, record: float, others: int) -> float:
    """Give the log odds that a trial ends below `record`, the value of the trial `best`."""
    step = float(own.step[-1])
    now, ahead = own.level(step), best.level(step)
    still = max(ahead - record, 0.0) + 1e-3 * abs(record) + 1e-12  # what the best still gained
    gap = (now - ahead) / still
    gained = max(own.at(step / 2.0) - now, 0.0) + 0.1 * still
    need = (now - record) / gained / 2.0
    return (
        _INTERCEPT
        - _GAP * _stretched(gap)
        - _NEED * _stretched(need)
        - _TRIALS * math.log(others + 1)
    )


class ForecastPruner(require("optuna").pruners.BasePruner):  # type: ignore[misc]
    """Prune trials whose chance to beat the best is not worth the epochs they still need.

    Parameters
    ----------
    budget : float
        Last step that a trial reports. A trial reports the value that the study optimises.
    target : float, optional
        Value to reach, by one report, as a trial reports evaluations. Trials that
        `glidepath.Watch` says will never reach it are pruned, too, even before any trial is
        complete.
    mode : {"act", "advise"}, optional
        ``"advise"`` prunes nothing and writes the same attributes.
    spend : float, optional
        About which share of the epochs of all trials the study may use, in (0, 1]; the first trial
        comes on top.

    Notes
    -----
    *The rule.* At some fifteen steps of a trial, ever farther apart, two questions are put to the
    best complete trial of the study. How far is this trial behind it at the same step, in units of
    what the best gained from there to its end (gap)? How much does this trial need to beat it, in
    units of what it gained itself in the second half of its steps (need)? With
    ``f(x) = sign(x) log(1 + 30 |x|)`` of ratios cut at 4, the odds of beating the best of n earlier
    trials are ``exp(1.1 - 0.2 f(gap) - 0.45 f(need / 2)) / (n + 1)^0.35``. It is pruned where the
    odds are below ``0.15 left (used / allowed)^7``: ``left`` is the share of the trial that is
    still to come, ``used`` one trial more than what the study has spent, and ``allowed`` one trial
    more than `spend` times the trials begun. A trial that is ahead of all complete trials at the
    same step, or already better than the best, goes on; one that reports NaN or infinity is pruned
    at once. While no trial is complete, nothing else is. The constants were chosen on 19 recorded
    sweeps (TaskSet, algoperf, DeepOBS, MLPerf, our own) and checked on 17 others;
    ``glidepath bench stoppers`` repeats the comparison with Optuna's pruners.

    *What a trial carries.* User attributes: ``forecast_value`` and the 80 % interval
    ``forecast_low`` to ``forecast_high`` of the last report, ``forecast_probability`` of beating
    the best (before there is one, absent), ``forecast_target_probability`` with a target,
    ``forecast_stop`` (1 where it is or would be pruned) and ``forecast_reason``.

    All that it knows is in the study's storage, so that a study goes on in another process, with
    parallel workers and with any sampler.

    Raises
    ------
    InputError
        For a budget, spend or mode out of range.
    """

    def __init__(
        self,
        budget: float,
        *,
        target: float | None = None,
        mode: str = "act",
        spend: float = 0.2,
    ) -> None:
        if mode not in ("advise", "act"):
            raise InputError(f"mode {mode!r} is neither 'advise' nor 'act'")
        if not (math.isfinite(budget) and budget > 0):
            raise InputError(f"budget {budget} is not a positive number of steps")
        if not 0 < spend <= 1:
            raise InputError(f"spend {spend} is not in (0, 1]")
        if target is not None and not math.isfinite(target):
            raise InputError(f"target {target} is not a number")
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
            return self._stop(study, trial, {}, True, reason)
        if not self._looks(own):
            return False
        advice = self._forecast(own, direction)
        stop, reason = self._beaten(study, trial, own, advice)
        if self._target is not None:
            watch = Watch(
                target=self._target, budget=self._budget, direction=direction, reached_by="point"
            )
            decision, _ = judge(watch, reports, 1)
            if not math.isnan(decision.probability):
                advice["forecast_target_probability"] = decision.probability
            if decision.verdict in ("never", "diverged"):
                stop, reason = True, decision.reason
        return self._stop(study, trial, advice, stop, reason)

    def _looks(self, own: _Curve) -> bool:
        whole = max(self._budget - float(own.step[0]), 1e-12)
        before = float(own.step[-2] - own.step[0]) / whole if own.step.size > 1 else 0.0
        return any(before < look <= own.progress(self._budget) for look in _LOOKS)

    def _forecast(self, own: _Curve, direction: str) -> dict[str, Any]:
        """Forecast the last report; nothing where there are too few."""
        sign = -1.0 if direction == "max" else 1.0
        ok = np.isfinite(own.value)
        trace = Trace(own.step[ok], sign * own.value[ok], direction=direction)
        if len(trace) < 3 or own.step[-1] >= self._budget:
            return {}
        ahead = forecast(trace, np.array([self._budget]))
        low, median, high = (float(ahead.quantile(p)[0]) for p in (0.1, 0.5, 0.9))
        if not (math.isfinite(low) and math.isfinite(high)):
            return {}
        return {"forecast_value": median, "forecast_low": low, "forecast_high": high}

    def _beaten(
        self, study: Any, trial: Any, own: _Curve, advice: dict[str, Any]
    ) -> tuple[bool, str]:
        """Whether beating the best complete trial is not worth what is left, and why."""
        sign = -1.0 if study.direction.name == "MAXIMIZE" else 1.0
        complete = require("optuna").trial.TrialState.COMPLETE
        others, spent, best, ahead = 0, own.progress(self._budget), None, math.inf
        for other in study.get_trials(deepcopy=False):
            steps = other.intermediate_values
            if other.number == trial.number or not steps:
                continue
            others += 1
            if other.state != complete:
                first, last = min(steps), max(steps)
                spent += min((last - first) / max(self._budget - first, 1e-12), 1.0)
                continue
            spent += 1.0
            there = _at(steps, own.step[-1], sign)
            ahead = min(ahead, there) if math.isfinite(there) else ahead
            better = best is None or sign * other.value < sign * best.value
            best = other if better and math.isfinite(other.value) else best
        if best is None:
            return False, "no trial is complete"
        record = sign * best.value
        curve = _Curve(sorted(best.intermediate_values.items()), sign)
        odds = math.exp(_log_odds(own, curve, record, others))
        chance = odds / (1.0 + odds)
        advice["forecast_probability"] = chance
        left = 1.0 - own.progress(self._budget)
        pace = (1.0 + spent) / (1.0 + self._spend * (others + 1))
        behind = own.value[-1] >= (max(ahead, record) if math.isfinite(ahead) else record)
        stop = bool(behind) and odds < _PRICE * left * pace**_HASTE
        return stop, (
            f"P(beating {best.value:g} of trial {best.number}) is {chance:.2g},"
            f" {left:.0%} of the steps to come"
        )

    def _stop(
        self, study: Any, trial: Any, advice: dict[str, Any], stop: bool, reason: str
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
