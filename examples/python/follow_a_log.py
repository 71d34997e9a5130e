# SPDX-License-Identifier: Apache-2.0
"""Follow a log that another program is writing, here a thread."""

import math
import tempfile
import threading
import time
from pathlib import Path

import glidepath as gp

log = Path(tempfile.mkdtemp()) / "metrics.csv"


def train() -> None:
    with log.open("w") as out:
        out.write("step,loss\n")
        for step in range(10, 1010, 10):
            out.write(f"{step},{1.5 + 3 * step**-0.5:.6f}\n")
            out.flush()
            time.sleep(0.005)


threading.Thread(target=train).start()

target, budget = 1.55, 20_000
for runs in gp.Follow(log, every_s=0.2):
    for run in runs:
        law = gp.reach(run, target, budget=budget)
        step = law.quantile(0.5)  # inf where it is likely not to be reached
        when = f"by step {step:.0f}" if math.isfinite(step) else "probably never"
        print(f"at step {run.step[-1]:.0f}: reaches {target} {when}")
    if run.step[-1] >= 1000:
        break
