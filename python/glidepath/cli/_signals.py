# SPDX-License-Identifier: Apache-2.0
"""Signals that end a loop between two of its steps."""

from __future__ import annotations

import select
import signal
import socket
import threading


class StopSignals(threading.Event):
    """An event that SIGINT and SIGTERM set, for the main thread inside `with`.

    Python calls a handler between two of its instructions. A signal that comes between the last
    one and the system call of a wait would have its handler called once that wait is over, and a
    handler that interrupts `threading.Event` finds its lock taken. So the signal itself writes to a
    socket (`signal.set_wakeup_fd`), and the wait is for something to read there.
    """

    numbers = (signal.SIGINT, signal.SIGTERM)

    def __enter__(self) -> StopSignals:
        self._came, self._wakeup = socket.socketpair()
        self._came.settimeout(0.0)
        self._wakeup.settimeout(0.0)
        self._wakeup_before = signal.set_wakeup_fd(self._wakeup.fileno(), warn_on_full_buffer=False)
        self._handlers_before = [signal.signal(number, _ignore) for number in self.numbers]
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in zip(self.numbers, self._handlers_before, strict=True):
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        self._came.close()
        self._wakeup.close()

    def numbers_caught(self) -> set[int]:
        """The numbers of the signals that came; the event stays set."""
        if not self.is_set():
            return set()
        return set(self._came.recv(1 << 16, socket.MSG_PEEK)) & set(self.numbers)

    def set(self) -> None:
        self._wakeup.send(b"\0")

    def is_set(self) -> bool:
        return self.wait(0.0)

    def wait(self, timeout: float | None = None) -> bool:
        return bool(select.select([self._came], [], [], timeout)[0])


def _ignore(_number: int, _frame: object) -> None:
    """Leave a signal to the socket; a handler of Python must be there for it to be written."""
