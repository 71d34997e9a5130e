# SPDX-License-Identifier: Apache-2.0
"""`glidepath slurm --simulated`: what the pilot would do with a workload."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import glidepath as gp
from glidepath._answer import simulation_columns, simulation_keys, with_energy
from glidepath._results import counted
from glidepath.cli._console import ANSWER, WARNING, emit, print_rows, progress, say
from glidepath.cli._inputs import open_workload

if TYPE_CHECKING:
    from glidepath.engines.slurm.rehearsal import RehearsalEvent


def play(
    source: Path,
    *,
    gpus: int | None,
    users: int | None,
    seed: int,
    checkpoint: Literal["usr1", "none"],
    no_cancel: bool,
    log: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Play a workload, and print each decision and how the outcome compares with FIFO's."""
    from glidepath.engines.slurm import PilotOptions
    from glidepath.engines.slurm.rehearsal import rehearse

    workload = open_workload(source, users, seed, gpus)
    settings = PilotOptions(cancel=not no_cancel, **options)
    with progress("jobs") as update:
        played = rehearse(workload, settings, checkpoint=checkpoint, log=log, progress=update)
    fifo = simulation_keys(gp.simulate(workload, "fifo", restart_s=settings.restart_s))
    rows = [with_energy(played.metrics), with_energy({key: fifo[key] for key in played.metrics})]
    if as_json:
        events = [asdict(event) for event in played.events]
        emit({"workload": workload.name, "round_count": played.rounds, "story": events,
              "policies": rows})  # fmt: skip
    else:
        for event in played.events:
            say(_line(event))
        print_rows(
            f"{workload.name}: {counted(played.rounds, 'round')}", simulation_columns(), rows
        )
        say(f"{_beside(rows, 'mean_jct_s', 'mean JCT')}, {_beside(rows, 'energy_kwh', 'energy')}.")
        if log is not None:
            say(f"The story of a job: glidepath slurm why JOB --log {log}")
    return WARNING if "unfinished" in played.metrics["outcomes"] else ANSWER


def _beside(rows: list[dict[str, Any]], key: str, name: str) -> str:
    """Write a metric of the pilot as a share of that of FIFO."""
    pilot, fifo = (row[key] for row in rows)
    if not fifo:
        return f"{name} not known"
    return f"{name} {pilot / fifo:.2f} times that of fifo"


def _line(event: RehearsalEvent) -> str:
    minutes, seconds = divmod(int(event.at_s), 60)
    clock = f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return f"{clock:>9}  {event.kind:<7}  {event.job:>4}  {event.tier:<8}  {event.reason}"
