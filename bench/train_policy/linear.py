# SPDX-License-Identifier: Apache-2.0
"""Train a small scheduling policy by the cross-entropy method and score it on unseen workloads.

    python bench/train_policy/linear.py [--generations 25] [--out linear.json]

The policy is linear: a waiting job's score is its features times eight weights, a running job's is
its features times seven; the best job is started or preempted if its score is above 0, else time
passes. Trained on the workloads of seeds 0 to 31, scored on those of seeds 1000 to 1029. Forecasts
are wrong by exp(N(0, 0.5)), for everyone.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import glidepath as gp
from glidepath.gym import RUNNING_FEATURES, SLOT_FEATURES, SchedulingVectorEnv

SLOTS, RUNNING, SIGMA = 32, 8, 0.5
SLOT, SEAT = len(SLOT_FEATURES), len(RUNNING_FEATURES)
POPULATION, ELITE, EPISODES = 32, 6, 8
Floats = NDArray[np.float64]


def draw(seed: int, jobs: int = 60) -> gp.Workload:
    """Gangs of 1 to 8 on 16 GPUs; lognormal durations; about as much work as there is time."""
    rng = np.random.default_rng(seed)
    return gp.Workload(
        [gp.Tier("gpu", 8, 2)],
        {
            "job": np.arange(jobs),
            "submit_s": np.floor(np.cumsum(rng.exponential(1500, jobs))),
            "gpus": 2 ** rng.integers(0, 4, jobs),
            "duration_s": np.ceil(np.exp(rng.normal(7.5, 1.5, jobs))),
        },
    )


def act(weights: Floats, seen: NDArray[np.float32], mask: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Choose an action for each environment by the weights of its row."""
    n = len(seen)
    slots = seen[:, : SLOTS * SLOT].reshape(n, SLOTS, SLOT)
    seats = seen[:, SLOTS * SLOT : SLOTS * SLOT + RUNNING * SEAT].reshape(n, RUNNING, SEAT)
    score = np.concatenate(
        [
            np.einsum("nks,ns->nk", slots, weights[:, :SLOT]) + weights[:, SLOT : SLOT + 1],
            np.einsum("nks,ns->nk", seats, weights[:, SLOT + 1 : -1]) + weights[:, -1:],
            np.zeros((n, 1)),
        ],
        axis=1,
    )
    return np.where(mask, score, -np.inf).argmax(axis=1)


def returns(env: SchedulingVectorEnv, weights: Floats) -> Floats:
    """Mean JCT in hours of one episode in each environment."""
    seen, info = env.reset(seed=0, options={"workload": 0})
    total = np.zeros(env.num_envs)
    over = np.zeros(env.num_envs, bool)
    for _ in range(600):  # a policy that preempts without end is given up
        seen, reward, ended, _, info = env.step(act(weights, seen, info["action_mask"]))
        total += np.where(over, 0, reward)
        over |= ended
        if over.all():
            break
    return np.where(over, -total / 60, 1e3)


def main() -> None:
    """Train, then score."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--generations", type=int, default=25)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    generations = given.generations
    size = SLOT + SEAT + 2
    rng = np.random.default_rng(0)
    mean, spread = np.zeros(size), np.full(size, 1.0)
    mean[SLOT] = 0.5  # start what fits, preempt nothing
    mean[-1] = -1.0
    options = {"slots": SLOTS, "running": RUNNING, "forecast_sigma": SIGMA}
    # Environment i plays workload i modulo their number: every policy of a generation the same.
    envs = [
        SchedulingVectorEnv(
            [draw(seed) for seed in range(first, first + EPISODES)],
            num_envs=POPULATION * EPISODES,
            **options,
        )
        for first in range(0, 32, EPISODES)
    ]
    began = time.perf_counter()
    for generation in range(generations):
        weights = mean + spread * rng.standard_normal((POPULATION, size))
        weights[0] = mean
        env = envs[generation % len(envs)]
        hours = returns(env, np.repeat(weights, EPISODES, axis=0)).reshape(POPULATION, EPISODES)
        best = np.argsort(hours.mean(axis=1))[:ELITE]
        mean = 0.7 * weights[best].mean(axis=0) + 0.3 * mean
        spread = 0.7 * weights[best].std(axis=0) + 0.3 * spread
        print(f"generation {generation}: mean JCT of the best {hours.mean(axis=1).min():.3f} h")
    print(f"{generations} generations in {time.perf_counter() - began:.0f} s")

    if given.out is not None:
        given.out.write_text(json.dumps(mean.tolist()))
    unseen = [draw(seed) for seed in range(1000, 1030)]
    scored = SchedulingVectorEnv(unseen, num_envs=len(unseen), **options)
    learned = returns(scored, np.tile(mean, (len(unseen), 1)))
    for what, names, values in (
        ("waiting", SLOT_FEATURES, mean[:SLOT]),
        ("running", RUNNING_FEATURES, mean[SLOT + 1 : -1]),
    ):
        of = ", ".join(f"{name} {value:.2f}" for name, value in zip(names, values, strict=True))
        print(f"weights of a {what} job: {of}")
    for name in ("fifo", "first_fit", "las", "srsf", "gittins", "best_value"):
        jct = [
            gp.simulate(workload, name, forecast_sigma=SIGMA, seed=0, spans=False).mean_jct_s
            for workload in unseen
        ]
        ratio = np.log(learned / (np.array(jct) / 3600))
        half = 2.045 * ratio.std(ddof=1) / np.sqrt(len(ratio))
        print(
            f"{name:11} {np.mean(jct) / 3600:6.3f} h; learned / {name}: "
            f"{np.exp(ratio.mean()):.3f} ± {np.exp(ratio.mean()) * half:.3f}"
        )
    print(f"learned     {learned.mean():6.3f} h")


if __name__ == "__main__":
    main()
