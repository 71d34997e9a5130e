# SPDX-License-Identifier: Apache-2.0
"""Fits and forecasts of whole tables of runs, on any Dask cluster.

A table is Parquet in long form: one row a point, with a column that names the run. It is cut into
ranges of runs, each read and answered by one task with one native call per grid of steps, so the
bytes of the answer do not depend on how many workers there are, nor on which of them was killed.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath._answer import quantile_name
from glidepath._core import InputError, IoError
from glidepath._drafts import draft_of
from glidepath._fit import FAMILIES, fit_batch
from glidepath._forecast import forecast_batch
from glidepath._results import require
from glidepath._trace import values_of

__all__ = ["fit_table", "forecast_table"]

_OVERREAD = 2.0  # rows read over rows there are, above which a table is sorted into ranges first


def fit_table(
    source: str | os.PathLike[str],
    *,
    family: str = "pow3",
    lowest_floor: float | None = None,
    run: str = "run",
    step: str = "step",
    value: str = "value",
    out: str | os.PathLike[str] | None = None,
    client: Any = None,
    partition_rows: int = 1_000_000,
    progress: bool = False,
) -> Any:
    """Fit every run of a Parquet table.

    Parameters
    ----------
    source : path_like
        A Parquet file, or a folder of them, that every worker can read: a row for each point.
    family, lowest_floor
        As in `glidepath.fit_batch`.
    run, step, value : str
        Names of the columns: which run (integers or text), the step, the metric. Points of a run
        may lie anywhere in the table; where a step repeats, the later row counts.
    out : path_like, optional
        A folder, shared with the workers, that takes the answer part by part. A call that was
        interrupted goes on there: the parts that are done are not done again.
    client : distributed.Client, optional
        The cluster; by default the threads of this process.
    partition_rows : int
        Rows of a task, approximately. A task needs some 150 bytes a row.
    progress : bool
        Draw a bar on stderr.

    Returns
    -------
    pyarrow.Table
        One row a run, ordered by run: the run, `points`, the parameters, `sigma`, `status`.

    Raises
    ------
    InputError
        When a column is missing or of the wrong kind, or `out` answers another question.
    IoError
        When there is no Parquet file at `source`.
    """
    if family not in FAMILIES:
        raise InputError(f"fit_table: unknown family {family!r}, known: {', '.join(FAMILIES)}")
    question = _Question("fit", run, step, value, {"family": family, "lowest_floor": lowest_floor})
    return _answer(question, Path(source), out, client, partition_rows, progress=progress)


def forecast_table(
    source: str | os.PathLike[str],
    at: ArrayLike,
    *,
    direction: str = "min",
    levels: ArrayLike | None = None,
    run: str = "run",
    step: str = "step",
    value: str = "value",
    out: str | os.PathLike[str] | None = None,
    client: Any = None,
    partition_rows: int = 1_000_000,
    progress: bool = False,
) -> Any:
    """Forecast every run of a Parquet table.

    Parameters
    ----------
    source : path_like
        As in `fit_table`, like everything not named here.
    at : float or array_like, shape (h,)
        Steps to forecast, increasing, and past the last point of each run; a run that is already
        there gets the status ``"ended"`` and null.
    direction : {"min", "max"}, optional
        Whether low values are better or high ones, as of a score.
    levels : array_like, shape (k,), optional
        Levels of the quantiles, by default those of `forecast_batch`.

    Returns
    -------
    pyarrow.Table
        A row for each run and step, ordered by run: the run, the step, `status`, `median`, and a
        column such as ``q10`` for each level.
    """
    ahead = values_of(at, "at")
    if ahead.ndim != 1 or ahead.size == 0 or not np.all(np.diff(ahead) > 0):
        raise InputError("forecast_table: at must be increasing steps")
    # Of one point, for the levels that there are by default, and to refuse bad ones here.
    known = forecast_batch([1.0], [[1.0]], [2.0], direction=direction, levels=levels, threads=1)
    options = {"at": ahead.tolist(), "levels": known.levels.tolist(), "direction": direction}
    question = _Question("forecast", run, step, value, options)
    return _answer(question, Path(source), out, client, partition_rows, progress=progress)


# ---------------------------------------------------------------------------------------- the plan


@dataclass(frozen=True, slots=True)
class _Question:
    """The question to each run: a fit or a forecast, its columns and its options."""

    kind: str
    run: str
    step: str
    value: str
    options: dict[str, Any]


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


# --------------------------------------------------------------------------------------- the tasks


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
    table = arrow.concat_tables(tables)
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


def _fit(question: _Question, part: _Part) -> Any:
    arrow = require("pyarrow")
    names, code, step, value = _read(part, question)
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


def _forecast(question: _Question, part: _Part) -> Any:
    arrow = require("pyarrow")
    names, code, step, value = _read(part, question)
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


_TASKS: dict[str, Callable[[_Question, _Part], Any]] = {"fit": _fit, "forecast": _forecast}


def _task(question: _Question, part: _Part, target: str | None) -> Any:
    """Answer for one part: as a table, or as a file that is there whole or not at all."""
    table = _TASKS[question.kind](question, part)
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
        table = table.filter(compute.is_valid(table[question.run]))
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


# ----------------------------------------------------------------------------------------- the run


def _answer(
    question: _Question,
    source: Path,
    out: str | os.PathLike[str] | None,
    client: Any,
    partition_rows: int,
    *,
    progress: bool,
) -> Any:
    if partition_rows < 1:
        raise InputError(f"partition_rows is {partition_rows}, expected at least 1")
    arrow = require("pyarrow")
    pieces = _pieces(source, question.run)
    target = None if out is None else Path(out)
    if target is not None:
        _claim(target, question, pieces, partition_rows)
    parts = _parts(pieces, _cuts(pieces, partition_rows))
    read = sum(piece.rows for part in parts for piece in part.pieces)
    largest = max((sum(p.rows for p in part.pieces) for part in parts), default=0)
    rows = sum(piece.rows for piece in pieces)
    crowded = read > _OVERREAD * rows or largest > 4 * partition_rows
    with contextlib.ExitStack() as stack:
        if client is None:
            client = stack.enter_context(_threads())
        if crowded:
            cuts = _sampled_cuts(pieces, question.run, partition_rows)
            scratch = stack.enter_context(
                tempfile.TemporaryDirectory(prefix=".scratch-", dir=target)
            )
            jobs = [(_scatter, question, piece, cuts, partition_rows, scratch) for piece in pieces]
            # In the order of the table, so that "the later row" means the same as before.
            pieces = [p for made in _run(client, jobs, "sorting", progress=progress) for p in made]
            parts = _parts(pieces, cuts)
        files = [
            None if target is None else str(target / f"part-{number:05}.parquet")
            for number in range(len(parts))
        ]
        todo = [n for n, file in enumerate(files) if file is None or not Path(file).exists()]
        tables = _run(
            client,
            [(_task, question, parts[n], files[n]) for n in todo],
            question.kind,
            progress=progress,
        )
    if target is not None:
        for draft in target.glob(".part-*.parquet.*"):  # of workers that were killed
            draft.unlink(missing_ok=True)
        parquet = require("pyarrow.parquet")
        tables = [parquet.read_table(file, memory_map=True) for file in files]
    return arrow.concat_tables(tables).combine_chunks() if tables else arrow.table({})


def _claim(
    folder: Path, question: _Question, pieces: Sequence[_Piece], partition_rows: int
) -> None:
    """Make the folder of the answer, or see that what is in it answers the same question."""
    claim = {
        "question": asdict(question),
        "partition_rows": partition_rows,
        "source": sorted({(p.path, Path(p.path).stat().st_size) for p in pieces}),
    }
    text = json.dumps(claim, indent=1)
    note = folder / "question.json"
    if note.exists():
        if note.read_text(encoding="utf-8") != text:
            raise InputError(f"{folder}: holds the answer to another question, see {note}")
        return
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.glob("*.parquet")):
        raise InputError(f"{folder}: holds Parquet files that are not ours")
    draft = draft_of(note)
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(note)  # half a note would be another question
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def _threads() -> Iterator[Any]:
    """Make a cluster of the threads of this process: native work leaves Python's lock."""
    distributed = require("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=os.cpu_count() or 1,
            processes=False,
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _run(client: Any, jobs: Sequence[tuple[Any, ...]], what: str, *, progress: bool) -> list[Any]:
    """Run tasks and return their answers in order; the first error ends it."""
    distributed = require("distributed")
    futures = [client.submit(*job, pure=False) for job in jobs]
    place = {future.key: number for number, future in enumerate(futures)}
    answers: list[Any] = [None] * len(futures)
    try:
        with _bar(len(futures), what, wanted=progress) as advance:
            for future in distributed.as_completed(futures):
                answers[place[future.key]] = future.result()
                future.release()
                advance()
    finally:
        client.cancel(futures)
    return answers


@contextlib.contextmanager
def _bar(total: int, what: str, *, wanted: bool) -> Iterator[Callable[[], None]]:
    if not wanted:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
