# SPDX-License-Identifier: Apache-2.0
"""``glidepath bench stoppers``: what pruners save and cost on recorded sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import glidepath as gp
from glidepath.cli._console import ANSWER, WARNING, emit, holds, print_rows, print_table, progress
from glidepath.cli._options import Json

__all__ = ["bench_stoppers"]


def bench_stoppers(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Recorded sweeps: CSV files, or one of them.")
    ],
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            "-s",
            metavar="PATTERN",
            help="Pattern of names, 'taskset-*'; may be repeated.",
        ),
    ] = None,
    pruner: Annotated[
        list[str] | None,
        typer.Option(
            "--pruner", "-p", metavar="NAME", help="A pruner; may be repeated; default: all."
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Random orders of each sweep.")
    ] = 10,
    as_json: Json = False,
) -> int:
    """Replay recorded sweeps to pruners; exit code 1 where ours is above a limit."""
    from glidepath._bench import stoppers

    if not folder.exists():
        raise gp.IoError(f"{folder}: no such file or folder")
    with progress("reading"):
        found = list(stoppers.sweeps(folder, sweep or ()))
    with progress("sweeps", still=True) as update:
        rows = stoppers.run(
            found,
            pruners=tuple(pruner or stoppers.PRUNERS),
            seeds=seeds,
            progress=update,
        )
    table = stoppers.summary(rows)
    limits = stoppers.limits(table)
    if as_json:
        emit({"rows": rows, "summary": table, "limits": limits})
    else:
        cells = [
            [f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()] for row in table
        ]
        print_table(f"Pruners on {len(found)} sweeps, {seeds} orders each", stoppers.COLUMNS, cells)
        print_rows(
            "Beside a quarter of the epochs and half of Hyperband's regret",
            {
                "sweep": "{sweep}",
                "epochs": "{epochs:.3f}",
                "regret": "{regret:.4g}",
                "limit": "{limit:.4g}",
                "holds": holds,
            },
            limits,
        )
    return ANSWER if all(row["holds"] for row in limits) else WARNING
