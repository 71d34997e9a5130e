# SPDX-License-Identifier: Apache-2.0
"""What each part of glidepath that may end a run does with the same runs.

    PYTHONPATH=python python bench/decisions.py data/curves ../shared/data/wild --source

Each finished run is played with three targets: the best loss at 85 % of the run and at 97 %, which
it reaches late, and one tenth of its whole descent below its best, which it does not reach. The
late ones are by the level that counts (docs/live.md), so that no lucky value is a target. Each part
looks at the run a hundred times, `dare` at the end of each of a hundred sessions:

- callback: `Adviser`, the core of the callbacks, five looks in a row, with the logged schedule;
- watch: the rule of `glidepath watch --until-decided`, with the schedule that it infers;
- pilot: what the Slurm pilot decides from the log;
- pruner: `ForecastPruner(target=...)` in a study of this trial;
- dare: that policy in the simulator, with a GPU for each run;
- flat: a probability of at most 2 % at a single look after ten points, the pilot's earlier rule.

A wrong stop ends a run that would have reached its target within the budget. Left alone are runs
that do not reach it and went on; the steps saved are those of the runs that do not reach it.

Runs of one group have something in common: a repository, a task, a benchmark. `--half` plays those
of the groups whose names have an odd or even checksum, so that what is chosen on the one half can
be judged on the other.
"""

from __future__ import annotations

import argparse
import logging
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import optuna

import glidepath as gp
from glidepath._horizon import horizon
from glidepath._judge import judge
from glidepath._verdicts import meaning
from glidepath.adapters._adviser import Adviser
from glidepath.adapters.optuna import ForecastPruner
from glidepath.engines.slurm._comment import JobRequest
from glidepath.engines.slurm._job_forecast import forecast_job
from glidepath.engines.slurm._options import PilotOptions
from glidepath.engines.slurm._traces import TraceStore

LOOKS, SEED = 100, 0
REPORTED = 1_000_000  # last step of a trial, as Optuna takes whole steps only
LATE, BEYOND = (0.85, 0.97), 0.1
SESSION_S = 3600.0
FLAT, FLAT_POINTS = 0.02, 10
# What of a curve's name tells its group, by collection; otherwise all before the first / | or :.
GROUPS = {
    r"mlperf|oligogym|yolo|dialogsum": r"$",
    r"modded": r"(?<=/)[^/]+",
    r"rl-sb3": r"(?<=/).*?(?=-|NoFrame)",
    r"rl-tdmpc2": r"(?<=-)[^/]+",
}
# Collections of the same runs by another metric.
OF_ONE_TASK = r"-(train|valid|val|eval|acc|err|map|accuracy|greedy|r2|nearest|distance|words|rmse)$"
SOURCES = {"curves": "development collections", "wild": "public repositories"}
OURS = Path(__file__).resolve().parents[1] / "data" / "curves"


@dataclass(frozen=True)
class Finished:
    """A finished run, where it is from, and what it has in common with others."""

    source: str
    group: str
    run: gp.Trace

    @property
    def half(self) -> str:
        """The half of all groups in which its own is."""
        return ("even", "odd")[zlib.crc32(self.group.encode()) % 2]


def looks(run: gp.Trace) -> list[int]:
    """Give the rows at which a run is looked at, the last but one at the latest."""
    return sorted({*np.linspace(3, len(run) - 2, LOOKS).astype(int).tolist()})


def level(values: np.ndarray) -> float:
    """Give the level of a run by its curve: the median of its newest values."""
    newest = min(63, len(values) // 4, max(len(values) // 10, 5))
    return float(np.median(values[-max(newest - (newest + 1) % 2, 1) :]))


def best_levels(run: gp.Trace) -> np.ndarray:
    """Give the best level up to each row, with signs by which less is better."""
    loss = -run.loss if run.direction == "max" else run.loss
    return np.minimum.accumulate([level(loss[: i + 1]) for i in range(len(loss))])


def targets(run: gp.Trace) -> list[tuple[float, bool]]:
    """(target, whether the run reaches it)."""
    sign = -1.0 if run.direction == "max" else 1.0
    loss, levels = sign * run.loss, best_levels(run)
    late = [(sign * float(levels[int(share * len(loss))]), True) for share in LATE]
    return [*late, (sign * float(loss.min() - BEYOND * (loss[0] - loss.min())), False)]


def callback(run: gp.Trace, target: float) -> float:
    """Play the core of the adapters; give the step at which it stops a run as lost."""
    adviser = Adviser(
        "act", target=target, direction=run.direction, schedule=gp.Schedule.logged(run)
    )
    adviser.begin(budget=float(run.step[-1]))
    at = set(looks(run))
    for i, (step, loss) in enumerate(zip(run.step.tolist(), run.loss.tolist(), strict=True)):
        if i not in at:
            adviser.watch.add(step, loss)
            continue
        adviser.add(step, loss)
        if adviser.stop and adviser.decision is not None:
            return step if meaning(adviser.decision.verdict).is_lost else np.nan
    return np.nan


def watch(run: gp.Trace, target: float) -> float:
    """Play `glidepath watch`: the last five points at each look, and the inferred schedule."""
    budget = float(run.step[-1])
    points = list(zip(run.step.tolist(), run.loss.tolist(), strict=True))
    for i in looks(run):
        seen = run.until(points[i][0])
        plan = horizon(seen, budget=budget)
        live = gp.Watch(
            target=target, budget=budget, direction=run.direction, schedule=plan.schedule
        )
        decision, stop = judge(live, points[: i + 1])
        if stop:
            return points[i][0] if meaning(decision.verdict).is_lost else np.nan
    return np.nan


def pilot(run: gp.Trace, target: float) -> float:
    """Play the Slurm pilot: a log that grows, read as it reads it."""
    request = JobRequest(target=target, budget=float(run.step[-1]), direction=run.direction)
    store, done = TraceStore(), 0
    with tempfile.TemporaryDirectory() as folder, Path(folder, "log.csv").open("w") as log:
        log.write(f"step,{'val_accuracy' if run.direction == 'max' else 'loss'}\n")
        for i in looks(run):
            for step, loss in zip(run.step[done : i + 1], run.loss[done : i + 1], strict=True):
                log.write(f"{float(step)!r},{float(loss)!r}\n")
            log.flush()
            done = i + 1
            metric = "val_accuracy" if run.direction == "max" else "loss"
            seen = store.read(Path(log.name), metric=metric, direction=run.direction)
            said = forecast_job(seen, request, PilotOptions())
            if said.stop:
                return float(run.step[i]) if meaning(said.verdict).is_lost else np.nan
    return np.nan


def pruner(run: gp.Trace, target: float) -> float:
    """Play a study of one trial, which reports at each look."""
    study = optuna.create_study(
        pruner=ForecastPruner(REPORTED, target=target),
        direction="maximize" if run.direction == "max" else "minimize",
    )
    trial = study.ask()
    sign = -1.0 if run.direction == "max" else 1.0
    for i in looks(run):
        trial.report(float(run.loss[i]), round(REPORTED * float(run.step[i] / run.step[-1])))
        if sign * run.loss[i] <= sign * target:
            return np.nan
        if trial.should_prune():
            return float(run.step[i])
    return np.nan


def flat(run: gp.Trace, target: float) -> float:
    """Play the rule of one look."""
    budget = float(run.step[-1])
    live = gp.Watch(target=target, budget=budget, direction=run.direction)
    at = set(looks(run))
    for i, (step, loss) in enumerate(zip(run.step.tolist(), run.loss.tolist(), strict=True)):
        live.add(step, loss)
        if i in at and i + 1 >= FLAT_POINTS:
            decision = live.decision()
            if decision.verdict == "reached":
                return np.nan
            if decision.verdict == "diverged" or decision.probability <= FLAT:
                return step
    return np.nan


def dare(runs: list[gp.Trace], goals: list[float]) -> list[float]:
    """Simulate all at once, a GPU for each, a hundred sessions long."""
    budgets = np.array([run.step[-1] for run in runs])
    # The simulator minimises: a metric that rises is turned over.
    signs = [-1.0 if run.direction == "max" else 1.0 for run in runs]
    jobs = {
        "job": np.arange(len(runs)),
        "submit_s": np.zeros(len(runs)),
        "gpus": np.ones(len(runs), dtype=int),
        "truth": np.arange(len(runs)),
        "target_loss": [sign * goal for sign, goal in zip(signs, goals, strict=True)],
        "budget_steps": budgets,
        "steps_per_s": (budgets / (LOOKS * SESSION_S))[:, None],
    }
    curves = [gp.Trace(r.step, s * r.loss, lr=r.lr) for r, s in zip(runs, signs, strict=True)]
    tier = gp.Tier("all", nodes=1, gpus_per_node=len(runs))
    world = gp.Workload([tier], jobs, curves=curves)
    found = gp.simulate(world, "dare", session_s=SESSION_S).jobs
    share = (np.asarray(found["end_s"]) - np.asarray(found["start_s"])) / (LOOKS * SESSION_S)
    lost = np.asarray(found["outcome"]) == "never"
    return np.where(lost, share * budgets, np.nan).tolist()


PARTS: dict[str, Callable[[gp.Trace, float], float]] = {
    "callback": callback,
    "watch": watch,
    "pilot": pilot,
    "pruner": pruner,
    "flat": flat,
}


def group_of(collection: str, name: str | None) -> str:
    """Name the group of a curve; without its name that is the task."""
    task = re.sub(OF_ONE_TASK, "", collection)
    if name is None:
        return task
    for pattern, common in GROUPS.items():
        if re.match(pattern, collection):
            found = re.search(common, name)
            return f"{task}:{found[0] if found else name}"
    return f"{task.split('-')[0]}:{re.split('[/|:]', name)[0]}"


def improves(run: gp.Trace) -> bool:
    """Whether a run comes to a better level late than it had at the first look."""
    levels = best_levels(run)
    return bool(levels[int(LATE[0] * len(run))] < levels[looks(run)[0]])


def finished(paths: list[Path], curves: int, each: int) -> Iterator[Finished]:
    """Draw finished runs of each collection, not more than `each` of a group."""
    for file in [f for p in paths for f in (sorted(p.glob("*.csv.gz")) if p.is_dir() else [p])]:
        if "nonfinite" in file.name:
            continue
        collection, ours = file.name.split(".")[0], file.resolve().parent == OURS
        source = "ours" if ours else SOURCES.get(file.parent.name, collection.split("-")[0])
        runs = [run for run in gp.read_traces(file) if len(run) >= 30]
        runs = [run for run in runs if np.isfinite(run.loss).all()]
        drawn: Counter[str] = Counter()
        for i in np.random.RandomState(SEED).permutation(len(runs)):
            group = group_of(collection, None if ours else runs[i].name)
            wanted = drawn[group] < each and drawn.total() < curves
            if wanted and improves(runs[i]):
                drawn[group] += 1
                yield Finished(source, group, runs[i])


def played(run: gp.Trace) -> dict[str, list[float]]:
    """Play each part with each target; give the shares of the budget at which it stops the run."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.getLogger("glidepath.adapters").setLevel(logging.ERROR)
    goals = [goal for goal, _ in targets(run)]
    stops = {name: [part(run, goal) for goal in goals] for name, part in PARTS.items()}
    stops["dare"] = dare([run] * len(goals), goals)
    return {name: [at / float(run.step[-1]) for at in found] for name, found in stops.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, help="folders, or files of curves")
    parser.add_argument("--curves", type=int, default=20, help="runs of a collection")
    parser.add_argument("--group", type=int, default=10**6, help="runs of a group in a collection")
    parser.add_argument("--half", choices=("even", "odd"), help="only the groups of this half")
    parser.add_argument("--each", action="store_true", help="a table of each source, too")
    options = parser.parse_args()
    runs = list(finished(options.paths, options.curves, options.group))
    runs = [each for each in runs if options.half in (None, each.half)]
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(played, [each.run for each in runs]))
    reached = np.array([true for each in runs for _, true in targets(each.run)])
    sources = np.repeat([each.source for each in runs], len(LATE) + 1)
    stops = {name: np.array([at for each in found for at in each[name]]) for name in found[0]}
    for source in [*dict.fromkeys(sources.tolist())] * options.each + ["all"]:
        mine = (sources == source) | (source == "all")
        table(source, {name: shares[mine] for name, shares in stops.items()}, reached[mine])


def table(source: str, stops: dict[str, np.ndarray], reached: np.ndarray) -> None:
    """Print a row for each part, from the shares of the budget at which it stops runs."""
    print(f"\n{source}: {reached.sum()} reach their target, {(~reached).sum()} do not\n")
    print("| part | wrong stops | left alone | steps saved | stopped at, median |")
    print("|---|---|---|---|---|")
    for name, at in stops.items():
        wrong, right = np.isfinite(at[reached]), at[~reached]
        saved = np.nan_to_num(1 - right).mean()
        middle = f"{np.nanmedian(right):.0%}" if np.isfinite(right).any() else ""
        cells = [name, f"{wrong.sum()} ({wrong.mean():.1%})", np.isnan(right).sum(), f"{saved:.0%}"]
        print("| " + " | ".join(map(str, [*cells, middle])) + " |", flush=True)


if __name__ == "__main__":
    main()
