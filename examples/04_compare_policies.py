# SPDX-License-Identifier: Apache-2.0
"""What would each policy have made of the same workload? Usage: 04_compare_policies.py [FOLDER]"""

import sys

import glidepath as gp

workload = gp.read_workload(sys.argv[1] if len(sys.argv) > 1 else "data/workloads/supercom")

print(f"{'policy':14} {'mean wait h':>12} {'mean JCT h':>12} {'kWh':>10} {'preemptions':>12}")
for policy in ["fifo", "session_fifo", "srtf", "dare", "best_value"]:
    run = gp.simulate(workload, policy)
    print(
        f"{policy:14} {run.mean_wait_s / 3600:12.2f} {run.mean_jct_s / 3600:12.2f} "
        f"{run.energy_kwh:10.1f} {run.preemptions:12}"
    )
