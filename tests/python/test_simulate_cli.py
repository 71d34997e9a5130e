# SPDX-License-Identifier: Apache-2.0
"""The options of `glidepath simulate` are those of `gp.simulate`."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import glidepath as gp
from glidepath import cli

ROOT = Path(__file__).parents[2]
SUPERCOM = ROOT / "data" / "workloads" / "supercom"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    rows = [f"{k},{60 * k},{1 + k % 3},{500 + 997 * k % 4000}" for k in range(60)]
    path.write_text("job,submit_s,gpus,duration_s\n" + "\n".join(rows) + "\n")
    return path


def mean_jct(capsys: pytest.CaptureFixture[str], *arguments: object) -> float:
    assert cli.main(["simulate", *map(str, arguments), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    return float(row["mean_jct_s"])


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        (("--forecast-sigma", 1.5), {"forecast_sigma": 1.5}),
        (("--in-nodes", "--gpus-per-node", 2), {"in_nodes": True}),
        (("--planner", "max_wait_s=600"), {"planner": {"max_wait_s": 600.0}}),
        (
            ("--planner", "max_wait_s=600", "--round-s", 900),
            {"planner": {"max_wait_s": 600.0}, "round_s": 900.0},
        ),
        (
            ("--planner", "objective=deadline,jct", "--planner", "slack=0.1"),
            {"planner": {"objective": ["deadline", "jct"], "slack": 0.1}},
        ),
        (
            ("--planner", "objective=known_size:2,fairness:1"),
            {"planner": {"objective": {"known_size": 2.0, "fairness": 1.0}}},
        ),
        (("--planner", "user_quota=:3"), {"planner": {"user_quota": {"": 3}}}),
        (("--user-gpus", 3), {"user_gpus": 3}),
        (
            ("--node-every-h", 2, "--repair-min", 200),
            {"failures": {"node_every_s": 7200.0, "repair_s": 12000.0}},
        ),
    ],
)
def test_each_flag_is_the_keyword_of_that_name(
    capsys: pytest.CaptureFixture[str],
    trace: Path,
    flags: tuple[object, ...],
    options: dict[str, Any],
) -> None:
    per_node = 2 if "--in-nodes" in flags else None
    workload = gp.Workload.from_trace(trace, gpus=4, gpus_per_node=per_node)
    plain = gp.simulate(workload, "best_value").mean_jct_s
    expected = gp.simulate(workload, "best_value", **options).mean_jct_s
    assert mean_jct(capsys, trace, "--gpus", 4, *flags) == expected
    if "--in-nodes" not in flags:
        assert expected != plain


@pytest.mark.parametrize("stops", [True, False])
def test_every_policy_ends_jobs_at_their_targets_or_none_does(
    capsys: pytest.CaptureFixture[str], stops: bool
) -> None:
    workload = gp.generate_workload(SUPERCOM, users=4)
    policy = "fifo" if stops else "best_value"  # what it does not do by itself
    expected = gp.simulate(workload, policy, stop_at_target=stops).mean_jct_s
    assert expected != gp.simulate(workload, policy).mean_jct_s
    flag = "--stop-at-target" if stops else "--no-stop-at-target"
    assert mean_jct(capsys, SUPERCOM, "--users", 4, "-p", policy, flag) == expected


def test_jobs_share_gpus_where_a_flag_lets_them(capsys: pytest.CaptureFixture[str]) -> None:
    asked = (SUPERCOM, "--users", 8, "-p", "best_value")
    workload = gp.generate_workload(SUPERCOM, users=8)
    expected = gp.simulate(workload, "best_value", sharing="mps").mean_jct_s
    assert mean_jct(capsys, *asked, "--sharing", "mps") == expected


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--planner", "max_wait_s"), "cannot read 'max_wait_s', expected OPTION=VALUE"),
        (("--planner", "slack=0", "--planner", "slack=1"), "--planner: slack is given twice"),
        (
            ("--policy", "themis", "--planner", "objective=jct"),
            "'themis' has its own objective, leave that of planner out",
        ),
        (
            ("--planner", "patience=1"),
            "planner has no 'patience', expected one of objective, slack",
        ),
        (("--planner", "gap=x"), "--planner: PlanOptions: gap is 'x', expected a number"),
        (("--planner", "hysteresis=True"), "hysteresis is 'True', expected a number"),
        (("--planner", "objective=3"), "objective is 3.0, expected a name, a dict or a list"),
        (("--planner", "user_quota=3"), "user_quota is 3.0, expected a dict of names"),
        (
            ("--planner", "user_quota=a:1.5"),
            "expected names and whole numbers of GPUs, got 'a': 1.5",
        ),
        (("--sharing", "half"), "sharing is 'half', expected one of"),
        (("--policy", "gittins", "--no-patience"), "patience is off, 'gittins' has none here"),
        (("--repair-min", "5"), "--repair-min is for nodes that fail: say --node-every-h"),
        (("--gpus-per-node", "3"), "4 GPUs are not whole nodes of 3"),
    ],
)
def test_what_is_no_option_is_refused(
    capsys: pytest.CaptureFixture[str], trace: Path, flags: tuple[str, ...], sentence: str
) -> None:
    assert cli.main(["simulate", str(trace), "--gpus", "4", *flags]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_jobs_that_do_not_end_are_a_warning_under_many_seeds_as_under_one(
    capsys: pytest.CaptureFixture[str], trace: Path, form: tuple[str, ...]
) -> None:
    asked = ["simulate", str(trace), "--gpus", "4", "--planner", "user_quota=:2", *form]
    assert cli.main(asked) == 1
    capsys.readouterr()
    assert cli.main([*asked, "--seeds", "2", "--forecast-sigma", "0.5"]) == 1
    assert "best_value: 40 jobs did not end, of all seeds together" in capsys.readouterr().err
    assert cli.main([*asked[:4], *form, "--seeds", "2", "--forecast-sigma", "0.5"]) == 0


def test_what_a_trace_holds_and_is_not_read_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "pods.csv"
    path.write_text("job,submit_s,gpus,duration_s,gpu_milli\n1,0,1,5,460\n2,0,0,5,0\n")
    assert cli.main(["simulate", str(path), "--gpus", "4", "--json"]) == 0
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)) == 1
    assert "pods.csv: the column gpu_milli is not read" in printed.err
    assert "pods.csv: 1 job of 0 GPUs left out, the first is job 2" in printed.err
    workload = gp.Workload.from_trace(path, gpus=4)
    assert len(workload) == 1
    assert len(workload.notes) == 2


def test_names_of_a_workload_that_are_no_utf_8_are_shown_as_latin_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    texts = {
        "tiers.csv": "name,nodes,gpus_per_node\nBüro,1,2\n",
        "jobs.csv": "job,submit_s,gpus,duration_s,user,class\n1,0,1,10,Jürgen,ö\n2,0,1,10,Ann,x\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    workload = gp.read_workload(tmp_path)
    assert pickle.loads(pickle.dumps(workload)).jobs["user"].tolist() == ["Jürgen", "Ann"]
    assert workload.jobs["job_class"].tolist() == ["ö", "x"]
    run = gp.simulate(workload, "fifo")
    assert run.tiers == ("Büro",)
    assert run.jobs["user"].tolist() == ["Jürgen", "Ann"]
    for verb in (["simulate"], ["slurm", "--simulated"]):
        assert cli.main([*verb, str(tmp_path), "--json"]) == 0
        json.loads(capsys.readouterr().out)


def test_a_table_of_jobs_with_deadlines_says_how_many_keep_them(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["simulate", str(trace), "--gpus", "4", "-p", "srtf", "--forecast-sigma", "1"]
    assert cli.main(command) == 0
    assert "in time %" not in capsys.readouterr().out
    head, *rows = trace.read_text().splitlines()
    due = [f"{row},{5000 if k % 2 else ''}" for k, row in enumerate(rows)]
    trace.write_text("\n".join([f"{head},deadline_s", *due]) + "\n")
    for seeds in ((), ("--seeds", "2")):
        assert cli.main([*command, *seeds]) == 0
        assert "in time %" in capsys.readouterr().out


def test_one_policy_is_not_compared_with_itself(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["simulate", str(trace), "--gpus", "4", "--forecast-sigma", "1", "--seeds", "2"]
    for more, compared in (((), False), (("-p", "srtf"), True)):
        assert cli.main([*command, "-p", "gittins", *more]) == 0
        assert ("JCT / gittins" in capsys.readouterr().out) == compared


def test_the_plan_of_a_job_without_a_budget_names_none(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["plan", str(trace), "--gpus", "4", "--at-h", "0.5"]) == 0
    out = capsys.readouterr().out
    assert " of 0 " not in out
    assert cli.main(["plan", str(SUPERCOM), "--at-h", "1"]) == 0
    assert " of " in capsys.readouterr().out.partition("why")[2].partition("Prices")[0]
