# SPDX-License-Identifier: Apache-2.0
"""Parquet files: a table as in `glidepath.readers.frame`, such as what Neptune's exporter wrote."""

from __future__ import annotations

from pathlib import Path

from glidepath._core import IoError
from glidepath._results import require
from glidepath._trace import Trace, renamed
from glidepath.readers._series import open_plain
from glidepath.readers.frame import of_table


def recognises(path: Path, head: bytes) -> bool:
    """Whether it begins as Parquet does."""
    return head.startswith(b"PAR1")


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read every run of a file."""
    parquet = require("pyarrow.parquet")
    try:
        with open_plain(path) as file:
            # On this thread alone: one of Arrow may abort the program as it ends.
            source = require("pyarrow").BufferReader(file.read())
            table = parquet.ParquetFile(source).read(use_threads=False)
    except (require("pyarrow").ArrowException, OSError) as error:
        raise IoError(f"{path}: {error}") from None
    traces = of_table(table, metric, path)
    if len(traces) == 1 and not traces[0].name:
        traces = [renamed(traces[0], path.name)]
    return traces
