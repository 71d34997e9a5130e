# SPDX-License-Identifier: Apache-2.0
"""Times a round of the Slurm pilot: 200 jobs of a real Slurm, and 5 000 recorded ones.

python bench/slurm_round.py        (needs slurmctld, slurmd, slurm-client and munge)
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from glidepath.engines.slurm import (
    Answer,
    ClusterJob,
    ClusterTier,
    Pilot,
    PilotOptions,
    Round,
    Slurm,
)

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS / "slurm"), str(TESTS / "python")]
import onebox  # noqa: E402
import slurm_stub  # noqa: E402

SPEEDS = {"bronze": 1.0, "silver": 2.0, "gold": 4.0}
COMMENT = "glidepath target=0.3 budget=2000 tiers=bronze,silver,gold checkpoint=usr1"


def write_log(folder: Path, job: str, seed: int) -> None:
    """Write 200 points of a power law with 1 % noise."""
    steps = np.arange(1, 201)
    noise = np.random.default_rng(seed).normal(size=200) * 0.01
    losses = (0.2 + 2 * steps**-0.5) * np.exp(noise)
    rows = (f"{step},{loss:.6g},{step}\n" for step, loss in zip(steps, losses, strict=True))
    (folder / f"glidepath-{job}.csv").write_text("step,loss,seconds\n" + "".join(rows))


def report(what: str, pilot: Pilot) -> None:
    """Time one round."""
    wall, processor = time.perf_counter(), time.process_time()
    result: Round = pilot.round()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in result.seconds.items())
    print(f"{what}: {wall:.2f} s ({parts}), {processor:.2f} s of processor time here;")
    print(f"    {result.summary}; {len(result.commands)} commands")


def real(folder: Path) -> None:
    """Two hundred jobs, each with a log, on the one-machine Slurm."""
    with onebox.onebox(folder / "box") as box:
        os.environ.update({name: box.environment[name] for name in ("PATH", "SLURM_CONF")})
        script = folder / "job.sh"
        script.write_text("#!/bin/sh\nsleep 600\n")
        for number in range(200):
            job = box.command(
                "sbatch", "--parsable", "--gres=gpu:1", "--partition=bronze", "--begin=now+600",
                f"--comment={COMMENT}", f"--chdir={folder}", str(script),
            ).strip()  # fmt: skip
            write_log(folder, job, number)
        ids = box.command("squeue", "-h", "-o", "%A").split()
        box.command("scontrol", "update", f"JobId={','.join(ids)}", "StartTime=now")
        pilot = Pilot(Slurm(tiers=SPEEDS), folder / "real.db", PilotOptions(mode="act"))
        for what in ("first round", "second round", "third round"):
            report(f"200 jobs of a real Slurm, {what}", pilot)


def recorded(folder: Path) -> None:
    """Five thousand jobs, 500 of them running with logs, of commands that answer from memory."""
    now = 1.8e9
    tiers = [
        ClusterTier(name, name, (f"{name}0",), 400, 400, speed) for name, speed in SPEEDS.items()
    ]
    jobs = []
    for number in range(1, 5001):
        job = ClusterJob(str(number), "me", "PENDING", "bronze", submit_s=now, eligible_s=now,
                         limit_s=14400.0, gpus=1, comment=COMMENT, workdir=str(folder))  # fmt: skip
        if number <= 500:
            tier = list(SPEEDS)[number % 3]
            job = replace(
                job, state="RUNNING", partition=tier, nodes=(f"{tier}0",), start_s=now, used_s=300.0
            )
            write_log(folder, job.id, number)
        jobs.append(job)
    answers = {"squeue": slurm_stub.queue_text(jobs), "sinfo": slurm_stub.nodes_text(tiers)}

    def run(command: Sequence[str], timeout_s: float) -> Answer:
        return Answer(0, answers.get(command[0], ""))

    scheduler = Slurm(users=["me"], run=run, tiers=SPEEDS, clock=lambda: now + 300)
    options = PilotOptions(mode="act")
    pilot = Pilot(scheduler, folder / "recorded.db", options, clock=lambda: now + 300)
    report("5 000 recorded jobs, first round", pilot)
    report("5 000 recorded jobs, second round", pilot)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        recorded(Path(place))
        if onebox.missing_programs():
            print("no Slurm on this machine: the real rounds are left out")
        else:
            real(Path(place))
