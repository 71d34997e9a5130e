# SPDX-License-Identifier: Apache-2.0
"""Past runs: what finished runs teach about live ones."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from glidepath import _core
from glidepath._columns import Floats
from glidepath._json import check_format, plain, restoring
from glidepath._results import Result, counted, same
from glidepath._trace import Trace, agree, as_traces

if TYPE_CHECKING:
    from glidepath._core import ForecastConstants, PastRunsRecord, WidthsRecord


_FORMAT = "glidepath.past_runs"
_VERSION = 1


def _none() -> Floats:
    return np.empty(0)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Widths(Result):
    """Factors of the half-widths of forecasts, learned from finished runs.

    Attributes
    ----------
    horizon : ndarray, shape (n,)
        log(step / last observed step), increasing; empty = nothing was learned.
    factor : ndarray, shape (n,)
        Factor of the half-widths at each horizon.
    runs : int
        Finished runs behind the factors.
    scheduled_factor : ndarray, shape (n,) or (0,)
        The same for forecasts under a schedule, from the runs that logged a learning rate; empty =
        there was none, and such forecasts keep their widths.
    scheduled_runs : int
        Finished runs behind those.
    schedule_helps : bool
        False where those runs were forecast worse with their schedule: forecasts then leave it out.
    """

    horizon: Floats = field(default_factory=_none)
    factor: Floats = field(default_factory=_none)
    runs: int = 0
    scheduled_factor: Floats = field(default_factory=_none)
    scheduled_runs: int = 0
    schedule_helps: bool = True

    def _record(self) -> WidthsRecord:
        return _core.WidthsRecord(**{name: getattr(self, name) for name in self.__slots__})

    def _summary(self) -> str:
        plain, scheduled = (
            ", ".join(f"{f:.3g}" for f in factor) for factor in (self.factor, self.scheduled_factor)
        )
        summary = f"half-widths times {plain or 1}, from {counted(self.runs, 'run')}"
        if not self.schedule_helps:
            return f"{summary}; schedules mislead on them and are ignored"
        if self.scheduled_runs:
            summary += f"; with a schedule times {scheduled}, from {self.scheduled_runs}"
        return summary


class PastRuns(Result):
    """Finished runs of the same user, model or study, and what they teach once and for all.

    Each run serves as the shape of a curve; the shapes get as much weight as the runs earn by
    predicting each other from the live run's step on. Besides, each of the newest fifty is forecast
    from its first 10 to 80 %: its score at a horizon is the distance of what came from the median,
    in half-widths of the 80 % interval. The factor at a horizon is the quantile of the scores that
    would have covered 80 % of the runs, shrunk towards 1 while they are few (split conformal
    prediction: Vovk, Gammerman and Shafer 2005; Lei et al. 2018) and as far as it would raise the
    CRPS of those runs. Widths are those of forecasts, not of times to target. Runs with a learning
    rate are forecast once more under their schedule, for factors of its own; where five runs or
    more were forecast clearly worse with it, later forecasts ignore their schedule.

    Parameters
    ----------
    traces : iterable of Trace
        Runs of one direction, the newest last. Those of fewer than 8 points teach no widths. What
        a run did after its end is not known: it may have ended at its target, at its budget or by
        divergence.
    constants : str, optional
        Text of a table of constants, as for `forecast`.
    threads : int, optional
        0 uses all cores. The numbers do not depend on it.

    Raises
    ------
    InputError
        When the runs have different directions, or the constants are no table.
    """

    __slots__ = ("_record", "_runs")

    def __init__(
        self, traces: Iterable[Trace] = (), *, constants: str | None = None, threads: int = 0
    ) -> None:
        self._runs = as_traces(traces, "PastRuns")
        self._record: PastRunsRecord = _core.PastRunsRecord(
            self._runs, constants=constants_of(constants), threads=threads
        )

    @classmethod
    def _of(cls, runs: tuple[Trace, ...], record: PastRunsRecord) -> PastRuns:
        past = cls.__new__(cls)
        past._runs, past._record = runs, record
        return past

    @classmethod
    def _restored(cls, runs: Sequence[Trace], widths: Widths) -> PastRuns:
        runs = tuple(runs)
        return cls._of(runs, _core.PastRunsRecord.restored(runs, widths._record()))

    @property
    def runs(self) -> tuple[Trace, ...]:
        """Finished runs, in the order in which they were given."""
        return self._runs

    @property
    def widths(self) -> Widths:
        """What was learned of the widths of forecasts."""
        return Widths._from_record(self._record.widths)

    @property
    def relevance(self) -> dict[str, float]:
        """How much each setting in which the runs differ tells of how a run goes; 0 = nothing."""
        return self._record.relevance

    def update(self, trace: Trace, *, constants: str | None = None) -> PastRuns:
        """Learn from one more run (adaptive conformal inference, Gibbs and Candès 2021).

        Where the run left the 80 % interval, the factor of that horizon grows by 8 %; where it
        held, it falls by 2 %. In the long run 80 % of the runs are covered, whatever their kind and
        even if that changes. Several runs are learned faster together, as one `PastRuns`.

        Parameters
        ----------
        trace : Trace
            The run that has ended.
        constants : str, optional

        Returns
        -------
        PastRuns
            A new one; this one stays as it is.

        Raises
        ------
        InputError
            When the run has the other direction, or these widths were learned elsewhere and have
            other horizons.
        """
        (run,) = as_traces([trace], "update")
        record = self._record.update(run, constants=constants_of(constants))
        return PastRuns._of((*self._runs, run), record)

    def without(self, *live: Trace) -> PastRuns:
        """Leave out the runs that agree with a live one as far as both go; the widths stay.

        Raises
        ------
        TypeError
            For what is no trace.
        """
        begun = [trace for trace in live if len(trace)]
        kept = [run for run in self._runs if not any(agree(run, trace) for trace in begun)]
        return self if len(kept) == len(self._runs) else self._restored(kept, self.widths)

    def to_dict(self) -> dict[str, Any]:
        """Give plain lists and numbers, fit for JSON."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "runs": [plain(run) for run in self._runs],
            "widths": plain(self.widths),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> PastRuns:
        """Read what `to_dict` wrote.

        Raises
        ------
        InputError
            When it is something else, of another version, or damaged.
        """
        check_format(state, "past", _FORMAT, _VERSION)
        with restoring("past"):
            runs = [Trace.from_dict(run) for run in state["runs"]]
            return cls._restored(runs, Widths.from_dict(state["widths"]))

    def __len__(self) -> int:
        return len(self._runs)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, PastRuns)
        return same(self._runs, other._runs) and self.widths == other.widths

    def __reduce__(self) -> tuple[Any, ...]:
        return PastRuns._restored, (self._runs, self.widths)

    def _summary(self) -> str:
        return f"{counted(len(self), 'run')}; {self.widths._summary()}"

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "runs", str(len(self))
        yield from self.widths._rows()


@functools.lru_cache(maxsize=16)
def constants_of(text: str | None) -> ForecastConstants | None:
    """Parse a table of constants, once; None is the learned one."""
    return None if text is None else _core.read_constants(text)


def past_of(past: Sequence[Trace] | PastRuns | None) -> PastRunsRecord | None:
    """Give the record of past runs; a plain list has taught nothing and serves as shapes only."""
    if past is None or isinstance(past, PastRuns):
        return None if past is None else past._record
    return _core.PastRunsRecord.unlearned(as_traces(past, "past"))
