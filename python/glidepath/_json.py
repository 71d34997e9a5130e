# SPDX-License-Identifier: Apache-2.0
"""Values as JSON can carry them: NaN is null, the infinities are "inf" and "-inf"."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from glidepath._core import InputError


def plain(value: Any) -> Any:
    """Reduce a value to what JSON knows: arrays to lists, what is not finite to null and text."""
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def number(value: Any) -> Any:
    """Undo `plain` for a number or a list of numbers."""
    if value is None:
        return math.nan
    if isinstance(value, str):
        return float(value)
    if isinstance(value, (list, tuple)):
        return [number(item) for item in value]
    return value


@contextmanager
def restoring(what: str) -> Iterator[None]:
    """Read a state that somebody may have damaged: whatever is wrong in it is an InputError."""
    try:
        yield
    except KeyError as error:
        raise InputError(f"{what}: the state lacks {error.args[0]!r}") from None
    except (ArithmeticError, AttributeError, IndexError, RuntimeError, TypeError, ValueError) as e:
        said = str(e).partition("\n")[0][:200]
        raise InputError(f"{what}: the state is damaged: {said}") from None


def check_format(state: Any, what: str, name: str, version: int) -> None:
    """Refuse, with an InputError, what `to_dict` of this name and version did not write."""
    found = state.get("format") if isinstance(state, Mapping) else type(state).__name__
    if not isinstance(state, Mapping) or found != name:
        raise InputError(f"{what}: expected a state of format '{name}', got {found!r}")
    if state.get("version") != version:
        raise InputError(
            f"{what}: state of version {state.get('version')!r}, this library reads {version}"
        )
