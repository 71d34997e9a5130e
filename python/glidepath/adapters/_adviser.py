# SPDX-License-Identifier: Apache-2.0
"""The core of every adapter: a watch with a budget and a mode, and numbers for trackers."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Callable, Iterable
from operator import index
from pathlib import Path
from typing import Any

from glidepath._core import InputError, IoError, direction_by_name, reached_by_name
from glidepath._drafts import write_whole
from glidepath._judge import PATIENCE
from glidepath._schedule import Schedule
from glidepath._verdicts import meaning
from glidepath._watch import READING, SETTINGS, Decision, Watch

_SHOWN_NAMES = 12  # names of metrics in a warning

_log = logging.getLogger("glidepath.adapters")


def advice(decision: Decision, *, stop: bool) -> dict[str, float]:
    """Put a decision into numbers that every tracker can draw, always under the same names.

    Without a target there is only `forecast_stop`. `forecast_steps` is the median of the steps to
    the target, -1 where that is not within the budget.
    """
    numbers = {"forecast_stop": float(stop)}
    if math.isnan(decision.probability):
        return numbers
    steps = decision.steps_to_target[1]
    numbers["forecast_steps"] = steps if math.isfinite(steps) else -1.0
    return {"forecast_probability": decision.probability, **numbers}


def planned(rate: Callable[[float], float], budget: float) -> Schedule:
    """Sample a schedule at 128 steps; drop steps on the line between their neighbours."""
    plan: list[tuple[float, float]] = []
    for step in sorted({float(round(budget * i / 128)) for i in range(129)}):
        point = step, float(rate(step))
        if len(plan) > 1:
            (t0, r0), (t1, r1) = plan[-2:]
            straight = r0 + (point[1] - r0) * (t1 - t0) / (step - t0)
            if abs(straight - r1) <= 1e-9 * abs(r1):
                plan.pop()
        plan.append(point)
    return Schedule([step for step, _ in plan], [lr for _, lr in plan])


def lambda_rate(scheduler: Any) -> Callable[[float], float] | None:
    """Learning rate by step of torch's `LambdaLR`, the class of all Hugging Face schedules.

    None for other schedulers: their rate depends on more than the step, such as on the losses.
    """
    shapes, bases = getattr(scheduler, "lr_lambdas", None), getattr(scheduler, "base_lrs", None)
    if not shapes or not bases:
        return None
    return lambda step: bases[0] * shapes[0](int(step))


def steady_rate(configs: Iterable[Any]) -> Callable[[float], float] | None:
    """`lambda_rate` of the first Lightning scheduler that steps with the optimizer."""
    steady = (c.scheduler for c in configs if (c.interval, c.frequency) == ("step", 1))
    return lambda_rate(next(steady, None))


def numeric(name: str | None, value: Any) -> float:
    """Give what was logged under a name as a number; InputError for what is none."""
    try:
        return float(value)
    except (OverflowError, RuntimeError, TypeError, ValueError):  # torch's is a RuntimeError
        raise InputError(f"{name or 'the loss'} is {value!r:.40}, expected a number") from None


def counting(name: str, value: Any) -> int:
    """Give an option that counts as the whole number of 1 or more that it is; else InputError."""
    try:
        number = 0 if isinstance(value, bool) else index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise InputError(f"{name} is {value!r:.40}, expected a whole number of 1 or more")
    return number


def _direction_of(metric: str) -> str:
    """Tell as `direction_by_name` does; InputError where the name does not say."""
    direction = direction_by_name(metric)
    if direction is None:
        raise InputError(
            f"the name {metric!r} does not say which way is better: give direction='min' or 'max'"
        )
    return direction


class Adviser:
    """A watch that gives the numbers to log, and says whether to stop.

    Parameters
    ----------
    mode : {"advise", "act"}
        With ``"advise"`` `stop` is never true.
    patience : int
        Looks in a row at which the verdict must be never or diverged before `stop` is true;
        counted anew after a resume.
    file : path_like, optional
        File that keeps the state between the processes of one run, for frameworks that keep none.
    metric : str, optional
        Name of what is watched: direction and `reached_by` are by default those that it says.
    **watch
        Options of `glidepath.Watch`. The budget is by default that of the framework.

    Raises
    ------
    InputError
        When an option is refused, or there is neither a direction nor a name that says it.
    IoError
        When `begin` cannot go on from the state in the file.
    """

    def __init__(
        self,
        mode: str,
        file: str | os.PathLike[str] | None = None,
        *,
        patience: int = PATIENCE,
        metric: str | None = None,
        **watch: Any,
    ) -> None:
        if mode not in ("advise", "act"):
            way = f"; say direction={mode!r}" if mode in ("min", "max") else ""
            raise InputError(f"mode is {mode!r}, expected 'advise' or 'act'{way}")
        self.mode, self._patience, self._lost = mode, counting("patience", patience), 0
        self._file = None if file is None else Path(file)
        if metric is not None and watch.get("direction") is None:
            watch["direction"] = _direction_of(metric)
        if watch.get("reached_by") is None and watch.get("target") is not None:
            watch["reached_by"] = READING if metric is None else reached_by_name(metric)
        self._options, self._metric, self._lacked = watch, metric, False
        self._state: dict[str, Any] | None = None
        self.watch = Watch(**watch)
        self.decision: Decision | None = None

    def begin(
        self,
        budget: float | None = None,
        seen: Iterable[tuple[float, float]] = (),
        rate: Callable[[float], float] | None = None,
    ) -> None:
        """Begin anew, or go on where a resumed run was interrupted.

        `seen` are observations of an earlier process, as the framework kept them. The budget of the
        framework, and its learning rate at a step, are used where the user gave none.
        """
        options = dict(self._options)
        if options.get("target") is None:  # then neither has an effect
            budget = rate = None
        if options.get("budget") is None and budget is not None and 0 < budget < float("inf"):
            options["budget"] = budget
        if options.get("schedule") is None and rate is not None and options.get("budget"):
            options["schedule"] = planned(rate, options["budget"])
        self.watch, self.decision, self._lost = Watch(**options), None, 0
        resumed = self._file is not None and self._resume_from(self._file)
        if not resumed and self._state is not None:
            self._resume(self._state)
        self._state = None
        for step, loss in seen:
            self.watch.add(step, loss)

    def state(self) -> dict[str, Any]:
        """Give the state for a checkpoint."""
        return self.watch.to_dict()

    def keep(self, state: dict[str, Any]) -> None:
        """Hold the state of a checkpoint until the training begins."""
        self._state = state

    def _resume(self, state: dict[str, Any]) -> None:
        """Take the observations from the state of another watch; keep our own settings."""
        ours = self.watch.to_dict()
        state = dict(state)
        if any(state.get(name) != ours[name] for name in ("target", "reached_by")):
            state |= {"reached_step": None, "at_target": 0}
        state |= {name: ours[name] for name in SETTINGS}
        self.watch = Watch.from_dict(state, past=self.watch.past)

    def _resume_from(self, file: Path) -> bool:
        """Go on from the state in a file; whether there is one."""
        try:
            if file.exists() and not file.is_file():  # to read a pipe would wait for ever
                raise InputError("it is no regular file")
            state = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(state, dict):
                raise InputError(f"it is {state!r:.40}, expected the state of a watch")
            self._resume(state)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (ValueError, OSError, RecursionError) as error:
            raise IoError(f"{file}: cannot go on from this state ({error})") from None
        return True

    def add(self, step: float, loss: float) -> dict[str, float]:
        """Add an observation; give the numbers for the tracker."""
        self.found()
        self.watch.add(numeric("the step", step), numeric(self._metric, loss))
        stopped, before = self._over, self.decision
        self.decision = self.watch.decision()
        self._lost = self._lost + 1 if meaning(self.decision.verdict).is_lost else 0
        if self._file is not None:
            self._write(self._file)
        stops = self._over and not stopped
        if stops or before is None or before.verdict != self.decision.verdict:
            does = " (stops)" if self.mode == "act" else " (would stop)"
            _log.log(
                logging.WARNING if stops else logging.INFO,
                "step %g: %s: %s%s",
                step,
                self.decision.verdict,
                self.decision.reason,
                does if stops else "",
            )
        return advice(self.decision, stop=self._over)

    def _write(self, path: Path) -> None:
        """Keep the state; a full disk, or a process that shares the file, ends no training."""
        try:
            Path(os.path.realpath(path)).parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(self.watch.to_dict()).encode())
        except OSError as error:
            _log.warning("%s: the state is not kept: %s", path, error.strerror)

    def lacks(self, logged: Iterable[str]) -> None:
        """Warn, once, that a log lacks the metric before any other had it."""
        if not self._lacked:
            self._lacked = True
            names = list(logged)
            more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
            _log.warning(
                "%r is not among the metrics that were logged (%s%s): nothing is forecast until "
                "it is",
                self._metric,
                ", ".join(names[:_SHOWN_NAMES]) or "none",
                more,
            )

    def found(self) -> None:
        """Keep quiet from now on where a log lacks the metric: another one had it."""
        self._lacked = True

    def end(self, why: str = "was never logged") -> None:
        """Remove the file, as the run has ended; warn, and say why, where nothing was forecast."""
        if self.decision is None:
            _log.warning("%r %s: nothing was forecast", self._metric, why)
        if self._file is not None:
            try:
                whole = Path(os.path.realpath(self._file))  # a link to it stays
                if whole.is_file() or not whole.exists():  # and a device, too
                    whole.unlink(missing_ok=True)
            except OSError as error:  # which ends no training either
                _log.warning("%s: the state is not removed: %s", self._file, error.strerror)

    @property
    def _over(self) -> bool:
        reached = self.decision is not None and meaning(self.decision.verdict).is_reached
        return reached or self._lost >= self._patience

    @property
    def stop(self) -> bool:
        """Whether the framework should stop now."""
        return self.mode == "act" and self._over
