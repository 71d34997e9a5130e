# SPDX-License-Identifier: Apache-2.0
"""Speeds on MIG slices of an A100 and of mixes under MPS, predicted and as MISO measured them.

The tables are those of `glidepath._bench.sharing`. A law with a constant is judged on the models
that it was not fitted to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import glidepath as gp
from glidepath._bench.sharing import Kind, activities, mixes, profiles
from glidepath._columns import Floats
from glidepath._csv_rows import csv_rows

NAMES = [each.name for each in gp.slices()]


def card() -> gp.Tier:
    """Give the card that was measured."""
    return gp.Tier.of("card", "A100 PCIe 40GB", 1, 1)


def measured(folder: Path) -> dict[Kind, Floats]:
    """Speed of each job on each slice, a share of that on the whole card; 0 = did not run."""
    seconds: dict[Kind, Floats] = defaultdict(lambda: np.full(len(NAMES), np.inf))
    for row in csv_rows(folder / "mig_step_times.csv.gz"):
        if row["measured"] == "1":
            kind = row["model"], int(row["batch"])
            seconds[kind][NAMES.index(row["profile"][:2])] = float(row["step_seconds"])
    return {kind: taken[0] / taken for kind, taken in seconds.items()}


def predicted(alone: Mapping[Kind, gp.Profile], *, watts: bool = True) -> dict[Kind, Floats]:
    """The speeds that a plan has without a measurement, from power or from activities alone."""
    jobs = [profile if watts else activities(profile) for profile in alone.values()]
    return dict(zip(alone, gp.slice_speeds(jobs, card()), strict=True))


def errors(guess: Mapping[Kind, Floats], truth: Mapping[Kind, Floats]) -> dict[Kind, Floats]:
    """Relative errors of the step times of each job, on the slices it ran on but the whole card."""
    return {
        kind: np.abs(speeds[ran] / guess[kind][ran] - 1.0)
        for kind, speeds in truth.items()
        for ran in [np.flatnonzero(speeds)[1:]]
    }


def scaled(guess: Floats, factor: float) -> Floats:
    """The law with its constant times a factor: slowdown - 1 is proportional to it."""
    return 1.0 / (1.0 + factor * (1.0 / guess - 1.0))


def left_out(guess: Mapping[Kind, Floats], truth: Mapping[Kind, Floats]) -> dict[Kind, Floats]:
    """Speeds by the law whose constant was fitted to the other models, mean relative error."""
    found: dict[Kind, Floats] = {}
    for model in {kind[0] for kind in truth}:
        others = {kind: truth[kind] for kind in truth if kind[0] != model}

        def miss(factor: float, others: Mapping[Kind, Floats] = others) -> float:
            tried = {kind: scaled(guess[kind], factor) for kind in others}
            return float(np.concatenate(list(errors(tried, others).values())).mean())

        best = min(np.geomspace(0.2, 5.0, 1001), key=miss)
        found |= {kind: scaled(guess[kind], best) for kind in truth if kind[0] == model}
    return found


def throughput_ratios(
    guess: Mapping[Kind, Floats], truth: Mapping[Kind, Floats], count: int, draws: int
) -> Floats:
    """Throughput of the partitions that predictions choose over that of the best ones.

    For random mixes of `count` jobs that some partition can run at once; on which slices a job runs
    at all is known. Without a choice, for equal jobs on equal slices, it is 1.
    """
    random, kinds = np.random.default_rng(count), sorted(truth)
    found = []
    for _ in range(draws):
        jobs: Sequence[Kind] = [kinds[i] for i in random.integers(len(kinds), size=count)]
        actual = np.array([truth[kind] for kind in jobs])
        best = gp.best_partition(actual)
        if sum(job >= 0 for job in best.jobs) < count:
            continue
        chosen = gp.best_partition(np.where(actual > 0, [guess[kind] for kind in jobs], 0.0))
        got = sum(
            actual[job, NAMES.index(name)]
            for job, name in zip(chosen.jobs, chosen.slices, strict=True)
            if job >= 0
        )
        found.append(got / best.throughput)
    return np.array(found)


def mix_errors(folder: Path, count: int) -> Floats:
    """Absolute errors of the speeds of `count` jobs together under MPS."""
    alone = {kind: activities(profile) for kind, profile in profiles(folder).items()}
    return np.array(
        [
            abs(gp.mix_speeds([alone[kind] for kind in kinds], "mps", card())[i] - speed)
            for kinds, i, speed in mixes(folder)[count]
        ]
    )
