# SPDX-License-Identifier: Apache-2.0
"""Fits and forecasts of whole tables of runs, on any Dask cluster.

A table is Parquet in long form: one row a point, with a column that names the run. It is cut into
ranges of runs, each read and answered by one task with one native call per grid of steps, so the
bytes of the answer do not depend on how many workers there are, nor on which of them was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from glidepath._answer import quantile_name
from glidepath._arguments import checked, refuse_twice
from glidepath._columns import values_of
from glidepath._core import InputError
from glidepath._drafts import draft_of
from glidepath._fit import FAMILIES
from glidepath._forecast import forecast_batch
from glidepath._results import require
from glidepath.engines._dask_parts import (
    _cuts,
    _files,
    _joined,
    _parts,
    _Piece,
    _pieces,
    _sampled_cuts,
)
from glidepath.engines._dask_tasks import _of_no_run, _Question, _scatter, _task
from glidepath.engines._scratch import scratch_folder

__all__ = ["fit_table", "forecast_table"]

_OVERREAD = 2.0  # rows read over rows there are, above which a table is sorted into ranges first


@checked
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
        interrupted goes on there: the parts that are done are not done again, unless a file of the
        table has changed: then the folder is refused.
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
        known = ", ".join(FAMILIES)
        raise InputError(f"fit_table: family is {family!r}, expected one of {known}")
    question = _Question("fit", run, step, value, {"family": family, "lowest_floor": lowest_floor})
    _check_names(question, [run, "points", *FAMILIES[family], "sigma", "status"])
    return _answer(question, Path(source), out, client, partition_rows, progress=progress)


@checked
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
    rises = ahead.ndim == 1 and ahead.size > 0 and np.all(np.diff(ahead) > 0)
    if not rises or not np.isfinite(ahead).all():
        raise InputError(f"forecast_table: at is {at!r:.80}, expected finite steps that increase")
    # Of one point, for the levels that there are by default, and to refuse bad ones here.
    known = forecast_batch([1.0], [[1.0]], [2.0], direction=direction, levels=levels, threads=1)
    options = {"at": ahead.tolist(), "levels": known.levels.tolist(), "direction": direction}
    question = _Question("forecast", run, step, value, options)
    _check_names(question, [run, step, "status", "median", *map(quantile_name, known.levels)])
    return _answer(question, Path(source), out, client, partition_rows, progress=progress)


# ----------------------------------------------------------------------------------------- the run


def _check_names(question: _Question, answer: Sequence[str]) -> None:
    """Refuse names of columns of which one would take the place of another."""
    refuse_twice("column", [question.run, question.step, question.value])
    refuse_twice("a column of the answer:", answer)


def _answer(
    question: _Question,
    source: Path,
    out: str | os.PathLike[str] | None,
    client: Any,
    partition_rows: int,
    *,
    progress: bool,
) -> Any:
    if index(partition_rows) < 1:
        raise InputError(f"partition_rows is {partition_rows}, expected at least 1")
    target = None if out is None else Path(out)
    pieces = _pieces(source, question.run, target)
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
            scratch = str(stack.enter_context(scratch_folder(target)))
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
    if not tables:
        return _of_no_run(question, str(_files(source, target)[0]))
    return _joined(tables).combine_chunks()


def _claim(
    folder: Path, question: _Question, pieces: Sequence[_Piece], partition_rows: int
) -> None:
    """Make the folder of the answer, or see that what is in it answers the same question."""
    stamps = {path: Path(path).stat() for path in sorted({piece.path for piece in pieces})}
    claim = {
        "question": asdict(question),
        "partition_rows": partition_rows,
        # A table of other runs may have as many bytes.
        "source": [(path, stamp.st_size, stamp.st_mtime_ns) for path, stamp in stamps.items()],
    }
    text = json.dumps(claim, indent=1)
    note = folder / "question.json"
    if folder.is_file():
        raise InputError(f"out {folder} is a file, expected a folder")
    folder.mkdir(parents=True, exist_ok=True)
    draft = draft_of(note)
    try:
        # Parquet files without a note are not ours; looked for first, as another call may write
        # its note, and then its parts, at any moment.
        others = any(folder.glob("*.parquet"))
        if not note.exists():
            if others:
                raise InputError(f"{folder}: holds Parquet files that are not ours")
            draft.write_text(text, encoding="utf-8")
            _link(draft, note)  # half a note would be another question
        if note.read_text(encoding="utf-8") != text:
            raise InputError(f"{folder}: holds the answer to another question, see {note}")
    finally:
        draft.unlink(missing_ok=True)


def _link(draft: Path, note: Path) -> None:
    """Give a file its name where no other call has been faster."""
    try:
        os.link(draft, note)
    except FileExistsError:
        return
    except OSError:  # a file system without links
        draft.replace(note)


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
        bar.console.show_cursor(show=True)  # who is ended by SIGTERM could not give it back
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
