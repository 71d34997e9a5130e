# SPDX-License-Identifier: Apache-2.0
"""Write the three job traces of this folder; seeded, so that the rows are the same each time.

Nothing here was measured. `queue480` is a trace of one tier of GPUs; `tiers120` with `rates` is one
of three tiers, in the columns of `Workload.from_gavel`. Published simulators were run on both: see
data/SOURCES.md.
"""

from __future__ import annotations

import gzip
import math
import random
from pathlib import Path
from statistics import NormalDist

HERE = Path(__file__).parent

# Steps per second on one GPU of three tiers, and how much of it each doubling of the gang keeps.
# The tiers have the names that Gavel's driver gives to its three types of GPU; the classes and the
# rates are invented.
TIERS = ("v100", "p100", "k80")
CLASSES = {
    "convnet": ((10.0, 5.6, 1.5), 0.92),
    "encoder": ((6.4, 2.0, 0.7), 0.85),
    "recurrent": ((12.5, 9.5, 4.4), 0.7),
    "recommender": ((40.0, 31.0, 17.0), 0.6),
    "policy": ((3.2, 2.9, 2.4), 0.5),
}
# What a class asks of a GPU, for the speeds of two jobs on the same one.
DEMAND = {
    "convnet": 0.9,
    "encoder": 0.8,
    "recurrent": 0.45,
    "recommender": 0.35,
    "policy": 0.2,
}


def normal(rng: random.Random) -> float:
    """A normal number from one uniform one, which Python promises to repeat."""
    return NormalDist().inv_cdf(min(max(rng.random(), 1e-12), 1 - 1e-12))


def pick(rng: random.Random, weights: dict[int, float]) -> int:
    """A key, as often as its weight says; the weights add up to 1."""
    at = rng.random() - 1
    for key, weight in reversed(weights.items()):
        at += weight
        if at >= 0:
            return key
    return next(iter(weights))


def duration_s(rng: random.Random, median: float, spread: float, longest: float) -> int:
    """Log-normal, in whole seconds."""
    return round(min(max(median * math.exp(spread * normal(rng)), 20), longest))


def queue480() -> list[str]:
    """480 jobs over two days: sweeps of equal gangs submitted at once, and jobs alone."""
    rng = random.Random(480)
    gangs = {1: 0.5, 2: 0.16, 4: 0.16, 8: 0.13, 16: 0.05}
    rows = ["job,submit_s,gpus,duration_s"]
    now = 0.0
    while len(rows) <= 480:
        # Nights are three times as quiet as days.
        day = 0.5 + 0.5 * math.sin(2 * math.pi * now / 86400)
        now -= 500 * math.log(1 - rng.random()) / (0.5 + day)
        members = pick(rng, {1: 0.85, 3: 0.1, 8: 0.05})
        gang = pick(rng, gangs)
        median = duration_s(rng, 1200, 1.7, 200_000)
        for _ in range(min(members, 481 - len(rows))):
            seconds = duration_s(rng, median, 0.5 if members > 1 else 0, 400_000)
            rows.append(f"{len(rows) - 1},{round(now)},{gang},{seconds}")
    return rows


def rate(name: str, tier: int, gang: int) -> float:
    """Steps per second of a gang alone."""
    alone, kept = CLASSES[name]
    return float(f"{alone[tier] * gang * kept ** math.log2(gang):.4g}")


def rates() -> list[str]:
    """Rates of each class and gang alone, and of pairs on one GPU."""
    rows = [
        "gpu_type,consolidated,model,batch,gpus,other_model,other_batch,other_gpus,steps_per_s,"
        "other_steps_per_s"
    ]
    for tier, gpu in enumerate(TIERS):
        for name in CLASSES:
            rows += [f"{gpu},1,{name},,{g},,,,{rate(name, tier, g)}," for g in (1, 2, 4, 8)]
            for other in CLASSES:
                share = min(1.0, 1.05 / (DEMAND[name] + DEMAND[other]))
                both = [f"{share * rate(of, tier, 1):.4g}" for of in (name, other)]
                rows.append(f"{gpu},1,{name},,1,{other},,1,{both[0]},{both[1]}")
    return rows


def tiers120() -> list[str]:
    """120 jobs over ten hours, in steps, of five classes that suit the tiers differently."""
    rng = random.Random(121)  # one with which Gavel drops no job
    rows = ["job,submit_s,gpus,model,batch,total_steps"]
    now = 0.0
    for job in range(120):
        name = list(CLASSES)[int(rng.random() * len(CLASSES))]
        gang = pick(rng, {1: 0.6, 2: 0.2, 4: 0.15, 8: 0.05})
        steps = round(duration_s(rng, 9000, 0.8, 40_000) * rate(name, 0, gang))
        rows.append(f"{job},{round(now)},{gang},{name},,{steps}")
        now -= 300 * math.log(1 - rng.random())
    return rows


TRACES = {"queue480": queue480, "tiers120": tiers120, "rates": rates}


def main() -> None:
    """Write the files."""
    for name, make in TRACES.items():
        packed = gzip.compress("".join(row + "\n" for row in make()).encode(), 9, mtime=0)
        (HERE / f"{name}.csv.gz").write_bytes(packed)


if __name__ == "__main__":
    main()
