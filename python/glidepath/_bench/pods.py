# SPDX-License-Identifier: Apache-2.0
"""The published comparison of placement policies on the cluster trace Alibaba GPU v2023.

Weng, Yang, Yu, Wang, Tang, Yang and Zhang, Beware of Fragmentation (USENIX ATC 2023): pods with
shares of GPUs, CPU and memory arrive one by one on 1 213 nodes with 6 212 GPUs and never leave. A
workload is a list of pods, shuffled, to which pods of the same list are added by drawing with
replacement until they ask 1.3 times the GPUs (one that asks more already loses random pods). What
is compared is the allocated share of the GPUs when the pods that have arrived, also those that fit
nowhere, ask as much as there is.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import glidepath as gp
from glidepath._csv_rows import csv_rows
from glidepath._pods import read_free_nodes, read_pods

WORKLOADS = ("gpushare40", "gpushare100", "multigpu20", "multigpu50")
# What the published table calls the policies.
PUBLISHED = {
    "random": "Random",
    "dot_product": "DotProd",
    "gpu_clustering": "Clustering",
    "gpu_packing": "Packing",
    "best_fit": "BestFit",
    "fgd": "FGD",
}
_DEMAND = 1.3  # GPUs asked over GPUs there are, when all pods have arrived


def read_nodes(folder: Path) -> list[gp.FreeNode]:
    """Nodes with GPUs, all of it free."""
    nodes, _ = read_free_nodes(folder / "alibaba2023_nodes.csv.gz")
    return [node for node in nodes if node.gpu_milli]


def read_workload(folder: Path, workload: str) -> list[gp.Pod]:
    """Pods of a workload, in the order of the file."""
    return read_pods(folder / f"alibaba2023_pods_{workload}.csv.gz")[0]


def arrivals(pods: Sequence[gp.Pod], gpus: int, seed: int) -> list[gp.Pod]:
    """Shuffle the pods and draw more, or drop some, until they ask 1.3 times the GPUs."""
    random = np.random.default_rng(seed)
    order = [pods[i] for i in random.permutation(len(pods))]
    most = round(1000 * _DEMAND * gpus)
    asked = sum(pod.gpus * pod.gpu_milli for pod in order)
    while asked > most:
        gone = order.pop(int(random.integers(len(order))))
        asked -= gone.gpus * gone.gpu_milli
    while True:
        pod = pods[int(random.integers(len(pods)))]
        if asked + pod.gpu_milli * min(pod.gpus, 1) > most:
            return order
        asked += pod.gpus * pod.gpu_milli
        order.append(pod)


def published(folder: Path) -> dict[tuple[str, str], float]:
    """Allocated percentage by workload and policy, the mean over the published seeds."""
    seen: dict[tuple[str, str], list[float]] = defaultdict(list)
    names = {theirs: ours for ours, theirs in PUBLISHED.items()}
    for row in csv_rows(folder / "alibaba2023_fgd_reference.csv.gz"):
        if row["metric"] == "alloc_ratio" and row["arrived_pct"] == "100":
            seen[row["variant"], names[row["policy"]]].append(float(row["value"]))
    return {key: float(np.mean(values)) for key, values in seen.items()}


@dataclass(frozen=True, slots=True)
class Run:
    """A policy on one draw of a workload."""

    allocated: float  # percent of the GPUs, when the pods that have arrived ask all of them
    seconds_per_pod: float
    violations: int


def run(nodes: list[gp.FreeNode], pods: Sequence[gp.Pod], policy: str, seed: int) -> Run:
    """Place a workload; its own list is the mix that a policy may expect."""
    gpus = sum(len(node.gpu_milli) for node in nodes)
    coming = arrivals(pods, gpus, seed)
    reads = {info.name: info.reads_expected for info in gp.pod_policies()}[policy]
    began = time.perf_counter()
    places = gp.place_pods(nodes, coming, policy=policy, expected=pods if reads else [], seed=seed)
    seconds = (time.perf_counter() - began) / len(coming)
    asked = np.array([pod.gpus * pod.gpu_milli for pod in coming])
    held = np.array([place.node >= 0 for place in places])
    arrived = np.round(100 * asked.cumsum() / (1000 * gpus))
    allocated = 100 * (asked * held).cumsum() / (1000 * gpus)
    return Run(
        float(allocated[arrived == 100].mean()),
        seconds,
        len(gp.pod_violations(nodes, coming, places)),
    )
