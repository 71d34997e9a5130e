# SPDX-License-Identifier: Apache-2.0
"""Traces: the record, its readers, cleaning. Python's own csv and gzip are the oracle of ours."""

from __future__ import annotations

import copy
import csv
import gzip
import io
import math
import pickle
import re
import time
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

import glidepath as gp

NAN, INF = math.nan, math.inf


def trace() -> gp.Trace:
    return gp.Trace(
        [1, 2, 4],
        [3.0, NAN, 1.0],
        lr=[0.1, 0.2, NAN],
        wall_seconds=[5, 6, 8],
        name="run",
        metric="val_acc",
        direction="max",
        planned_steps=9,
    )


STEPS, LOSSES = np.arange(1.0, 13.0), 1 + np.arange(1.0, 13.0) ** -0.5
MASKED = np.ma.masked_greater(LOSSES, 1.5)


@pytest.mark.parametrize(
    "use",
    [
        lambda: gp.fit(gp.Trace(STEPS, LOSSES), weight=MASKED),
        lambda: gp.Job(1, [], remaining_steps=MASKED),
        lambda: gp.gittins_index(MASKED),
        lambda: gp.Workload([gp.Tier("a", 1)], {"job": [1, 2], "submit_s": MASKED[:2]}),
    ],
)
def test_masked_values_are_refused_in_a_sentence(use: Callable[[], object]) -> None:
    with pytest.raises(gp.InputError, match="some values are masked, leave them out or fill them"):
        use()


def test_a_masked_array_without_a_masked_value_is_an_array() -> None:
    assert gp.Trace(STEPS, np.ma.array(LOSSES)) == gp.Trace(STEPS, LOSSES)


def write_rows(path: Path, rows: list[list[object]], line_end: str = "\n") -> Path:
    text = io.StringIO()
    csv.writer(text, lineterminator=line_end).writerows(rows)
    raw = text.getvalue().encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


# ---------------------------------------------------------------------------------------- Trace


def test_trace_holds_read_only_float64_columns() -> None:
    step = np.array([1, 2, 4])
    run = gp.Trace(step, [3, 2, 1])
    for column in (run.step, run.loss):
        assert column.dtype == np.float64
        assert column.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 7
    step[0] = 99  # the trace has its own copy
    assert run.step[0] == 1
    assert run.lr is None
    assert run.wall_seconds is None
    assert (run.name, run.metric, run.direction, len(run)) == ("", "loss", "min", 3)
    assert run.planned_steps is None


def test_a_trace_stays_as_it_is_whatever_becomes_of_a_data_frame_or_a_view() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"step": [1.0, 2.0, 4.0], "loss": [3.0, 2.0, 1.0]})
    of_frame = gp.Trace(frame["step"], frame["loss"].to_numpy())
    frame.loc[0] = [9.0, 9.0]
    base = np.array([1.0, 2.0, 4.0])
    view = base[:]
    view.flags.writeable = False
    of_view = gp.Trace(view, [3.0, 2.0, 1.0])
    base[0] = 9.0
    for run in (of_frame, of_view):
        assert run.step.tolist() == [1.0, 2.0, 4.0]
        assert run.loss.tolist() == [3.0, 2.0, 1.0]
    base.flags.writeable = False
    assert gp.Trace(np.arange(3.0), base).loss is base  # nobody changes it: not copied


def test_trace_takes_strided_columns_of_any_real_kind() -> None:
    grid = np.arange(12, dtype=np.float32).reshape(6, 2)
    run = gp.Trace(grid[:, 0], grid[::-1, 1])
    assert run.step.tolist() == [0, 2, 4, 6, 8, 10]
    assert run.loss.tolist() == [11, 9, 7, 5, 3, 1]


def test_trace_without_points_is_a_trace() -> None:
    assert len(gp.Trace([], [])) == 0
    assert gp.Trace([], [])
    assert "0 points" in repr(gp.Trace([], []))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 2], [1]), {}, "2 steps but 1 losses"),
        (([1, 1], [1, 2]), {}, r"step\[1\] is 1, expected above the 1 before it"),
        (([2, 1], [1, 2]), {}, r"step\[1\] is 1, expected above the 2 before it"),
        (([1, NAN], [1, 2]), {}, r"step\[1\] is nan"),
        (([1, INF], [1, 2]), {}, r"step\[1\] is inf"),
        (([[1, 2]], [1, 2]), {}, "step: expected 1 dimension, got 2"),
        ((3, 3), {}, "step: expected 1 dimension, got 0"),
        (([[1], [1, 2]], [1, 2]), {}, "step: "),
        (([1, 2], [1, 2]), {"lr": [1]}, "2 steps but 1 of lr"),
        (([1, 2], [1, 2]), {"lr": [1, -1]}, r"lr\[1\] is -1"),
        (([1, 2], [1, 2]), {"lr": [INF, 1]}, r"lr\[0\] is inf"),
        (([1, 2], [1, 2]), {"wall_seconds": [1]}, "2 steps but 1 of wall_seconds"),
        (([1, 2], [1, 2]), {"direction": "up"}, "direction is 'up', expected min or max"),
        (([1, 2], [1, 2]), {"planned_steps": 0}, "planned_steps is 0, expected above 0 and finite"),
        (([1, 2], [1, 2]), {"lr": [1, -1]}, r"lr\[1\] is -1, expected 0 or more and finite"),
        (([1, 2], [1, 2]), {"planned_steps": NAN}, "planned_steps is nan"),
        (([1, 2], [1, 2]), {"planned_steps": INF}, "planned_steps is inf"),
    ],
)
def test_trace_refuses_in_a_sentence(arguments, options, message) -> None:  # noqa: ANN001
    with pytest.raises(gp.InputError, match=message):
        gp.Trace(*arguments, **options)


@pytest.mark.parametrize("loss", [["a", "b"], [1j, 2j], [None, 1], [object(), 1]])
def test_trace_refuses_columns_that_are_not_numbers(loss) -> None:  # noqa: ANN001
    with pytest.raises(TypeError, match="loss: expected an array of numbers"):
        gp.Trace([1, 2], loss)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Can't call numpy() on Tensor that requires grad."),
        TypeError("Got unsupported ScalarType BFloat16"),
    ],
)
def test_a_tensor_that_is_no_array_is_refused_by_the_name_of_its_column(error: Exception) -> None:
    class Tensor:
        def __array__(self, *_: object, **__: object) -> None:
            raise error

    said = f"loss: a Tensor is no array of numbers: {re.escape(str(error))}"
    with pytest.raises(TypeError, match=said):
        gp.Trace([1, 2], Tensor())
    with pytest.raises(TypeError, match="lr: a Tensor is no array of numbers: "):
        gp.Trace([1, 2], [2, 1], lr=Tensor())


def test_trace_is_a_frozen_value() -> None:
    run = trace()
    with pytest.raises(FrozenInstanceError):
        run.name = "other"  # type: ignore[misc]
    assert run == trace()
    assert run != gp.Trace([1, 2, 4], [3.0, NAN, 1.0], name="run", direction="max")
    assert gp.Trace([1], [2], metric="eval_loss") != gp.Trace([1], [2])
    assert gp.Trace([1], [2], planned_steps=9) != gp.Trace([1], [2])
    for again in (pickle.loads(pickle.dumps(run)), copy.copy(run), copy.deepcopy(run)):
        assert again == run
        assert not again.step.flags.writeable


def test_trace_says_in_one_line_what_it_is() -> None:
    assert repr(trace()) == (
        "<Trace: 'run', 3 points, steps 1 to 4 of 9 planned, val_acc 3 to 1, 1 not finite, "
        "with lr, higher is better>"
    )
    assert "\n" not in repr(trace())


def test_until_is_what_was_known_at_a_step() -> None:
    run = trace()
    early = run.until(2)
    assert early.step.tolist() == [1, 2]
    assert early.lr is not None
    assert early.lr.tolist() == [0.1, 0.2]
    assert early.wall_seconds is not None
    assert (early.name, early.metric, early.direction) == ("run", "val_acc", "max")
    assert early.planned_steps == 9
    assert np.shares_memory(early.step, run.step)
    assert len(run.until(0.5)) == 0
    assert len(run.until(3.9)) == 2
    assert run.until(INF) == run
    with pytest.raises(gp.InputError, match="until: step is nan, expected a number"):
        run.until(NAN)


def test_trace_becomes_a_data_frame() -> None:
    pytest.importorskip("pandas")
    assert list(trace().to_pandas().columns) == ["step", "loss", "lr", "wall_seconds"]
    assert list(gp.Trace([1], [2]).to_pandas().columns) == ["step", "loss"]


# ---------------------------------------------------------------------------------- read_traces


@pytest.mark.parametrize("name", ["runs.csv", "runs.csv.gz"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_reads_what_pythons_csv_writes(tmp_path: Path, name: str, line_end: str) -> None:
    rng = np.random.default_rng(0)
    names = ["plain", "with, comma", 'with "quotes"', " blanks ", "naïve ∂", "line\nend", ""]
    rows: list[list[object]] = [["curve", "step", "value", "lr"]]
    wanted: dict[str, list[tuple[float, float, float]]] = {}
    for i in range(500):
        curve = names[int(rng.integers(len(names)))]
        value = [rng.normal(), 10.0 ** rng.uniform(-300, 300), NAN, -INF][int(rng.integers(4))]
        lr = abs(rng.normal()) if rng.random() < 0.5 else NAN
        rows.append([curve, i / 7, value, "" if math.isnan(lr) else lr])
        wanted.setdefault(curve, []).append((i / 7, float(value), lr))
    traces = gp.read_traces(write_rows(tmp_path / name, rows, line_end))
    assert [run.name for run in traces] == list(wanted)
    for run in traces:
        step, value, lr = np.array(wanted[run.name]).T
        np.testing.assert_array_equal(run.step, step)  # to the last bit
        np.testing.assert_array_equal(run.loss, value)
        assert run.lr is not None
        np.testing.assert_array_equal(run.lr, lr)


def test_reads_every_shared_collection_as_pythons_csv_does(shared: Path) -> None:
    files = sorted((shared / "data" / "curves").glob("*.csv.gz"))
    assert files
    for file in files:
        wanted: dict[str, list[list[float]]] = {}
        with gzip.open(file, "rt", newline="") as stream:
            for row in csv.DictReader(stream):
                lr = float(row.get("lr") or NAN)
                wanted.setdefault(row["curve"], []).append(
                    [float(row["step"]), float(row["value"]), lr]
                )
        traces = gp.read_traces(file)
        assert [run.name for run in traces] == list(wanted), file
        for run in traces:
            step, value, lr = np.array(wanted[run.name]).T
            np.testing.assert_array_equal(run.step, step)
            np.testing.assert_array_equal(run.loss, value)
            np.testing.assert_array_equal(np.full(len(run), NAN) if run.lr is None else run.lr, lr)
            assert run.direction == (
                "max" if file.name.startswith(("pollux-acc", "yolo-leyolo-map")) else "min"
            )


def test_reads_the_metric_of_that_name(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("curve,step,value,val_loss\nx,1,3,\nx,2,2,2.5\n")
    assert gp.read_traces(file)[0].loss.tolist() == [3, 2]
    assert gp.read_traces(file, metric="val_loss")[0].loss.tolist() == [2.5]
    with pytest.raises(
        gp.IoError, match=r"a\.csv:1: no column 'accuracy', only curve, step, value"
    ):
        gp.read_traces(file, metric="accuracy")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a.csv: the file is empty"),
        (b"\n\n", "a.csv: the file is empty"),
        (b"curve,step,value\n", "a.csv: no row has a value"),
        (b"curve,value\nx,1\n", "a.csv:1: no column 'step', only curve, value"),
        (b"curve,step,value\nx,1,2\nx,2\n", "a.csv:3: 2 fields where the header has 3"),
        (b"curve,step,value\nx,1,2\nx,2,oops\n", "a.csv:3: value 'oops' is not a number"),
        (b"curve,step,value\nx,1,2\ny,nan,1\n", "a.csv:3: step 'nan' is not finite"),
        (b"curve,step,value\nx,2,2\nx,1,1\n", "a.csv:3: step 1 of curve 'x' is not above the 2"),
        (b"curve,step,value\ncaf\xe9,2,\xff\n", r"a.csv:2: value '\\xff' is not a number"),
        (b"caf\xe9\xff,b\n", r"a.csv:1: a table needs a column of steps .*: found only caf.., b"),
        (
            b"1,2.5\n2,2.25\n",
            "a.csv:1: the first line is the numbers 1, 2.5, expected the names of its columns "
            "above it, such as step,loss",
        ),
        (b"\x00\x01\x02\x03", "a.csv: a log of no known format"),
        (
            gzip.compress(b"curve,step,value\n" + b"x,1,2\n" * 999, mtime=0)[:-20],
            "gzip stream ends too early",
        ),
        (gzip.compress(b"", mtime=0), "a.csv: the file is empty"),
    ],
)
def test_a_broken_file_is_an_io_error_with_file_and_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(gp.IoError, match=message):
        gp.read_traces(tmp_path / "a.csv")


def test_names_in_latin_1_are_read_and_a_point_is_enough(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"curve,step,value\ncaf\xe9,1,2\n")
    (run,) = gp.read_traces(tmp_path / "a.csv")
    assert (run.name, len(run)) == ("café", 1)


def test_reads_a_folder_in_order_of_names_and_passes_over_other_files(tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    write_rows(tmp_path / "b.csv", [["curve", "step", "value"], ["b", 1, 2]])
    write_rows(tmp_path / "deeper" / "c.csv.gz", [["curve", "step", "value"], ["c", 1, 2]])
    write_rows(tmp_path / "a.csv", [["curve", "step", "value", "acc"], ["a", 1, 2, 9]])
    (tmp_path / "a.json").write_text('{"direction": "max"}')
    (tmp_path / "notes.txt").write_text("nothing of ours")
    (tmp_path / "jobs.csv").write_text("job,submit_s\n1,0\n")
    traces = gp.read_traces(str(tmp_path))
    assert [run.name for run in traces] == ["a", "b", "c"]
    assert [run.direction for run in traces] == ["max", "min", "min"]
    assert [run.loss[0] for run in gp.read_traces(tmp_path, metric="acc")] == [9]
    with pytest.raises(gp.IoError, match="no traces in this folder with a metric 'f1'"):
        gp.read_traces(tmp_path, metric="f1")


def test_missing_files_empty_folders_and_unknown_formats_are_named(tmp_path: Path) -> None:
    with pytest.raises(gp.IoError, match="no traces in this folder"):
        gp.read_traces(tmp_path)
    with pytest.raises(gp.IoError, match=r"none\.csv: No such file or directory"):
        gp.read_traces(tmp_path / "none.csv")
    with pytest.raises(gp.InputError, match="format is 'xml', expected one of"):
        gp.read_traces(tmp_path, format="xml")


def test_reads_a_large_file_at_tens_of_megabytes_a_second(tmp_path: Path) -> None:
    rows = 400_000
    step = np.arange(rows) % 1000
    text = "curve,step,value,lr\n" + "".join(
        f"run/{i // 1000},{s},{2 + 1 / (1 + s):.12f},0.001\n" for i, s in enumerate(step.tolist())
    )
    file = tmp_path / "large.csv"
    file.write_text(text)
    start = time.process_time()
    traces = gp.read_traces(file)
    seconds = time.process_time() - start
    assert (len(traces), sum(map(len, traces))) == (400, rows)
    # Measured: over 100 MB/s. The bound only catches a reader that became quadratic.
    assert file.stat().st_size / seconds > 5e6


# ---------------------------------------------------------------------------------------- clean


def test_clean_repairs_raw_logs_and_says_what_it_did() -> None:
    cleaned = gp.clean(
        [1, 2, 3, 2, 3, NAN, 4, 5],
        [9, 8, 7, 8.5, 7.5, 1, INF, 6],
        lr=[1, 2, 3, 4, 5, 6, 7, 8],
        name="restarted",
        direction="max",
    )
    assert cleaned.trace == gp.Trace(
        [1, 2, 3, 5], [9, 8.5, 7.5, 6], lr=[1, 4, 5, 8], name="restarted", direction="max"
    )
    assert (cleaned.dropped_nonfinite, cleaned.dropped_repeats) == (2, 2)
    assert repr(cleaned) == "<Cleaned: 4 points, 2 not finite dropped, 2 repeated dropped>"
    assert repr(gp.clean(cleaned.trace)) == "<Cleaned: 4 points, nothing to do>"
    assert pickle.loads(pickle.dumps(cleaned)) == cleaned


def test_clean_thins_a_long_trace_evenly_in_log_step() -> None:
    run = gp.Trace(np.arange(1.0, 20001.0), np.ones(20000), lr=np.ones(20000))
    thin = gp.clean(run, max_points=100).trace
    assert len(thin) == 100
    assert (thin.step[0], thin.step[-1]) == (1, 20000)
    assert np.isin(thin.step, run.step).all()
    ratio = np.diff(np.log(thin.step[50:]))
    assert ratio.max() / ratio.min() < 1.1


def test_clean_pulls_in_spikes_on_request() -> None:
    rng = np.random.default_rng(1)
    step = np.arange(1.0, 101.0)
    loss = 2 + step**-0.5 + 0.01 * rng.normal(size=100)
    spiked = loss.copy()
    spiked[[30, 70]] = 50, -50
    assert gp.clean(step, spiked).trace.loss.tolist() == spiked.tolist()
    cleaned = gp.clean(step, spiked, winsorize_sigmas=6)
    assert cleaned.pulled_in == 2
    np.testing.assert_allclose(cleaned.trace.loss, loss, atol=0.15)


def test_clean_refuses_in_a_sentence() -> None:
    with pytest.raises(gp.InputError, match=r"expected a gp\.Trace, got list"):
        gp.clean([1, 2])
    with pytest.raises(gp.InputError, match="2 steps but 1 losses"):
        gp.clean([1, 2], [1])
    with pytest.raises(gp.InputError, match="max_points is 1"):
        gp.clean([1, 2], [1, 2], max_points=1)
    with pytest.raises(gp.InputError, match="a Trace has its own"):
        gp.clean(trace(), [1, 2, 3])
