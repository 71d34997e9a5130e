# SPDX-License-Identifier: Apache-2.0
"""Optuna: prune the trials that the forecast says cannot win."""

from __future__ import annotations

from typing import Any

from glidepath._results import require
from glidepath._watch import Watch
from glidepath.adapters._adviser import Adviser, told

__all__ = ["ForecastPruner"]


class ForecastPruner(require("optuna").pruners.BasePruner):  # type: ignore[misc]
    """Prune trials that will not reach the best value so far, or a target.

    Parameters
    ----------
    budget : float
        Last step that a trial reports.
    target : float, optional
        Value to reach; by default the best of the trials that are complete. Before there is one,
        only trials that diverged are pruned.
    mode : {"advise", "act"}, optional
        ``"act"`` prunes; both write the forecast and the advice to the trial's user attributes.
    **watch
        Options of `glidepath.Watch` but the direction, which is the study's.

    Notes
    -----
    It keeps nothing: all that it knows is in the study's storage, so that a study goes on in
    another process.
    """

    def __init__(
        self, budget: float, *, target: float | None = None, mode: str = "advise", **watch: Any
    ) -> None:
        self._mode, self._target, self._options = mode, target, {**watch, "budget": budget}
        Adviser(mode, target=target, **self._options)  # refuses now what it would refuse later

    def prune(self, study: Any, trial: Any) -> bool:
        """Judge a trial by all values it has reported."""
        reported = sorted(trial.intermediate_values.items())
        if not reported:
            return False
        direction = "max" if study.direction.name == "MAXIMIZE" else "min"
        target = self._target
        if target is None:
            complete = require("optuna").trial.TrialState.COMPLETE
            values = [t.value for t in study.get_trials(deepcopy=False, states=(complete,))]
            target = (max if direction == "max" else min)(values, default=None)
        watch = Watch(target=target, direction=direction, **self._options)
        for step, value in reported:
            watch.add(step, value)
        decision = watch.decision()
        hopeless = decision.verdict in ("NEVER", "DIVERGED")
        advice = {**told(decision, hopeless), "forecast_reason": decision.reason}
        for name, word in advice.items():
            # As Optuna's own pruners do: a pruner is given no trial that it may write to.
            study._storage.set_trial_user_attr(trial._trial_id, name, word)
        return hopeless and self._mode == "act"
