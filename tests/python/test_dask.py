# SPDX-License-Identifier: Apache-2.0
"""Tables of runs on Dask: the same bytes as one process, whatever is split, sorted or killed."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from full_disk import files_of_at_most

import glidepath as gp

pa = pytest.importorskip("pyarrow", reason="pip install 'glidepath[dask]'")
pq = pytest.importorskip("pyarrow.parquet")
distributed = pytest.importorskip("distributed", reason="pip install 'glidepath[dask]'")

from glidepath._answer import quantile_name  # noqa: E402 - after the skips
from glidepath.engines import _scratch  # noqa: E402
from glidepath.engines import dask as table_of  # noqa: E402

STEPS = np.arange(1.0, 41.0)
AHEAD = [60.0, 100.0]


def curves(runs: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    floor, rate = rng.uniform(0.1, 0.5, (runs, 1)), rng.uniform(0.3, 0.9, (runs, 1))
    return (floor + 2 * STEPS**-rate) * np.exp(rng.normal(0, 0.01, (runs, STEPS.size)))


def write(path: Path, losses: np.ndarray, *, order: str = "sorted", names: Any = None,
          row_group_size: int = 1000) -> Path:  # fmt: skip
    runs = len(losses)
    names = np.arange(runs) if names is None else np.asarray(names)
    table = pa.table(
        {
            "run": pa.array(np.repeat(names, STEPS.size)),
            "step": np.tile(STEPS, runs),
            "value": losses.ravel(),
        }
    )
    if order == "shuffled":
        table = table.take(pa.array(np.random.default_rng(1).permutation(len(table))))
    elif order == "by step":
        table = table.sort_by([("step", "ascending"), ("run", "ascending")])
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


@pytest.fixture(scope="module")
def client() -> Any:
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


@pytest.mark.parametrize("order", ["sorted", "by step", "shuffled"])
@pytest.mark.parametrize("partition_rows", [700, 10**6])
def test_the_bytes_of_a_fit_are_those_of_one_process(
    tmp_path: Path, client: Any, order: str, partition_rows: int
) -> None:
    losses = curves(100)
    source = write(tmp_path / "runs.parquet", losses, order=order)
    found = table_of.fit_table(source, family="pow3", client=client, partition_rows=partition_rows)
    alone = gp.fit_batch(STEPS, losses, family="pow3")
    assert found.column_names == ["run", "points", "floor", "scale", "rate", "sigma", "status"]
    assert found["run"].to_pylist() == list(range(100))
    for name, column in alone.params.items():
        assert found[name].to_numpy().tobytes() == column.tobytes()
    assert found["sigma"].to_numpy().tobytes() == alone.sigma.tobytes()
    assert found["status"].to_pylist() == list(alone.status)
    assert set(found["points"].to_pylist()) == {STEPS.size}


def test_the_bytes_of_a_forecast_are_those_of_one_process(tmp_path: Path, client: Any) -> None:
    losses = curves(30)
    source = write(tmp_path / "runs.parquet", losses)
    for options in ({}, {"levels": [0.1, 0.5, 0.9]}, {"direction": "max"}):
        found = table_of.forecast_table(source, AHEAD, client=client, partition_rows=500, **options)
        alone = gp.forecast_batch(STEPS, losses, AHEAD, **options)
        assert found["median"].to_numpy().tobytes() == alone.median.ravel().tobytes()
        assert found.column_names[4:] == [quantile_name(level) for level in alone.levels]
        for level, quantiles in zip(alone.levels, alone.quantiles, strict=True):
            assert found[quantile_name(level)].to_numpy().tobytes() == quantiles.ravel().tobytes()
    assert found["step"].to_pylist() == AHEAD * 30
    assert found["run"].to_pylist() == [run for run in range(30) for _ in AHEAD]


def test_runs_may_have_text_for_names_and_steps_of_their_own(tmp_path: Path, client: Any) -> None:
    losses = curves(3)
    rows = [("b", s, v) for s, v in zip(STEPS, losses[0], strict=True)]
    rows += [("a", s, v) for s, v in zip(STEPS[:20] * 2, losses[1], strict=False)]
    rows += [("c", 1.0, 2.0)]
    rows += [("b", 5.0, 9.0), ("b", 5.0, losses[0, 4])]  # recorded again: the later row counts
    rows += [("a", None, 1.0), ("a", 4.0, None)]  # no step, no value: no point
    names, steps, values = zip(*rows, strict=True)
    for encode in (False, True):
        column = pa.array(names)
        table = pa.table(
            {"run": column.dictionary_encode() if encode else column,
             "step": pa.array(steps), "value": pa.array(values)}
        )  # fmt: skip
        pq.write_table(table, tmp_path / "runs.parquet", row_group_size=16)
        found = table_of.fit_table(tmp_path, client=client, partition_rows=16).to_pydict()
        assert found["run"] == ["a", "b", "c"]
        assert found["points"] == [20, 40, 1]
        for row, (step, loss) in enumerate([(STEPS[:20] * 2, losses[1, :20]), (STEPS, losses[0])]):
            alone = gp.fit_batch(step, loss[None, :], family="pow3")
            assert found["rate"][row] == alone.params["rate"][0]
        assert found["status"][2] == "too_few_points"


def test_a_run_that_is_past_the_step_has_ended(tmp_path: Path, client: Any) -> None:
    source = write(tmp_path / "runs.parquet", curves(2))
    found = table_of.forecast_table(source, [20.0, 60.0], client=client).to_pydict()
    assert found["status"][0::2] == ["ended", "ended"]
    assert found["median"][0::2] == [None, None]
    assert all(value > 0 for value in found["median"][1::2])


def test_one_bad_run_does_not_spoil_the_others(tmp_path: Path, client: Any) -> None:
    losses = curves(10)
    good = gp.fit_batch(STEPS, losses, family="pow3")
    losses[4, 7] = np.nan
    found = table_of.fit_table(write(tmp_path / "runs.parquet", losses), client=client)
    statuses = found["status"].to_pylist()
    assert statuses[4] == "not_finite"
    others = [k for k in range(10) if k != 4]
    assert [statuses[k] for k in others] == [good.status[k] for k in others]


def test_threads_of_this_process_are_the_default(tmp_path: Path) -> None:
    source = write(tmp_path / "runs.parquet", curves(5))
    assert len(table_of.fit_table(source, family="exp3")) == 5


def test_an_interrupted_call_goes_on_where_it_was(tmp_path: Path, client: Any) -> None:
    source = write(tmp_path / "runs.parquet", curves(100))
    out = tmp_path / "fits"
    whole = table_of.fit_table(source, out=out, client=client, partition_rows=1000)
    parts = sorted(out.glob("part-*.parquet"))
    assert len(parts) >= 3
    stamps = {part: part.stat().st_mtime_ns for part in parts}
    parts[1].unlink()
    again = table_of.fit_table(source, out=out, client=client, partition_rows=1000)
    assert again.equals(whole)
    redone = {part for part in parts if part.stat().st_mtime_ns != stamps[part]}
    assert redone == {parts[1]}


def test_a_folder_answers_one_question(tmp_path: Path, client: Any) -> None:
    source = write(tmp_path / "runs.parquet", curves(5))
    out = tmp_path / "fits"
    table_of.fit_table(source, out=out, client=client)
    with pytest.raises(gp.InputError, match="another question"):
        table_of.fit_table(source, family="exp3", out=out, client=client)
    with pytest.raises(gp.InputError, match="not ours"):
        table_of.fit_table(source, out=tmp_path, client=client)


def test_a_folder_does_not_answer_for_a_table_that_has_changed(tmp_path: Path, client: Any) -> None:
    source, out = write(tmp_path / "runs.parquet", curves(5)), tmp_path / "fits"
    size = source.stat().st_size
    table_of.fit_table(source, out=out, client=client)
    assert write(source, curves(5, seed=1)).stat().st_size == size
    with pytest.raises(gp.InputError, match="another question"):
        table_of.fit_table(source, out=out, client=client)


def test_an_answer_within_the_folder_of_its_table_is_no_part_of_it(
    tmp_path: Path, client: Any
) -> None:
    write(tmp_path / "runs.parquet", curves(5))
    first, again = (
        table_of.fit_table(tmp_path, out=tmp_path / "fits", client=client) for _ in range(2)
    )
    assert again.equals(first)
    assert len(first) == 5
    with pytest.raises(gp.InputError, match="not ours"):
        table_of.fit_table(tmp_path, out=tmp_path, client=client)


def test_of_two_calls_that_begin_at_once_only_one_may_have_the_folder(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = write(tmp_path / "runs.parquet", curves(5)), tmp_path / "fits"
    real, before = os.link, tmp_path / "before"

    def faster(draft: Path, note: Path) -> None:
        """Another call writes its note at this moment."""
        note.write_bytes((before / "question.json").read_bytes())
        real(draft, note)

    table_of.fit_table(source, family="exp3", out=before, client=client)
    monkeypatch.setattr(os, "link", faster)
    with pytest.raises(gp.InputError, match="holds the answer to another question"):
        table_of.fit_table(source, family="pow3", out=out, client=client)
    assert [path.name for path in out.iterdir()] == ["question.json"]
    (out / "question.json").unlink()
    assert len(table_of.fit_table(source, family="exp3", out=out, client=client)) == 5


def test_a_file_system_without_links_takes_an_answer(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = write(tmp_path / "runs.parquet", curves(5)), tmp_path / "fits"

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    for _ in range(2):
        assert len(table_of.fit_table(source, out=out, client=client)) == 5
    assert sorted(path.name for path in out.iterdir()) == ["part-00000.parquet", "question.json"]


def test_a_full_disk_leaves_no_folder_that_answers_nothing(tmp_path: Path) -> None:
    source = write(tmp_path / "runs.parquet", curves(5))
    out = tmp_path / "fits"
    with files_of_at_most(100), pytest.raises(OSError, match="File too large"):
        table_of.fit_table(source, family="exp3", out=out)
    assert list(out.iterdir()) == []
    assert len(table_of.fit_table(source, family="exp3", out=out)) == 5


def test_trouble_is_a_sentence(tmp_path: Path, client: Any) -> None:
    source = write(tmp_path / "runs.parquet", curves(5))
    with pytest.raises(gp.InputError, match="no column 'curve' among run, step, value"):
        table_of.fit_table(source, run="curve", client=client)
    with pytest.raises(gp.InputError, match="no column 'loss'"):
        table_of.fit_table(source, value="loss", client=client)
    with pytest.raises(gp.InputError, match="family is 'pow9', expected one of"):
        table_of.fit_table(source, family="pow9", client=client)
    words = r"^forecast_table: at is \[3\.0, 2\.0\], expected finite steps that increase$"
    with pytest.raises(gp.InputError, match=words):
        table_of.forecast_table(source, [3.0, 2.0], client=client)
    with pytest.raises(gp.InputError, match=words.replace(r"\[3\.0, 2\.0\]", "nan")):
        table_of.forecast_table(source, np.nan, client=client)
    with pytest.raises(TypeError, match=r"^fit_table: partition_rows is nan, expected a whole"):
        table_of.fit_table(source, client=client, partition_rows=np.nan)
    with pytest.raises(gp.InputError, match=r"^out .*runs\.parquet is a file, expected a folder$"):
        table_of.fit_table(source, client=client, out=source)
    with pytest.raises(gp.InputError, match="direction is 'up'"):
        table_of.forecast_table(source, [3.0], direction="up", client=client)
    with pytest.raises(gp.IoError, match="no Parquet file"):
        table_of.fit_table(tmp_path / "absent", client=client)
    (tmp_path / "bad.parquet").write_text("hello")
    with pytest.raises(gp.IoError, match=r"bad\.parquet"):
        table_of.fit_table(tmp_path, client=client)


@pytest.mark.parametrize("answer", ["fit", "forecast"])
def test_a_table_without_rows_has_an_answer_without_rows(
    tmp_path: Path, client: Any, answer: str
) -> None:
    def ask(source: Path) -> Any:
        if answer == "fit":
            return table_of.fit_table(source, client=client)
        return table_of.forecast_table(source, AHEAD, client=client)

    some, none = ask(write(tmp_path / "runs.parquet", curves(5))), tmp_path / "none.parquet"
    pq.write_table(pq.read_table(tmp_path / "runs.parquet").slice(0, 0), none)
    assert (len(ask(none)), ask(none).schema) == (0, some.schema)


def test_files_may_write_numbers_and_text_in_several_ways(tmp_path: Path, client: Any) -> None:
    losses = np.round(curves(1)[0], 3)
    kinds = [
        (pa.string(), pa.float64(), pa.float64()),
        (pa.large_string(), pa.int32(), pa.float64()),
        (pa.dictionary(pa.int32(), pa.string()), pa.int64(), pa.float64()),
    ]
    for number, types in enumerate(kinds):
        columns = ([f"run {number}"] * STEPS.size, STEPS, losses)
        table = pa.table(columns, names=["run", "step", "value"])
        schema = pa.schema(zip(table.column_names, types, strict=True))
        pq.write_table(table.cast(schema), tmp_path / f"{number}.parquet")
    for rows in (10**6, STEPS.size):
        found = table_of.fit_table(tmp_path, client=client, partition_rows=rows)
        assert found["run"].to_pylist() == ["run 0", "run 1", "run 2"]
        assert len(set(found["sigma"].to_pylist())) == 1


def test_runs_that_have_no_order_are_refused(tmp_path: Path, client: Any) -> None:
    point = {"step": [1.0, 2.0], "value": [2.0, 1.0]}
    pq.write_table(pa.table({"run": [[1], [2]], **point}), tmp_path / "a.parquet")
    with pytest.raises(gp.InputError, match=r"'run' is of list<.*, expected integers or text"):
        table_of.fit_table(tmp_path, client=client)
    pq.write_table(pa.table({"run": [1, 2], **point}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"run": ["a", "b"], **point}), tmp_path / "b.parquet")
    with pytest.raises(gp.InputError, match=r"is of text, that of .*a\.parquet of integers$"):
        table_of.fit_table(tmp_path, client=client)


@pytest.mark.parametrize("partition_rows", [10**6, 700])
def test_rows_without_a_run_are_refused_however_a_table_is_cut(
    tmp_path: Path, client: Any, partition_rows: int
) -> None:
    names = pa.array([None if i % 7 == 0 else i % 50 for i in range(4000)])
    table = {"run": names, "step": np.arange(4000.0), "value": np.ones(4000)}
    pq.write_table(pa.table(table), tmp_path / "a.parquet", row_group_size=100)
    with pytest.raises(gp.InputError, match=r"a\.parquet: the column 'run' holds nulls$"):
        table_of.fit_table(tmp_path, client=client, partition_rows=partition_rows)


def test_no_column_of_an_answer_takes_the_place_of_another(tmp_path: Path, client: Any) -> None:
    source = write(tmp_path / "runs.parquet", curves(2))
    with pytest.raises(gp.InputError, match=r"^column value is there twice$"):
        table_of.fit_table(source, step="value", client=client)
    with pytest.raises(gp.InputError, match=r"^a column of the answer: points is there twice$"):
        table_of.fit_table(source, run="points", client=client)
    with pytest.raises(gp.InputError, match=r"^a column of the answer: median is there twice$"):
        table_of.forecast_table(source, AHEAD, step="median", client=client)
    with pytest.raises(gp.InputError, match=r"^a column of the answer: q12.3457 is there twice$"):
        table_of.forecast_table(source, AHEAD, levels=[0.1234567, 0.12345671], client=client)


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    """Two worker processes, one of them killed -9 as soon as the first part is there."""
    losses = curves(400)
    source, out = write(tmp_path / "runs.parquet", losses), tmp_path / "fits"
    out.mkdir()
    (out / ".part-00007.parquet.4711").write_bytes(b"PAR1")  # of one that was killed as it wrote
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as connected,
    ):
        victim = next(iter(connected.run(os.getpid).values()))

        def kill() -> None:
            end = time.monotonic() + 60
            while not list(out.glob("part-*.parquet")) and time.monotonic() < end:
                time.sleep(0.002)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        found = table_of.fit_table(source, out=out, client=connected, partition_rows=1000)
        killer.join()
    alone = gp.fit_batch(STEPS, losses, family="pow3")
    assert found["rate"].to_numpy().tobytes() == alone.params["rate"].tobytes()
    assert found["run"].to_pylist() == list(range(400))
    assert not list(out.glob(".part*"))


HOLDER = """
import sys, time
from pathlib import Path
from glidepath.engines._scratch import scratch_folder
with scratch_folder(Path(sys.argv[1])) as folder:
    (folder / "piece.parquet").write_bytes(b"PAR1")
    print(folder, flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def holder(place: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """Another process that has a scratch folder."""
    package = str(Path(gp.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(place)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": package},
    ) as process:
        try:
            assert process.stdout is not None
            yield Path(process.stdout.readline().strip()), process
        finally:
            process.kill()


def test_a_call_removes_the_scratch_of_a_killed_client_and_leaves_that_of_a_live_one(
    tmp_path: Path, client: Any
) -> None:
    source, out = write(tmp_path / "runs.parquet", curves(100), order="shuffled"), tmp_path / "fits"
    out.mkdir()
    with holder(out) as (dead, process), holder(out) as (alive, _):
        elsewhere = (
            out / f".scratch-{'0' * 32}-{'1' * 16}"
        )  # of a machine whose locks we cannot see
        elsewhere.mkdir()
        Path(f"{elsewhere}.lock").touch()
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert dead.exists()
        for _ in range(2):
            table_of.fit_table(source, out=out, client=client, partition_rows=700)
            kept = [alive, Path(f"{alive}.lock"), elsewhere, Path(f"{elsewhere}.lock")]
            assert sorted(out.glob(".scratch-*")) == sorted(kept)
            assert (alive / "piece.parquet").exists()


def test_a_file_system_without_locks_has_no_scratch_that_looks_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    with monkeypatch.context() as patch:
        patch.setattr(_scratch.fcntl, "flock", refuse)
        mine = _scratch.scratch_folder(tmp_path)
        folder = mine.__enter__()
    with _scratch.scratch_folder(tmp_path):
        assert folder.exists()
    mine.__exit__(None, None, None)
    assert not list(tmp_path.iterdir())
