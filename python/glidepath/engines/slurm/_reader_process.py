# SPDX-License-Identifier: Apache-2.0
"""Reads logs in a process of its own, which a bad log may keep busy, fill with data or end."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from glidepath._core import InputError, IoError
from glidepath._trace import Trace

LONGEST_S, _MOST_MEMORY = 60, 8 << 30


class ReaderProcess:
    """Calls `read_traces` in another process, which is started at the first log."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, path: Path, metric: str | None) -> list[Trace]:
        """Read a log; IoError also where it takes too long or ends the process."""
        try:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            pickle.dump((path, metric), process.stdin)
            process.stdin.flush()
            answer = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            raise IoError(f"{path}: {self._ended(error)}") from None
        except BaseException:  # Ctrl-C: its answer would be taken for that to the next question
            self._give_up()
            raise
        if isinstance(answer, str):
            raise IoError(answer)
        found: list[Trace] = answer
        return found

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._give_up()  # it ended since the last log, which is not the fault of this one
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(LONGEST_S)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,  # Ctrl-C is for the pilot
            )
            weakref.finalize(self, _kill, self._process)  # what it reads nobody waits for
        return self._process

    def _give_up(self) -> None:
        """End the process; the next log gets another one."""
        process, self._process = self._process, None
        if process is not None:
            _kill(process)

    def _ended(self, error: Exception) -> str:
        """Say why the process is gone; the next log gets another one."""
        process, self._process = self._process, None
        if process is None:
            return str(error)
        code = _end(process)
        if code == -signal.SIGALRM:
            return f"cannot be read within {LONGEST_S} s"
        return f"cannot be read: it ended the process (exit {code})"


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    _end(process)


def _end(process: subprocess.Popen[bytes]) -> int:
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with suppress(OSError):  # what it was sent last was not taken
            pipe.close()
    try:
        return process.wait(LONGEST_S + 5)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def serve(questions: IO[bytes], answers: IO[bytes], longest_s: int) -> None:
    """Answer each question, a path and a metric, with its traces or what is wrong with them."""
    from glidepath.readers._open import read_traces

    while True:
        try:
            path, metric = pickle.load(questions)
        except EOFError:
            return
        signal.alarm(longest_s)  # which ends the process
        answer: Any
        try:
            answer = read_traces(path, metric=metric)
        except (InputError, IoError, ImportError) as error:
            answer = str(error)
        signal.alarm(0)
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    _, allowed = resource.getrlimit(resource.RLIMIT_AS)  # of a login node often less
    most = _MOST_MEMORY if allowed == resource.RLIM_INFINITY else min(_MOST_MEMORY, allowed)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    own = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    serve(sys.stdin.buffer, own, int(sys.argv[1]))
