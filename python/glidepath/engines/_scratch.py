# SPDX-License-Identifier: Apache-2.0
"""Folders for files in between: each goes at its end or, if its process is killed, at a next call.

A process holds a lock for as long as it lives, on a file beside its folder. A lock counts as lost
only on the machine that took it, and until that starts anew: on some file systems that machines
share, none of them sees the locks of another.
"""

from __future__ import annotations

import fcntl
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_BOOT = Path("/proc/sys/kernel/random/boot_id")  # of the machine, whatever container we are in


@contextmanager
def scratch_folder(parent: Path | None) -> Iterator[Path]:
    """Give a new folder, by default among the system's temporary files, and clean up there."""
    place = Path(tempfile.gettempdir()) if parent is None else parent
    here = _machine()
    _remove_abandoned(place, here)
    folder = place / f".scratch-{here}-{secrets.token_hex(8)}"
    with _lock_of(folder).open("xb") as file:
        _hold(file, folder)
        try:
            folder.mkdir(mode=0o700)
            yield folder
        finally:
            _remove(folder)


def _hold(file: BinaryIO, folder: Path) -> None:
    """Take the lock; where there are none, leave no file that somebody might find unlocked.

    A call that cleans up may be faster and take the file away: then nobody else will find it.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:
        _lock_of(folder).unlink(missing_ok=True)


def _remove_abandoned(place: Path, here: str) -> None:
    """Remove the folders whose locks nobody holds any more."""
    for lock in place.glob(f".scratch-{here}-*.lock"):
        # An error says that the lock is held, that it is another user's, or that it has just gone.
        with suppress(OSError), lock.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(lock.with_suffix(""))


def _remove(folder: Path) -> None:
    """Remove a folder and then its lock; where files are left, a next call will try again."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        _lock_of(folder).unlink(missing_ok=True)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def _machine() -> str:
    """Name this machine since its start; where it cannot be told from others, nobody's twice."""
    try:
        return _BOOT.read_text(encoding="ascii").strip().replace("-", "")
    except (OSError, ValueError):
        return secrets.token_hex(16)
