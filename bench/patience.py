#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What patience costs and saves where starts cost time: a policy with it beside itself without.

    python bench/patience.py TRACE:GPUS ... philly.csv.gz:ed69ec:6 --sigmas 0.5 2 --seeds 20

Prints, with patience over without: mean JCT, preemptions, and worst finish-time fairness as the
mean over seeds over the mean without and as the geometric mean of ratios, each with its standard
error; and preemptions over those of srsf. JCT and preemptions are geometric means over seeds, of
which an error of 0 has one. --each prints the worst fairness of each seed, with and without.
"""

from __future__ import annotations

import argparse

import numpy as np
from fairness import workload

import glidepath as gp


def over(ours: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Geometric mean of ratios and its standard error."""
    logs = np.log(ours / others)
    mean = float(np.exp(logs.mean()))
    return mean, mean * error(logs)


def of_means(ours: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Ratio of means and its standard error, to first order in both."""
    ratio = float(ours.mean() / others.mean())
    return ratio, error((ours - ratio * others) / others.mean())


def error(values: np.ndarray) -> float:
    """Standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def main() -> None:
    """Print a line for each trace and error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", nargs="+", help="TRACE:GPUS or TABLE:CLUSTER:GPUS")
    parser.add_argument("--policy", default="gittins")
    parser.add_argument("--sigmas", type=float, nargs="+", default=[0.0, 0.25, 0.5, 1.0, 2.0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--restart", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--each", action="store_true")
    given = parser.parse_args()
    print(
        f"{'trace, sigma':28} mean JCT  preemptions  of srsf  fairness without"
        "  ratio of means   geometric mean"
    )
    for source in given.source:
        jobs = workload(source)
        for sigma in given.sigmas:

            def runs(policy: str, sigma: float = sigma, **options: bool) -> gp.Comparison:
                return gp.compare(
                    [jobs],  # noqa: B023 called at once
                    [policy],
                    seeds=range(1, 1 + (given.seeds if sigma else 1)),
                    threads=given.threads,
                    restart_s=given.restart,
                    forecast_sigma=sigma or None,
                    **options,
                )

            patient, hasty = runs(given.policy), runs(given.policy, patience=False)
            by_service = runs("srsf").values("srsf", "preemptions")
            pairs = {
                metric: [run.values(given.policy, metric) for run in (patient, hasty)]
                for metric in ("mean_jct_s", "preemptions", "worst_ftf")
            }
            preemptions = pairs["preemptions"][0]
            means, mean_error = of_means(*pairs["worst_ftf"])
            ratios, ratio_error = over(*pairs["worst_ftf"])
            print(
                f"{f'{jobs.name}, {sigma:g}':28} {over(*pairs['mean_jct_s'])[0]:8.3f} "
                f"{over(*pairs['preemptions'])[0]:12.2f} {over(preemptions, by_service)[0]:8.2f} "
                f"{pairs['worst_ftf'][1].mean():17.2f}   {means:6.3f} ± {mean_error:.3f} "
                f"{ratios:8.3f} ± {ratio_error:.3f}",
                flush=True,
            )
            if given.each:
                print(np.round(pairs["worst_ftf"], 2))


if __name__ == "__main__":
    main()
