# SPDX-License-Identifier: Apache-2.0
"""What a worker does: it answers a question for a part of a table, or sorts a piece into ranges."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glidepath._answer import quantile_name
from glidepath._core import InputError
from glidepath._drafts import draft_of
from glidepath._fit import FAMILIES
from glidepath._fit_batch import fit_batch
from glidepath._forecast import forecast_batch
from glidepath._results import require
from glidepath.engines._dask_parts import _joined, _Part, _Piece


@dataclass(frozen=True, slots=True)
class _Question:
    """The question to each run: a fit or a forecast, its columns and its options."""

    kind: str
    run: str
    step: str
    value: str
    options: dict[str, Any]


def _read(part: _Part, question: _Question) -> tuple[Any, NDArray[np.int64], Any, Any]:
    """Read the runs of a part: their names in order, and code, step and value of each point."""
    arrow, compute = require("pyarrow"), require("pyarrow.compute")
    parquet = require("pyarrow.parquet")
    wanted = [question.run, question.step, question.value]
    tables = []
    for piece in part.pieces:
        file = parquet.ParquetFile(piece.path)
        for name in wanted:
            if name not in file.schema_arrow.names:
                raise InputError(f"{piece.path}: no column {name!r}")
        table = file.read_row_group(piece.group, columns=wanted, use_threads=False)
        table = _plain_runs(table, question.run)
        if table[question.value].null_count:  # a row without a value is no point
            table = table.filter(compute.is_valid(table[question.value]))
        low = part.low if part.low is not None and piece.low < part.low else None
        high = part.high if part.high is not None and piece.high >= part.high else None
        tables.append(_between(table, question.run, low, high))
    table = _joined(tables)
    if table[question.run].null_count:
        raise InputError(f"{part.pieces[0].path}: the column {question.run!r} holds nulls")
    names = table[question.run].combine_chunks()
    if isinstance(names, arrow.ChunkedArray):
        names = arrow.concat_arrays(names.chunks)
    names = names.dictionary_encode()
    order = compute.sort_indices(names.dictionary)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    code = rank[names.indices.to_numpy(zero_copy_only=False)]
    points = [_floats(table[name], part, name) for name in wanted[1:]]
    return names.dictionary.take(order), code, points[0], points[1]


def _floats(column: Any, part: _Part, name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(column.to_numpy(), dtype=np.float64)
    except (ValueError, TypeError):
        raise InputError(f"{part.pieces[0].path}: the column {name!r} is not of numbers") from None


def _grids(
    code: NDArray[np.int64], step: NDArray[np.float64], value: NDArray[np.float64], runs: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]]:
    """Give runs that share their steps together: which ones, the steps, a row of values each."""
    good = np.isfinite(step)
    if not good.all():
        code, step, value = code[good], step[good], value[good]
    same, ahead = code[1:] == code[:-1], step[1:] > step[:-1]
    if not np.all(np.where(same, ahead, code[1:] > code[:-1])):
        order = np.lexsort((step, code))  # stable: of equal steps the later row comes last
        code, step, value = code[order], step[order], value[order]
        last = np.append((code[1:] != code[:-1]) | (step[1:] != step[:-1]), True)
        code, step, value = code[last], step[last], value[last]
    counts = np.bincount(code, minlength=runs)
    starts = np.concatenate([[0], np.cumsum(counts)])
    for count in np.unique(counts[counts > 0]):
        which = np.flatnonzero(counts == count)
        at = starts[which][:, None] + np.arange(count)
        steps, values = step[at], value[at]
        if np.all(steps == steps[0]):
            yield which, steps[0], values
            continue
        keys = np.ascontiguousarray(steps).view(np.dtype((np.void, steps.dtype.itemsize * count)))
        _, group = np.unique(keys.ravel(), return_inverse=True)
        for number in range(group.max() + 1):
            members = np.flatnonzero(group == number)
            yield which[members], steps[members[0]], values[members]


def _fit(question: _Question, names: Any, code: NDArray[np.int64], step: Any, value: Any) -> Any:
    arrow = require("pyarrow")
    runs, family = len(names), question.options["family"]
    params = {name: np.full(runs, np.nan) for name in FAMILIES[family]}
    sigma, points = np.full(runs, np.nan), np.zeros(runs, dtype=np.int64)
    status = np.full(runs, "too_few_points", dtype=object)
    for which, steps, values in _grids(code, step, value, runs):
        found = fit_batch(steps, values, **question.options, threads=1)
        for name, column in found.params.items():
            params[name][which] = column
        sigma[which], status[which], points[which] = found.sigma, found.status, steps.size
    return arrow.table(
        {question.run: names, "points": points, **params, "sigma": sigma,
         "status": arrow.array(status, arrow.string())}
    )  # fmt: skip


def _forecast(
    question: _Question, names: Any, code: NDArray[np.int64], step: Any, value: Any
) -> Any:
    arrow = require("pyarrow")
    runs, levels = len(names), question.options["levels"]
    ahead = np.array(question.options["at"])
    median = np.full((runs, ahead.size), np.nan)
    quantiles = np.full((len(levels), runs, ahead.size), np.nan)
    status = np.full((runs, ahead.size), "ended", dtype=object)
    for which, steps, values in _grids(code, step, value, runs):
        later = np.flatnonzero(ahead > steps[-1])
        if later.size == 0:
            continue
        found = forecast_batch(
            steps,
            values,
            ahead[later],
            levels=levels,
            direction=question.options["direction"],
            threads=1,
        )
        cells = np.ix_(which, later)
        median[cells], status[cells] = found.median, np.asarray(found.status)[:, None]
        for level in range(len(levels)):
            quantiles[level][cells] = found.quantiles[level]
    columns = {
        question.run: names.take(arrow.array(np.repeat(np.arange(runs), ahead.size))),
        question.step: np.tile(ahead, runs),
        "status": arrow.array(status.ravel(), arrow.string()),
        "median": arrow.array(median.ravel(), from_pandas=True),
    }
    for level, values in zip(levels, quantiles, strict=True):
        columns[quantile_name(level)] = arrow.array(values.ravel(), from_pandas=True)
    return arrow.table(columns)


_TASKS: dict[str, Callable[..., Any]] = {"fit": _fit, "forecast": _forecast}


def _of_no_run(question: _Question, path: str) -> Any:
    """Give the answer for a table without rows: that of its columns is known all the same."""
    arrow = require("pyarrow")
    kind = require("pyarrow.parquet").read_schema(path).field(question.run).type
    kind = kind.value_type if arrow.types.is_dictionary(kind) else kind
    nothing = np.empty(0)
    code = np.empty(0, dtype=np.int64)
    return _TASKS[question.kind](question, arrow.array([], kind), code, nothing, nothing)


def _task(question: _Question, part: _Part, target: str | None) -> Any:
    """Answer for one part: as a table, or as a file that is there whole or not at all."""
    table = _TASKS[question.kind](question, *_read(part, question))
    if target is None:
        return table
    _write(table, Path(target))
    return table.num_rows


def _write(table: Any, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(target)
    try:
        require("pyarrow.parquet").write_table(table, draft)
        draft.replace(target)
    except FileNotFoundError:
        if not target.exists():  # else another process had all parts, and cleaned up
            raise
    finally:
        draft.unlink(missing_ok=True)


def _scatter(
    question: _Question, piece: _Piece, cuts: Sequence[Any], rows: int, folder: str
) -> list[_Piece]:
    """Sort a row group of a table in no order into the ranges between the cuts, file by file."""
    arrow, compute = require("pyarrow"), require("pyarrow.compute")
    columns = [question.run, question.step, question.value]
    name = hashlib.sha256(f"{piece.path} {piece.group}".encode()).hexdigest()[:16]
    batches = require("pyarrow.parquet").ParquetFile(piece.path).iter_batches(
        rows, row_groups=[piece.group], columns=columns, use_threads=False
    )  # fmt: skip
    made = []
    for batch_number, batch in enumerate(batches):
        table = _plain_runs(arrow.Table.from_batches([batch]), question.run)
        if table[question.run].null_count:
            raise InputError(f"{piece.path}: the column {question.run!r} holds nulls")
        for number, (low, high) in enumerate(itertools.pairwise([None, *cuts, None])):
            found = _between(table, question.run, low, high)
            if found.num_rows:
                target = Path(folder) / f"{number:05}-{name}-{batch_number:05}.parquet"
                _write(found, target)
                ends = compute.min_max(found[question.run])
                made.append(
                    _Piece(str(target), 0, len(found), ends["min"].as_py(), ends["max"].as_py())
                )
    return made


def _between(table: Any, run: str, low: Any, high: Any) -> Any:
    """Keep the rows of the runs from `low` (or the first) up to but without `high`."""
    compute = require("pyarrow.compute")
    if low is not None:
        table = table.filter(compute.greater_equal(table[run], low))
    return table if high is None else table.filter(compute.less(table[run], high))


def _plain_runs(table: Any, run: str) -> Any:
    """Write out the run column of a table where it comes as a dictionary."""
    kind = table.schema.field(run).type
    if not require("pyarrow").types.is_dictionary(kind):
        return table
    return table.set_column(
        table.schema.get_field_index(run), run, table[run].cast(kind.value_type)
    )
