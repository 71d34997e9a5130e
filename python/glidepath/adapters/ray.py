# SPDX-License-Identifier: Apache-2.0
"""Ray Tune: stop trials that are reached or lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from glidepath._core import InputError
from glidepath._results import require
from glidepath.adapters._adviser import Adviser

__all__ = ["ForecastStopper"]

_OF_TUNE = {  # what Tune adds to each result
    *("timestamp", "checkpoint_dir_name", "should_checkpoint", "done", "trial_id", "date", "pid"),
    *("time_this_iter_s", "time_total_s", "time_since_restore", "iterations_since_restore"),
    *("training_iteration", "hostname", "node_ip", "config", "experiment_tag"),
}


class ForecastStopper(require("ray.tune").Stopper):  # type: ignore[misc]
    """Forecast whether each trial reaches a target.

    Parameters
    ----------
    metric : str
        Name of a metric that trials report.
    target : float, optional
        Value to reach.
    time_attr : str, optional
        Name of the counter of their steps.
    mode : {"advise", "act"}, optional
        ``"act"`` stops a trial when its target is reached or it is lost.
    state : path_like, optional
        A folder, with one file a trial, that keeps the observations for `Tuner.restore`.
    **watch
        `patience`, the looks in a row at which a run must be lost before it is stopped (5), and
        options of `glidepath.Watch`; direction and `reached_by` are by default what the name of the
        metric says.

    Notes
    -----
    The forecast goes into each result, and so to all of Tune's loggers. A result without the
    metric, or with None for it, is passed over; one without `time_attr` is an InputError.
    """

    def __init__(
        self,
        metric: str,
        target: float | None = None,
        *,
        time_attr: str = "training_iteration",
        mode: str = "advise",
        state: str | os.PathLike[str] | None = None,
        **watch: Any,
    ) -> None:
        self._metric, self._time = metric, time_attr
        self._folder = None if state is None else Path(state).resolve()
        if self._folder is not None and self._folder.is_file():
            raise InputError(f"state {self._folder} is a file, expected a folder")
        self._options = {**watch, "metric": metric, "mode": mode, "target": target}
        self._trials: dict[str, Adviser] = {}
        self._first = Adviser(**self._options)  # refuses bad options now; warns for all trials

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Judge a trial by a new result."""
        if result.get(self._metric) is None:
            self._first.lacks(
                name for name in result if name not in (*_OF_TUNE, self._time, self._metric)
            )
            return False
        if self._time not in result:
            raise InputError(
                f"time_attr {self._time!r} is not among what trials report: {', '.join(result)}"
            )
        adviser = self._trials.get(trial_id)
        if adviser is None:
            file = None if self._folder is None else self._folder / f"{trial_id}.json"
            adviser = self._trials[trial_id] = Adviser(file=file, **self._options)
            adviser.begin()
        self._first.found()
        result.update(adviser.add(result[self._time], result[self._metric]))
        return adviser.stop

    def stop_all(self) -> bool:
        """Leave the experiment to its trials."""
        return False
