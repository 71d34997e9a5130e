# SPDX-License-Identifier: Apache-2.0
"""What GPUs did over time, as a monitor sampled it: activity, memory, power and energy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from glidepath._columns import Floats
from glidepath._core import InputError, Profile
from glidepath._json import check_format, plain, restored_number, restoring
from glidepath._results import Result, counted
from glidepath._trace import Trace

_FORMAT = ("glidepath.metrics", 1)
JOULES_PER_KWH = 3.6e6

# Every column of `Metrics` and what it is, by which it is drawn; shares are of 1, not percent.
COLUMNS = {
    "power_w": "power, W",
    "energy_counter_j": "energy since the first sample, J",
    "utilization": "share of the time in which a kernel ran",
    "memory_utilization": "share of the time in which memory was read or written",
    "gr_activity": "share of the time in which the graphics or compute engine was busy",
    "sm_activity": "share of the multiprocessors busy",
    "sm_occupancy": "share of the warps that the multiprocessors could hold",
    "tensor_activity": "share of the time in which tensor cores were busy",
    "memory_activity": "share of the time in which device memory was busy",
    "fp64_activity": "share of the time in which FP64 units were busy",
    "fp32_activity": "share of the time in which FP32 units were busy",
    "fp16_activity": "share of the time in which FP16 units were busy",
    "memory_used_gb": "memory in use, GB",
    "memory_total_gb": "memory of the card, GB",
    "temperature_c": "temperature, °C",
    "sm_clock_mhz": "clock of the multiprocessors, MHz",
    "pcie_tx_bytes_s": "sent over PCIe, bytes/s",
    "pcie_rx_bytes_s": "received over PCIe, bytes/s",
    "pcie_tx_sampled_bytes_s": "sent over PCIe by short samples, bytes/s",
    "pcie_rx_sampled_bytes_s": "received over PCIe by short samples, bytes/s",
    "nvlink_tx_bytes_s": "sent over NVLink, bytes/s",
    "nvlink_rx_bytes_s": "received over NVLink, bytes/s",
}
# What says how busy the multiprocessors and the memory are, best first.
SM, MEMORY = (
    ("sm_activity", "gr_activity", "utilization"),
    ("memory_activity", "memory_utilization"),
)


def _numbers(values: ArrayLike, name: str) -> Floats:
    """Copy numbers; InputError where rows differ in length or a number is beyond a double."""
    try:
        return np.array(values, dtype=np.float64, order="C")
    except TypeError:
        raise TypeError(f"Metrics: {name} is {values!r:.40}, expected numbers") from None
    except (OverflowError, ValueError) as error:
        raise InputError(f"metrics: {name}: {error}") from None


def _frozen(values: ArrayLike, name: str, shape: tuple[int, int]) -> Floats:
    """Copy a column to (samples, GPUs), read-only; one GPU may come as (samples,)."""
    found = _numbers(values, name)
    if found.ndim == 1 and shape[1] == 1:
        found = found[:, None]
    if found.shape != shape:
        raise InputError(f"metrics: {name} has shape {found.shape}, expected {shape}")
    signed = name == "temperature_c"
    bad = found[np.isinf(found) if signed else np.isinf(found) | (found < 0)]
    if bad.size:
        least = "" if signed else "0 or more and "
        raise InputError(f"metrics: {name} has a value {bad[0]:g}, expected {least}finite ones")
    found.flags.writeable = False
    return found


def _trapezoids(time: Floats, values: Floats) -> Floats:
    """Areas below a line between its points."""
    return np.asarray(0.5 * (values[1:] + values[:-1]) * np.diff(time))


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Metrics(Result):
    """What a monitor read of some GPUs, over time.

    Parameters
    ----------
    time_s : array_like, shape (n,)
        Seconds since the first sample; finite and strictly increasing, at least one.
    columns : mapping of str to array_like, shape (n, gpus)
        What was read, NaN where it was not; of one GPU also of shape (n,). The names, with their
        units, are those of the table in `docs/formats.md`: ``power_w``, ``energy_counter_j``,
        ``sm_activity``, ``memory_activity``, ``memory_used_gb`` and so on. Activities and
        utilizations are shares of 1, energy counts from the first sample, a GB is 1024 MiB.
    gpus : sequence of str
        Names of the GPUs, as their monitor calls them.
    name : str, optional
        What pictures call it.
    notes : iterable of str, optional
        What a reader repaired, a sentence each. Equality does not look at them.

    Raises
    ------
    InputError
        Times that do not increase, an unknown column, one of another shape, a value that is
        infinite or negative, a GPU twice.

    Notes
    -----
    ``metrics["power_w"]`` is a column, ``"power_w" in metrics`` whether it was sampled, ``len()``
    the number of samples. Columns are read-only.
    """

    time_s: Floats
    columns: Mapping[str, Floats]
    gpus: tuple[str, ...]
    name: str
    notes: tuple[str, ...] = field(compare=False)

    def __init__(
        self,
        time_s: ArrayLike,
        columns: Mapping[str, ArrayLike],
        *,
        gpus: Sequence[str] = ("0",),
        name: str = "",
        notes: Iterable[str] = (),
    ) -> None:
        times = _numbers(time_s, "time_s")
        if times.ndim != 1 or times.size == 0:
            raise InputError(f"metrics: time_s has shape {times.shape}, expected some samples")
        if not np.isfinite(times).all() or (np.diff(times) <= 0).any():
            later = np.append(True, np.diff(times) > 0)
            at = int(np.argmin(np.isfinite(times) & later))
            raise InputError(
                f"metrics: time_s[{at}] is {times[at]:g}, expected finite times that increase"
            )
        names = tuple(str(gpu) for gpu in gpus)
        if not names or len(set(names)) < len(names):
            given = ", ".join(names) or "empty"
            raise InputError(f"metrics: gpus is {given}, expected a name of its own for each")
        for column in columns:
            if column not in COLUMNS:
                known = ", ".join(COLUMNS)
                raise InputError(f"metrics: no column {column!r}, expected one of {known}")
        times.flags.writeable = False
        shape = (times.size, len(names))
        put = object.__setattr__  # the class is frozen
        put(self, "time_s", times)
        put(self, "columns", {key: _frozen(columns[key], key, shape) for key in columns})
        put(self, "gpus", names)
        put(self, "name", str(name))
        put(self, "notes", (notes,) if isinstance(notes, str) else tuple(map(str, notes)))

    def __len__(self) -> int:
        return self.time_s.size

    def __bool__(self) -> bool:
        return True

    def __contains__(self, column: object) -> bool:
        return column in self.columns

    def __getitem__(self, column: str) -> Floats:
        found = self.columns.get(column)
        if found is None:
            raise InputError(f"this log has no {column!r}, only {', '.join(self.columns)}")
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, ({each.name: getattr(self, each.name) for each in fields(self)},)

    @property
    def duration_s(self) -> float:
        """Seconds from the first sample to the last."""
        return float(self.time_s[-1] - self.time_s[0])

    def _with(self, time_s: Floats, columns: Mapping[str, Floats], gpus: Sequence[str]) -> Metrics:
        """Give other samples the name and notes of this log."""
        return Metrics(time_s, columns, gpus=gpus, name=self.name, notes=self.notes)

    def until(self, time_s: float) -> Metrics:
        """Keep the samples up to and including a time in seconds: what was known then.

        InputError when it is NaN or before the first sample.
        """
        if math.isnan(time_s):
            raise InputError("metrics: time_s is nan, expected a number")
        return self.between(-math.inf, time_s)

    def between(self, begin_s: float, end_s: float) -> Metrics:
        """Keep the samples from `begin_s` to `end_s`, both included, with the times that they had.

        InputError when one is NaN or no sample is between them.
        """
        if math.isnan(begin_s) or math.isnan(end_s):
            name = "begin_s" if math.isnan(begin_s) else "end_s"
            raise InputError(f"metrics: {name} is nan, expected a number")
        keep = (self.time_s >= begin_s) & (self.time_s <= end_s)
        if not keep.any():
            raise InputError(f"metrics: no sample from {begin_s:g} to {end_s:g} s")
        columns = {key: values[keep] for key, values in self.columns.items()}
        return self._with(self.time_s[keep], columns, self.gpus)

    def only(self, *gpus: str) -> Metrics:
        """Keep some of the GPUs by their names, in the order given.

        InputError that names one which the log does not have; when none is given.
        """
        for gpu in gpus:
            if gpu not in self.gpus:
                raise InputError(f"metrics: no GPU {gpu!r}, only {', '.join(self.gpus)}")
        if not gpus:
            raise InputError("metrics: only() needs the name of a GPU")
        at = [self.gpus.index(gpu) for gpu in gpus]
        columns = {key: values[:, at] for key, values in self.columns.items()}
        return self._with(self.time_s, columns, gpus)

    def busy(self) -> Metrics:
        """Keep the GPUs that did something: a log of a node has those of other jobs too.

        Those with an activity or utilization above 0 for a hundredth of the samples; all of them
        where none has, or the log has neither.
        """
        known = [self.columns[name] for name in SM if name in self.columns]
        if not known:
            return self
        share = np.max([(values > 0).mean(axis=0) for values in known], axis=0)
        kept = [gpu for gpu, busy in zip(self.gpus, share, strict=True) if busy > 0.01]
        return self.only(*kept) if kept and len(kept) < len(self.gpus) else self

    def energy_j(self, *, source: str | None = None) -> float:
        """Energy of all GPUs from the first sample to the last, in joules.

        Parameters
        ----------
        source : {"counter", "power"}, optional
            The energy counter, or the integral of power (trapezoids between its samples); by
            default the counter of each GPU that has one, as power is sampled too rarely to be sure.

        Raises
        ------
        InputError
            An unknown source, or a log without it.
        """
        if source not in (None, "counter", "power"):
            raise InputError(f"energy_j: source is {source!r}, expected 'counter' or 'power'")
        return float(sum(self._energy(g, source)[1][-1] for g in range(len(self.gpus))))

    def energy_at(self, time_s: ArrayLike) -> Floats:
        """Energy of all GPUs from the first sample up to some times, in joules.

        Parameters
        ----------
        time_s : array_like, shape (k,)
            In seconds, as `time_s` of the samples.

        Returns
        -------
        ndarray, shape (k,)
            NaN before the first sample and after the last. ``np.diff(m.energy_at(run.wall_seconds))
            / np.diff(run.step)`` is the energy of a step over a run.

        Raises
        ------
        InputError
            When the log has neither power nor an energy counter of a GPU.
        """
        at = np.asarray(time_s, dtype=np.float64)
        total = np.zeros(at.shape)
        for gpu in range(len(self.gpus)):
            total += np.interp(at, *self._energy(gpu, None))
        return np.where((at >= self.time_s[0]) & (at <= self.time_s[-1]), total, math.nan)

    def _known(self, values: Floats) -> tuple[Floats, Floats]:
        """Times and values of the samples in which a column of one GPU was read."""
        known = np.isfinite(values)
        return self.time_s[known], values[known]

    def _first(self, columns: Iterable[str]) -> str | None:
        """The first of some columns that was sampled, if any."""
        return next((name for name in columns if name in self), None)

    @property
    def _has_energy(self) -> bool:
        """Whether energy was read, and for some time."""
        return self.duration_s > 0 and self._first(("power_w", "energy_counter_j")) is not None

    def _energy(self, gpu: int, source: str | None) -> tuple[Floats, Floats]:
        """Times, and the energy of one GPU up to each of them."""
        for kind, name in (("counter", "energy_counter_j"), ("power", "power_w")):
            if name not in self.columns or source not in (None, kind):
                continue
            time, values = self._known(self.columns[name][:, gpu])
            if time.size < (2 if kind == "counter" and source is None else 1):
                continue
            if kind == "counter":
                return time, values - values[0]
            return time, np.concatenate([[0.0], np.cumsum(_trapezoids(time, values))])
        raise InputError(
            f"this log has no {source or 'power and no energy counter'} of GPU {self.gpus[gpu]}"
        )

    def mean(self, column: str) -> float:
        """Mean over time and GPUs of a column, in its unit; NaN where it was never read.

        Samples weigh by the time between them. InputError where the log has no such column.
        """
        means = []
        for time, values in map(self._known, self[column].T):
            if time.size > 1:
                area = float(_trapezoids(time, values).sum())
                means.append(area / float(time[-1] - time[0]))
            elif time.size:
                means.append(float(values[0]))
        return sum(means) / len(means) if means else math.nan

    def peak(self, column: str) -> float:
        """Largest value of a column, in its unit; NaN, or an InputError, where `mean` gives it."""
        values = self[column]
        return float(np.nanmax(values)) if np.isfinite(values).any() else math.nan

    def profile(
        self,
        *,
        trace: Trace | None = None,
        step_seconds: float | None = None,
        began_s: float = 0.0,
        kind: str = "",
    ) -> Profile:
        """Say what a step of the job takes: what `options_of`, `shared_speeds` and a plan use.

        Parameters
        ----------
        trace : Trace, optional
            A log with `wall_seconds`: the profile is that of the time between its first and its
            last point, and of the steps between them.
        step_seconds : float, optional
            Time of a step, in place of a trace: the profile is that of the whole log.
        began_s : float
            Seconds of this log at which `wall_seconds` of the trace is 0.
        kind : str
            As measured pairs name the job.

        Returns
        -------
        Profile
            `step_joules` of all GPUs of this log together, the watts of one of them, the peak of
            memory, and the activities of multiprocessors and memory by the best of what was read;
            0, or for activities the default of `Profile`, where nothing was.

        Raises
        ------
        InputError
            Neither or both of `trace` and `step_seconds`; a trace without a clock, without two
            points, or outside the time of this log.
        """
        if (trace is None) == (step_seconds is None):
            raise InputError("profile: expected either trace= or step_seconds=")
        seen = self
        if trace is not None:
            step_seconds, seen = self._during(trace, began_s)
        elif began_s != 0.0:
            raise InputError("profile: began_s is for a trace")
        assert step_seconds is not None
        if not 0 < step_seconds < math.inf:
            raise InputError(
                f"profile: step_seconds is {step_seconds:g}, expected above 0 and finite"
            )
        found: dict[str, float] = {"step_seconds": step_seconds}
        if seen._has_energy:
            watts = seen.energy_j() / seen.duration_s
            found["mean_watts"] = watts / len(self.gpus)
            found["step_joules"] = watts * step_seconds
        if "power_w" in self:
            found["peak_watts"] = seen.peak("power_w")
        if "memory_used_gb" in self:
            found["memory_gb"] = seen.peak("memory_used_gb")
        for key, names in (("sm_activity", SM), ("memory_activity", MEMORY)):
            name = self._first(names)
            if name is not None:
                found[key] = min(1.0, seen.mean(name))
        known = {key: value for key, value in found.items() if not math.isnan(value)}
        return Profile(kind=kind, **known)

    def _during(self, trace: Trace, began_s: float) -> tuple[float, Metrics]:
        """Time of a step of a run, and the samples during it."""
        clock = trace.wall_seconds
        known = np.flatnonzero(np.isfinite(clock)) if clock is not None else np.empty(0, int)
        if clock is None or known.size < 2:
            raise InputError("profile: the trace needs two points with wall_seconds")
        first, last = known[0], known[-1]
        seconds = float(clock[last] - clock[first])
        begin, end = began_s + float(clock[first]), began_s + float(clock[last])
        spare = self.duration_s / max(1, len(self) - 1)  # a sample more or less
        if not (begin >= self.time_s[0] - spare and end <= self.time_s[-1] + spare):
            raise InputError(
                f"profile: the run went from {begin:g} to {end:g} s of this log, which goes from "
                f"{self.time_s[0]:g} to {self.time_s[-1]:g} s"
            )
        return seconds / float(trace.step[last] - trace.step[first]), self.between(begin, end)

    def to_dict(self) -> dict[str, Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None."""
        name, version = _FORMAT
        return {
            "format": name,
            "version": version,
            "name": self.name,
            "gpus": list(self.gpus),
            "time_s": plain(self.time_s),
            "columns": {key: plain(values) for key, values in self.columns.items()},
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Metrics:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""
        check_format(state, "Metrics.from_dict", *_FORMAT)
        with restoring("Metrics.from_dict"):
            columns = {key: restored_number(values) for key, values in state["columns"].items()}
            more = {key: state[key] for key in ("gpus", "name", "notes")}
            return cls(restored_number(state["time_s"]), columns, **more)

    def plot(self, *, trace: Trace | None = None, began_s: float = 0.0, ax: Any = None) -> Any:
        """Draw power and activity over time or, with a trace, power beside its loss; the Axes.

        Parameters
        ----------
        trace : Trace, optional
            A run with `wall_seconds`.
        began_s : float
            Seconds of this log at which `wall_seconds` of the trace is 0.
        """
        from glidepath._pictures import runs

        if trace is not None and trace.wall_seconds is None:
            raise InputError("plot: the trace has no wall_seconds")
        if trace is None and began_s != 0.0:
            raise InputError("plot: began_s is for a trace")
        return runs.metrics(self, trace=trace, began_s=began_s, ax=ax)

    def _summary(self) -> str:
        samples = counted(len(self), "sample")
        gpus = counted(len(self.gpus), "GPU")
        parts = [repr(self.name)] if self.name else []
        parts.append(f"{samples} of {gpus} over {self.duration_s / 3600:.3g} h")
        if "power_w" in self:
            parts.append(f"mean {self.mean('power_w'):.4g} W")
        if self._has_energy:
            with suppress(InputError):  # of a GPU that has neither
                parts.append(f"{self.energy_j() / JOULES_PER_KWH:.4g} kWh")
        name = self._first(SM)
        if name is not None:
            parts.append(f"{name} {100 * self.mean(name):.3g} %")
        if "memory_used_gb" in self:
            parts.append(f"up to {self.peak('memory_used_gb'):.3g} GB")
        return "; ".join([", ".join(parts), *self.notes])


def _made(values: dict[str, Any]) -> Metrics:
    return Metrics(values.pop("time_s"), values.pop("columns"), **values)
