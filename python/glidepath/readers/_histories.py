# SPDX-License-Identifier: Apache-2.0
"""The histories within a JSON document, whatever they are written as, and which runs they are of.

A history is a list of objects, lists of numbers by name, objects by the number of their epoch, what
pandas writes, or the points of a curve.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from glidepath._core import LogRows, RunRecord, Series, is_metric_name, normal_name, step_columns
from glidepath.readers._rows import NOT_METRICS, flat, number

Settings = dict[str, float | str]

_DEPTH = 6  # of objects in which a history is looked for
_MOST_RUNS = 100  # of a document
_LONGEST_KEY = 16  # digits of a step that is a key
# Keys under which each object is a run.
_RUNS = ("runs", "experiments", "trials", "folds", "seeds")
# Keys of rows by what counts them: "epoch_1", "Epoch 1", "step-100".
_ROW_KEY = re.compile(r"(epoch|step|iter|iteration|round)s?[ _-]?(\d{1,15})", re.IGNORECASE)


@dataclass
class History:
    """A history within a document: where it stands, and its metrics."""

    path: tuple[str, ...]
    series: dict[str, Series]
    settings: Settings = field(default_factory=dict)

    @property
    def has_metric(self) -> bool:
        return any(is_metric_name(name) for name in [*self.series, "/".join(self.path)])


def histories(value: Any, depth: int = _DEPTH) -> Iterator[History]:
    """Give each history of a document, outer ones first."""
    for place, rows in _rows_within(value, depth, (), {}):
        runs = rows.runs()
        if len(runs) == 1:
            if runs[0].series:
                yield History(place, runs[0].series, runs[0].settings)
        elif series := rows.series():
            yield History(place, series)


def told_apart(document: Any) -> list[RunRecord]:
    """Give the runs that a column of a history tells apart; none if it is one."""
    for _, rows in _rows_within(document, _DEPTH, (), {}):
        runs = rows.runs()
        if len(runs) > 1:
            return runs
    return []


def _rows_within(
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
        yield from _rows_within(each, depth - 1, place, counting)


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


def _are_steps(keys: Iterable[str]) -> bool:
    """Whether the keys of an object are steps, or numbers of rows."""
    return all(key.isdecimal() and len(key) < _LONGEST_KEY for key in keys)


def _by_key(value: Any) -> dict[int, float] | None:
    """Read a column of pandas: numbers by their rows, or by the steps that are its index."""
    if not isinstance(value, dict) or len(value) < 2:
        return None
    if not _are_steps(value):
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
        and _are_steps(each)
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


def series_of(found: Iterable[History]) -> dict[str, Series]:
    """Give the metrics of all histories, with the keys above them where two have one name.

    A metric called "value" is called as the object in which it stands.
    """
    columns: list[tuple[tuple[str, ...], str, Series]] = []
    for each in found:
        for name, column in each.series.items():
            alone = each.path and normal_name(name) in ("value", "values")
            path, name = (each.path[:-1], each.path[-1]) if alone else (each.path, name)
            columns.append((path, name, column))
    where: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for path, name, _ in columns:
        where[name].add(path)
    apart = {path for paths in where.values() if len(paths) > 1 for path in paths}
    shared = next(
        (i for i, keys in enumerate(zip(*apart, strict=False)) if len(set(keys)) > 1),
        min(map(len, apart), default=0),
    )
    series: dict[str, Series] = {}
    for path, name, column in columns:
        full = "/".join((*path[shared:], name)) if path in apart else name
        if full not in series or len(column) > len(series[full]):
            series[full] = column
    return series


def settings_of(found: Iterable[History]) -> Settings:
    """Give what the rows of all histories say of it, such as by a column of the optimizer."""
    settings: Settings = {}
    for each in found:
        settings = each.settings | settings
    return settings


def runs_within(value: Any, depth: int = 3, *, told: bool = False) -> dict[str, Any]:
    """Give the objects of a document that are a run each, by their names; none where it is one.

    They are the items of a list, or stand under numbers or a key such as "runs", each with a
    history of its own.
    """
    if depth == 0 or not isinstance(value, (dict, list)):
        return {}
    items: list[tuple[Any, Any]]
    items = list(value.items() if isinstance(value, dict) else enumerate(value, 1))
    numbered = isinstance(value, list) or all(key.isdecimal() for key in value)
    if 2 <= len(items) <= _MOST_RUNS and (told or numbered):
        runs = [each for _, each in items]
        if all(isinstance(each, dict) for each in runs) and not _are_rows(runs):
            held = [any(history.has_metric for history in histories(run, 3)) for run in runs]
            if 2 * sum(held) > len(runs):
                names = [_name_of(each, str(key)) for key, each in items]
                if len(set(names)) < len(names):
                    names = [str(key) for key, _ in items]
                return dict(zip(names, runs, strict=True))
    if isinstance(value, dict):
        for key, each in value.items():
            if found := runs_within(each, depth - 1, told=normal_name(key) in _RUNS):
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
