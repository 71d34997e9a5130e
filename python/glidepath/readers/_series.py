# SPDX-License-Identifier: Apache-2.0
"""What the readers share: metrics as they were logged, and the way from there to a trace."""

from __future__ import annotations

import gzip
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from io import BufferedReader, BytesIO
from pathlib import Path

from glidepath._core import (
    UTF16_FRONT,
    AbsentError,
    InputError,
    IoError,
    RunRecord,
    Series,
    is_utf16,
    trace_of,
    utf8_of_utf16,
)
from glidepath._trace import Trace, of_record

HEAD_BYTES = 65536
# Bytes in a line of text, and in a file that was packed.
_LONGEST_LINE, _MOST_BYTES = 1 << 26, 1 << 30
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)


# Where `to_trace` leaves a trace of every metric of a run, while somebody collects them.
collected: ContextVar[list[Trace] | None] = ContextVar("collected", default=None)


def to_trace(
    series: Mapping[str, Series],
    metric: str | None,
    path: Path | str,
    name: str,
    notes: Iterable[str] = (),
    *,
    planned_steps: float | None = None,
    settings: Mapping[str, float | str] | None = None,
) -> Trace:
    """Make the trace of one run.

    Parameters
    ----------
    series : mapping of str to Series
        All its metrics; those without rows count as absent. Learning rates are found by name and
        put where they were logged at the same step.
    metric : str or None
        The one to read; without it what a person would look at.
    path : Path or str
        The file, or what a server calls its run, for messages.
    name : str
        Name of the run.
    notes : iterable of str
        What the reader repaired already.
    planned_steps : float, optional
        The step at which the log says that the run will end, in the unit of its steps. One before
        the last step is left out: the run has gone on under another plan.
    settings : mapping of str to float or str, optional
        What the run was started with.

    Returns
    -------
    Trace
        With what was repaired in its `notes`.
    """
    found, said = collected.get(), list(notes)
    own = dict(settings or {})

    def read(metric: str | None, of: Mapping[str, Series] = series) -> Trace:
        made = trace_of(dict(of), metric, str(path), name, said, planned_steps, own)
        return of_record(made)

    if found is not None:
        for each, column in series.items():
            with suppress(IoError):
                if len(column):
                    found.append(read(each, {each: column}))
    return read(metric)


def of_run(run: RunRecord, metric: str | None, path: Path) -> Trace:
    """Make the trace of what the core read of a file."""
    return to_trace(
        run.series,
        metric,
        path,
        run.name or path.name,
        run.notes,
        planned_steps=run.planned_steps,
        settings=run.settings,
    )


def traces_of(
    runs: Mapping[str, Mapping[str, Series]],
    metric: str | None,
    path: Path | str,
    *,
    names: Mapping[str, str] | None = None,
    notes: Mapping[str, Iterable[str]] | None = None,
    settings: Mapping[str, Mapping[str, float | str]] | None = None,
) -> list[Trace]:
    """Make the traces of several runs; those without the metric are left out.

    Parameters
    ----------
    runs : mapping
        The metrics of each run, by any key.
    metric, path
        As in `to_trace`.
    names : mapping, optional
        What the runs are called, where it is not their key.
    notes : mapping, optional
        What was repaired already of a run.
    settings : mapping, optional
        What a run was started with.

    Returns
    -------
    list of Trace

    Raises
    ------
    AbsentError
        When no run has the metric.
    """
    traces, absent = [], None
    for key, series in runs.items():
        try:
            name, said = (names or {}).get(key, key), (notes or {}).get(key, ())
            own = (settings or {}).get(key)
            traces.append(to_trace(series, metric, path, name, said, settings=own))
        except AbsentError as error:
            absent = error
    if not traces:
        raise absent or AbsentError(f"{path}: no metric was logged")
    return traces


def open_plain(path: Path) -> BufferedReader:
    """Open a regular file as it is; a pipe or a device may never end, and is an IoError."""
    try:
        # With O_NONBLOCK a pipe does not wait for its writer.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise IoError(f"{path}: {error.strerror or error}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise IoError(f"{path}: not a regular file")
    return os.fdopen(handle, "rb")


def open_log(path: Path) -> BufferedReader | gzip.GzipFile:
    """Open a regular file: unpacked where it is gzip, as UTF-8 where it is UTF-16."""
    file = open_plain(path)
    front = file.read(UTF16_FRONT)
    file.seek(0)
    if is_utf16(front):
        with file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise IoError(f"{path}: more than {_MOST_BYTES >> 20} MiB of UTF-16")
        return BufferedReader(BytesIO(utf8_of_utf16(data)))
    if not front.startswith(b"\x1f\x8b"):
        return file
    unpacked = gzip.GzipFile(fileobj=file, mode="rb")
    unpacked.myfileobj = file  # type: ignore[assignment] # which is closed with it
    return unpacked


def read_whole(path: Path) -> bytes:
    """Read a file to its end, unpacked where it is gzip: to no more than `_MOST_BYTES` then."""
    with open_log(path) as file:
        most = _MOST_BYTES if isinstance(file, gzip.GzipFile) else -1
        try:
            data = file.read(most if most < 0 else most + 1)
        except _DAMAGED as error:
            raise IoError(f"{path}: {error}") from None
    if len(data) > most >= 0:
        raise IoError(f"{path}: more than {most >> 20} MiB, unpacked")
    return data


def lines(path: Path) -> Iterator[str]:
    """Read the lines of a text, without their ends; bytes that are not UTF-8 are replaced.

    What is longer than `_LONGEST_LINE` is an IoError.
    """
    left, count = _MOST_BYTES, 1
    with open_log(path) as file:
        try:
            while line := file.readline(_LONGEST_LINE + 1):
                left -= len(line) if isinstance(file, gzip.GzipFile) else 0
                if left < 0 or len(line) > _LONGEST_LINE:
                    what = "unpacked" if left < 0 else "in a line"
                    size = (_MOST_BYTES if left < 0 else _LONGEST_LINE) >> 20
                    raise IoError(f"{path}:{count}: more than {size} MiB {what}")
                text = line.decode("utf-8-sig", errors="replace").rstrip("\r\n")
                yield from text.split("\r")  # as old Macs and progress bars end them
                count += 1
        except _DAMAGED as error:
            raise IoError(f"{path}:{count}: {error}") from None


def is_ended(path: Path) -> bool:
    """Whether the last line of a file has its end; what is packed was written whole."""
    with open_log(path) as file:
        if isinstance(file, gzip.GzipFile) or file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) in b"\r\n\0"


def without_secrets(text: str) -> str:
    """Leave the login and the query of every address out of a message."""
    return re.sub(r"://(\S+)", lambda found: f"://{_public(found[1])}", text)


def _public(address: str) -> str:
    """What stands before an @ may be a login, also where a sign in it would end one."""
    end = ":" if address.endswith(":") else ""
    return address.removesuffix(":").rpartition("@")[2].partition("?")[0] + end


def refused_address(address: str, error: ValueError) -> InputError:
    """Say why an address is none, without the part of it that the error repeats."""
    why = re.sub(r"(?: as)? ?'.*'", "", str(error)).strip()
    return InputError(f"{without_secrets(address)}: {why}")
