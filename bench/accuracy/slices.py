#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted step times on MIG slices, the partitions chosen by them, and mixes under MPS.

    python bench/accuracy/slices.py MIG_FOLDER

Prints, for the 16 jobs of four models of `glidepath._bench.slices`, the error of the step times on
the slices from what a monitor read on the whole card: by the law as it is, and with its constant
fitted without the model. Then the throughput of the partitions that these predictions choose over
the best ones by the measured times, for random mixes of 1 to 7 jobs. Then the error of speeds under
MPS, by how many jobs are together.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from glidepath._bench import sharing, slices


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    alone, truth = sharing.profiles(folder), slices.measured(folder)
    models = sorted({kind[0] for kind in truth})
    laws = {}
    for name, watts in (("power", True), ("activities", False)):
        laws[name] = slices.predicted(alone, watts=watts)
        laws[f"{name}, models left out"] = slices.left_out(laws[name], truth)
    for name, guess in laws.items():
        unseen = slices.errors(guess, truth)
        each = np.concatenate(list(unseen.values()))
        by_model = ", ".join(
            f"{model} {np.median(np.concatenate([unseen[k] for k in truth if k[0] == model])):.3f}"
            for model in models
        )
        print(f"{name}: median error {np.median(each):.3f}, mean {each.mean():.3f} ({by_model})")
    for name in ("power, models left out", "activities, models left out"):
        for count in range(1, 8):
            ratios = slices.throughput_ratios(laws[name], truth, count, 400)
            print(
                f"{name}, {count} jobs, {ratios.size} mixes: throughput {ratios.mean():.3f} of the "
                f"best, 5 % quantile {np.quantile(ratios, 0.05):.3f}, least {ratios.min():.3f}"
            )
    for count in (2, 3, 4):
        missed_speeds = slices.mix_errors(folder, count)
        print(f"MPS, {count} jobs, {missed_speeds.size} speeds: error {missed_speeds.mean():.3f}")


if __name__ == "__main__":
    main()
