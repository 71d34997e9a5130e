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
        Look at the metric after so many optimizer steps; by default after each validation.
    mode : {"advise", "act"}, optional
        ``"act"`` stops the training when the target is reached, out of reach, or lost.
    **watch
        `patience`, the looks for which a run must count as lost before it is stopped (5), and
        options of `glidepath.Watch`; the budget is by default all steps of the Trainer, the
        schedule that of a `LambdaLR` that is stepped with the optimizer.
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
        self.adviser = Adviser(mode, target=target, **watch)
        # What Lightning asks for when it writes and reads a checkpoint.
        self.state_dict, self.load_state_dict = self.adviser.state, self.adviser.keep

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin, or take up the state of a checkpoint."""
        rate = steady_rate(trainer.lr_scheduler_configs)
        self.adviser.begin(trainer.estimated_stepping_batches, rate=rate)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Forecast, unless it is done each few steps."""
        if self.every_n_steps is None and not trainer.sanity_checking:
            self._look(trainer)

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """Forecast at each few steps of the optimizer, of which several batches may make one."""
        if self.every_n_steps and trainer.global_step % self.every_n_steps == 0:
            self._look(trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Tell where there was nothing to look at."""
        self.adviser.end(self.monitor)

    def _look(self, trainer: Any) -> None:
        told = self.adviser.look(trainer.global_step, trainer.callback_metrics.get(self.monitor))
        for logger in trainer.loggers if told else ():
            logger.log_metrics(told, step=trainer.global_step)
        stop = trainer.should_stop or self.adviser.stop
        trainer.should_stop = trainer.strategy.reduce_boolean_decision(stop, all=False)
