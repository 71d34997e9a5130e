# SPDX-License-Identifier: Apache-2.0
"""For the training script: log a curve, save upon a signal, go on where the last attempt ended.

As for Lightning and submitit, SIGUSR1 means "write a checkpoint and requeue yourself"; a script
that uses either of them does not need this module.

    from glidepath.engines.slurm import checkpoint

    asked = checkpoint.SaveFlag()  # from here on SIGUSR1 and SIGTERM only raise a flag
    log = checkpoint.TraceLog()  # glidepath-<job>.csv, or $GLIDEPATH_TRACE
    model, first = load("model.npz") if Path("model.npz").exists() else (new(), 1)
    for step in range(first, budget + 1):
        log.add(step, train(model))
        if asked:
            with checkpoint.replacing("model.npz") as path:
                save(path, model, step)
            asked.leave()  # requeues the job, or ends the script

"""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from glidepath._drafts import draft_of

__all__ = ["SaveFlag", "TraceLog", "job_id", "replacing"]


def job_id() -> str:
    """Return the Slurm job this process runs in, such as "17" or "12_3"; empty outside of one."""
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    if array:
        return f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}"
    return os.environ.get("SLURM_JOB_ID", "")


class SaveFlag:
    """A flag that signals raise: true once the job must save its work.

    SIGUSR1 means save and requeue, SIGTERM save and end. Make it in the main thread, before the
    first step: until then SIGUSR1 kills the process. Processes that are forked from this one, such
    as workers that load data, end upon SIGTERM as they would without it.
    """

    def __init__(self) -> None:
        # Each apart: what takes a move down must not take an end with it that comes just then.
        self._caught: set[int] = set()
        signal.signal(signal.SIGUSR1, self._raise)
        before = signal.signal(signal.SIGTERM, self._raise)
        earlier = getattr(before, "__self__", None)
        self._before: Any = earlier._before if isinstance(earlier, SaveFlag) else before
        self._held = threading.local()
        # A pool ends its workers by SIGTERM and waits for them: the flag is not theirs. The signal
        # may come at once, before Python in the child would hear of it.
        os.register_at_fork(
            before=self._hold, after_in_parent=self._release, after_in_child=self._leave_to_parent
        )

    def _hold(self) -> None:
        self._held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def _release(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._held.mask)

    def _leave_to_parent(self) -> None:
        if signal.getsignal(signal.SIGTERM) == self._raise:
            signal.signal(signal.SIGTERM, self._before)
        self._release()

    def _raise(self, number: int, _: FrameType | None) -> None:
        self._caught.add(number)

    def _ends(self) -> bool:
        return signal.SIGTERM in self._caught

    def __bool__(self) -> bool:
        return bool(self._caught)

    def leave(self, *, patience_s: float = 60.0) -> None:
        """Leave the GPU, after saving: requeue the job upon SIGUSR1, end upon SIGTERM.

        The end outranks a move. Returns only where the job cannot be requeued, as the cluster
        refuses it or there is no scontrol here, such as in a container; the flag is down again
        then, and training may go on.

        Parameters
        ----------
        patience_s : float
            Seconds that Slurm may take to end this process after it accepted the requeue.
        """
        job = job_id()
        if job and not self._ends():
            for attempt in range(3):
                if self._ends() or _requeued(job):
                    break
                time.sleep(attempt)
            else:
                self._caught.discard(signal.SIGUSR1)
                if not self._ends():
                    return
            end = time.monotonic() + patience_s
            while not self._ends() and time.monotonic() < end:
                time.sleep(0.05)
        sys.exit(128 + signal.SIGTERM if self._ends() else 0)


def _requeued(job: str) -> bool:
    """Ask the cluster to requeue a job; whether it will."""
    try:
        done = subprocess.run(["scontrol", "requeue", job], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file so that at every moment either the old or the new one is there, whole.

    Parameters
    ----------
    path : path_like
        The file to replace; a link to it stays one.

    Yields
    ------
    Path
        A name beside it to write to. When the block raises, the old file stays.
    """
    final = Path(os.path.realpath(path))
    # The suffix stays last: some writers, numpy's for one, append it where it is missing.
    draft = draft_of(final, final.suffix)
    try:
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(final)
    finally:
        draft.unlink(missing_ok=True)


class TraceLog:
    """A log that glidepath finds by itself: `step,loss,seconds`, one whole line at a time.

    Parameters
    ----------
    path : path_like, optional
        By default `$GLIDEPATH_TRACE`, else `glidepath-%j.csv`; %j, %A and %a stand for the job,
        its array and its task. An existing log is continued, its seconds too, so that waiting
        between two attempts does not look like slow steps.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        job = job_id() or "local"
        array, _, task = job.partition("_")
        pattern = os.fspath(path or os.environ.get("GLIDEPATH_TRACE") or "glidepath-%j.csv")
        values = {"j": job, "A": array, "a": task}
        self.path = Path(re.sub(r"%([jAa])", lambda match: values[match[1]], pattern))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        before, whole = self._last()
        self._zero = time.monotonic() - before
        self._file = self.path.open("a", encoding="utf-8", buffering=1)
        if not whole:
            self._file.write("\n")  # the line that a killed attempt left unfinished
        if self._file.tell() == 0:
            self._file.write("step,loss,seconds\n")

    def _last(self) -> tuple[float, bool]:
        """Seconds of the last whole line, and whether the file ends with one."""
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return 0.0, True
        lines = text.split("\n")  # the last one is unfinished, or there is nothing in it
        for line in reversed(lines[:-1]):
            with contextlib.suppress(ValueError, IndexError):
                seconds = float(line.split(",")[2])
                if math.isfinite(seconds):
                    return seconds, not lines[-1]
        return 0.0, not lines[-1]

    def add(self, step: int, loss: float) -> None:
        """Write a row; a reader sees all of it or nothing."""
        self._file.write(f"{step},{loss:.8g},{time.monotonic() - self._zero:.3f}\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> TraceLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
