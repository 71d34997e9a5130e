# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer, as `lightning` or `pytorch_lightning`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from glidepath._results import require
from glidepath.adapters._adviser import Adviser, steady_rate

__all__ = ["ForecastCallback"]

_lightning = require("pytorch_lightning" if find_spec("lightning") is None else "lightning.pytorch")


class ForecastCallback(_lightning.Callback):  # type: ignore[name-defined]
    """Forecast after each validation, or each few steps, whether the training reaches its target.

    Parameters
    ----------
    target : float, optional
        Value to reach.
    monitor : str, optional
        A metric that the module logs.
    every_n_steps : int, optional
        Optimizer steps between two looks at the metric; by default each validation is one look.
    mode : {"advise", "act"}, optional
        ``"act"`` stops the training when the target is reached or the run is lost.
    **watch
        `patience`, the looks in a row at which a run must be lost before it is stopped (5), and
        options of `glidepath.Watch`; the budget is by default all steps of the Trainer, the
        schedule that of a `LambdaLR` that is stepped with the optimizer, direction and
        `reached_by` are what the name of the metric says.
    """

    def __init__(
        self,
        target: float | None = None,
        *,
        monitor: str = "val_loss",
        every_n_steps: int | None = None,
        mode: str = "advise",
        **watch: Any,
    ) -> None:
        self.monitor, self.every_n_steps = monitor, every_n_steps
        self.adviser = Adviser(mode, metric=monitor, target=target, **watch)
        # Lightning calls these when it writes and reads a checkpoint.
        self.state_dict, self.load_state_dict = self.adviser.state, self.adviser.keep

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin, or go on from the state of a checkpoint."""
        rate = steady_rate(trainer.lr_scheduler_configs)
        self.adviser.begin(trainer.estimated_stepping_batches, rate=rate)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Forecast, unless `every_n_steps` is given."""
        if self.every_n_steps is None and not trainer.sanity_checking:
            self._look(trainer)

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """Forecast every few steps of the optimizer; a step may take several batches."""
        if self.every_n_steps and trainer.global_step % self.every_n_steps == 0:
            self._look(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Warn where nothing that an epoch logs is the metric; by now all of it is there."""
        validated = (trainer.current_epoch + 1) % (trainer.check_val_every_n_epoch or 1) == 0
        if validated and self.monitor not in trainer.callback_metrics:
            self.adviser.lacks(trainer.callback_metrics)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Warn where the metric was never logged."""
        self.adviser.end()

    def _look(self, trainer: Any) -> None:
        numbers = self.adviser.look(trainer.global_step, trainer.callback_metrics.get(self.monitor))
        for logger in trainer.loggers if numbers else ():
            logger.log_metrics(numbers, step=trainer.global_step)
        stop = trainer.should_stop or self.adviser.stop
        trainer.should_stop = trainer.strategy.reduce_boolean_decision(stop, all=False)
