# SPDX-License-Identifier: Apache-2.0
"""The keys of `--json`: each stands in the table of docs/cli.md and has one type in every verb."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_slurm_cli import _commands, mine  # noqa: F401 - a fixture

from glidepath import cli
from glidepath.engines.slurm import ClusterJob

ROOT = Path(__file__).resolve().parents[2]
SUPERCOM = ROOT / "data" / "workloads" / "supercom"
# What stands under these keys has keys of its own kind: names of parameters, tiers, methods.
BY_NAME = {"params", "stderr", "outcomes", "prices", "detail", "forecast"}


def table_of_keys() -> dict[str, str]:
    """The type of each key that docs/cli.md lists."""
    text = (ROOT / "docs" / "cli.md").read_text()
    rows = re.findall(r"^\| (`[^|]*`) \| (text|number|flag|list|object) \| ", text, re.MULTILINE)
    pairs = [(key, kind) for keys, kind in rows for key in re.findall(r"`([^`]+)`", keys)]
    assert len(pairs) == len({key for key, _ in pairs}), "a key stands twice"
    return dict(pairs)


def printed_keys(value: Any) -> Iterator[tuple[str, str]]:
    """Each key of a document with the type of its value; null has none."""
    if isinstance(value, list):
        for each in value:
            yield from printed_keys(each)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if inner is not None:
                yield key, kind_of(inner)
            if key not in BY_NAME:
                yield from printed_keys(inner)


def kind_of(value: Any) -> str:
    match value:
        case bool():
            return "flag"
        case int() | float() | "inf" | "-inf":
            return "number"
        case str():
            return "text"
    return "list" if isinstance(value, list) else "object"


def curve(step: np.ndarray, floor: float, seed: int) -> np.ndarray:
    noise = 0.01 * np.random.default_rng(seed).standard_normal(step.size)
    return floor + 3.0 * step**-0.5 + noise


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """What the verbs read: a log of runs, jobs of one's own, a trace of jobs, a monitor's log."""
    step = np.arange(1.0, 121.0)
    lines = ["curve,step,value"]
    for seed in range(4):
        loss = curve(step, 2.0 - 0.1 * seed, seed)
        lines += [f"r{seed},{t:g},{y!r}" for t, y in zip(step, loss.tolist(), strict=True)]
    made = {
        "runs": ("runs.csv", "\n".join(lines)),
        "jobs": (
            "jobs.csv",
            "job,log,run,target,budget,steps_per_s_x\na,runs.csv,r0,2.2,900,1\n"
            "b,runs.csv,r1,2.2,900,1\nc,runs.csv,nobody,2.2,900,1",
        ),
        "tiers": ("tiers.csv", "name,nodes,gpus_per_node\nx,1,1"),
        "trace": (
            "trace.csv",
            "job,submit_s,gpus,duration_s\n" + "\n".join(f"{i},{60 * i},1,900" for i in range(30)),
        ),
        "nodes": ("nodes.csv", "node,cpu_milli,memory_mib,gpus\nn,8000,1024,2"),
        "pods": ("pods.csv", "job,cpu_milli,memory_mib,gpus,gpu_milli\np,1,1,1,500\nq,9000,1,0,"),
        "monitor": (
            "gpu.csv",
            "timestamp, index, power.draw [W], utilization.gpu [%]\n"
            + "\n".join(f"2024/05/01 10:00:{i:02d}.000, 0, {200 + i}.0 W, 50 %" for i in range(30)),
        ),
    }
    clock = "\n".join(f"{t:g},{2 + 3 * t**-0.5!r},{0.2 * t:g}" for t in step.tolist())
    made["clocked"] = ("clocked.csv", f"step,loss,wall_seconds\n{clock}")
    for name, text in made.values():
        (tmp_path / name).write_text(text + "\n")
    return {key: str(tmp_path / name) for key, (name, _) in made.items()}


def lines(f: dict[str, str], page: Path) -> Iterator[list[str]]:
    """Command lines of every verb that answers within seconds."""
    runs = f["runs"]
    yield ["fit", runs, "--run", "r0"]
    yield ["forecast", runs, "--run", "r0", "--target", "2.1", "--past", runs]
    yield ["watch", runs, "--once", "--target", "2.1", "--budget", "900"]
    yield ["metrics", runs]
    yield ["metrics", f["monitor"]]
    yield ["report", runs, "--run", "r0", "--target", "2.1", "-o", str(page)]
    yield ["report", f["clocked"], "--hardware", f["monitor"], "-o", str(page)]
    yield ["plan", str(SUPERCOM), "--users", "30", "--at-h", "9"]
    yield ["plan", f["jobs"], "--tiers", f["tiers"]]
    yield ["place", f["nodes"], f["pods"], "--expected", f["pods"]]
    yield ["simulate", f["trace"], "--gpus", "2", "-p", "fifo", "-p", "srtf"]
    yield ["simulate", str(SUPERCOM), "--users", "3", "--seeds", "2", "-p", "fifo"]
    yield ["bench", "accuracy", runs, "-m", "last", "-m", "glidepath", "--cutoff", "0.4"]
    yield ["bench", "reach", runs, "--target", "2.3", "-m", "past-times", "-m", "glidepath"]
    yield ["bench", "starts", f["trace"], "--gpus", "2", "--moments", "4", "-p", "fifo"]
    yield ["bench", "fit", "--quick"]
    yield ["bench", "plan", "--quick", "--part", "exact"]
    yield ["slurm", "--simulated", f["trace"], "--gpus", "2", "--log", str(page.parent / "a.db")]
    yield ["slurm", "why", "1", "--log", str(page.parent / "a.db")]


def test_every_key_that_a_verb_prints_is_in_the_table_with_one_type(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("plotly", reason="needs glidepath[report]")
    table = table_of_keys()
    wrong = set()
    for line in lines(files, tmp_path / "page.html"):
        assert cli.main([*line, "--json"]) in (0, 1), (line, capsys.readouterr().err)
        for key, kind in printed_keys(json.loads(capsys.readouterr().out)):
            if table.get(key) != kind:
                wrong.add(f"{' '.join(line[:2])}: {key} is {kind}, in the table {table.get(key)}")
    assert not wrong, "\n".join(sorted(wrong))


def answers(capsys: pytest.CaptureFixture[str], *line: str) -> list[dict[str, Any]]:
    """The rows that a command prints."""
    assert cli.main([*line, "--json"]) in (0, 1), capsys.readouterr().err
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, list)
    return found


OF_A_TARGET = {
    *("target", "reached_by", "probability"),
    *(f"{name}_q{level}" for name in ("reach", "steps") for level in (10, 50, 90)),
}


def test_a_run_has_the_same_keys_in_every_verb_with_and_without_a_target(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("plotly", reason="needs glidepath[report]")
    runs, page = files["runs"], ["-o", str(tmp_path / "page.html")]
    common = {*OF_A_TARGET, "run", "metric", "points", "notes", "observed_to", "loss", "budget"}
    for verb in (["forecast", runs], ["report", runs, *page], ["watch", runs, "--once"]):
        (without, *_), (row, *_) = (
            answers(capsys, *verb, "--run", "r0", *target) for target in ([], ["--target", "2.1"])
        )
        assert without.keys() == row.keys() >= common, verb[0]
        assert {key for key in OF_A_TARGET if without[key] is None} == OF_A_TARGET, verb[0]
        assert all(row[key] is not None for key in OF_A_TARGET), verb[0]
        assert (row["points"], row["notes"]) == (120, []), verb[0]


def test_a_simulation_has_the_same_keys_for_one_seed_and_for_several(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["simulate", files["trace"], "--gpus", "2", "-p", "srtf", "--forecast-sigma", "1"]
    (one,) = answers(capsys, *line, "--seed", "3")
    several = answers(capsys, *line, "--seed", "3", "--seeds", "2")
    assert several[0] == one
    assert [row["seed"] for row in several] == [3, 4]
    assert one["outcomes"] == {"finished": 30}
    for count in ("preemptions", "failures", "events"):
        assert isinstance(one[count], int), count


def test_the_keys_of_slurm_are_in_the_table(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,  # noqa: F811 - the fixture
) -> None:
    _commands(tmp_path, monkeypatch, [mine])
    table = table_of_keys()
    log = ["--log", str(tmp_path / "log.db")]
    for verb in (["status"], ["plan"], ["run", "--rounds", "1", "--act"], ["why", "17"]):
        cli.main(["slurm", *verb, *log, "--json"])
        document = json.loads(capsys.readouterr().out)
        found = {(key, kind) for key, kind in printed_keys(document) if table.get(key) != kind}
        assert not found, (verb, found)


def test_the_intervals_of_scores_are_in_the_table() -> None:
    table = table_of_keys()  # with few runs they are null, which has no type
    assert {
        table.get(f"{score}_{end}") for score in ("mae", "crps") for end in ("low", "high")
    } == {"number"}


def test_a_key_outside_the_table_or_of_another_type_is_found() -> None:
    assert set(printed_keys([{"a": 1, "b": None, "c": {"d": "inf"}, "e": [True]}])) == {
        ("a", "number"),
        ("c", "object"),
        ("d", "number"),
        ("e", "list"),
    }
    assert not set(printed_keys({"params": {"any": 1}})) - {("params", "object")}
    assert "run" in table_of_keys()
