# SPDX-License-Identifier: Apache-2.0
"""Notebooks of Jupyter: what their cells printed when they trained, a run a cell."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from glidepath._core import AbsentError, IoError, is_metric_name
from glidepath._trace import Trace, renamed
from glidepath.readers import text_log, wide_csv
from glidepath.readers._series import collected
from glidepath.readers.json_document import parsed

_MIN_POINTS = 3  # a cell of fewer shows an evaluation or an example, not a training
_TAG = re.compile(r"<[^<>]*>")
_CELL = re.compile(r"<t[hd]\b")


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read each cell that printed a curve, or displayed one as the Trainer and fastai do."""
    document = parsed(path)
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list):
        raise AbsentError(f"{path}: a notebook needs a list of cells")
    found: list[Trace] = []
    listed = [] if (kept := collected.get()) is None else kept
    before = len(listed)
    with TemporaryDirectory() as folder:
        for number, cell in enumerate(cells, 1):
            for reader, text in _printed(cell):
                copy = Path(folder, path.name)
                copy.write_text(text, encoding="utf-8", errors="replace")
                if runs := _curves(reader, copy, metric, f"cell {number}"):
                    found += runs
                    break
    if not found:
        wanted = "a loss or a score" if metric is None else repr(metric)
        raise AbsentError(f"{path}: no cell has printed {wanted} at {_MIN_POINTS} steps or more")
    if len(found) == 1:
        listed[before:] = [renamed(trace, path.name) for trace in listed[before:]]
        found = [renamed(found[0], path.name)]
    return found


def _printed(cell: Any) -> Iterator[tuple[Any, str]]:
    """Give what a cell displayed as a table, and the text that it printed."""
    outputs = cell.get("outputs") if isinstance(cell, dict) else None
    outputs = outputs if isinstance(outputs, list) else []
    text = ""
    for output in outputs:
        data = output.get("data") if isinstance(output, dict) else None
        # A data frame that is the value of a cell is a result: often a part of another log.
        if isinstance(data, dict) and output.get("output_type") == "display_data":
            if rows := _rows(_joined(data.get("text/html"))):
                yield wide_csv, rows
        elif isinstance(output, dict) and output.get("output_type") == "stream":
            text += _joined(output.get("text"))
    if text:
        yield text_log, text + "\n"


def _joined(text: Any) -> str:
    """Give text that may be saved as a list of its lines."""
    return "".join(map(str, text)) if isinstance(text, list) else str(text or "")


def _rows(page: str) -> str:
    """Give the rows of a table of HTML, split by tabs."""
    lines = []
    for row in page.split("<tr")[1:]:
        cells = [each.partition(">")[2].partition("</t")[0] for each in _CELL.split(row)[1:]]
        lines.append("\t".join(html.unescape(_TAG.sub("", each)).strip() for each in cells) + "\n")
    return "".join(lines)


def _curves(reader: Any, file: Path, metric: str | None, name: str) -> list[Trace]:
    """Read the runs of a cell; none where it printed no curve."""
    listed = [] if (kept := collected.get()) is None else kept
    before = len(listed)
    found: list[Trace] = []
    with suppress(IoError):  # a cell prints much else
        found = [
            trace
            for trace in reader.read(file, metric)
            if len(trace) >= _MIN_POINTS and (metric is not None or is_metric_name(trace.metric))
        ]

    def named(trace: Trace) -> Trace:
        return renamed(trace, name if trace.name == file.name else f"{name}/{trace.name}")

    listed[before:] = [named(trace) for trace in listed[before:]] if found else []
    return [named(trace) for trace in found]
