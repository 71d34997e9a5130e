# SPDX-License-Identifier: Apache-2.0
"""The files that a job calls its log: few, and such as the user of the job may read.

The pilot of an operator may read more than the user whose job names a log. So a file counts as a
log of a user's only if it is theirs, or if everybody may read it: its permissions and those of
every folder above it say so. The file is open by then, so it cannot be exchanged for another in
between. Access control lists do not count.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from glidepath._core import IoError
from glidepath.readers._series import open_plain

MOST_FILES = 5000  # of one log
_LARGEST, _MOST_BYTES = 1 << 28, 1 << 30  # of a file, and of all, that are copied


def open_as(path: Path, user: str) -> BufferedReader:
    """Open a regular file that `user` may read, too; "" for whatever we may.

    Raises
    ------
    IoError
        In the same words whether the file is not there or is not theirs.
    """
    try:
        file = open_plain(path)
    except IoError:
        if user:
            raise _hidden(path, user) from None
        raise
    handle = file.fileno()
    if user and not _may_read(Path(f"/proc/self/fd/{handle}").readlink(), os.fstat(handle), user):
        file.close()
        raise _hidden(path, user)
    return file


def files_of(path: Path, user: str) -> list[tuple[Path, os.stat_result]]:
    """List the files of a log with their states: itself, or those of the folder that it is.

    Raises
    ------
    IoError
        When there is none, or they are too many.
    """
    found = []
    for count, file in enumerate(_below(path, user)):
        if count == MOST_FILES:
            raise IoError(f"{path}: a folder of more than {MOST_FILES} files is no log")
        try:
            with open_as(file, user) as opened:
                found.append((file, os.fstat(opened.fileno())))
        except IoError:
            if file == path:
                raise
            continue
    return found


def _below(path: Path, user: str) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    if user and not _may_read(path.resolve(), path.stat(), user):
        raise _hidden(path, user)
    for folder, _, names in os.walk(path):
        yield from (Path(folder, name) for name in sorted(names))


def copy_as(files: list[tuple[Path, os.stat_result]], path: Path, user: str, to: Path) -> Path:
    """Copy the files of a log below a folder of ours, where nobody can exchange them.

    What is larger than a log is, such as a checkpoint beside it, stays behind.
    """
    left = _MOST_BYTES
    for file, status in files:
        if status.st_size > min(left, _LARGEST):
            continue
        target = to / path.name / file.relative_to(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_as(file, user) as source, target.open("wb") as copy:
            content = source.read(status.st_size)  # it may have grown since
            copy.write(content)
            left -= len(content)
    return to / path.name


def _may_read(real_path: Path, status: os.stat_result, user: str) -> bool:
    """Whether a file or folder is of the user, or for everybody."""
    try:
        uid = pwd.getpwnam(user).pw_uid
        if status.st_uid == uid:
            return True
        above = [folder.stat() for folder in real_path.parents]
    except (KeyError, OSError):
        return False
    return bool(status.st_mode & stat.S_IROTH) and all(
        each.st_mode & stat.S_IXOTH or each.st_uid == uid for each in above
    )


def _hidden(path: Path, user: str) -> IoError:
    return IoError(f"no log at {path} that {user} may read")
