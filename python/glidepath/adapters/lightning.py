# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer, as `lightning` or `pytorch_lightning`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from glidepath._results import require
from glidepath.adapters._adviser import Adviser, counting, steady_rate

__all__ = ["ForecastCallback"]

_lightning = require("pytorch_lightning" if find_spec("lightning") is None else "lightning.pytorch")


def _address(value: Any) -> int:
    """Where a logged value lies, which is elsewhere after each log; 0 where that is not known."""
    try:
        return int(value.data_ptr())
    except (AttributeError, RuntimeError):  # no tensor, or one without memory of its own
        return 0


class ForecastCallback(_lightning.Callback):  # type: ignore[name-defined]
    """Forecast at each new value of a metric whether the training reaches its target.

    Parameters
    ----------
    target : float, optional
        Value to reach.
    monitor : str, optional
        A metric that the module logs.
    every_n_steps : int, optional
        Optimizer steps between two looks at the metric. By default each validation is one look,
        and each epoch of training without one.
    mode : {"advise", "act"}, optional
        ``"act"`` stops the training when the target is reached or the run is lost.
    **watch
        `patience`, the looks in a row at which a run must be lost before it is stopped (5), and
        options of `glidepath.Watch`; the budget is by default all steps of the Trainer, the
        schedule that of a `LambdaLR` that is stepped with the optimizer, direction and
        `reached_by` are what the name of the metric says.

    Notes
    -----
    A value is looked at once, however long it stands among the metrics of the Trainer: one that is
    logged in each tenth step, or after an epoch, is no news in between.
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
        if every_n_steps is not None:
            every_n_steps = counting("every_n_steps", every_n_steps)
        self.monitor, self.every_n_steps = monitor, every_n_steps
        self.adviser = Adviser(mode, metric=monitor, target=target, **watch)
        # Lightning calls these when it writes and reads a checkpoint.
        self.state_dict, self.load_state_dict = self.adviser.state, self.adviser.keep

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin, or go on from the state of a checkpoint."""
        rate = steady_rate(trainer.lr_scheduler_configs)
        self.adviser.begin(trainer.estimated_stepping_batches, rate=rate)
        # Kept, so that nothing else comes to lie where it does.
        self._seen: Any = None
        self._last_step, self._first_epoch = trainer.global_step, trainer.current_epoch
        self._looked = True  # in this epoch

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Forecast by what the module logged in its own end of the epoch, after that of ours.

        To stop here would be to run an epoch without a batch: that waits for its end.
        """
        self._look_back(trainer)
        self._looked = False

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """Forecast every few steps of the optimizer; a step may take several batches."""
        if self.every_n_steps and trainer.global_step % self.every_n_steps == 0:
            self._look(trainer)
            self._decide(trainer)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Keep what the metric was before."""
        self._before = trainer.callback_metrics.get(self.monitor)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Forecast by what was validated; or by a loss of training, as it is now."""
        if trainer.sanity_checking or trainer.state.fn != "fit":
            return
        validated = self._is_new(trainer, self._before)
        # Where the epoch ends here, its mean is still to come.
        ends = trainer.is_last_batch and not self._looked
        if validated or not (self.every_n_steps or ends):
            self._look(trainer)
        self._decide(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Forecast by the mean of an epoch."""
        self._look_at_epoch(trainer)
        self._decide(trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Warn where nothing was forecast."""
        self._look_back(trainer)
        if self.every_n_steps and self.monitor in trainer.callback_metrics:
            self.adviser.end(f"was logged, but every_n_steps={self.every_n_steps} has not passed")
        else:
            self.adviser.end()

    def _look_back(self, trainer: Any) -> None:
        """End an epoch: by now all that it logs is there."""
        self._look_at_epoch(trainer)
        epochs = trainer.current_epoch
        validated = epochs % (trainer.check_val_every_n_epoch or 1) == 0
        absent = self.monitor not in trainer.callback_metrics
        if absent and validated and epochs > self._first_epoch:
            self.adviser.lacks(trainer.callback_metrics)

    def _look_at_epoch(self, trainer: Any) -> None:
        if self.every_n_steps or not self._looked:
            self._look(trainer)

    def _is_new(self, trainer: Any, seen: Any) -> bool:
        """Whether the metric was logged since it had a value."""
        value = trainer.callback_metrics.get(self.monitor)
        address = _address(value)
        return value is not None and (address == 0 or address != _address(seen))

    def _look(self, trainer: Any) -> None:
        """Look at the metric where it is new."""
        step, every = trainer.global_step, self.every_n_steps or 1
        if step // every > self._last_step // every and self._is_new(trainer, self._seen):
            self._seen = trainer.callback_metrics[self.monitor]
            self._last_step, self._looked = step, True
            numbers = self.adviser.add(step, self._seen)
            for logger in trainer.loggers:
                logger.log_metrics(numbers, step=step)

    def _decide(self, trainer: Any) -> None:
        """Stop all processes of the training, which come here together, where one would."""
        stop = trainer.should_stop or self.adviser.stop
        trainer.should_stop = trainer.strategy.reduce_boolean_decision(stop, all=False)
