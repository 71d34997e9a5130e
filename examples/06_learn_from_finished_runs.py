# SPDX-License-Identifier: Apache-2.0
"""What do finished runs teach about a live one? Usage: 06_learn_from_finished_runs.py [FILE]"""

import sys

import glidepath as gp

file = sys.argv[1] if len(sys.argv) > 1 else "data/curves/digits-cnn.csv.gz"
*finished, run = gp.read_traces(file)

# A third of the last run is known, and the learning rate that is planned for the rest of it.
seen = run.until(run.step[-1] / 3)
ahead = run.step[len(seen) :]
schedule = gp.Schedule.logged(run)

past = gp.PastRuns(finished)
print(past)
alone = gp.forecast(seen, ahead, schedule=schedule)
taught = gp.forecast(seen, ahead, schedule=schedule, past=past)
for name, f in (("alone", alone), ("taught", taught)):
    low, high = f.interval(0.8)
    print(f"{name:6}: {f.median[-1]:.4f}, 80% inside [{low[-1]:.4f}, {high[-1]:.4f}]")
print(f"logged: {run.loss[-1]:.4f}")
