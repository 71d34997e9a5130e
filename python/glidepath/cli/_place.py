# SPDX-License-Identifier: Apache-2.0
"""`glidepath place`: pods on parts of GPUs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import glidepath as gp
from glidepath import _core
from glidepath._answer import UNKNOWN
from glidepath._core import Pod
from glidepath._pods import read_free_nodes, read_pods
from glidepath._results import counted
from glidepath.cli._console import ANSWER, WARNING, emit, print_table, progress, say, stderr
from glidepath.cli._options import Json

_POLICIES = [info.name for info in gp.pod_policies()]


def place(
    nodes: Annotated[
        Path,
        typer.Argument(
            metavar="NODES", help="A CSV node,cpu_milli,memory_mib,gpus,gpu_model of what is free."
        ),
    ],
    pods: Annotated[
        Path,
        typer.Argument(
            metavar="PODS",
            help="A CSV job,cpu_milli,memory_mib,gpus,gpu_milli,gpu_spec in order of arrival.",
        ),
    ],
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAME",
            help="How nodes are chosen; default: fgd_cpu with --expected, else best_fit.",
            autocompletion=lambda: _POLICIES,
        ),
    ] = "",
    expected: Annotated[
        Path | None,
        typer.Option(metavar="PODS", help="Pods like those to come; fgd and fgd_cpu need them."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Order in which equal nodes are tried.")
    ] = 0,
    pods_per_gpu: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="At most so many pods on one GPU; 0 = any number."),
    ] = 0,
    as_json: Json = False,
) -> int:
    """Place pods that ask shares of GPUs, CPU and memory on nodes.

    `gpu_milli` are thousandths of one GPU, `gpu_spec` the allowed models between |, the names of
    the public traces.
    """
    free, asked = _read(nodes, read_free_nodes), _read(pods, partial(read_pods, distinct=True))
    mix: list[Pod] = [] if expected is None else _read(expected, read_pods)
    chosen = _core.pod_policy_of(_core.PodOptions(policy=policy, expected=mix))
    with progress("placing"):
        places = gp.place_pods(
            free, asked, policy=chosen, expected=mix, seed=seed, pods_per_gpu=pods_per_gpu
        )
    rows = [
        {
            "job": pod.name,
            "node": free[place.node].name if place.node >= 0 else None,
            "gpu_indices": place.gpus,
        }
        for pod, place in zip(asked, places, strict=True)
    ]
    held = sum(
        pod.gpus * pod.gpu_milli
        for pod, place in zip(asked, places, strict=True)
        if place.node >= 0
    )
    total = sum(sum(node.gpu_milli) for node in free)
    share = held / total if total else 0.0
    left_out = sum(place.node < 0 for place in places)
    if as_json:
        emit({"policy": chosen, "seed": seed, "left_out": left_out, "share": share, "rows": rows})
    else:
        gpus = f"{held / 1000:g} of {total / 1000:g} GPUs given out, {100 * share:.1f} %"
        _print(rows, left_out, gpus)
    return WARNING if left_out else ANSWER


def _read(path: Path, reader: Any) -> Any:
    found, ignored = reader(path)
    if ignored:
        say(f"{path}: not read: {', '.join(ignored)}", to=stderr)
    return found


def _print(rows: list[dict[str, Any]], left_out: int, gpus: str) -> None:
    how = f"{left_out} fit nowhere" if left_out else "all placed"
    print_table(
        f"{counted(len(rows), 'pod')}, {how}; {gpus}",
        ("job", "node", "GPUs"),
        (
            (row["job"], row["node"] or UNKNOWN, " ".join(map(str, row["gpu_indices"])))
            for row in rows
        ),
    )
