# SPDX-License-Identifier: Apache-2.0
"""Values as JSON can carry them: NaN is null, the infinities are "inf" and "-inf"."""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from glidepath import _core
from glidepath._core import InputError

# Kinds of arrays, by numpy's letters, that a column of a type may be read from.
_KINDS: dict[Any, str] = {np.float64: "iuf", np.int64: "iu", np.bool_: "b", np.str_: "U"}
_ELEMENTS = {"iuf": "numbers", "iu": "whole numbers", "b": "True or False", "U": "text"}


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
    if is_record(type(value)):
        return plain(value.__getstate__())
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return value


def is_record(kind: Any) -> bool:
    """Whether it is a class of the compiled module that one table of fields describes."""
    ours = getattr(kind, "__module__", None) == _core.__name__
    return ours and hasattr(kind, "__match_args__")


def restored_number(value: Any) -> Any:
    """Undo `plain` for a number or a list of numbers."""
    if value is None:
        return math.nan
    if isinstance(value, str) and value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, (list, tuple)):
        return [restored_number(item) for item in value]
    return value


def restored(value: Any, hint: Any) -> Any:
    """Undo `plain` for a value of this type."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hasattr(origin, "__value__"):  # NumPy's NDArray is a `type` statement from 2.5 on
        return restored(value, origin.__value__[inner])
    if origin in (typing.Union, types.UnionType):
        kinds = [each for each in inner if each is not type(None)]
        if value is None and len(kinds) < len(inner):
            return None
        if len(kinds) > 1:  # a number or a word
            kinds = [kind for kind in kinds if isinstance(value, str) == (kind is str)]
        return restored(value, kinds[0])
    kind = origin or hint
    if is_record(kind):
        check_whole(value, kind.__match_args__)
        made = kind.__new__(kind)
        made.__setstate__(restored_fields(value, kind.__annotations__))
        return made
    if hasattr(kind, "from_dict"):
        return kind.from_dict(value)
    if kind is np.ndarray:
        return _array(value, typing.get_args(inner[1])[0])
    if kind in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise TypeError(f"{value!r:.40} is no dict")
        return _table({inner[0](key): restored(item, inner[1]) for key, item in value.items()})
    if kind in (tuple, list, Sequence):
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"{value!r:.40} is no list")
        return tuple(restored(item, inner[0]) for item in value)
    if kind is Any:
        return _plainly(value)
    if kind is float:
        value = restored_number(value)
        if type(value) is int:
            return float(value)
    if isinstance(kind, type) and type(value) is not kind:
        raise TypeError(f"{value!r:.40} is no {kind.__name__}")
    return value


def restored_fields(state: Mapping[str, Any], hints: Mapping[str, Any]) -> dict[str, Any]:
    """Undo `plain` for each field; TypeError that names the first one of another type."""

    def field(name: str, value: Any) -> Any:
        try:
            return restored(value, hints.get(name, Any))
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name}: {error}") from None

    return {name: field(name, value) for name, value in state.items()}


def record_from(kind: Any, state: Any) -> Any:
    """Read what `to_dict` of a record wrote; InputError where it is something else or damaged."""
    with restoring(kind.__name__):
        return restored(state, kind)


def one_of(known: Iterable[Any], state: Any) -> Any:
    """Give the value, of those that this library has, that wrote a state; InputError for none."""
    values = list(known)
    what = type(values[0]).__name__
    with restoring(what):
        check_whole(state, values[0].to_dict())
        for value in values:
            if value.to_dict() == state:
                return value
        raise ValueError(f"this library has no such {what}, called {state['name']!r:.40}")


def _array(values: Any, dtype: Any) -> Any:
    """Give a read-only array; of a column of any type, that of its values."""
    known = restored_number(values) if dtype is np.float64 else values
    known = _plainly(values) if dtype is Any else known
    kind, kinds = np.asarray(known), _KINDS.get(dtype, "biufU")
    if kind.ndim == 0 or (kind.size and kind.dtype.kind not in kinds):
        raise TypeError(
            f"{values!r:.40} is no list of {_ELEMENTS.get(kinds, 'numbers or of text')}"
        )
    array = np.asarray(known, None if dtype is Any else dtype)
    array.flags.writeable = False
    return array


def _table(columns: dict[Any, Any]) -> dict[Any, Any]:
    """Give the columns as they are; ValueError where one is longer than another."""
    lengths = {len(each) for each in columns.values() if isinstance(each, np.ndarray)}
    if len(lengths) > 1:
        raise ValueError(f"its columns have {min(lengths)} to {max(lengths)} values")
    return columns


def _plainly(value: Any) -> Any:
    """Undo `plain` where nothing says the type: only what is not finite differs."""
    if isinstance(value, (list, tuple)):
        return [_plainly(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plainly(item) for key, item in value.items()}
    if not isinstance(value, (bool, int, float, str, type(None))):
        raise TypeError(f"{value!r:.40} is nothing that JSON has")
    return restored_number(value) if value in (None, "inf", "-inf") else value


@contextmanager
def restoring(what: str) -> Iterator[None]:
    """Read a state that somebody may have damaged: whatever is wrong in it is an InputError."""
    try:
        yield
    except KeyError as error:
        raise InputError(f"{what}: the state lacks {error.args[0]!r}") from None
    except (ArithmeticError, AttributeError, IndexError, RuntimeError, TypeError, ValueError) as e:
        said = str(e).partition("\n")[0].split("the state is damaged: ")[-1][:200]
        said = re.sub(rf"^{what}(Record)?: ", "", said)
        raise InputError(f"{what}: the state is damaged: {said}") from None


def check_whole(state: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuse, inside of `restoring`, a state without one of these names."""
    if not isinstance(state, Mapping):
        raise TypeError(f"{state!r:.40} is no dict")
    for name in names:
        if name not in state:
            raise KeyError(name)


def check_format(state: Any, what: str, name: str, version: int) -> None:
    """Refuse, with an InputError, what `to_dict` of this name and version did not write."""
    found = state.get("format") if isinstance(state, Mapping) else type(state).__name__
    if not isinstance(state, Mapping) or found != name:
        raise InputError(f"{what}: expected a state of format '{name}', got {found!r:.40}")
    if state.get("version") != version:
        raise InputError(
            f"{what}: state of version {state.get('version')!r:.40}, this library reads {version}"
        )
