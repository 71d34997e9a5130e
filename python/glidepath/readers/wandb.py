# SPDX-License-Identifier: Apache-2.0
"""What Weights & Biases leaves on disk: neither holds a curve that can be read, so it says why."""

from __future__ import annotations

from pathlib import Path

from glidepath._trace import Trace
from glidepath.readers._series import RefusedError

__all__ = ["read", "recognises", "unit"]

_EXPORT = (
    "write the history with pandas.DataFrame(wandb.Api().run(PATH).scan_history())"
    ".to_csv(FILE, index=False) and read that"
)


def recognises(path: Path, head: bytes) -> bool:
    """Whether it is a transaction log or a summary."""
    if head.startswith(b":W&B"):
        return True
    return head.lstrip()[:1] == b"{" and (
        path.name.endswith("wandb-summary.json") or (b'"_wandb"' in head and b'"_step"' in head)
    )


def unit(path: Path) -> Path:
    """Judge each file alone."""
    return path


def read(path: Path, metric: str | None) -> list[Trace]:
    """Refuse, and say what to do."""
    with path.open("rb") as file:
        is_log = file.read(4) == b":W&B"
    if is_log:
        raise RefusedError(
            f"{path}: a transaction log of W&B, whose layout is not documented; send it to a "
            f"server with 'wandb sync {path.parent}', {_EXPORT}"
        )
    raise RefusedError(
        f"{path}: a summary of W&B has only the last value of each metric; {_EXPORT}"
    )
