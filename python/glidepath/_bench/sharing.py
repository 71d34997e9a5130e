# SPDX-License-Identifier: Apache-2.0
"""Speeds that MISO measured of jobs on parts of an A100, and how far laws of them are off.

Two tables of Li, Patel, Samsi, Gadepalli and Tiwari (SoCC 2022): the time of a step of 16 jobs on
each MIG slice, with what monitors read of each on the whole card; and mixes of seven processes
under MPS, whose step times are known with 100 and 14 % of the threads for each, divided by the
largest. With 14 % no process can use the multiprocessors of another, so that the first over the
second, divided by the same where six small fillers are the company, is the slowdown by a second
job in place of a filler. That the time with 14 % does not change is an assumption.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import glidepath as gp
from glidepath._columns import Floats
from glidepath._csv_rows import csv_rows

Kind = tuple[str, int]  # a model and its batch size
# Speeds of two jobs on one GPU from their profiles, each as a share of its own alone.
PairRule = Callable[[gp.Profile, gp.Profile], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Pair:
    """A job beside another under MPS."""

    first: Kind
    second: Kind
    speed: float  # of the first, as a share of its speed alone


def profiles(folder: Path) -> dict[Kind, gp.Profile]:
    """What monitors read of each job alone on the whole card."""
    return {
        (row["model"], int(row["batch"])): gp.Profile(
            float(row["sm_util_full_gpu_pct"]) / 100.0,
            memory_activity=float(row["mem_util_full_gpu_pct"]) / 100.0,
            mean_watts=float(row["power_full_gpu_w"]),
            step_seconds=float(row["step_seconds"]),
        )
        for row in csv_rows(folder / "mig_step_times.csv.gz")
        if row["profile"] == "7g.40gb"
    }


def halves(folder: Path) -> Iterator[tuple[Kind, float]]:
    """Speeds on a slice of 3/7 and on one of 4/7, the two that make a card."""
    seconds = {
        (row["model"], int(row["batch"]), row["profile"]): float(row["step_seconds"])
        for row in csv_rows(folder / "mig_step_times.csv.gz")
        if row["measured"] == "1"
    }
    for (model, batch, profile), taken in seconds.items():
        if profile in ("3g.20gb", "4g.20gb"):
            yield (model, batch), seconds[model, batch, "7g.40gb"] / taken


def mixes(folder: Path) -> dict[int, list[tuple[list[Kind], int, float]]]:
    """Jobs, one of them and its measured speed, by how many jobs were together under MPS."""
    jobs: dict[str, list[tuple[Kind, float]]] = defaultdict(list)
    for row in csv_rows(folder / "mps_mixes.csv.gz"):
        if row["model"] != "dummy":
            ratio = float(row["rel_mps100"]) / float(row["rel_mps14"])
            jobs[row["mix"]].append(((row["model"], int(row["batch"])), ratio))
    alone: dict[Kind, list[float]] = defaultdict(list)
    for together in jobs.values():
        if len(together) == 1:
            alone[together[0][0]].append(together[0][1])
    found: dict[int, list[tuple[list[Kind], int, float]]] = defaultdict(list)
    for together in jobs.values():
        kinds = [kind for kind, _ in together]
        for i, (kind, ratio) in enumerate(together):
            if kind in alone and len(together) > 1:
                speed = float(np.median(alone[kind])) / ratio
                found[len(together)].append((kinds, i, speed))
    return found


def pairs(folder: Path) -> list[Pair]:
    """Every two jobs that were together with five fillers, both ways round."""
    return [Pair(kinds[i], kinds[1 - i], speed) for kinds, i, speed in mixes(folder)[2]]


def activities(profile: gp.Profile, *, memory: bool = True) -> gp.Profile:
    """What a profile says of activities alone; without `memory` of the multiprocessors'."""
    return gp.Profile(
        profile.sm_activity, memory_activity=profile.memory_activity if memory else -1.0
    )


def planned(sharing: str, *, memory: bool = True) -> PairRule:
    """The law that plans rest on; without `memory` only the multiprocessors' activity is known."""

    def law(first: gp.Profile, second: gp.Profile) -> tuple[float, float]:
        return gp.shared_speeds(
            activities(first, memory=memory), activities(second, memory=memory), sharing
        )

    return law


def pair_errors(folder: Path, law: PairRule) -> Floats:
    """Absolute errors of the speeds of pairs under MPS."""
    alone = profiles(folder)
    return np.array([abs(law(alone[p.first], alone[p.second])[0] - p.speed) for p in pairs(folder)])


def half_errors(folder: Path, law: PairRule) -> Floats:
    """Absolute errors of the speeds on a half of a card."""
    alone = profiles(folder)
    return np.array([abs(law(alone[k], alone[k])[0] - speed) for k, speed in halves(folder)])
