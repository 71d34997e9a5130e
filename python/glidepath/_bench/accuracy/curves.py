# SPDX-License-Identifier: Apache-2.0
"""The finished runs that a benchmark forecasts: any log, by collection, lower is better."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from glidepath._core import AbsentError, InputError, IoError, RefusedError
from glidepath._results import counted
from glidepath._trace import Trace, agree, as_traces, renamed
from glidepath.readers._folder import is_called_log, passing_over
from glidepath.readers._formats import _format_of, _head
from glidepath.readers._open import read, read_traces
from glidepath.readers._series import lines

FEWEST_POINTS = 10
PAST_RUNS = 150  # handed to a method, at most
LARGEST_SEED = 2**32 - 1  # of NumPy's RandomState
TURNED = "1 - score"  # the metric of a curve whose values are distances from the best score
Source = str | os.PathLike[str] | Iterable[Trace]


@dataclass(frozen=True, slots=True)
class Collection:
    """Usable curves that belong together, oriented so that lower is better.

    `curves` is the sample that is forecast, `usable` all that may serve as past runs, `dropped`
    how many curves were left out: too short, flat or not finite. Where a log could not be read,
    `trouble` says why.
    """

    name: str
    curves: tuple[Trace, ...]
    usable: tuple[Trace, ...]
    dropped: int
    trouble: str = ""
    _others: dict[str, tuple[Trace, ...]] = field(default_factory=dict, compare=False, repr=False)

    def others(self, curve: Trace) -> tuple[Trace, ...]:
        """Runs that may help to forecast `curve`: of the collection, but not of its group.

        The group is the name up to its last slash: the same record, task, size or study. All
        curves of a group get the same tuple. A run that one of the group begins, or that begins
        one of it, such as that of another checkpoint, would tell how the curve goes on.
        """
        mine = group_of(curve.name)
        if mine not in self._others:
            group: dict[bytes, list[Trace]] = {}
            for c in self.usable:
                if group_of(c.name) == mine:
                    group.setdefault(_beginning(c), []).append(c)
            runs = [
                c
                for c in self.usable
                if group_of(c.name) != mine
                and not any(agree(c, of) for of in group.get(_beginning(c), ()))
            ]
            order = np.random.default_rng(1).permutation(len(runs))[:PAST_RUNS]
            self._others[mine] = tuple(runs[i] for i in sorted(order))
        return self._others[mine]


def group_of(curve: str) -> str:
    """Group of a curve, its name up to the last slash: one repository, task, size or study."""
    return curve.rpartition("/")[0] or curve


def _beginning(curve: Trace) -> bytes:
    """The first points of a curve; every usable one has as many."""
    return curve.step[:FEWEST_POINTS].tobytes() + curve.loss[:FEWEST_POINTS].tobytes()


@dataclass(frozen=True, slots=True)
class Logs:
    """What was read of one place: its runs as they were logged, or why there are none."""

    name: str
    traces: list[Trace]
    trouble: str = ""


def collections(
    source: Source, *, max_curves: int, seed: int = 0, metric: str | None = None
) -> list[Collection]:
    """Read the collections of a file, a folder or a list of traces.

    Every file of the long form is a collection. So is every other file or folder directly within a
    folder that holds several runs; those that hold one make a collection named as the folder.
    `max_curves` of each are drawn with `seed`. InputError when no curve is usable.
    """
    found = [_collection(logs, max_curves, seed) for logs in read_logs(source, metric)]
    if not any(each.usable for each in found):
        where = source if isinstance(source, (str, os.PathLike)) else "the traces"
        dropped = sum(each.dropped for each in found)
        trouble = "".join(f"; {each.trouble}" for each in found if each.trouble)
        raise InputError(
            f"bench: {where}: no file with a curve of {FEWEST_POINTS} finite points that is not "
            f"flat; {counted(dropped, 'curve')} read{trouble}"
        )
    return found


def read_logs(source: Source, metric: str | None) -> list[Logs]:
    """Read the runs of each collection; what a folder has besides, and cannot be read, says so."""
    if isinstance(source, (str, os.PathLike)):
        found = list(_of_path(Path(source), metric))
        if not any(logs.traces for logs in found):
            trouble = "".join(f"; {logs.trouble}" for logs in found if logs.trouble)
            raise InputError(f"bench: {source}: no log that can be read{trouble}")
        return found
    if isinstance(source, Trace) or not isinstance(source, Iterable):
        raise InputError(
            f"bench: expected a file, a folder or a list of gp.Trace, got {type(source).__name__}"
        )
    if metric is not None:
        raise InputError("bench: a metric is for files; traces have theirs")
    return [Logs("runs", list(as_traces(source, "bench")))]


def _of_path(path: Path, metric: str | None) -> Iterator[Logs]:
    if not path.is_dir():
        yield Logs(path.name.split(".")[0], _read_file(path, metric))
        return
    alone: list[Trace] = []
    found = False
    for entry in sorted(path.iterdir()):
        if _is_link_back(entry, path.resolve()):
            continue
        with passing_over() as passed:
            logs, long_form = _read_entry(entry, metric)
        yield from (Logs(entry.name.split(".")[0], [], sentence) for sentence in passed)
        found = found or bool(logs.traces or logs.trouble)
        if long_form or len(logs.traces) > 1 or logs.trouble:
            yield logs
        else:
            alone += [_named(trace, entry) for trace in logs.traces]
    if alone:
        yield Logs(path.resolve().name, alone)
    elif not found:  # the folder itself may be one log, such as an event folder
        yield Logs(path.resolve().name, read_traces(path, metric=metric))


def _is_link_back(entry: Path, folder: Path) -> bool:
    """Whether an entry is a link to what is read anyway: the folder, a part of it or one above."""
    if not entry.is_symlink():
        return False
    try:
        to = entry.resolve(strict=True)
    except (OSError, RuntimeError):  # it leads nowhere, which the reader will say
        return False
    return to.is_relative_to(folder) or folder.is_relative_to(to)


def _named(trace: Trace, entry: Path) -> Trace:
    """Name a run by its folder, too, where that holds no other."""
    return renamed(trace, f"{entry.name}/{trace.name}") if entry.is_dir() else trace


def _read_entry(entry: Path, metric: str | None) -> tuple[Logs, bool]:
    """Read what lies in a folder: its runs, if any, and whether it is of the long form."""
    name = entry.name.split(".")[0]
    head = _head(entry) if entry.is_file() else b""
    kind = "" if entry.is_dir() else _format_of(entry, head)
    if kind is None:
        called = is_called_log(entry)
        return Logs(name, [], f"{entry}: a log of no known format" if called else ""), False
    try:
        return Logs(name, _read_file(entry, metric)), kind == "csv"
    except (AbsentError, RefusedError) as error:
        return Logs(name, [], str(error) if is_called_log(entry) else ""), False
    except IoError as error:
        if kind == "csv":
            raise
        none_here = entry.is_dir() and "no traces in this folder" in str(error)
        return Logs(name, [], "" if none_here else str(error)), False


def _read_file(file: Path, metric: str | None) -> list[Trace]:
    try:
        return read(file, metric)
    except IoError as error:
        from glidepath.readers import long_csv  # late: a reader is imported when a file is read

        if "is not above" in str(error) and long_csv.recognises(file, _head(file)):
            return _sorted_traces(file, metric or "value")
        raise


def _sorted_traces(file: Path, column: str) -> list[Trace]:
    """Sort a long CSV by step; of two rows of one step, as of two runs of one name, take one."""
    beside = file.with_name(file.name.split(".csv")[0] + ".json")
    about = json.loads(beside.read_text()) if beside.exists() else {}
    points: dict[str, dict[float, float]] = {}
    for row in csv.DictReader(lines(file)):
        if row[column]:
            points.setdefault(row["curve"], {}).setdefault(float(row["step"]), float(row[column]))
    direction = about.get("direction", "min")
    return [
        Trace(sorted(of), [of[step] for step in sorted(of)], name=name, direction=direction)
        for name, of in points.items()
    ]


def _collection(logs: Logs, max_curves: int, seed: int) -> Collection:
    kept = [trace for trace in logs.traces if _is_usable(trace)]
    usable = sorted(oriented(kept, unit_of(kept)), key=lambda t: t.name)
    order = sorted(np.random.RandomState(seed).permutation(len(usable))[:max_curves])
    sample = tuple(usable[i] for i in order)
    dropped = len(logs.traces) - len(kept)
    return Collection(logs.name, sample, tuple(usable), dropped, logs.trouble)


def _is_usable(trace: Trace) -> bool:
    loss = trace.loss
    return len(loss) >= FEWEST_POINTS and bool(np.isfinite(loss).all() and np.ptp(loss) > 1e-9)


def unit_of(traces: Iterable[Trace]) -> float:
    """Give the best value of the scores of a collection: 1, or 100 where they are percentages.

    They are if the whole collection is: a return of 20 among others of 200 is none.
    """
    highest = max((t.loss.max(initial=0.0, where=np.isfinite(t.loss)) for t in traces), default=0)
    return 100.0 if 1.5 < highest <= 100.0 else 1.0


def oriented(traces: Sequence[Trace], unit: float) -> list[Trace]:
    """Turn scores into 1 - score / unit; count steps from 1 at least.

    The metric of scores none of which exceeds its unit, such as accuracies, is `TURNED`.
    """
    scores = [trace for trace in traces if trace.direction == "max"]
    metric = "loss" if any((trace.loss > unit).any() for trace in scores) else TURNED
    return [_oriented(trace, unit, metric) for trace in traces]


def _oriented(trace: Trace, unit: float, score: str) -> Trace:
    loss, step = np.array(trace.loss), np.array(trace.step)
    turned = trace.direction == "max"
    if turned:
        loss = 1.0 - loss / unit
    step = step + (1.0 - step[0]) if step[0] <= 0 else step
    lr = trace.lr if trace.lr is not None and np.isfinite(trace.lr).mean() > 0.5 else None
    return Trace(step, loss, lr=lr, name=trace.name, metric=score if turned else "loss")


def check_seed(seed: int) -> None:
    """Refuse a seed that is none."""
    if not 0 <= seed <= LARGEST_SEED:
        raise InputError(f"bench: seed is {seed}, expected 0 to {LARGEST_SEED}")
