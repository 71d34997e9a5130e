# SPDX-License-Identifier: Apache-2.0
"""One forecast with every digit: what one_forecast.c prints, in Python."""

import sys

import glidepath as gp

run = gp.read_traces(sys.argv[1])[0]
budget = float(run.step[-1])
seen = run.until(budget / 3)
ahead = gp.forecast(seen, [budget / 2, budget])
low, high = ahead.quantile(0.1), ahead.quantile(0.9)
for row in zip(ahead.at, low, ahead.median, high, strict=True):
    print(*(f"{value:.17g}" for value in row))
reach = gp.reach(seen, ahead.median[-1], budget=budget)
print(f"{reach.prob_by(budget):.17g}")
