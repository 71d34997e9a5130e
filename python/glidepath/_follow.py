# SPDX-License-Identifier: Apache-2.0
"""Logs that are still being written: read again at each change."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from glidepath._arguments import MAX_WAIT_S
from glidepath._core import InputError, IoError
from glidepath._results import Shown, counted
from glidepath._trace import Trace
from glidepath.readers._open import read_traces

EVERY_S = 2.0  # between two looks
_TICK_S = 2.0  # of the coarsest time stamps: within one a file may change and keep its stamp
_SHARE = 10  # reading takes no more than one part in this many of the time
# Each file: its path, inode, time of change and length.
_Stamp = tuple[tuple[str, int, int, int], ...]


class Follow(Shown):
    """A log that is still being written, read whole at each change.

    Iterating gives the runs that are new or changed, again and again, and waits in between; it does
    not end by itself.

    Parameters
    ----------
    path : path_like or object
        A path or object as for `read_traces`; it need not exist yet. Files are read again when
        they changed, servers each time.
    metric, format, pattern : str, optional
        As in `read_traces`.
    every_s : float, optional
        Seconds between two looks, when iterating, at most 1 000 000.

    Raises
    ------
    InputError
        A time between looks that is none; at the first look an unknown format or a bad pattern. A
        file that cannot be read is no error: ``.trouble`` says why, and it is tried again.

    Attributes
    ----------
    traces : list of Trace
        Runs of the last reading that succeeded; empty before.
    trouble : str
        Why the last reading failed, such as a file that does not exist yet or is half written;
        empty when it succeeded.

    Notes
    -----
    Whether a file grew, was truncated, rewritten or replaced makes no difference: `traces` is what
    `read_traces` gives. A reading that fails changes nothing and is tried again.

    A line without its end is read once its file stayed as it is for 2 s. Only the first look goes
    by the time stamp of the file: where the clock of a file server is behind ours, that look may
    take half a number for a whole one. The next looks put it right.

    Examples
    --------
    ::

        for runs in gp.Follow("checkpoints/trainer_state.json", every_s=5):
            for run in runs:
                print(gp.reach(run, 1.8, budget=50_000))
    """

    __slots__ = (
        *("_as", "_every_s", "_found", "_found_s", "_pause_s", "_seen", "_source", "_unfinished"),
        *("traces", "trouble"),
    )

    def __init__(
        self,
        path: str | os.PathLike[str] | Any,
        *,
        metric: str | None = None,
        format: str | None = None,  # noqa: A002 - as in read_traces
        pattern: str | None = None,
        every_s: float = EVERY_S,
    ) -> None:
        if not 0.0 <= every_s <= MAX_WAIT_S:
            raise InputError(f"Follow: every_s is {every_s:g}, expected 0 to {MAX_WAIT_S}")
        self._source = path
        self._as = {"metric": metric, "format": format, "pattern": pattern}
        self._every_s, self._pause_s = float(every_s), float(every_s)
        self._seen: _Stamp | None = None  # read, and not to be read again
        self._found: _Stamp | None = None  # at the last look
        self._found_s = math.inf  # since when, by our clock
        self._unfinished = False  # the last look found a line without its end
        self.traces: list[Trace] = []
        self.trouble = ""

    def poll(self) -> list[Trace]:
        """Read the log again if it changed; does not wait.

        Returns
        -------
        list of Trace
            The runs that are new or differ from the last reading.

        Raises
        ------
        InputError, TypeError, ImportError
            As `read_traces`; an `IoError` is kept in `trouble` instead.
        """
        began = time.monotonic()
        stamp = _stamp(self._source)
        if stamp is not None and stamp == self._seen:
            return []
        # Taken before the reading: what is written meanwhile shows at the next.
        settled = stamp is not None and self._has_settled(stamp, began)
        self._unfinished = not settled and _ends_within_a_line(self._source)
        try:
            if self._unfinished:
                raise IoError(f"{self._source}: the last line is not complete yet")
            found = read_traces(self._source, **self._as)
        except IoError as error:
            self.trouble = str(error)
            return []
        finally:
            self._pause_s = max(self._every_s, _SHARE * (time.monotonic() - began))
        self._seen = stamp if settled else None
        before = by_name(self.traces)
        self.traces, self.trouble = found, ""
        return [trace for key, trace in by_name(found).items() if before.get(key) != trace]

    def _has_settled(self, stamp: _Stamp, began: float) -> bool:
        """Whether a change from now on will show in the stamp.

        A file server has a clock of its own, which may be ahead of ours or behind: how long a stamp
        has stayed is known by our clock alone. At the first look there is only the stamp.
        """
        is_first = self._found is None
        if stamp != self._found:
            self._found, self._found_s = stamp, time.monotonic()
        if not is_first:
            return began - self._found_s >= _TICK_S
        return all(time.time() - changed_ns / 1e9 > _TICK_S for *_, changed_ns, _ in stamp)

    def wait(self) -> None:
        """Sleep `every_s`, or longer where reading takes long: a tenth of the time at most."""
        time.sleep(self._pause_s)

    def __iter__(self) -> Iterator[list[Trace]]:
        while True:
            changed = self.poll()
            if changed:
                yield changed
            self.wait()

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._found_s = time.monotonic()  # another process may have another clock

    def _summary(self) -> str:
        return self.trouble or counted(len(self.traces), "run")

    def _rows(self) -> Iterator[tuple[str, str]]:
        for trace in self.traces:
            yield trace.name or "run", trace._summary()


def by_name(traces: list[Trace]) -> dict[tuple[str, int], Trace]:
    """Key runs by their name, and number those that share one."""
    found: dict[tuple[str, int], Trace] = {}
    for trace in traces:
        count = 0
        while (trace.name, count) in found:
            count += 1
        found[trace.name, count] = trace
    return found


def _stamp(source: Any) -> _Stamp | None:
    """Identify the state of files without reading them; None where that is impossible."""
    if not isinstance(source, (str, os.PathLike)) or "://" in str(source):
        return None
    path = Path(source)
    # Sqlite writes to a file beside the database first.
    files = [path, Path(f"{path}-wal")]
    if os.path.isdir(path):  # noqa: PTH112 - no error where it may not be looked at
        # A checkpoint may go meanwhile: `os.walk` passes over what is not there.
        walk = os.walk(path)
        files = sorted(Path(at, name) for at, within, names in walk for name in (*within, *names))
    stamps = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        stamps.append((str(file), status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(stamps)


def _ends_within_a_line(source: Any) -> bool:
    """Whether a text stops within a line: half a number would look like a whole one."""
    try:
        if not isinstance(source, (str, os.PathLike)) or not Path(source).is_file():
            return False
        with Path(source).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 256))
            end = file.read()
    except OSError:  # it has gone, or is not ours to read: the reader says so
        return False
    # The end of a binary file nearly always has a byte that no text has.
    return (
        bool(end) and end[-1:] not in b"\r\n" and not re.search(rb"[\x00-\x08\x0e-\x1f\x7f]", end)
    )
