# SPDX-License-Identifier: Apache-2.0
"""Verdicts on a run: which of them mean that it is lost, and how they are written."""

from __future__ import annotations


def is_lost(verdict: str) -> bool:
    """Whether a run with this verdict has no chance left: it is to be stopped."""
    return verdict in ("never", "diverged")


def words(verdict: str) -> str:
    """Write a verdict as a reader does: will reach, not will_reach."""
    return verdict.replace("_", " ")
