# SPDX-License-Identifier: Apache-2.0
"""Names of files that take the place of others once they are whole."""

from __future__ import annotations

import secrets
from pathlib import Path


def draft_of(path: Path, end: str = ".part") -> Path:
    """Name a file beside `path` that nobody else writes to.

    Another thread, process or machine may write the same file, and processes of two containers may
    have the same number.
    """
    return path.with_name(f".{path.name[:50]}.{secrets.token_hex(8)}{end}")
