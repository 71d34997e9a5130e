# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer, and what is built on it (TRL, Axolotl, LLaMA-Factory)."""

from __future__ import annotations

import math
from typing import Any

from glidepath._results import require
from glidepath.adapters._adviser import Adviser, lambda_rate, numeric

__all__ = ["ForecastCallback"]


class ForecastCallback(require("transformers").TrainerCallback):  # type: ignore[misc]
    """Forecast at each logged loss whether the training reaches its target.

    Parameters
    ----------
    target : float, optional
        Loss to reach.
    metric : str, optional
        ``"loss"`` of training, or such as ``"eval_loss"``.
    mode : {"advise", "act"}, optional
        ``"act"`` stops the training when the target is reached or the run is lost.
    **watch
        `patience`, the looks in a row at which a run must be lost before it is stopped (5), and
        options of `glidepath.Watch`; budget and schedule are by default the Trainer's,
        direction and `reached_by` are what the name of the metric says.

    Notes
    -----
    The forecast goes to the log history, and to all callbacks after this one. The Trainer puts the
    trackers of ``report_to=`` before those of ``callbacks=``: `lead` changes that. Resuming needs
    no settings, as the Trainer's checkpoint has the log history.
    """

    def __init__(
        self,
        target: float | None = None,
        *,
        metric: str = "loss",
        mode: str = "advise",
        **watch: Any,
    ) -> None:
        self.metric = metric
        self.adviser = Adviser(mode, metric=metric, target=target, **watch)

    def lead(self, trainer: Any) -> None:
        """Put this callback first in a Trainer, so that its trackers log the forecast too."""
        trainer.remove_callback(self)
        trainer.callback_handler.callbacks.insert(0, self)

    def on_train_begin(
        self, args: Any, state: Any, control: Any, lr_scheduler: Any = None, **_: Any
    ) -> None:
        """Begin with the observations of the log history."""
        seen = ((row["step"], self._loss(row)) for row in state.log_history if self.metric in row)
        self.adviser.begin(state.max_steps, seen, lambda_rate(lr_scheduler))

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Forecast. Every process sees the same loss, so that all stop together."""
        if logs and self.metric in logs:
            numbers = self.adviser.add(state.global_step, self._loss(logs))
            logs.update(numbers)
            state.log_history[-1].update(numbers)
            control.should_training_stop |= self.adviser.stop
        elif logs and self._due(args, logs):
            self.adviser.lacks(logs)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Warn where the metric was never logged."""
        self.adviser.end()

    def _due(self, args: Any, logs: dict[str, Any]) -> bool:
        """Whether logs of this kind, of training or of evaluation, should have the metric."""
        evaluates = str(getattr(args.eval_strategy, "value", args.eval_strategy)) != "no"
        if self.metric.startswith("eval_") and evaluates:
            return any(name.startswith("eval_") for name in logs)
        return "loss" in logs

    def _loss(self, row: dict[str, Any]) -> float:
        # The Trainer writes 0 for a loss that is NaN; the gradient's norm tells.
        loss, norm = numeric(self.metric, row[self.metric]), row.get("grad_norm")
        masked = loss == 0 and norm is not None and math.isnan(numeric("grad_norm", norm))
        return math.nan if masked else loss
