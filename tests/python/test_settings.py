# SPDX-License-Identifier: Apache-2.0
"""Runs that have hardly begun: settings, and what past runs of alike settings foretell."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import glidepath as gp

STEPS = np.arange(1.0, 61.0) * 10


def run_to(floor: float, **settings: float | str | bool) -> gp.Trace:
    """A loss that falls to `floor`."""
    return gp.Trace(STEPS, floor + 3 * (STEPS / 10) ** -0.8, settings=settings)


def sweep() -> list[gp.Trace]:
    """Twelve runs whose learning rate tells where they end, and whose optimizer tells nothing."""
    return [
        run_to(0.5 - 0.4 * np.log10(lr), lr=lr, optimizer=optimizer, seed=seed)
        for seed, (lr, optimizer) in enumerate(
            (lr, optimizer)
            for lr in (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
            for optimizer in ("adam", "sgd")
        )
    ]


def not_begun(**settings: float | str | bool) -> gp.Trace:
    """A run of which nothing but its settings is known."""
    return gp.Trace([], [], settings=settings)


def test_settings_are_numbers_and_words_and_survive_copies_and_json() -> None:
    run = run_to(1.0, lr=1, optimizer="adam", clip=True, width=np.int64(64))
    assert run.settings == {"lr": 1.0, "optimizer": "adam", "clip": "True", "width": 64.0}
    assert run.until(100).settings == run.settings
    state = json.loads(json.dumps(run.to_dict()))
    for other in (gp.Trace.from_dict(state), copy.deepcopy(run), pickle.loads(pickle.dumps(run))):
        assert other == run
        assert other.settings == run.settings
    assert run != run_to(1.0, lr=2)
    assert gp.clean(run).trace.settings == run.settings
    past = gp.PastRuns(sweep())
    restored = gp.PastRuns.from_dict(json.loads(json.dumps(past.to_dict())))
    assert restored.relevance == past.relevance == pickle.loads(pickle.dumps(past)).relevance


@pytest.mark.parametrize("value", [None, [1.0], {"a": 1}, object()])
def test_a_setting_that_is_neither_a_number_nor_a_word_is_refused_by_its_name(
    value: object,
) -> None:
    with pytest.raises(TypeError, match=r"setting 'lr' is .*, expected a number or a word"):
        gp.Trace([1], [1], settings={"lr": value})  # type: ignore[dict-item]
    with pytest.raises(gp.InputError, match="setting 'lr' is inf"):
        gp.Trace([1], [1], settings={"lr": np.inf})
    with pytest.raises(gp.InputError, match=r"setting 'lr' is beyond 1\.8e\+308, the"):
        gp.Trace([1], [1], settings={"lr": 10**400})
    with pytest.raises(TypeError, match="settings is 'lr=1', expected a dict"):
        gp.Trace([1], [1], settings="lr=1")  # type: ignore[arg-type]


def test_what_matters_is_learned_and_seeds_tell_nothing() -> None:
    relevance = gp.PastRuns(sweep()).relevance
    assert relevance["lr"] > 4 * max(relevance["optimizer"], 0.1)
    assert "seed" not in relevance
    assert gp.PastRuns([gp.Trace(run.step, run.loss) for run in sweep()]).relevance == {}


def test_before_the_first_step_a_run_is_forecast_as_runs_of_its_settings_went() -> None:
    past = gp.PastRuns(sweep())
    for lr in (0.05, 0.0005):
        ahead = gp.forecast(not_begun(lr=lr, optimizer="adam"), [300, 600], past=past)
        assert ahead.status == "good"
        truth = 0.5 - 0.4 * np.log10(lr) + 3 * 60**-0.8
        low, high = ahead.interval(0.8)
        assert low[1] < truth < high[1]
        assert abs(ahead.median[1] - truth) < 0.2
    live = not_begun(lr=0.05, optimizer="adam")
    a_list, learned = (gp.forecast(live, [600], past=each).median for each in (sweep(), past))
    assert a_list[0] == learned[0]


@pytest.mark.parametrize("points", [0, 1, 2])
def test_a_beginning_is_forecast_beyond_where_past_runs_end(points: int) -> None:
    past = sweep()
    live = past[0].until(past[0].step[points - 1]) if points else gp.Trace([], [])
    end = min(run.step[-1] for run in past)
    near, far = gp.forecast(live, [end / 2, end], past=past), None
    for last in (1.2 * end, 3 * end):
        before, far = far or near, gp.forecast(live, [end / 2, end, last], past=past)
        assert far.status == "good"
        assert (far.quantiles[:, :2] == near.quantiles).all()
        assert (
            np.diff(far.interval(0.8), axis=0)[0, -1] > np.diff(before.interval(0.8), axis=0)[0, -1]
        )


def test_a_job_that_waits_has_a_law_of_its_steps() -> None:
    past = gp.PastRuns(sweep())
    soon = gp.reach(not_begun(lr=0.1, optimizer="sgd"), 1.3, budget=600, past=past)
    late = gp.reach(not_begun(lr=0.0003, optimizer="sgd"), 1.3, budget=600, past=past)
    assert soon.status == late.status == "good"
    assert soon.prob_never < 0.2 < 0.8 < late.prob_never
    assert np.isfinite(soon.remaining_steps(5)[:4]).all()
    batch = gp.reach_batch(
        [not_begun(lr=0.1, optimizer="sgd"), not_begun(lr=0.0003, optimizer="sgd")],
        1.3,
        budgets=600,
        past=past,
        threads=2,
    )
    assert [each.prob_never for each in batch] == [soon.prob_never, late.prob_never]


def test_settings_stand_in_the_json_beside_a_table_of_curves(tmp_path: Path) -> None:
    rows = ["curve,step,value"]
    rows += [f"{curve},{step},{1 / step}" for curve in ("a", "b") for step in (1, 2, 3)]
    (tmp_path / "runs.csv").write_text("\n".join(rows) + "\n")
    beside = tmp_path / "runs.json"
    beside.write_text(json.dumps({"settings": {"a": {"lr": 0.1, "opt": "sgd", "nesterov": True}}}))
    a, b = gp.read_traces(tmp_path / "runs.csv")
    assert a.settings == {"lr": 0.1, "opt": "sgd", "nesterov": "True"}
    assert b.settings == {}
    for broken, reason in (
        ({"settings": [1]}, "settings is no object with a member for each curve"),
        ({"settings": {"a": 1}}, "the settings of 'a' are no object"),
        ({"settings": {"a": {"lr": [1]}}}, "setting 'lr' of 'a' is neither a number nor a word"),
    ):
        beside.write_text(json.dumps(broken))
        with pytest.raises(gp.IoError, match=reason):
            gp.read_traces(tmp_path / "runs.csv")
