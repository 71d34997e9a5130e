# SPDX-License-Identifier: Apache-2.0
"""The command line: answers, JSON, exit codes and sentences about bad input."""

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath import _words, cli
from glidepath._answer import when
from glidepath.cli._console import EXIT_CODES, plain
from glidepath.cli._simulate import _COMPARED as COMPARED

ROOT = Path(__file__).resolve().parents[2]
SUPERCOM = ROOT / "data" / "workloads" / "supercom"
DOCSTRINGS = ROOT / "data" / "curves" / "docstring-t5.csv.gz"


@pytest.fixture
def curves(tmp_path: Path) -> Path:
    """Two power laws and a constant, as a long CSV."""
    step = np.arange(1.0, 121.0)
    noise = 0.01 * np.random.default_rng(7).standard_normal(step.size)
    rows = ["curve,step,value"]
    for name, loss in {
        "good": 2.0 + 3.0 * step**-0.5 + noise,
        "low": 0.5 + 4.0 * step**-0.8 + noise,
        "constant": np.full(step.size, 1.5),
    }.items():
        rows += [f"{name},{t:g},{y!r}" for t, y in zip(step, loss.tolist(), strict=True)]
    path = tmp_path / "curves.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, Any]:
    code, out, err = run(capsys, *arguments, "--json")
    assert err == ""
    return code, json.loads(out)


def test_fit_prints_the_parameters_that_the_library_finds(
    curves: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (row,) = run_json(capsys, "fit", curves, "--run", "good", "--family", "pow3")
    assert code == 0
    trace = next(trace for trace in gp.read_traces(curves) if trace.name == "good")
    assert row["params"] == gp.fit(trace, family="pow3").params
    code, out, _ = run(capsys, "fit", curves, "--run", "good", "--family", "pow3")
    assert code == 0
    assert f"{row['params']['rate']:.4g}" in out


def test_a_fit_has_a_floor_and_a_reference_where_the_line_says_so(
    curves: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = next(trace for trace in gp.read_traces(curves) if trace.name == "good")
    line = ("fit", curves, "--run", "good", "--family", "pow3")
    floor = gp.fit(trace, family="pow3").params["floor"] + 0.1
    _, (row,) = run_json(capsys, *line, "--lowest-floor", floor)
    assert row["params"] == gp.fit(trace, family="pow3", lowest_floor=floor).params
    assert row["params"]["floor"] >= floor
    _, (row,) = run_json(capsys, *line, "--solver", "ceres")
    assert row["params"] == gp.fit(trace, family="pow3", solver="ceres").params
    code, _, err = run(capsys, *line, "--solver", "newton")
    assert (code, err) == (
        2, "glidepath: fit: solver is 'newton', expected closed_form or ceres\n"
    )  # fmt: skip


def test_a_warning_status_is_exit_code_one(
    curves: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, rows = run_json(capsys, "fit", curves, "--family", "pow3")
    assert [row["status"] for row in rows] == ["converged", "converged", "flat"]
    assert code == 1


def test_forecast_tells_when_the_target_is_reached(
    curves: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (row,) = run_json(
        capsys, "forecast", curves, "--run", "good", "--observed", 0.5, "--target", 2.3
    )
    assert code == 0
    assert row["observed_to"] == 60
    assert row["q10"] < 2.0 + 3.0 * 120**-0.5 < row["q90"]
    assert 0 < row["probability"] <= 1
    assert row["at"] == row["budget"] == 120
    assert row["steps_q50"] == row["reach_q50"] - 60
    code, out, _ = run(capsys, "forecast", curves, "--run", "good", "--target", 2.3)
    assert code == 0
    assert "reaches 2.3" in out


def test_forecast_says_of_one_run_when_it_is_there(
    curves: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ("forecast", curves, "--run", "good", "--observed", 0.5, "--target", 2.3)
    _, (row,) = run_json(capsys, *line)
    _, out, _ = run(capsys, *line)
    said = re.search(r"reaches 2\.3 at step (\d+) \((?:from )?(\d+).*\), (.+)", out)
    assert said
    assert int(said[1]) == round(row["reach_q50"])
    assert int(said[2]) == round(row["reach_q10"])
    assert said[3] in (f"{100 * row['probability']:.0f} %", "> 99 %")
    _, out, _ = run(capsys, *line[:-1], 2.6)
    assert re.search(r"reached 2\.6 at step \d+\n", out)
    _, out, _ = run(capsys, *line[:-1], 1.0)
    assert re.search(r"reaches 1 by step 120: (0|< 1|< 0\.1) %", out)


def test_a_target_in_another_unit_is_doubted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "percent.csv"
    log.write_text("step,val_acc\n1,10\n2,20\n3,35\n4,45\n5,50\n6,53\n")
    line = ["forecast", log, "--metric", "val_acc", "--budget", 20]
    code, _, err = run(capsys, *line, "--target", 0.6)
    assert code == 0
    assert err.splitlines()[0] == (
        "percent.csv: the first value, 10, is at the target already: is --target 0.6 in the unit of"
        " val_acc?"
    )
    _, _, err = run(capsys, *line, "--target", 60)
    assert "unit" not in err


def test_a_log_without_a_finite_value_has_no_numbers_ahead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "nan.csv"
    log.write_text("step,loss\n1,nan\n2,nan\n3,nan\n")
    code, out, _ = run(capsys, "forecast", log)
    assert code == 1
    assert re.search(r"30 +│ +– +│ +– +│ +not_finite", out)
    _, out, _ = run(capsys, "fit", log)
    assert re.search(r"pow3 +│ +– +│ +– +│ +not_finite", out)
    _, out, _ = run(capsys, "watch", log, "--once")
    assert "forecast" not in out
    page = tmp_path / "page.html"
    for line in (("forecast", log), ("watch", log, "--once"), ("report", log, "-o", page)):
        _, (row,) = run_json(capsys, *line)
        assert [row[key] for key in ("median", "q10", "q90")] == [None] * 3
        if line[0] == "forecast":
            whole = row["forecast"]
            assert set(whole["median"]) == {value for row in whole["quantiles"] for value in row}
            assert set(whole["median"]) == {None}
    assert "<span>–<" in page.read_text("utf-8")


def test_a_title_is_not_broken_at_the_width_of_its_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text("node,cpu_milli,memory_mib,gpus,gpu_model\nn,32000,64000,4,A100\n")
    columns = "job,cpu_milli,memory_mib,gpus,gpu_milli,gpu_spec"
    pods.write_text(f"{columns}\na,1000,1000,1,500,\nb,1000,1000,2,1000,\n")
    code, out, _ = run(capsys, "place", nodes, pods)
    assert code == 0
    title = "2 pods, all placed; 2.5 of 4 GPUs given out, 62.5 %"
    assert out.splitlines()[0] == title


def test_no_bar_is_made_where_there_is_no_terminal(
    curves: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before version 14.1 rich printed an empty line of a bar that was switched off."""
    monkeypatch.setattr("glidepath.cli._console.Progress", None)
    code, _, err = run(capsys, "fit", curves, "--run", "good")
    assert (code, err) == (0, "")


def ended_runs(folder: Path, count: int) -> Path:
    """Runs that level off at once after step 60, which no curve alone would foretell."""
    lines = ["curve,step,value"]
    for i in range(count):
        step = np.arange(1, 121)
        noise = 0.002 * np.random.RandomState(i).standard_normal(120)
        loss = 2.0 + 3.0 * np.minimum(step, 60.0) ** -0.5 + 0.02 * i + noise
        lines += [f"ended{i},{s},{v!r}" for s, v in zip(step.tolist(), loss.tolist(), strict=True)]
    file = folder / "ended.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_forecast_learns_from_runs_that_have_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ended_runs(tmp_path, 9)
    line = ("forecast", file, "--run", "ended4", "--observed", 0.5)
    _, (alone,) = run_json(capsys, *line)
    _, (told,) = run_json(capsys, *line, "--past", file)  # all but the run itself
    truth = float(gp.read_traces(file)[4].loss[-1])
    assert abs(told["median"] - truth) < 0.3 * abs(alone["median"] - truth)
    assert told["q90"] - told["q10"] < 0.5 * (alone["q90"] - alone["q10"])
    code, out, error = run(capsys, "forecast", file, "--past", file)
    assert (code, out) == (2, "")
    assert error == f"glidepath: --past {file}: it holds only the runs to be forecast\n"


def test_forecast_draws_a_fan_chart(
    curves: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "fan.png"
    arguments = ("forecast", curves, "--run", "low", "--observed", 0.4, "--plot", picture)
    assert run(capsys, *arguments)[0] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_plan_is_drawn_and_takes_goals_in_order(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "plan.png"
    options = ("--users", 60, "--at-h", 20, "--objective", "deadline,jct", "--plot", picture)
    code, plan = run_json(capsys, "plan", SUPERCOM, *options)
    assert code == 0
    assert any(row["state"] == "runs" for row in plan["jobs"])
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_plan_explains_every_job_of_the_moment(capsys: pytest.CaptureFixture[str]) -> None:
    code, plan = run_json(capsys, "plan", SUPERCOM, "--users", 60, "--at-h", 20)
    assert code == 0
    assert plan["value"] <= plan["bound"]
    assert set(plan["prices"]) == {"Bronze", "Silver", "Gold"}
    placed = [row for row in plan["jobs"] if row["state"] == "runs"]
    assert placed
    assert {row["tier"] for row in placed} <= set(plan["prices"])
    assert all(row["reason"] for row in plan["jobs"])
    assert all(row["gpus"] is None for row in plan["jobs"] if row["state"] != "runs")
    _, out, _ = run(capsys, "plan", SUPERCOM, "--users", 3, "--seed", 5)
    title = out.splitlines()[0]
    assert title.startswith("supercom-3-users-seed-5 at 12.0 h: 1 job on 1 GPU, 0 ended, value")


def test_simulate_compares_policies_on_the_same_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    code, rows = run_json(capsys, "simulate", SUPERCOM, "--compare")
    assert code == 0
    assert [row["policy"] for row in rows] == list(COMPARED)
    fifo, dare = rows[0], rows[COMPARED.index("dare")]
    assert dare["total_wait_s"] < fifo["total_wait_s"]
    assert dare["mean_jct_s"] < fifo["mean_jct_s"]
    assert len({sum(row["outcomes"].values()) for row in rows}) == 1


def test_simulate_with_failures_and_carbon(capsys: pytest.CaptureFixture[str]) -> None:
    faults = (
        *("--node-every-h", 12, "--job-every-h", 6, "--checkpoint-min", 15),
        *("--carbon-g-per-kwh", 400),
    )
    code, (row,) = run_json(capsys, "simulate", SUPERCOM, "-p", "fifo", *faults)
    assert code == 0
    assert row["failures"] > 0
    assert row["carbon_kg"] == pytest.approx(0.4 * row["energy_kwh"])


def test_nodes_that_nobody_uses_sleep_where_the_line_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asleep = ("--sleep-after-min", 10, "--sleep-watts", 5, "--wake-s", 120)
    _, (awake,) = run_json(capsys, "simulate", SUPERCOM, "-p", "fifo")
    _, (row,) = run_json(capsys, "simulate", SUPERCOM, "-p", "fifo", *asleep)
    sleep = {"after_s": 600.0, "watts": 5.0, "wake_s": 120.0}
    same = gp.simulate(gp.read_workload(SUPERCOM), "fifo", sleep=sleep)
    assert row["energy_kwh"] == same.energy_kwh
    assert row["energy_kwh"] < awake["energy_kwh"]


def test_metrics_that_an_option_asks_for_are_in_the_table_and_on_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"kg CO2": ("--carbon-g-per-kwh", 400), "unfair jobs %": ("--unfair-above", 1.05)}
    page = tmp_path / "page.html"
    plain = "simulate", SUPERCOM, "-p", "srtf"
    for more in ((), ("--users", 3, "--seeds", 2)):
        for options in ((), *asked.values(), sum(asked.values(), ())):
            written = () if more else ("--report", page)
            code, out, _ = run(capsys, *plain, *more, *options, *written)
            assert code == 0
            texts = out, page.read_text() if written else ""
            for heading, option in asked.items():
                shown = option[0] in options
                assert (heading in texts[0]) == shown
                assert not written or (heading in texts[1]) == shown


def test_an_energy_of_gpus_without_watts_is_no_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job,submit_s,gpus,duration_s\n0,0,1,100\n1,0,1,50\n")
    for more in ((), ("--seeds", 2, "--forecast-sigma", 1)):
        line = "simulate", jobs, "--gpus", 1, "-p", "srtf", *more
        code, rows = run_json(capsys, *line)
        assert code == 0
        assert {(row["energy_kwh"], row["carbon_kg"]) for row in rows} == {(None, None)}
        code, out, _ = run(capsys, *line)
        assert re.search("│ +– │ +0( ±0)? │", out)  # kWh, preemptions
        code, _, err = run(capsys, *line, "--carbon-g-per-kwh", 400)
        assert (code, err.count("\n")) == (2, 1)
        assert "carbon_g_per_kwh is given, no tier has idle_watts or busy_watts" in err
    assert run(capsys, *line[:4], "--report", tmp_path / "page.html")[0] == 0
    assert "<h3>kWh</h3>" not in (tmp_path / "page.html").read_text()


def test_what_an_option_takes_is_called_as_the_documents_call_it() -> None:
    import typer

    from glidepath.cli._app import app

    def taken(command: Any) -> Iterator[tuple[str, str | None]]:
        for option in command.params:
            if not getattr(option, "is_flag", False):
                yield option.name, option.metavar
        for inner in getattr(command, "commands", {}).values():
            yield from taken(inner)

    named = list(taken(typer.main.get_command(app)))
    assert not [name for name, metavar in named if metavar is None]  # then it is <str>, or <float>
    assert ("target", "VALUE") in named
    assert {metavar for name, metavar in named if name == "run"} == {"NAME"}


def test_sentences_of_help_fill_the_width_of_the_terminal() -> None:
    pytest.importorskip("typer")
    for verb in (["watch"], ["forecast"], ["bench", "starts"]):
        done = subprocess.run(
            [sys.executable, "-m", "glidepath", *verb, "--help"],
            env=os.environ
            | {"COLUMNS": "80", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=True,
        )
        text = done.stdout[: done.stdout.index("Arguments")]
        *paragraphs, _ = [part.strip() for part in re.split(r"\n\s*\n", text)]
        for paragraph in paragraphs[1:]:
            lines = [line.strip() for line in paragraph.splitlines()]
            for line, below in itertools.pairwise(lines):
                assert len(f" {line} {below.split()[0]}") > 78, paragraph


def test_a_pipe_has_no_width(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "-".join(["a_long_name"] * 20)
    log = tmp_path / f"{name}.csv"
    log.write_text("step,loss\n" + "".join(f"{i},{3 / i}\n" for i in range(1, 1201)))
    for verb in ("metrics", "fit", "forecast"):
        _, out, _ = run(capsys, verb, log)
        assert f"│ {name}.csv │" in out
        assert verb == "forecast" or "│  1 200 │" in out
    said = f"{name}.csv: step 1 200, loss 0.0025\n"
    _, out, _ = run(capsys, "watch", log, "--once", "--lr", "cosine:0.001:5000:100")
    assert out.startswith(said)
    assert "  budget 5 000 (end of --lr cosine:0.001:5000:100); learning rate --lr cosine" in out


def test_a_step_beyond_all_counts_is_written_short(
    curves: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, "forecast", curves, "--run", "good", "--budget", 1e300)
    assert "│  1e+300 │" in out
    assert "budget 1e+300 (--budget)" in out


def test_a_folder_is_called_by_its_name_also_where_one_stands_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sweep"
    folder.mkdir()
    (folder / "a.csv").write_text("step,loss\n1,3\n2,2\n")
    monkeypatch.chdir(folder)
    _, out, _ = run(capsys, "metrics", ".")
    assert out.splitlines()[0].strip() == "1 metric of sweep"


def test_hours_of_a_short_trace_have_two_digits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "short.csv"
    path.write_text("job,submit_s,gpus,duration_s\n1,0,1,100\n2,10,2,50\n")
    code, out, _ = run(capsys, "simulate", path, "--gpus", 4, "-p", "fifo")
    assert code == 0
    title, row = out.splitlines()[0], next(line for line in out.splitlines() if "fifo" in line)
    assert title.strip() == "short: 2 jobs on 4 GPUs"
    path.write_text("job,submit_s,gpus,duration_s\n1,0,1,100\n")
    line = ("simulate", path, "--gpus", 1, "-p", "fifo")
    _, one, _ = run(capsys, *line)
    assert one.splitlines()[0].strip() == "short: 1 job on 1 GPU"
    assert "│   – │" in one  # the power of no GPU is known
    _, often, _ = run(capsys, *line, "--job-every-h", 0.01, "--checkpoint-min", 5, "--seed", 2)
    head, cells = (
        [cell.strip() for cell in re.split("[┃│]", row)]
        for row in often.splitlines()
        if row.startswith(("┃", "│"))
    )
    assert int(cells[head.index("failures")]) > 0
    assert float(cells[head.index("lost GPU-hours")]) > 0
    assert "failures" not in one
    cells = [cell.strip() for cell in row.split("│")[2:8]]
    assert cells == ["0.0", "0.00", "0.021", "0.027", "0.028", "0.056"]
    path.write_text("job,submit_s,gpus,duration_s\n1,0,1,100\n")
    _, out, _ = run(capsys, "simulate", path, "--gpus", 4, "-p", "fifo")
    assert out.startswith("short: 1 job on 4 GPUs\n")


def test_simulate_reads_a_trace_of_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job,submit_s,gpus,duration_s\n0,0,1,100\n1,0,1,50\n")
    code, (row,) = run_json(capsys, "simulate", jobs, "--gpus", 1, "--policy", "fifo")
    assert code == 0
    assert row["mean_jct_s"] == 125


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("simulate", SUPERCOM, "--policy", "magic"), ("magic", "fifo")),
        (("simulate", SUPERCOM, "--gpus", 4), ("--gpus",)),
        (("simulate", "nowhere"), ("nowhere",)),
        (("fit", "nowhere.csv"), ("nowhere.csv",)),
        (("fit", "{curves}", "--family", "pow9"), ("pow9", "pow3")),
        (("fit", "{curves}", "--run", "x"), ("'x'", "'good'")),
        (("forecast", "{curves}", "--observed", 0), ("--observed is 0, expected above 0",)),
        (("forecast", "{curves}", "--budget", 5), ("--budget is 5",)),
        (("forecast", "{curves}", "--lr", "cosine:1e-3"), ("--lr cosine:1e-3: expected linear",)),
        (("forecast", "{curves}", "--lr", "step:1:2"), ("--lr step:1:2: expected linear",)),
        (("forecast", "{curves}", "--lr", "linear:a:9"), ("--lr linear:a:9: expected linear",)),
        (("forecast", "{curves}", "--lr", "linear:-1:9"), ("--lr linear:-1:9: ",)),
        (
            ("forecast", DOCSTRINGS, "--observed", 0.1, "--lr", "cosine:0.003:1000"),
            ("small-b8x1000/cosine_small_adamw-lr3e-3_s0: schedule: learning rate",),
        ),
        (("watch", "{curves}", "--lr", "constant:1:2", "--once"), ("--lr constant:1:2: exp",)),
        (("watch", "{curves}", "--lr", "logged", "--once"), ("--lr logged: expected linear",)),
        (("forecast", "{curves}", "--budget", "inf"), ("--budget is inf",)),
        (("fit", "{accuracy}"), ("say --metric",)),
        (("forecast", "{curves}", "--target", "low"), ("--target", "low", "forecast --help")),
        (("forecast", "{curves}", "--target"), ("--target' requires an argument",)),
        (("simulate", SUPERCOM, "--seeds", 0), ("--seeds is 0, expected 1 or more",)),
        (
            ("forecast", "{curves}", "--plot", "/nowhere/x.png"),
            ("--plot /nowhere/x.png: no folder /nowhere",),
        ),
        (("fit", "{curves}", "--plot", "picture"), ("--plot picture: neither .png nor .svg",)),
        (
            ("simulate", SUPERCOM, "--report", "/nowhere/x.html"),
            ("--report /nowhere/x.html: no folder /nowhere",),
        ),
        (
            ("bench", "policies", SUPERCOM, "--seed-study", "--out", "/nowhere/x.html"),
            ("--out /nowhere/x.html: no folder /nowhere",),
        ),
        (("forecast",), ("FILE", "forecast --help")),
        (
            ("forecast", "{curves}", "--plot", "{folder}"),
            ("--plot", "is a folder, expected a file"),
        ),
        (("fit", "{curves}", "--plot", "{folder}"), ("--plot", "is a folder, expected a file")),
        (("report", "{curves}", "--out", "{folder}"), ("--out", "is a folder, expected a file")),
        (("bench", "accuracy", "{curves}", "--plot", "{folder}"), ("--plot", "is a folder")),
        (("fit", ""), ("path is ''",)),
        (("fit", "http://127.0.0.1:9/"), ("127.0.0.1:9", "Connection refused")),
        (("fit", "http://127.0.0.1:port/"), ("127.0.0.1:port", "Port")),
        (("report", "{curves}", "--budget", "nan"), ("--budget is nan",)),
        (("bench", "reach", "{curves}", "--target", "nan"), ("--target is nan, expected a",)),
        (("metrics", "{curves}", "--metric", ""), ("metric is ''", "expected the name of one")),
        (("simulate", "{curves}"), ("is a CSV of jobs: say how many --gpus",)),
        (
            ("report", "{curves}", "-o", "/nowhere/r.html"),
            ("--out /nowhere/r.html: no folder /nowhere",),
        ),
        (
            ("forecast", "{curves}", "b.csv"),
            ("expected one log, or one folder of logs, not also b.csv (see",),
        ),
        (("watch", "a", "b", "c"), ("of logs, not also b c (see",)),
        (("plan", "a", "b"), ("unexpected extra argument(s) (b)",)),
        (("report", "{curves}", "-o", "r.md"), ("--out r.md: neither .html nor .htm",)),
        (("simulate", SUPERCOM, "--report", "r.pdf"), ("--report r.pdf: neither .html nor .htm",)),
        (("report", SUPERCOM, "--target", 1), ("is a workload",)),
        (("plan", SUPERCOM, "--at-h", 1e6), ("--at-h",)),
        (("plan", SUPERCOM, "--at-h", "nan"), ("--at-h is nan, expected 0 hours or more",)),
        (("plan", SUPERCOM, "--at-h", -1), ("--at-h is -1, expected 0 hours or more",)),
        (("plan", SUPERCOM, "--seed", 3), ("--seed 3: nothing is drawn", "--users")),
        (("simulate", SUPERCOM, "--seed", 3), ("--seed 3: nothing is drawn", "--forecast-sigma")),
        (("simulate", SUPERCOM, "--seeds", 2, "-p", "fifo"), ("--seeds 2: nothing is drawn",)),
        (("simulate", SUPERCOM, "-p", "fifo", "-p", "fifo"), ("--policy fifo is there twice",)),
        (("slurm", "--simulated", SUPERCOM, "--seed", 3), ("--seed 3: nothing is drawn",)),
        (("bench", "policies", SUPERCOM, "--users", 5), ("--users: only for --seed-study",)),
        (("bench", "policies", SUPERCOM, "--seeds", 5), ("--seeds: only for --seed-study",)),
        (("bench", "policies", SUPERCOM, "--out", "a.html"), ("--out: only for --seed-study",)),
        (("bench", "policies", SUPERCOM, "--seed-study", "--no-speed"), ("--no-speed: only",)),
        (("bench", "plan", "--part", "exact", "--part", "exact"), ("--part exact is there twice",)),
        (("bench", "plan", "--part", "scaling"), ("the part 'scaling' needs traces",)),
        (
            ("bench", "plan", "--part", "exact", "--instances", "9"),
            ("--instances is for --part certificates",),
        ),
        (
            ("bench", "plan", "--part", "exact", "--traces", "{folder}"),
            ("--traces is for --part scaling and sharing",),
        ),
        (("bench", "plan", "--quick", "--largest", "9"), ("--largest: --quick has sizes of its",)),
        (
            ("bench", "plan", "--part", "sharing", "--traces", "{folder}"),
            ("gavel_throughputs.csv.gz: no such table", "the part 'sharing' needs it"),
        ),
        (("simulate", SUPERCOM, "--users", 5, "--seed", -1), ("--seed",)),
        (("bench", "accuracy", "{curves}", "--constants", "/nowhere"), ("/nowhere",)),
        (("bench", "accuracy", "{curves}", "--out", "/nowhere/x.json"), ("/nowhere/x.json",)),
        (("bench", "policies", SUPERCOM, "--seed-study", "--out", "a.zzz"), ("--out a.zzz",)),
        (("frobnicate",), ("frobnicate",)),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(
    curves: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[object, ...],
    words: tuple[str, ...],
) -> None:
    accuracy = curves.with_name("accuracy.csv")
    accuracy.write_text("step,pears,plums\n1,0.1,0.2\n2,0.3,0.3\n")
    folder = curves.parent / "folder.d"
    folder.mkdir(exist_ok=True)
    files = {"{curves}": str(curves), "{accuracy}": str(accuracy), "{folder}": f"{folder}/"}
    line = [files.get(str(argument), str(argument)) for argument in arguments]
    code, out, err = run(capsys, *line)
    assert code == 2
    assert out == ""
    assert err.startswith("glidepath: ")
    assert err.count("\n") == 1
    for word in words:
        assert word in " ".join(err.split())


@pytest.mark.parametrize("row", ["0,2.0\n", "-5,3\n-4,2\n-3,1.5\n", "7,nan\n", "1,inf\n2,inf\n"])
@pytest.mark.parametrize("verb", ["fit", "forecast", "watch", "report"])
def test_a_log_of_little_is_an_answer_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str, row: str
) -> None:
    log = tmp_path / "log.csv"
    log.write_text("step,loss\n" + row)
    options: dict[str, tuple[object, ...]] = {
        "fit": (),
        "forecast": ("--target", 1),
        "watch": ("--target", 1, "--once"),
        "report": ("--target", 1, "-o", tmp_path / "page.html"),
    }
    code, out, _ = run(capsys, verb, log, *options[verb])
    few = not row.startswith("-")  # three points are enough
    assert code in ((1,) if few and verb in ("forecast", "report") else (0, 1))
    assert out


def test_a_run_that_is_past_its_budget_has_spent_it(
    curves: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("plotly")
    asked = (curves, "--run", "good", "--budget", 100, "--target")
    page = ("-o", tmp_path / "page.html")
    for target, verdict, chance, code in ((2.0, "never", 0.0, 1), (2.6, "reached", 1.0, 0)):
        watched = run_json(capsys, "watch", *asked, target, "--once")
        assert watched[0] == code
        (row,) = run_json(capsys, "report", *asked, target, *page)[1]
        for key in ("budget", "budget_from", "verdict", "reason", "probability", "stop"):
            assert row[key] == watched[1][0][key]
        assert (row["budget"], row["verdict"], row["probability"]) == (100, verdict, chance)
        assert row["at"] == 121
    code, _, err = run(capsys, "forecast", *asked, 2.0)
    said = "--budget is 100, expected a step after 120, the last seen of good"
    assert (code, err) == (2, f"glidepath: {said}\n")


@pytest.mark.parametrize("first", [1.7e18, 1e15])
def test_steps_of_a_clock_in_nanoseconds_have_a_next_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: float
) -> None:
    pytest.importorskip("plotly")
    log = tmp_path / "a.csv"
    log.write_text(
        "step,loss\n" + "".join(f"{first + 1e9 * k:.0f},{3 / k}\n" for k in range(1, 40))
    )
    last = first + 39e9
    for line in (("watch", log, "--once"), ("report", log, "-o", tmp_path / "page.html")):
        code, (row,) = run_json(capsys, *line, "--budget", 5)
        assert code == 0
        assert last < row["at"] <= last + 256  # of which doubles are multiples there


def test_a_report_prints_the_numbers_of_its_page_and_takes_workloads_too(
    curves: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("plotly")
    page = tmp_path / "page.html"
    code, (row,) = run_json(capsys, "report", curves, "--run", "good", "--target", 2.2, "-o", page)
    assert code == 0
    assert json.dumps(row["median"]) in page.read_text()
    code, rows = run_json(capsys, "report", SUPERCOM, "-o", page)
    assert code == 0
    assert [row["policy"] for row in rows] == list(COMPARED)
    assert "Who held which GPU" in page.read_text()


def test_nobody_at_the_end_of_the_pipe_is_no_error(curves: Path) -> None:
    line = f"{sys.executable} -m glidepath fit {curves} --json | head -c 1"
    done = subprocess.run(
        line,
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    assert (done.stdout, done.stderr) == ("[", "")


@pytest.mark.parametrize("line", ["place --help", "metrics LOG", "fit LOG"])
def test_what_an_encoding_lacks_is_printed_as_its_escape(tmp_path: Path, line: str) -> None:
    log = tmp_path / "\u6f22.csv"
    log.write_text("\n".join(["step,loss", *(f"{n},{2 + n**-0.5}" for n in range(1, 60))]))
    command = [sys.executable, "-m", "glidepath", *line.replace("LOG", str(log)).split()]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (b"\\u6f22" in done.stdout) == ("LOG" in line)
    assert done.stdout.isascii()


@pytest.mark.parametrize(
    ("streams", "log", "code"),
    [
        (">&-", "", 0),
        (">&- 2>&-", "", 0),
        ("<&- >&- 2>&-", "", 0),
        (">&- 2>&-", ".none", 2),
        ("2>/dev/full", ".none", 2),
        (">/dev/full 2>/dev/null", "", 2),
    ],
)
def test_streams_that_are_closed_or_full_change_no_other_exit_code(
    curves: Path, streams: str, log: str, code: int
) -> None:
    command = f"{sys.executable} -m glidepath metrics {curves}{log} --json {streams}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run(command, shell=True, env=environment, check=False).returncode == code


def test_an_answer_stands_where_stderr_cannot_take_the_hint_beside_it(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["step,loss", *(f"{n},{2 + n**-0.5}" for n in range(1, 60))]))
    command = f"{sys.executable} -m glidepath forecast {log} --target 2.1 2>/dev/full"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        command, shell=True, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 0
    assert "reaches 2.1" in done.stdout


def test_a_malformed_row_is_named_by_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("curve,step,value\na,1,2.0\na,two,1.9\n")
    code, _, err = run(capsys, "fit", path)
    assert code == 2
    assert f"{path}:3" in err.replace("\n", "")


def test_the_module_runs_as_a_program_and_keeps_stdout_pure(curves: Path) -> None:
    command = [sys.executable, "-m", "glidepath", "fit", str(curves), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert len(json.loads(done.stdout)) == 3
    assert done.stderr == ""


@pytest.mark.parametrize("verb", ["fit", "forecast", "plan", "place", "simulate"])
def test_every_verb_shows_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, verb, "--help")
    assert code == 0
    assert f"glidepath {verb}" in out


def test_seeds_give_means_over_workloads_drawn_anew(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("simulate", SUPERCOM, "--users", 15, "--seeds", 3, "-p", "fifo", "-p", "dare")
    code, rows = run_json(capsys, *arguments)
    assert code == 0
    assert len({row["workload"] for row in rows}) == 3
    fifo = [row["mean_jct_s"] for row in rows if row["policy"] == "fifo"]
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert f"{np.mean(fifo) / 3600:.2f} ±" in out


def test_a_planned_schedule_changes_the_forecast_and_needs_a_learning_rate(
    curves: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ROOT / "data" / "curves" / "docstring-t5.csv.gz"
    arguments = ("forecast", file, "--run", "small-b8x1000/wsd_small_adamw-lr3e-3_s6")
    _, (blind,) = run_json(capsys, *arguments, "--observed", 0.5)
    _, (aware,) = run_json(capsys, *arguments, "--observed", 0.5, "--lr", "logged")
    assert aware["median"] < blind["median"]  # the rate falls to zero over the last fifth
    code, _, err = run(capsys, "forecast", curves, "--observed", 0.5, "--lr", "logged")
    assert code == 2
    assert "no learning rate" in err


def test_the_metric_that_is_listed_can_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    file = ROOT / "data" / "curves" / "docstring-t5.csv.gz"
    run_ = "base-b8x900/cosine_base_adamw-lr2e-3_s0"
    _, listed = run_json(capsys, "metrics", file)
    (named,) = {row["metric"] for row in listed if row["run"] == run_ and row["read"]}
    assert named == "training loss"
    given = ("fit", file, "--run", run_, "--family", "pow3")
    assert run_json(capsys, *given, "--metric", named) == run_json(capsys, *given)
    code, _, err = run(capsys, *given, "--metric", "loss of training")
    assert (code, err.count("no column 'loss of training'")) == (2, 1)


def test_bench_policies_studies_loads_and_needs_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("bench", "policies", SUPERCOM, "--seed-study", "--users", 10, "--seeds", 2)
    code, rows = run_json(capsys, *arguments, "--out", tmp_path / "study.html")
    assert code == 0
    assert {row["arm"] for row in rows} == {"overfitting", "interrupted", "uninterrupted"}
    dare = next(row for row in rows if (row["arm"], row["policy"]) == ("overfitting", "dare"))
    assert dare["mean_jct_s_ratio"] < 1
    for folder in (tmp_path, tmp_path / "absent"):
        code, _, err = run(capsys, "bench", "policies", folder)
        assert code == 2
        assert str(folder) in err


def test_what_the_reader_repaired_is_printed_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    steps = [*range(1, 31), *range(21, 41)]  # resumed from a checkpoint at step 20
    log.write_text("".join(f'{{"step": {t}, "loss": {2 + 3 / t**0.5}}}\n' for t in steps))
    code, out, err = run(capsys, "forecast", log, "--json")
    assert code == 0
    (row,) = json.loads(out)
    assert row["observed_to"] == 40
    assert "21" in err
    assert "log.jsonl" in err


VERBS = (
    *("fit", "forecast", "watch", "plan", "simulate", "report"),
    *("bench accuracy", "bench compare", "bench fit", "bench plan", "bench policies"),
    "bench reach",
    *("slurm status", "slurm plan", "slurm run", "slurm why"),
)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_an_example_and_says_what_it_does(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, *verb.split(), "--help")
    assert code == 0
    assert f"Example: glidepath {verb} " in " ".join(out.split()) + " "


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("glidepath f", ["fit", "forecast"]),
        ("glidepath fit --family pow", ["pow2", "pow3", "pow4", "powexp"]),
        ("glidepath simulate -p best", ["best_value"]),
        ("glidepath watch {log} --run ", ["good", "low", "constant"]),
        ("glidepath fit {log}.none --run ", []),
    ],
)
def test_the_shell_completes(curves: Path, line: str, expected: list[str]) -> None:
    line = line.format(log=curves)
    done = subprocess.run(
        [sys.executable, "-m", "glidepath"],
        capture_output=True,
        text=True,
        check=True,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "python"),
            "_GLIDEPATH_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
        },
    )
    assert done.stdout.split() == expected


KEYS = {"run", "metric", "status", "observed_to", "loss"}
AHEAD = {"at", "median", "q10", "q90"}
HORIZON = {"budget", "budget_from", "schedule_from"}
REACH = {"target", "reached_by", "probability"} | {
    f"{name}_q{p}" for name in ("reach", "steps") for p in (10, 50, 90)
}


@pytest.mark.parametrize(
    ("verb", "options", "keys"),
    [
        ("fit", (), KEYS),
        ("forecast", (), KEYS | AHEAD | HORIZON),
        ("forecast", ("--target", 2.2), KEYS | AHEAD | REACH | HORIZON),
        ("report", (), KEYS | AHEAD | HORIZON),
        ("report", ("--target", 2.2), KEYS | AHEAD | REACH | HORIZON),
        ("watch", ("--once",), KEYS | AHEAD | HORIZON),
        (
            "watch",
            ("--target", 2.2, "--once"),
            KEYS | AHEAD | REACH | HORIZON | {"verdict", "reason"},
        ),
    ],
)
def test_the_same_thing_has_the_same_key_in_every_verb(
    curves: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    verb: str,
    options: tuple[object, ...],
    keys: set[str],
) -> None:
    page = ("-o", tmp_path / "page.html") if verb == "report" else ()
    _, (row,) = run_json(capsys, verb, curves, "--run", "good", *options, *page)
    assert keys <= set(row)
    assert (row["run"], row["metric"], row["observed_to"]) == ("good", "value", 120)


def test_json_has_one_way_to_write_what_is_not_finite() -> None:
    assert plain({"a": np.array([np.inf, -np.inf, np.nan]), "b": (1.5, np.float64(2))}) == {
        "a": ["inf", "-inf", None],
        "b": [1.5, 2.0],
    }


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ((np.inf, np.inf, np.inf), "very likely never"),
        ((21451.2, np.inf, np.inf), "probably never; earliest (10 %) at step 21 500"),
        ((310, 420, np.inf), "at step 420 (from 310, or never)"),
        ((310, 420, 1234567), "at step 420 (310 to 1 230 000)"),
        ((50, 50, 50), "at step 50"),
    ],
)
def test_when_a_target_is_reached_is_said_in_words(
    steps: tuple[float, float, float], words: str
) -> None:
    keys = dict(zip(("reach_q10", "reach_q50", "reach_q90"), steps, strict=True))
    assert when({**keys, "probability": 0.08}) == words


def test_a_target_without_any_probability_is_reached_never() -> None:
    keys = dict.fromkeys(("reach_q10", "reach_q50", "reach_q90"), np.inf)
    assert when({**keys, "probability": 0.0}) == "never"


@pytest.mark.parametrize(
    ("step", "words"),
    [(0, "0"), (999, "999"), (-1234, "-1 234"), (1.5e6, "1 500 000"), (1234567.5, "1234567.5")],
)
def test_a_step_keeps_its_digits_in_groups_of_three(step: float, words: str) -> None:
    assert _words.count(step) == _words.count(np.float64(step)) == words


def test_a_step_that_is_not_finite_has_a_word() -> None:
    assert (_words.count(np.inf), _words.count(np.nan)) == ("inf", "nan")


def test_one_result_is_not_several(curves: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "forecast", curves, "--run", "good")
    assert "1 forecast of curves.csv" in out
    _, out, _ = run(capsys, "fit", curves)
    assert "3 fits of curves.csv" in out


def test_a_fault_is_not_taken_for_a_reason_to_stop_a_run(
    curves: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(*_args: Any, **_options: Any) -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(gp, "Follow", faulty)
    code, out, err = run(capsys, "watch", curves, "--once")
    assert (code, out) == (70, "")
    assert err.endswith("ZeroDivisionError: of ours\n")


def test_help_shows_the_table_of_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--help")
    text = " ".join(out.replace("│", " ").split())
    for code, meaning in EXIT_CODES.items():
        assert f"{code} {meaning}" in text


def test_every_verb_gives_one_probability_by_one_budget(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("plotly")
    log = shared / "data" / "logs" / "hf-trainer-state" / "mt5-summarize.trainer_state.json"
    lines = ("forecast",), ("watch", "--once"), ("report", "-o", tmp_path / "page.html")
    said = set()
    for verb, *options in lines:
        _, (row,) = run_json(capsys, verb, log, "--target", 2.1, *options)
        said.add((row["probability"], row["budget"], row["budget_from"], row["schedule_from"]))
    ((chance, budget, source, rates),) = said
    assert 0.0005 < chance < 0.1  # the curve is a tenth above the target and nearly at its end
    assert (budget, source) == (9411, "planned by the log")
    assert rates == "linear, inferred from the logged rates"
    _, out, _ = run(capsys, "forecast", log, "--target", 2.1)
    assert "budget 9 411 (planned by the log); learning rate linear, inferred" in out


def test_the_budget_without_a_plan_is_one_rule(
    curves: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("plotly")
    line = (curves, "--run", "good")
    page = ("-o", tmp_path / "page.html")
    for verb, *options in (("forecast",), ("watch", "--once"), ("report", *page)):
        _, (row,) = run_json(capsys, verb, *line, *options)
        assert (row["budget"], row["budget_from"]) == (1200, "ten times the steps seen")
        assert row["at"] == 1200
        _, (row,) = run_json(capsys, verb, *line, *options, "--budget", 500)
        assert (row["budget"], row["budget_from"]) == (500, "--budget")
        rate = "cosine:1e-3:1000"
        _, (row,) = run_json(capsys, verb, *line, *options, "--lr", rate)
        assert (row["budget"], row["budget_from"]) == (1000, f"end of --lr {rate}")
        assert (row["at"], row["schedule_from"]) == (1000, f"--lr {rate}")
        _, (row,) = run_json(capsys, verb, *line, *options, "--lr", "cosine:1e-3:100")
        assert (row["budget"], row["budget_from"]) == (1200, "ten times the steps seen")
    _, (row,) = run_json(capsys, "forecast", *line, "--observed", 0.5)
    assert (row["budget"], row["budget_from"]) == (120, "last step of the file")
    for steps, end in ((100, 120), (300, 300)):
        some = *line, "--observed", 0.5, "--lr", f"linear:1e-3:{steps}"
        _, (row,) = run_json(capsys, "forecast", *some)
        assert row["budget"] == end


def test_past_runs_and_rates_give_a_page_what_they_give_a_forecast(
    curves: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("plotly")
    past = tmp_path / "past.csv"
    rows = [f"{k},{t},{1 + k + 2 * t**-0.5}" for k in range(4) for t in range(1, 400)]
    past.write_text("\n".join(["curve,step,value", *rows]))
    line = curves, "--run", "good", "--target", 1.2, "--past", past, "--lr", "linear:1e-3:900"
    _, (seen,) = run_json(capsys, "forecast", *line)
    _, (shown,) = run_json(capsys, "report", *line, "-o", tmp_path / "page.html")
    assert {key: shown[key] for key in seen if key != "forecast"} == {
        key: value for key, value in seen.items() if key != "forecast"
    }
    assert shown["past_runs"] == 4
    _, (watched,) = run_json(capsys, "watch", *line, "--once")
    assert (watched["verdict"], watched["reason"]) == (shown["verdict"], shown["reason"])
    code, _, err = run(capsys, "report", SUPERCOM, "--lr", "linear:1e-3:900")
    assert code == 2
    assert "is a workload" in err


def test_verbs_agree_on_a_run_of_few_points(
    curves: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("plotly")
    log = tmp_path / "new.csv"
    log.write_text("step,loss\n10,3\n20,2.5\n30,2.4\n")
    line = (log, "--target", 2.2, "--budget", 1000)
    page = ("-o", tmp_path / "page.html")
    said = set()
    for verb, *options in (("forecast",), ("watch", "--once"), ("report", *page)):
        _, (row,) = run_json(capsys, verb, *line, *options)
        assert row.get("verdict", "unknown") == "unknown"
        said.add(row["probability"])
    (chance,) = said
    assert 0 < chance < 1


def test_an_answer_says_what_was_used_and_what_else_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ended_runs(tmp_path, 9)
    line = ("forecast", file, "--run", "ended4", "--observed", 0.5)
    _, out, err = run(capsys, *line)
    assert "budget 120 (last step of the file)" in out
    assert err.startswith("See also: --target VALUE for when a value is reached; --budget STEP")
    assert "--past FOLDER" in err
    _, out, err = run(capsys, *line, "--past", file)
    assert err.startswith("--past: 8 of 9 runs used, 1 left out")
    assert "--past FOLDER" not in err
    _, out, err = run(capsys, *line, "--past", file, "--json")
    assert json.loads(out)[0]["past_runs"] == 8
    assert "See also" not in err
    _, out, _ = run(capsys, "watch", file, "--run", "ended4", "--past", file, "--once")
    assert "learned from 8 past runs" in out


def own_jobs(folder: Path, curves: Path) -> tuple[Path, Path]:
    tiers, jobs = folder / "tiers.csv", folder / "jobs.csv"
    tiers.write_text("name,nodes,gpus_per_node\nslow,1,2\nfast,1,1\n")
    text = [
        "job,log,run,target,budget,gpus,steps_per_s_slow,steps_per_s_fast,priority,weight",
        f"a,{curves},good,2.2,2000,1,1,4,",
        f"b,{curves},good,2.25,2000,1,1,2,",
        f"there,{curves},good,2.6,2000,1,1,2,",
        f"hopeless,{curves},good,0.5,250,1,1,2,",
        f"early,{curves},good,0.5,5000,1,1,1,",
        f"wide,{curves},good,2.2,2000,3,1,2,",
        f"spent,{curves},good,2.2,100,1,1,2,",
        f"arrived,{curves},good,2.6,100,1,1,2,",
        f"light,{curves},good,2.2,2000,1,1,2,,-1",
        f"backwards,{curves},good,2.2,2000,1,1,-3,",
        "absent,nowhere.csv,good,2.2,2000,1,1,2,",
        f"text,{curves},good,low,2000,1,1,2,",
        f"clockless,{curves},good,2.2,2000,1,,,",
        f"bankrupt,{curves},good,2.2,-5,1,1,2,",
        f"broke,{curves},good,2.2,0,1,1,2,",
        f"half,{curves},good,2.2,2000,1.5,1,2,",
        f"none,{curves},good,2.2,2000,0,1,2,",
        f"many,{curves},good,2.2,2000,1e300,1,2,",
        f"urgent,{curves},good,2.2,2000,1,1,2,1.7",
        f"first,{curves},good,2.2,2000,1,1,2,{2**40}",
    ]
    rows = (row + "," * (text[0].count(",") - row.count(",")) for row in text)
    jobs.write_text("\n".join(rows) + "\n")
    return jobs, tiers


def test_own_jobs_are_planned_from_their_logs_and_a_bad_one_fails_no_other(
    curves: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs, tiers = own_jobs(tmp_path, curves)
    code, out, _ = run(capsys, "plan", jobs, "--tiers", tiers, "--json")
    rows = {row["job"]: row for row in json.loads(out)["jobs"]}
    assert code == 1  # some jobs could not be planned
    place = {name: (row["state"], row["gpus"], row["tier"]) for name, row in rows.items()}
    assert place["b"] == ("runs", 1, "fast")  # its target is nearer
    assert place["a"] == ("runs", 1, "slow")
    assert (rows["a"]["run"], rows["a"]["observed_to"]) == ("good", 120)
    assert rows["a"]["budget_from"] == "of the file of jobs"
    assert set(rows["a"]) >= REACH | HORIZON
    assert (rows["a"]["target"], rows["a"]["budget"]) == (2.2, 2000)
    assert rows["there"]["probability"] == 1.0 > rows["hopeless"]["probability"]
    assert rows["there"]["state"] == rows["hopeless"]["state"] == "ends"
    for name, verdict in (("spent", "never"), ("arrived", "reached")):  # past its budget
        assert (rows[name]["state"], rows[name]["verdict"]) == ("ends", verdict)
    assert (rows["spent"]["probability"], rows["arrived"]["probability"]) == (0.0, 1.0)
    assert rows["spent"]["reason"].startswith("ends: the budget of 100 steps is spent")
    # No forecast of 120 steps of 5000 ends a job: `Watch` says never later.
    assert (rows["early"]["verdict"], rows["early"]["state"]) == ("unknown", "runs")
    assert rows["hopeless"]["reason"].startswith("ends: reaches 0.5 by step 250 with probability")
    reasons = {
        "wide": "no tier has 3 GPUs",
        "light": "it has weight -1",
        "backwards": "it runs at -3 steps per second",
        "absent": "nowhere.csv",
        "text": "its target is 'low', expected a finite number",
        "clockless": "the CSV of jobs no column steps_per_s_",
        "bankrupt": "its budget is '-5', expected above 0",
        "broke": "its budget is '0', expected above 0",
        "half": "its gpus is '1.5', expected a whole number from 1 to 2147483647",
        "none": "its gpus is '0', expected a whole number from 1 to 2147483647",
        "many": "its gpus is '1e300', expected a whole number from 1 to 2147483647",
        "urgent": "its priority is '1.7', expected a whole number from -2147483647 to 2147483647",
        "first": "its priority is '1099511627776', expected a whole number from -2147483647",
    }
    for name, words in reasons.items():
        assert (rows[name]["state"], rows[name]["gpus"]) == ("refused", None)
        assert {"user", "starts_q10", "starts_q50", "starts_q90"} <= rows[name].keys()
        assert words in rows[name]["reason"]
    code, out, _ = run(capsys, "plan", jobs, "--tiers", tiers)
    assert "reaches its target" in out
    assert "budget2000(ofthefileofjobs)" in "".join(c for c in out if c.isalnum() or c in "()")
    code, _, err = run(capsys, "plan", jobs)
    assert (code, err.count("\n")) == (2, 1)
    assert "--tiers FILE" in err
    jobs.write_text("job,log,target,gpu\n1,x,2,1\n")
    code, _, err = run(capsys, "plan", jobs, "--tiers", tiers)
    assert code == 2
    assert "column 'gpu' is none of" in err


def test_the_tiers_of_a_plan_have_the_prices_of_their_file_and_unread_columns_are_named(
    curves: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiers, jobs = tmp_path / "tiers.csv", tmp_path / "jobs.csv"
    head = "job,log,run,target,budget,steps_per_s_cheap,steps_per_s_dear"
    jobs.write_text(f"{head}\na,{curves},good,2.2,2000,1.0,1.01\n")
    line = ("plan", jobs, "--tiers", tiers, "--json", "--objective")
    for price, tier in (("50", "cheap"), ("0.05", "dear")):
        tiers.write_text(f"name,nodes,price_per_gpu_hour\ndear,1,{price}\ncheap,1,0.1\n")
        _, out, err = run(capsys, *line, "cost")
        assert json.loads(out)["jobs"][0]["tier"] == tier
        assert err == ""
    tiers.write_text("name,nodes,memory_gbb\ndear,1,40\ncheap,1,40\n")
    _, _, err = run(capsys, *line, "jct")
    assert err == "tiers.csv: the column memory_gbb is not read\n"
    tiers.write_text("name,nodes\n\ndear,1\ncheap,x\n")
    code, _, err = run(capsys, *line, "jct")
    assert (code, err) == (2, f"glidepath: {tiers}:4: nodes 'x' is not a whole number\n")
    tiers.write_text("name,nodes\ndear,1\n")
    jobs.write_text(f"{head.removesuffix(',steps_per_s_cheap,steps_per_s_dear')}\na,x,y,1,2,3\n")
    code, _, err = run(capsys, *line, "jct")
    assert (code, err) == (2, f"glidepath: {jobs}:2: 6 fields where the header has 5\n")


def test_a_plan_weighs_objectives_as_a_simulation_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ("plan", SUPERCOM, "--users", 12, "--at-h", 9, "--json", "--objective")
    values = {}
    for text in ("jct", "jct:1", "energy", "jct:1,energy:3"):
        code, document, err = run(capsys, *line, text)
        assert (code, err) == (0, "")
        values[text] = json.loads(document)["value"]
    assert values["jct:1"] == values["jct"]
    assert values["jct:1,energy:3"] not in (values["jct"], values["energy"])
    code, _, err = run(capsys, *line, "jct:1,energy")
    assert (code, err.count("objective is 'jct:1', expected one of jct, known_size")) == (2, 1)


def test_a_plan_keeps_to_the_limits_of_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = ("plan", SUPERCOM, "--users", 60, "--at-h", 20, "--json")
    _, free, _ = run(capsys, *line)
    code, document, err = run(capsys, *line, "--planner", "power_cap_w=2000")
    assert (code, err) == (0, "")
    capped = json.loads(document)
    assert capped["value"] < json.loads(free)["value"]
    assert all(row["starts_q10"] is None for row in capped["jobs"]), "jct alone is played forward"
    asked = ("--objective", "jct,energy", "--planner")
    code, _, _ = run(capsys, *line, "--in-nodes", *asked, "slack=0.1")
    assert code == 0
    for given, said in (
        ("slack=0.1", "plan: slack is 0.1, expected 0 without objectives in order"),
        ("in_nodes=1", "--planner: in_nodes, say --in-nodes in its place"),
        ("objective=jct", "--planner: objective, say --objective in its place"),
        ("group_quota=a:1", "--planner: group_quota, these jobs have no groups"),
        ("power_cap_w=-1", "plan: power_cap_w is -1, expected 0 or more"),
        ("max_wait", "--planner: cannot read 'max_wait', expected OPTION=VALUE"),
    ):
        code, _, err = run(capsys, *line, "--planner", given)
        assert (code, err) == (2, f"glidepath: {said}\n")
    code, _, err = run(capsys, *line, "--planner", "speed=1")
    assert (code, err.count("glidepath: --planner has no 'speed', expected one of")) == (2, 1)


def test_the_hardware_log_of_a_job_says_on_which_gpus_it_fits(
    curves: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiers, jobs = tmp_path / "tiers.csv", tmp_path / "jobs.csv"
    tiers.write_text("name,nodes,memory_gb\nsmall,1,24\nlarge,1,48\n")
    smi = "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W]\n"
    smi += "".join(f"2024/05/01 10:00:{s:02d}.000, 0, 90 %, 32000 MiB, 250 W\n" for s in range(30))
    (tmp_path / "smi.csv").write_text(smi)
    row = f"{curves},good,2.2,2000,4,2"  # twice as fast where it does not fit
    head = "job,log,run,target,budget,steps_per_s_small,steps_per_s_large"
    for column, tier in (("", "small"), (",hardware", "large")):
        jobs.write_text(f"{head}{column}\na,{row}{',smi.csv' if column else ''}\n")
        code, out, _ = run(capsys, "plan", jobs, "--tiers", tiers, "--json")
        (planned,) = json.loads(out)["jobs"]
        assert (code, planned["state"], planned["tier"]) == (0, "runs", tier)
    jobs.write_text(f"{head},hardware\na,{row},nowhere.csv\n")
    _, out, _ = run(capsys, "plan", jobs, "--tiers", tiers, "--json")
    assert "nowhere.csv" in json.loads(out)["jobs"][0]["reason"]


def test_fit_leaves_out_the_points_before_from_step_and_warns_of_a_poor_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = np.arange(1.0, 201.0)
    loss = 1.5 + 3 * step**-0.4 + 2.0 * (step < 120)
    log = tmp_path / "rough.csv"
    log.write_text("step,loss\n" + "".join(f"{s},{y}\n" for s, y in zip(step, loss, strict=True)))
    code, (row,) = run_json(capsys, "fit", log, "--family", "pow3")
    assert (code, row["status"]) == (1, "poor")
    code, (row,) = run_json(capsys, "fit", log, "--family", "pow3", "--from-step", 120)
    assert (code, row["status"], row["points"]) == (0, "converged", 81)


def test_metrics_lists_what_a_log_holds(curves: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, rows = run_json(capsys, "metrics", curves)
    assert code == 0
    assert [(row["run"], row["points"], row["read"]) for row in rows] == [
        ("good", 120, True),
        ("low", 120, True),
        ("constant", 120, True),
    ]
    code, out, _ = run(capsys, "metrics", curves)
    assert code == 0
    assert "3 metrics of curves.csv" in out


OWN_LINES = r"^(?P<step>\d+) (?P<value>\S+)$"


def test_the_verbs_that_read_a_log_take_a_pattern(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.log"
    log.write_text("".join(f"{i} {1 + 3 * i**-0.5}\n" for i in range(1, 41)))
    assert run(capsys, "fit", log)[0] == 2
    for verb in ("fit", "forecast", "watch", "metrics"):
        once = ["--once"] if verb == "watch" else []
        code, found = run_json(capsys, verb, log, "--pattern", OWN_LINES, *once)
        assert code in (0, 1), verb
        assert found[0]["points"] == 40 if verb != "forecast" else found[0]["observed_to"] == 40
    page = tmp_path / "page.html"
    assert run(capsys, "report", log, "--pattern", OWN_LINES, "-o", page)[0] == 0
    code, _, err = run(capsys, "fit", log, "--pattern", "(")
    assert code == 2
    assert "pattern is '('" in err


def test_a_pattern_is_also_that_of_past_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished = tmp_path / "finished"
    finished.mkdir()
    for index in range(4):
        lines = [f"{i} {1 + 0.1 * index + 3 * i**-0.5}\n" for i in range(1, 81)]
        (finished / f"{index}.log").write_text("".join(lines))
    log = tmp_path / "run.log"
    log.write_text("".join(f"{i} {1 + 3 * i**-0.4}\n" for i in range(1, 21)))
    known = ("--pattern", OWN_LINES, "--past", finished)
    for verb, *more in (("forecast",), ("watch", "--once"), ("report", "-o", tmp_path / "p.html")):
        code, (row,) = run_json(capsys, verb, log, *more, *known)
        assert (code, row["past_runs"]) == (0, 4), verb


def test_metrics_lists_one_metric_where_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "log.csv"
    table.write_text("step,loss,acc\n" + "".join(f"{i},{9 - i},{i}\n" for i in range(5)))
    (row,) = run_json(capsys, "metrics", table, "--metric", "acc")[1]
    assert (row["metric"], row["points"], row["read"]) == ("acc", 5, True)
    code, _, err = run(capsys, "metrics", table, "--metric", "none")
    assert code == 2
    assert "no metric 'none'" in err


def test_logs_of_a_folder_that_are_not_read_are_said(
    curves: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (curves.parent / "strange.log").write_text("hello\n" * 9)
    (curves.parent / "notes.md").write_text("hello\n")
    (curves.parent / "begun.csv").write_text("")
    code, out, err = run(capsys, "fit", curves.parent)
    assert code in (0, 1)
    assert "3 fits" in out
    assert f"passed over: {curves.parent / 'strange.log'}: a log of no known format" in err
    assert f"passed over: {curves.parent / 'begun.csv'}: the file is empty" in err
    assert "notes.md" not in err
    options = ("-m", "last", "--cutoff", "0.5")
    code, out, err = run(capsys, "bench", "accuracy", curves.parent, *options)
    assert code == 0
    assert "2 logs not read" in out
    assert "strange.log" in err
    assert "notes.md" not in err


def test_tables_of_accuracy_have_headings_of_plain_words(
    curves: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("bench", "accuracy", curves.parent, "-m", "glidepath", "--cutoff", "0.4")
    code, out, _ = run(capsys, *command)
    assert code == 0
    assert "mean over groups, by share seen" in out
    assert "Decisions and times to target" in out
    headings = [line for line in out.splitlines() if line.startswith("┃")]
    assert not re.findall(r"\w*_\w*|\bmae\b|cov80|\bcrps\b", " ".join(headings))
    _, page = run_json(capsys, *command)
    assert {"n_groups", "cov80", "mae"} <= page["groups"][0].keys()
    assert {"reach_n", "reach_inside", "wrong"} <= page["decisions"][0].keys()


def test_a_report_with_hardware_of_a_log_without_times_wants_the_seconds_of_a_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, power = tmp_path / "log.csv", tmp_path / "power.csv"
    log.write_text("step,loss\n" + "".join(f"{i},{1 + 1 / i}\n" for i in range(1, 41)))
    power.write_text("time_s,gpu,power_w\n" + "".join(f"{i},0,100\n" for i in range(100)))
    given = ("report", log, "--hardware", power, "-o", tmp_path / "page.html")
    code, _, err = run(capsys, *given)
    assert (code, "--step-seconds" in err) == (2, True)
    code, (row,) = run_json(capsys, *given, "--step-seconds", "2")
    assert code == 0
    assert row["step_joules"] == pytest.approx(200.0)
    for wrong in (("--step-seconds", "-1"), ("--step-seconds", "nan")):
        assert run(capsys, *given, *wrong)[0] == 2
    assert run(capsys, "report", log, "--step-seconds", "2")[0] == 2


@pytest.mark.parametrize(
    "line", ["forecast FILE --json", "fit FILE", "metrics FILE", "watch FILE --once", "--version"]
)
def test_a_reader_that_goes_away_is_no_warning(curves: Path, line: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "glidepath", *line.replace("FILE", str(curves)).split()],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        check=False,
    )
    os.close(writer)
    assert done.returncode == 0
    assert "Error" not in done.stderr
