# SPDX-License-Identifier: Apache-2.0
"""Traces and throughputs of Gavel, its own files or tables of them, as columns of a workload."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from glidepath._core import IoError, PairSpeeds
from glidepath._csv_rows import read_rows
from glidepath.readers._formats import refusing
from glidepath.readers._series import read_whole

_RATE_COLUMNS = (
    *("gpu_type", "consolidated", "model", "batch", "gpus"),
    *("other_model", "other_batch", "other_gpus", "steps_per_s", "other_steps_per_s"),
)
_JOB = re.compile(r"\('(.+?)(?: \(batch size (\d+)\))?', (\d+)\)")


def read_gavel(
    path: str | os.PathLike[str],
    throughputs: str | os.PathLike[str],
    tiers: Sequence[str],
    *,
    sharing: bool,
) -> tuple[dict[str, list[Any]], list[PairSpeeds]]:
    """Read the jobs of a trace, as `Workload` takes them, and with `sharing` their pairs.

    `tiers` are the types of GPUs. IoError names file and line: what cannot be read, a job that has
    no rate on any of them.
    """
    with refusing(os.fspath(throughputs)):
        rows = _throughputs(throughputs)
        key = ("gpu_type", "model", "batch", "gpus")
        alone = (row for row in rows if not row["other_model"])
        rates = {tuple(row[k] for k in key): _number(row, "steps_per_s") for row in alone}
    jobs: dict[str, list[Any]] = {
        "job": [], "submit_s": [], "gpus": [], "budget_steps": [], "steps_per_s": [],
        "job_class": [],
    }  # fmt: skip
    with refusing(os.fspath(path)):
        for row in _jobs(path):
            kind = (row["model"], row["batch"], row["gpus"])
            speed = [rates.get((gpu, *kind), 0.0) for gpu in tiers]
            if not any(speed):
                raise IoError(f"{row['where']}: job {row['job']} has no rate in the throughputs")
            jobs["job"].append(_whole(row, "job"))
            jobs["submit_s"].append(_number(row, "submit_s"))
            jobs["gpus"].append(_whole(row, "gpus"))
            jobs["budget_steps"].append(_number(row, "total_steps"))
            jobs["steps_per_s"].append(speed)
            jobs["job_class"].append(" ".join(kind))
        if not jobs["job"]:
            raise IoError(f"{os.fspath(path)}: no jobs")
    return jobs, _pairs(rows, rates, tiers, set(jobs["job_class"])) if sharing else []


def _jobs(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Rows of a trace: ours, or Gavel's ten columns without a header, between tabs."""
    if not os.fspath(path).endswith(".trace"):
        return _placed_rows(path, "job", "submit_s", "gpus", "model", "batch", "total_steps")
    lines = read_whole(Path(path)).decode().splitlines()
    rows = []
    for number, line in enumerate(lines):
        where = f"{os.fspath(path)}:{number + 1}"
        fields = line.split("\t")
        found = re.fullmatch(r"(.+?)(?: \(batch size (\d+)\))?", fields[0])
        if len(fields) < 10 or found is None:
            raise IoError(f"{where}: expected ten fields between tabs")
        rows.append({
            "where": where,
            "job": str(number), "submit_s": fields[-1], "gpus": fields[6], "total_steps": fields[5],
            "model": found[1], "batch": found[2] or "",
        })  # fmt: skip
    return rows


def _throughputs(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Rows of a table of throughputs, of gangs on one server."""
    if not os.fspath(path).endswith(".json"):
        rows = _placed_rows(path, *_RATE_COLUMNS)
        return [row for row in rows if row["consolidated"] == "1"]
    table = json.loads(read_whole(Path(path)))

    def kind(key: str) -> tuple[str, str, str]:
        found = _JOB.fullmatch(key)
        if found is None:
            raise IoError(f"{os.fspath(path)}: '{key:.80}' is not a job such as ('A3C', 1)")
        return found[1], found[2] or "", found[3]

    rows = []
    for gpu, jobs in table.items():
        if gpu.endswith("_unconsolidated"):
            continue
        for key, partners in jobs.items():
            model, batch, gpus = kind(key)
            for partner, rate in partners.items():
                other = ("", "", "") if partner == "null" else kind(partner)
                own, others = (rate, "") if partner == "null" else rate
                rows.append({
                    "where": f"{os.fspath(path)}: '{gpu}', '{key}'",
                    "gpu_type": gpu, "model": model, "batch": batch, "gpus": gpus,
                    "other_model": other[0], "other_batch": other[1], "other_gpus": other[2],
                    "steps_per_s": own, "other_steps_per_s": others,
                })  # fmt: skip
    return rows


def _pairs(
    rows: list[dict[str, Any]],
    rates: dict[tuple[str, str, str, str], float],
    tiers: Sequence[str],
    classes: set[str],
) -> list[PairSpeeds]:
    """Speeds of pairs of equal gangs as shares of each alone, where both are classes of ours."""
    pairs = []
    for row in rows:
        if (
            not row["other_model"]
            or row["gpu_type"] not in tiers
            or row["gpus"] != row["other_gpus"]
        ):
            continue
        first = (row["model"], row["batch"], row["gpus"])
        second = (row["other_model"], row["other_batch"], row["other_gpus"])
        alone = [rates.get((row["gpu_type"], *kind), 0.0) for kind in (first, second)]
        names = " ".join(first), " ".join(second)
        if not all(alone) or not classes.issuperset(names):
            continue
        speeds = (
            _number(row, "steps_per_s") / alone[0],
            _number(row, "other_steps_per_s") / alone[1],
        )
        pairs.append(PairSpeeds(*names, tiers.index(row["gpu_type"]), *speeds))
    return pairs


def _placed_rows(path: str | os.PathLike[str], *needed: str) -> list[dict[str, str]]:
    """Rows of a CSV file that know, as ``where``, their place in it."""
    _, rows = read_rows(path, *needed)
    return [row | {"where": f"{os.fspath(path)}:{line}"} for line, row in rows]


def _number(row: Mapping[str, Any], column: str) -> float:
    try:
        number = float(row[column])
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise IoError(f"{row['where']}: {column} is {row[column]!r:.80}, expected a number")
    return number


def _whole(row: Mapping[str, str], column: str) -> int:
    try:
        return int(row[column])
    except ValueError:
        raise IoError(
            f"{row['where']}: {column} is {row[column]!r:.80}, expected a whole number"
        ) from None
