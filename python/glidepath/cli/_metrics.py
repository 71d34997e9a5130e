# SPDX-License-Identifier: Apache-2.0
"""`glidepath metrics`: what a log holds, and what would be read of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

import glidepath as gp
from glidepath import _words
from glidepath._answer import UNKNOWN, Columns
from glidepath._hardware import JOULES_PER_KWH, MEMORY, SM
from glidepath._results import counted
from glidepath.cli._console import ANSWER, emit, print_rows, progress, say
from glidepath.cli._inputs import called
from glidepath.cli._options import Json, Log, Pattern


def metrics(
    file: Log,
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="List this metric alone; default: all.")
    ] = None,
    pattern: Pattern = None,
    as_json: Json = False,
) -> int:
    """List the metrics of a log, with points, direction and which is read by default.

    The log of a GPU monitor (DCGM, nvidia-smi, NVML, Zeus, codecarbon) is summed up by GPU.
    """
    from glidepath.readers.monitors import _open

    monitor = Path(file).is_file() and _open.format_of(Path(file)) is not None
    if monitor and (metric, pattern) != (None, None):
        raise gp.InputError(f"{file}: the log of a GPU monitor has no metrics of training")
    if monitor:
        return _hardware(gp.read_metrics(file), as_json=as_json)
    with progress("reading"):
        rows = [asdict(info) for info in gp.metrics_of(file, metric=metric, pattern=pattern)]
    if as_json:
        emit(rows)
        return ANSWER
    columns: Columns = {
        "run": "{run}",
        "metric": "{metric}",
        "points": lambda row: _words.count(row["points"]),
        "better": lambda row: {"min": "low", "max": "high"}[row["direction"]],
        "read": lambda row: "yes" if row["read"] else "",
    }
    print_rows(f"{counted(len(rows), 'metric')} of {called(file)}", columns, rows)
    return ANSWER


def _hardware(found: gp.Metrics, *, as_json: bool) -> int:
    """Sum up each GPU of a monitor's log."""
    rows = [_sums(found.only(gpu)) for gpu in found.gpus]
    if as_json:
        head = {"log": found.name, "duration_s": found.duration_s, "notes": found.notes}
        emit(head | {"rows": rows})
        return ANSWER

    def cell(key: str, form: str, factor: float = 1.0) -> Callable[[Any], str]:
        return lambda row: UNKNOWN if row[key] is None else form.format(row[key] * factor)

    columns: Columns = {
        "GPU": "{gpu}",
        "samples": "{samples}",
        "mean W": cell("mean_watts", "{:.1f}"),
        "peak W": cell("peak_watts", "{:.1f}"),
        "kWh": cell("energy_kwh", "{:.4g}"),
        "SM busy %": cell("sm_activity", "{:.1f}", 100.0),
        "memory busy %": cell("memory_activity", "{:.1f}", 100.0),
        "peak GB": cell("memory_gb", "{:.2f}"),
    }
    title = f"{counted(len(rows), 'GPU')} of {found.name} over {found.duration_s / 3600:.3g} h"
    print_rows(title, columns, rows)
    for note in found.notes:
        say(f"Note: {note}.")
    return ANSWER


def _sums(gpu: gp.Metrics) -> dict[str, Any]:
    joules = gpu.energy_j() if gpu._has_energy else None
    sm, memory = gpu._first(SM), gpu._first(MEMORY)
    return {
        "gpu": gpu.gpus[0],
        "samples": len(gpu),
        "mean_watts": None if joules is None else joules / gpu.duration_s,
        "peak_watts": gpu.peak("power_w") if "power_w" in gpu else None,
        "energy_kwh": None if joules is None else joules / JOULES_PER_KWH,
        "sm_activity": None if sm is None else gpu.mean(sm),
        "memory_activity": None if memory is None else gpu.mean(memory),
        "memory_gb": gpu.peak("memory_used_gb") if "memory_used_gb" in gpu else None,
    }
