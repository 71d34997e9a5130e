# SPDX-License-Identifier: Apache-2.0
"""The learned objective and policy: what is built in, its files, threads and the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath.cli import main

ROOT = Path(__file__).parents[2]
HARD = {
    "forecast_sigma": 0.7,
    "restart_s": 60.0,
    "failures": {"job_every_s": 20000.0, "checkpoint_s": 600.0},
}


def draw(seed: int, jobs: int = 60) -> gp.Workload:
    rng = np.random.default_rng(seed)
    return gp.Workload(
        [gp.Tier("fast", 6, 1), gp.Tier("slow", 8, 1)],
        {
            "job": np.arange(jobs),
            "submit_s": np.floor(np.cumsum(rng.exponential(500, jobs))),
            "gpus": 2 ** rng.integers(0, 3, jobs),
            "duration_s": np.ceil(np.exp(rng.normal(7.5, 1.2, jobs))),
            "steps_per_s": np.stack([np.ones(jobs), rng.uniform(0.3, 0.8, jobs)], axis=1),
        },
    )


def test_what_is_built_in_is_what_was_trained() -> None:
    trained = ROOT / "bench" / "train_policy" / "trained" / "learned.txt"
    assert gp.read_learned_values(trained).tolist() == gp.learned_values().tolist()


def test_any_number_of_threads_gives_the_same_bytes() -> None:
    policies = ["best_value", "learned"]
    one, many = (gp.compare(draw, policies, seeds=3, threads=n, **HARD) for n in (1, 4))
    assert repr(one.rows) == repr(many.rows)  # NaN where no carbon is known
    assert one.ratio("mean_jct_s", to="best_value")["learned"][0] != 1


def test_values_come_as_numbers_or_from_a_file(tmp_path: Path) -> None:
    values = gp.learned_values()
    values[6] = 0.5  # of a job that has these GPUs
    file = tmp_path / "mine.txt"
    gp.write_learned_values(values, file)
    by_file, by_values, built_in = (
        gp.simulate(draw(1), "learned", planner=planner, **HARD)
        for planner in ({"learned": str(file)}, {"learned": values}, None)
    )
    assert by_file.spans["end_s"].tolist() == by_values.spans["end_s"].tolist()
    assert by_file.spans["end_s"].tolist() != built_in.spans["end_s"].tolist()
    file.write_text(file.read_text().replace("0.5", "0.6", 1))
    with pytest.raises(gp.IoError, match=r"mine.txt: the checksum is not that of the values"):
        gp.simulate(draw(1), "learned", planner={"learned": file}, **HARD)


def test_no_values_are_no_file(tmp_path: Path) -> None:
    with pytest.raises(gp.InputError, match=r"^write_learned_values: values is empty, expected 66"):
        gp.write_learned_values([], tmp_path / "mine.txt")
    assert not list(tmp_path.iterdir())


def test_where_it_does_not_hold_the_plan_is_that_of_jct_and_says_so() -> None:
    job = gp.Job(id=7, options=[gp.Option(tier=0, gpus=1, steps_per_s=1.0)])
    now = gp.Snapshot(now_s=0.0, tiers=[gp.Tier("a", 1, 1)], jobs=[job], running=[])
    assert gp.plan(now, objective="learned").fallback == (
        "job 7 has no forecast and no budget is left"
    )
    assert gp.plan(now, objective="jct").fallback == ""


def test_a_trace_is_repeated_over_forecast_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{i},{i * 100},1,{500 + 37 * i}\n" for i in range(20))
    trace = tmp_path / "jobs.csv"
    trace.write_text("job,submit_s,gpus,duration_s\n" + rows)
    arguments = ["simulate", str(trace), "--gpus", "2", "--seeds", "3", "--restart-s", "60"]
    policies = ["-p", "best_value", "-p", "learned", "--forecast-sigma", "1"]
    assert main([*arguments, *policies]) == 0
    out = capsys.readouterr().out
    assert "jobs.csv: 20 jobs, seeds 0 to 2" in out
    assert "learned" in out


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "bench" / "train_policy"))
    import train

    for name in ("train", "evolution", "workloads"):
        monkeypatch.delitem(sys.modules, name)  # other folders of bench/ have such names, too
    return train


def test_a_search_goes_on_from_its_checkpoint_to_the_same_bytes(train: ModuleType) -> None:
    def cost(x: np.ndarray) -> float:
        return float(((x - [1, -2, 0.5]) ** 2 * [1, 10, 100]).sum())

    def go_on(law: Any, generations: int) -> None:
        for _ in range(generations):
            law.tell(np.array([cost(x) for x in law.ask()]))

    def search() -> Any:
        return train.Evolution(np.zeros(3), 0.5, 12, seed=3)

    whole, half, rest = search(), search(), search()
    go_on(whole, 60)
    go_on(half, 25)
    train.restore(rest, json.loads(json.dumps(train.state(half))))
    go_on(rest, 35)
    assert rest.centre.tolist() == whole.centre.tolist()
    assert whole.centre == pytest.approx([1, -2, 0.5], abs=1e-3)


def test_the_training_for_budgets_plays_workloads_with_curves(
    train: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(train.SETTINGS["heads"]["budget"], "with_curves", 1.0)
    monkeypatch.setitem(train.SETTINGS["draw"], "users", [3, 4])
    game = train.Game("budget", None)
    jct, _ = game.ratios(np.zeros(19), 0)
    assert np.isfinite(jct)
    assert (game.played[0][0].jobs["truth"] >= 0).all()  # each job has a curve


def test_jobs_with_budgets_are_done_earlier_with_fewer_preemptions() -> None:
    folder = ROOT / "data" / "workloads" / "supercom"
    options: dict[str, Any] = {
        "restart_s": 60.0,
        "failures": {"job_every_s": 172800.0, "checkpoint_s": 1800.0},
    }
    runs = gp.compare(
        lambda seed: gp.generate_workload(folder, users=40, seed=700 + seed),
        ["best_value", "learned"],
        seeds=2,
        **options,
    )
    assert runs.ratio("mean_jct_s", to="best_value")["learned"][0] < 0.9
    assert runs.ratio("preemptions", to="best_value")["learned"][0] < 0.5


def test_the_training_of_the_cookbook_makes_values_that_a_simulation_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    rows = zip(
        range(150),
        np.cumsum(rng.exponential(600, 150)).round(),
        2 ** rng.integers(0, 4, 150),
        np.exp(rng.normal(8, 1.3, 150)).round(),
        strict=True,
    )
    lines = ["job,submit_s,gpus,duration_s", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "jobs.csv").write_text("\n".join(lines) + "\n")
    page = (ROOT / "docs" / "cookbook.md").read_text()
    found = re.search(r"^    python (bench/train_policy/train.py .*) --minutes 5$", page, re.M)
    assert found is not None
    script, *arguments = found[1].split()
    command = [sys.executable, str(ROOT / script), *arguments, "--minutes", "0.001"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    assert (tmp_path / "out" / "queue.csv").read_text().count("\n") == 2  # one generation
    monkeypatch.chdir(tmp_path)
    (tmp_path / "later.csv").write_text((tmp_path / "jobs.csv").read_text())
    found = re.search(r"^    glidepath (simulate later\.csv .*) \\\n(.*)$", page, re.M)
    assert found is not None
    assert main([*found[1].replace("--seeds 10", "--seeds 2").split(), *found[2].split()]) == 0


def test_values_that_were_learned_are_given_to_the_policy_that_reads_them_alone() -> None:
    jobs = {"job": range(8), "submit_s": 0, "gpus": 1, "duration_s": range(100, 900, 100)}
    workload = gp.Workload([gp.Tier("t", 2)], jobs)
    options: dict[str, Any] = {"forecast_sigma": 0.5, "seeds": 1}
    values = gp.learned_values()
    both = gp.compare(workload, ["learned", "best_value"], planner={"learned": values}, **options)
    plain = gp.compare(workload, ["learned", "best_value"], **options)
    assert repr(both.rows) == repr(plain.rows)
    with pytest.raises(gp.InputError, match="learned is for the objective 'learned'"):
        gp.compare(workload, ["fifo", "best_value"], planner={"learned": values}, **options)
