#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What policies make of a trace where some jobs have deadlines and the others wait behind them.

    python bench/deadlines.py TRACE --gpus 960

Prints the share of the jobs with a deadline that end too late, and the mean JCT of the others.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import glidepath as gp

POLICIES = ("fifo", "las", "srsf", "best_value", "best_value:deadline", "edf")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--gpus", type=int, required=True)
    parser.add_argument("--restart-s", type=float, default=30.0)
    parser.add_argument("--policy", action="append", choices=[*POLICIES, *gp.POLICIES])
    given = parser.parse_args()
    workload = gp.Workload.from_trace(given.trace, gpus=given.gpus)
    others = ~np.isfinite(workload.jobs["deadline_s"])
    print(f"{'policy':20} {'late':>7} {'JCT h of others':>15} {'of all':>7} {'preemptions':>11}")
    for policy in given.policy or POLICIES:
        run = gp.simulate(workload, policy, restart_s=given.restart_s, spans=False)
        hours = run.jobs["jct_s"][others].mean() / 3600 if others.any() else np.nan
        late = f"{1 - run.share_in_time:.2%}"
        print(
            f"{policy:20} {late:>7} {hours:15.2f} {run.mean_jct_s / 3600:7.2f} {run.preemptions:11}"
        )


if __name__ == "__main__":
    main()
