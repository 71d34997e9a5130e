# SPDX-License-Identifier: Apache-2.0
"""Text that Slurm's commands print, and comments of jobs, as the pilot reads them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import slurm_stub
from slurm_world import CLUSTER_TIERS, EASY, job

from glidepath.engines.slurm import Answer, Cluster, JobRequest, Slurm
from glidepath.engines.slurm._model import Move, with_note
from glidepath.engines.slurm._text import expand_nodes, read_nodes, read_queue

# What squeue 22.05.8 printed for: a held job, a task of an array, a job with a begin time and a
# newline in its comment, and a running job with a field separator in its name.
RECORDED = (
    "4\x1froot\x1fPENDING\x1fgold\x1fJobHeldUser\x1f1795252952\x1fN/A\x1fN/A\x1f1:00:00\x1f0:00"
    "\x1f0\x1f1\x1f\x1fgres:gpu:1\x1fN/A\x1f0\x1f(null)\x1fj.sh\x1f/tmp\x1f/tmp/slurm-4.out\x1f\x1e\n"
    "2_3\x1froot\x1fPENDING\x1ftrain\x1fJobArrayTaskLimit\x1f1795252952\x1fN/A\x1fN/A\x1f5-00:01:00"
    "\x1f0:00\x1f0\x1f1\x1f\x1fgres:gpu:silver:2\x1fN/A\x1f0\x1f(null)\x1farr\x1f/tmp"
    "\x1f/tmp/slurm-2.out\x1f\x1e\n"
    "3\x1froot\x1fPENDING\x1ftrain\x1fBeginTime\x1f1795252952\x1f1795256552\x1f1795256552\x1f1:00:00"
    "\x1f0:00\x1f100\x1f1\x1f\x1fgres:gpu:1\x1fN/A\x1f0\x1fglidepath a\nb\x1fj.sh\x1f/tmp"
    "\x1f/tmp/slurm-3.out\x1f\x1e\n"
    "1\x1froot\x1fRUNNING\x1ftrain\x1fNone\x1f1795252952\x1f1795252953\x1f1795252952\x1fUNLIMITED"
    "\x1f1-00:00:01\x1f0\x1f1\x1fgold0\x1fgres:gpu:1\x1fN/A\x1f2\x1fglidepath target=0.1\x1fodd"
    "\x1f na|me\x1f/tmp\x1f/tmp/slurm-1.out\x1f\x1e\n"
)


def test_reads_what_a_real_squeue_printed() -> None:
    jobs, unreadable = read_queue(RECORDED)
    held, task, later = jobs
    assert (held.id, held.held, held.limit_s, held.gpus) == ("4", True, 3600.0, 1)
    assert (task.id, task.limit_s, task.gpus, task.gpu_type) == ("2_3", 432060.0, 2, "silver")
    assert (later.eligible_s, later.nice, later.comment) == (1795256552.0, 100, "glidepath a\nb")
    assert unreadable == 1  # a separator in its name: left alone rather than guessed at


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
    assert [each.id for each in jobs] == ["8"]
    assert unreadable == 2


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
        "".join(f"{field}\x1f" for field in row) + "\x1e\n"
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


def test_a_note_keeps_the_request_and_replaces_the_note() -> None:
    comment = with_note("glidepath target=1 | old", "moving=gold@17 because | of\nit")
    assert comment == "glidepath target=1 | moving=gold@17 because / of it"
    assert JobRequest.read(comment) == JobRequest(target=1.0)
    assert Move.read(comment) == Move("gold", 17)
    assert Move.read("glidepath target=1 moving=gold@17") is None  # the user's words, not ours
