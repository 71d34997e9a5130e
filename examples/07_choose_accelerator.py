# SPDX-License-Identifier: Apache-2.0
"""Which accelerator for a run, and when does that change? Usage: 07_choose_accelerator.py [FILE]"""

import sys

import glidepath as gp

file = sys.argv[1] if len(sys.argv) > 1 else "data/curves/docs-transformer.csv.gz"
run = gp.read_traces(file)[0]
target, allowed_h, spent_h, held = 2.0, 8.0, 0.0, None

tiers = [
    gp.Tier("T4", 4, 4, memory_gb=16, idle_watts=10, busy_watts=70, price_per_gpu_hour=0.5),
    gp.Tier("A100", 2, 8, memory_gb=40, idle_watts=60, busy_watts=400, price_per_gpu_hour=4.1),
]
# Measured steps per second of each gang; `gp.options_of` makes more of them from a few.
ways = [
    gp.Option(0, 1, 0.007),
    gp.Option(0, 4, 0.024),
    gp.Option(1, 1, 0.04),
    gp.Option(1, 4, 0.13),
]

tenth = len(run) // 10
seen = run.until(run.step[tenth - 1])
for way in ways:
    ends = min(run.step[-1], seen.step[-1] + 3600 * way.steps_per_s * allowed_h)
    loss = gp.forecast(seen, [ends]).median[0]
    print(f"{way.gpus} x {tiers[way.tier].name} gets to step {ends:.0f} and a loss of {loss:.2f}")

before = 0.0
for k in range(tenth, len(run), tenth):
    now = run.step[k - 1]
    if held is not None:
        spent_h += (now - before) / (3600 * held.steps_per_s)
    before = now
    if run.loss[:k].min() <= target:
        print(f"step {now:4.0f}: {target} is reached, after {spent_h:.1f} h")
        break
    job = gp.Job(
        1,
        ways,
        memory_gb=12,
        steps_done=now,
        budget_steps=run.step[-1],
        observed_step=run.step[:k],
        observed_loss=run.loss[:k],
    )
    best = gp.choose_accelerator(
        job,
        tiers,
        target=target,
        reached_by="point",
        max_hours=max(0.0, allowed_h - spent_h),
        max_node_watts=1000,
        prefer="cost",
    )[0]
    if best.option != held:
        print(f"step {now:4.0f}: {best.reason}; {best.hours:.1f} h, {best.kwh:.1f} kWh, ", end="")
        print(f"{best.cost:.0f} $, at peak {best.node_watts:.0f} W in a node")
    held = best.option
