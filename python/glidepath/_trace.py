# SPDX-License-Identifier: Apache-2.0
"""Traces: what was logged of a training run, checked once and never changed afterwards."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from glidepath import _core
from glidepath._arguments import number_of
from glidepath._columns import Floats, column_of
from glidepath._core import InputError
from glidepath._results import Result, counted, require

_PACE_ROWS = 32  # last rows whose median pace is the speed now
Direction = Literal["min", "max"]


def _encodable(text: str, field: str) -> str:
    r"""Write a name as UTF-8 can carry it: bytes that are no text as \udcff and the like."""
    if not isinstance(text, str):
        raise TypeError(f"Trace: {field} is {text!r}, expected text")
    return text.encode(errors="backslashreplace").decode()


def _beside(values: ArrayLike | None, name: str, points: int) -> Floats | None:
    """Check an optional column: as long as the others, NaN where it was not recorded."""
    if values is None:
        return None
    column = column_of(values, name)
    if column.size != points:
        raise InputError(f"trace: {points} steps but {column.size} of {name}")
    return column


def _settings_of(given: Mapping[str, float | str | bool] | None) -> dict[str, float | str]:
    """Check settings: words as they are, all else as numbers."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"Trace: settings is {given!r:.60}, expected a dict of numbers and words")
    settings: dict[str, float | str] = {}
    for name, value in given.items():
        key = _encodable(name, "the name of a setting")
        if isinstance(value, (str, bool, np.bool_)):
            settings[key] = _encodable(str(value), f"setting {key!r}")
            continue
        try:
            as_number = float(value)
        except OverflowError:
            largest = f"{sys.float_info.max:.2g}, the largest number"
            raise InputError(f"trace: setting {key!r} is beyond {largest}") from None
        except (TypeError, ValueError):
            raise TypeError(
                f"Trace: setting {key!r} is {value!r:.60}, expected a number or a word"
            ) from None
        settings[key] = as_number
        if not math.isfinite(as_number):
            raise InputError(f"trace: setting {key!r} is {value}, expected a finite number")
    return settings


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Trace(Result):
    """One training run: a metric at increasing steps.

    Parameters
    ----------
    step : array_like, shape (n,)
        Finite and strictly increasing, in the unit of the run (optimizer steps, epochs, tokens).
    loss : array_like, shape (n,)
        The metric at each step. NaN and infinite values are kept: a fit reports them as a status.
    lr : array_like, shape (n,), optional
        Learning rate at each step, NaN where it was not recorded.
    wall_seconds : array_like, shape (n,), optional
        Seconds since the run began, NaN where they were not recorded.
    name : str, optional
        What reports call the run.
    metric : str, optional
        What `loss` holds, as its log calls it: axis labels and tables use it. A rising metric
        within [0, 100] is forecast as a percentage, unless its name calls it a return or reward.
    direction : {"min", "max"}, optional
        Whether the metric is better when low, as a loss is, or when high, as an accuracy is.
    planned_steps : float, optional
        The step at which the run will end by its own plan, in the unit of `step`.
    settings : mapping of str to float, str or bool, optional
        What the run was started with: learning rate, width, batch, GPUs, optimizer. By them past
        runs forecast a run that has hardly begun; `seed` and `random_seed` do not count.
    notes : iterable of str, optional
        What a reader repaired, a sentence each. Two traces are equal whatever their notes say.

    Raises
    ------
    InputError
        When the columns differ in length, the steps do not increase, a learning rate is negative or
        infinite, `planned_steps` is not a positive number or a setting is not finite.
    TypeError
        When a column does not hold numbers, or a setting is neither a number nor a word.

    Notes
    -----
    Columns are copied unless they are read-only already, and no views of arrays that are not; the
    trace's own are read-only. `len()` is the number of points. What is masked in a masked array is
    NaN. To repair steps that repeat or go back, as they do when a run restarts from a checkpoint,
    see `clean`.
    """

    step: Floats
    loss: Floats
    lr: Floats | None
    wall_seconds: Floats | None
    name: str
    metric: str
    direction: Direction
    planned_steps: float | None
    settings: Mapping[str, float | str]
    notes: tuple[str, ...] = field(compare=False)

    def __init__(
        self,
        step: ArrayLike,
        loss: ArrayLike,
        *,
        lr: ArrayLike | None = None,
        wall_seconds: ArrayLike | None = None,
        name: str = "",
        metric: str = "loss",
        direction: str = "min",
        planned_steps: float | None = None,
        settings: Mapping[str, float | str | bool] | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        given: Any = direction
        if not isinstance(given, str) or given not in ("min", "max"):
            raise InputError(f"trace: direction is {direction!r}, expected min or max")
        steps, losses = column_of(step, "step"), column_of(loss, "loss")
        _core.validate_trace(steps, losses)
        rates = _beside(lr, "lr", steps.size)
        if rates is not None:
            bad = np.flatnonzero((rates < 0) | np.isinf(rates))
            if bad.size:
                wrong = f"lr[{bad[0]}] is {rates[bad[0]]:g}"
                raise InputError(f"trace: {wrong}, expected 0 or more and finite, or NaN")
        planned = None if planned_steps is None else number_of(planned_steps)
        if planned is not None and not (0 < planned < math.inf):
            wrong = f"planned_steps is {planned_steps}"
            raise InputError(f"trace: {wrong}, expected above 0 and finite")
        put = object.__setattr__  # the class is frozen
        put(self, "step", steps)
        put(self, "loss", losses)
        put(self, "lr", rates)
        put(self, "wall_seconds", _beside(wall_seconds, "wall_seconds", steps.size))
        put(self, "name", _encodable(name, "name"))
        put(self, "metric", _encodable(metric, "metric"))
        put(self, "direction", direction)
        put(self, "planned_steps", planned)
        put(self, "settings", _settings_of(settings))
        put(self, "notes", (notes,) if isinstance(notes, str) else tuple(notes))

    def __len__(self) -> int:
        return self.step.size

    def __bool__(self) -> bool:
        return True  # a trace without points is still a trace

    def __reduce__(self) -> tuple[Any, ...]:
        return make, ({each.name: getattr(self, each.name) for each in fields(self)},)

    def until(self, step: float) -> Trace:
        """Keep the points up to and including `step`: what was known then. No copy.

        InputError when it is NaN.
        """
        if math.isnan(number_of(step)):
            raise InputError("until: step is nan, expected a number")
        kept = int(np.searchsorted(self.step, step, side="right"))
        return replace(
            self,
            step=self.step[:kept],
            loss=self.loss[:kept],
            lr=None if self.lr is None else self.lr[:kept],
            wall_seconds=None if self.wall_seconds is None else self.wall_seconds[:kept],
        )

    def to_pandas(self) -> Any:
        """Give a pandas DataFrame of step, loss, and lr and wall_seconds where they were logged."""
        columns = {name: getattr(self, name) for name in ("step", "loss", "lr", "wall_seconds")}
        there = {name: column for name, column in columns.items() if column is not None}
        return require("pandas").DataFrame(there)

    def plot(self, ax: Any = None) -> Any:
        """Draw the run; returns the matplotlib Axes."""
        from glidepath._pictures import runs

        return runs.trace(self, ax=ax)

    def _summary(self) -> str:
        parts = [repr(self.name)] if self.name else []
        parts.append(counted(len(self), "point"))
        if len(self):
            steps = f"steps {self.step[0]:g} to {self.step[-1]:g}"
            planned = self.planned_steps
            parts.append(steps if planned is None else f"{steps} of {planned:g} planned")
            parts.append(f"{self.metric} {self.loss[0]:.4g} to {self.loss[-1]:.4g}")
        broken = len(self) - int(np.count_nonzero(np.isfinite(self.loss)))
        if broken:
            parts.append(f"{broken} not finite")
        if self.lr is not None:
            parts.append("with lr")
        if self.direction == "max":
            parts.append("higher is better")
        return "; ".join([", ".join(parts), *self.notes])


def pace(trace: Trace) -> float | None:
    """Give the median steps per second of the last rows, by the log's clock; None without one.

    A pause between two attempts does not count.
    """
    if trace.wall_seconds is None:
        return None
    steps = np.diff(trace.step[-_PACE_ROWS:])
    seconds = np.diff(trace.wall_seconds[-_PACE_ROWS:])
    good = seconds > 0
    return float(np.median(steps[good] / seconds[good])) if good.any() else None


def agree(one: Trace, other: Trace) -> bool:
    """Whether two runs have the same points as far as both go."""
    n = min(len(one), len(other))
    return np.array_equal(one.step[:n], other.step[:n]) and np.array_equal(
        one.loss[:n], other.loss[:n], equal_nan=True
    )


def make(values: Mapping[str, Any]) -> Trace:
    """Build a trace from its fields by name; its columns belong to nobody else."""
    for column in values.values():
        if isinstance(column, np.ndarray):
            column.flags.writeable = False
    return Trace(**values)


def of_record(record: _core.TraceRecord, **changes: Any) -> Trace:
    """Give the trace of a record, in which an empty column is absent, with other values in some."""
    values = {each.name: getattr(record, each.name) for each in fields(Trace)}
    for name in ("lr", "wall_seconds"):
        if not values[name].size:
            values[name] = None
    return make(values | changes)


def renamed(trace: Trace, name: str) -> Trace:
    """Give the trace under another name."""
    return replace(trace, name=name)


def as_trace(given: Any, verb: str) -> Trace:
    """Take what was given for a trace.

    One, a tuple of its steps and losses, a data frame of one run, or an object with `step`, `loss`
    and perhaps other attributes of a trace. InputError, with what would make one, for all else.
    """
    if isinstance(given, Trace):
        return given
    if isinstance(given, tuple) and len(given) == 2:
        return Trace(*given)
    like_one = hasattr(given, "step") and hasattr(given, "loss")
    # Arrow may be missing, and pandas gives its columns as attributes.
    if hasattr(given, "__arrow_c_stream__") and not (like_one and find_spec("pyarrow") is None):
        runs = _runs_of_frame(given)
        if len(runs) != 1:
            raise InputError(f"{verb}: expected one run, the data frame has {len(runs)}")
        return runs[0]
    if like_one:
        names = [each.name for each in fields(Trace) if hasattr(given, each.name)]
        return Trace(**{name: getattr(given, name) for name in names})
    raise InputError(
        f"{verb}: expected a gp.Trace, got {type(given).__name__}: gp.Trace(step, loss) makes one"
    )


def _runs_of_frame(frame: Any) -> list[Trace]:
    from glidepath.readers._open import read_traces  # it makes traces

    return read_traces(frame)


def refuse_traces(step: Any, verb: str) -> None:
    """InputError where traces were given for the steps that rows of losses share."""
    given = step if isinstance(step, (list, tuple)) else (step,)
    if any(isinstance(each, Trace) for each in given):
        raise InputError(
            f"{verb}: a gp.Trace has steps and losses of its own, expected the steps that the rows"
            " of loss share"
        )


def as_traces(given: Any, verb: str) -> tuple[Trace, ...]:
    """Take a list of what `as_trace` takes, or a data frame of runs; InputError where it is not."""
    if hasattr(given, "__arrow_c_stream__"):
        return tuple(_runs_of_frame(given))
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Mapping)):
        name = "one gp.Trace" if isinstance(given, Trace) else type(given).__name__
        raise InputError(f"{verb}: expected a list of gp.Trace, got {name}")
    return tuple(as_trace(each, verb) for each in given)
