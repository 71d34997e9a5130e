# SPDX-License-Identifier: Apache-2.0
"""What names say, by the one table of the core: which metric to look at, which way is better."""

from __future__ import annotations

from glidepath._core import (
    CLOCKS,
    DATES,
    STAMPS,
    TIMES,
    InputError,
    best_name,
    direction_by_name,
    is_metric_name,
    is_rate_name,
    is_step_name,
    is_step_within_epoch,
    normal_name,
    reached_by_name,
    step_columns,
)

__all__ = [
    "CLOCKS",
    "DATES",
    "STAMPS",
    "TIMES",
    "best_name",
    "direction_by_name",
    "is_metric_name",
    "is_rate_name",
    "is_step_name",
    "is_step_within_epoch",
    "normal_name",
    "reached_by_name",
    "required_direction",
    "step_columns",
]


def required_direction(name: str) -> str:
    """Tell as `direction_by_name` does; InputError where the name does not say."""
    direction = direction_by_name(name)
    if direction is None:
        raise InputError(
            f"the name {name!r} does not say which way is better: give direction='min' or 'max'"
        )
    return direction
