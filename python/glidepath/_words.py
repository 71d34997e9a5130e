# SPDX-License-Identifier: Apache-2.0
"""How numbers are written for people: steps, chances and times."""

from __future__ import annotations

import math

NO_VALUE = "no finite value so far"  # of a run of which there is nothing to draw
_LARGEST_COUNT = 1e12  # from which twelve digits, as reasons of a watch have, need an exponent


def count(value: float) -> str:
    """Write a step as a reader does: 41 200, not 4.12e4; one beyond all counts as 1e+300."""
    whole = float(value).is_integer() and abs(value) < _LARGEST_COUNT
    return f"{value:,.0f}".replace(",", " ") if whole else f"{value:.10g}"


def percent(chance: float) -> str:
    """Write a probability; only what is certain is 0 % or 100 %."""
    if 0.0 < chance < 0.005:
        return "< 1 %" if chance >= 0.0005 else "< 0.1 %"
    if 0.995 <= chance < 1.0:
        return "> 99 %"
    return f"{chance:.0%}".replace("%", " %")


def chance(probability: float, digits: int = 3) -> str:
    """Write a probability; only what is certain has digits as 0.000 or 1.000."""
    least = 10.0**-digits
    if 0.0 < probability < least / 2:
        return f"< {least:g}"
    if 1.0 - least / 2 <= probability < 1.0:
        return f"> {1.0 - least:g}"
    return f"{probability:.{digits}f}"


def duration(seconds: float) -> str:
    """Write a time with three digits in its largest unit."""
    if not math.isfinite(seconds):
        return "never"
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.0f} s"


def between(low: str, middle: str, high: str) -> str:
    """Write quantiles as the middle one and the interval around it, if there is any."""
    return middle if low == high else f"{middle} ({low} to {high})"
