# SPDX-License-Identifier: Apache-2.0
"""Logs of jobs: growing, replaced, resumed, damaged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from slurm_world import job

import glidepath as gp
from glidepath.engines.slurm import JobRequest
from glidepath.engines.slurm._traces import TraceStore, trace_path


def test_reads_only_whole_lines_of_a_growing_log(tmp_path: Path) -> None:
    log, store = tmp_path / "a.csv", TraceStore()
    log.write_text("step,loss,seconds\n1,2.0,10\n2,1.5,10.5\n3,1.2")
    seen = store.read(log)
    assert seen.trace is not None
    assert (seen.last_step, seen.trace.loss.min(), seen.steps_per_s) == (2.0, 1.5, 2.0)
    with log.open("a") as file:
        file.write("5,11\n4,1.0,11.5\n")
    seen = store.read(log)
    assert seen.trace is not None
    assert list(seen.trace.loss) == [2.0, 1.5, 1.25, 1.0]
    assert store.read(log) is seen  # nothing new: not read again


def test_a_run_that_went_back_to_its_checkpoint_goes_on_from_there(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    log.write_text("step,loss\n1,5\n2,4\n3,9\n4,9\n3,3\n")
    trace = TraceStore().read(log).trace
    assert trace is not None
    assert (list(trace.step), list(trace.loss)) == ([1, 2, 3], [5, 4, 3])


def test_a_log_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    log, store = tmp_path / "a.csv", TraceStore()
    log.write_text("step,loss\n1,5\n2,4\n3,3\n")
    store.read(log)
    (tmp_path / "b").write_text("step,loss\n1,7\n")
    (tmp_path / "b").replace(log)
    assert store.read(log).trace.loss.min() == 7.0


@pytest.mark.parametrize("rows", [5, 30, 500])
def test_a_log_that_a_restart_writes_over_is_read_anew_however_far_it_has_come(
    tmp_path: Path, rows: int
) -> None:
    log, store = tmp_path / "a.csv", TraceStore()
    log.write_text("step,loss\n" + "".join(f"{i},{5 / i}\n" for i in range(1, 30)))
    assert store.read(log).last_step == 29
    log.write_text("step,loss\n" + "".join(f"{i},{9 / i}\n" for i in range(1, rows)))
    trace = store.read(log).trace
    assert trace is not None
    assert list(trace.step) == list(range(1, rows))
    assert list(trace.loss) == [9 / i for i in range(1, rows)]


def test_reads_json_lines_and_a_named_metric(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text('{"step": 1, "acc": 0.5}\n{"step": 1, "loss": 3}\n{"step": 2, "acc": 0.7}\n')
    assert TraceStore().read(log, metric="acc", direction="max").trace.loss.max() == 0.7


@pytest.mark.parametrize(
    "content", ["", "step,loss\n", "\0\0\0\0", "step,loss\n1,nan\n", "hello\nworld\n1\n", "[1]"]
)
def test_a_useless_log_is_a_sentence_not_an_error(tmp_path: Path, content: str) -> None:
    log = tmp_path / "a.csv"
    log.write_text(content)
    seen = TraceStore().read(log)
    assert seen.trace is None
    assert str(log) in seen.problem or "a.csv" in seen.problem


def test_pace_is_that_of_the_last_attempt(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    rows = [f"{k},1.0,{k}" for k in range(1, 50)] + [
        f"{k},1.0,{900 + k / 4}" for k in range(50, 80)
    ]
    log.write_text("step,loss,seconds\n" + "\n".join(rows) + "\n")
    assert TraceStore().read(log).steps_per_s == 4.0


def test_finds_the_log_of_a_job(tmp_path: Path) -> None:
    array = replace(job("12_3"), workdir=str(tmp_path), name="net", user="ann")
    named = trace_path(array, JobRequest(trace="%u/%x-%A-%a-%j.csv"), ())
    assert named == tmp_path / "ann/net-12-3-12_3.csv"
    assert trace_path(array, JobRequest(), ("no.csv", "glidepath-%j.csv")) is None
    (tmp_path / "glidepath-12_3.csv").touch()
    found = trace_path(array, JobRequest(), ("no.csv", "glidepath-%j.csv"))
    assert found == tmp_path / "glidepath-12_3.csv"


def test_a_folder_of_mlflow_is_read_again_as_it_grows(tmp_path: Path) -> None:
    run = tmp_path / "mlruns" / "0" / "abc"
    (run / "metrics").mkdir(parents=True)
    (run / "meta.yaml").write_text("run_id: abc\nrun_name: x\n")
    rows = [f"{1_700_000_000_000 + 2000 * i} {2 + 3 / i**0.5} {i}\n" for i in range(1, 41)]
    store = TraceStore()
    for count in (20, 40):
        (run / "metrics" / "loss").write_text("".join(rows[:count]))
        progress = store.read(tmp_path / "mlruns")
        assert progress.problem == ""
        assert progress.last_step == count
        assert progress.trace.loss[-1] == 2 + 3 / count**0.5
        assert progress.steps_per_s == pytest.approx(0.5)


ROWS = range(1, 40)
LOGS = {
    "two losses": ("a.csv", "step,total_loss,val_loss", lambda i: f"{i},{3 / i},{4 / i}"),
    "a loss beside a return": ("a.csv", "step,mean_reward,loss", lambda i: f"{i},{i},{3 / i}"),
    "a score alone": ("a.csv", "step,accuracy", lambda i: f"{i},{i / 50}"),
    "capitals": ("a.csv", "Epoch,Train Loss,Time", lambda i: f"{i},{3 / i},12:30"),
    "a loss now and then": ("a.csv", "step,loss,eval_acc", lambda i: f"{i},{i % 9 or ''},{i}"),
    "a loss that is zero": ("a.csv", "step,loss,accuracy", lambda i: f"{i},0.0,{i / 50}"),
    "batches of an epoch": ("a.csv", "epoch,batch,loss", lambda i: f"{i // 20},{i % 20},{3 / i}"),
    "semicolons": ("a.csv", "step;loss", lambda i: f"{i};{3 / i}"),
    "rows of other metrics": (
        "a.jsonl",
        '{"config": 1}',
        lambda i: f'{{"step": {i}, "{"loss" if i % 3 else "eval_loss"}": {3 / i}}}',
    ),
    "nested objects": (
        "a.jsonl",
        '{"epoch": 0}',
        lambda i: f'{{"step": {i}, "train": {{"loss": {3 / i}}}}}',
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_the_pilot_reads_the_metric_that_all_others_read(tmp_path: Path, name: str) -> None:
    file, head, row = LOGS[name]
    log, store = tmp_path / file, TraceStore()
    log.write_text(f"{head}\n" + "".join(f"{row(i)}\n" for i in list(ROWS)[:5]))
    store.read(log)  # what comes later may say that another one is meant
    log.write_text(f"{head}\n" + "".join(f"{row(i)}\n" for i in ROWS))
    seen = store.read(log)
    (trace,) = gp.read_traces(log)
    assert seen.trace is not None, seen.problem
    assert (seen.trace.metric, seen.trace.direction) == (trace.metric, trace.direction)
    assert list(seen.trace.step) == list(trace.step)
    assert list(seen.trace.loss) == list(trace.loss)


# Of every third step there is a value of the last column.
HANDS = {
    "lines that end as the csv module ends them": lambda i: (
        f"{i},{3 / i},{'' if i % 3 else 0.5}\r\n"
    ),
    "blanks behind commas": lambda i: f"{i}, {3 / i}, {' ' if i % 3 else 0.5}\n",
    "a word for no value": lambda i: f"{i},{3 / i},{'None' if i % 3 else 0.5}\n",
    "every cell in quotes": lambda i: f'"{i}","{3 / i}","{"" if i % 3 else 0.5}"\n',
    "lines that end in CR": lambda i: f"{i},{3 / i},{'' if i % 3 else 0.5}\r",
}


@pytest.mark.parametrize("metric", ["", "val_loss"])
@pytest.mark.parametrize("hand", HANDS)
def test_a_log_by_another_hand_is_read_as_all_others_read_it(
    tmp_path: Path, hand: str, metric: str
) -> None:
    rows = [HANDS[hand](i) for i in ROWS]
    end = rows[0][len(rows[0].rstrip()) :]
    log = tmp_path / "a.csv"
    log.write_bytes(f"step,loss,val_loss{end}{''.join(rows)}".encode())
    seen = TraceStore().read(log, metric=metric)
    (trace,) = gp.read_traces(log, metric=metric or None)
    assert seen.trace is not None, seen.problem
    assert seen.trace.metric == trace.metric
    assert list(seen.trace.step) == list(trace.step)
    assert list(seen.trace.loss) == list(trace.loss)


def test_commas_within_quotes_hide_no_line(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    log.write_text("step,loss,note\n" + "".join(f'{i},{3 / i},"a, b"\n' for i in ROWS))
    assert TraceStore().read(log).trace.loss.size == len(ROWS)


def test_a_log_with_two_columns_of_one_name_is_refused_as_everywhere(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    log.write_text("step,loss,loss\n" + "".join(f"{i},{3 / i},{4 / i}\n" for i in ROWS))
    assert TraceStore().read(log).problem == f"{log}:1: two columns are called 'loss'"


def test_a_log_whose_later_lines_say_another_metric_is_read_anew(tmp_path: Path) -> None:
    log, store = tmp_path / "a.csv", TraceStore()
    log.write_text("step,loss,eval_acc\n1,,0.5\n2,,0.6\n")
    assert store.read(log).trace.metric == "eval_acc"
    with log.open("a") as file:
        file.writelines(f"{i},{3 / i},\n" for i in range(3, 9))
    seen = store.read(log)
    assert seen.trace.metric == gp.read_traces(log)[0].metric == "loss"
    assert list(seen.trace.step) == list(range(3, 9))


def test_which_way_is_better_is_what_the_name_of_the_metric_says(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    log.write_text("step,val_accuracy,thing\n" + "".join(f"{i},{i / 50},1\n" for i in ROWS))
    assert TraceStore().read(log, metric="val_accuracy").trace.direction == "max"
    assert TraceStore().read(log, metric="val_accuracy", direction="min").trace.direction == "min"
    seen = TraceStore().read(log, metric="thing")
    assert seen.trace is None
    assert "does not say which way is better: give direction=min or direction=max" in seen.problem
    assert "no metric 'other', only" in TraceStore().read(log, metric="other").problem
