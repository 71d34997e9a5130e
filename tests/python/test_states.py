# SPDX-License-Identifier: Apache-2.0
"""Every public value that has a JSON form: written, read again and equal."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp

STEP = np.arange(1.0, 61.0) * 10
LOSS = 2 + 3 * STEP**-0.4 + 0.01 * np.sin(STEP)
RUN = gp.Trace(
    STEP, LOSS, lr=np.linspace(1, 0.1, 60), name="inf", planned_steps=4000, notes=["repaired"]
)
TIERS = [gp.Tier("a", 8, busy_watts=300, idle_watts=50)]
QUEUE = gp.Snapshot(TIERS, [gp.Job(1, [gp.Option(0, 1, 1.0)], remaining_steps=[10.0, np.inf])])
JOBS: dict[str, Any] = {"job": [1, 2], "submit_s": 0, "gpus": 1, "duration_s": [500, 50]}

# Values without a JSON form, by the reason.
WITHOUT: dict[str, tuple[str, ...]] = {
    "a record of the compiled module: its fields are its keywords": (
        *("Allocation", "FitScore", "Gpu", "Job", "JobKind", "KindPair", "Option", "PairSpeeds"),
        *("Pairs", "PolicyInfo", "Profile", "Scaling", "Snapshot", "StepTime", "Tier"),
    ),
    "a folder of files, see write_jobs": ("Workload",),
    "a reader of a file": ("Follow",),
    "two numbers": ("SharedSpeeds",),
    "an exception": ("InputError", "IoError"),
}


def values() -> list[Any]:
    """One of each public value that has a JSON form."""
    watch = gp.Watch(target=2.2, budget=4000)
    for step, loss in zip(STEP.tolist(), LOSS.tolist(), strict=True):
        watch.add(step, loss)
    workload = gp.Workload(TIERS, {**JOBS, "user": ["ada", "bob"]})
    past = gp.PastRuns([RUN, RUN])
    file = Path(__file__).parents[2] / "data/curves/digits-mlp.csv.gz"
    return [
        RUN,
        gp.clean(RUN),
        gp.Schedule.cosine(1e-3, 1000),
        gp.fit(RUN),
        gp.fit(gp.Trace([1.0], [1.0])),
        gp.fit_batch(STEP, [LOSS, LOSS * np.nan], family="pow3"),
        gp.fit_schedule_law([RUN]),
        gp.forecast(RUN, [1000, 2000]),
        gp.forecast_batch(STEP, [LOSS, LOSS + 1], 1000),
        gp.reach(RUN, 2.2),
        past,
        past.widths,
        watch,
        watch.decision(),
        gp.Watch().decision(),
        gp.plan(QUEUE),
        gp.solve_round([0, 1], [0, 0], [1, 1], [1.0, 2.0], 1),
        gp.choose_accelerator(QUEUE.jobs[0], TIERS)[0],
        gp.start_times(QUEUE),
        gp.simulate(workload, "fifo"),
        gp.compare(workload, ["fifo", "srtf"], seeds=2),
        gp.metrics_of(file)[0],
        gp.Metrics([0, 1], {"power_w": [1.0, np.nan]}, name="a", notes=["b"]),
        gp.StepProfile(2.0, notes=("marked",)),
    ]


@pytest.mark.parametrize("value", values(), ids=lambda value: type(value).__name__)
def test_a_value_is_read_as_it_was_written(value: Any) -> None:
    state = value.to_dict()
    again = type(value).from_dict(json.loads(json.dumps(state, allow_nan=False)))
    assert again == value
    assert again.to_dict() == state
    if hasattr(value, "notes"):
        assert again.notes == value.notes
    for damaged in ([], None, {**state, next(iter(state)): {"a": 1}}):
        with pytest.raises(gp.InputError):
            type(value).from_dict(damaged)


def test_every_public_value_has_a_json_form_or_a_reason() -> None:
    classes = {name for name in gp.__all__ if inspect.isclass(getattr(gp, name))}
    having = {name for name in classes if hasattr(getattr(gp, name), "to_dict")}
    assert having == {type(value).__name__ for value in values()}
    assert classes - having == {name for names in WITHOUT.values() for name in names}


def test_past_runs_keep_the_notes_of_their_runs() -> None:
    past = gp.PastRuns([RUN])
    assert gp.PastRuns.from_dict(past.to_dict()).runs[0].notes == ("repaired",)
