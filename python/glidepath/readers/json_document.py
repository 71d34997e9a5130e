# SPDX-License-Identifier: Apache-2.0
"""One JSON document with the history of a run, or of several: rows, columns, or either by a key.

Keras histories, DeepOBS, CatBoost, and what people write with `json.dump`: a list of objects, lists
of numbers by name, or objects by the number of their epoch.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from glidepath._core import SETTINGS_KEYS, IoError, LogRows, RunRecord
from glidepath._metrics import is_metric_name, normal_name, step_columns
from glidepath._trace import Trace
from glidepath.readers._rows import NOT_METRICS, flat, number, settings_in
from glidepath.readers._series import AbsentError, Series, read_whole, to_trace, traces_of

Settings = dict[str, float | str]

_KEY = re.compile(rb'"([^"\\]{1,99})"\s{0,9}:')
_TEXT = re.compile(rb'"([^"\\]{1,99})"')
_DEPTH = 6  # of objects in which a history is looked for
_MOST_RUNS = 100  # of a document
_LONGEST_KEY = 16  # digits of a step that is a key
# Keys under which each object is a run.
_RUNS = ("runs", "experiments", "trials", "folds", "seeds")
# Keys of rows by what counts them: "epoch_1", "Epoch 1", "step-100".
_ROW_KEY = re.compile(r"(epoch|step|iter|iteration|round)s?[ _-]?(\d{1,15})", re.IGNORECASE)
# How AllenNLP calls the files of a run, one an epoch.
_EPOCH = re.compile(r"(.*epoch_?)(\d{1,9})(\.json)")
# How the points of a scalar begin that TensorBoard's page saves: [[wall time, step, value], …].
_POINTS = re.compile(rb"[\xef\xbb\xbf\s]*\[\s*\[\s*1\d{9}(\.\d+)?,\s*\d+,")
_HALF_TOKEN = re.compile(r"[\w.+-]{0,40}\s*")  # of a number or a word, at the end of a file
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
    if _is_catboost(document) or any(part.has_metric for part in _parts(document)):
        return True
    return bool(_runs(document))


def is_of_epoch(path: Path) -> bool:
    """Whether a file is called as AllenNLP's are, one an epoch."""
    return _EPOCH.fullmatch(path.name) is not None


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
    """Read the run of the document, or several where it has a history of each."""
    if "*" in path.name:
        return _read_epochs(path, metric)
    notes: list[str] = []
    document = _whole_rows(path, notes)
    if points := _of_points(document, path):
        return [to_trace(points, metric, path, path.name, notes)]
    if _is_catboost(document):
        return [to_trace(_of_catboost(document), metric, path, path.name, notes)]
    started, runs = _started(document), _runs(document)
    parts = {name: list(_parts(run)) for name, run in runs.items()}
    series = {name: _named(own) for name, own in parts.items()}
    settings = {
        name: started | _settings(own) | _started(runs[name]) for name, own in parts.items()
    }
    if not series:
        told = _told_apart(document)
        series = {run.name: run.series for run in told}
        settings = {run.name: run.settings | started for run in told}
    if series:
        said = dict.fromkeys(series, notes)
        return traces_of(series, metric, path, notes=said, settings=settings)
    whole = list(_parts(document))
    found = _named(whole)
    if not found and is_of_epoch(path):
        return _read_epochs(path, metric)
    if not found:
        raise AbsentError(f"{path}: no list of numbers with a name, and none of objects with some")
    own = _settings(whole) | started
    return [to_trace(found, metric, path, path.name, notes, settings=own)]


def _started(document: Any) -> Settings:
    """Give what an object says of how its run was started, under a key such as "config"."""
    given = [document.get(key) for key in SETTINGS_KEYS] if isinstance(document, dict) else []
    found: Settings = {}
    for each in given:
        found = (settings_in(each) if isinstance(each, dict) else {}) | found
    return found


def _settings(parts: Iterable[_Part]) -> Settings:
    """Give what the rows of all parts say of it, such as by a column of the optimizer."""
    found: Settings = {}
    for part in parts:
        found = part.settings | found
    return found


def _of_points(document: Any, path: Path) -> dict[str, Series]:
    """Make the series of a scalar that TensorBoard saved, called as the file is; else none."""
    whole = isinstance(document, list) and all(
        isinstance(row, list) and len(row) == len(("wall_time", "step", "value"))
        for row in document
    )
    rows = LogRows()
    name = path.name.partition("-tag-")[2].partition(".json")[0] or "value"
    for wall, step, value in document if whole else ():
        rows.add({"wall_time": wall, "step": step, name: value})
    return rows.series()


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
    """Read documents of one row each, or one of them, by the numbers of their epochs."""
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


@dataclass
class _Part:
    """A history within a document: where it stands, and its metrics."""

    path: tuple[str, ...]
    series: dict[str, Series]
    settings: Settings = field(default_factory=dict)

    @property
    def has_metric(self) -> bool:
        return any(is_metric_name(name) for name in [*self.series, "/".join(self.path)])


def _parts(value: Any, depth: int = _DEPTH, path: tuple[str, ...] = ()) -> Iterator[_Part]:
    """Give each history of a document, outer ones first."""
    for place, rows in _histories(value, depth, path, {}):
        runs = rows.runs()
        if len(runs) == 1:
            if runs[0].series:
                yield _Part(place, runs[0].series, runs[0].settings)
        elif series := rows.series():
            yield _Part(place, series)


def _told_apart(document: Any) -> list[RunRecord]:
    """Give the runs that a column of a history tells apart; none if it is one."""
    for _, rows in _histories(document, _DEPTH, (), {}):
        runs = rows.runs()
        if len(runs) > 1:
            return runs
    return []


def _histories(
    value: Any, depth: int, path: tuple[str, ...], counting: dict[str, list[Any]]
) -> Iterator[tuple[tuple[str, ...], LogRows]]:
    """Give the rows of each history of a document, by the keys above it.

    `counting` are the columns of steps of the objects above, which count the rows of histories
    below that are as long.
    """
    if depth == 0 or not isinstance(value, (dict, list)) or not value:
        return
    inner: list[tuple[tuple[str, ...], Any]]
    if isinstance(value, dict) and (split := _of_split(value)) is not None:
        yield path, split
        return
    if isinstance(value, list):
        inner = [(path, each) for each in value[:_MOST_RUNS]]
        rows = LogRows()
        for row in value:
            if isinstance(row, dict):
                rows.add(dict(flat(row, "/")))
        if rows.names:
            yield path, rows
            return
    elif counts := _counts(value):
        inner = [(path, each) for each in value.values()]
        rows = LogRows()
        for (word, count), row in zip(counts, value.values(), strict=True):
            if isinstance(row, dict):
                rows.add({word: count, **dict(flat(row, "/"))})
        if len(rows.names) > 1:
            yield path, rows
            return
    elif (curve := _of_curve(value, path)) is not None:
        yield path[:-2], curve
        return
    else:
        pointed = {name: curve for name, each in value.items() if (curve := _of_pairs(name, each))}
        for rows in pointed.values():
            yield path, rows
        lists = {name: column for name, each in value.items() if (column := _column(each))}
        keyed = {name: cells for name, each in value.items() if (cells := _by_key(each))}
        for rows in (
            _of_lists(lists, _words(value), counting),
            _of_keys(keyed, _words_by_key(value)),
        ):
            if rows.names:
                yield path, rows
        counting = counting | {name: lists[name] for name in step_columns(list(lists))}
        inner = [
            ((*path, name), each)
            for name, each in value.items()
            if name not in lists | keyed | pointed and name not in NOT_METRICS
        ]
    for place, each in inner:
        yield from _histories(each, depth - 1, place, counting)


def _counts(value: dict[str, Any]) -> list[tuple[str, float]] | None:
    """Give what each key of an object counts, where all of them are counts of one kind."""
    if all(key.isdecimal() for key in value):
        return [("epoch", float(key[:300])) for key in value]
    matches = [match for key in value if (match := _ROW_KEY.fullmatch(key))]
    if len(matches) < max(2, len(value)) or len({match[1].lower() for match in matches}) > 1:
        return None
    return [(match[1].lower(), float(match[2])) for match in matches]


def _of_curve(value: dict[str, Any], path: tuple[str, ...]) -> LogRows | None:
    """Make rows of a curve by its points, ``{"x": steps, "y": values}`` as ClearML has them.

    It is called as the keys above it say. None of anything else.
    """
    points, found = value.get("x"), value.get("y")
    if not path or not isinstance(points, list) or not isinstance(found, list):
        return None
    steps = [step for each in points if (step := number(each)) is not None]
    if not steps or len(steps) != len(found) or steps != sorted(steps):
        return None
    rows = LogRows()
    for step, each in zip(steps, found, strict=True):
        rows.add({"step": step, "/".join(path[-2:]): each})
    return rows


def _of_pairs(name: str, value: Any) -> LogRows | None:
    """Make rows of the points of a metric, ``[[step, value], …]``, perhaps each with its time.

    tensorboardX exports ``[[wall time, step, value], …]`` under the name of each scalar. None of
    anything else, such as places in a picture: their first numbers do not only rise.
    """
    if not isinstance(value, list) or len(value) < 2 or not is_metric_name(name):
        return None
    if not all(isinstance(row, list) and len(row) in (2, 3) for row in value):
        return None
    if len({len(row) for row in value}) > 1:
        return None
    steps = [number(row[-2]) for row in value]
    known = [step for step in steps if step is not None and step.is_integer()]
    if len(known) < len(steps) or known != sorted(set(known)):
        return None
    rows = LogRows()
    for row in value:
        rows.add(dict(zip(("wall_time", "step", name)[-len(row) :], row, strict=True)))
    return rows


def _column(value: Any) -> list[float | None] | None:
    """Read a list as numbers, None where a cell is none; nothing where most are none."""
    if not isinstance(value, list) or len(value) < 2:
        return None
    numbers = [number(cell) for cell in value]
    return numbers if sum(each is None for each in numbers) <= len(numbers) / 2 else None


def _by_key(value: Any) -> dict[int, float] | None:
    """Read a column of pandas: numbers by their rows, or by the steps that are its index."""
    if not isinstance(value, dict) or len(value) < 2:
        return None
    if not all(key.isdecimal() and len(key) < _LONGEST_KEY for key in value):
        return None
    numbers = {int(key): each for key, cell in value.items() if (each := number(cell)) is not None}
    return numbers if 2 * len(numbers) >= len(value) else None


def _words(value: dict[str, Any]) -> dict[str, list[Any]]:
    """Give the lists of words."""
    return {
        name: each
        for name, each in value.items()
        if isinstance(each, list) and len(each) > 1 and all(isinstance(cell, str) for cell in each)
    }


def _words_by_key(value: dict[str, Any]) -> dict[str, dict[int, str]]:
    """Give the columns of words that pandas wrote beside those of numbers."""
    return {
        name: {int(key): cell for key, cell in each.items()}
        for name, each in value.items()
        if isinstance(each, dict)
        and all(key.isdecimal() and len(key) < _LONGEST_KEY for key in each)
        and any(isinstance(cell, str) for cell in each.values())
    }


def _of_lists(
    columns: dict[str, list[Any]], words: dict[str, list[Any]], counting: dict[str, list[Any]]
) -> LogRows:
    """Make rows of lists of numbers by name, counted as those above them where they do not."""
    rows = LogRows()
    if columns and not step_columns(list(columns)):
        longest = max(map(len, columns.values()))
        columns = {name: each for name, each in counting.items() if len(each) == longest} | columns
    if columns:
        names = [*columns, *words]
        for cells in zip_longest(*columns.values(), *words.values()):
            rows.add(dict(zip(names, cells, strict=True)))
    return rows


def _of_split(value: dict[str, Any]) -> LogRows | None:
    """Make rows of what pandas writes as ``orient="split"``; None of anything else."""
    names, data = value.get("columns"), value.get("data")
    if not isinstance(names, list) or not isinstance(data, list) or not names or not data:
        return None
    if not all(isinstance(name, str) for name in names):
        return None
    if not all(isinstance(row, list) and len(row) == len(names) for row in data):
        return None
    index = value.get("index")
    counting = index[: len(data)] if isinstance(index, list) and not step_columns(names) else []
    rows = LogRows()
    for at, row in zip_longest(counting, data):
        cells: dict[str, object] = {} if number(at) is None else {"index": at}
        rows.add(cells | dict(zip(names, row, strict=True)))
    return rows


def _of_keys(columns: dict[str, dict[int, float]], words: dict[str, dict[int, str]]) -> LogRows:
    """Make rows of numbers by their steps; a column of steps goes before them.

    Where words may tell runs apart, rows that such a column counts repeat its steps.
    """
    rows = LogRows()
    counted = bool(words) and bool(step_columns([*columns]))
    for key in sorted(set().union(*columns.values())):
        cells: dict[str, object] = {} if counted else {"index": float(key)}
        cells |= {name: column[key] for name, column in columns.items() if key in column}
        cells |= {name: column[key] for name, column in words.items() if key in column}
        rows.add(cells)
    return rows


def _named(parts: Iterable[_Part]) -> dict[str, Series]:
    """Give the metrics of all parts, with the keys above them where two have one name.

    A metric called "value" is called as the object in which it stands.
    """
    columns: list[tuple[tuple[str, ...], str, Series]] = []
    for part in parts:
        for name, column in part.series.items():
            alone = part.path and normal_name(name) in ("value", "values")
            path, name = (part.path[:-1], part.path[-1]) if alone else (part.path, name)
            columns.append((path, name, column))
    where: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for path, name, _ in columns:
        where[name].add(path)
    apart = {path for paths in where.values() if len(paths) > 1 for path in paths}
    shared = next(
        (i for i, keys in enumerate(zip(*apart, strict=False)) if len(set(keys)) > 1),
        min(map(len, apart), default=0),
    )
    found: dict[str, Series] = {}
    for path, name, column in columns:
        full = "/".join((*path[shared:], name)) if path in apart else name
        if full not in found or len(column) > len(found[full]):
            found[full] = column
    return found


def _runs(value: Any, depth: int = 3, *, told: bool = False) -> dict[str, Any]:
    """Give the objects of a document that are a run each, by their names; none where it is one.

    They are the items of a list, or stand under numbers or a key such as "runs", each with a
    history of its own.
    """
    if depth == 0 or not isinstance(value, (dict, list)):
        return {}
    listed = isinstance(value, list)
    items = list(enumerate(value, 1)) if isinstance(value, list) else list(value.items())
    numbered = listed or all(key.isdecimal() for key in value)
    if 2 <= len(items) <= _MOST_RUNS and (told or numbered):
        runs = [each for _, each in items]
        if all(isinstance(each, dict) for each in runs) and not _are_rows(runs):
            held = [any(part.has_metric for part in _parts(each, 3)) for each in runs]
            if 2 * sum(held) > len(runs):
                named = [_name_of(each, str(key)) for key, each in items]
                if len(set(named)) < len(named):
                    named = [str(key) for key, _ in items]
                return dict(zip(named, runs, strict=True))
    if isinstance(value, dict):
        for key, each in value.items():
            if found := _runs(each, depth - 1, told=normal_name(key) in _RUNS):
                return found
    return {}


def _are_rows(runs: list[dict[str, Any]]) -> bool:
    """Whether objects count steps, as rows of one run do."""
    return any(
        len({number(run.get(name)) for run in runs}) > 1 for name in step_columns([*runs[0]])
    )


def _name_of(run: dict[str, Any], otherwise: str) -> str:
    named = (run.get(key) for key in ("name", "run", "run_name", "run_id", "id"))
    return next((each for each in named if isinstance(each, str) and each), otherwise)


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
