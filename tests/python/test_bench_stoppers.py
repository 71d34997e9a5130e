# SPDX-License-Identifier: Apache-2.0
"""The replay of sweeps to pruners: its scores against ones worked out by hand, its refusals."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath._bench import stoppers
from glidepath.cli import main

optuna = pytest.importorskip("optuna", reason="optuna is not installed")
ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data" / "curves"
FLOORS = (0.9, 0.5, 0.7, 0.3, 0.8, 0.6, 0.4, 1.0)


def write(path: Path, runs: dict[str, Any], direction: str = "min") -> None:
    lines = [f"{name},{s},{v!r}" for name, (steps, values) in runs.items()
             for s, v in zip(steps, values, strict=True)]  # fmt: skip
    path.write_bytes(gzip.compress(("curve,step,value\n" + "\n".join(lines) + "\n").encode()))
    path.with_name(path.name.partition(".")[0] + ".json").write_text(
        json.dumps({"direction": direction})
    )


def descent(floor: float, reports: int = 20, length: float = 20.0) -> tuple[list[float], ...]:
    share = np.arange(1, reports + 1) / reports
    return (length * share).tolist(), (floor + 0.1 / (reports * share)).tolist()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "own.csv.gz", {f"task/t{i}": descent(f) for i, f in enumerate(FLOORS)})
    return tmp_path


class AllButTheFirst(optuna.pruners.BasePruner):  # type: ignore[misc]
    """Prune every trial at its second report, but the first."""

    def prune(self, study: Any, trial: Any) -> bool:
        return bool(trial.number > 0 and trial.last_step >= 2)


def test_a_study_scores_what_a_hand_calculation_gives(folder: Path) -> None:
    (sweep,) = stoppers.sweeps(folder)
    assert (sweep.name, sweep.direction, sweep.values.shape) == ("own task", "min", (8, 20))
    row = stoppers.replay(sweep, AllButTheFirst(), [2, 3, 5, 0])
    assert row["epochs"] == pytest.approx((20 + 3 * 2) / 80)
    assert row["regret"] == pytest.approx(0.7 - 0.3)
    assert row["scaled"] == pytest.approx(0.4 / (0.65 - 0.3))  # of all eight
    assert (row["rank"], row["complete"]) == (3, 1)
    none = stoppers.replay(sweep, optuna.pruners.NopPruner(), range(8))
    assert (none["epochs"], none["regret"], none["rank"], none["complete"]) == (1.0, 0.0, 1, 8)


def test_a_sweep_that_maximises_scores_the_same(tmp_path: Path) -> None:
    runs = {f"t{i}": descent(f) for i, f in enumerate(FLOORS)}
    upside_down = {n: (s, [-v for v in values]) for n, (s, values) in runs.items()}
    write(tmp_path / "down.csv.gz", runs)
    write(tmp_path / "up.csv.gz", upside_down, "max")
    down, up = stoppers.sweeps(tmp_path)
    assert (down.direction, up.direction) == ("min", "max")
    for name in stoppers.PRUNERS.keys() - {"hyperband"}:  # which draws by the study's name
        pair = []
        for sweep in (down, up):
            row = stoppers.replay(sweep, stoppers.PRUNERS[name](20), range(8))
            pair.append({k: v for k, v in row.items() if k != "cpu_ms"})
        assert pair[0] == pytest.approx(pair[1]), name


def test_trials_of_other_lengths_share_a_grid_of_their_own_budgets(tmp_path: Path) -> None:
    runs = {f"t{i}": descent(f, 20, 20.0 * (i + 1)) for i, f in enumerate(FLOORS)}
    runs["t7"] = ([80.0, 120.0, 140.0, 150.0, 160.0], [5.0, 4.0, 3.0, 2.0, 1.0])
    write(tmp_path / "own.csv.gz", runs)
    (sweep,) = stoppers.sweeps(tmp_path)
    assert np.allclose(sweep.values[:7] - np.array(FLOORS[:7])[:, None], descent(0.0)[1])
    # The first report of the last comes at half of its budget.
    assert sweep.first.tolist() == [0] * 7 + [9]
    assert sweep.values[7, [9, 13, 14, 18, 19]].tolist() == [5.0, 5.0, 4.0, 2.0, 1.0]
    row = stoppers.replay(sweep, AllButTheFirst(), [0, 7])
    assert row["epochs"] == pytest.approx((20 + 10) / 40)  # what came before was spent, too


def test_tasks_are_told_apart_and_lost_trials_belong_to_theirs(tmp_path: Path) -> None:
    runs = {f"{task}/t{i}": descent(f) for task in "ab" for i, f in enumerate(FLOORS)}
    write(tmp_path / "taskset.csv.gz", runs)
    lost = descent(0.1)[0], [2.0, *[float("nan")] * 19]
    write(tmp_path / "taskset-nonfinite.csv.gz", {"b/lost": lost})
    a, b = stoppers.sweeps(tmp_path)
    assert (a.name, b.name) == ("taskset a", "taskset b")
    assert (len(a.values), len(b.values)) == (8, 9)
    row = stoppers.replay(b, optuna.pruners.NopPruner(), [8, 0, 3])
    assert (row["rank"], row["complete"], row["epochs"]) == (1, 2, 1.0)
    row = stoppers.replay(b, stoppers.PRUNERS["forecast"](20), [8])
    assert row["epochs"] == 2 / 20  # at the first NaN
    assert [s.name for s in stoppers.sweeps(tmp_path, ["taskset b"])] == ["taskset b"]


def test_runs_that_end_at_a_target_are_compared_where_nine_in_ten_still_run(tmp_path: Path) -> None:
    runs = {}
    for i in range(10):
        steps, values = descent(0.1)
        last = 11 if i == 0 else 20  # ended at its target
        runs[f"s/t{i}"] = (steps[:last], [v + 0.1 * i for v in values[:last]])
    write(tmp_path / "mlperf-x.csv.gz", runs)
    (sweep,) = stoppers.sweeps(tmp_path)
    assert sweep.name == "mlperf-x"
    assert sweep.final[0] == runs["s/t0"][1][-1]
    assert sweep.final[1] == runs["s/t1"][1][18]  # at step 19.1 of 20


def test_our_pruner_finds_the_best_of_curves_without_noise_for_half_the_epochs(
    folder: Path,
) -> None:
    found = list(stoppers.sweeps(folder))
    rows = stoppers.run(found, pruners=["none", "forecast"], seeds=4)
    ours = [row for row in rows if row["pruner"] == "forecast"]
    assert all(row["rank"] == 1 and row["epochs"] < 0.6 for row in ours)
    again = stoppers.run(found, pruners=["none", "forecast"], seeds=4)
    for before, after in zip(rows, again, strict=True):
        assert {**before, "cpu_ms": 0.0} == {**after, "cpu_ms": 0.0}


def test_trials_may_run_at_the_same_time(folder: Path) -> None:
    (sweep,) = stoppers.sweeps(folder)
    alone = stoppers.replay(sweep, AllButTheFirst(), range(8))
    beside = stoppers.replay(sweep, AllButTheFirst(), range(8), workers=4)
    assert {**alone, "cpu_ms": 0.0} == {**beside, "cpu_ms": 0.0}
    ours = stoppers.replay(sweep, stoppers.PRUNERS["forecast"](20), range(8), workers=4)
    assert ours["rank"] == 1
    assert ours["complete"] < 8  # ranks count while the first four run, too


def test_the_goal_is_a_quarter_of_the_epochs_at_half_of_the_regret_of_hyperband() -> None:
    def rows(
        epochs: float, regrets: tuple[float, ...], cpu_ms: float = 1.0
    ) -> list[dict[str, Any]]:
        same = {"sweep": "s", "scaled": 0.0, "rank": 1, "complete": 1}
        hyperband = {"pruner": "hyperband", "epochs": 0.3, "regret": 0.2, "cpu_ms": 0.1}
        ours = {"pruner": "forecast", "epochs": epochs, "cpu_ms": cpu_ms}
        return [
            row
            for seed, regret in enumerate(regrets)
            for row in (
                {**same, **hyperband, "seed": seed},
                {**same, **ours, "regret": regret, "seed": seed},
            )
        ]

    def holds(*args: Any, **options: Any) -> bool:
        (limit,) = stoppers.limits(stoppers.summary(rows(*args, **options)))
        return bool(limit["holds"])

    assert holds(0.25, (0.0, 0.2))
    assert not holds(0.25, (0.0, 0.21))
    assert not holds(0.26, (0.0, 0.0))
    assert not holds(0.2, (0.0, 0.0), cpu_ms=6.0)
    table = stoppers.summary(rows(0.25, (0.0, 0.2)))
    assert tuple(table[1]) == stoppers.COLUMNS
    assert (table[1]["regret"], table[1]["worst"]) == (0.1, 0.2)


def test_the_command_line_gives_rows_and_limits(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["bench", "stoppers", str(folder), "--seeds", "2", "-p", "none", "-p", "forecast"]
    assert main([*line, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["rows"]) == 4
    assert [row["pruner"] for row in document["summary"]] == ["none", "forecast"]
    assert document["limits"] == []  # Hyperband was not asked
    assert main([*line, "-p", "hyperband"]) in (0, 1)
    assert "own task" in capsys.readouterr().out


def test_what_is_no_sweep_is_refused_in_a_sentence(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(gp.InputError, match="no sweep of 6 trials of one task"):
        list(stoppers.sweeps(empty))
    with pytest.raises(gp.InputError, match="pruner is 'best', expected one of none, median"):
        stoppers.run(list(stoppers.sweeps(folder)), pruners=["best"])
    assert main(["bench", "stoppers", str(tmp_path / "absent")]) == 2
    assert "absent: no such file or folder" in capsys.readouterr().err


def test_the_bundled_sweep_is_what_its_page_says() -> None:
    page = (ROOT / "data" / "SOURCES.md").read_text()
    files = sorted((ROOT / "data" / "sweeps").glob("*.csv.gz"))
    assert len(files) == 2
    for path in files:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert f"| {path.name} | {path.stat().st_size} | `{digest}` |" in page
    assert [(s.name, s.direction, s.values.shape) for s in stoppers.sweeps(files[0].parent)] == [
        ("digits-accuracy", "max", (100, 50)),
        ("digits-loss", "min", (100, 50)),
    ]


def test_the_bundled_sweep_costs_a_quarter_and_a_public_one_no_more() -> None:
    rows = stoppers.run(
        list(stoppers.sweeps(ROOT / "data" / "sweeps")), pruners=["forecast"], seeds=2
    )
    assert max(row["epochs"] for row in rows) <= 0.25
    assert max(row["scaled"] for row in rows) <= 0.15
    if not SHARED.exists():
        pytest.skip(f"{SHARED} is absent: the public sweeps are not bundled")
    found = list(stoppers.sweeps(SHARED, ["taskset-valid imdb_patch32_VRNN64_tanh*"]))
    rows = stoppers.run(found, pruners=["forecast"], seeds=2)
    assert len(found) == 1
    assert max(row["epochs"] for row in rows) <= 0.25
