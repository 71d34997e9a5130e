# SPDX-License-Identifier: Apache-2.0
"""A small training run: stochastic gradient descent on a regression with a power-law spectrum.

Its test loss falls as a power law to the noise of its labels, as real curves do. The pace stands
for the GPU: a step takes `--step-s` on bronze, half of it on silver, a quarter on gold.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

from glidepath.engines.slurm import checkpoint

SPEED = {"bronze": 1.0, "silver": 2.0, "gold": 4.0}
INPUTS = 64


def main() -> None:
    """Train, log, save when asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", type=int, required=True)
    parser.add_argument("--step-s", type=float, default=0.02)
    parser.add_argument("--noise", type=float, default=0.1, help="variance of the labels' noise")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    asked = checkpoint.SaveFlag()
    speed = SPEED[os.environ["SLURMD_NODENAME"].rstrip("0")]
    saved = Path(f"model-{checkpoint.job_id()}.npz")
    truth = np.ones(INPUTS)
    scale = np.arange(1, INPUTS + 1) ** -0.75
    weights, first = np.zeros(INPUTS), 1
    if saved.exists():
        with np.load(saved) as file:
            weights, first = file["weights"], int(file["step"]) + 1
    with checkpoint.TraceLog() as log:
        for step in range(first, options.budget + 1):
            began = time.monotonic()
            random = np.random.default_rng((options.seed, step))
            inputs = random.normal(size=(32, INPUTS)) * scale
            labels = inputs @ truth + random.normal(size=32) * options.noise**0.5
            weights = weights - 0.1 * inputs.T @ (inputs @ weights - labels) / 32
            error = (weights - truth) * scale
            log.add(step, float(error @ error) + options.noise)
            if asked:
                with checkpoint.replacing(saved) as path:
                    np.savez(path, weights=weights, step=step)
                asked.leave()
            time.sleep(max(0.0, options.step_s / speed - (time.monotonic() - began)))


if __name__ == "__main__":
    main()
