# SPDX-License-Identifier: Apache-2.0
"""The pilot never touches a job that does not take part."""

from __future__ import annotations

import contextlib
import math
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import slurm_stub
from slurm_world import EASY, HOPELESS, TIERS, World, curve, job

from glidepath.engines.slurm import (
    Answer,
    Cluster,
    ClusterJob,
    ClusterTier,
    JobRequest,
    Pilot,
    PilotOptions,
    Round,
    Slurm,
)
from glidepath.engines.slurm._text import NODE_FIELDS
from glidepath.engines.slurm.simulated import SimulatedRun


def test_never_touches_a_job_that_did_not_opt_in(tmp_path: Path) -> None:
    """1 000 rounds of a cluster where all changes all the time, also between read and act."""
    rng = random.Random(8)
    world = World(tmp_path, grace_s=20.0)
    cluster = world.cluster
    out = ["", "", "(null)", "glidepathx target=0.3", "my glidepath", "Glidepath"]
    odd = ["glidepath", "glidepath typo", "glidepath budget=50", "glidepath target=0.3 tiers=gold"]
    comments = [*out, *odd, EASY, EASY, HOPELESS, HOPELESS, EASY.replace("usr1", "requeue")]
    numbers = iter(range(1, 100000))

    def submit() -> None:
        number = next(numbers)
        name = str(number) if rng.random() < 0.8 else f"{number}_{rng.randrange(9)}"
        new = job(
            name,
            rng.choice(comments),
            gpus=rng.choice([0, 1, 1, 1, 2, 4]),
            limit_s=rng.choice([600.0, 7200.0, math.inf]),
        )
        user, where = rng.choice(["me", "me", "me", "other"]), rng.choice([*TIERS, "entry"])
        new = replace(new, user=user, partition=where, workdir=str(cluster.folder))
        cluster.submit(
            SimulatedRun(
                new,
                loss=curve(number % 50, floor=rng.uniform(0, 0.4)),
                budget=rng.choice([50, 500, 2000]),
                steps_per_s=rng.uniform(0.2, 3),
                usr1=rng.choice(["requeue", "requeue", "save", "ignore", "die"]),
                save_every=rng.choice([0, 20]),
            )
        )
        if rng.random() < 0.1:
            cluster.update(new.id, reason=rng.choice(["JobHeldUser", "Dependency"]))

    def meddle(ids: Sequence[str] | None = None) -> None:
        live = [run for run in cluster.live if ids is None or run.job.id in ids]
        if not live:
            return
        run = rng.choice(live)
        match rng.randrange(6):
            case 0:
                cluster.update(run.job.id, comment=rng.choice(comments))
            case 1:
                cluster.cancel(run.job.id)
            case 2 if run.job.state == "RUNNING":
                cluster.requeue(run.job.id)
            case 3 if run.job.state == "PENDING":
                cluster.update(run.job.id, eligible_s=cluster.now_s + rng.choice([0, 40, 4000]))
            case 4:
                cluster.update(run.job.id, nice=run.job.nice + 1)
            case 5:
                submit()

    def between(command: Sequence[str]) -> None:
        if command[0] in ("squeue", "sinfo") and rng.random() < 0.3:
            meddle(command[-1].split(",") if "-j" in command else None)
        if rng.random() < 0.003:
            slurm_stub.down(command)

    world.stub.before = between
    seen = {"stop": 0, "checkpoint": 0, "place": 0, "defer": 0, "changed": 0}
    pilots = contextlib.ExitStack()
    for n in range(1000):
        while len(cluster.live) < 12:
            submit()
        meddle()
        if len(cluster.live) > 15:
            cluster.cancel(cluster.live[0].job.id)
        if n % 50 == 0:
            pilots.close()
            world.pilot = pilots.enter_context(world.new_pilot())
        result = world.pilot.round()
        for outcome in result.outcomes:
            for name in (outcome.status, outcome.action.kind):
                if name in seen:
                    seen[name] += 1
        cluster.advance(rng.choice([2, 10, 30]))
    pilots.close()
    wrong = [
        (touched.id, touched.user, touched.comment, command)
        for touched, command in world.stub.touched
        if touched.user != "me" or JobRequest.read(touched.comment) is None
    ]
    assert wrong == []
    assert len(world.stub.touched) > 500
    assert min(seen.values()) > 10, seen  # it did meet what it is meant to withstand


# What the pilot leaves alone, by what squeue and sinfo print: one case each.

NOW = 1.8e9
BUSY = "glidepath target=0.22 budget=20000 trace=a.csv checkpoint=usr1"
NODES = (
    ("b1", "bronze", "mixed", "gpu:v100:4"),
    ("s1", "silver", "idle", "gpu:a100:4"),
)


def running(number: int | str, comment: str, node: str = "b1", **more: object) -> ClusterJob:
    values: dict[str, object] = {"partition": {"b": "bronze", "s": "silver"}[node[0]], **more}
    values = {"submit_s": NOW - 7200, "start_s": NOW - 3600, "used_s": 3600.0, "gpus": 4, **values}
    return replace(job(number, comment), state="RUNNING", nodes=(node,), **values)  # type: ignore[arg-type]


def waiting(number: int | str, comment: str, **more: object) -> ClusterJob:
    since = {"submit_s": NOW - 7200, "eligible_s": NOW - 7200}
    values: dict[str, object] = {"reason": "Resources", **since, **more}
    return replace(job(number, comment), **values)  # type: ignore[arg-type]


def decided(
    folder: Path,
    jobs: Sequence[ClusterJob],
    nodes: Sequence[tuple[str, ...]] = NODES,
    *,
    edit: Callable[[str], str] = str,
    logged_s: float = NOW - 60,
    **engine: object,
) -> Round:
    """What a pilot sees and would do where squeue and sinfo print these."""
    loss = curve(3)
    log = folder / "a.csv"
    log.write_text("step,loss,seconds\n" + "".join(f"{k},{loss(k)},{k}\n" for k in range(1, 900)))
    os.utime(log, (logged_s, logged_s))
    queue = edit(slurm_stub.queue_text([replace(each, workdir=str(folder)) for each in jobs]))
    rows = [row if len(row) == len(NODE_FIELDS) else (*row, "up") for row in nodes]
    text = "".join("".join(f"{field}\x1f" for field in row) + "\x1e\n" for row in rows)

    def printed(command: Sequence[str], timeout_s: float) -> Answer:
        return Answer(0, text if command[0] == "sinfo" else "" if "-s" in command else queue)

    slurm = Slurm(users=["me"], run=printed, clock=lambda: NOW, **engine)  # type: ignore[arg-type]
    result = Pilot(slurm, folder / "log.db", PilotOptions(), clock=lambda: NOW).look()
    assert result.trouble == ""
    return result


def touched(result: Round) -> dict[str, str]:
    return {action.job.id: action.kind for action in result.actions if action.kind != "annotate"}


REACHED = BUSY.replace("0.22", "0.4")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"reason": "JobHeldUser"}, "is held by a person"),
        ({"reason": "Priority", "priority": 0}, "is held"),
        ({"reason": "JobHoldMaxRequeue"}, "is held"),
        ({"reason": "job requeued in held state"}, "is held"),
        ({"reason": "launch_failed_requeued_held"}, "is held"),
        ({"reason": "Dependency"}, "waits for another job"),
        ({"reason": "BeginTime", "eligible_s": NOW + 9000}, "was submitted to begin later"),
    ],
)
@pytest.mark.parametrize("comment", [REACHED, f"{REACHED} | moving=end@5", f"{BUSY} budget=1000"])
def test_a_job_that_somebody_lets_wait_is_not_ended_moved_or_written_to(
    tmp_path: Path, more: dict[str, object], sentence: str, comment: str
) -> None:
    result = decided(tmp_path, [waiting(5, comment, **more), waiting(6, REACHED)])
    assert [action.job.id for action in result.actions] == ["6"]
    assert result.views[0].reason == sentence


def test_a_log_of_an_earlier_run_ends_no_new_job(tmp_path: Path) -> None:
    jobs = [
        running(1, REACHED, start_s=NOW - 10),
        waiting(2, REACHED, submit_s=NOW - 5),
        running(3, REACHED, "s1", restarts=1, start_s=NOW - 10),
    ]
    result = decided(tmp_path, jobs, logged_s=NOW - 60)
    assert "stop" not in touched(result).values()
    assert "the log is older than the job" in result.views[0].reason
    assert "the log is older than the job" in result.views[1].reason
    assert result.views[2].forecast.verdict == "reached"  # a job that goes on with its own log
    later = decided(tmp_path, jobs[:1], logged_s=NOW - 5)
    assert later.views[0].forecast.verdict == "reached"


@pytest.mark.parametrize("state", ["draining", "maint", "mixed*", "down*", "reserved*"])
def test_a_job_on_a_node_that_takes_no_new_job_runs_on_and_disturbs_no_other(
    tmp_path: Path, state: str
) -> None:
    nodes = [
        ("b1", "bronze", "mixed", "gpu:v100:4"),
        ("b2", "bronze", state, "gpu:v100:4"),
        ("b3", "bronze", state, "gpu:v100:4"),
    ]
    tiers = f"{BUSY} tiers=bronze"
    jobs = [running(number, tiers, node) for number, node in ((20, "b1"), (21, "b2"), (22, "b3"))]
    result = decided(tmp_path, jobs, nodes)
    assert touched(result) == {}
    assert result.views[1].reason == "runs on: its node b2 takes no new job"
    assert result.views[0].planned == "bronze"
    foreign = [jobs[0], replace(jobs[1], user="other"), replace(jobs[2], user="other")]
    assert touched(decided(tmp_path, foreign, nodes)) == {}


def test_a_job_on_two_nodes_holds_what_is_on_the_one_that_is_up() -> None:
    tier = ClusterTier("a", "v100", ("n1", "n2"), 4, 4, down=("n2",))
    both = replace(running(1, BUSY), nodes=("n1", "n2"), gpus=8)
    cluster = Cluster(NOW, (both,), (tier,))
    assert (cluster.held_gpus(both), cluster.down_node(both)) == (4, "n2")
    assert cluster.held_gpus(replace(both, nodes=("n2",))) == 0


def test_gpus_of_a_heterogeneous_job_are_not_free(tmp_path: Path) -> None:
    mine = running(11, f"{BUSY} tiers=bronze,silver")
    assert touched(decided(tmp_path, [mine])) == {"11": "checkpoint"}
    part = replace(running("20+0", f"{BUSY} tiers=bronze", "s1"), user="me")
    result = decided(tmp_path, [mine, part])
    assert touched(result) == {}
    assert [view.job.id for view in result.views] == ["11"]  # a part of one is never acted upon


# How the stub prints that 4 GPUs are asked for by node.
BY_NODE = "gres:gpu:4\x1fN/A\x1fN/A\x1fN/A\x1f1\x1fcpu=1,mem=1G,node=1,billing=1"


@pytest.mark.parametrize("allocated", ["", ",gres/gpu=4", ",gres/gpu=4,gres/gpu:a100=4"])
def test_gpus_asked_for_by_task_are_not_free(tmp_path: Path, allocated: str) -> None:
    def by_task(text: str) -> str:
        first, own, rest = text.partition("20\x1f")
        own += rest.replace(BY_NODE, f"N/A\x1fN/A\x1fN/A\x1fgres:gpu:1\x1f4\x1fcpu=4{allocated}")
        assert "gres:gpu:1" in own
        return first + own

    jobs = [running(11, f"{BUSY} tiers=bronze,silver"), replace(running(20, "", "s1"), user="bob")]
    assert touched(decided(tmp_path, jobs, edit=by_task)) == {}


@pytest.mark.parametrize("name", ["train", "a\x1fb"])
def test_a_job_that_asks_for_gpus_by_socket_holds_all_those_of_its_nodes(
    tmp_path: Path, name: str
) -> None:
    def by_socket(text: str) -> str:
        first, own, rest = text.partition("20\x1f")
        assert BY_NODE in rest
        return first + own + rest.replace(BY_NODE, "N/A\x1fN/A\x1fgres:gpu:1\x1fN/A\x1f1\x1fcpu=4")

    jobs = [running(11, f"{BUSY} tiers=bronze,silver"), replace(running(20, "", "s1"), name=name)]
    assert touched(decided(tmp_path, jobs, edit=by_socket)) == {}
    ours = replace(running(20, f"{BUSY} tiers=bronze,silver", "s1"), name="train")
    left = decided(tmp_path, [jobs[0], ours], edit=by_socket)
    assert touched(left) == {}
    assert left.views[1].reason == "asks for GPUs by socket"


def test_gpus_of_a_job_whose_record_cannot_be_read_are_not_free(tmp_path: Path) -> None:
    odd = replace(running(20, "", "s1"), name="a\x1fb")
    jobs = [running(11, f"{BUSY} tiers=bronze,silver"), odd]
    assert touched(decided(tmp_path, jobs)) == {}


def test_a_queue_of_which_nothing_can_be_read_is_not_called_empty(tmp_path: Path) -> None:
    unread = "no record of what squeue printed can be read, so no job is known"
    jobs = [running(11, f"{BUSY} tiers=bronze,silver")]
    assert decided(tmp_path, jobs, edit=lambda text: '{"jobs": []}').remark == unread
    assert decided(tmp_path, jobs, edit=lambda text: "").remark == ""


@pytest.mark.parametrize("gres", ["gpu:h100:4", "gpu:1g.5gb:4", "gpu:4", "gpu:nvidia_a100_80gb:4"])
def test_no_running_job_goes_to_or_from_gpus_whose_speed_is_not_known(
    tmp_path: Path, gres: str
) -> None:
    mine = running(11, f"{BUSY} tiers=bronze,silver")
    for nodes in (
        (("b1", "bronze", "mixed", gres), NODES[1]),
        (NODES[0], ("s1", "silver", "idle", gres)),
    ):
        result = decided(tmp_path, [mine], nodes)
        assert touched(result) == {}
        assert "is not known, so no running job is moved to or from there" in result.remark
        assert "--tiers NAME=SPEED" in result.remark
    said = decided(tmp_path, [mine], nodes, tiers={"bronze": 1.0, "silver": 2.0})
    assert (touched(said), said.remark) == ({"11": "checkpoint"}, "")


@pytest.mark.parametrize(
    ("partition", "goes_to"),
    [
        ("silver", {"silver"}),
        ("bronze,silver", {"bronze", "silver"}),
        ("bronze,debug", set()),
        ("debug", set()),
        ("batch", set()),
    ],
)
def test_a_job_that_names_no_tiers_stays_in_the_partitions_it_was_submitted_to(
    tmp_path: Path, partition: str, goes_to: set[str]
) -> None:
    nodes = [*NODES, ("g1", "gold", "idle", "gpu:a100:4")]
    nodes += [(node, "batch", state, gres) for node, _, state, gres in nodes]
    result = decided(tmp_path, [waiting(5, BUSY, partition=partition)], nodes)
    (view,) = result.views
    placed = {action.tier for action in result.actions if action.kind == "place"}
    assert placed <= goes_to
    if goes_to:
        assert view.planned in goes_to
    else:
        assert touched(result) == {}
        other = partition.split(",")[-1]
        assert view.reason == f"names no tiers=, and {other} is not one: left as it is"
    named = decided(tmp_path, [waiting(5, f"{BUSY} tiers=gold", partition=partition)], nodes)
    assert [action.tier for action in named.actions if action.kind == "place"] == ["gold"]


def test_running_jobs_keep_their_gpus_whatever_else_seems_to_be_on_their_tier(
    tmp_path: Path,
) -> None:
    mine = running(11, f"{BUSY} tiers=bronze,silver", "s1", gpus=2)
    crowd = [replace(running(number, "", "s1", gpus=2), user="bob") for number in (12, 13)]
    assert touched(decided(tmp_path, [mine, *crowd])) == {}


@pytest.mark.parametrize(
    "more",
    [
        {"reason": "Dependency"},
        {"reason": "DependencyNeverSatisfied"},
        {"reason": "JobHeldUser"},
        {"reason": "BeginTime", "eligible_s": NOW + 9000},
    ],
)
def test_a_job_that_nothing_starts_has_no_time_of_a_start(
    tmp_path: Path, more: dict[str, object]
) -> None:
    jobs = [waiting(5, BUSY, **more), waiting(6, BUSY)]
    never, soon = decided(tmp_path, jobs).views
    assert never.starts_s is None
    assert soon.starts_s is not None


def test_a_running_job_whose_log_is_of_an_earlier_run_gets_no_signal(tmp_path: Path) -> None:
    moved = f"{BUSY} tiers=bronze,silver"
    old = decided(tmp_path, [running(1, moved)], logged_s=NOW - 5000)
    assert touched(old) == {}
    assert "no step logged since it started" in old.views[0].reason
    assert touched(decided(tmp_path, [running(1, moved)])) == {"1": "checkpoint"}


def test_a_job_of_somebody_else_that_begins_later_is_not_in_front(tmp_path: Path) -> None:
    later = {"reason": "BeginTime", "eligible_s": NOW + 90_000, "submit_s": NOW - 9000, "gpus": 4}
    ours = waiting(5, BUSY, gpus=4)
    starts = [
        decided(tmp_path, [ours, waiting(6, "", user="bob", **{**later, **more})]).views[0].starts_s
        for more in ({}, {"eligible_s": NOW - 9000, "reason": "Priority"})
    ]
    alone = decided(tmp_path, [ours]).views[0].starts_s
    assert starts[0] == alone
    assert starts[1] is not None
    assert alone is not None
    assert starts[1][1] > alone[1]


def test_a_job_submitted_to_several_partitions_starts_on_the_first_that_is_free(
    tmp_path: Path,
) -> None:
    names = "bronze,silver"
    both, one = (waiting(5, BUSY, gpus=4, partition=name) for name in (names, "bronze"))
    full = replace(running(9, ""), user="bob", limit_s=7200.0)
    assert decided(tmp_path, [both, full]).views[0].starts_s == (0.0, 0.0, 0.0)
    behind = decided(tmp_path, [one, full]).views[0].starts_s
    assert behind is not None
    assert behind[1] > 0


@pytest.mark.parametrize(
    ("more", "waits"),
    [
        ({}, False),
        ({"restarts": 0}, True),
        ({"eligible_s": NOW + 90_000}, True),
        ({"comment": BUSY}, True),
    ],
)
def test_a_long_delay_after_a_requeue_is_that_of_slurm(
    tmp_path: Path, more: dict[str, object], waits: bool
) -> None:
    since = f"{BUSY} tiers=bronze,silver | moving=silver@{NOW - 60:.0f} x"
    fields = {"reason": "BeginTime", "eligible_s": NOW + 300, "restarts": 1, "comment": since}
    seen = decided(tmp_path, [replace(waiting(5, ""), **{**fields, **more})])  # type: ignore[arg-type]
    assert (seen.views[0].reason == "was submitted to begin later") == waits
    assert touched(seen) == ({} if waits else {"5": "place"})


@pytest.mark.parametrize(
    ("partition", "named"), [("batch", "batch"), ("bronze,batch", "batch"), ("x,batch", "x")]
)
def test_a_job_of_a_partition_that_is_no_tier_is_not_written_to(
    tmp_path: Path, partition: str, named: str
) -> None:
    seen = decided(tmp_path, [waiting(5, BUSY, partition=partition)])
    assert seen.views[0].reason == f"names no tiers=, and {named} is not one: left as it is"
    assert seen.actions == ()


def test_a_log_dated_ahead_of_the_clock_ends_no_job_and_gets_no_signal(tmp_path: Path) -> None:
    jobs = [running(1, f"{REACHED} tiers=bronze,silver"), waiting(2, REACHED)]
    ahead = decided(tmp_path, jobs, logged_s=NOW + 300)
    assert set(touched(ahead).values()) <= {"place", "defer"}
    assert "1" not in touched(ahead)
    for view in ahead.views:
        assert "the log is dated ahead of the clock" in view.reason
    assert touched(decided(tmp_path, jobs, logged_s=NOW + 30)) == {"1": "checkpoint", "2": "stop"}
    again = running(1, REACHED, restarts=1)  # whose log is of its earlier attempt
    assert touched(decided(tmp_path, [again], logged_s=NOW + 300)) == {"1": "checkpoint"}


BARRED = ("PartitionTimeLimit", "Reservation", "QOSMaxGRESPerUser", "JobArrayTaskLimit")


@pytest.mark.parametrize("reason", [*BARRED, "ReqNodeNotAvail, UnavailableNodes:b2"])
def test_nobody_gives_way_to_a_job_that_slurm_will_not_start(tmp_path: Path, reason: str) -> None:
    silver = {"partition": "silver", "gpus": 4}
    wanted = f"{BUSY.replace('0.22', '0.23')} tiers=silver weight=50"
    jobs = [running(11, f"{BUSY} tiers=silver", "s1"), waiting(7, wanted, **silver)]
    assert touched(decided(tmp_path, jobs))["11"] == "checkpoint"
    result = decided(tmp_path, [jobs[0], replace(jobs[1], reason=reason)])
    assert touched(result) == {}
    assert result.views[1].reason == f"Slurm does not start it: {reason.partition(',')[0]}"
    behind = waiting(9, f"{BUSY} tiers=silver", **silver)
    views = decided(tmp_path, [replace(jobs[1], reason=reason), behind]).views
    assert [view.planned for view in views] == ["", "silver"]
    assert (views[0].starts_s is not None) == (reason == "JobArrayTaskLimit")


@pytest.mark.parametrize("state", ["down", "drain", "inactive"])
def test_a_partition_that_is_not_up_takes_no_job(tmp_path: Path, state: str) -> None:
    mine = running(11, f"{BUSY} tiers=bronze,silver")
    assert touched(decided(tmp_path, [mine])) == {"11": "checkpoint"}
    closed = [(*NODES[0], "up"), (*NODES[1], state)]
    assert touched(decided(tmp_path, [mine], closed)) == {}
    there = running(12, f"{BUSY} tiers=bronze,silver", "s1")
    result = decided(tmp_path, [there], closed)
    assert touched(result) == {}
    assert result.views[0].reason == "runs on: its node s1 takes no new job"


@pytest.mark.parametrize(
    ("parts", "moves"),
    [("shard:4", False), ("shard:1", False), ("mps:100", False), ("license:4", True)],
)
def test_gpus_of_which_a_job_holds_parts_are_not_free(
    tmp_path: Path, parts: str, *, moves: bool
) -> None:
    def by_parts(text: str) -> str:
        first, own, rest = text.partition("20\x1f20\x1f")
        assert BY_NODE in rest
        return first + own + rest.replace(BY_NODE, BY_NODE.replace("gpu:4", parts))

    jobs = [running(11, f"{BUSY} tiers=bronze,silver"), replace(running(20, "", "s1"), user="bob")]
    assert touched(decided(tmp_path, jobs, edit=by_parts)) == (
        {"11": "checkpoint"} if moves else {}
    )
    ours = replace(jobs[1], user="me", comment=BUSY)
    reason = decided(tmp_path, [ours], edit=by_parts).views[0].reason
    assert reason == ("asks for no GPU" if moves else "asks for parts of GPUs")


@pytest.mark.parametrize(("restarts", "said"), [(0, True), (1, False)])
def test_a_job_that_only_wrote_a_header_behind_an_earlier_run_has_no_log_yet(
    tmp_path: Path, restarts: int, *, said: bool
) -> None:
    asked = REACHED.replace("a.csv", "b.csv")
    mine = running(1, f"{asked} tiers=bronze,silver", start_s=NOW - 90)
    mine = replace(mine, restarts=restarts)
    rows = [f"{k},{curve(3)(k)},{k}\n" for k in range(1, 900)]
    log = tmp_path / "b.csv"
    log.write_text("".join(("step,loss,seconds\n", *rows, "step,loss,seconds\n")))
    os.utime(log, (NOW - 60, NOW - 60))
    result = decided(tmp_path, [mine])
    assert touched(result) == {}  # no signal either: it may not listen yet
    assert ("the log is older than the job" in result.views[0].reason) == said
    log.write_text("".join(("step,loss,seconds\n", *rows)))
    os.utime(log, (NOW - 60, NOW - 60))
    assert touched(decided(tmp_path, [mine])) == {"1": "checkpoint"}


def test_a_job_whose_comment_cannot_be_read_is_not_written_to(tmp_path: Path) -> None:
    result = decided(tmp_path, [waiting(5, f"{BUSY} x=y"), running(6, f"{BUSY} x=y")])
    assert [view.reason for view in result.views] == ["cannot read 'x=y' in the comment"] * 2
    assert result.actions == ()
