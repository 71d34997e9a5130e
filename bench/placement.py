#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Policies that place pods on parts of GPUs, beside the published answers.

    python bench/placement.py TRACES_FOLDER [--seeds 10] [--workload NAME ...]

Prints, for each workload and policy of `glidepath._bench.pods`, the allocated percentage of the
GPUs when the pods that have arrived ask all of them: ours (mean and standard deviation over the
seeds), the published mean, and the difference in points; for `fgd_cpu`, whose constants were chosen
on gpushare40 and multigpu20, the difference to the published FGD. Then the time of a decision.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import glidepath as gp
from glidepath._bench import pods


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workload", nargs="+", default=pods.WORKLOADS, choices=pods.WORKLOADS)
    args = parser.parse_args()
    nodes, answers = pods.read_nodes(args.folder), pods.published(args.folder)
    print("workload     policy          ours    sd  published   points  us/pod")
    for workload in args.workload:
        mix = pods.read_workload(args.folder, workload)
        for policy in (info.name for info in gp.pod_policies()):
            runs = [pods.run(nodes, mix, policy, 42 + seed) for seed in range(args.seeds)]
            if any(run.violations for run in runs):
                raise SystemExit(f"{workload}, {policy}: places do not hold")
            share = np.array([run.allocated for run in runs])
            theirs = answers[workload, policy if policy in pods.PUBLISHED else "fgd"]
            each = 1e6 * np.mean([run.seconds_per_pod for run in runs])
            print(
                f"{workload:12} {policy:14} {share.mean():6.2f} {share.std():5.2f}  {theirs:9.2f} "
                f"{share.mean() - theirs:+8.2f} {each:7.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
