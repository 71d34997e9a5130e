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


def _pieces(source: Path, run: str) -> list[_Piece]:
    parquet = require("pyarrow.parquet")
    files = sorted(source.rglob("*.parquet")) if source.is_dir() else [source]
    if not files or not source.exists():
        raise IoError(f"{source}: no Parquet file there")
    pieces = []
    for path in files:
        try:
            meta = parquet.read_metadata(path)
        except (OSError, require("pyarrow").ArrowInvalid) as error:
            raise IoError(f"{path}: {error}") from None
        names = meta.schema.to_arrow_schema().names
        if run not in names:
            raise InputError(f"{path}: no column {run!r} among {', '.join(names)}")
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
                pieces.append(_Piece(str(path), group, row_group.num_rows, low, high))
    return pieces


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
    sample = sorted(arrow.concat_arrays([c for chunk in chunks for c in chunk.chunks]).to_pylist())
    count = max(1, sum(piece.rows for piece in pieces) // partition_rows)
    return sorted({sample[len(sample) * k // count] for k in range(1, count)})
