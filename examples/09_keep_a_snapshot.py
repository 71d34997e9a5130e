# SPDX-License-Identifier: Apache-2.0
"""What does a scheduler keep from one round to the next? Usage: 09_keep_a_snapshot.py"""

from collections import defaultdict
from collections.abc import Sequence

import glidepath as gp

ROUND_S = 360.0

# A live job is a run of which a third is known; it may take one to four GPUs of either tier.
runs = gp.read_traces("data/curves/docs-transformer.csv.gz")
budgets = [run.step[-1] for run in runs]
seen = [run.until(run.step[-1] / 3) for run in runs]
reaches = gp.reach_batch(seen, 2.0, budgets=budgets)

tiers = [
    gp.Tier.of("fast", "A100 SXM4 40GB", nodes=1, gpus_per_node=4),
    gp.Tier.of("slow", "V100 SXM2", nodes=2, gpus_per_node=4),
]
RATES = {(tier, gpus): rate * gpus for gpus in (1, 2, 4) for tier, rate in ((0, 0.2), (1, 0.1))}

# Between rounds live what the jobs have done, who runs and the prices. A Job never changes.
live = set(range(len(runs)))
steps: dict[int, float] = defaultdict(float)  # since the forecasts
attained_s: dict[int, float] = defaultdict(float)
attained_gpu_s: dict[int, float] = defaultdict(float)
running: Sequence[gp.Allocation] = []
prices = None
for now in range(3):
    jobs = [
        gp.Job(
            i,
            [gp.Option(tier, gpus, rate) for (tier, gpus), rate in RATES.items()],
            steps_done=seen[i].step[-1] + steps[i],
            attained_s=attained_s[i],
            attained_gpu_s=attained_gpu_s[i],
            budget_steps=budgets[i],
            remaining_steps=reaches[i].remaining_steps(64),
            forecast_at_steps=seen[i].step[-1],  # what it did from here on is taken off
        )
        for i in sorted(live)
    ]
    snapshot = gp.Snapshot(tiers, jobs, running=list(running), now_s=now * ROUND_S)
    plan = gp.plan(snapshot, round_s=ROUND_S, prices=prices)
    print(f"round {now}: {len(plan.allocations)} jobs run, {len(plan.stop)} end")
    for held in plan.allocations:  # until the next round
        steps[held.job] += ROUND_S * RATES[held.tier, held.gpus]
        attained_s[held.job] += ROUND_S
        attained_gpu_s[held.job] += ROUND_S * held.gpus
    live.difference_update(plan.stop)
    running, prices = plan.allocations, plan.prices
