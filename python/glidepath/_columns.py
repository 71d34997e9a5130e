# SPDX-License-Identifier: Apache-2.0
"""Numbers as they are given, in lists, arrays, masked arrays or tensors, as columns of float64."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath._core import InputError

Floats = NDArray[np.float64]


def unmasked(values: Any) -> Any:
    """Give a masked array of numbers with NaN where it is masked; anything else as it is."""
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "fiub":
        return np.ma.filled(values.astype(np.float64), math.nan)
    return values


def array_of(values: ArrayLike, name: str, ndim: int = 1) -> NDArray[Any]:
    """Give an array of numbers of so many dimensions; whatever else is refused by its name."""
    try:
        found = np.asarray(unmasked(values))
    except ValueError:
        raise InputError(f"{name}: its rows differ in length") from None
    except (RuntimeError, TypeError) as error:  # of a tensor with gradients, on a GPU, in bfloat16
        raise TypeError(
            f"{name}: a {type(values).__name__} is no array of numbers: {error}"
        ) from None
    if found.dtype.kind not in "fiub" and found.size > 0:
        raise TypeError(f"{name}: expected an array of numbers, got dtype {found.dtype}")
    if found.ndim != ndim:
        plural = "" if ndim == 1 else "s"
        raise InputError(f"{name}: expected {ndim} dimension{plural}, got {found.ndim}")
    return found


def values_of(given: ArrayLike, name: str) -> Floats:
    """Give one number or many as a column."""
    many: Any = given
    with suppress(ValueError, RuntimeError, TypeError):  # what is no array is refused below
        many = given if np.ndim(unmasked(given)) else [given]
    return column_of(many, name)


def column_of(values: ArrayLike, name: str) -> Floats:
    """Give a column of float64 that nobody changes: the array itself where it is one, or a copy."""
    found = array_of(values, name)
    if found.dtype == np.float64 and found.flags.c_contiguous and _is_frozen(found):
        return found
    column = np.array(found, dtype=np.float64, order="C")
    column.flags.writeable = False
    return column


def _is_frozen(array: Any) -> bool:
    """Whether an array is read-only, and no view of one that is not, such as of a data frame."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return True
