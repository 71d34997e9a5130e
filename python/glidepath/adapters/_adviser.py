# SPDX-License-Identifier: Apache-2.0
"""What the adapters share: a watch with a budget, a mode, and words for the framework's tracker."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from glidepath._core import InputError
from glidepath._watch import Decision, Watch

__all__ = ["Adviser", "told"]

_log = logging.getLogger("glidepath.adapters")


def told(decision: Decision, stop: bool) -> dict[str, float]:
    """Put a decision into numbers that every tracker can draw, always under the same names.

    Without a target only whether to stop. Steps to the target are those of the median, -1 where it
    is not reached within the budget.
    """
    advice = {"forecast_stop": float(stop)}
    if math.isnan(decision.probability):
        return advice
    steps = decision.steps_to_target[1]
    advice["forecast_steps"] = steps if math.isfinite(steps) else -1.0
    return {"forecast_probability": decision.probability, **advice}


class Adviser:
    """A watch that says what to log, and whether to stop.

    Parameters
    ----------
    mode : {"advise", "act"}
        Whether `stop` is ever true.
    file : path_like, optional
        Where the state is kept between the processes of one run, for frameworks that keep none.
    **watch
        Options of `glidepath.Watch`. Without a budget, that of the framework.
    """

    def __init__(self, mode: str, file: Any = None, **watch: Any) -> None:
        if mode not in ("advise", "act"):
            raise InputError(f"mode {mode!r} is neither 'advise' nor 'act'")
        self.mode = mode
        self._file = None if file is None else Path(file)
        self._options = watch
        self.watch = Watch(**watch)
        self.decision: Decision | None = None

    def begin(self, budget: float | None = None, seen: Iterable[tuple[float, float]] = ()) -> None:
        """Begin anew, or where a run that is resumed has left off.

        Parameters
        ----------
        budget : float, optional
            Of the framework, where the user gave none.
        seen : iterable of (step, loss)
            What the framework remembers of an earlier process.
        """
        options = dict(self._options)
        if options.get("budget") is None and budget is not None and 0 < budget < float("inf"):
            options["budget"] = budget
        self.watch, self.decision = Watch(**options), None
        if self._file is not None and self._file.exists():
            self.resume(json.loads(self._file.read_text()))
        for step, loss in seen:
            self.watch.add(step, loss)

    def resume(self, state: dict[str, Any]) -> None:
        """Take up what was seen from the state of another watch; target and budget stay ours."""
        ours = self.watch.state_dict()
        state = (
            state
            | {name: ours[name] for name in ("target", "budget", "direction", "alpha")}
            | ({} if state.get("target") == ours["target"] else {"reached_step": None})
        )
        self.watch.load_state_dict(state)

    def add(self, step: float, loss: float) -> dict[str, float]:
        """Add what was observed; give what a tracker should log."""
        self.watch.add(float(step), float(loss))
        before, self.decision = self.decision, self.watch.decision()
        if self._file is not None:
            new = self._file.with_name(f"{self._file.name}.new")
            new.write_text(json.dumps(self.watch.state_dict()))
            new.replace(self._file)  # never half a state
        if before is None or before.verdict != self.decision.verdict:
            does = "stops" if self.mode == "act" else "would stop"
            level = logging.WARNING if self.decision.stop else logging.INFO
            _log.log(
                level,
                "step %g: %s: %s%s",
                step,
                self.decision.verdict,
                self.decision.reason,
                f" ({does})" if self.decision.stop else "",
            )
        return told(self.decision, self.decision.stop)

    def end(self, metric: str) -> None:
        """Forget the file, as the run has ended; tell where it never logged the metric."""
        if self.decision is None:
            _log.warning("%r was never logged: nothing was forecast", metric)
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    @property
    def stop(self) -> bool:
        """Whether the framework should stop now."""
        return self.mode == "act" and self.decision is not None and self.decision.stop
