# SPDX-License-Identifier: Apache-2.0
"""What does `choose_accelerator` give away against the best choice in hindsight?

    PYTHONPATH=python python bench/accelerator.py [--traces FOLDER] [--prefer kwh]

Each run is replayed on hardware of three sources: `supercom` (bundled), and with --traces the
speeds that Gavel and Sia measured. A run has a target and a number of hours; the program that
decides sees the part of its curve logged so far, first a tenth. The whole curve says afterwards how
many steps each option needed, so the cheapest option that kept the hours is known.

Speeds of Gavel come with no curve: recorded runs of data/curves are played at them, one step of a
run as long as its whole on the fastest card takes eight hours. Sia's apps bring their own curves.
Hours allowed are 0.3 to 4 times what the step budget takes on the fastest option. Prices per
GPU-hour are assumptions, watts those of the catalogue.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import glidepath as gp

ROOT = Path(__file__).resolve().parents[1]
LOOKS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # of the run, when it is decided again
MOVE_H = 0.1  # of no progress after a move, paid for on the new option
PRICES = {
    "RTX 2080 Ti": 0.25,
    "RTX 3090": 0.6,
    "K80": 0.45,
    "P100 SXM2": 1.46,
    "V100 SXM2": 2.48,
    "T4": 0.53,
    "A100 SXM4 40GB": 4.1,
}
GAVEL = {"k80": "K80", "p100": "P100 SXM2", "v100": "V100 SXM2"}
SIA = {"T4": "T4", "RTX2080Ti": "RTX 2080 Ti", "V100-32GB": "V100 SXM2", "A100": "A100 SXM4 40GB"}


@dataclass(frozen=True)
class Case:
    """A run to its target: what may be chosen, and what happened."""

    run: gp.Trace
    target: float
    hours: float
    tiers: Sequence[gp.Tier]
    options: Sequence[gp.Option]

    @property
    def needed(self) -> float:
        """Steps to the first logged value at the target; infinite if there is none."""
        at = np.flatnonzero(self.run.loss <= self.target)
        return float(self.run.step[at[0]]) if at.size else np.inf


@dataclass
class Outcome:
    """Spent from the first look to the target."""

    hours: float = 0.0
    kwh: float = 0.0
    cost: float = 0.0
    moves: int = 0

    def add(self, case: Case, option: gp.Option, hours: float) -> None:
        tier = case.tiers[option.tier]
        self.hours += hours
        self.kwh += hours * option.gpus * tier.watts(option.utilization) / 1000
        self.cost += hours * option.gpus * tier.price_per_gpu_hour


@dataclass
class Tally:
    """What a way of choosing did over the cases of a source."""

    ratios: list[float] = field(default_factory=list)  # of those in time
    late: int = 0
    moves: int = 0
    same: int = 0


def tier(name: str, nodes: int = 4, gpus_per_node: int = 4) -> gp.Tier:
    card = gp.Tier.of(name, name, nodes, gpus_per_node)
    return gp.Tier(
        name,
        nodes,
        gpus_per_node=gpus_per_node,
        memory_gb=card.memory_gb,
        idle_watts=card.idle_watts,
        busy_watts=card.busy_watts,
        price_per_gpu_hour=PRICES[name],
    )


def spend(case: Case, option: gp.Option, steps: float) -> Outcome:
    out = Outcome()
    out.add(case, option, steps / (3600 * option.steps_per_s))
    return out


def start_of(case: Case) -> float:
    return float(case.run.step[int(np.ceil(LOOKS[0] * len(case.run))) - 1])


def rank(case: Case, seen: gp.Trace, spent: Outcome, prefer: str) -> list[gp.AcceleratorChoice]:
    """Ask with what is logged and what is left of the hours."""
    job = gp.Job(
        0,
        list(case.options),
        steps_done=float(seen.step[-1]),
        budget_steps=float(case.run.step[-1]),
        observed_step=seen.step,
        observed_loss=seen.loss,
    )
    left = max(0.0, case.hours - spent.hours)
    return gp.choose_accelerator(
        job, case.tiers, target=case.target, reached_by="point", max_hours=left, prefer=prefer
    )


def chosen(case: Case, prefer: str, *, again: bool) -> Outcome:
    """Replay what is chosen at the first look, or at every look.

    A move must save more than it costs, or rescue a run that is likely to be late.
    """
    spent, held = Outcome(), None
    looks = [int(np.ceil(share * len(case.run))) for share in (LOOKS if again else LOOKS[:1])]
    at = [float(case.run.step[k - 1]) for k in looks] + [case.needed]
    for k, now, until in zip(looks, at, at[1:], strict=False):
        if now >= case.needed:
            break
        ranked = rank(case, gp.Trace(case.run.step[:k], case.run.loss[:k]), spent, prefer)
        best = ranked[0]
        if held is not None:
            mine = next(choice for choice in ranked if choice.option == held)
            move = Outcome()
            move.add(case, best.option, MOVE_H)
            saved = getattr(mine, prefer) - getattr(best, prefer)
            if mine.good == best.good and not saved > getattr(move, prefer):
                best = mine
            elif best is not mine:
                spent.moves += 1
                spent.add(case, best.option, MOVE_H)
        held = best.option
        steps = min(until, case.needed) - now
        spent.add(case, held, steps / (3600 * held.steps_per_s))
    return spent


def per_step(case: Case, option: gp.Option, prefer: str) -> float:
    return float(getattr(spend(case, option, 1.0), prefer))


def always(key: Callable[[Case, gp.Option], float]) -> Callable[[Case], Outcome]:
    """Replay the option that is least by a rule which knows no curve."""

    def play(case: Case) -> Outcome:
        option = min(case.options, key=lambda option: key(case, option))
        return spend(case, option, case.needed - start_of(case))

    return play


def best_of(case: Case, prefer: str) -> Outcome | None:
    """Replay the option that hindsight takes; None where nothing would have kept the hours."""
    steps = case.needed - start_of(case)
    kept = [
        out for option in case.options if (out := spend(case, option, steps)).hours <= case.hours
    ]
    return min(kept, key=lambda out: getattr(out, prefer)) if kept else None


def recorded(most: int, rng: np.random.Generator) -> list[gp.Trace]:
    """Draw runs of each collection that learn."""
    runs = []
    for file in sorted((ROOT / "data" / "curves").glob("*.csv.gz")):
        if "nonfinite" in file.name:
            continue
        for run in rng.permutation(np.array(gp.read_traces(file), dtype=object))[:most]:
            loss = run.loss if run.direction == "min" else -run.loss
            if len(run) >= 30 and loss[-5:].mean() < loss[:5].mean() - 0.2 * np.ptp(loss):
                runs.append(gp.Trace(run.step, loss, name=run.name))
    return runs


def level_of(run: gp.Trace, rng: np.random.Generator) -> float:
    """Draw a target: the level of the run after 30 to 95 % of its points."""
    at = int(rng.uniform(0.3, 0.95) * len(run))
    return float(np.median(run.loss[max(0, at - 2) : at + 3]))


def hours_of(run: gp.Trace, options: Sequence[gp.Option], rng: np.random.Generator) -> float:
    fastest = max(option.steps_per_s for option in options)
    return float(run.step[-1] / (3600 * fastest) * np.exp(rng.uniform(np.log(0.3), np.log(4))))


def supercom(_: Path | None, most: int) -> Iterator[Case]:
    """Jobs of 100 users; the tiers get prices."""
    del most
    rng = np.random.default_rng(0)
    workload = gp.generate_workload(ROOT / "data/workloads/supercom", users=100, seed=1)
    nodes = {t.name: (t.gpu, t.nodes, t.gpus_per_node) for t in workload.tiers}
    tiers = [tier(gpu, count, size) for gpu, count, size in nodes.values()]
    jobs, curves = workload.jobs, workload.curves
    for i in range(len(jobs["job"])):
        run = curves[jobs["truth"][i]]
        options = [
            gp.Option(t, 1, float(rate), utilization=float(jobs["utilization"][i]))
            for t, rate in enumerate(jobs["steps_per_s"][i])
            if rate > 0
        ]
        yield Case(run, jobs["target_loss"][i], hours_of(run, options, rng), tiers, options)


def gavel(folder: Path, most: int) -> Iterator[Case]:
    """Recorded runs at the measured speeds of a model, batch and gang of 1 to 8."""
    rng = np.random.default_rng(1)
    speeds: dict[tuple[str, str], dict[tuple[str, int], float]] = {}
    with gzip.open(folder / "gavel_throughputs.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            if not row["other_model"] and row["consolidated"] == "1":
                kind = speeds.setdefault((row["model"], row["batch"]), {})
                kind[GAVEL[row["gpu_type"]], int(row["gpus"])] = float(row["steps_per_s"])
    kinds = [kind for _, kind in sorted(speeds.items())]
    cards = list(GAVEL.values())
    tiers = [tier(card) for card in cards]
    for run in recorded(most, rng):
        kind = kinds[rng.integers(len(kinds))]
        fastest = max(kind.values())
        scale = run.step[-1] / (8 * 3600 * fastest)
        options = [
            gp.Option(cards.index(card), gpus, scale * rate)
            for (card, gpus), rate in kind.items()
            if rate > 0
        ]
        yield Case(run, level_of(run, rng), hours_of(run, options, rng), tiers, options)


def sia(folder: Path, _: int) -> Iterator[Case]:
    """Sia's apps: measured step times and validation metrics of the same app and batch."""
    rng = np.random.default_rng(2)
    cards = list(SIA.values())
    tiers = [tier(card) for card in cards]
    times: dict[tuple[str, float], dict[tuple[int, int], float]] = {}
    with gzip.open(folder / "sia_throughput.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            if row["table"] == "scalability" and row["gpu"] in SIA:
                gpus = int(float(row["num_replicas"]))
                kind = times.setdefault((row["app"], gpus * float(row["local_bsz"])), {})
                option = cards.index(SIA[row["gpu"]]), gpus
                kind[option] = min(kind.get(option, np.inf), float(row["step_time_s"]))
    curves: dict[tuple[str, int], list[tuple[float, float]]] = {}
    with gzip.open(folder / "sia_validation.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            points = curves.setdefault((row["app"], int(row["batch_size"])), [])
            points.append((float(row["iteration"]), float(row["metric"])))
    for (app, batch), points in sorted(curves.items()):
        step, metric = np.array(sorted(points)).T
        # Options hold the batch to within a tenth: nobody measured every product.
        near: dict[tuple[int, int], float] = {}
        for (name, size), kind in times.items():
            if name == app and abs(size / batch - 1) < 0.1:
                near.update(
                    {option: min(t, near.get(option, np.inf)) for option, t in kind.items()}
                )
        if len(step) < 30 or len({card for card, _ in near}) < 2:
            continue
        falls = metric[-5:].mean() < metric[:5].mean()
        run = gp.Trace(step, metric if falls else -metric, name=f"{app}/{batch}")
        options = [gp.Option(card, gpus, 1 / seconds) for (card, gpus), seconds in near.items()]
        for _ in range(8):
            yield Case(run, level_of(run, rng), hours_of(run, options, rng), tiers, options)


SOURCES = {"supercom": supercom, "gavel": gavel, "sia": sia}


def replay(cases: Sequence[Case], prefer: str) -> tuple[dict[str, Tally], int, int]:
    """Play every way of choosing on the cases that some option finishes in time."""
    ways: dict[str, Callable[[Case], Outcome]] = {
        "chosen once": lambda case: chosen(case, prefer, again=False),
        "chosen again at each look": lambda case: chosen(case, prefer, again=True),
        "fastest": always(lambda _, option: -option.steps_per_s),
        "cheapest": always(lambda case, option: per_step(case, option, prefer)),
    }
    tallies = {name: Tally() for name in ways}
    never = impossible = 0
    for case in cases:
        if not start_of(case) < case.needed < np.inf:
            never += 1
            continue
        best = best_of(case, prefer)
        if best is None:
            impossible += 1
            continue
        for name, play in ways.items():
            out, tally = play(case), tallies[name]
            ratio = getattr(out, prefer) / getattr(best, prefer)
            tally.moves += out.moves
            if out.hours > case.hours * (1 + 1e-9):
                tally.late += 1
            else:
                tally.ratios.append(ratio)
                tally.same += abs(ratio - 1) < 1e-9
    return tallies, never, impossible


def main() -> None:
    parser = argparse.ArgumentParser(description="Regret of the accelerator that is chosen.")
    parser.add_argument("--traces", type=Path, help="folder with the tables of Gavel and Sia")
    parser.add_argument("--prefer", choices=["cost", "kwh"], default="cost")
    parser.add_argument("--curves", type=int, default=20, help="runs of a collection for Gavel")
    args = parser.parse_args()
    for name, source in SOURCES.items():
        if name != "supercom" and args.traces is None:
            continue
        cases = list(source(args.traces, args.curves))
        tallies, never, impossible = replay(cases, args.prefer)
        judged = len(cases) - never - impossible
        print(
            f"\n{name}: {judged} runs; {never} others have no target ahead that they reach, "
            f"{impossible} cannot be in time on any option"
        )
        print(
            f"| way | in time | {args.prefer} over the best: mean, median | as the best | moves |"
        )
        print("|---|---|---|---|---|")
        for way, tally in tallies.items():
            more = np.array(tally.ratios) - 1
            print(
                f"| {way} | {1 - tally.late / judged:.0%} "
                f"| {more.mean():+.1%}, {np.median(more):+.1%} "
                f"| {tally.same / judged:.0%} | {tally.moves / judged:.2f} |"
            )


if __name__ == "__main__":
    main()
