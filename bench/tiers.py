# SPDX-License-Identifier: Apache-2.0
"""CPU time to simulate many jobs on twelve tiers of nodes.

    PYTHONPATH=python python bench/tiers.py TRACES [POLICY ...]

The tiers are the nodes of Alibaba GPU v2023 (TRACES/alibaba2023_nodes.csv.gz) by model and number
of GPUs, all equally fast: 6 212 GPUs. 7 064 jobs come at random times: lognormal durations (median
e^8 s, deviation 1.5), gangs of 1, 2, 4 and 8. `in_nodes`, one core.
"""

import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

import glidepath as gp
from glidepath._bench.pods import read_nodes

JOBS, LOADS, GANGS = 7064, (1.2, 3.0), (1, 2, 4, 8)
POLICIES = ("first_fit", "las", "srsf", "best_value")


def workload(nodes: Counter[tuple[str, int]], load: float) -> gp.Workload:
    """Jobs that bring `load` times what the GPUs can do while they come."""
    rng = np.random.default_rng(0)
    tiers = [gp.Tier(f"{model} x {gpus}", n, gpus) for (model, gpus), n in sorted(nodes.items())]
    duration = np.exp(8 + 1.5 * rng.standard_normal(JOBS))
    gangs = rng.choice(GANGS, size=JOBS)
    gpus = sum(tier.nodes * tier.gpus_per_node for tier in tiers)
    window_s = (duration * gangs).sum() / (gpus * load)
    submit_s = np.sort(rng.uniform(0, window_s, JOBS))
    jobs = {"job": np.arange(JOBS), "submit_s": submit_s, "duration_s": duration, "gpus": gangs}
    return gp.Workload(tiers, jobs)


def main() -> None:
    """Print a line for each policy."""
    nodes = Counter((node.gpu_model, len(node.gpu_milli)) for node in read_nodes(Path(sys.argv[1])))
    print(f"{'policy':>12}" + "".join(f"{load:8.1f}" for load in LOADS) + "   CPU s")
    for policy in sys.argv[2:] or POLICIES:
        print(f"{policy:>12}", end="", flush=True)
        for load in LOADS:
            work = workload(nodes, load)
            begin = time.process_time()
            gp.simulate(work, policy, in_nodes=True)
            print(f"{time.process_time() - begin:8.2f}", end="", flush=True)
        print()


if __name__ == "__main__":
    main()
