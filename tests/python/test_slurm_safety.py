# SPDX-License-Identifier: Apache-2.0
"""The pilot never touches a job that does not take part."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import slurm_stub
from slurm_world import EASY, HOPELESS, TIERS, World, curve, job

from glidepath.engines.slurm import JobRequest
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
