# SPDX-License-Identifier: Apache-2.0
"""Watching one live run: a decision at every point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from glidepath import _core
from glidepath._arguments import number_of
from glidepath._json import check_format, plain, restored, restored_number, restoring
from glidepath._past_runs import PastRuns, past_of
from glidepath._results import Recorded, Shown, counted
from glidepath._schedule import Schedule, schedule_record
from glidepath._trace import as_traces

if TYPE_CHECKING:
    from glidepath._core import DecisionRecord, WatchRecord
    from glidepath._trace import Trace

_FORMAT = "glidepath.watch"
_VERSION = 5
SETTINGS = ("target", "budget", "direction", "alpha", "reached_by", "schedule")
VERDICTS: tuple[str, ...] = _core.VERDICTS
ALPHA: float = _core.WATCH_ALPHA
READING: str = _core.READING  # of a target, where no name of a metric is known


class Decision(Recorded):
    """What to expect of a run; `Watch.decision` makes them."""

    __slots__ = ()
    _record: DecisionRecord

    @property
    def verdict(self) -> str:
        """``"unknown"``, ``"reached"``, ``"will_reach"``, ``"never"`` or ``"diverged"``."""
        return self._record.verdict

    @property
    def probability(self) -> float:
        """Probability of reaching the target within the budget; NaN without a target.

        1 where it was reached, be it after the budget, for which `reach` says never.
        """
        return self._record.probability

    @property
    def steps_to_target(self) -> tuple[float, float, float]:
        """Steps still needed, quantiles 0.1, 0.5 and 0.9; inf where the target is not reached."""
        return self._record.steps_to_target

    @property
    def reason(self) -> str:
        """The numbers behind the verdict, in words."""
        return self._record.reason

    def _check(self) -> None:
        steps = self.steps_to_target
        if self.probability < 0 or self.probability > 1:
            raise ValueError(f"probability is {self.probability:g}, expected 0 to 1")
        if any(after < before for before, after in pairwise((0.0, *steps))):
            raise ValueError(f"quantiles {steps} of the steps to the target do not rise from 0")

    def _summary(self) -> str:
        return f"{self.verdict}: {self.reason}"


class Watch(Shown):
    """Watch one live run.

    Parameters
    ----------
    target : float, optional
        Loss to reach. Without one a watch looks only for divergence, and all options below but
        `direction` are refused.
    budget : float, optional
        Absolute step after which the run ends; default: ten times the steps seen so far.
    direction : {"min", "max"}, optional
        Whether the metric is better when low or when high.
    schedule : Schedule, optional
        Planned learning rate of the whole run: what its decay will bring is then foreseen.
    past : PastRuns or list of Trace, optional
        Finished runs of the same kind and direction. Not part of the state: pass them again. They
        are weighed without `Trace.settings`, as a watch has none of its run; `reach` has them.
    alpha : float, optional
        Error rate of the verdicts will_reach and never, a probability. never spends it as the run
        spends its budget, with the cube of the share that has passed.
    reached_by : {"curve", "point"}, optional
        By what the target is reached, as for `reach`; a watch knows no name of a metric, so the
        default is the curve.

    Raises
    ------
    InputError
        When the target is NaN, the budget is not finite or not above 0, `alpha` is not between 0
        and 0.5, a past run has the other direction, or an option that a target needs comes without
        one.

    Notes
    -----
    `add` costs microseconds, `decision` one forecast. A decision is computed from the state each
    time: later points may take it back, unless the target was reached.
    """

    __slots__ = ("_past", "_record", "_settings")

    def __init__(
        self,
        *,
        target: float | None = None,
        budget: float | None = None,
        direction: str = "min",
        schedule: Schedule | None = None,
        past: Sequence[Trace] | PastRuns | None = None,
        alpha: float = ALPHA,
        reached_by: str = READING,
    ) -> None:
        self._settings: dict[str, Any] = {
            "target": None if target is None else number_of(target),
            "budget": None if budget is None else number_of(budget),
            "direction": direction,
            "alpha": number_of(alpha),
            "reached_by": reached_by,
        }
        self._past: list[Trace] | PastRuns | None = (
            past if past is None or isinstance(past, PastRuns) else list(as_traces(past, "past"))
        )
        self._record: WatchRecord = _core.WatchRecord(
            **self._settings, schedule=schedule_record(schedule), past=past_of(self._past)
        )
        self._settings["schedule"] = schedule

    @property
    def past(self) -> list[Trace] | PastRuns | None:
        """The finished runs that were given."""
        return self._past

    def add(self, step: float, loss: float, lr: float | None = None) -> None:
        """Append one observation; a step that goes back is a restart from a checkpoint.

        Parameters
        ----------
        step, loss : float
            The loss may be NaN or infinite; the step must be finite.
        lr : float, optional
            Learning rate that was used, by default as planned. It takes the place of the schedule's
            at that step, however far the two are apart.

        Raises
        ------
        InputError
            When the step is not finite, or the rate is negative or comes without a schedule, where
            it could have no effect.
        """
        self._record.add(step, loss, math.nan if lr is None else lr)

    def decision(self) -> Decision:
        """Decide from all points so far."""
        return Decision._of(self._record.decision())

    def to_dict(self) -> dict[str, Any]:
        """Give everything but `past`, as a few kilobytes of plain lists and numbers."""
        schedule = self._settings["schedule"]
        state: dict[str, Any] = {"format": _FORMAT, "version": _VERSION, **plain(self._settings)}
        state["schedule"] = None if schedule is None else schedule.to_dict()
        state.update(plain(self._record.state))
        if all(rate is None for rate in state["lr"]):
            state["lr"] = []
        return state

    @classmethod
    def from_dict(
        cls, state: Mapping[str, Any], *, past: Sequence[Trace] | PastRuns | None = None
    ) -> Watch:
        """Make the watch that wrote `to_dict`, settings included.

        Parameters
        ----------
        state : dict
            What `to_dict` gave.
        past : PastRuns or list of Trace, optional
            The past runs, which are not part of the state.

        Returns
        -------
        Watch

        Raises
        ------
        InputError
            When it is no state of a watch, of another version, or damaged.
        """
        check_format(state, "watch", _FORMAT, _VERSION)
        with restoring("watch"):
            settings = {key: state[key] for key in SETTINGS}
            for key in ("target", "budget"):
                settings[key] = None if settings[key] is None else restored_number(settings[key])
            seen = {name: state[name] for name in _core.WatchState.__annotations__}
            seen["lr"] = seen["lr"] or [None] * len(seen["step"])
            if settings["target"] is None:  # what else the state has is without effect
                settings = {"direction": settings["direction"]}
                seen["lr"] = [None] * len(seen["step"])
            elif settings["schedule"] is not None:
                settings["schedule"] = Schedule.from_dict(settings["schedule"])
            watch = cls(**settings, past=past)
            watch._record.restore(restored(seen, _core.WatchState))
            return watch

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Watch):
            return NotImplemented
        return self.to_dict() == other.to_dict() and self._past == other._past

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Watch.from_dict, past=self._past), (self.to_dict(),)

    def _summary(self) -> str:
        state, target = self._record.state, self._settings["target"]
        points = state.points
        parts = [counted(points, "point")]
        if points:
            parts[0] += f" to step {state.last_step:g}"
        if target is not None:
            parts.append(f"target {target:g} by the {self._settings['reached_by']}")
        if self._settings["budget"] is not None:
            parts.append(f"budget {self._settings['budget']:g}")
        return ", ".join(parts)

    def _rows(self) -> Iterator[tuple[str, str]]:
        decision = self.decision()
        yield decision.verdict, decision.reason
