# SPDX-License-Identifier: Apache-2.0
"""What will a run log, and when does it reach its target? Usage: 02_forecast_and_reach.py [FILE]"""

import sys

import glidepath as gp

file = sys.argv[1] if len(sys.argv) > 1 else "data/curves/docs-transformer.csv.gz"
run = gp.read_traces(file)[0]

# Only the first third is known; the rest says afterwards how good the forecast was.
budget = run.step[-1]
seen = run.until(budget / 3)
ahead = gp.forecast(seen, [budget / 2, budget])
for step, median, low, high in zip(ahead.at, ahead.median, *ahead.interval(0.9), strict=True):
    print(f"step {step:6.0f}: {median:.4f}, 90% inside [{low:.4f}, {high:.4f}]")
print(f"logged in the end: {run.loss[-1]:.4f}")

target = ahead.median[-1]
reach = gp.reach(seen, target, budget=budget)
print(f"loss {target:.4f} by step {budget:.0f}: probability {reach.prob_by(budget):.2f}")
