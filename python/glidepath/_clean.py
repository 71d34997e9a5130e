# SPDX-License-Identifier: Apache-2.0
"""A trace of raw logs: finite, in the order of its steps, thinned, and what that took."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from glidepath import _core
from glidepath._arguments import checked
from glidepath._columns import unmasked
from glidepath._core import InputError
from glidepath._results import Result, counted
from glidepath._trace import Trace, as_trace, of_record


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cleaned(Result):
    """A trace fit for fitting, and what had to be done to it.

    Attributes
    ----------
    trace : Trace
    dropped_nonfinite : int
        Points left out because step or loss was NaN or infinite.
    dropped_repeats : int
        Points left out because their step was recorded again later.
    pulled_in : int
        Spikes pulled in to the range of their neighbours.
    thinned : int
        Points left out by thinning.
    """

    trace: Trace
    dropped_nonfinite: int
    dropped_repeats: int
    pulled_in: int
    thinned: int

    def _summary(self) -> str:
        done = [
            f"{count} {what}"
            for count, what in (
                (self.dropped_nonfinite, "not finite dropped"),
                (self.dropped_repeats, "repeated dropped"),
                (self.pulled_in, "spikes pulled in"),
                (self.thinned, "thinned out"),
            )
            if count
        ]
        return f"{counted(len(self.trace), 'point')}, {', '.join(done) or 'nothing to do'}"


@checked
def clean(
    step: ArrayLike | Trace,
    loss: ArrayLike | None = None,
    *,
    lr: ArrayLike | None = None,
    wall_seconds: ArrayLike | None = None,
    name: str | None = None,
    metric: str | None = None,
    direction: str | None = None,
    planned_steps: float | None = None,
    max_points: int = _core.CLEAN_POINTS,
    winsorize_sigmas: float = 0.0,
) -> Cleaned:
    """Make a trace of raw logs: drop what is not finite, sort by step, thin.

    Where a step was recorded more than once, as after a restart from a checkpoint, the later row
    wins.

    Parameters
    ----------
    step, loss, lr, wall_seconds, name, metric, direction, planned_steps
        As in `Trace`, with its defaults, except that steps may repeat, go back or be NaN. A `Trace`
        in place of `step`, or a data frame of one run, stands for all of them, a tuple for `step`
        and `loss`.
    max_points : int, optional
        More points than this are thinned to as many, evenly in log step, keeping the first and the
        last.
    winsorize_sigmas : float, optional
        Losses further than this many noise levels from the median of the five around them are
        pulled in to that distance; 0 pulls in none. The noise level is the median absolute
        deviation of successive differences.

    Returns
    -------
    Cleaned

    Raises
    ------
    InputError
        When columns differ in length, an option is out of range, or one of a `Trace` is given
        beside it.
    """
    more = {"name": name, "metric": metric, "direction": direction, "planned_steps": planned_steps}
    more = {key: value for key, value in more.items() if value is not None}
    if loss is None and isinstance(step, tuple) and len(step) == 2:
        step, loss = step
    elif loss is None or isinstance(step, Trace):
        step = as_trace(step, "clean")
    if isinstance(step, Trace):
        beside = {"loss": loss, "lr": lr, "wall_seconds": wall_seconds, **more}
        for key, value in beside.items():
            if value is not None:
                raise InputError(f"clean: a Trace has its own {key}")
        raw = step
        step, loss, lr, wall_seconds = raw.step, raw.loss, raw.lr, raw.wall_seconds
        kept = ("name", "metric", "direction", "planned_steps", "settings", "notes")
        more = {key: getattr(raw, key) for key in kept}
    found = _core.clean(
        _core.TraceRecord(
            unmasked(step), unmasked(loss), lr=unmasked(lr), wall_seconds=unmasked(wall_seconds)
        ),
        max_points=max_points,
        winsorize_sigmas=winsorize_sigmas,
    )
    return Cleaned._from_record(found, trace=of_record(found.trace, **more))
