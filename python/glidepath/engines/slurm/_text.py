# SPDX-License-Identifier: Apache-2.0
"""Slurm's commands as text: the formats we ask for, and how to read what comes back.

Formats are spelled out field by field (JSON changes its shape with every release of Slurm).
Whatever a user can write (names, comments, paths) comes last in a record and cannot forge another
job: a record with a wrong number of fields, or of an id that appears twice, belongs to a job that
holds its GPUs and is never touched.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from glidepath.engines.slurm._model import UNTYPED, ClusterJob, ClusterTier

FIELD, RECORD = "\x1f", "\x1e"

QUEUE_FIELDS = (
    "JobArrayID",
    "JobID",
    "UserName",
    "State",
    "Partition",
    "Reason",
    "PriorityLong",
    "SubmitTime",
    "StartTime",
    "EligibleTime",
    "TimeLimit",
    "TimeUsed",
    "Nice",
    "NumNodes",
    "NodeList",
    "tres-per-node",
    "tres-per-job",
    "tres-per-socket",
    "tres-per-task",
    "NumTasks",
    "tres-alloc",
    "RestartCnt",
    "Comment",
    "Name",
    "WorkDir",
    "STDOUT",
)
NODE_FIELDS = ("NodeList", "Partition", "StateLong", "Gres", "Available")

_WRITTEN = QUEUE_FIELDS.index("Comment")  # from here on a user writes what stands there
_MOST_NODES = 100_000  # of one record: more is no list of nodes
_UP = ("idle", "mixed", "allocated", "completing", "planned")
# Behind the state of a node that does not respond, is in maintenance, being powered down or booted.
_TAKES_NO_JOB = frozenset("*$!%^")
_PER_CENT_OF_ONE = "mps"  # of the two kinds of parts of a GPU the one that counts in per cent


def format_of(fields: Sequence[str]) -> str:
    """Write the value of --Format: every field in full, then a separator that nobody types."""
    return ",".join(f"{name}:{FIELD}" for name in fields) + RECORD


def _records(text: str, width: int) -> tuple[list[list[str]], list[list[str]]]:
    """Split into records of `width` fields, and those that were not."""
    rows, bad = [], []
    for record in text.split(RECORD):
        fields = record.lstrip("\n").split(FIELD)
        if len(fields) == width + 1 and not fields[-1]:
            rows.append(fields[:-1])
        elif record.strip():
            bad.append(fields)
    return rows, bad


def _seconds(text: str) -> float:
    """Read [days-][hours:]minutes:seconds; infinite for UNLIMITED."""
    days, dash, clock = text.rpartition("-")
    if not re.fullmatch(r"\d+(:\d+){1,2}", clock) or (dash and not days.isdigit()):
        return math.inf if text in ("UNLIMITED", "NOT_SET", "Partition_Limit") else math.nan
    total = 0
    for part in clock.split(":"):
        total = total * 60 + int(part)
    return float(total + 86400 * int(days or 0))


def _epoch(text: str) -> float:
    return float(text) if text.isdigit() else 0.0  # "N/A" of a job that has not started


def _gpus(text: str, gres: str = "gpu") -> dict[str, int]:
    """Count the GPUs of `gres:gpu:silver:2`, `gpu:2080ti:4(S:0-1)`, `gres/gpu=2` by their type."""
    counts: dict[str, int] = {}
    for item in re.sub(r"\([^)]*\)", "", text).split(","):
        name, *fields = re.split("[:/=]", re.sub("^gres[:/]", "", item.strip()))
        if name != gres:
            continue
        count = int(fields.pop()) if fields and re.fullmatch("[0-9]+", fields[-1]) else 1
        kind = fields[0] if fields else ""
        counts[kind] = counts.get(kind, 0) + count
    return counts


def _asked(f: dict[str, str]) -> tuple[int, str]:
    """Count the GPUs of a job: those that it holds, else those that it asks for; and their type."""
    per_job, per_node = _gpus(f["tres-per-job"]), _gpus(f["tres-per-node"])
    per_task, held = _gpus(f["tres-per-task"]), _gpus(f["tres-alloc"])
    # As requested, not as allocated: a job that named no type may run on any.
    kinds = [kind for part in (per_job, per_node, per_task) for kind in part if kind]
    kind = kinds[0] if kinds else ""
    if f["State"] != "PENDING" and held:  # with its types a GPU is listed twice
        return held.get("") or sum(held.values()), kind
    nodes = max(1, _whole(f["NumNodes"]))
    if per_job:
        return sum(per_job.values()), kind
    if per_node:
        return sum(per_node.values()) * nodes, kind
    return sum(per_task.values()) * max(nodes, _whole(f["NumTasks"])), kind


def _by_socket(f: dict[str, str]) -> bool:
    """Whether a job asks for GPUs by socket alone, of which nothing says how many it has."""
    return _asked(f)[0] == 0 and bool(_gpus(f["tres-per-socket"]))


def _shared(f: dict[str, str]) -> int:
    """Count the GPUs of a node of which a job may hold parts: none of them is free for another."""
    most = 0
    for gres in ("shard", _PER_CENT_OF_ONE):
        for name in ("tres-per-job", "tres-per-node", "tres-per-socket", "tres-per-task"):
            # Each part may be of another GPU, but a share of MPS is of one.
            each = sum(_gpus(f[name], gres).values())
            each = min(each, 1) if gres == _PER_CENT_OF_ONE else each
            most = max(most, each * (_whole(f["NumTasks"]) or 1 if name == "tres-per-task" else 1))
    return most


def _whole(text: str) -> int:
    """Read `2`, or the lower end of `2-4`; 0 for what is no number."""
    first = text.partition("-")[0]
    return int(first) if re.fullmatch("[0-9]+", first) else 0


def expand_nodes(text: str) -> tuple[str, ...]:
    """Write out `gpu[01-03,7],login` as names; ValueError where it is no list of nodes."""
    names: list[str] = []
    for part in re.findall(r"[^,\[]+(?:\[[^\]]*\][^,\[]*)*|\[[^\]]*\]", text):
        done = [""]
        for piece, ranges in re.findall(r"([^\[]+)|\[([^\]]*)\]", part):
            if piece:
                done = [name + piece for name in done]
                continue
            ends = []
            for item in ranges.split(","):
                first, _, last = item.partition("-")
                if last:
                    numbers = range(int(first), int(last) + 1)
                    if len(numbers) > _MOST_NODES:
                        raise ValueError(text)
                    ends += [str(number).zfill(len(first)) for number in numbers]
                else:
                    ends.append(first)
            if len(done) * len(ends) > _MOST_NODES:
                raise ValueError(text)
            done = [name + end for name in done for end in ends]
        names += done
    return tuple(names)


def _text(f: dict[str, str], name: str) -> str:
    return "" if f[name] in ("(null)", "N/A", "None") else f[name]


def _held(f: dict[str, str]) -> dict[str, Any]:
    """Read whose a job is and which GPUs it holds: what stands before any text of a user."""
    gpus, kind = _asked(f)
    return {
        "id": f["JobArrayID"],
        "user": f["UserName"],
        "state": f["State"],
        "partition": f["Partition"],
        "nodes": expand_nodes(_text(f, "NodeList")),
        "gpus": gpus,
        "gpu_type": kind,
        "gpus_by_socket": _by_socket(f),
        "gpus_shared": _shared(f),
    }


def _job(f: dict[str, str]) -> ClusterJob:
    used = _seconds(f["TimeUsed"])
    limit = _seconds(f["TimeLimit"])
    if math.isnan(limit):
        raise ValueError(f["TimeLimit"])
    restarts = int(f["RestartCnt"])
    # All tasks of an array that have not started share its number.
    alone = f["State"] != "PENDING" or restarts > 0
    return ClusterJob(
        **_held(f),
        number=f["JobID"] if "_" in f["JobArrayID"] and alone else "",
        name=_text(f, "Name"),
        reason=_text(f, "Reason"),
        submit_s=_epoch(f["SubmitTime"]),
        start_s=_epoch(f["StartTime"]),
        eligible_s=_epoch(f["EligibleTime"]),
        limit_s=limit,
        used_s=0.0 if math.isnan(used) else used,
        nice=int(f["Nice"]),
        restarts=restarts,
        priority=int(f["PriorityLong"]),
        comment=_text(f, "Comment"),
        workdir=_text(f, "WorkDir"),
        stdout=_text(f, "STDOUT"),
    )


def _untouchable(row: Sequence[str]) -> ClusterJob | None:
    """Read what a record says for certain of the GPUs that its job holds."""
    if len(row) < _WRITTEN:
        return None
    try:
        held = _held(dict(zip(QUEUE_FIELDS[:_WRITTEN], row, strict=False)))
    except ValueError:
        return None
    return ClusterJob(**held, touchable=False)


def read_queue(text: str) -> tuple[list[ClusterJob], int]:
    """Read squeue's answer: the jobs, and how many records could not be understood.

    A job that is only known to hold GPUs is not touchable.
    """
    rows, bad_rows = _records(text, len(QUEUE_FIELDS))
    jobs = []
    for row in rows:
        try:
            jobs.append(_job(dict(zip(QUEUE_FIELDS, row, strict=True))))
        except ValueError:
            bad_rows.append(row)
    partly = [job for row in bad_rows if (job := _untouchable(row)) is not None]
    seen = Counter(job.id for job in jobs + partly)
    # Plain jobs and array tasks only: parts of a heterogeneous job ("12+0") move together or not
    # at all, and a range of tasks ("12_[3-9]") is not one job.
    whole = [job for job in jobs if re.fullmatch(r"\d+(_\d+)?", job.id) and seen[job.id] == 1]
    known = {job.id for job in whole}
    holders = {
        (job.id, job.nodes): replace(job, touchable=False)
        for job in [*jobs, *partly]
        if job.id not in known
    }
    return whole + list(holders.values()), len(bad_rows) + len(jobs) - len(whole)


def read_nodes(text: str) -> list[ClusterTier]:
    """Read sinfo's answer: each partition with GPUs, in its order."""
    rows, _ = _records(text, len(NODE_FIELDS))
    tiers: dict[str, dict[str, tuple[int, str, bool]]] = {}
    for node, partition, state, gres, available in rows:
        gpus = _gpus(gres)
        count = sum(gpus.values())
        if count:
            up = state.startswith(_UP) and _TAKES_NO_JOB.isdisjoint(state) and available == "up"
            kind = (next(iter(gpus)) or UNTYPED) if len(gpus) == 1 else ""
            for name in expand_nodes(node):
                tiers.setdefault(partition.rstrip("*"), {})[name] = (count, kind, up)
    found = []
    for partition, nodes in tiers.items():
        kinds = sorted({kind for _, kind, _ in nodes.values()})
        found.append(
            ClusterTier(
                name=partition,
                gpu=kinds[0] if len(kinds) == 1 else "",
                nodes=tuple(sorted(nodes)),
                gpus=sum(count for count, _, up in nodes.values() if up),
                gpus_per_node=max(count for count, _, _ in nodes.values()),
                down=tuple(sorted(name for name, (_, _, up) in nodes.items() if not up)),
            )
        )
    return found
