# SPDX-License-Identifier: Apache-2.0
"""The summary of a W&B run, which holds no curve: it says where the curve is."""

from __future__ import annotations

from pathlib import Path

from glidepath._core import RefusedError
from glidepath._trace import Trace


def recognises(path: Path, head: bytes) -> bool:
    """Whether it is a summary."""
    return head.lstrip()[:1] == b"{" and (
        path.name.endswith("wandb-summary.json") or (b'"_wandb"' in head and b'"_step"' in head)
    )


def read(path: Path, metric: str | None) -> list[Trace]:
    """Refuse, and say what to do."""
    raise RefusedError(
        f"{path}: a summary of W&B has only the last value of each metric; read the run-*.wandb of "
        "the folder above, or the address of the run's page"
    )
