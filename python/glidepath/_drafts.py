# SPDX-License-Identifier: Apache-2.0
"""Names of files that take the place of others once they are whole."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def draft_of(path: Path, end: str = ".part") -> Path:
    """Name a file beside `path` that nobody else writes to.

    Another thread, process or machine may write the same file, and processes of two containers may
    have the same number.
    """
    return path.with_name(f".{path.name[:50]}.{secrets.token_hex(8)}{end}")


def write_whole(path: Path, data: bytes) -> None:
    """Write all of a file or nothing: a reader never meets half of it, and an error leaves the old.

    What is no regular file, such as /dev/stdout, is written to and stays what it is. A file that
    its user alone may read stays so, too.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            file.write(data)
        return
    whole = Path(os.path.realpath(path))  # a link stays one, too
    beside = draft_of(whole)
    try:
        beside.write_bytes(data)
        with suppress(OSError):  # where there is none yet, or a file system has no modes
            beside.chmod(stat.S_IMODE(whole.stat().st_mode))
        with beside.open("rb") as file:
            os.fsync(file.fileno())  # a machine that loses power keeps the whole of one of them
        beside.replace(whole)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
