# SPDX-License-Identifier: Apache-2.0
"""Pods on nodes: placed one after the other, checked, and read from CSV files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from glidepath import _core
from glidepath._arguments import checked
from glidepath._core import FreeNode, IoError, Pod, PodPlace, PodPolicyInfo
from glidepath._csv_rows import read_rows

T = TypeVar("T")
_NODES = ("node", "cpu_milli", "memory_mib", "gpus", "gpu_model")
_PODS = ("job", "cpu_milli", "memory_mib", "gpus", "gpu_milli", "gpu_spec")
_OPTIONAL = ("gpu_model", "gpu_milli", "gpu_spec")
_MOST_GPUS = 1 << 20  # of one node
_PLACING = _core.PodOptions()  # the defaults of the library
_WHOLE_GPU = Pod().gpu_milli


def pod_policies() -> list[PodPolicyInfo]:
    """List the policies of `place_pods`.

    Returns
    -------
    list of PodPolicyInfo
    """
    return _core.pod_policies()


@checked
def place_pods(
    nodes: Sequence[FreeNode],
    pods: Sequence[Pod],
    *,
    policy: str = _PLACING.policy,
    expected: Sequence[Pod] = (),
    seed: int = _PLACING.seed,
    pods_per_gpu: int = _PLACING.pods_per_gpu,
) -> list[PodPlace]:
    """Place pods one after the other, each once and for good.

    Parameters
    ----------
    nodes : sequence of FreeNode
    pods : sequence of Pod
        In the order in which they arrive. One that fits nowhere takes nothing.
    policy : str
        One of `pod_policies`; by default ``fgd_cpu`` where `expected` is given, else ``best_fit``.
    expected : sequence of Pod
        Pods like those to come, for the policies that read them: those of last month, say.
    seed : int
        Nodes that tie are tried in the order of this seed.
    pods_per_gpu : int
        At most so many on one GPU; 0 = as many as it has shares for.

    Returns
    -------
    list of PodPlace
        One for each pod.

    Raises
    ------
    InputError
        Naming the node, pod or policy: amounts below 0 or above 10^12, a share above 1000 or of
        several GPUs, `gpu_pods` that do not match the GPUs, `expected` for a policy that does not
        read it or none for one that does.
    """
    options = _core.PodOptions(
        policy=policy, expected=expected, seed=seed, pods_per_gpu=pods_per_gpu
    )
    return _core.place_pods(nodes, pods, options)


@checked
def pod_violations(
    nodes: Sequence[FreeNode],
    pods: Sequence[Pod],
    places: Sequence[PodPlace],
    *,
    pods_per_gpu: int = _PLACING.pods_per_gpu,
) -> list[str]:
    """Say what is wrong with places of pods.

    Parameters
    ----------
    nodes : sequence of FreeNode
    pods : sequence of Pod
    places : sequence of PodPlace
        One for each pod.
    pods_per_gpu : int
        At most so many on one GPU; 0 = any number.

    Returns
    -------
    list of str
        A sentence for each node over its CPU or memory, GPU over its share or its number of pods,
        or GPU that the pod does not allow; empty where the places hold.

    Raises
    ------
    InputError
        Another number of places than pods.
    """
    return _core.pod_violations(nodes, pods, places, pods_per_gpu)


def read_free_nodes(path: str | os.PathLike[str]) -> tuple[list[FreeNode], list[str]]:
    """Read a CSV of free nodes; the second list names the columns that are not read.

    Columns: ``node,cpu_milli,memory_mib,gpus`` and perhaps ``gpu_model``. IoError names file and
    line, such as of a node that is there twice.
    """

    def made(row: dict[str, str]) -> FreeNode:
        gpus = _whole(row, "gpus")
        if not 0 <= gpus <= _MOST_GPUS:
            raise ValueError(f"gpus is {gpus}, expected 0 to {_MOST_GPUS}")
        return FreeNode(
            row["node"],
            cpu_milli=_whole(row, "cpu_milli"),
            memory_mib=_whole(row, "memory_mib"),
            gpu_milli=[_WHOLE_GPU] * gpus,
            gpu_model=row.get("gpu_model") or "",
        )

    return _read(path, _NODES, made, distinct=True)


def read_pods(
    path: str | os.PathLike[str], *, distinct: bool = False
) -> tuple[list[Pod], list[str]]:
    """Read a CSV of pods; the second list names the columns that are not read.

    Columns: ``job,cpu_milli,memory_mib,gpus`` and perhaps ``gpu_milli`` (a whole GPU where it is
    blank) and ``gpu_spec`` (allowed models between |). IoError names file and line; with
    `distinct`, also of a job that is there twice.
    """

    def made(row: dict[str, str]) -> Pod:
        gpus = _whole(row, "gpus")
        return Pod(
            row["job"],
            cpu_milli=_whole(row, "cpu_milli"),
            memory_mib=_whole(row, "memory_mib"),
            gpus=gpus,
            gpu_milli=_whole(row, "gpu_milli") if gpus and row.get("gpu_milli") else _WHOLE_GPU,
            gpu_models=[model for model in (row.get("gpu_spec") or "").split("|") if model],
        )

    return _read(path, _PODS, made, distinct=distinct)


def _read(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    made: Callable[[dict[str, str]], T],
    *,
    distinct: bool,
) -> tuple[list[T], list[str]]:
    there, rows = read_rows(path, *(each for each in columns if each not in _OPTIONAL))
    where = os.fspath(path)
    if not rows:
        raise IoError(f"{where}: no rows below the header")
    kind, seen = columns[0], set[str]()
    found = []
    for line, row in rows:
        if distinct and row[kind] in seen:
            raise IoError(f"{where}:{line}: {kind} {row[kind]!r} is there twice")
        seen.add(row[kind])
        try:
            found.append(made(row))
        except (ValueError, TypeError) as error:
            raise IoError(f"{where}:{line}: {error}") from None
    return found, [column for column in there if column and column not in columns]


def _whole(row: dict[str, str], column: str) -> int:
    try:
        return int(row[column])
    except ValueError:
        hint = "; parts of a GPU are gpu_milli" if column == "gpus" else ""
        raise ValueError(f"{column} is {row[column]!r}, expected a whole number{hint}") from None
