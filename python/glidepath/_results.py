# SPDX-License-Identifier: Apache-2.0
"""The base of every result: equality that knows numpy, a one-line repr, a table for notebooks.

A result is a plain record::

    @dataclass(frozen=True, slots=True, eq=False, repr=False)
    class Fit(Result):
        family: str
        sigma: float
        ...

        def _summary(self) -> str:
            return f"{self.family}, sigma {self.sigma:.3g}, {self.status}"

        def plot(self, ax=None):
            from glidepath._pictures import runs  # late: matplotlib is an extra
            return runs.fit(self, ax=ax)

`_summary` is the one line that says whether the result is good; the rest follows from it. Pickle
works because a frozen dataclass with slots brings its own `__getstate__`.
"""

from __future__ import annotations

import html
import importlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, ClassVar, TypeVar

import numpy as np

from glidepath import _core
from glidepath._arguments import Checked, hints_of
from glidepath._json import check_whole, plain, restored, restored_fields, restoring

_Result = TypeVar("_Result", bound="Result")
_OfRecord = TypeVar("_OfRecord", bound="Recorded")

_INSTALL = {  # extras that are not called as their module is
    "distributed": "dask",
    "gymnasium": "gym",
    "matplotlib": "plot",
    "plotly": "report",
    "pyarrow": "arrow",
    "pytorch_lightning": "lightning",
    "statsmodels": "bench",
}
_EXTRAS = (
    *("keras", "lightning", "mlflow", "optuna", "pandas", "ray", "skorch", "transformers"),
    "wandb",
)


def counted(number: int, noun: str) -> str:
    """Write a number and its noun: 1 fit, 2 fits, 3 policies."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("cy") else f"{number} {noun}s"


def require(module: str) -> Any:
    """Import a module of an optional extra by its dotted name.

    ImportError, with the line to type, when it is not installed.
    """
    root = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != root:
            raise
        extra = root if root in _EXTRAS else _INSTALL.get(root)
        line = f"glidepath[{extra}]" if extra else root
        raise ImportError(f"{root} is not installed: pip install '{line}'", name=root) from None


def same(a: object, b: object) -> bool:
    """Whether two values are equal, arrays element by element and NaN equal to NaN."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
            return False
        if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
            return False
        return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float) and a != a and b != b:
        return True
    return bool(a == b)


def _short(value: object) -> str:
    """One cell of a table."""
    if isinstance(value, np.ndarray):
        return f"array{value.shape}"
    if isinstance(value, (float, np.floating)):
        return f"{value:.5g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_short(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_short(item) for item in value[:5])
        return f"{inner}, … {len(value)} in all" if len(value) > 5 else inner
    return str(value)


class Shown(Checked):
    """Base of what prints as one line, and in a notebook as a table and a picture."""

    __slots__ = ()

    def _summary(self) -> str:
        """One line: what it is and whether it is good. Stages override it."""
        return ", ".join(f"{name} {value}" for name, value in self._rows())

    def _rows(self) -> Iterator[tuple[str, str]]:
        """Rows of the notebook table."""
        yield from ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._summary()}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self._rows()
        )
        return (
            f"<div><p><b>{type(self).__name__}</b>: {html.escape(self._summary())}</p>"
            f"<table>{rows}</table>{self._svg()}</div>"
        )

    def _svg(self) -> str:
        """Inline SVG of `plot()`; empty without a plot or without matplotlib."""
        plot = getattr(self, "plot", None)
        if plot is None:
            return ""
        try:
            figure_module = importlib.import_module("matplotlib.figure")
        except ModuleNotFoundError:
            return ""
        # A Figure made directly belongs to no window manager: nothing to close, nothing leaks.
        figure = figure_module.Figure(figsize=(7.0, 3.6), layout="constrained")
        plot(ax=figure.add_subplot())
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        return text.getvalue()[text.getvalue().index("<svg") :]


class Result(Shown):
    """Mixin of every result class; see the module's documentation."""

    __slots__ = ()
    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(
            same(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)  # type: ignore[arg-type]
            if field.compare
        )

    @classmethod
    def _from_record(cls: type[_Result], record: object, **more: object) -> _Result:
        """Make it from a bound record with attributes of the same names, and from `more`."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        return cls(**{n: more[n] if n in more else getattr(record, n) for n in names})

    def _check(self) -> None:
        """Refuse, with a ValueError, values that nothing gives which makes such a result."""

    def to_dict(self) -> dict[str, Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
        return {each.name: plain(getattr(self, each.name)) for each in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_dict(cls: type[_Result], state: Mapping[str, Any]) -> _Result:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""
        hints = hints_of(cls)
        with restoring(cls.__name__):
            check_whole(state, (each.name for each in fields(cls)))  # type: ignore[arg-type]
            made = cls(**restored_fields(state, hints))
            made._check()
            made.__repr__()  # what lacks a column cannot even say what it is
            "".join(map("".join, made._rows()))
            return made

    def _rows(self) -> Iterator[tuple[str, str]]:
        """Rows of the notebook table. Stages override it where the bare fields are not enough."""
        for field in fields(self):  # type: ignore[arg-type]
            if not field.name.startswith("_"):
                yield field.name, _short(getattr(self, field.name))


class Recorded(Result):
    """Mixin of results whose values a record of the compiled module holds."""

    __slots__ = ("_record",)
    _record: Any

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__} is a result, which a function of glidepath makes")

    @classmethod
    def _of(cls: type[_OfRecord], record: Any) -> _OfRecord:
        made = cls.__new__(cls)
        made._record = record
        return made

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Recorded)
        return bool(self._record == other._record)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._of, (self._record,)

    def to_dict(self) -> dict[str, Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
        return plain(self._record)  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls: type[_OfRecord], state: Mapping[str, Any]) -> _OfRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""
        with restoring(cls.__name__):
            made = cls._of(restored(state, getattr(_core, f"{cls.__name__}Record")))
            made._check()
            return made

    def _rows(self) -> Iterator[tuple[str, str]]:
        for name, value in vars(type(self)).items():
            if isinstance(value, property) and not name.startswith("_"):
                yield name, _short(getattr(self, name))
