# SPDX-License-Identifier: Apache-2.0
"""One JSON document with the whole history of a run: rows, columns, or either by a key.

Keras histories, DeepOBS, and what people write with `json.dump`: a list of objects, lists of
numbers by name, or objects by the number of their epoch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from glidepath._core import IoError, LogRows
from glidepath._metrics import best_name, is_metric_name
from glidepath._trace import Trace
from glidepath.readers._rows import flat, number
from glidepath.readers._series import AbsentError, Series, read_whole, to_trace

_KEY = re.compile(rb'"([^"\\]{1,99})"\s{0,9}:')
_DEPTH = 6  # of objects in which a history is looked for
# How AllenNLP calls the files of a run, one an epoch.
_EPOCH = re.compile(r"(.*epoch_?)(\d{1,9})(\.json)")
_HALF_TOKEN = re.compile(r"[\w.+-]{0,40}\s*")  # of a number or a word, at the end of a file
_CUT = "the file ends too early, as if it was cut"


def recognises(path: Path, head: bytes) -> bool:
    """Whether it is JSON in which there is a history."""
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return False
    names = {name.decode(errors="replace") for name in _KEY.findall(head)}
    if not any(map(is_metric_name, names)):  # else every large document of a folder would be parsed
        return False
    try:
        document = parsed(path)
    except IoError as error:
        return _CUT in str(error)  # which `read` says
    if _EPOCH.fullmatch(path.name) and isinstance(document, dict):
        return any(is_metric_name(name) and number(document[name]) is not None for name in document)
    histories = _histories(document, _DEPTH)
    return any(is_metric_name(name) for rows in histories for name in rows.names)


def unit(path: Path) -> Path:
    """Read each file alone, but those of the epochs of a run together."""
    match = _EPOCH.fullmatch(path.name)
    return path if match is None else path.with_name(f"{match[1]}*{match[3]}")


def parsed(path: Path) -> Any:
    """Read a whole document; every number is a float, however large."""
    text = read_whole(path).decode("utf-8-sig", errors="replace")
    try:
        return json.loads(text, parse_int=float)
    except json.JSONDecodeError as error:
        cut = error.msg.startswith("Unterminated") or _HALF_TOKEN.fullmatch(text, error.pos)
        why = _CUT if cut else error.msg
        raise IoError(f"{path}:{error.lineno}: {why}") from None
    except RecursionError as error:
        raise IoError(f"{path}: {error}") from None


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read the history of the document that has the metric most often."""
    if "*" in path.name:
        return _read_epochs(path, metric)
    best: tuple[float, dict[str, Series]] = 0, {}
    notes: list[str] = []
    for rows in _histories(_whole_rows(path, notes), _DEPTH):
        series = rows.series()
        points: dict[str, float] = {name: len(column) for name, column in series.items()}
        key = metric if metric is not None else best_name(points)
        count = points.get(key or "", 0)
        if count > best[0] or not best[1]:
            best = count, series
    if not best[1]:
        raise AbsentError(f"{path}: no list of numbers with a name, and none of objects with some")
    return [to_trace(best[1], metric, path, path.name, notes)]


def _whole_rows(path: Path, notes: list[str]) -> Any:
    """Read a document; of a list of objects that was cut the whole ones, with a note."""
    try:
        return parsed(path)
    except IoError as error:
        text = read_whole(path).decode("utf-8-sig", errors="replace").lstrip()
        if _CUT not in str(error) or not re.match(r"\[\s*\{", text):
            raise
    decode = json.JSONDecoder(parse_int=float).raw_decode
    found: list[Any] = []
    at = 1
    with suppress(json.JSONDecodeError):  # of the row that was cut
        while at < len(text):
            at += len(text[at : at + 99]) - len(text[at : at + 99].lstrip(", \t\r\n"))
            row, at = decode(text, at)
            found.append(row)
    notes.append("the file is cut: its last row was left out")
    return found


def _read_epochs(path: Path, metric: str | None) -> list[Trace]:
    """Read documents of one row each, by the numbers of their epochs."""
    numbered = {
        int(match[2]): file
        for file in path.parent.glob(path.name)
        if (match := _EPOCH.fullmatch(file.name))
    }
    rows = LogRows()
    for epoch in sorted(numbered):
        document = parsed(numbered[epoch])
        rows.add({"epoch": float(epoch), **dict(flat(document, "/"))})
    return [to_trace(rows.series(), metric, path, path.name)]


def _histories(value: Any, depth: int) -> Iterator[LogRows]:
    """Give each history of a document, outer ones first."""
    if depth == 0 or not isinstance(value, (dict, list)) or not value:
        return
    inner: list[Any] = list(value.values()) if isinstance(value, dict) else value[:100]
    rows = LogRows()
    if isinstance(value, list):
        for row in value:
            if isinstance(row, dict):
                rows.add(dict(flat(row, "/")))
    elif all(key.isdecimal() for key in value):
        for key, row in value.items():
            if isinstance(row, dict):
                rows.add({"epoch": float(key[:300]), **dict(flat(row, "/"))})
    else:
        for row in _transposed(value):
            rows.add(row)
    if rows.names:
        yield rows
        inner = [each for each in inner if not isinstance(each, dict)]
        if isinstance(value, list):
            return
    for each in inner:
        yield from _histories(each, depth - 1)


def _transposed(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Make rows of lists of numbers by name."""
    rows: list[dict[str, Any]] = []
    for name, column in columns.items():
        if isinstance(column, dict) and all(key.isdecimal() for key in column):
            column = list(column.values())  # of pandas, by the number of the row
        if not isinstance(column, list) or len(column) < 2:
            continue
        numbers = [number(cell) for cell in column]
        if sum(each is None for each in numbers) > len(numbers) / 2:
            continue
        rows += ({} for _ in range(len(numbers) - len(rows)))
        for row, cell in zip(rows, numbers, strict=False):
            row[name] = cell
    return rows
