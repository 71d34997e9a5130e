# SPDX-License-Identifier: Apache-2.0
"""What names say, by the one table of the core: which metric to look at, which way is better."""

from __future__ import annotations

from glidepath._core import InputError, direction_by_name, reached_by_name

__all__ = ["reached_by_name", "required_direction"]


def required_direction(name: str) -> str:
    """Tell as `direction_by_name` does; InputError where the name does not say."""
    direction = direction_by_name(name)
    if direction is None:
        raise InputError(
            f"the name {name!r} does not say which way is better: give direction='min' or 'max'"
        )
    return direction
