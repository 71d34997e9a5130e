# SPDX-License-Identifier: Apache-2.0
"""Verdicts on a live run."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from curves import finished_runs, lagged
from full_disk import files_of_at_most

import glidepath as gp
from glidepath._verdicts import _MEANINGS
from glidepath.adapters._adviser import Adviser


def test_watch_tells_reached_from_will_reach_from_never_from_diverged() -> None:
    t = np.arange(1.0, 201)
    loss = (1 + 2 * t**-0.5) * np.exp(0.002 * np.random.RandomState(0).standard_normal(200))

    def verdict(
        target: float, seen: int, values: np.ndarray = loss, budget: float = 1000
    ) -> gp.Decision:
        watch = gp.Watch(target=target, budget=budget)
        for step, value in zip(t[:seen], values[:seen], strict=True):
            watch.add(step, value)
        return watch.decision()

    assert verdict(1.2, 200).verdict == "reached"
    assert verdict(0.4, 190, budget=400).verdict == "never"
    assert verdict(float(loss[149]) * 0.999, 149).probability > 0.9
    assert verdict(1.1, 3).verdict == "unknown"
    nan_tail = np.where(t > 60, np.nan, loss)
    assert verdict(1.1, 70, nan_tail).verdict == "diverged"
    assert verdict(1.1, 61, nan_tail).verdict != "diverged"  # one NaN may be the logger's
    climbed = np.where(t > 60, 50.0, loss)
    assert verdict(1.1, 80, climbed, budget=150).verdict == "diverged"
    assert verdict(1.1, 80, climbed).verdict == "unknown"  # with most of its budget to come back
    assert verdict(1.1, 62, np.where(t == 60, 500.0, loss)).verdict != "diverged"  # a spike
    for decision in (verdict(1.2, 200), verdict(1.1, 150), verdict(0.4, 150)):
        low, middle, high = decision.steps_to_target
        assert low <= middle <= high
        assert decision.reason


def test_a_metric_that_is_logged_now_and_then_has_not_diverged_between_two_values() -> None:
    step = np.arange(1.0, 401.0)
    seldom = np.where(step % 10 == 5, 1.2 + 3 * step**-0.5, np.nan)
    run = gp.Trace(step, seldom, metric="val_loss")
    watch = gp.Watch(target=1.25, budget=4000)
    for pair in zip(step, seldom, strict=True):
        watch.add(*pair)
    assert watch.decision().verdict == "unknown"
    assert gp.Watch.from_dict(watch.to_dict()).decision() == watch.decision()
    assert gp.forecast(run, [2000.0]).status == "good"
    assert 0 < gp.reach(run, 1.25, budget=4000).prob_never < 1
    assert gp.best_so_far(run, budget=4000).prob_past < 0.5
    for more in range(401, 406):
        watch.add(more, np.nan)
    longer = gp.Trace(np.arange(1.0, 406.0), np.append(seldom, [np.nan] * 5))
    assert watch.decision().verdict == "diverged"
    assert gp.reach(longer, 1.25, budget=4000).prob_never == 1
    assert gp.forecast(longer, [2000.0]).status == "not_finite"
    assert gp.best_so_far(longer, budget=4000).prob_past == 1


def test_watch_excludes_nothing_before_it_has_seen_enough() -> None:
    def decision(points: int, budget: float, fall: float = 1.1) -> gp.Decision:
        watch = gp.Watch(target=0.01, budget=budget)
        for step in range(1, points + 1):
            watch.add(step, 0.9 + fall / step)
        return watch.decision()

    def verdict(points: int, budget: float, fall: float = 1.1) -> str:
        return decision(points, budget, fall).verdict

    assert verdict(35, 100) == "never"
    assert verdict(25, 100) == "unknown"  # it still gains: what it lacks is not four times that
    assert decision(25, 100).reason.endswith("gaining too much to call it never")
    assert verdict(30, 301) == "unknown"  # a small part of the budget
    assert verdict(60, 601) == "unknown"  # however many points
    assert verdict(30, 100, fall=1e-3) == "unknown"  # a plateau may end
    assert verdict(60, 100, fall=1e-3) == "never"  # but half of the budget is spent


def test_watch_spends_its_error_rate_as_it_spends_its_budget() -> None:
    # The same run, target and end: what excludes the target for good late in the run did not early.
    rng = np.random.RandomState(4)
    t = np.arange(1.0, 401)
    loss = (1 + 2 * t**-0.5) * np.exp(0.01 * rng.standard_normal(400))
    watch = gp.Watch(target=0.95, budget=500, alpha=0.02)
    for step, value in zip(t, loss, strict=True):
        watch.add(step, value)
        decision = watch.decision()
        if decision.verdict == "never":
            assert decision.probability <= 0.02 * (step / 500) ** 3
            break
    else:
        pytest.fail("a target that far below was never excluded")


def test_watch_foresees_what_a_planned_decay_brings() -> None:
    t = np.arange(1.0, 301)
    lr = np.where(t > 200, (300 - t) / 100, 1.0)
    noise = np.random.RandomState(0).standard_normal(300)
    y = (2 + 3 * t**-0.4) * np.exp(-0.05 * lagged(1 - lr, 9) + 0.002 * noise)
    target = float(y[-20:].mean())
    blind = gp.Watch(target=target, budget=300, reached_by="point")
    planned = gp.Watch(
        target=target,
        budget=300,
        schedule=gp.Schedule([1, 200, 300], [1.0, 1.0, 0.0]),
        reached_by="point",
    )
    for step, value in zip(t[:180], y[:180], strict=True):
        blind.add(step, value)
        planned.add(step, value, lr=1.0)
    assert planned.decision().probability > 0.2 > 3 * blind.decision().probability
    again = gp.Watch.from_dict(json.loads(json.dumps(planned.to_dict(), allow_nan=False)))
    assert again.decision() == planned.decision()
    with pytest.raises(gp.InputError, match=r"learning rate 0\.1 at step 181 without a schedule"):
        blind.add(181, 2.0, lr=0.1)


def test_watch_knows_the_noise_of_a_run_whose_old_points_it_has_merged() -> None:
    rng = np.random.RandomState(8)
    t, y = np.arange(1.0, 2001), np.maximum(1 + 0.02 * rng.standard_normal(2000), 0.921)
    watch = gp.Watch(target=0.92, budget=4000)
    for step, value in zip(t, y, strict=True):
        watch.add(step, value)
    # A record low of the noise is as likely as from all the points.
    whole = gp.reach(gp.Trace(t, y), 0.92, budget=4000)
    assert watch.decision().probability == pytest.approx(1 - whole.prob_never, abs=0.1)


def test_watch_continues_from_its_state_through_json_and_pickle() -> None:
    watch = gp.Watch(target=1.05, budget=5000, alpha=0.05)
    for step in range(1, 3001):
        watch.add(step, 1 + step**-0.5)
    text = json.dumps(watch.to_dict(), allow_nan=False)
    assert len(text) < 8000
    other = gp.Watch.from_dict(json.loads(text))
    assert other.decision() == watch.decision()
    assert pickle.loads(pickle.dumps(watch)) == copy.deepcopy(watch) == watch
    assert pickle.loads(pickle.dumps(watch.decision())) == watch.decision()
    watch.add(3001, 1.01)
    other.add(3001, 1.01)
    assert other == watch


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"format": "something else"}, "format"),
        ({"version": 4}, "state of version 4, this library reads 5"),
        ({"version": None}, "version None"),
        ({"step": [1.0, 1.0], "loss": [1.0, 2.0], "weight": [1.0, 1.0]}, "damaged"),
        ({"loss": "x"}, "damaged"),
        ({"schedule": [[1.0], [0.1]]}, "schedule: expected 'step' and 'lr'"),
        ({"direction": "up"}, "damaged: direction is 'up', expected min or max"),
    ],
)
def test_watch_refuses_a_foreign_state_in_a_sentence(
    damage: dict[str, object], message: str
) -> None:
    watch = gp.Watch(target=1.0)
    for step in range(1, 9):
        watch.add(step, 2 - 0.1 * step)
    state = watch.to_dict()
    assert gp.Watch.from_dict(state) == watch
    with pytest.raises(gp.InputError, match=message):
        gp.Watch.from_dict({**state, **damage})
    for lacked in ("loss", "longest_gap"):
        with pytest.raises(gp.InputError, match=f"the state lacks '{lacked}'"):
            gp.Watch.from_dict({key: value for key, value in state.items() if key != lacked})


def test_watch_refuses_a_direction_in_its_own_name() -> None:
    sentence = "^watch: direction is 'up', expected min or max$"
    with pytest.raises(gp.InputError, match=sentence):
        gp.Watch(direction="up")


def test_watch_takes_a_step_back_as_a_restart() -> None:
    watch, straight = gp.Watch(target=0.5), gp.Watch(target=0.5)
    for step in range(1, 30):
        watch.add(step, 1 + 1 / step)
        if step < 20:
            straight.add(step, 1 + 1 / step)
    for step in range(20, 40):
        watch.add(step, 1 + 1 / step)
        straight.add(step, 1 + 1 / step)
    assert watch.decision() == straight.decision()
    assert watch.to_dict()["restarts"] == 1


def test_verdicts_are_named_once_in_lower_case() -> None:
    assert gp.VERDICTS == ("unknown", "reached", "will_reach", "never", "diverged")
    assert set(_MEANINGS) == set(gp.VERDICTS)


def test_only_the_table_of_verdicts_says_what_they_mean(root: Path) -> None:
    compared = re.compile(r"""verdict(?:["']\])?\s*(?:==|!=|in|not in)\s*[("']""")
    table = "_verdicts.py"
    for path in sorted((root / "python" / "glidepath").rglob("*.py")):
        found = compared.search(path.read_text())
        assert found is None or path.name == table, f"{path}: {found[0] if found else ''}"
    assert compared.search('if row["verdict"] in ("never", "diverged"):')
    assert compared.search('forecast.verdict == "reached"')


def test_watch_learns_from_past_runs_and_keeps_them_out_of_its_state() -> None:
    runs = finished_runs(12)
    live = finished_runs(13)[12]

    def probability(past: gp.PastRuns | list[gp.Trace] | None) -> float:
        watch = gp.Watch(target=0.97 * float(live.loss[70]), budget=80, past=past)
        for step, loss in zip(live.step[:30], live.loss[:30], strict=True):
            watch.add(step, loss)
        again = gp.Watch.from_dict(watch.to_dict(), past=past)
        assert again.decision() == watch.decision()
        assert "past" not in watch.to_dict()
        return watch.decision().probability

    without, shapes, learned = (probability(past) for past in (None, runs, gp.PastRuns(runs)))
    assert shapes != without
    assert learned == shapes  # widths that hold 80 % do not tell of the tails


@pytest.mark.parametrize("budget", [0.0, -1.0, -300])
def test_a_budget_that_is_no_step_ends_no_run(budget: float) -> None:
    """Frameworks write -1 for no limit."""
    said = rf"^watch: budget is {budget:g}, expected above 0$"
    with pytest.raises(gp.InputError, match=said):
        gp.Watch(target=0.5, budget=budget)
    with pytest.raises(gp.InputError, match=said):
        Adviser("act", metric="loss", target=0.5, budget=budget)
    adviser = Adviser("act", metric="loss", target=0.5)
    adviser.begin(budget)  # that of a framework: none
    for step in range(1, 40):
        adviser.add(step, 2.0 / step + 1.0)
    assert not adviser.stop


@pytest.mark.parametrize("patience", [0, -1, 2.5, float("nan"), "a", True, None, np.array([3])])
def test_a_patience_that_counts_no_looks_is_refused_by_name(patience: Any) -> None:
    shown = re.escape(repr(patience))
    with pytest.raises(gp.InputError, match=f"^patience is {shown}, expected a whole number of 1"):
        Adviser("act", metric="loss", target=0.5, patience=patience)
    assert Adviser("act", metric="loss", target=0.5, patience=np.int64(3)).mode == "act"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"format": "glide', "Unterminated string"),
        ("", "Expecting value"),
        ("[1]", r"it is \[1\], expected the state of a watch"),
        ("{}", "format"),
        ("\udcff", "decode"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_a_state_that_cannot_be_read_is_named_by_its_file(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "state.json"
    file.write_bytes(text.encode(errors="surrogateescape"))
    adviser = Adviser("act", file, metric="loss", target=0.5, budget=100)
    with pytest.raises(gp.IoError, match=rf"{re.escape(str(file))}: cannot go on .*{said}"):
        adviser.begin()


def test_processes_that_share_a_state_do_not_end_each_others_training(tmp_path: Path) -> None:
    def train(_: int) -> None:
        adviser = Adviser("act", tmp_path / "state.json", metric="loss", target=0.5, budget=100)
        adviser.begin()
        for step in range(1, 60):
            adviser.add(step, 2.0 / step)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(train, range(4)))
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_state_that_cannot_be_kept_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    adviser = Adviser("act", tmp_path / "state.json", metric="loss", target=0.5, budget=100)
    adviser.begin()
    adviser.add(1, 2.0)
    before = (tmp_path / "state.json").read_text()
    with files_of_at_most(10):
        adviser.add(2, 1.9)
    assert "state.json: the state is not kept: File too large" in caplog.text
    assert (tmp_path / "state.json").read_text() == before
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_state_that_cannot_be_removed_ends_no_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    adviser = Adviser("act", tmp_path / "file" / "state.json", metric="loss", target=0.5)
    adviser.begin(100)
    adviser.add(1, 2.0)
    adviser.end()
    assert "state.json: the state is not removed: Not a directory" in caplog.text


def test_a_state_behind_a_link_is_written_through_it(tmp_path: Path) -> None:
    link, state = tmp_path / "run" / "state.json", tmp_path / "scratch" / "state.json"
    link.parent.mkdir()
    link.symlink_to(state)

    def begun() -> Adviser:
        adviser = Adviser("act", link, metric="loss", target=0.5)
        adviser.begin(100)
        return adviser

    first = begun()
    first.add(1, 2.0)
    state.chmod(0o600)
    first.add(2, 1.5)
    assert link.is_symlink()
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    again = begun()
    assert again.watch == first.watch
    again.end()
    assert link.is_symlink()
    assert [*state.parent.iterdir()] == []


def test_a_state_that_is_no_regular_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    pipe = tmp_path / "state.json"
    os.mkfifo(pipe)
    adviser = Adviser("act", pipe, metric="loss", target=0.5)
    with pytest.raises(gp.IoError, match=r"cannot go on .*it is no regular file"):
        adviser.begin(100)
    adviser.end()
    assert pipe.is_fifo()


def test_a_state_of_a_name_that_no_file_has_is_refused_before_the_training(tmp_path: Path) -> None:
    adviser = Adviser("act", tmp_path / ("x" * 300), metric="loss", target=0.5)
    with pytest.raises(gp.IoError, match=r"cannot go on from this state .*File name too long"):
        adviser.begin(100)


def test_a_value_beyond_all_numbers_is_refused_by_its_name() -> None:
    adviser = Adviser("act", metric="loss", target=0.5)
    with pytest.raises(gp.InputError, match=r"^loss is 10{39}, expected a number$"):
        adviser.add(1, 10**400)


def test_a_state_goes_on_where_another_process_ended(tmp_path: Path) -> None:
    def begun() -> Adviser:
        adviser = Adviser("act", tmp_path / "a" / "state.json", metric="loss", target=0.5)
        adviser.begin(100)
        return adviser

    first = begun()
    for step in range(1, 10):
        first.add(step, 2.0 / step)
    assert begun().watch == first.watch
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["state.json"]
