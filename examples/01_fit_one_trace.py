# SPDX-License-Identifier: Apache-2.0
"""Which curve fits a run? Usage: 01_fit_one_trace.py [FILE]"""

import sys

import glidepath as gp

file = sys.argv[1] if len(sys.argv) > 1 else "data/curves/docs-transformer.csv.gz"
run = gp.read_traces(file)[0]

fit = gp.fit(run)
print(run)
print(fit)
for name, value in fit.params.items():
    print(f"  {name:6} {value:10.4g} +- {fit.stderr[name]:.2g}")
