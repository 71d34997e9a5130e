# SPDX-License-Identifier: Apache-2.0
"""Rows of CSV files, plain or gzip, by the names of their columns."""

from __future__ import annotations

import os

from glidepath import _core


def read_rows(
    path: str | os.PathLike[str], *needed: str
) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Columns of a CSV file, plain or gzip, and its rows with their lines.

    IoError names file and line: of a column of `needed` that is not there, of a row that does not
    fit the header.
    """
    table = _core.read_cells(path, needed)
    columns = table.columns
    return columns, [
        (line, dict(zip(columns, map(str.strip, cells), strict=True))) for line, cells in table.rows
    ]


def csv_rows(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Rows of a CSV file, as `read_rows` gives them, without their lines."""
    return [row for _, row in read_rows(path)[1]]
