# SPDX-License-Identifier: Apache-2.0
"""Arguments of public functions: what has one meaning is taken, the rest refused in one sentence.

The annotations of a function are the one table of what it takes. They are read when a call has
failed for a type, to say which argument has the wrong type: a call that works pays for
nothing but one more frame.
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
import re
import sys
import traceback
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from glidepath._core import InputError

P = ParamSpec("P")
R = TypeVar("R")

MAX_WAIT_S = 1_000_000  # 11 days; longer times overflow in the calls that wait

_WORDS: dict[Any, str] = {
    type(None): "None",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    os.PathLike: "a path",
    Mapping: "a dict",
    Sequence: "a list",
    Iterable: "a list",
    tuple: "a tuple",
    Callable: "a function",
}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Let a TypeError of a function say in one sentence which argument has the wrong type."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError) as error:
            refused = _refusal(function, args, kwargs, error)
            if refused is None:
                raise
        except InputError as error:
            if not _RECORD.match(str(error)):
                raise
            refused = InputError(_RECORD.sub(f"{_verb(function)}: ", str(error)))
        except OverflowError as error:
            large = _too_large(function, args, kwargs) if _is_ours(error) else None
            if large is None:
                raise
            raise InputError(large) from None
        raise refused

    return call


# A record of options at the head of a sentence, where the reader knows the function alone.
_RECORD = re.compile(r"^\w+(?:Options|Limits|Record): ")


def _verb(function: Callable[..., Any]) -> str:
    return function.__qualname__.removesuffix(".__init__")


class Checked:
    """Base of public classes: their methods are `checked`, an object needs its initialization."""

    __slots__ = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for name, value in list(vars(cls).items()):
            if name.startswith("_") and name != "__init__":
                continue
            function = getattr(value, "__func__", value)  # of a class or static method
            if isinstance(function, types.FunctionType) and not hasattr(function, "__wrapped__"):
                made = checked(function)
                setattr(cls, name, made if function is value else type(value)(made))

    if not TYPE_CHECKING:  # else any attribute would be one of it

        def __getattr__(self, name: str) -> NoReturn:
            kind = type(self)
            if any(name in vars(each).get("__slots__", ()) for each in kind.__mro__):
                raise TypeError(
                    f"this {kind.__name__} was never initialized: call its class, not __new__"
                )
            raise AttributeError(
                f"{kind.__name__!r} object has no attribute {name!r}", name=name, obj=self
            )


def check_fields(value: Any) -> None:
    """Refuse a field of a dataclass that has another type than its annotation."""
    kind = type(value)
    for name, hint in typing.get_type_hints(kind).items():
        given = getattr(value, name)
        if not _fits(given, hint):
            raise TypeError(f"{kind.__name__}: {name} is {_shown(given)}, expected {_words(hint)}")


def check_threads(threads: int) -> None:
    """Refuse a number of threads below 0, which stands for all cores."""
    if operator.index(threads) < 0:  # TypeError for NaN, with which a pool would wait for ever
        raise InputError(f"threads is {threads}, expected 0 or more")


def refuse_twice(what: str, values: Iterable[Any]) -> None:
    """Refuse a list that has one of its values twice: it would count twice."""
    seen: list[Any] = []
    for value in values:
        if value in seen:
            raise InputError(f"{what} {value} is there twice")
        seen.append(value)


def one_or_many(values: ArrayLike | None) -> Any:
    """Give a number as a column of one."""
    with suppress(ValueError):  # rows of different length are refused by who reads them
        return values if values is None or np.ndim(values) else np.atleast_1d(values)
    return values


def number_of(value: Any) -> float:
    """Give one number as a float; TypeError where it is text or several."""
    if not _is_number(value):
        raise TypeError
    return float(value)


def _is_number(value: Any) -> bool:
    known = hasattr(value, "__float__") or hasattr(value, "__index__")
    return known and getattr(value, "ndim", 0) == 0


def _is_whole(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return getattr(value, "ndim", 0) == 0


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair of UTF-16
        return False
    return True


def _refusal(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    error: AttributeError | TypeError,
) -> TypeError | InputError | None:
    """Say what is wrong with the arguments; None where it is not they or the error says it."""
    if not _is_ours(error):
        return None
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:  # one too many, or one that is missing
        return None
    verb, hints = _verb(function), hints_of(function)
    said = _RECORD.sub(f"{verb}: ", str(error))
    if said.startswith(f"{verb}: "):
        return TypeError(said)
    for name, value in given.items():
        parameter = signature.parameters[name]
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name in hints and not _fits(value, hints[name]):
            return TypeError(f"{verb}: {name} is {_shown(value)}, expected {_words(hints[name])}")
    if not re.search("incompatible (?:function|constructor) arguments", str(error)):
        return None
    for name, value in given.items():
        if isinstance(value, str) and not _is_encodable(value):
            return TypeError(
                f"{verb}: {name} is {_shown(value)}, expected text that UTF-8 can hold"
            )
    if beyond := _beyond_range(given, hints):
        return InputError(f"{verb}: {beyond}")
    for name, value in given.items():
        if misfit := _misfit(value, hints.get(name)):
            return TypeError(f"{verb}: {name}{misfit}")
    large = _too_large(function, args, kwargs)
    return TypeError(large or f"{verb}: an argument has the wrong type")


def _beyond_range(given: Mapping[str, Any], hints: Mapping[str, Any]) -> str | None:
    """Say which whole number the library has no room for: its type is right, its value is not."""
    wholes = {
        name: value
        for name, value in given.items()
        if hints.get(name) in (int, int | None) and value is not None
    }
    for name, value in wholes.items():
        if value < 0:
            return f"{name} is {value}, expected 0 or more"
    for name, value in wholes.items():
        if value >= 2**63:
            return f"{name} is {value}, expected a whole number of at most 64 bits"
    for name, value in wholes.items():
        if value >= 2**31:
            return f"{name} is {value}, expected a whole number of at most 31 bits"
    return None


def _misfit(value: Any, hint: Any) -> str | None:
    """Say which element of a list has another type than its hint."""
    if typing.get_origin(hint) not in (Sequence, list) or not isinstance(value, Sequence):
        return None
    (kind,) = typing.get_args(hint)
    for number, each in enumerate(value):
        if not _fits(each, kind):
            return f"[{number}] is {_shown(each)}, expected {_words(kind)}"
    return None


def _too_large(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str | None:
    """Say which argument is a whole number that no float can be."""
    for name, value in inspect.signature(function).bind(*args, **kwargs).arguments.items():
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            verb = function.__qualname__.removesuffix(".__init__")
            return f"{verb}: {name} is beyond {sys.float_info.max:.2g}, the largest number"
    return None


def _is_ours(error: BaseException) -> bool:
    """Whether it comes from this package, not from a function of the user that it calls."""
    known = {"glidepath", "numpy", *sys.stdlib_module_names}
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    modules = {str(frame.f_globals.get("__name__")).partition(".")[0] for frame in frames}
    return modules <= known


def hints_of(function: Any) -> dict[str, Any]:
    """Types of the arguments, also of those that its module imports for the checker alone."""
    import glidepath
    from glidepath import _core

    module = vars(inspect.getmodule(function))
    return typing.get_type_hints(
        function, {**vars(typing), **vars(_core), **vars(glidepath), **module}
    )


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value has a type; where that cannot be known it has."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in typing.get_args(hint))
    kind = origin or hint
    if kind is float:
        return _is_number(value)
    if kind is int:
        return _is_whole(value)
    if kind is bool:
        return isinstance(value, (bool, np.bool_))
    if kind in (Sequence, Iterable):
        return isinstance(value, kind) and not isinstance(value, (str, bytes, Mapping))
    if kind in _WORDS or getattr(kind, "__module__", "").startswith("glidepath"):
        return getattr(kind, "_is_protocol", False) or isinstance(value, kind)
    return True


def _shown(value: Any) -> str:
    """Write a value on one line, cut where it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _words(hint: Any) -> str:
    """Say what a type takes."""
    kinds = [typing.get_origin(each) or each for each in typing.get_args(hint)]
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        kinds = [typing.get_origin(hint) or hint]
    words = [_WORDS.get(kind) or _with_article(kind.__name__) for kind in kinds]
    return " or ".join(dict.fromkeys(words))


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'AEIO' else 'a'} {noun}"
