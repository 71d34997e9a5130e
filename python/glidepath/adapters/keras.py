# SPDX-License-Identifier: Apache-2.0
"""Keras 3, on any backend."""

from __future__ import annotations

import os
from typing import Any

from glidepath._results import require
from glidepath.adapters._adviser import Adviser

__all__ = ["ForecastCallback"]


class ForecastCallback(require("keras").callbacks.Callback):  # type: ignore[misc]
    """Forecast after each epoch whether the training reaches its target.

    Parameters
    ----------
    target : float, optional
        Value to reach.
    monitor : str, optional
        A name of the epoch's logs.
    mode : {"advise", "act"}, optional
        ``"act"`` stops the training when the target is reached or the run is lost.
    state : path_like, optional
        A file that keeps the observations, for a run that is interrupted and resumed, as with
        `keras.callbacks.BackupAndRestore`; it is removed when the training ends.
    **watch
        `patience`, the looks in a row at which a run must be lost before it is stopped (5), and
        options of `glidepath.Watch`; the budget is by default the number of epochs,
        direction and `reached_by` are what the name of the metric says.

    Notes
    -----
    The forecast goes to the history and to all callbacks after this one, such as `CSVLogger` and
    `TensorBoard`: name this one first.
    """

    def __init__(
        self,
        target: float | None = None,
        *,
        monitor: str = "val_loss",
        mode: str = "advise",
        state: str | os.PathLike[str] | None = None,
        **watch: Any,
    ) -> None:
        super().__init__()
        self.monitor = monitor
        self.adviser = Adviser(mode, state, metric=monitor, target=target, **watch)

    def on_train_begin(self, logs: Any = None) -> None:
        """Begin, or go on from the state in the file."""
        self.adviser.begin(self.params["epochs"])

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Forecast; epochs are counted from 1."""
        if self.monitor not in (logs or {}):
            self.adviser.lacks(logs or ())
        else:
            logs.update(self.adviser.add(epoch + 1, logs[self.monitor]))
            if self.adviser.stop:
                self.model.stop_training = True

    def on_train_end(self, logs: Any = None) -> None:
        """Remove the file; warn where the metric was never logged."""
        self.adviser.end()
