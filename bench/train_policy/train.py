# SPDX-License-Identifier: Apache-2.0
"""Train the policy `learned`: seeded, on one core, with checkpoints and recorded curves.

    python bench/train_policy/train.py OUT [--traces PATH] [--head HEAD] [--minutes M] [--seed S]

With weights of zero `learned` is `best_value` but for jobs of an unknown end. From there each head
moves by CMA-ES to less of

    mean of log(JCT / that of best_value) + what more preemptions and bad single workloads cost

on workloads that are drawn anew for each fold (settings.toml has every number). OUT gets
`HEAD.json`, a checkpoint that a later call goes on from, `HEAD.csv`, the curve, and
`learned.txt`, all values, which `gp.plan`, `simulate` and `--planner learned=` read.
PATH is a folder of the traces that settings.toml names, or one trace of your own (a CSV with
submit_s, gpus and duration_s); without it only generated workloads are played.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from evolution import Evolution, Floats
from workloads import conditions, generator, play, supercom, window, workload

import glidepath as gp
from glidepath import _core

SETTINGS = tomllib.loads((Path(__file__).parent / "settings.toml").read_text())
TERMS, PATIENCE, SHARES, RANGES = 17, 3, 2, 5
QUEUE_END, END = 2 * TERMS + PATIENCE, 3 * TERMS + PATIENCE + SHARES
SLICES = {
    "round": slice(0, TERMS),
    "queue": slice(TERMS, QUEUE_END),
    "budget": slice(QUEUE_END, END),
}


def ranges() -> list[float]:
    """Low and high ends, as `learned_values` has them."""
    pairs = list(SETTINGS["ranges"].values())
    return [low for low, _ in pairs] + [high for _, high in pairs]


def values_of(heads: dict[str, Floats]) -> list[float]:
    """All values, zeros for a head that is not trained."""
    out = np.zeros(END)
    for name, weights in heads.items():
        out[SLICES[name]] = weights
    return [*out.tolist(), *ranges()]


class Game:
    """Workloads of one head with what best_value makes of them."""

    def __init__(self, head: str, traces: Path | None, clusters: str = "train") -> None:
        self.head, self.traces, self.clusters = head, traces, SETTINGS[clusters]
        self.settings = SETTINGS["heads"][head]
        self.played: dict[int, tuple[gp.Workload, dict[str, Any], gp.Simulation]] = {}
        self.memo = _core.ForecastMemo()  # what one candidate forecasts the others find

    def round(self, number: int) -> tuple[gp.Workload, dict[str, Any], gp.Simulation]:
        """Return workload, conditions and the simulation of best_value."""
        if number not in self.played:
            settings, draw = self.settings, SETTINGS["draw"]
            rng = generator(SETTINGS["seed"], settings["stream"], number)
            curves = settings["with_curves"] > 0 and rng.random() < settings["with_curves"]
            if curves:
                drawn = supercom(int(rng.integers(*draw["users"])), int(rng.integers(1 << 30)))
            else:
                jobs = window(rng, draw, self.traces, self.clusters)
                drawn = workload(rng, draw, jobs, settings["tiers"])
            how = conditions(rng, draw)
            if curves:
                del how["forecast_sigma"]  # each job is forecast from its curve
            self.played[number] = drawn, how, play(drawn, "best_value", how, self.memo)
        return self.played[number]

    def ratios(self, weights: Floats, number: int) -> tuple[float, float]:
        """Log of JCT and of preemptions, over those of best_value."""
        drawn, how, base = self.round(number)
        planner = {"learned": values_of({self.head: weights})}
        run = play(drawn, "learned", how | {"planner": planner}, self.memo)
        more = np.log((run.preemptions + 5) / (base.preemptions + 5))
        return float(np.log(run.mean_jct_s / base.mean_jct_s)), float(more)

    def cost(self, weights: Floats, numbers: range) -> float:
        """What is to be small."""
        search = SETTINGS["search"]
        jct, preemptions = np.array([self.ratios(weights, n) for n in numbers]).T
        worse = np.maximum(0, jct - search["tolerance"]).mean()
        more = preemptions.mean()
        rate = search["more_preemptions"] if more > 0 else search["preemptions"]
        return float(jct.mean() + search["worse"] * worse + rate * more)


def train(head: str, out: Path, traces: Path | None, minutes: float | None) -> int:
    """Train a head, from its checkpoint where there is one, for so long or so many generations."""
    search, game = SETTINGS["search"], Game(head, traces)
    generations = SETTINGS["heads"][head]["generations"] if minutes is None else np.inf
    seconds = np.inf if minutes is None else 60 * minutes
    start = np.zeros(SLICES[head].stop - SLICES[head].start)
    law = Evolution(start, search["first_step"], search["population"], SETTINGS["seed"])
    checkpoint, curve = out / f"{head}.json", out / f"{head}.csv"
    if checkpoint.exists():
        restore(law, json.loads(checkpoint.read_text()))
    else:
        curve.write_text("step,loss,best,width,seconds\n")
    began = time.monotonic()
    while law.generation < generations and time.monotonic() - began < seconds:
        first = law.generation % search["folds"] * search["workloads"]
        numbers = range(first, first + search["workloads"])
        found = np.array([game.cost(weights, numbers) for weights in law.ask()])
        law.tell(found)
        row = (law.generation, 1 + found.mean(), 1 + found.min(), law.step)
        line = ",".join(f"{value:.6g}" for value in (*row, time.monotonic() - began))
        with curve.open("a") as file:
            file.write(line + "\n")
        checkpoint.write_text(json.dumps(state(law)))
        print(f"{head}: {line}", flush=True)
    return law.generation


def state(law: Evolution) -> dict[str, Any]:
    """All that the search goes on from."""
    arrays = ("centre", "covariance", "path", "step_path")
    return {name: getattr(law, name).tolist() for name in arrays} | {
        "step": law.step,
        "generation": law.generation,
        "rng": law.rng.bit_generator.state,
    }


def restore(law: Evolution, saved: dict[str, Any]) -> None:
    """Undo `state`."""
    for name in ("centre", "covariance", "path", "step_path"):
        setattr(law, name, np.array(saved[name]))
    law.step, law.generation = saved["step"], saved["generation"]
    law.rng.bit_generator.state = saved["rng"]


def ship(values: list[float]) -> None:
    """Write the header that compiles the values in."""
    header = Path(__file__).parents[2] / "src" / "plan" / "learned_values.hpp"
    before, _, after = header.read_text().partition("kBuiltInValues{")
    _, _, after = after.partition("};")
    header.write_text(f"{before}kBuiltInValues{{\n    {', '.join(map(repr, values))}}};{after}")


def main() -> None:
    """Train the heads that are named, then write the values of all that there are."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--traces", type=Path, help="a CSV of jobs; default: generated jobs")
    parser.add_argument("--head", choices=list(SLICES), action="append")
    parser.add_argument("--minutes", type=float, help="of each head; default: its generations")
    parser.add_argument("--seed", type=int, default=SETTINGS["seed"])
    parser.add_argument("--ship", action="store_true", help="compile the values in")
    given = parser.parse_args()
    if given.traces is not None and not given.traces.exists():
        parser.error(f"--traces is {given.traces}, expected a CSV of jobs or a folder of traces")
    SETTINGS["seed"] = given.seed
    given.out.mkdir(parents=True, exist_ok=True)
    for head in given.head or list(SLICES):
        if train(head, given.out, given.traces, given.minutes) >= 5:
            (curve,) = gp.read_traces(given.out / f"{head}.csv", metric="loss")
            ahead = float(curve.step[-1]) * 1.5
            print(f"{head}: half as many generations again: {gp.forecast(curve, [ahead])}")
    heads = {
        head: np.array(json.loads((given.out / f"{head}.json").read_text())["centre"])
        for head in SLICES
        if (given.out / f"{head}.json").exists()
    }
    values = [round(value, 4) for value in values_of(heads)]
    gp.write_learned_values(values, given.out / "learned.txt")
    if given.ship:
        ship(values)


if __name__ == "__main__":
    main()
