# SPDX-License-Identifier: Apache-2.0
"""The bundled files are what data/SOURCES.md says, and the recordings enough to work with alone."""

import gzip
import hashlib
import importlib
import json
import re
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

import glidepath as gp

DATA = Path(__file__).resolve().parents[2] / "data"
FILES = sorted((DATA / "curves").glob("*.csv.gz"))
GPU_FILES = sorted((DATA / "gpu").glob("*.csv.gz"))
POWER = DATA / "power" / "h100.csv.gz"
TRACES = sorted((DATA / "traces").glob("*.csv.gz"))
ABOUT = {path.stem: json.loads(path.read_text()) for path in (DATA / "curves").glob("*.json")}
CURVES = {path.name.removesuffix(".csv.gz"): gp.read_traces(path) for path in FILES}
# Files of what runs were trained on; those of a metric stand beside them.
TRAINED = [name for name in CURVES if "beside" not in ABOUT[name]]


def test_four_hundred_runs_of_eight_tasks_fit_into_eight_megabytes() -> None:
    tasks = [name for name in TRAINED if "nonfinite" not in name]
    assert sum(len(CURVES[name]) for name in TRAINED) >= 400
    assert len(tasks) >= 8
    assert all(len(CURVES[name]) >= 15 for name in tasks)
    assert sum(path.stat().st_size for path in (DATA / "curves").iterdir()) <= 8e6


def test_the_checksums_are_those_of_the_sources_page() -> None:
    page = (DATA / "SOURCES.md").read_text()
    assert len(TRACES) == 3
    assert len(GPU_FILES) == 6
    for path in FILES + GPU_FILES + TRACES:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        size = path.stat().st_size
        assert re.search(rf"\| {path.name} \| {size} \| `{digest}` \|", page), path.name


def test_what_is_written_beside_a_collection_is_so() -> None:
    assert ABOUT.keys() == CURVES.keys()
    for name, runs in CURVES.items():
        about = ABOUT[name]
        assert (about["collection"], about["curves"]) == (name, len(runs))
        assert about["points"] == sum(map(len, runs))
        assert {run.direction for run in runs} == {about["direction"]}


def test_every_run_has_a_learning_rate_and_a_clock() -> None:
    for runs in CURVES.values():
        for trace in runs:
            assert trace.lr is not None, trace.name
            assert np.all(trace.lr >= 0)
            assert trace.wall_seconds is not None
            assert np.all(np.diff(trace.wall_seconds) >= 0)


def test_the_runs_of_a_gpu_are_what_is_written_beside_them() -> None:
    for path in GPU_FILES:
        name = path.name.removesuffix(".csv.gz")
        about = json.loads((DATA / "gpu" / f"{name}.json").read_text())
        runs = gp.read_traces(path)
        assert (about["collection"], about["curves"]) == (name, len(runs))
        assert about["points"] == sum(map(len, runs))
        if "settings" in about:
            assert about["settings"].keys() == {run.name for run in runs}
        for run in runs:
            assert run.lr is not None, run.name
            assert run.wall_seconds is not None, run.name
            assert np.isfinite(run.loss).all(), run.name


def test_a_cooldown_goes_on_where_its_stem_was() -> None:
    stems = {run.name: run for run in gp.read_traces(DATA / "gpu" / "code-gpt.csv.gz")}
    about = json.loads((DATA / "gpu" / "code-gpt-cooldown.json").read_text())
    for branch in gp.read_traces(DATA / "gpu" / "code-gpt-cooldown.csv.gz"):
        stem, _, step = about["settings"][branch.name]["begins_from"].partition("@")
        before = stems[stem].loss[stems[stem].step <= int(step)]
        assert branch.step[0] == int(step) + 10
        assert branch.loss[0] == pytest.approx(np.mean(before[-5:]), rel=0.05)
        assert branch.loss[-5:].mean() < branch.loss[:5].mean()


def test_the_power_of_a_gpu_was_logged_while_its_runs_were_trained() -> None:
    digest = hashlib.sha256(POWER.read_bytes()).hexdigest()
    assert digest in re.sub(r"\s", "", (DATA / "SOURCES.md").read_text())
    power = gp.read_metrics(POWER)
    files = (path for path in GPU_FILES if "heldout" not in path.name)
    trained = sum(run.wall_seconds[-1] for path in files for run in gp.read_traces(path))
    assert power.duration_s > trained > 0.9 * power.duration_s
    with gzip.open(POWER, "rt") as file:
        rows = [row.split(", ") for row in file][1:]
    at = [datetime.strptime(row[0], "%Y/%m/%d %H:%M:%S.%f").timestamp() for row in rows]
    watts = [float(row[3].removesuffix(" W")) for row in rows]
    pairs = zip(at, at[1:], watts, watts[1:], strict=False)
    joules = sum((to - begin) * (w + next_w) / 2 for begin, to, w, next_w in pairs)
    assert power.energy_j() == pytest.approx(joules)
    assert watts[0] < 0.2 * max(watts)  # before the first step


def test_settings_are_those_of_the_names() -> None:
    recorded = {name: about["settings"] for name, about in ABOUT.items() if "settings" in about}
    assert sum(map(len, recorded.values())) >= 280
    for settings in recorded.values():
        for curve, run in settings.items():
            assert curve.startswith(f"{run['size']}-b{run['batch']}x{run['steps']}/")
            schedule, _, how, seed = curve.partition("/")[2].split("_")
            optimizer, peak = how.split("-lr")
            rate = re.match(r"\d+e-?\d+", peak)
            assert (schedule, optimizer) == (run["schedule"], run["optimizer"])
            assert rate is not None
            assert float(rate[0]) == pytest.approx(run["peak_lr"])
            assert seed == f"s{run['seed']}"


def test_a_metric_stands_beside_the_loss_of_the_same_runs() -> None:
    metrics = [name for name in CURVES if name not in TRAINED]
    assert len(metrics) >= 8
    assert {ABOUT[name]["direction"] for name in metrics} == {"min", "max"}
    for name in metrics:
        loss = ABOUT[name]["beside"] + ("-nonfinite" if "nonfinite" in name else "")
        missing = {run.name for run in CURVES[name]} ^ {run.name for run in CURVES[loss]}
        assert not missing or "nonfinite" in name  # lost before the metric was measured


def test_numbers_are_spelt_as_in_both_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DATA / "record"))
    generated = importlib.import_module("generated")
    for number, english, french in (
        (7, "seven", "sept"),
        (21, "twenty one", "vingt et un"),
        (71, "seventy one", "soixante et onze"),
        (81, "eighty one", "quatre-vingt un"),
        (99, "ninety nine", "quatre-vingt dix-neuf"),
        (1001, "one thousand one", "mille un"),
        (2300, "two thousand three hundred", "deux mille trois cent"),
    ):
        assert " ".join(generated.english(number)) == english
        assert " ".join(generated.french(number)) == french


def test_collections_have_groups_that_can_be_held_out() -> None:
    for name, runs in CURVES.items():
        if "nonfinite" not in name:
            assert len({run.name.rpartition("/")[0] for run in runs}) >= 3, name


def test_a_run_is_lost_to_nan_only_where_the_name_says_so() -> None:
    for name, runs in CURVES.items():
        lost = [not np.isfinite(trace.loss).all() for trace in runs]
        if "nonfinite" not in name:
            assert not any(lost), name
        elif name in TRAINED:
            assert all(lost), name
    assert sum(len(CURVES[name]) for name in TRAINED if "nonfinite" in name) >= 1


def test_most_runs_learn_some_do_not_and_some_diverge() -> None:
    learned, hardly, diverged = 0, 0, 0
    for name in TRAINED:
        for trace in CURVES[name]:
            loss = trace.loss if trace.direction == "min" else 200 - trace.loss
            start, end = loss[0], np.median(loss[-10:])
            learned += end < 0.8 * start
            hardly += 0.95 * start < end < 1.05 * start
            diverged += not end < 1.5 * np.nanmin(loss) + 0.5
    assert learned > 200
    assert hardly >= 20
    assert diverged >= 10
