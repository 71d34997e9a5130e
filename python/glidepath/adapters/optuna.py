# SPDX-License-Identifier: Apache-2.0
"""Optuna: prune trials that cannot win."""

from __future__ import annotations

from typing import Any

from glidepath._results import require
from glidepath._watch import Watch
from glidepath.adapters._adviser import PATIENCE, Adviser, advice, judge

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
    patience : int, optional
        Reports in a row at which a trial must be lost before it is pruned.
    **watch
        Options of `glidepath.Watch` but the direction, which is the study's.

    Notes
    -----
    All state is in the storage of the study, so a study can go on in another process.
    """

    def __init__(
        self,
        budget: float,
        *,
        target: float | None = None,
        mode: str = "advise",
        patience: int = PATIENCE,
        **watch: Any,
    ) -> None:
        self._mode, self._target, self._patience = mode, target, patience
        self._options = {**watch, "budget": budget}
        # Refuses bad options now, not at the first report.
        Adviser(mode, patience=patience, target=target, **self._options)

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
        decision, over = judge(watch, reported, self._patience)
        hopeless = over and decision.verdict != "reached"
        attributes = {**advice(decision, stop=hopeless), "forecast_reason": decision.reason}
        for name, value in attributes.items():
            # As Optuna's own pruners do: the trial that a pruner gets cannot be written to.
            study._storage.set_trial_user_attr(trial._trial_id, name, value)
        return hopeless and self._mode == "act"
