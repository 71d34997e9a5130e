# SPDX-License-Identifier: Apache-2.0
"""What the pilot decides and does, over a simulated cluster."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import slurm_stub
from slurm_world import CLUSTER_TIERS, EASY, HOPELESS, TIERS, World, curve, job

from glidepath import InputError
from glidepath.engines.slurm import (
    Answer,
    ClusterTier,
    JobRequest,
    Pilot,
    PilotOptions,
    Slurm,
    _comment,
)
from glidepath.engines.slurm._job_forecast import forecast_job
from glidepath.engines.slurm._traces import TraceStore


def test_advice_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, mode="advise")
    for number in range(10):
        world.submit(job(number), number)
    assert world.cluster.now_s < 2e9
    rounds = world.run(20)
    assert world.stub.sent == []
    assert any(result.commands for result in rounds)


def test_advise_is_the_default() -> None:
    assert PilotOptions().mode == "advise"


def test_looking_leaves_no_trace(world: World) -> None:
    world.submit(job(1))
    seen = world.pilot.look()
    assert [view.job.id for view in seen.views] == ["1"]
    assert world.stub.sent == []
    assert not world.log.exists()


def test_acting_beats_first_come_first_served(tmp_path: Path) -> None:
    """Same jobs, same submission: the mean completion time must fall by more than half."""
    means = {}
    for mode in ("advise", "act"):
        world = World(tmp_path / mode, mode=mode)
        start = world.cluster.now_s
        for number in range(12):
            world.submit(job(number, HOPELESS if number % 3 == 0 else EASY), number)
        world.run()
        runs = world.cluster.runs.values()
        means[mode] = np.mean([run.end_s - start for run in runs])
    assert means["act"] < 0.5 * means["advise"]


def test_a_hopeless_job_is_cancelled_and_the_log_says_why(world: World) -> None:
    run = world.submit(job(1, HOPELESS), budget=2000)
    world.run()
    assert run.ended == "CANCELLED"
    assert run.step < 1000
    told = [event for event in world.story(1) if event.kind == "stop"]
    assert [event.phase for event in told] == ["intended", "done"]
    assert told[0].why.startswith("reaches 0.01 by step 2 000 with probability ")
    assert told[0].why.endswith(" that count as never by now")
    assert told[0].command == "scancel 1"


def test_a_job_on_a_plateau_is_not_cancelled_at_the_first_look(world: World) -> None:
    """Its loss falls only after step 600 and is at the target by half its budget."""
    fall = np.random.default_rng(0).normal(size=3001) * 0.005

    def late(step: int) -> float:
        return (3.0 if step < 600 else 1.2 + 1.8 * math.exp(-(step - 600) / 500)) + fall[step]

    comment = "glidepath target=1.5 budget=3000 tiers=bronze"
    run = world.submit(job(1, comment), loss=late, budget=3000)
    while run.step < 400:  # five looks in a row, a hundredth of the budget apart, from a tenth on
        assert world.pilot.round().views[0].forecast.stop is False
        world.cluster.advance(30)
    assert run.ended == ""


def test_one_lost_look_ends_nothing(tmp_path: Path) -> None:
    """Five looks count, a hundredth of the budget apart, and none while the run gains much."""
    log = tmp_path / "a.csv"
    loss = curve(0)
    found = []
    for last in (300, 460, 500):
        log.write_text("step,loss\n" + "".join(f"{k},{loss(k)}\n" for k in range(1, last + 1)))
        request = JobRequest(target=0.01, budget=1000.0)
        found.append(forecast_job(TraceStore().read(log), request, PilotOptions()))
    assert [f.verdict for f in found] == ["unknown", "never", "never"]
    assert [f.stop for f in found] == [False, False, True]


def _breaks(step: int) -> float:
    return math.nan if step >= 200 else 0.2 + 2 * step**-0.5


@pytest.mark.parametrize("stops", [True, False])
def test_a_diverged_job_loses_its_gpu_or_keeps_it_and_gets_no_better_one(
    tmp_path: Path, *, stops: bool
) -> None:
    """Another job holds the faster tiers until it has diverged."""
    world = World(tmp_path)
    comment = "glidepath target=0.26 budget=3000 tiers=bronze,silver,gold checkpoint=usr1"
    run = world.submit(
        job(1, comment if stops else f"{comment} stop=no"), loss=_breaks, budget=3000
    )
    world.cluster.tiers = CLUSTER_TIERS[:1]
    world.cluster.advance(260)
    assert math.isnan(run.loss(run.step))
    world.cluster.tiers = CLUSTER_TIERS
    views = [world.pilot.round().views[0]]
    world.cluster.advance(5)
    views += [view for _ in range(3) for view in world.pilot.round().views]
    assert {view.forecast.verdict for view in views} == {"diverged"}
    assert "losses are not finite" in views[0].reason
    assert run.job.restarts == 0
    if stops:
        assert run.ended == "CANCELLED"
    else:
        assert run.job.nodes == ("bronze0",)


def test_a_metric_that_is_logged_now_and_then_has_not_diverged(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    rows = "".join(f"{k},{5 / k if k % 10 == 0 else math.nan}\n" for k in range(1, 100))
    log.write_text("step,val_loss\n" + rows)
    assert TraceStore().read(log).nonfinite_steps == ()
    log.write_text("step,val_loss\n" + rows + "100,nan\n101,nan\n")
    assert TraceStore().read(log).nonfinite_steps == (100.0, 101.0)


@pytest.mark.parametrize("comment", [EASY, HOPELESS])
def test_no_cancel_moves_jobs_but_ends_none(tmp_path: Path, comment: str) -> None:
    world = World(tmp_path, cancel=False)
    world.cluster.tiers = CLUSTER_TIERS[:1]
    run = world.submit(job(1, comment))
    world.cluster.advance(60)
    world.cluster.tiers = CLUSTER_TIERS
    rounds = world.run()
    assert run.ended == "DONE"
    assert run.job.restarts >= 1
    assert "stop" not in {action.kind for result in rounds for action in result.actions}
    assert ("scancel", "1") not in world.stub.sent


def test_a_job_that_says_stop_no_runs_to_its_budget(world: World) -> None:
    stays = world.submit(job(1, f"{HOPELESS} stop=no"))
    ends = world.submit(job(2, f"{HOPELESS} stop=yes"))
    world.run()
    assert (stays.ended, ends.ended) == ("DONE", "CANCELLED")


def test_a_hopeless_job_without_a_budget_is_left_to_run(world: World) -> None:
    run = world.submit(job(1, "glidepath target=0.01"), budget=300)
    world.run()
    assert run.ended == "DONE"


def test_a_job_that_reached_its_target_saves_and_ends(world: World) -> None:
    run = world.submit(job(1, EASY))
    world.run()
    assert run.ended == "CANCELLED"
    assert 0 < run.saved < 2000
    assert min(run.loss(step) for step in range(1, run.saved + 1)) <= 0.4


def test_a_job_moves_up_and_resumes_from_its_checkpoint(world: World) -> None:
    world.cluster.tiers = (CLUSTER_TIERS[0], CLUSTER_TIERS[1])
    world.pilot = world.new_pilot()
    comment = "glidepath target=0.26 budget=4000 tiers=bronze,silver checkpoint=usr1"
    run = world.submit(job(1, comment), budget=4000)
    world.cluster.advance(60)
    assert run.job.nodes == ("bronze0",)
    seen = 0
    for _ in range(6):
        world.pilot.round()
        world.cluster.advance(5)
        assert run.step >= run.saved >= seen
        seen = run.saved
    assert run.job.nodes == ("silver0",)
    assert run.job.restarts == 1
    assert run.saved > 50
    kinds = [(event.kind, event.phase) for event in world.story(1) if event.kind != "forecast"]
    assert kinds.index(("checkpoint", "done")) < kinds.index(("place", "done"))


def test_no_job_is_signalled_before_it_logged_a_step_since_its_start(world: World) -> None:
    """SIGUSR1 kills a process that has not installed its handler yet."""
    comment = "glidepath target=0.25 budget=2000 tiers=bronze,silver,gold checkpoint=usr1"
    for number in range(12):
        world.submit(job(number, comment), number, load_s=100.0)
    world.run()
    runs = world.cluster.runs.values()
    assert sum(run.job.restarts for run in runs) >= 3  # some were moved, all the same
    assert "FAILED" not in {run.ended for run in runs}


@pytest.mark.parametrize("usr1", ["save", "ignore"])
def test_a_job_that_does_not_requeue_itself_is_requeued_after_the_grace_time(
    tmp_path: Path, usr1: str
) -> None:
    world = World(tmp_path, grace_s=20.0)
    run = world.submit(job(1, "glidepath target=0.2 tiers=silver checkpoint=usr1"), usr1=usr1,
                       save_every=10)  # fmt: skip
    run.job = replace(run.job, partition="silver")
    world.cluster.advance(10)
    world.cluster.update("1", comment="glidepath target=0.2 tiers=gold,silver checkpoint=usr1")
    for _ in range(8):
        world.pilot.round()
        world.cluster.advance(10)
    assert run.job.nodes == ("gold0",)
    sent = [command[:2] for command in world.stub.sent]
    assert sent.count(("scontrol", "requeue")) == 1


def test_a_job_without_checkpoints_is_never_moved(world: World) -> None:
    for number in range(8):
        world.submit(job(number, "glidepath target=0.21 tiers=bronze,silver,gold"), number,
                     steps_per_s=0.2)  # fmt: skip
    world.run(60)
    assert not any(run.job.restarts for run in world.cluster.runs.values())


def let_wait(world: World) -> None:
    """Give the GPUs of job 1 to others."""
    world.cluster.requeue("1")
    world.cluster.advance(5)
    for number in range(2, 9):
        blocker = world.submit(replace(job(number, ""), user="other"), number, steps_per_s=0.001)
        blocker.job = replace(blocker.job, partition=("bronze", "silver", "gold")[number % 3])
    world.cluster.advance(1)


def test_a_waiting_job_gets_the_time_limit_it_needs(world: World) -> None:
    run = world.submit(job(1, limit_s=24 * 3600.0), steps_per_s=1.0)
    world.cluster.advance(30)
    let_wait(world)
    for _ in range(2):
        world.pilot.round()
    assert 60 <= run.job.limit_s <= 3600
    # Never below what its forecast may still need.
    assert run.job.limit_s >= 2000 / 1.0 - run.step or run.job.limit_s > 600


@pytest.mark.parametrize(
    ("comment", "cancel", "verdict"),
    [
        (f"{EASY} stop=no", True, "reached"),
        (EASY, False, "reached"),
        (EASY.replace("target=0.4 budget=2000", "budget=100"), True, "unknown"),
    ],
)
def test_a_job_that_may_not_be_ended_is_not_ended_by_its_time_limit(
    tmp_path: Path, comment: str, verdict: str, *, cancel: bool
) -> None:
    """It has reached its target, or is past its budget, and runs on all the same."""
    world = World(tmp_path, cancel=cancel)
    run = world.submit(job(1, comment, limit_s=24 * 3600.0), steps_per_s=1.0, save_every=10)
    world.cluster.advance(300)
    let_wait(world)
    views = [world.pilot.round().views[0] for _ in range(2)]
    assert views[-1].forecast.verdict == verdict
    assert run.job.state == "PENDING"
    assert run.job.limit_s >= 2000 - run.step


def test_a_deferred_job_starts_by_itself_when_nobody_comes_back(world: World) -> None:
    for number in range(9):
        world.submit(job(number), number, budget=100)
    world.pilot.round()
    assert any("StartTime" in " ".join(command) for command in world.stub.sent)
    world.cluster.advance(1500)  # killed; and nobody ever starts it again
    assert {run.ended for run in world.cluster.runs.values()} == {"DONE"}


def test_the_users_own_begin_time_and_hold_stand(world: World) -> None:
    later = world.submit(job(1))
    later.job = replace(later.job, eligible_s=world.cluster.now_s + 5000, reason="BeginTime")
    held = world.submit(job(2))
    held.job = replace(held.job, reason="JobHeldUser")
    for _ in range(10):
        world.pilot.round()
        world.cluster.advance(30)
    assert (later.job.state, held.job.state) == ("PENDING", "PENDING")
    changes = [c for c in world.stub.sent if not c[3].startswith("Comment=")]
    assert changes == []


def test_nice_ranks_leave_slurm_to_fill_the_gaps(tmp_path: Path) -> None:
    world = World(tmp_path, order="nice")
    runs = [world.submit(job(number), number) for number in range(9)]
    world.pilot.round()
    assert sum(run.job.nice == 1000 for run in runs) == 2
    assert not any("StartTime=2" in " ".join(command) for command in world.stub.sent)


def test_a_round_does_nothing_twice(world: World) -> None:
    for number in range(10):
        world.submit(job(number), number)
    world.pilot.round()
    before = list(world.stub.sent)
    again = world.new_pilot().round()  # another process, same moment
    assert [action.kind for action in again.actions if action.kind != "annotate"] == []
    assert all("Comment=" in " ".join(command) for command in world.stub.sent[len(before) :])


def test_disruptions_are_rationed(tmp_path: Path) -> None:
    world = World(tmp_path, disruptions_per_round=1)
    for number in range(4):
        world.submit(job(number, HOPELESS.replace("checkpoint=usr1", "")), number)
    world.cluster.advance(100)
    for _ in range(3):
        assert sum(action.disruptive for action in world.pilot.round().actions) <= 1


def test_a_refused_action_is_not_repeated_every_round(world: World) -> None:
    world.submit(job(1, "glidepath target=0.3 tiers=silver"))
    world.stub.cluster.tiers = CLUSTER_TIERS
    refuse = Answer(1, "", "scontrol: error: Access/permission denied")
    real = world.stub._answer

    def answer(command: tuple[str, ...]) -> Answer:
        return refuse if "Partition=silver" in command else real(command)

    world.stub._answer = answer  # type: ignore[method-assign]
    first, second = world.pilot.round(), world.pilot.round()
    assert [o.status for o in first.outcomes if o.action.kind == "place"] == ["refused"]
    assert "place" not in [action.kind for action in second.actions]


def test_one_bad_job_does_not_spoil_the_command_of_the_others(world: World) -> None:
    for number in range(9):
        world.submit(job(number), number)
    gone = {"done": False}

    def vanish(command: Sequence[str]) -> None:
        if command[:2] == ("scontrol", "update") and not gone["done"]:
            gone["done"] = True
            last = command[2].removeprefix("JobId=").split(",")[-1]
            world.cluster.cancel(last)

    world.stub.before = vanish
    result = world.pilot.round()
    assert sorted({outcome.status for outcome in result.outcomes}) == ["done", "gone"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mode": "sometimes"}, "mode is 'sometimes', expected 'advise' or 'act'"),
        ({"order": "best"}, "order is 'best', expected 'defer' or 'nice'"),
        ({"round_s": 0.0}, "round_s is 0, expected above 0 and at most 1000000"),
        ({"round_s": math.inf}, "round_s is inf, expected above 0 and at most 1000000"),
        ({"alpha": 0.5}, "watch: alpha is 0.5, expected above 0 and below 0.5"),
        ({"grace_s": -1.0}, "grace_s is -1, expected 0 or more and finite"),
        ({"restart_s": -5.0}, "restart_s is -5, expected 0 or more and finite"),
        ({"restart_s": math.nan}, "restart_s is nan, expected 0 or more and finite"),
        (
            {"disruptions_per_round": -1},
            "disruptions_per_round is -1, expected 0 or more and finite",
        ),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        PilotOptions(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"round_s": "5"}, "round_s is '5', expected a number"),
        ({"cancel": 0}, "cancel is 0, expected True or False"),
        ({"trace_patterns": "x"}, "trace_patterns is 'x', expected a list"),
        ({"disruptions_per_round": 1.5}, "disruptions_per_round is 1.5, expected a whole number"),
    ],
)
def test_options_of_a_wrong_type_are_refused(options: dict[str, object], expected: str) -> None:
    with pytest.raises(TypeError, match=f"^PilotOptions: {re.escape(expected)}$"):
        PilotOptions(**options)  # type: ignore[arg-type]


def test_a_time_for_slurm_that_is_none_is_refused() -> None:
    for timeout_s in (-5.0, 0.0, math.nan, math.inf):
        with pytest.raises(
            InputError, match=r"^timeout_s is .*, expected above 0 and at most 1000000$"
        ):
            Slurm(timeout_s=timeout_s)
    with pytest.raises(TypeError, match=r"^Slurm: partitions is 'gpu', expected a list$"):
        Slurm(partitions="gpu")


@pytest.mark.parametrize("speed", [0.0, -1.0, math.nan, math.inf])
def test_a_speed_that_no_tier_has_is_refused_as_on_the_command_line(speed: float) -> None:
    with pytest.raises(
        InputError, match=f"^tiers: gold is {speed:g}, expected above 0 and finite$"
    ):
        Slurm(tiers={"bronze": 1, "gold": speed})
    with pytest.raises(TypeError, match=r"^Slurm: the speed of gold is '3', expected a number$"):
        Slurm(tiers={"gold": "3"})  # type: ignore[dict-item]


def test_a_round_over_5000_recorded_jobs_is_planned_in_seconds(tmp_path: Path) -> None:
    """Figures: docs/method/engines.md. The bound here is loose, for a machine that is busy."""
    folder = tmp_path / "logs"
    folder.mkdir()
    jobs = []
    tiers = [ClusterTier(name, name, (f"{name}0",), 400, 400, TIERS[name]) for name in TIERS]
    for number in range(5000):
        each = replace(job(number + 1), workdir=str(folder), submit_s=1.8e9, eligible_s=1.8e9)
        if number < 500:
            tier = list(TIERS)[number % 3]
            each = replace(
                each, state="RUNNING", partition=tier, nodes=(f"{tier}0",), start_s=1.8e9
            )
            loss = curve(number % 40)
            rows = "".join(f"{k},{loss(k):.6g},{k}\n" for k in range(1, 201))
            log = folder / f"glidepath-{number + 1}.csv"
            log.write_text("step,loss,seconds\n" + rows)
            os.utime(log, (1.8e9 + 200, 1.8e9 + 200))
        jobs.append(each)
    queue, nodes = slurm_stub.queue_text(jobs), slurm_stub.nodes_text(tiers)

    def recorded(command: Sequence[str], timeout_s: float) -> Answer:
        return Answer(0, {"sinfo": nodes, "squeue": queue}.get(command[0], ""))

    scheduler = Slurm(users=["me"], run=recorded, tiers=TIERS, clock=lambda: 1.8e9 + 300)
    pilot = Pilot(
        scheduler, tmp_path / "log.db", PilotOptions(mode="act"), clock=lambda: 1.8e9 + 300
    )
    began = time.process_time()
    result = pilot.round()
    took = time.process_time() - began
    assert result.trouble == ""
    assert len(result.views) == 5000
    assert sum(forecast.probability == forecast.probability for forecast in
               (view.forecast for view in result.views)) == 500  # fmt: skip
    assert took < 12.0, f"{took:.1f} s of processor time, {dict(result.seconds)}"


def test_a_score_below_its_target_has_not_reached_it(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    rows = (f"{i},{0.7 - 0.6 * i**-0.5:.6g}\n" for i in range(1, 200))
    log.write_text("step,val_accuracy\n" + "".join(rows))
    request = JobRequest.read("glidepath metric=val_accuracy target=0.9 budget=20000")
    assert request is not None
    progress = TraceStore().read(log, metric=request.metric, direction=request.direction)
    forecast = forecast_job(progress, request, PilotOptions())
    assert (forecast.metric, forecast.reached_by) == ("val_accuracy", "point")
    assert (forecast.verdict, forecast.stop) != ("reached", True)
    assert forecast.last_value < 0.7
    turned = JobRequest.read("glidepath metric=val_accuracy target=0.6 budget=20000")
    assert turned is not None
    assert forecast_job(progress, turned, PilotOptions()).verdict == "reached"


def test_a_metric_whose_name_does_not_say_which_way_is_better_stops_no_job(world: World) -> None:
    run = world.submit(job(1, f"{HOPELESS} metric=thing"))
    log = world.cluster.folder / "thing.csv"
    log.write_text("step,thing\n" + "".join(f"{i},{i / 99}\n" for i in range(1, 99)))
    world.cluster.runs[run.job.id].job = replace(run.job, comment=f"{run.job.comment} trace={log}")
    (view,) = world.pilot.look().views
    assert "give direction=min or direction=max" in view.forecast.problem
    assert not view.forecast.stop


def test_a_job_submitted_to_several_partitions_may_go_to_each_of_them_later(world: World) -> None:
    asked = EASY.replace(" tiers=bronze,silver,gold", "")
    run = world.submit(replace(job(1, asked), partition="bronze,silver"))
    world.pilot.round()
    assert run.job.partition == "silver"
    other = world.submit(replace(job(2, "", gpus=2), partition="silver", user="bob"))
    world.cluster.update("2", state="RUNNING", nodes=("silver0",), start_s=world.cluster.now_s)
    other.spans.append(("silver", world.cluster.now_s, math.inf))
    world.pilot.round()
    assert run.job.partition == "bronze"
    world.cluster.update("1", partition="gold")  # by a person, whose word it is from now on
    world.pilot.round()
    assert run.job.partition == "gold"
    world.cluster.update("1", partition="silver")
    world.pilot.round()
    assert run.job.partition == "silver"


def test_a_note_is_written_anew_when_its_reason_has_changed() -> None:
    def gist(note: str) -> tuple[str, str]:
        return _comment.gist(f"glidepath | {note}")

    old = "; the log is older than the job"
    assert gist(f"gets 1 x bronze{old}") != gist(f"waits: others hold the GPUs{old}")
    assert gist("P(target) 0.91; done 26 Nov 09:00; gets 1 x a") == gist(
        "P(target) 0.93; done 26 Nov 11:30; gets 2 x a"
    )
    assert gist("P(target) 0.91; gets 1 x a") != gist("P(target) 0.72; gets 1 x a")
    assert (
        gist("done 26 Nov 09:00; reached 0.3 by step 5; gets no other GPU")[1]
        == gist("reached 0.3 by step 9; gets no other GPU")[1]
        == gist("reached 0.3 by step 1 009; gets no other GPU")[1]
    )


@pytest.mark.parametrize("begin_s", [1792889400.0, 1792891200.0, 1792893000.0])
def test_a_job_is_deferred_by_minutes_in_the_hour_that_comes_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin_s: float
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")  # where it is 2:50, 2:20 and 2:50 on 25 October 2026
    time.tzset()
    try:
        world = World(tmp_path)
        world.cluster.now_s = begin_s
        gold = replace(job(1, "glidepath tiers=gold"), partition="gold")
        runs = [world.submit(replace(gold, id=number)) for number in "12"]
        result = world.pilot.round()
        (deferred,) = (action.until_s for action in result.actions if action.kind == "defer")
        assert 0 < deferred - begin_s < 300
        assert ("scontrol", "update", "JobId=2", "StartTime=now+90") in world.stub.sent
        assert runs[1].job.eligible_s == deferred
        world.cluster.update("2", eligible_s=deferred + 5)  # such as of a command that came up late
        world.cluster.advance(30)
        assert "begin later" not in world.pilot.round().views[1].reason
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("what", ["eligible_s", "reason"])
def test_what_a_person_does_between_look_and_command_stands(world: World, what: str) -> None:
    run = world.submit(job(1, EASY.replace("bronze,", "")))
    wish = {"eligible_s": world.cluster.now_s + 86400} if what == "eligible_s" else {}

    def between(command: Sequence[str]) -> None:
        if "-j" in command and command[0] == "squeue":
            world.cluster.update("1", **wish)
            world.cluster.update("1", reason="BeginTime" if wish else "Dependency")

    world.stub.before = between
    (outcome,) = world.pilot.round().outcomes
    assert outcome.status == "changed"
    assert run.job.partition == "bronze"
    assert world.stub.sent == []


def test_a_job_that_slurm_does_not_start_where_it_was_placed_goes_back_and_stays(
    world: World,
) -> None:
    run = world.submit(job(1, EASY.replace("bronze,", "").replace("gold", "gold,bronze")))
    world.cluster.tiers = CLUSTER_TIERS[:2]
    world.pilot = world.new_pilot()
    world.pilot.round()
    assert run.job.partition == "silver"
    world.cluster.update("1", reason="QOSMaxGRESPerUser")  # which is the same everywhere
    assert [action.kind for action in world.pilot.round().actions] == []
    world.cluster.update("1", reason="PartitionTimeLimit")
    (view,) = world.pilot.round().views
    assert view.reason.startswith("goes back to bronze: Slurm does not start it here (Part")
    assert run.job.partition == "bronze"
    for _ in range(2):
        (view,) = world.pilot.round().views
        assert view.reason == "stays: Slurm did not start it elsewhere (PartitionTimeLimit)"
    assert run.job.partition == "bronze"
