# SPDX-License-Identifier: Apache-2.0
"""CPU time to say when each of 1 000 waiting jobs will start.

    PYTHONPATH=python python bench/starts.py [POLICY ...]

64 GPUs run what fits of 1 060 jobs: gangs of 1 to 8, lognormal durations (median 1 h, deviation
1.5) of which each law is 20 guesses wrong by exp(N(0, 0.5)). `alone`: nobody comes; `crowd`: 300
recent jobs, which use 70 % of the GPUs, go on to come. One thread, the least of some calls.
"""

import sys
import time

import numpy as np

import glidepath as gp

GPUS, WAITING, RECENT, LOAD, CALLS = 64, 1000, 300, 0.7, 3
POLICIES = ("fifo", "first_fit", "las", "srsf", "best_value", "slurm_backfill")


def job_of(job: int, submit_s: float, gang: int, law: np.ndarray) -> gp.Job:
    """A job that knows its duration as a law."""
    return gp.Job(
        id=job,
        submit_s=submit_s,
        options=[gp.Option(0, gang, 1.0)],
        remaining_steps=np.sort(law).tolist(),
    )


def drawn(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gangs and laws of random jobs."""
    duration = 3600 * np.exp(1.5 * rng.standard_normal(count))
    gangs = rng.choice([1, 2, 4, 8], size=count, p=[0.5, 0.2, 0.2, 0.1])
    return gangs, duration[:, None] * np.exp(0.5 * rng.standard_normal((count, 20)))


def case(rng: np.random.Generator) -> tuple[gp.Snapshot, list[gp.Job]]:
    """A crowded cluster, and the jobs that came of late."""
    gangs, laws = drawn(rng, RECENT)
    window_s = float((gangs * laws.mean(axis=1)).sum()) / (GPUS * LOAD)
    came_s = np.sort(rng.uniform(-window_s, 0, RECENT))
    recent = [job_of(-1 - j, came_s[j], int(gangs[j]), laws[j]) for j in range(RECENT)]
    free, live, running, waiting = GPUS, [], [], 0
    for j, (gang, law) in enumerate(zip(*drawn(rng, WAITING + GPUS), strict=True)):
        if waiting == WAITING:
            break
        live.append(job_of(j, -60.0 * (WAITING + GPUS - j), int(gang), law))
        if gang <= free:
            free -= gang
            running.append(gp.Allocation(j, 0, int(gang)))
        else:
            waiting += 1
    return gp.Snapshot([gp.Tier("a", GPUS)], live, running=running), recent


def least(snapshot: gp.Snapshot, policy: str, recent: list[gp.Job]) -> float:
    """Milliseconds of one core."""
    times = []
    for _ in range(CALLS):
        begin = time.process_time()
        gp.start_times(snapshot, policy, recent=recent, threads=1)
        times.append(1e3 * (time.process_time() - begin))
    return min(times)


def main() -> None:
    """Print a line for each policy."""
    snapshot, recent = case(np.random.default_rng(0))
    print(f"{'policy':>14} {'alone':>8} {'crowd':>8}   ms")
    for policy in sys.argv[1:] or POLICIES:
        alone, crowd = (least(snapshot, policy, jobs) for jobs in ([], recent))
        print(f"{policy:>14} {alone:8.1f} {crowd:8.1f}")


if __name__ == "__main__":
    main()
