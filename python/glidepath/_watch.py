# SPDX-License-Identifier: Apache-2.0
"""Watching one live run: a decision at every point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from glidepath import _core
from glidepath._core import InputError
from glidepath._forecast import _runs
from glidepath._results import Result

if TYPE_CHECKING:
    from glidepath._trace import Trace

__all__ = ["Decision", "Watch"]

_FORMAT = "glidepath.watch"
_VERSION = 2
SETTINGS = ("target", "budget", "direction", "alpha", "schedule")
# Numbers that JSON has no word for are written as null or as one of these.
_WORDS = {math.inf: "inf", -math.inf: "-inf"}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Decision(Result):
    """What to expect of a run.

    Attributes
    ----------
    verdict : str
        ``"reached"``, ``"will_reach"``, ``"never"``, ``"diverged"`` or ``"unknown"``.
    probability : float
        Of reaching the target within the budget; NaN without a target.
    steps_to_target : tuple of float
        Steps still needed, quantiles 0.1, 0.5 and 0.9; inf where the target is not reached.
    reason : str
        In words.
    """

    verdict: str
    probability: float
    steps_to_target: tuple[float, float, float]
    reason: str

    def _summary(self) -> str:
        return f"{self.verdict}: {self.reason}"


def _plain(value: Any) -> Any:
    """Give a number as JSON can carry it: NaN as None, infinities as words."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else _WORDS[value]
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _number(value: Any) -> Any:
    """Undo `_plain`."""
    if value is None:
        return math.nan
    if isinstance(value, str):
        return float(value)
    if isinstance(value, (list, tuple)):
        return [_number(item) for item in value]
    return value


class Watch:
    """Watch one live run.

    Parameters
    ----------
    target : float, optional
        Loss to reach.
    budget : float, optional
        Absolute step after which the run ends; default: ten times the steps seen so far.
    direction : {"min", "max"}, optional
    past : list of Trace, optional
        Finished runs of the same kind and direction. Not part of the state: pass them again.
    alpha : float, optional
        Error rate of the verdicts will_reach and never, a probability. never spends it as the run
        spends its budget, with the cube of the share that has passed.
    schedule : (steps, lr), optional
        Planned learning rate at a few steps of the whole run, straight between them: what its
        decay will bring is then foreseen.

    Notes
    -----
    `add` costs microseconds, `decision` one forecast. A decision is computed from the state each
    time: later points may take it back, unless the target was met.
    """

    __slots__ = ("_past", "_settings", "_watch")

    def __init__(
        self,
        *,
        target: float | None = None,
        budget: float | None = None,
        direction: str = "min",
        past: Sequence[Trace] | None = None,
        alpha: float = 0.02,
        schedule: tuple[Sequence[float], Sequence[float]] | None = None,
    ) -> None:
        self._settings: dict[str, Any] = {
            "target": None if target is None else float(target),
            "budget": None if budget is None else float(budget),
            "direction": str(direction),
            "alpha": float(alpha),
            "schedule": None if schedule is None else [[float(v) for v in row] for row in schedule],
        }
        self._past = None if past is None else list(past)
        self._watch = self._build(self._settings)

    def _build(self, settings: Mapping[str, Any]) -> _core.Watch:
        steps, rates = settings["schedule"] or ([], [])
        return _core.Watch(
            settings["target"],
            settings["budget"],
            settings["direction"],
            _runs(self._past, settings["direction"]),
            settings["alpha"],
            steps,
            rates,
        )

    def add(self, step: float, loss: float, lr: float | None = None) -> None:
        """Append one observation; a step that goes back is a restart from a checkpoint.

        `lr` is the learning rate that was used, by default as planned. Without a `schedule` it is
        of no use: what it will be decides.
        """
        self._watch.add(step, loss, math.nan if lr is None else lr)

    def decision(self) -> Decision:
        """Decide from all points so far."""
        return Decision(*self._watch.decision())

    def state_dict(self) -> dict[str, Any]:
        """Everything but `past`, as a few kilobytes of plain lists and numbers, fit for JSON."""
        state: dict[str, Any] = {"format": _FORMAT, "version": _VERSION}
        state.update(self._settings)
        state.update({key: _plain(value) for key, value in self._watch.state().items()})
        if all(rate is None for rate in state["lr"]):
            state["lr"] = []
        return state

    def load_state_dict(self, state: Any) -> None:
        """Continue from what `state_dict` gave, settings included.

        Raises
        ------
        InputError
            When it is no state of a watch, of a later version, or damaged; nothing is changed.
        """
        if not isinstance(state, Mapping) or state.get("format") != _FORMAT:
            found = state.get("format") if isinstance(state, Mapping) else type(state).__name__
            raise InputError(f"watch: expected a state of format '{_FORMAT}', got {found!r}")
        version = state.get("version")
        if not isinstance(version, int) or not 1 <= version <= _VERSION:
            raise InputError(
                f"watch: state of version {version!r}, this library reads 1 to {_VERSION}"
            )
        if version == 1:  # knew no learning rates
            state = {**state, "schedule": None, "lr": []}
        try:
            settings = {key: state[key] for key in self._settings}
            watch = self._build(settings)
            fields = {key: _number(state[key]) for key in watch.state()}
            fields["lr"] = fields["lr"] or [math.nan] * len(fields["step"])
            watch.restore(fields)
        except KeyError as error:
            raise InputError(f"watch: the state lacks {error.args[0]!r}") from None
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"watch: the state is damaged: {error}") from None
        self._settings, self._watch = settings, watch

    def __getstate__(self) -> dict[str, Any]:
        return {"state": self.state_dict(), "past": self._past}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        state = pickled["state"]
        self._past = pickled["past"]
        self._settings = {key: state.get(key) for key in SETTINGS}
        self._watch = self._build(self._settings)
        self.load_state_dict(state)

    def __repr__(self) -> str:
        state = self._watch.state()
        return f"<Watch: {state['points']} points to step {state['last_step']:g}>"
