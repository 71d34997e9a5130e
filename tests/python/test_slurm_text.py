# SPDX-License-Identifier: Apache-2.0
"""Text that Slurm's commands print, and comments of jobs, as the pilot reads them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import slurm_stub
from slurm_world import CLUSTER_TIERS, EASY, job

from glidepath import InputError
from glidepath.engines.slurm import Answer, Cluster, JobRequest, Slurm
from glidepath.engines.slurm._commands import _speed_of
from glidepath.engines.slurm._comment import Move, with_note
from glidepath.engines.slurm._text import expand_nodes, read_nodes, read_queue
from glidepath.engines.slurm._traces import trace_path

# What squeue 22.05.8 printed for: a held job, a task of an array, a job with a begin time and a
# newline in its comment, and a running job with a field separator in its name.
RECORDED = (
    "4\x1f4\x1froot\x1fPENDING\x1fgold\x1fJobHeldUser\x1f0\x1f1795252952\x1fN/A\x1fN/A\x1f1:00:00\x1f0:00"
    "\x1f0\x1f1\x1f\x1fgres:gpu:1\x1fN/A\x1fN/A\x1fN/A\x1f1\x1fcpu=1,mem=1M,node=1,billing=1"
    "\x1f0\x1f(null)\x1fj.sh\x1f/tmp\x1f/tmp/slurm-4.out\x1f\x1e\n"
    "2_3\x1f2\x1froot\x1fPENDING\x1ftrain\x1fJobArrayTaskLimit\x1f4294901757\x1f1795252952\x1fN/A\x1fN/A\x1f5-00:01:00"
    "\x1f0:00\x1f0\x1f1\x1f\x1fgres:gpu:silver:2\x1fN/A\x1fN/A\x1fN/A\x1f1\x1fcpu=1,mem=1M,node=1,billing=1"
    "\x1f0\x1f(null)\x1farr\x1f/tmp"
    "\x1f/tmp/slurm-2.out\x1f\x1e\n"
    "3\x1f3\x1froot\x1fPENDING\x1ftrain\x1fBeginTime\x1f4294901756\x1f1795252952\x1f1795256552\x1f1795256552\x1f1:00:00"
    "\x1f0:00\x1f100\x1f1\x1f\x1fgres:gpu:1\x1fN/A\x1fN/A\x1fN/A\x1f1\x1fcpu=1,mem=1M,node=1,billing=1"
    "\x1f0\x1fglidepath a\nb\x1fj.sh\x1f/tmp"
    "\x1f/tmp/slurm-3.out\x1f\x1e\n"
    "1\x1f1\x1froot\x1fRUNNING\x1ftrain\x1fNone\x1f4294901758\x1f1795252952\x1f1795252953\x1f1795252952\x1fUNLIMITED"
    "\x1f1-00:00:01\x1f0\x1f1\x1fgold0\x1fgres:gpu:1\x1fN/A\x1fN/A\x1fN/A\x1f1\x1fcpu=1,node=1,billing=1"
    "\x1f2\x1fglidepath target=0.1\x1fodd"
    "\x1f na|me\x1f/tmp\x1f/tmp/slurm-1.out\x1f\x1e\n"
)


def test_reads_what_a_real_squeue_printed() -> None:
    jobs, unreadable = read_queue(RECORDED)
    held, task, later, odd = jobs
    assert (held.id, held.held, held.limit_s, held.gpus) == ("4", True, 3600.0, 1)
    assert [each.priority > 0 for each in jobs] == [False, True, True, True]
    assert (task.id, task.limit_s, task.gpus, task.gpu_type) == ("2_3", 432060.0, 2, "silver")
    assert (later.eligible_s, later.nice, later.comment) == (1795256552.0, 100, "glidepath a\nb")
    assert unreadable == 1  # a separator in its name: left alone rather than guessed at
    assert (odd.touchable, odd.nodes, odd.gpus, odd.comment) == (False, ("gold0",), 1, "")


def test_reads_a_running_job_with_its_attempt() -> None:
    (running,), unreadable = read_queue(RECORDED.split("\n")[-2].replace("odd\x1f", "odd"))
    assert unreadable == 0
    assert (running.limit_s, running.used_s, running.restarts) == (math.inf, 86401.0, 2)
    assert (running.nodes, running.start_s) == (("gold0",), 1795252953.0)


def test_a_name_cannot_forge_another_job() -> None:
    victim = job(7, "")
    record = slurm_stub.queue_text([replace(victim, comment=EASY, user="me")])
    forged = "\x1f".join(record.split("\x1f")[:-3])  # its last two fields will be the forger's own
    forger = replace(job(8), name=f"x\x1f\x1f\x1f\x1e\n{forged}")
    jobs, unreadable = read_queue(slurm_stub.queue_text([victim, forger]))
    assert [each.id for each in jobs if each.touchable] == ["8"]
    assert unreadable == 2
    assert all(each.comment == "" or each.id == "7" for each in jobs if not each.touchable)


def test_the_stub_prints_what_the_reader_reads() -> None:
    jobs = [
        replace(job(1), state="RUNNING", nodes=("gold0",), start_s=5.0, used_s=100000.0),
        replace(job("2_7"), gpus=4, gpu_type="silver", limit_s=math.inf, nice=3, reason="Priority"),
    ]
    read, unreadable = read_queue(slurm_stub.queue_text(jobs))
    assert unreadable == 0
    assert [replace(each, name="", stdout="") for each in read] == jobs


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gold0", ("gold0",)),
        ("gpu[01-03,7],login", ("gpu01", "gpu02", "gpu03", "gpu7", "login")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("", ()),
    ],
)
def test_expands_node_lists(text: str, names: tuple[str, ...]) -> None:
    assert expand_nodes(text) == names


def test_a_tier_is_a_partition_of_equal_gpus_that_shares_no_node() -> None:
    text = "".join(
        "".join(f"{field}\x1f" for field in (*row, "up")) + "\x1e\n"
        for row in [
            ("a0", "a", "idle", "gpu:v100:4(S:0-1)"),
            ("a1", "a", "down*", "gpu:v100:4"),
            ("b0", "b", "mixed-", "gpu:a100:8,shard:16"),
            ("a0", "all*", "idle", "gpu:v100:4"),
            ("b0", "all*", "mixed", "gpu:a100:8"),
            ("c0", "cpu", "idle", "(null)"),
        ]
    )
    tiers = read_nodes(text)
    assert [(tier.name, tier.gpu, tier.gpus) for tier in tiers] == [
        ("a", "v100", 4),
        ("b", "a100", 8),
        ("all", "", 12),
    ]
    scheduler = Slurm(
        run=lambda command, timeout_s: Answer(0, text if command[0] == "sinfo" else "")
    )
    found = scheduler.read().tiers
    assert [tier.name for tier in found] == ["a", "b"]
    assert found[0].speed < found[1].speed  # by the catalogue


def test_a_cluster_knows_the_tier_of_a_job() -> None:
    cluster = Cluster(0.0, (), CLUSTER_TIERS)
    running = replace(job(1), state="RUNNING", partition="entry", nodes=("silver0",))
    assert cluster.tier_of(running) == CLUSTER_TIERS[1]
    assert cluster.tier_of(replace(job(1), partition="entry")) is None
    assert cluster.tier_of(replace(job(1), partition="gold")) == CLUSTER_TIERS[2]


def test_reads_a_comment() -> None:
    request = JobRequest.read(
        "glidepath target=-1.5 budget=1e4 tiers=a,b trace=runs/%j.csv weight=2 | x=1"
    )
    assert request == JobRequest(-1.5, 1e4, "runs/%j.csv", tiers=("a", "b"), weight=2.0)


@pytest.mark.parametrize(
    "comment", ["", "glidepathological", "x glidepath", "Glidepath", "a|glidepath"]
)
def test_only_the_first_word_opts_in(comment: str) -> None:
    assert JobRequest.read(comment) is None


@pytest.mark.parametrize(
    "word", ["target=low", "budget=-1", "budget=inf", "checkpoint=x", "typo=1", "x"]
)
def test_a_comment_that_cannot_be_read_says_so(word: str) -> None:
    request = JobRequest.read(f"glidepath {word}")
    assert request is not None
    assert word in request.problem


def test_a_comment_that_says_a_thing_twice_is_not_read() -> None:
    request = JobRequest.read("glidepath target=0.1 budget=20 target=0.2")
    assert request is not None
    assert request.problem == "target stands twice in the comment"


def test_a_note_keeps_the_request_and_replaces_the_note() -> None:
    comment = with_note("glidepath target=1 | old", "moving=gold@17 because | of\nit")
    assert comment == "glidepath target=1 | moving=gold@17 because / of it"
    assert JobRequest.read(comment) == JobRequest(target=1.0)
    assert Move.read(comment) == Move("gold", 17)
    assert Move.read("glidepath target=1 moving=gold@17") is None  # the user's words, not ours


@pytest.mark.parametrize(
    ("gres", "gpu", "gpus"),
    [
        ("gpu:2080ti:4", "2080ti", 4),
        ("gpu:3090:8(S:0-1)", "3090", 8),
        ("gpu:1g.5gb:7", "1g.5gb", 7),
        ("gpu:4", "gpu", 4),  # no type: one kind, of which nothing is known
        ("gpu:v100:no_consume:2", "v100", 2),
        ("gpu:v100:2,gpu:a100:2", "", 4),
        ("shard:16,gpu:a100:8,mps:400", "a100", 8),
    ],
)
def test_counts_the_gpus_of_a_node_whatever_their_type_begins_with(
    gres: str, gpu: str, gpus: int
) -> None:
    (tier,) = read_nodes(f"n0\x1fa\x1fidle\x1f{gres}\x1fup\x1f\x1e\n")
    assert (tier.gpu, tier.gpus) == (gpu, gpus)


# What squeue 22.05.8 printed of a running job with --gpus-per-task=1 of 2 tasks, the same waiting,
# and the two parts of a heterogeneous job that runs.
BY_TASK = "N/A\x1fN/A\x1fN/A\x1fgres:gpu:1\x1f2\x1fcpu=2,node=1,billing=2"
PART = "N/A\x1fgres:gpu:1\x1fN/A\x1fN/A\x1f1\x1fcpu=1,node=1,billing=1"


@pytest.mark.parametrize(
    ("number", "state", "asked", "expected"),
    [
        ("2", "RUNNING", BY_TASK, (2, True)),
        ("3", "PENDING", BY_TASK, (2, True)),
        ("2", "RUNNING", f"{BY_TASK},gres/gpu=4,gres/gpu:v100=4", (4, True)),
        ("3", "PENDING", f"{BY_TASK},gres/gpu=4", (2, True)),
        ("4+0", "RUNNING", PART, (1, False)),
        ("4_[3-9]", "PENDING", PART, (1, False)),
    ],
)
def test_counts_the_gpus_that_a_job_asks_for_or_holds(
    number: str, state: str, asked: str, expected: tuple[int, bool]
) -> None:
    text = slurm_stub.queue_text([replace(job(1), id=number, state=state, nodes=("gold0",))])
    usual = "gres:gpu:1\x1fN/A\x1fN/A\x1fN/A\x1f1\x1fcpu=1,mem=1G,node=1,billing=1"
    assert usual in text
    ((read,), _) = read_queue(text.replace(usual, asked))
    assert (read.gpus, read.touchable) == expected
    assert read.gpu_type == ""  # a job that named none may run on any


def test_a_list_of_nodes_that_nobody_has_is_refused_before_it_fills_the_memory() -> None:
    for text in ("a[1-999999999]", "a[1-9999]b[1-9999]"):
        with pytest.raises(ValueError, match="a"):
            expand_nodes(text)


@pytest.mark.parametrize(
    ("model", "speed"),
    [
        ("v100", 1.0),
        ("tesla_v100", 1.0),
        ("a100", 1.279),
        ("NVIDIA-A100-SXM4-40GB", 1.279),
        ("rtx_2080_ti", 0.616),
        ("2080ti", 0.616),
        ("a10", None),
        ("h100", None),
        ("nvidia_a100-sxm4-80gb", None),
        ("nvidia_a100_1g.5gb", None),
        ("1g.5gb", None),
        ("gpu", None),
    ],
)
def test_the_speed_of_a_gpu_is_that_of_its_model_or_not_known(
    model: str, speed: float | None
) -> None:
    assert _speed_of(model) == speed


def test_tiers_that_are_no_partition_with_gpus_are_refused() -> None:
    text = slurm_stub.nodes_text(CLUSTER_TIERS)
    scheduler = Slurm(
        run=lambda command, timeout_s: Answer(0, text if command[0] == "sinfo" else ""),
        tiers={"bornze": 1.0, "silver": 2.0},
    )
    with pytest.raises(InputError, match=r"^tiers: no partition 'bornze' with GPUs$"):
        scheduler.read()


def test_tiers_that_share_a_node_are_refused() -> None:
    text = slurm_stub.nodes_text([*CLUSTER_TIERS, replace(CLUSTER_TIERS[1], name="all")])
    scheduler = Slurm(
        run=lambda command, timeout_s: Answer(0, text if command[0] == "sinfo" else ""),
        tiers={"all": 1.0, "bronze": 1.0, "silver": 2.0},
    )
    with pytest.raises(InputError, match=r"^tiers: all and silver share node silver0$"):
        scheduler.read()


@pytest.mark.parametrize(
    ("state", "up"),
    [
        *((state, True) for state in ("idle", "mixed-", "allocated", "idle~", "mixed#", "mixed@")),
        *((state, False) for state in ("mixed$", "allocated$", "idle%", "mixed!", "idle!")),
        *((state, False) for state in ("mixed*", "mixed$*", "reserved", "draining", "maint")),
        *((state, False) for state in ("idle^", "mixed^", "allocated^")),
    ],
)
def test_a_node_that_will_take_no_job_soon_is_not_up_though_it_runs_some(
    state: str, up: bool
) -> None:
    (tier,) = read_nodes(f"n0\x1fa\x1f{state}\x1fgpu:v100:4\x1fup\x1f\x1e\n")
    assert (tier.gpus, tier.down) == ((4, ()) if up else (0, ("n0",)))


@pytest.mark.parametrize(
    ("state", "restarts", "number"), [("RUNNING", 0, "5"), ("PENDING", 0, ""), ("PENDING", 1, "5")]
)
def test_a_task_of_an_array_has_a_number_of_its_own_once_it_started(
    tmp_path: Path, state: str, restarts: int, number: str
) -> None:
    """As sbatch fills in %j; before, all tasks have the number of the array."""
    task = replace(job("1_3"), number="5", state=state, restarts=restarts, workdir=str(tmp_path))
    ((read,), _) = read_queue(slurm_stub.queue_text([task]))
    assert read.number == number
    request = JobRequest(trace="%j.csv")
    assert trace_path(read, request, ()) == tmp_path / f"{number or '1_3'}.csv"
    (tmp_path / "1_3.csv").touch()  # as our own TraceLog names it
    assert trace_path(read, request, ()) == tmp_path / "1_3.csv"
    (tmp_path / "5.csv").touch()
    assert trace_path(read, JobRequest(), ("%j.csv",)) == tmp_path / f"{number or '1_3'}.csv"


@pytest.mark.parametrize(
    "change",
    [
        {"eligible_s": 9e9},
        {"reason": "Dependency"},
        {"limit_s": 60.0},
        {"nice": 5},
        {"gpus": 2},
        {"gpu_type": "silver"},
        {"priority": 0},
    ],
)
def test_what_a_person_changes_before_a_command_is_sent_is_another_situation(
    change: dict[str, object],
) -> None:
    before = job(1, reason="Resources")
    assert replace(before, reason="Priority").same_situation(before)
    assert not replace(before, **change).same_situation(before)  # type: ignore[arg-type]
