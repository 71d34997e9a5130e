# SPDX-License-Identifier: Apache-2.0
"""Data frames of any library with Arrow's PyCapsule protocol: Polars, pandas, DuckDB, pyarrow.

Wide, with a column a metric, or long, with a column of metrics' names and one of values; in both
forms a column of runs may tell several apart. A null was not logged; NaN was, and stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glidepath._columns import Floats
from glidepath._core import (
    CLOCKS,
    DATES,
    STAMPS,
    TIMES,
    AbsentError,
    InputError,
    IoError,
    LogRows,
    Series,
    is_step_name,
    names_run,
    normal_name,
)
from glidepath._results import require
from glidepath._trace import Trace
from glidepath.readers._series import traces_of

# Columns that tell any runs apart, of one row, too, and those that go on from one another.
_RUNS = ("curve", "run", "run_id", "run_name", "trial_id", "trial")
_MOST_NAMES = 1000  # of a column that tells rows apart
_FEW = 3  # columns that a sentence names
# Names and values of the long form; the second pair is that of Neptune's exporter.
_LONG_COLUMNS = (("metric", "value"), ("attribute_path", "float_value"))
_Mask = NDArray[np.bool_]


def read(frame: Any, metric: str | None) -> list[Trace]:
    """Read every run of a data frame."""
    arrow = require("pyarrow")
    if not any(hasattr(frame, name) for name in ("columns", "column_names", "schema")):
        what = type(frame).__name__
        raise InputError(f"data frame: a {what} is one column, expected steps and losses")
    try:
        table = arrow.table(frame)
    except (arrow.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"data frame: {error}") from None
    return of_table(table, metric, "data frame")


def of_table(table: Any, metric: str | None, label: Path | str) -> list[Trace]:
    """Read every run of an Arrow table."""
    table = _with_index(table)
    names: list[str] = table.column_names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise IoError(f"{label}: two columns are called {twice!r}")
    spelled = {normal_name(name): name for name in reversed(names)}
    known = [spelled[name] for name in _RUNS if name in spelled]
    run = next((name for name in known if table[name].null_count < table.num_rows), None)
    columns = list(_metrics(table, run, spelled, metric, label))
    _check_numbers(table, run, {name for name, *_ in columns}, label)
    labels = list(_labels(table, run, spelled))
    own = np.zeros(table.num_rows, dtype=int) if run is None else _codes(table[run])
    whose = _filled(own)
    runs: dict[str, dict[str, Series]] = {}
    called: dict[str, str] = {}
    settings: dict[str, dict[str, float | str]] = {}
    for number in range(whose.max(initial=-1) + 1):
        rows = LogRows()
        here = whose == number
        own_row = np.cumsum(here) - 1
        for name, value, logged in columns:
            at = np.flatnonzero(here & logged)
            if at.size:
                rows.put_column(name, own_row[at].tolist(), value[at].tolist())
        for name, codes, texts in labels:
            at = np.flatnonzero(here & (codes >= 0))
            rows.put_labels(name, own_row[at].tolist(), codes[at].tolist(), texts)
        first = int(np.argmax(own == number))
        named = "" if run is None else str(table[run][first].as_py())
        for part in rows.runs():
            key = str(len(runs))
            runs[key], settings[key] = part.series, part.settings
            called[key] = "/".join(filter(None, (named, part.name)))
    told = run is not None or any(names_run(name) for name, *_ in labels)
    if metric is None and told and any(name == "value" for name, *_ in columns):
        metric = "value"  # the long form of ours
    return traces_of(runs, metric, label, names=called, settings=settings)


def _labels(
    table: Any, run: str | None, spelled: dict[str, str]
) -> Iterator[tuple[str, NDArray[np.int64], list[str]]]:
    """Give the columns of names: of which its rows have which, and the names."""
    long = {spelled.get(name) for name, _ in _LONG_COLUMNS}
    for name in table.column_names:
        kind = table[name].type
        says = names_run(name) or _is_text(kind) or _is_flag(name, kind)
        if name == run or name in long or not says:
            continue
        codes = _codes(table[name])
        found, firsts = np.unique(codes, return_index=True)
        firsts = firsts[found >= 0]
        if firsts.size <= _MOST_NAMES:
            yield name, codes, [_spelled(table[name][int(first)].as_py()) for first in firsts]


def _spelled(name: object) -> str:
    """Spell the name of a run: a seed that nulls beside it made a float as a whole number."""
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name)


def _with_index(table: Any) -> Any:
    """Add, as a column, the index of pandas that its rows are known by.

    Arrow leaves a range to the metadata, and calls another index without a name by a number. One
    without a name is taken where it increases and does not merely count the rows, of one run.
    """
    about = table.schema.pandas_metadata or {}
    several = any(
        normal_name(field.name) in _RUNS or names_run(field.name) or _is_text(field.type)
        for field in table.schema
    )
    for index in about.get("index_columns", ()):
        if isinstance(index, dict) and index.get("kind") == "range":
            steps = np.arange(index["start"], index["stop"], index["step"])
            name = index.get("name")
        elif re.fullmatch(r"__index_level_\d+__", str(index)) and _is_number(table[index].type):
            steps, name = table[index].to_numpy(), None
        else:
            continue
        counts = several or list(steps[:2]) == [0, 1] or not np.all(steps[1:] > steps[:-1])
        if not name and not counts:
            name = "index"
        if name and name not in table.column_names and steps.size == table.num_rows:
            table = table.append_column(name, require("pyarrow").array(steps))
    return table


def _metrics(
    table: Any,
    run: str | None,
    spelled: dict[str, str],
    metric: str | None,
    label: Path | str,
) -> Iterator[tuple[str, Floats, _Mask]]:
    """Give each column's name, values and in which rows it was logged."""
    aside = [name for name in table.column_names if _is_aside(name, table[name].type)]
    for name in aside:
        if name != run:
            yield name, *_numbers(table, name, label)
    for name, value in _LONG_COLUMNS:
        if {name, value} <= spelled.keys() and _is_text(table[spelled[name]].type):
            numbers, logged = _numbers(table, spelled[value], label)
            codes = _codes(table[spelled[name]])
            for code in range(codes.max(initial=-1) + 1):
                first = int(np.argmax(codes == code))
                yield table[spelled[name]][first].as_py(), numbers, logged & (codes == code)
            return
    for name in table.column_names:
        if name not in (run, *aside) and (name == metric or _is_number(table[name].type)):
            yield name, *_numbers(table, name, label)


def _is_aside(name: str, kind: Any) -> bool:
    """Whether a column says when a row was logged."""
    normal = normal_name(name)
    dated = normal in (*TIMES, *DATES) and _is_time(kind)
    return dated or is_step_name(name) or normal in (*CLOCKS, *STAMPS)


def _check_numbers(table: Any, run: str | None, read: set[str], label: Path | str) -> None:
    """Name the columns of text where none but steps and times were read."""
    kinds = {name: table[name].type for name in table.column_names if name != run}
    texts = [repr(name) for name, kind in kinds.items() if _is_text(kind)]
    if texts and all(name in kinds and _is_aside(name, kinds[name]) for name in read):
        hold = "column {} holds" if len(texts) == 1 else "columns {} hold"
        shown = ", ".join(texts[:_FEW]) + (", …" if len(texts) > _FEW else "")
        raise AbsentError(f"{label}: no metric was logged: {hold.format(shown)} text, not numbers")


def _numbers(table: Any, name: str, label: Path | str) -> tuple[Floats, _Mask]:
    """Give a column as numbers, times as seconds, and where it is not null."""
    arrow = require("pyarrow")
    column = table[name]
    kind = column.type
    try:
        if arrow.types.is_temporal(kind):
            micro = arrow.duration("us") if arrow.types.is_duration(kind) else arrow.timestamp("us")
            numbers = column.cast(micro).cast(arrow.int64()).cast(arrow.float64(), safe=False)
            scale = 1e-6
        else:
            numbers, scale = column.cast(arrow.float64(), safe=False), 1.0
    except arrow.ArrowException:
        held = "text" if _is_text(kind) else kind
        raise IoError(f"{label}: column {name!r} holds {held}, not numbers") from None
    values = np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=float) * scale
    return values, np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=bool)


def _codes(column: Any) -> NDArray[np.int64]:
    """Number the different values of a column, in the order in which they come; nulls are -1."""
    coded = column.combine_chunks().dictionary_encode()
    if not hasattr(coded, "indices"):  # a dictionary already, in its own order
        coded = coded.chunk(0)
    signed = coded.indices.cast(require("pyarrow").int64())  # those of Polars have no -1
    return np.asarray(signed.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _filled(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Let a row without a run be of the run above it, or of the first where there is none."""
    rows = np.flatnonzero(codes >= 0)
    above = np.searchsorted(rows, np.arange(codes.size), side="right") - 1
    return codes[rows[np.maximum(above, 0)]] if codes.size else codes


def _is_text(kind: Any) -> bool:
    arrow = require("pyarrow")
    if arrow.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        arrow.types.is_string(kind)
        or arrow.types.is_large_string(kind)
        or arrow.types.is_string_view(kind)
    )


def _is_flag(name: str, kind: Any) -> bool:
    """Whether a column may say by true or false, or by 1 or 0, of what data its rows are."""
    digits = normal_name(name).startswith("is_") and _is_number(kind)
    return digits or bool(require("pyarrow").types.is_boolean(kind))


def _is_time(kind: Any) -> bool:
    types = require("pyarrow").types
    return bool(types.is_timestamp(kind) or types.is_duration(kind))


def _is_number(kind: Any) -> bool:
    types = require("pyarrow").types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
