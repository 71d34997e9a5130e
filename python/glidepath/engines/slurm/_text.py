# SPDX-License-Identifier: Apache-2.0
"""Slurm's commands as text: the formats we ask for, and how to read what comes back.

Formats are spelled out field by field (JSON changes its shape with every release of Slurm).
Whatever a user can write (names, comments, paths) comes last in a record and cannot forge another
job: records with a wrong number of fields and all records of an id that appears twice are dropped.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from glidepath.engines.slurm._model import ClusterJob, ClusterTier

FIELD, RECORD = "\x1f", "\x1e"

QUEUE_FIELDS = (
    "JobArrayID",
    "UserName",
    "State",
    "Partition",
    "Reason",
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
    "RestartCnt",
    "Comment",
    "Name",
    "WorkDir",
    "STDOUT",
)
NODE_FIELDS = ("NodeList", "Partition", "StateLong", "Gres")

_GPU = re.compile(r"(?:^|,)(?:gres[:/])?gpu(?:[:=]([A-Za-z_][^:=,(]*))?(?:[:=](\d+))?(?=[,(]|$)")
_UP = ("idle", "mixed", "allocated", "completing", "planned", "reserved")


def format_of(fields: Sequence[str]) -> str:
    """Write the value of --Format: every field in full, then a separator that nobody types."""
    return ",".join(f"{name}:{FIELD}" for name in fields) + RECORD


def _records(text: str, width: int) -> tuple[list[list[str]], int]:
    """Split into records of `width` fields; the number of those that were not."""
    rows, bad = [], 0
    for record in text.split(RECORD):
        fields = record.lstrip("\n").split(FIELD)
        if len(fields) == width + 1 and not fields[-1]:
            rows.append(fields[:-1])
        elif record.strip():
            bad += 1
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


def _gpus(text: str) -> tuple[int, str]:
    """Count the GPUs of `gres:gpu:silver:2`, `gpu:2`, `gres/gpu=2`, and name their type."""
    count, kind = 0, ""
    for match in _GPU.finditer(text):
        count += int(match[2] or 1)
        kind = match[1] or kind
    return count, kind


def expand_nodes(text: str) -> tuple[str, ...]:
    """Write out `gpu[01-03,7],login` as names."""
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
                    ends += [str(number).zfill(len(first)) for number in numbers]
                else:
                    ends.append(first)
            done = [name + end for name in done for end in ends]
        names += done
    return tuple(names)


def _job(f: dict[str, str]) -> ClusterJob:
    def text(name: str) -> str:
        return "" if f[name] in ("(null)", "N/A", "None") else f[name]

    nodes = expand_nodes(text("NodeList"))
    count = int(f["NumNodes"].partition("-")[0])
    per_node, kind = _gpus(f["tres-per-node"])
    per_job, job_kind = _gpus(f["tres-per-job"])
    used = _seconds(f["TimeUsed"])
    limit = _seconds(f["TimeLimit"])
    if math.isnan(limit):
        raise ValueError(f["TimeLimit"])
    return ClusterJob(
        id=f["JobArrayID"],
        user=f["UserName"],
        state=f["State"],
        partition=f["Partition"],
        name=text("Name"),
        reason=text("Reason"),
        submit_s=_epoch(f["SubmitTime"]),
        start_s=_epoch(f["StartTime"]),
        eligible_s=_epoch(f["EligibleTime"]),
        limit_s=limit,
        used_s=0.0 if math.isnan(used) else used,
        nice=int(f["Nice"]),
        nodes=nodes,
        gpus=per_job or per_node * max(1, count),
        gpu_type=job_kind or kind,
        restarts=int(f["RestartCnt"]),
        comment=text("Comment"),
        workdir=text("WorkDir"),
        stdout=text("STDOUT"),
    )


def read_queue(text: str) -> tuple[list[ClusterJob], int]:
    """Read squeue's answer: the jobs, and how many records could not be understood."""
    rows, bad = _records(text, len(QUEUE_FIELDS))
    jobs = []
    for row in rows:
        try:
            jobs.append(_job(dict(zip(QUEUE_FIELDS, row, strict=True))))
        except ValueError:
            bad += 1
    seen = Counter(job.id for job in jobs)
    # Plain jobs and array tasks only: parts of a heterogeneous job ("12+0") move together or not
    # at all, and a range of tasks ("12_[3-9]") is not one job.
    whole = [job for job in jobs if re.fullmatch(r"\d+(_\d+)?", job.id) and seen[job.id] == 1]
    return whole, bad + len(jobs) - len(whole)


def read_nodes(text: str) -> list[ClusterTier]:
    """Read sinfo's answer: each partition with GPUs, in its order."""
    rows, _ = _records(text, len(NODE_FIELDS))
    tiers: dict[str, dict[str, tuple[int, str, bool]]] = {}
    for node, partition, state, gres in rows:
        count, kind = _gpus(gres)
        if count:
            up = state.rstrip("*~#!%$@^-+").startswith(_UP) and not state.endswith("*")
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
            )
        )
    return found
