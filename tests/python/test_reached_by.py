# SPDX-License-Identifier: Apache-2.0
"""When a run has reached its target: by its curve, or by one logged value."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import numpy as np
import pytest

import glidepath as gp
from glidepath._core import reached_by_name
from glidepath.adapters._adviser import Adviser
from glidepath.cli import main
from glidepath.engines.slurm import JobRequest, PilotOptions
from glidepath.engines.slurm._job_forecast import forecast_job
from glidepath.engines.slurm._traces import TraceStore

TARGET = 1.25  # where the curve is at step 64, and its noise long before


def noisy(points: int = 400, seed: int = 3, **more: object) -> gp.Trace:
    t = np.arange(1.0, points + 1)
    noise = 0.15 * np.random.RandomState(seed).standard_normal(points)
    return gp.Trace(t, (1 + 2 * t**-0.5) * np.exp(noise), **more)  # type: ignore[arg-type]


def level_reached_at(run: gp.Trace, target: float) -> float:
    """Find it with the standard library, window by window."""
    values = run.loss.tolist()
    for n in range(1, len(values) + 1):
        window = int(min(n / 4, max(5, n / 10), 63))
        window = max(window - (window % 2 == 0), 1)
        if statistics.median(values[n - window : n]) <= target:
            return float(run.step[n - 1])
    return float("inf")


@pytest.mark.parametrize("seed", range(5))
def test_the_curve_is_at_the_target_where_the_median_of_the_newest_tenth_is(seed: int) -> None:
    run = noisy(2000, seed)
    for target in (1.4, 1.25, 1.1):
        expected = level_reached_at(run, target)
        assert gp.reach(run, target, budget=9000).step.tolist() == [expected]
        watch = gp.Watch(target=target, budget=9000)
        for step, loss in zip(run.step, run.loss, strict=True):
            watch.add(step, loss)
        assert watch.to_dict()["reached_step"] == expected
        first = run.step[np.argmax(run.loss <= target)]
        assert gp.reach(run, target, budget=9000, reached_by="point").step.tolist() == [first]


def test_a_lucky_batch_is_not_reached_and_a_curve_at_the_target_is_soon_after() -> None:
    loss = noisy(400, metric="train_loss").loss
    curve = 1 + 2 * np.arange(1.0, 401) ** -0.5
    lucky, there = np.argmax(loss <= 1.1) + 1, np.argmax(curve <= 1.1) + 1
    assert lucky < there / 3
    run = gp.Trace(np.arange(1.0, 401), loss, metric="train_loss")
    assert gp.reach(run.until(lucky), 1.1, budget=1000).prob_never > 0
    flat = np.where(np.arange(400) < 200, 2.0, 1.1)
    found = gp.reach(gp.Trace(np.arange(1.0, 401), flat), 1.1, budget=1000).step
    assert found.tolist() == [200 + 11]  # of its newest 21 values


def test_a_log_of_a_dozen_evaluations_is_read_value_by_value() -> None:
    values = [2.0, 1.9, 1.2, 1.8, 1.7, 1.6, 1.5]
    run = gp.Trace(np.arange(1.0, 8), values)
    assert gp.reach(run, 1.25, budget=20).step.tolist() == [3]


@pytest.mark.parametrize(
    ("names", "reading"),
    [
        (["loss", "train_loss", "train/loss", "ppl", "train_acc", "reward", "bpb"], "curve"),
        (["val_loss", "eval_loss", "Validation loss", "test/err", "dev ppl", "valid"], "point"),
        (["accuracy", "bleu", "WER", "metrics/mAP50(B)", "f1", "fid"], "point"),
        (["value", "interval_loss", "latest_loss", "device_loss"], "curve"),
    ],
)
def test_the_name_of_the_metric_says_by_what_a_target_is_reached(
    names: list[str], reading: str
) -> None:
    assert {reached_by_name(name) for name in names} == {reading}
    for name in names:
        run = noisy(metric=name)
        assert gp.reach(run, TARGET, budget=900) == gp.reach(
            run, TARGET, budget=900, reached_by=reading
        )


def test_a_batch_reads_each_run_by_the_name_of_its_metric_or_all_as_it_is_asked_to() -> None:
    runs = [noisy(metric="loss"), noisy(metric="val_loss")]
    by_name = gp.reach_batch(runs, TARGET, budgets=900)
    assert by_name == [gp.reach(run, TARGET, budget=900) for run in runs]
    assert by_name[0] != by_name[1]
    by_point = gp.reach_batch(runs, TARGET, budgets=900, reached_by="point")
    assert by_point[0] == by_point[1] == gp.reach(runs[1], TARGET, budget=900)
    with pytest.raises(gp.InputError, match=r"^reached_by is 'level', expected curve or point$"):
        gp.reach(runs[0], TARGET, budget=900, reached_by="level")
    with pytest.raises(gp.InputError, match=r"^reached_by is 'level', expected curve or point$"):
        gp.Watch(reached_by="level")


def test_an_adapter_reads_its_metric_by_name_and_takes_another_word() -> None:
    def settings(**more: object) -> dict[str, object]:
        return Adviser("act", target=1.0, **more).watch.to_dict()  # type: ignore[arg-type]

    assert settings(metric="loss")["reached_by"] == "curve"
    assert settings(metric="val_loss")["reached_by"] == "point"
    assert settings(metric="val_loss", reached_by="curve")["reached_by"] == "curve"
    assert settings()["reached_by"] == "curve"


def test_an_adapter_without_a_target_hands_over_nothing_that_one_needs() -> None:
    adviser = Adviser("act", metric="val_loss")
    adviser.begin(300, rate=lambda step: 0.1)
    assert adviser.watch == gp.Watch()
    for step in range(1, 12):
        assert adviser.add(step, 2.0) == {"forecast_stop": 0.0}
    again = Adviser("act", metric="val_loss")
    again.keep(adviser.state())
    again.begin(300)
    assert again.watch == adviser.watch
    with pytest.raises(gp.InputError, match=r"^watch: budget without target$"):
        Adviser("act", metric="val_loss", budget=300)


def test_an_adapter_that_resumes_with_another_reading_reads_anew() -> None:
    first = Adviser("act", metric="val_loss", target=1.0, budget=300)
    first.begin()
    for step in range(1, 60):
        first.add(step, 0.9 if step == 40 else 2.0)
    assert first.stop
    for state in (first.state(), {k: v for k, v in first.state().items() if k != "reached_by"}):
        again = Adviser("act", metric="val_loss", target=1.0, budget=300, reached_by="curve")
        again.keep(state)
        again.begin()
        again.add(60, 2.0)
        assert again.decision is not None
        assert again.decision.verdict != "reached"


def write(file: Path, run: gp.Trace, column: str) -> None:
    lines = [f"{s:.0f},{v!r}" for s, v in zip(run.step.tolist(), run.loss.tolist(), strict=True)]
    file.write_text("\n".join([f"step,{column}", *lines]) + "\n")


@pytest.mark.parametrize("column", ["loss", "val_loss"])
def test_the_pilot_ends_a_job_by_the_reading_of_its_metric(tmp_path: Path, column: str) -> None:
    run = noisy(60)
    lucky = float(run.loss.min())
    write(tmp_path / "log.csv", run, column)
    progress = TraceStore().read(tmp_path / "log.csv")
    request = JobRequest(target=lucky, budget=100.0)

    def reached(**options: object) -> bool:
        found = forecast_job(progress, request, PilotOptions(**options))  # type: ignore[arg-type]
        assert found.stop or found.verdict != "reached"
        return found.verdict == "reached"

    assert reached() is (column == "val_loss")
    assert reached(reached_by="point")
    assert not reached(reached_by="curve")


def test_the_pilot_finds_the_one_value_of_a_long_log_that_is_at_the_target(tmp_path: Path) -> None:
    loss = np.full(9000, 2.0)
    loss[4321] = 1.0
    write(tmp_path / "log.csv", gp.Trace(np.arange(1.0, 9001), loss), "val_loss")
    progress = TraceStore().read(tmp_path / "log.csv")
    found = forecast_job(progress, JobRequest(target=1.0, budget=10000.0), PilotOptions())
    assert (found.verdict, found.stop) == ("reached", True)


LUCKY = noisy(60)  # one value of it touches the target, its curve does not
VERBS = ["forecast", "watch", "report", "plan"]


def asked(folder: Path, verb: str, column: str = "loss") -> list[str]:
    """Write the log; give the line that asks a verb about it."""
    write(folder / "log.csv", LUCKY, column)
    target = str(LUCKY.loss.min())
    if verb == "plan":
        (folder / "tiers.csv").write_text("name,nodes\nonly,1\n")
        job = f"job,log,target,budget,steps_per_s_only\na,log.csv,{target},100,1\n"
        (folder / "jobs.csv").write_text(job)
        return [verb, str(folder / "jobs.csv"), "--tiers", str(folder / "tiers.csv")]
    more = {"watch": ["--once"], "report": ["-o", str(folder / "page.html")]}.get(verb, [])
    if verb == "report":
        pytest.importorskip("plotly")
    return [verb, str(folder / "log.csv"), "--target", target, "--budget", "100", *more]


@pytest.mark.parametrize("verb", VERBS)
def test_the_command_line_reads_by_name_unless_an_option_says_how(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    def answer(column: str, *more: str) -> tuple[float, str]:
        main([*asked(tmp_path, verb, column), "--json", *more])
        document = json.loads(capsys.readouterr().out)
        (row,) = document["jobs"] if verb == "plan" else document
        return row["probability"], row["reached_by"]

    by_curve = answer("loss")
    assert by_curve[0] < 1.0
    assert by_curve[1] == "curve"
    assert answer("val_loss") == (1.0, "point")
    for column in ("loss", "val_loss"):
        assert answer(column, "--reached-by", "curve") == by_curve
        assert answer(column, "--reached-by", "point") == (1.0, "point")


@pytest.mark.parametrize("verb", VERBS)
def test_the_answer_in_words_says_the_reading(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    for reading in ("curve", "point"):
        main([*asked(tmp_path, verb), "--reached-by", reading])
        out = capsys.readouterr().out
        text = (tmp_path / "page.html").read_text() if verb == "report" else out
        said = "".join(c for c in text if c.isalnum())  # a table folds its cells
        assert f"targetreadbythe{reading}" in said


@pytest.mark.parametrize("verb", VERBS)
def test_a_reading_that_is_none_or_has_no_target_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    line = asked(tmp_path, verb)
    assert main([*line, "--reached-by", "level"]) == 2
    error = "glidepath: reached_by is 'level', expected curve or point\n"
    assert capsys.readouterr() == ("", error)
    if verb == "plan":
        line, why = [verb, str(tmp_path)], f"{tmp_path} is no CSV of jobs"
    else:
        line, why = line[:2], "say with --target what is to be reached"
    assert main([*line, "--reached-by", "point"]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()
