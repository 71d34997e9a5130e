# SPDX-License-Identifier: Apache-2.0
"""One of each record of the compiled module."""

from typing import Any

import numpy as np

import glidepath as gp
from glidepath import _core


def public_records() -> list[Any]:
    """One of each public class of the compiled module, hardly a field as by default."""
    option = gp.Option(1, 2, 3.0, utilization=0.5, sharing="mps")
    tier = gp.Tier("a", 2, 4, gpu="A100", memory_gb=40, idle_watts=50, busy_watts=400)
    job = gp.Job(
        3,
        [option],
        user="ada",
        submit_s=1.0,
        weight=2.0,
        remaining_steps=[1.0, np.inf],
        observed_step=[1, 2],
        observed_loss=[3.0, 2.5],
        preemptible=False,
        ahead_steps=[0, 1],
        ahead_loss=[2.5, 2.0],
        kind="k",
    )
    allocation = gp.Allocation(3, 1, 2, 4.0, 5)
    pair = gp.KindPair("A100", "a", "b", 1.5, 2.0, sharing="mps")
    scaling = gp.fit_scaling([1, 2, 4], [1.0, 0.6, 0.4])
    columns = {"job": [1], "submit_s": 0, "gpus": 1, "duration_s": 50}
    spans: list[gp.JobSpan] = []
    gp.simulate(gp.Workload([tier], columns), "fifo", stream=spans.append)
    return [
        option,
        tier,
        job,
        allocation,
        pair,
        scaling,
        gp.Snapshot([tier], [job], running=[allocation], now_s=9.0),
        gp.Profile(0.5, 8.0, "k"),
        gp.JobKind("a", "A100", "m", [1.0, 2.0]),
        gp.StepTime(2, 0.5, nodes=2, batch_per_gpu=3.0),
        gp.learn_pairs([pair]),
        gp.catalogue()[0],
        gp.FitScore("pow3", float("-inf"), "converged"),
        gp.BatchLimits(32, 512, largest_per_gpu=64, noise_scale=1e3),
        gp.best_batch(scaling, gp.BatchLimits(32, 512), gpus=2),
        gp.PairSpeeds("inf", "b", 1, 0.5, 0.75),
        gp.Pod("p", cpu_milli=500, memory_mib=64, gpus=1, gpu_milli=250, gpu_models=["T4"]),
        gp.FreeNode("n", cpu_milli=8000, memory_mib=1024, gpu_milli=[1000, 250], gpu_model="T4"),
        gp.PodPlace(3, [0, 1]),
        gp.pod_policies()[0],
        gp.slices()[0],
        gp.best_partition(np.ones((2, len(gp.slices())))),
        spans[0],
        gp.policies()[0],
    ]


def records() -> list[Any]:
    """The public ones and those of options."""
    return [
        *(each for each in public_records() if hasattr(type(each), "__match_args__")),
        _core.PlanOptions(
            objective={"jct": 1.0, "cost": 2.0}, power_cap_w=9.0, user_quota={"a": 1}
        ),
        _core.PlanLimits(sharing="mig"),
        _core.RunLimits(max_hours=2.0),
        _core.PlacementOptions(partner=gp.Profile(0.1, 2.0), max_gpus=4),
    ]
