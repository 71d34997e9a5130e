# SPDX-License-Identifier: Apache-2.0
"""The verdicts on a run, in one list, and which of them mean that a run is lost."""

from __future__ import annotations

from typing import Literal, get_args

Verdict = Literal["unknown", "reached", "will_reach", "never", "diverged"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


def is_lost(verdict: str) -> bool:
    """Whether a run with this verdict has no chance left: it is to be stopped."""
    return verdict in ("never", "diverged")


def words(verdict: str) -> str:
    """Write a verdict as a reader does: will reach, not will_reach."""
    return verdict.replace("_", " ")
