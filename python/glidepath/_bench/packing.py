# SPDX-License-Identifier: Apache-2.0
"""What putting two jobs on the same GPUs is worth: Gavel's linear program beside the planner.

Throughput is counted as there: each job's rate over its rate with the same share of every type.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from glidepath._results import require
from glidepath._simulate import simulate
from glidepath._workload import Workload


class Queue:
    """All jobs at once of a workload from `Workload.from_gavel` with ``sharing=True``."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.jobs = workload.jobs
        self.capacity = np.array([tier.gpus for tier in workload.tiers], float)
        rates = self.jobs["steps_per_s"]
        self.even = rates @ self.capacity / self.capacity.sum()
        self.speed = rates / self.even[:, None]
        self.pairs: dict[tuple[str, str, int], tuple[float, float]] = {}
        for pair in workload.pairs:
            speeds = pair.first_speed, pair.second_speed
            self.pairs[pair.first, pair.second, pair.tier] = speeds
            self.pairs[pair.second, pair.first, pair.tier] = speeds[::-1]

    def gavel(self, *, packed: bool) -> float:
        """Throughput under the largest least throughput (`MaxMinFairnessPolicyWithPacking`)."""
        gang, classes = self.jobs["gpus"], self.jobs["job_class"]
        jobs, tiers = self.speed.shape
        uses: list[tuple[tuple[int, ...], int, tuple[float, ...]]] = [
            ((i,), t, (self.speed[i, t],)) for i in range(jobs) for t in range(tiers)
        ]
        for i, j in combinations(range(jobs), 2) if packed else ():
            for t in range(tiers):
                shares = self.pairs.get((classes[i], classes[j], t))
                if gang[i] == gang[j] and shares is not None and min(shares) > 0:
                    both = self.speed[i, t] * shares[0], self.speed[j, t] * shares[1]
                    uses.append(((i, j), t, both))
        # Rows: least - own throughput <= 0, own time <= 1, GPUs of a tier; the last column: least.
        table = require("scipy.sparse").lil_matrix((2 * jobs + tiers, len(uses) + 1))
        for k, (who, t, speeds) in enumerate(uses):
            for i, speed in zip(who, speeds, strict=True):
                table[i, k] = -speed * gang[i]
                table[jobs + i, k] = 1
            table[2 * jobs + t, k] = gang[who[0]]
        table[:jobs, len(uses)] = 1
        limits = np.concatenate([np.zeros(jobs), np.ones(jobs), self.capacity])
        cost = np.zeros(len(uses) + 1)
        cost[-1] = -1
        found = require("scipy.optimize").linprog(cost, A_ub=table.tocsr(), b_ub=limits)
        return float(sum(x * sum(use[2]) for x, use in zip(found.x, uses, strict=False)))

    def planned(self, *, packed: bool) -> float:
        """Throughput of the first plan of `best_value`, where all jobs are equally long."""
        columns: dict[str, Any] = {
            name: self.jobs[name] for name in ("job", "gpus", "steps_per_s", "job_class")
        }
        columns["submit_s"] = np.zeros(len(self.even))
        columns["budget_steps"] = 1e5 * self.even
        equal = Workload(self.workload.tiers, columns, pairs=self.workload.pairs)
        spans = simulate(equal, "best_value", sharing="mps" if packed else "exclusive").spans
        place = {job: i for i, job in enumerate(self.jobs["job"])}
        classes = self.jobs["job_class"]
        running: dict[int, float] = {}
        at_first = spans["start_s"] == 0
        for job, t, partner in zip(
            *(spans[name][at_first] for name in ("job", "tier", "partner")), strict=True
        ):
            share = 1.0
            if partner >= 0:
                share = self.pairs[classes[place[job]], classes[place[partner]], t][0]
            running.setdefault(job, self.speed[place[job], t] * share)
        return float(sum(running.values()))
