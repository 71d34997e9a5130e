# SPDX-License-Identifier: Apache-2.0
"""One JSON document with the history of a run, or of several.

Keras histories, DeepOBS, CatBoost, scalars of TensorBoard, the epochs of AllenNLP, and what people
write with `json.dump`: `_histories` has its forms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from glidepath._core import SETTINGS_KEYS, AbsentError, IoError, LogRows, Series, is_metric_name
from glidepath._trace import Trace
from glidepath.readers._histories import (
    Settings,
    histories,
    runs_within,
    series_of,
    settings_of,
    told_apart,
)
from glidepath.readers._rows import flat, number, settings_in
from glidepath.readers._series import read_whole, to_trace, traces_of

_KEY = re.compile(rb'"([^"\\]{1,99})"\s{0,9}:')
_TEXT = re.compile(rb'"([^"\\]{1,99})"')
# How AllenNLP calls the files of a run, one an epoch.
_EPOCH = re.compile(r"(.*epoch_?)(\d{1,9})(\.json)")
# How the points of a scalar begin that TensorBoard's page saves: [[wall time, step, value], …].
_POINTS = re.compile(rb"[\xef\xbb\xbf\s]*\[\s*\[\s*1\d{9}(\.\d+)?,\s*\d+,")
_HALF_TOKEN = re.compile(r"[\w.+-]{0,40}\s*")  # of a number or a word, at the end of a file
_BETWEEN_ROWS = re.compile(r"[,\s]*")
_CUT = "the file ends too early, as if it was cut"


def recognises(path: Path, head: bytes) -> bool:
    """Whether it is JSON in which there is a history."""
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return False
    if _POINTS.match(head):
        return True
    names = {name.decode(errors="replace") for name in _KEY.findall(head)}
    if "columns" in names:  # of pandas, whose names are in a list
        names |= {name.decode(errors="replace") for name in _TEXT.findall(head)}
    # Else every large document of a folder would be parsed.
    if not any(map(is_metric_name, names)) and not {"test_metrics", "learn_metrics"} <= names:
        return False
    try:
        document = parsed(path)
    except IoError as error:
        return _CUT in str(error)  # which `read` says
    if _EPOCH.fullmatch(path.name) and isinstance(document, dict):
        return any(is_metric_name(name) and number(document[name]) is not None for name in document)
    if _is_catboost(document) or any(each.has_metric for each in histories(document)):
        return True
    return bool(runs_within(document))


def is_of_epoch(path: Path) -> bool:
    """Whether a file is called as AllenNLP's are, one an epoch."""
    return _EPOCH.fullmatch(path.name) is not None


def unit(path: Path) -> Path:
    """Read each file alone, but those of the epochs of a run together."""
    match = _EPOCH.fullmatch(path.name)
    return path if match is None else path.with_name(f"{match[1]}*{match[3]}")


def _text(path: Path) -> str:
    """Give a whole file as text, without zeros that a crash left at its end."""
    return read_whole(path).decode("utf-8-sig", errors="replace").rstrip("\0")


def parsed(path: Path) -> Any:
    """Read a whole document; every number is a float, however large."""
    text = _text(path)
    try:
        return json.loads(text, parse_int=float)
    except json.JSONDecodeError as error:
        cut = error.msg.startswith("Unterminated") or _HALF_TOKEN.fullmatch(text, error.pos)
        why = _CUT if cut else error.msg
        raise IoError(f"{path}:{error.lineno}: {why}") from None
    except RecursionError as error:
        raise IoError(f"{path}: {error}") from None


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read the run of the document, or several where it has a history of each."""
    if "*" in path.name and (epochs := _epochs(path)):
        return _read_epochs(epochs, metric, path)
    notes: list[str] = []
    document = _whole_rows(path, notes)
    if points := _of_points(document, path):
        return [to_trace(points, metric, path, path.name, notes)]
    if _is_catboost(document):
        return [to_trace(_of_catboost(document), metric, path, path.name, notes)]
    started, runs = _started(document), runs_within(document)
    of_run = {name: list(histories(run)) for name, run in runs.items()}
    series = {name: series_of(own) for name, own in of_run.items()}
    settings = {
        name: started | settings_of(own) | _started(runs[name]) for name, own in of_run.items()
    }
    if not series:
        told = told_apart(document)
        series = {run.name: run.series for run in told}
        settings = {run.name: run.settings | started for run in told}
    if series:
        said = dict.fromkeys(series, notes)
        return traces_of(series, metric, path, notes=said, settings=settings)
    whole = list(histories(document))
    found = series_of(whole)
    if not found and (epochs := _epochs(path)):
        return _read_epochs(epochs, metric, path)
    if not found:
        raise AbsentError(f"{path}: no list of numbers with a name, and none of objects with some")
    own = settings_of(whole) | started
    return [to_trace(found, metric, path, path.name, notes, settings=own)]


def _started(document: Any) -> Settings:
    """Give what an object says of how its run was started, under a key such as "config"."""
    given = [document.get(key) for key in SETTINGS_KEYS] if isinstance(document, dict) else []
    found: Settings = {}
    for each in given:
        found = (settings_in(each) if isinstance(each, dict) else {}) | found
    return found


def _of_points(document: Any, path: Path) -> dict[str, Series]:
    """Make the series of a scalar that TensorBoard saved, called as the file is; else none."""
    name = path.name.partition("-tag-")[2].partition(".json")[0] or "value"
    columns = ("wall_time", "step", name)
    rows = LogRows()
    if isinstance(document, list) and all(
        isinstance(row, list) and len(row) == len(columns) for row in document
    ):
        for row in document:
            rows.add(dict(zip(columns, row, strict=True)))
    return rows.series()


def _whole_rows(path: Path, notes: list[str]) -> Any:
    """Read a document; of a list of objects that was cut the whole ones, with a note."""
    try:
        return parsed(path)
    except IoError as error:
        text = _text(path).lstrip()
        if _CUT not in str(error) or not re.match(r"\[\s*\{", text):
            raise
    decode = json.JSONDecoder(parse_int=float).raw_decode
    found: list[Any] = []
    at = 1
    with suppress(json.JSONDecodeError):  # of the row that was cut
        while gap := _BETWEEN_ROWS.match(text, at):
            row, at = decode(text, gap.end())
            found.append(row)
    notes.append("the file is cut: its last row was left out")
    return found


def _epochs(path: Path) -> dict[int, Path]:
    """Give files by the numbers of their epochs: one, or all that are one `unit`."""
    return {
        int(match[2]): file
        for file in path.parent.iterdir()
        if (match := _EPOCH.fullmatch(file.name)) and path in (file, unit(file))
    }


def _read_epochs(epochs: Mapping[int, Path], metric: str | None, path: Path) -> list[Trace]:
    """Read documents of one row each."""
    rows = LogRows()
    for epoch in sorted(epochs):
        rows.add({"epoch": float(epoch), **dict(flat(parsed(epochs[epoch]), "/"))})
    return [to_trace(rows.series(), metric, path, path.name)]


def _is_catboost(document: Any) -> bool:
    """Whether it is `catboost_training.json`, whose metrics have their names apart."""
    if not isinstance(document, dict):
        return False
    meta, rows = document.get("meta"), document.get("iterations")
    return (
        isinstance(meta, dict)
        and {"learn_sets", "learn_metrics", "test_sets", "test_metrics"} <= meta.keys()
        and isinstance(rows, list)
        and all(isinstance(row, dict) and "iteration" in row for row in rows)
    )


def _of_catboost(document: dict[str, Any]) -> dict[str, Series]:
    meta = document["meta"]
    rows = LogRows()
    for row in document["iterations"]:
        cells = {"iteration": row["iteration"], "time_elapsed": row.get("passed_time")}
        for kind in ("learn", "test"):
            sets = meta[f"{kind}_sets"]
            for i, data in enumerate(sets):
                values = row.get(data, [])
                values = values[i] if values and isinstance(values[0], list) else values
                for about, value in zip(meta[f"{kind}_metrics"], values, strict=False):
                    cells[f"{data}/{about['name']}"] = value
        rows.add(cells)
    return rows.series()
