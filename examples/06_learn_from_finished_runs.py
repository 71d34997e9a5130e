# SPDX-License-Identifier: Apache-2.0
"""What do finished runs teach about a live one? Usage: 06_learn_from_finished_runs.py [FILE]"""

import sys

import glidepath as gp

file = sys.argv[1] if len(sys.argv) > 1 else "data/curves/digits-cnn.csv.gz"
*finished, run = gp.read_traces(file)

# A third of the last run is known, and the learning rate that is planned for the rest of it.
seen = run.until(run.step[-1] / 3)
ahead = run.step[len(seen) :]
planned = None if run.lr is None else (ahead, run.lr[len(seen) :])

calibration = gp.calibrate(finished, past=finished)
print(calibration)
alone = gp.forecast(seen, ahead, lr_ahead=planned)
taught = gp.forecast(seen, ahead, lr_ahead=planned, past=finished, calibration=calibration)
for name, f in (("alone", alone), ("taught", taught)):
    low, high = f.quantile(0.1)[-1], f.quantile(0.9)[-1]
    print(f"{name:6}: {f.median[-1]:.4f}, 80% inside [{low:.4f}, {high:.4f}]")
print(f"logged: {run.loss[-1]:.4f}")
