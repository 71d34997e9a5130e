# SPDX-License-Identifier: Apache-2.0
"""Parts of a Parquet table: ranges of its runs, by the minima and maxima of its row groups."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from glidepath._core import InputError, IoError
from glidepath._results import require


@dataclass(frozen=True, slots=True)
class _Piece:
    """A row group of a file and the range of its runs."""

    path: str
    group: int
    rows: int
    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class _Part:
    """A task: the runs from `low` (or the first) up to but without `high`, and where they are."""

    pieces: tuple[_Piece, ...]
    low: Any
    high: Any


def _pieces(source: Path, run: str, out: Path | None = None) -> list[_Piece]:
    """List the row groups of a table with rows, without those of its answer beside them."""
    parquet = require("pyarrow.parquet")
    pieces = []
    first: tuple[str, Path] | None = None
    for path in _files(source, out):
        try:
            meta = parquet.read_metadata(path)
        except (OSError, require("pyarrow").ArrowInvalid) as error:
            raise IoError(f"{path}: {error}") from None
        kind = _kind(meta.schema.to_arrow_schema(), run, path)
        first = first or (kind, path)
        if kind != first[0]:
            raise InputError(
                f"{path}: the column {run!r} is of {kind}, that of {first[1]} of {first[0]}"
            )
        for group in range(meta.num_row_groups):
            row_group = meta.row_group(group)
            column = next(
                row_group.column(i)
                for i in range(row_group.num_columns)
                if row_group.column(i).path_in_schema == run
            )
            facts = column.statistics
            if facts is not None and facts.has_min_max:
                low, high = facts.min, facts.max
            else:
                low, high = _ends(path, group, run)
            if row_group.num_rows:
                if low is None:
                    raise InputError(f"{path}: the column {run!r} holds nulls")
                pieces.append(_Piece(str(path), group, row_group.num_rows, low, high))
    return pieces


def _files(source: Path, out: Path | None = None) -> list[Path]:
    """List the files of a table; none of them is of its answer, which may lie in its folder."""
    if not source.is_dir():
        files = [source] if source.exists() else []
    else:
        files = sorted(source.rglob("*.parquet"))
        if out is not None and source.resolve() in out.resolve().parents:
            files = [path for path in files if out.resolve() not in path.resolve().parents]
    if not files:
        raise IoError(f"{source}: no Parquet file there")
    return files


def _kind(schema: Any, run: str, path: Path) -> str:
    """Say of what kind the column of runs is; files of several kinds are no table."""
    types = require("pyarrow").types
    if run not in schema.names:
        raise InputError(f"{path}: no column {run!r} among {', '.join(schema.names)}")
    kind = schema.field(run).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_nested(kind):
        raise InputError(f"{path}: the column {run!r} is of {kind}, expected integers or text")
    text = types.is_string(kind) or types.is_large_string(kind)
    return "text" if text else "integers" if types.is_integer(kind) else str(kind)


def _joined(tables: Sequence[Any]) -> Any:
    """Put tables below each other: files may write a number or a text in several ways."""
    arrow = require("pyarrow")
    try:
        return arrow.concat_tables(tables, promote_options="permissive")
    except arrow.ArrowException as error:
        raise InputError(f"columns of one name differ between files: {error}") from None


def _ends(path: Path, group: int, run: str) -> tuple[Any, Any]:
    """Find the least and greatest run of a row group without statistics."""
    parquet, compute = require("pyarrow.parquet"), require("pyarrow.compute")
    column = parquet.ParquetFile(path).read_row_group(group, columns=[run])[run]
    ends = compute.min_max(column)
    return ends["min"].as_py(), ends["max"].as_py()


def _parts(pieces: Sequence[_Piece], cuts: Sequence[Any]) -> list[_Part]:
    """Cut at the given runs; each part knows the pieces it has to read."""
    bounds = [None, *cuts, None]
    parts = []
    for low, high in itertools.pairwise(bounds):
        inside = tuple(
            piece
            for piece in pieces
            if (high is None or piece.low < high) and (low is None or piece.high >= low)
        )
        if inside:
            parts.append(_Part(inside, low, high))
    return parts


def _cuts(pieces: Sequence[_Piece], partition_rows: int) -> list[Any]:
    """Find runs at which to cut, about `partition_rows` apart, where pieces begin."""
    cuts: list[Any] = []
    rows, before = 0, None
    for piece in sorted(pieces, key=lambda p: p.low):
        before = piece.low if before is None else before
        if rows >= partition_rows and piece.low > before:
            cuts.append(piece.low)
            rows, before = 0, piece.low
        rows += piece.rows
    return cuts


def _sampled_cuts(pieces: Sequence[_Piece], run: str, partition_rows: int) -> list[Any]:
    """Find runs at which to cut a table in no order, from a sample of its runs."""
    parquet, arrow = require("pyarrow.parquet"), require("pyarrow")
    chunks = []
    for piece in pieces:
        column = parquet.ParquetFile(piece.path).read_row_group(piece.group, columns=[run])[run]
        chunks.append(
            column.take(arrow.array(np.arange(0, len(column), max(1, len(column) // 256))))
        )
    sample = sorted(run for chunk in chunks for run in chunk.to_pylist() if run is not None)
    count = max(1, sum(piece.rows for piece in pieces) // partition_rows)
    return sorted({sample[len(sample) * k // count] for k in range(1, count)})
