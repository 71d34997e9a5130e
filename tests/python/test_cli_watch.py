# SPDX-License-Identifier: Apache-2.0
"""`glidepath watch`: what it says of a growing log, its JSON, its view and its exit codes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import glidepath as gp
from glidepath import cli
from glidepath.cli import _watch

ROOT = Path(__file__).resolve().parents[2]


def log(path: Path, last: int, floor: float = 1.0) -> None:
    steps = np.arange(10.0, last + 10, 10)
    rows = [
        f"{step:.0f},{loss:.6f},{step / 2}\n"
        for step, loss in zip(steps, curve(steps, floor), strict=True)
    ]
    path.write_text("step,loss,elapsed_seconds\n" + "".join(rows))


def curve(steps: Any, floor: float = 1.0) -> Any:
    noise = 0.002 * np.random.default_rng(3).standard_normal(steps.size)
    return floor + 3.0 * steps**-0.5 + noise


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Say what happens between the looks; after the last, Ctrl-C."""

    def plan(*events: Callable[[], Any]) -> None:
        rest = list(events)

        def wait(_: gp.Follow) -> None:
            if not rest:
                raise KeyboardInterrupt
            rest.pop(0)()

        monkeypatch.setattr(gp.Follow, "wait", wait)

    return plan


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = cli.main(["watch", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_once_says_what_the_library_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log.csv"
    log(file, 2000)
    code, out, err = run(capsys, file, "--target", 1.05, "--budget", 20000, "--once", "--json")
    (row,) = json.loads(out)
    assert (code, err) == (0, "")
    (trace,) = gp.read_traces(file)
    watch = gp.Watch(target=1.05, budget=20000)
    for step, loss in zip(trace.step, trace.loss, strict=True):
        watch.add(step, loss)
    decision = watch.decision()
    assert row["verdict"] == decision.verdict
    reach = gp.reach(trace, 1.05, budget=20000)  # of all points, as `forecast` says it
    assert row["probability"] == 1.0 - reach.prob_never
    assert row["probability"] == pytest.approx(decision.probability, abs=0.1)
    assert row["reason"].startswith("reaches 1.05 by step 20 000 with probability ")
    assert row["steps_q50"] == reach.quantile(0.5) - 2000
    assert row["seconds_q50"] == pytest.approx(row["steps_q50"] / 2)  # the log's clock
    assert row["reach_q50"] == 2000 + row["steps_q50"]
    assert row["at"] == 20000
    ahead = gp.forecast(trace, 2000 + np.geomspace(18000 / 50, 18000, 50))
    assert row["median"] == ahead.median[-1]
    code, out, _ = run(capsys, file, "--target", 1.05, "--budget", 20000, "--once")
    assert code == 0
    assert row["reason"] in " ".join(out.split())  # however wide COLUMNS says that the terminal is


def test_watch_and_forecast_say_the_same_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, past = tmp_path / "run.csv", tmp_path / "past"
    log(file, 400)
    past.mkdir()
    for index in range(6):
        log(past / f"{index}.csv", 1000, floor=0.92 + 0.05 * index)
    asked = ("--target", 1.1, "--budget", 5000, "--past", past)
    _, out, _ = run(capsys, file, *asked, "--once", "--json")
    (watched,) = json.loads(out)
    assert cli.main([*map(str, ("forecast", file, *asked)), "--json"]) == 0
    (forecast,) = json.loads(capsys.readouterr().out)
    assert watched["past_runs"] == 6
    shared = sorted(watched.keys() & forecast.keys())
    assert {"at", "median", "q10", "q90", "probability", "reach_q50"} <= set(shared)
    assert {key: watched[key] for key in shared} == {key: forecast[key] for key in shared}


def test_a_target_that_a_run_begins_at_is_doubted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], between: Callable[..., None]
) -> None:
    file = tmp_path / "percent.csv"
    file.write_text("step,val_acc\n1,10\n")
    doubt = (
        "percent.csv: the first value, 10, is at the target already: is --target 0.6 in the unit of"
        " val_acc?"
    )
    line = [file, "--metric", "val_acc", "--target"]
    _, out, err = run(capsys, *line, 0.6, "--until-decided", "--json")
    assert json.loads(out)["verdict"] == "reached"
    assert err.splitlines() == [doubt]
    more = "step,val_acc\n1,10\n2,20\n3,35\n4,45\n"
    between(lambda: file.write_text(more), lambda: file.write_text(f"{more}5,50\n"))
    _, out, err = run(capsys, *line, 0.6)
    assert len(out.splitlines()) == out.count("was reached at step 1;") == 3
    assert err.splitlines().count(doubt) == 1
    for target in (30, 60):  # which a later value, or none, is at
        assert "unit" not in run(capsys, *line, target, "--once")[2]


def test_steps_are_written_in_one_form_however_often_they_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log.csv"
    log(file, 2000)
    _, out, _ = run(capsys, file, "--target", 1.05, "--budget", 1_500_000, "--once")
    said = out.replace("\n", " ")
    for words in ("step 2 000, loss", "by step 1 500 000 with", "forecast at step 1 500 000:"):
        assert words in said
    assert not re.search(r"\d{4,}|\de\+", re.sub(r"\.\d+", "", said))
    assert cli.main(["forecast", str(file), "--budget", "1500000"]) == 0
    row = capsys.readouterr().out
    assert re.search(r"2 000 .* 1 500 000 ", row)
    # Those of a `Watch`, whose reason is shown where it settles the matter.
    _, out, _ = run(capsys, file, "--target", 1.08, "--once")
    assert re.search(r"target 1\.08 was reached at step \d \d{3} ", out.replace("\n", " "))


@pytest.mark.parametrize(
    ("target", "last", "verdict", "expected"),
    [
        (1.5, 4000, "reached", 0),
        (1.035, 4000, "unknown", 0),
        (0.5, 4000, "never", 0),  # at looks a hundredth of the budget apart, not yet five times
        (0.5, 4200, "never", 1),
    ],
)
def test_the_exit_code_says_whether_to_stop(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    target: float,
    last: int,
    verdict: str,
    expected: int,
) -> None:
    log(tmp_path / "log.csv", last)
    arguments = (tmp_path, "--target", target, "--budget", 12000, "--once", "--json")
    code, out, _ = run(capsys, *arguments)
    (row,) = json.loads(out)
    assert (row["verdict"], code) == (verdict, expected)
    assert row["stop"] is (verdict == "reached" or expected == 1)


def test_a_log_that_diverged_advises_to_stop_without_a_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for last, expected in ((8, 1), (7, 0)):  # lost at five points, and at four
        lost = "".join(f"{step},nan\n" for step in range(3, last + 1))
        text = f"step,loss\n1,3\n2,2\n{lost}"
        (tmp_path / "log.csv").write_text(text)
        code, out, _ = run(capsys, tmp_path / "log.csv", "--once", "--json")
        assert json.loads(out)[0]["verdict"] == "diverged"
        assert (code, json.loads(out)[0]["stop"]) == (expected, expected == 1)


def test_a_growing_log_gives_a_line_a_change_until_it_is_decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], between: Callable[..., None]
) -> None:
    file = tmp_path / "log.csv"
    between(lambda: log(file, 100), lambda: None, lambda: log(file, 200), lambda: log(file, 900))
    code, out, err = run(capsys, file, "--target", 1.15, "--until-decided", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["observed_to"] for row in rows] == [100, 200, 900]
    assert rows[-1]["verdict"] == "reached"
    assert code == 0
    assert err.startswith(f"waiting: {file}")


def test_one_look_takes_a_last_line_without_its_end_once_it_stays_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], between: Callable[..., None]
) -> None:
    file, hour_s = tmp_path / "log.csv", 3600
    file.write_text("step,loss\n1,5\n2,4.5")
    for ahead_s in (hour_s, 0, -hour_s):  # of the clock of its file server
        os.utime(file, (time.time() + ahead_s,) * 2)
        code, out, _ = run(capsys, file, "--once", "--json")
        assert (code, json.loads(out)[0]["loss"]) == (0, 4.5)
    file.write_text("step,loss\n1,5\n2,4.")
    between(lambda: file.write_text("step,loss\n1,5\n2,4.5\n3,4."))  # it grows
    code, _, err = run(capsys, file, "--once")
    assert code == 2
    assert "the last line is not complete yet" in err


def test_without_a_terminal_each_change_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], between: Callable[..., None]
) -> None:
    file = tmp_path / "log.csv"
    log(file, 100)
    between(lambda: log(file, 2000), lambda: file.write_text("step,lo"))
    code, out, err = run(capsys, file, "--target", 1.05)
    first, second = out.splitlines()
    assert first.startswith("log.csv: step 100, loss ")
    assert "reaches 1.05 by step 20 000 with probability" in second
    assert err == f"waiting: {file}: the last line is not complete yet\n"
    assert code == 130


def test_the_view_of_a_terminal_is_kept_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: Callable[..., None]
) -> None:
    screen = io.StringIO()
    monkeypatch.setenv("TERM", "xterm")  # whatever the tests run in
    terminal = Console(file=screen, force_terminal=True, width=78, color_system="standard")
    monkeypatch.setattr(_watch, "stdout", terminal)
    file = tmp_path / "log.csv"
    between(lambda: log(file, 100), lambda: log(file, 2000))
    assert cli.main(["watch", str(file), "--target", "1.05"]) == 130
    text = screen.getvalue()
    waiting, first, second = (text.index(s) for s in ("waiting: ", "step 100,", "step 2 000,"))
    assert waiting < first < second
    assert "█" in text
    assert text.rstrip("\n").endswith("\x1b[?25h")  # the cursor is back
    between(lambda: log(file, 9000))
    log(file, 100)
    assert cli.main(["watch", str(file), "--target", "1.1", "--until-decided"]) == 0
    assert "was reached at step" in screen.getvalue()


def test_one_run_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log(tmp_path / "a.csv", 200)
    log(tmp_path / "b.csv", 400, floor=0.5)
    code, out, _ = run(capsys, tmp_path, "--run", "b.csv", "--once", "--json")
    assert code == 0
    assert [row["run"] for row in json.loads(out)] == ["b.csv"]
    code, _, err = run(capsys, tmp_path, "--run", "c.csv", "--once")
    assert code == 2
    assert "no run 'c.csv'; it holds 'a.csv', 'b.csv'" in err


def test_a_run_that_is_not_there_is_waited_for_and_said(
    tmp_path: Path, between: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    log(tmp_path / "a.csv", 500)
    between(lambda: None, lambda: log(tmp_path / "b.csv", 500))
    code, out, err = run(capsys, tmp_path, "--run", "b.csv")
    assert (code, out.count("b.csv: step 500")) == (130, 1)
    assert err == f"waiting: {tmp_path}: no run 'b.csv'; it holds 'a.csv'\n"


def test_runs_of_a_folder_that_share_a_name_all_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], between: Callable[..., None]
) -> None:
    lost = "".join(f"r,{step},nan\n" for step in range(3, 9))
    (tmp_path / "x.csv").write_text(f"curve,step,value\nr,1,3\nr,2,2\n{lost}")
    (tmp_path / "y.csv").write_text("curve,step,value\nr,1,3\nr,2,2\n")
    code, out, _ = run(capsys, tmp_path, "--once", "--json")
    rows = json.loads(out)
    assert [(row["run"], row["stop"]) for row in rows] == [("r", True), ("r", False)]
    assert code == 1
    with (tmp_path / "y.csv").open("a") as file:
        between(lambda: file.write("r,3,1.5\n") and file.flush())
        _, out, _ = run(capsys, tmp_path, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["observed_to"] for row in rows] == [8, 2, 3]


def test_a_run_whose_log_was_removed_counts_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], between: Callable[..., None]
) -> None:
    log(tmp_path / "done.csv", 900)
    lost = "".join(f"{step},nan\n" for step in range(3, 9))
    (tmp_path / "lost.csv").write_text(f"step,loss\n1,3\n2,2\n{lost}")
    log(tmp_path / "open.csv", 100)
    looks = ((tmp_path / "lost.csv").unlink, (tmp_path / "open.csv").unlink, str)
    between(*looks)
    code, out, _ = run(capsys, tmp_path, "--target", 1.15, "--until-decided", "--json")
    assert [json.loads(line)["run"] for line in out.splitlines()] == [
        *("done.csv", "lost.csv", "open.csv")
    ]
    assert code == 0


def test_a_log_that_one_look_misses_is_not_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], between: Callable[..., None]
) -> None:
    log(tmp_path / "done.csv", 900)
    log(tmp_path / "open.csv", 100)
    between((tmp_path / "open.csv").unlink, lambda: log(tmp_path / "open.csv", 200))
    code, out, _ = run(capsys, tmp_path, "--target", 1.15, "--until-decided", "--json")
    assert [json.loads(line)["observed_to"] for line in out.splitlines()] == [900, 100, 200]
    assert code == 130  # it went on


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.csv", "--once"), "nowhere.csv: "),
        (
            ("nowhere.csv", "--target", "1", "--alpha", "0.7"),
            "alpha is 0.7, expected above 0 and below 0.5",
        ),
        (("nowhere.csv", "--every-s", "0"), "--every-s is 0, expected 0.1 or more"),
        (
            ("nowhere.csv", "--target", "1", "--budget", "-1"),
            "--budget is -1, expected a step above 0",
        ),
        (("nowhere.csv", "--budget", "0"), "--budget is 0, expected a step above 0"),
    ],
)
def test_bad_input_is_exit_code_two(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_runs_that_are_watched_are_no_past_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A folder of ended runs and live ones, of which the live ones are watched.
    live, past = tmp_path / "past" / "live", tmp_path / "past"
    live.mkdir(parents=True)
    for index in range(4):
        log(past / f"{index}.csv", 1000, floor=0.92 + 0.05 * index)
    for index in range(2):
        log(live / f"live{index}.csv", 400, floor=1.2 + 0.05 * index)
    _, out, _ = run(capsys, live, "--past", past, "--budget", 5000, "--once", "--json")
    watched = json.loads(out)
    line = ["forecast", str(live), "--past", str(past), "--budget", "5000", "--json"]
    assert cli.main(line) == 0
    forecast = json.loads(capsys.readouterr().out)
    assert [row["past_runs"] for row in watched] == [row["past_runs"] for row in forecast] == [4, 4]
    assert [row["median"] for row in watched] == [row["median"] for row in forecast]
    code, _, err = run(capsys, live, "--past", live, "--once")
    assert (code, err.count("it holds only the runs to be forecast")) == (2, 1)


def test_a_watch_learns_from_runs_that_have_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # They plunge at step 400, which nothing in the log foretells.
    ended = tmp_path / "ended"
    ended.mkdir()
    steps = np.arange(10.0, 1010, 10)
    for i in range(9):
        loss = curve(steps) + 0.01 * i - 0.8 * (steps > 400)
        lines = [f"{s:.0f},{v!r}\n" for s, v in zip(steps, loss.tolist(), strict=True)]
        (ended / f"{i}.csv").write_text("step,loss\n" + "".join(lines))
    live = tmp_path / "live.csv"
    log(live, 300, floor=1.035)
    line = (live, "--target", 0.5, "--budget", 1000, "--once", "--json")
    _, out, _ = run(capsys, *line)
    (alone,) = json.loads(out)
    _, out, _ = run(capsys, *line, "--past", ended)
    (told,) = json.loads(out)
    assert alone["probability"] < 0.05
    assert told["probability"] > 0.5
    assert told["median"] == pytest.approx(curve(np.array([1000.0]))[0] - 0.765, abs=0.1)


def test_every_format_of_the_shared_logs_can_be_watched(
    shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in sorted((shared / "data" / "logs").iterdir()):
        if folder.is_dir():
            metric = ("--metric", "Test Accuracy") if folder.name == "mlflow" else ()
            code, out, _ = run(capsys, folder, "--target", 0.001, *metric, "--once", "--json")
            assert code in (0, 1), folder
            assert json.loads(out), folder


def test_ctrl_c_ends_it_without_a_trace_of_python(tmp_path: Path) -> None:
    log(tmp_path / "log.csv", 100)
    process = subprocess.Popen(
        [sys.executable, "-m", "glidepath", "watch", str(tmp_path / "log.csv")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("log.csv: step 100")  # it is watching
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_signal_that_ends_the_view_leaves_the_terminal_its_cursor(
    tmp_path: Path, number: signal.Signals
) -> None:
    log(tmp_path / "log.csv", 100)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "glidepath", "watch", str(tmp_path / "log.csv")],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "TERM": "xterm"},
    )
    os.close(theirs)
    screen = b""
    try:
        while b"step 100" not in screen:
            screen += os.read(ours, 4096)
        process.send_signal(number)
        assert process.wait(timeout=60) == (130 if number == signal.SIGINT else -number)
        with contextlib.suppress(OSError):  # the other end is closed
            while more := os.read(ours, 4096):
                screen += more
    finally:
        process.kill()
        os.close(ours)
    assert re.findall(rb"\x1b\[\?25[lh]", screen)[-1] == b"\x1b[?25h"


def test_a_reader_that_goes_away_does_not_stop_a_run(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    log(file, 100)
    process = subprocess.Popen(
        [sys.executable, "-m", "glidepath", "watch", str(file), "--every-s", "0.1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith("log.csv: step 100")
    process.stdout.close()  # such as `watch ... | head -1 || scancel 71`
    log(file, 200)
    assert (process.wait(timeout=60), process.stderr.read()) == (0, "")
    process.stderr.close()


def test_a_budget_that_the_log_plans_decides_a_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = np.arange(10.0, 2010, 10)
    rows = [
        {"step": step, "loss": loss}
        for step, loss in zip(steps.tolist(), curve(steps).tolist(), strict=True)
    ]
    state = {"global_step": 2000, "max_steps": 2100, "log_history": rows}
    file = tmp_path / "trainer_state.json"
    file.write_text(json.dumps(state) + "\n")
    code, out, _ = run(capsys, file, "--target", 1.03, "--once", "--json")
    (row,) = json.loads(out)
    assert (row["budget"], row["budget_from"]) == (2100, "planned by the log")
    assert (row["verdict"], code) == ("never", 1)
    assert row["reason"].endswith(", so little that it counts as never by now")
    state["max_steps"] = 0
    file.write_text(json.dumps(state) + "\n")
    code, out, _ = run(capsys, file, "--target", 1.03, "--once", "--json")
    (row,) = json.loads(out)
    assert (row["budget"], row["budget_from"]) == (20000, "ten times the steps seen")
    assert (row["verdict"] != "never", code) == (True, 0)


def test_a_planned_rate_of_the_line_is_used_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log.csv"
    log(file, 2000)
    line = (file, "--target", 1.02, "--budget", 4000, "--lr", "cosine:3e-4:4000:100", "--once")
    code, out, _ = run(capsys, *line, "--json")
    (row,) = json.loads(out)
    (trace,) = gp.read_traces(file)
    plan = gp.Schedule.cosine(3e-4, 4000, warmup=100)
    reach = gp.reach(trace, 1.02, budget=4000, schedule=plan)
    assert (code, row["probability"]) == (0, 1.0 - reach.prob_never)
    assert row["schedule_from"] == "--lr cosine:3e-4:4000:100"
    _, out, _ = run(capsys, *line)
    assert "budget 4 000 (--budget); learning rate --lr cosine:3e-4:4000:100" in out.replace(
        "\n", " "
    )


def test_a_log_that_begins_below_step_0_is_watched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.csv").write_text("step,loss\n-5,3\n")
    code, out, _ = run(capsys, tmp_path / "log.csv", "--target", 1, "--once", "--json")
    assert code in (0, 1)
    assert json.loads(out)[0]["observed_to"] == -5


@pytest.mark.parametrize(
    "pressed",
    [
        "class Pressed:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'glidepath.cli._app': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Pressed())\n",
        "def pressed(app): raise KeyboardInterrupt\ntyper.main.get_command = pressed\n",
    ],
    ids=["as it is imported", "as the verbs are put together"],
)
def test_ctrl_c_while_the_command_line_loads_is_no_trace_of_python(pressed: str) -> None:
    start = (
        f"import sys, typer, glidepath.cli\n{pressed}sys.exit(glidepath.cli.main(['--version']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", start], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
