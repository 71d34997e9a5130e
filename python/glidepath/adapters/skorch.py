# SPDX-License-Identifier: Apache-2.0
"""skorch: PyTorch behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from glidepath._judge import PATIENCE
from glidepath._results import require
from glidepath._schedule import Schedule
from glidepath._trace import Trace
from glidepath._watch import ALPHA
from glidepath.adapters._adviser import Adviser

__all__ = ["ForecastCallback"]


class ForecastCallback(require("skorch.callbacks").Callback):  # type: ignore[misc]
    """Forecast after each epoch whether the training reaches its target.

    Parameters
    ----------
    target : float, optional
        Value to reach.
    monitor : str, optional
        A name of the net's history.
    mode : {"advise", "act"}, optional
        ``"act"`` stops the training when the target is reached or the run is lost.
    patience : int, optional
        Epochs in a row at which a run must be lost before it is stopped.
    budget, direction, schedule, past, alpha, reached_by
        As for `glidepath.Watch`; the budget is by default all epochs of the net, direction and
        `reached_by` are what the name of the metric says.

    Notes
    -----
    The forecast goes to the history. A net whose history is loaded goes on as if it had never
    stopped.
    """

    def __init__(
        self,
        target: float | None = None,
        *,
        monitor: str = "valid_loss",
        mode: str = "advise",
        patience: int = PATIENCE,
        budget: float | None = None,
        direction: str | None = None,
        schedule: Schedule | None = None,
        past: Sequence[Trace] | None = None,
        alpha: float = ALPHA,
        reached_by: str | None = None,
    ) -> None:
        # Kept as they are: scikit-learn clones what it finds under these names.
        self.target, self.monitor, self.mode, self.patience = target, monitor, mode, patience
        self.budget, self.direction, self.past, self.alpha = budget, direction, past, alpha
        self.schedule, self.reached_by = schedule, reached_by

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **_: Any) -> None:  # noqa: N803
        """Begin with the observations of the history."""
        options = self.get_params(deep=False)
        self.adviser_ = Adviser(metric=options.pop("monitor"), **options)
        seen = [(row["epoch"], row[self.monitor]) for row in net.history if self.monitor in row]
        self.adviser_.begin(len(net.history) + net.max_epochs, seen)

    def on_epoch_end(self, net: Any, **_: Any) -> None:
        """Forecast; stop as skorch's own `EarlyStopping` does."""
        row = net.history[-1]
        if self.monitor in row:
            for name, value in self.adviser_.add(row["epoch"], row[self.monitor]).items():
                net.history.record(name, value)
            if self.adviser_.stop:
                raise KeyboardInterrupt
        else:
            self.adviser_.lacks(name for name in row if name not in ("batches", "epoch", "dur"))

    def on_train_end(self, net: Any, X: Any = None, y: Any = None, **_: Any) -> None:  # noqa: N803
        """Warn where the metric was never logged."""
        self.adviser_.end()
