# SPDX-License-Identifier: Apache-2.0
"""A simulated cluster behind the commands of Slurm, a pilot, and jobs for both."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from slurm_stub import SlurmStub

from glidepath.engines.slurm import (
    ClusterJob,
    ClusterTier,
    DecisionLog,
    Event,
    Pilot,
    PilotOptions,
    Round,
    Slurm,
)
from glidepath.engines.slurm.simulated import SimulatedCluster, SimulatedRun

TIERS = {"bronze": 1.0, "silver": 2.0, "gold": 4.0}
CLUSTER_TIERS = (
    ClusterTier("bronze", "bronze", ("bronze0",), 4, 4, 1.0),
    ClusterTier("silver", "silver", ("silver0",), 2, 2, 2.0),
    ClusterTier("gold", "gold", ("gold0",), 1, 1, 4.0),
)
EASY = "glidepath target=0.4 budget=2000 tiers=bronze,silver,gold checkpoint=usr1"
HOPELESS = "glidepath target=0.01 budget=2000 tiers=bronze,silver,gold checkpoint=usr1"


def curve(seed: int, floor: float = 0.2, rate: float = 0.5) -> Callable[[int], float]:
    noise = np.random.default_rng(seed).normal(size=5000) * 0.005
    return lambda step: (floor + 2 * step**-rate) * math.exp(noise[step])


def job(number: int | str, comment: str = EASY, **more: object) -> ClusterJob:
    values: dict[str, object] = {"gpus": 1, "limit_s": 4 * 3600.0, "comment": comment}
    return ClusterJob(str(number), "me", "PENDING", "bronze", **{**values, **more})  # type: ignore[arg-type]


class World:
    """A simulated cluster behind Slurm's commands, and a pilot."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.cluster = SimulatedCluster(CLUSTER_TIERS, folder / "logs")
        self.cluster.folder.mkdir(parents=True, exist_ok=True)
        self.stub = SlurmStub(self.cluster)
        self.log = folder / "decisions.db"
        self.options = {"mode": "act", "round_s": 30.0, "restart_s": 30.0, **options}
        self.pilot = self.new_pilot()

    def new_pilot(self, **more: object) -> Pilot:
        tiers = {tier.name: TIERS[tier.name] for tier in self.cluster.tiers}
        scheduler = Slurm(
            users=["me"], run=self.stub, tiers=tiers, clock=lambda: self.cluster.now_s
        )
        options = PilotOptions(**{**self.options, **more})  # type: ignore[arg-type]
        return Pilot(scheduler, self.log, options, clock=lambda: self.cluster.now_s)

    def submit(self, submitted: ClusterJob, seed: int = 0, **more: object) -> SimulatedRun:
        submitted = replace(submitted, workdir=str(self.cluster.folder))
        # A run that still falls is waited for: a hopeless one has come to rest early.
        rate = 1.5 if submitted.comment.startswith(HOPELESS) else 0.5
        values: dict[str, object] = {"loss": curve(seed, rate=rate), "budget": 2000, **more}
        run = SimulatedRun(submitted, **values)  # type: ignore[arg-type]
        self.cluster.submit(run)
        return run

    def run(self, rounds: int = 400) -> list[Round]:
        seen = []
        with self.pilot:
            while self.cluster.live and len(seen) < rounds:
                seen.append(self.pilot.round())
                self.cluster.advance(30)
        return seen

    def story(self, number: int | str) -> list[Event]:
        with DecisionLog(self.log, readonly=True) as log:
            return log.events(str(number))
