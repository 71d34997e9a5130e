# SPDX-License-Identifier: Apache-2.0
"""Jobs in logs that other schedulers write, and in published traces, as columns of a workload.

Read are what Slurm's ``sacct --parsable2`` prints, the Standard Workload Format of batch systems,
and tables with the names that Helios, Acme, Philly and Tiresias have.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from glidepath._core import IoError, TextTable, read_cells
from glidepath._results import counted
from glidepath.readers._series import read_whole

# What a table may call the columns of a trace. Ours and those of Tiresias are read by the library,
# where submissions are numbers.
_NAMES = {
    "job": ("job", "job_id"),
    "submit_s": ("submit_s", "submit_time", "timestamp"),
    "gpus": ("gpus", "num_gpu", "gpu_num", "num_gpus"),
    "duration_s": ("duration_s", "duration"),
}
_OF_THE_LIBRARY = 2  # so many of each, from the first on
_SACCT = "sacct --parsable2 --format=JobIDRaw,User,Submit,ElapsedRaw,State,AllocTRES"
_UNFINISHED = ("PENDING", "RUNNING", "SUSPENDED")
_FREE_TEXT = ("JobName", "SubmitLine", "Comment", "AdminComment", "SystemComment", "WorkDir")
_SWF_FIELDS = 11  # of its 18, up to the status
_NEVER = ("", "Unknown", "None", "N/A", "NaN", "nan")  # of a time that did not come


@dataclass(frozen=True, slots=True)
class JobLog:
    """The jobs that a log holds, as `Workload` takes them, and notes on what it leaves out."""

    jobs: dict[str, list[Any]]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class _Row:
    """A job as a log has it; `submit` a number of seconds or a date."""

    line: int
    job: str
    submit: str
    gpus: int
    duration_s: float
    user: str = ""
    ended: bool = True


@dataclass(slots=True)
class _LeftOut:
    """Jobs of one kind that no simulation can run."""

    kind: str
    jobs: list[str] = field(default_factory=list)

    def note(self, name: str) -> str:
        number = counted(len(self.jobs), "job")
        return f"{name}: {number} {self.kind} left out, the first is job {self.jobs[0]}"


def read_job_log(path: Path, gpus: int) -> JobLog | None:
    """Read the jobs of a log for a cluster of so many GPUs; None where it has no form of these.

    Submissions count from the first. Jobs without GPUs, that never ran or have not ended are left
    out. IoError names file and line.
    """
    text = read_whole(path).decode("utf-8-sig", errors="replace")
    lines = [line.rstrip("\r") for line in text.split("\n")]
    first, name = lines[0], path.name
    if not first.strip() or "\0" in first:  # empty, or no text
        return None
    if first.startswith(";") or _is_swf(first):
        rows, notes = _swf_rows(path, lines), [f"{name}: processors are taken as GPUs"]
        return _collected(path, gpus, rows, notes)
    if re.match(r"\s*JobID(Raw)?\s", first) and re.match(r"[-\s]{8,}$", "".join(lines[1:2])):
        raise IoError(f"{path}:1: is a table for people, expected what {_SACCT} prints")
    for delimiter in "|", "\t", ",":
        if {"JobID", "JobIDRaw"}.intersection(first.split(delimiter)) and delimiter in first:
            return _collected(path, gpus, _sacct_rows(path, lines, delimiter), [])
    return _of_table(path, gpus, [column.strip().strip('"') for column in first.split(",")])


def _of_table(path: Path, gpus: int, columns: Sequence[str]) -> JobLog | None:
    """Read a CSV; None where it has the columns of the library, which has said what is wrong."""
    found = {
        key: name for key, names in _NAMES.items() for name in reversed(names) if name in columns
    }
    absent = [f"'{key}'" for key in _NAMES if key not in found]
    if absent and absent != ["'job'"]:
        listed = absent[0] if len(absent) == 1 else f"{', '.join(absent[:-1])} and {absent[-1]}"
        column = "column" if len(absent) == 1 else "columns"
        raise IoError(f"{path}:1: no {column} {listed}, only {_cut(', '.join(columns))}")
    table = read_cells(path, list(found.values()))
    at = {key: table.columns.index(name) for key, name in found.items()}
    if "user" in table.columns:
        at["user"] = table.columns.index("user")
    dated = any(_is_date(cells[at["submit_s"]].strip()) for _, cells in table.rows)
    of_the_library = all(found.get(key) in names[:_OF_THE_LIBRARY] for key, names in _NAMES.items())
    if of_the_library and not dated:
        return None
    unread = [name for k, name in enumerate(table.columns) if name and k not in at.values()]
    notes = [_unread(path.name, unread)] if unread else []
    return _collected(path, gpus, _table_rows(path, table, at, found), notes)


def _cut(text: str) -> str:
    shown = "".join(character if character.isprintable() else "?" for character in text)
    return shown if len(shown) <= 200 else f"{shown[:200]}..."


def _unread(name: str, columns: Sequence[str]) -> str:
    one = len(columns) == 1
    listed = _cut(", ".join(columns))
    return f"{name}: the column{'' if one else 's'} {listed} {'is' if one else 'are'} not read"


def _table_rows(
    path: Path, table: TextTable, at: dict[str, int], names: dict[str, str]
) -> Iterator[_Row]:
    for number, (line, cells) in enumerate(table.rows):
        where = f"{path}:{line}"
        row = {key: cells[column].strip() for key, column in at.items()}
        yield _Row(
            line,
            row.get("job", str(number)),
            row["submit_s"],
            _whole(row["gpus"], where, names["gpus"]),
            _seconds(row["duration_s"], where, names["duration_s"]),
            row.get("user", ""),
        )


def _is_swf(line: str) -> bool:
    fields = line.split()
    return len(fields) >= _SWF_FIELDS and all(re.fullmatch(r"-?[\d.]+", each) for each in fields)


def _swf_rows(path: Path, lines: Iterable[str]) -> Iterator[_Row]:
    """Fields: job, submission, wait, run time, processors; of the request, the eighth; the user."""
    for line, text in enumerate(lines, 1):
        fields = text.split()
        if not fields or fields[0].startswith(";"):
            continue
        where = f"{path}:{line}"
        if len(fields) < _SWF_FIELDS:
            raise IoError(f"{where}: {len(fields)} fields, expected 18 between blanks")
        held, asked = (_whole(fields[k], where, "processors") for k in (4, 7))
        user = fields[11] if len(fields) > 11 and not fields[11].startswith("-") else ""
        gpus = held if held > 0 else max(asked, 0)
        duration_s = _seconds(fields[3], where, "run time")
        yield _Row(line, fields[0], fields[1], gpus, duration_s, user)


def _sacct_rows(path: Path, lines: Sequence[str], delimiter: str) -> Iterator[_Row]:
    """Rows of jobs; those of steps, which have a point in their ids, are parts of them."""
    columns = lines[0].split(delimiter)
    job = "JobIDRaw" if "JobIDRaw" in columns else "JobID"
    for either in ("Submit",), ("ElapsedRaw", "Elapsed"), ("AllocTRES", "ReqTRES"):
        if not set(either).intersection(columns):
            raise IoError(f"{path}:1: no column '{either[0]}', expected what {_SACCT} prints")
    for line, fields in _records(path, lines, delimiter, columns):
        row = dict(zip(columns, fields, strict=False))
        if "." in row[job]:
            continue
        where = f"{path}:{line}"
        length = row.get("ElapsedRaw") or row.get("Elapsed", "")
        yield _Row(
            line,
            row[job],
            row["Submit"],
            _gpus_of(row.get("AllocTRES") or row.get("ReqTRES", ""), where),
            _seconds(length, where, "Elapsed", clock=True),
            row.get("User", ""),
            row.get("State", "").split(" ")[0] not in _UNFINISHED,
        )


def _records(
    path: Path, lines: Sequence[str], delimiter: str, columns: Sequence[str]
) -> Iterator[tuple[int, list[str]]]:
    """Split into records; a line of a job script within a field goes on in the next one."""
    width, begun, text = len(columns), 0, ""
    for line, part in enumerate(lines[1:], 2):
        if not part and not text:
            continue
        begun, text = (line, part) if not text else (begun, f"{text}\n{part}")
        if text.count(delimiter) >= width - 1:
            yield begun, _fitted(text.split(delimiter), delimiter, columns, f"{path}:{begun}")
            text = ""
    if text:
        count = text.count(delimiter) + 1
        raise IoError(f"{path}:{begun}: {count} fields where the header has {width}")


def _fitted(fields: list[str], delimiter: str, columns: Sequence[str], where: str) -> list[str]:
    """Put free texts with delimiters in them together: one before the submission, one after."""
    more = len(fields) - len(columns)
    submit = columns.index("Submit")
    free = [columns.index(name) for name in _FREE_TEXT if name in columns]
    before = min((at for at in free if at < submit), default=None)
    after = min((at for at in free if at > submit), default=None)
    for first in range(more + 1):
        fitted = fields
        # From the right, so that the places on the left stay.
        for at, count in (after, more - first), (before, first):
            if count and at is not None:
                at += first if at > submit else 0
                fitted = [
                    *fitted[:at], delimiter.join(fitted[at : at + count + 1]),
                    *fitted[at + count + 1 :],
                ]  # fmt: skip
        if len(fitted) == len(columns) and (_is_date(fitted[submit]) or not more):
            return fitted
    raise IoError(f"{where}: {len(fields)} fields where the header has {len(columns)}")


def _gpus_of(tres: str, where: str) -> int:
    """Count the GPUs of ``billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2``, which lists them twice."""
    counts = {}
    for item in tres.split(","):
        kind, _, count = item.partition("=")
        if kind == "gres/gpu" or kind.startswith("gres/gpu:"):
            counts[kind] = _whole(count, where, kind)
    return counts.get("gres/gpu", sum(counts.values()))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _whole(text: str, where: str, column: str) -> int:
    number = 0.0 if text.strip() in _NEVER else _number(text)
    if not number.is_integer():
        raise IoError(f"{where}: {column} is {text!r:.80}, expected a whole number")
    return int(number)


def _seconds(text: str, where: str, column: str, *, clock: bool = False) -> float:
    """Read a duration: a number or, of Slurm, also [days-]hours:minutes:seconds; NaN for none."""
    text = text.strip()
    if text in _NEVER:
        return math.nan
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)", text) if clock else None
    if found:
        days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    number = _number(text)
    if not math.isfinite(number):
        raise IoError(f"{where}: {column} is {text!r:.80}, expected seconds")
    return number


def _is_date(text: str) -> bool:
    return re.match(r"\d{4}-\d\d-\d\d", text) is not None


def _submitted(text: str, where: str) -> float:
    """Seconds since some moment: of 1970 where it is a date."""
    if not _is_date(text):
        number = _number(text)
        if math.isfinite(number):
            return number
    else:
        try:
            moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            pass
        else:
            return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    raise IoError(f"{where}: the submission is {text!r:.80}, expected seconds or a date")


def _collected(path: Path, gpus: int, rows: Iterable[_Row], notes: list[str]) -> JobLog:
    """Keep the jobs that can run, as columns."""
    checks: list[tuple[_LeftOut, Callable[[_Row], bool]]] = [
        (_LeftOut("of 0 GPUs"), lambda row: row.gpus <= 0),
        (_LeftOut("that had not ended"), lambda row: not row.ended),
        (_LeftOut("that never ran"), lambda row: not row.duration_s > 0),
    ]
    kept = []
    for row in rows:
        for left_out, applies in checks:
            if applies(row):
                left_out.jobs.append(row.job)
                break
        else:
            if row.gpus > gpus:
                asks = f"job {row.job} asks {row.gpus} GPUs, the cluster has {gpus}"
                raise IoError(f"{path}:{row.line}: {asks}")
            kept.append(row)
    if not kept:
        raise IoError(f"{path}: no job that ran on GPUs")
    submitted = [_submitted(row.submit, f"{path}:{row.line}") for row in kept]
    begin_s = min(submitted)
    ids = [int(row.job) if re.fullmatch(r"\d{1,18}", row.job) else -1 for row in kept]
    if min(ids) < 0 or len(set(ids)) < len(ids):
        ids = list(range(len(kept)))
        notes = [*notes, f"{path.name}: jobs are numbered in its order, from 0"]
    jobs: dict[str, list[Any]] = {
        "job": ids,
        "submit_s": [at - begin_s for at in submitted],
        "gpus": [row.gpus for row in kept],
        "duration_s": [row.duration_s for row in kept],
    }
    if any(row.user for row in kept):
        jobs["user"] = [row.user for row in kept]
    return JobLog(jobs, [*notes, *(out.note(path.name) for out, _ in checks if out.jobs)])
