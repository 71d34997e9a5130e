# SPDX-License-Identifier: Apache-2.0
"""Policies beside a plain simulator: whole seconds, one tier, all jobs looked at in each event."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest

import glidepath as gp

SEEDS = range(40)
LAS_LIMITS = (3250, 7200)  # GPU-seconds, jobs.py of Tiresias


@dataclass
class Run:
    """A job and what has happened to it."""

    place: int  # in the order of submission
    submit_s: int
    gpus: int
    duration_s: int
    restart_s: int = 0
    priority: int = 0
    deadline_s: float = math.inf
    user: str = ""
    done_s: int = 0
    held_s: int = 0  # with GPUs, starts included
    since_s: int = -1  # -1: has no GPUs
    resumes_s: int = 0
    end_s: int = -1
    starts: int = 0

    @property
    def runs(self) -> bool:
        return self.since_s >= 0

    def left_s(self, now_s: int) -> int:
        """Work, without what is left of a start."""
        past = max(0, now_s - self.resumes_s) if self.runs else 0
        return self.duration_s - self.done_s - past

    def attained_s(self, now_s: int) -> int:
        return self.held_s + (now_s - self.since_s if self.runs else 0)

    def finishes_s(self) -> int:
        return self.resumes_s + self.duration_s - self.done_s

    def start(self, now_s: int) -> None:
        self.since_s = now_s
        self.resumes_s = now_s + (self.restart_s if self.starts else 0)
        self.starts += 1

    def stop(self, now_s: int) -> None:
        self.done_s = self.duration_s - self.left_s(now_s)
        self.held_s = self.attained_s(now_s)
        self.since_s = -1


class Rule(ABC):
    """A policy: who runs from now on, of the live jobs in the order of submission."""

    def arrive(self, run: Run) -> None:
        del run

    def leave(self, run: Run) -> None:
        del run

    @abstractmethod
    def choose(self, now_s: int, live: list[Run], gpus: int) -> list[Run]:
        """Who runs from now on."""

    def wake_s(self, now_s: int, live: list[Run]) -> float:
        """When it decides again though nobody comes or ends."""
        del now_s, live
        return math.inf


def play(runs: list[Run], gpus: int, rule: Rule) -> None:
    """Ends in the order of submission, then arrivals, then one decision, event by event."""
    coming, live = list(runs), list[Run]()
    wake_s = math.inf
    while coming or live:
        ends = [run.finishes_s() for run in live if run.runs]
        now_s = int(min([*ends, wake_s, *(run.submit_s for run in coming[:1])]))
        for run in [run for run in live if run.runs and run.finishes_s() == now_s]:
            run.stop(now_s)
            run.end_s = now_s
            live.remove(run)
            rule.leave(run)
        while coming and coming[0].submit_s == now_s:
            live.append(coming.pop(0))
            rule.arrive(live[-1])
        chosen = rule.choose(now_s, live, gpus)
        for run in live:
            if run.runs and run not in chosen:
                run.stop(now_s)
        for run in live:
            if not run.runs and run in chosen:
                run.start(now_s)
        wake_s = rule.wake_s(now_s, live)


def fill(order: Sequence[Run], gpus: int, *, blocks: bool = False) -> list[Run]:
    chosen = []
    for run in order:
        if run.gpus <= gpus:
            gpus -= run.gpus
            chosen.append(run)
        elif blocks:
            break
    return chosen


class InOrder(Rule):
    """Sort all live jobs and fill; whoever comes first runs."""

    def __init__(self, key: Callable[[Run, int], float], *, blocks: bool = False) -> None:
        self.key, self.blocks = key, blocks

    def choose(self, now_s: int, live: list[Run], gpus: int) -> list[Run]:
        order = sorted(live, key=lambda run: (self.key(run, now_s), run.place))
        return fill(order, gpus, blocks=self.blocks)


class Las(Rule):
    """`dlas_sim_jobs` of Tiresias with GPU-time, three queues and without promotion."""

    def __init__(self, round_s: float = math.inf) -> None:
        self.round_s = round_s
        self.queues: list[list[Run]] = [[], [], []]
        self.runnable: list[Run] = []

    def arrive(self, run: Run) -> None:
        self.queues[0].append(run)
        self.runnable.append(run)

    def leave(self, run: Run) -> None:
        self.runnable.remove(run)
        for queue in self.queues:
            if run in queue:
                queue.remove(run)

    def queue_of(self, run: Run) -> int:
        return next(q for q, queue in enumerate(self.queues) if run in queue)

    def choose(self, now_s: int, live: list[Run], gpus: int) -> list[Run]:
        for run in self.runnable:
            q = self.queue_of(run)
            if run.runs and q < 2 and run.attained_s(now_s) * run.gpus >= LAS_LIMITS[q]:
                self.queues[q].remove(run)
                self.queues[q + 1].append(run)
        chosen = fill([run for queue in self.queues for run in queue], gpus)
        for queue in self.queues:
            queue.sort(key=lambda run: run not in chosen)
        return chosen

    def wake_s(self, now_s: int, live: list[Run]) -> float:
        looks = [
            now_s + math.ceil((LAS_LIMITS[q] - run.attained_s(now_s)) / run.gpus)
            for q in range(2)
            for run in self.queues[q]
            if run.runs
        ]
        if live and self.round_s < math.inf:
            looks.append(int((now_s // self.round_s + 1) * self.round_s))
        return min(looks, default=math.inf)


class Backfill(Rule):
    """EASY (Lifka 1995) by priority, then arrival, and a limit for each user."""

    def __init__(self, user_gpus: int | None) -> None:
        self.user_gpus = user_gpus

    def choose(self, now_s: int, live: list[Run], gpus: int) -> list[Run]:
        chosen = [run for run in live if run.runs]
        free = gpus - sum(run.gpus for run in chosen)
        shadow_s, extra = math.inf, 0
        reserved = False
        for run in sorted(live, key=lambda run: (-run.priority, run.place)):
            if run.runs:
                continue
            held = sum(other.gpus for other in chosen if other.user == run.user)
            if self.user_gpus is not None and held + run.gpus > self.user_gpus:
                continue
            if not reserved and run.gpus > free:
                reserved = True
                room = free
                for end_s, size in sorted((now_s + o.left_s(now_s), o.gpus) for o in chosen):
                    room += size
                    shadow_s = end_s
                    if room >= run.gpus:
                        break
                extra = room - run.gpus
                continue
            if run.gpus > free:
                continue
            if reserved and now_s + run.duration_s > shadow_s:
                if run.gpus > extra:
                    continue
                extra -= run.gpus
            free -= run.gpus
            chosen.append(run)
        return chosen


class Sessions(Rule):
    """`dare` without curves: nobody preempts in a session, then the least time x GPUs is first."""

    def __init__(self, session_s: float) -> None:
        self.session_s = session_s

    def choose(self, now_s: int, live: list[Run], gpus: int) -> list[Run]:
        def turn(run: Run) -> tuple[bool, int, int]:
            ran_s = now_s - run.resumes_s
            ended = not run.runs or (ran_s > 0 and ran_s % self.session_s == 0)
            return ended, run.left_s(now_s) * run.gpus if ended else 0, run.place

        return fill(sorted(live, key=turn), gpus)

    def wake_s(self, now_s: int, live: list[Run]) -> float:
        begun = [max(run.resumes_s, now_s - (now_s - run.resumes_s) % self.session_s)
                 for run in live if run.runs]  # fmt: skip
        return min((start_s + self.session_s for start_s in begun), default=math.inf)


KEYS: dict[str, Callable[[Run, int], float]] = {
    "fifo": lambda run, now_s: not run.runs,
    "first_fit": lambda run, now_s: not run.runs,
    "sjf": lambda run, now_s: run.gpus,
    "srtf": lambda run, now_s: run.left_s(now_s),
    "srsf": lambda run, now_s: run.left_s(now_s) * run.gpus,
    "edf": lambda run, now_s: run.deadline_s,
}


def columns(seed: int) -> tuple[dict[str, Any], int]:
    """Gangs of powers of two or of any size, durations from seconds to days or of few values."""
    draw = np.random.default_rng(seed)
    n, gpus = int(draw.integers(5, 60)), int(draw.choice([1, 4, 8, 13]))
    gang = 2 ** draw.integers(0, 5, n) if seed % 2 else draw.integers(1, gpus + 1, n)
    longest = 2 + 3 * (seed % 3)
    duration_s = np.ceil(10 ** draw.uniform(0, longest, n))
    if seed % 4 == 0:  # equal times: ends, arrivals and demotions fall together
        duration_s = 650 * draw.integers(1, 8, n)
    gaps_s = draw.integers(0, int(duration_s.mean()) + 2, n) // draw.choice([1, 4])
    gaps_s[draw.random(n) < 0.3] = 0
    submit_s = np.cumsum(gaps_s) // 10 * 10 if seed % 4 == 0 else np.cumsum(gaps_s)
    deadline_s = submit_s + duration_s * draw.integers(1, 6, n)
    return {
        "job": np.arange(n),
        "submit_s": submit_s,
        "gpus": np.minimum(gang, gpus),
        "duration_s": duration_s,
        "restart_s": draw.choice([0, 7, 60, 650], n) if seed % 5 == 0 else np.full(n, -1.0),
        "priority": draw.integers(0, 3, n),
        "deadline_s": np.where(draw.random(n) < 0.3, np.inf, deadline_s),
        "user": [f"u{user}" for user in draw.integers(0, 3, n)],
    }, gpus


def runs_of(jobs: dict[str, Any], restart_s: int) -> list[Run]:
    runs = []
    for place, job in enumerate(jobs["job"]):
        row = {name: column[job] for name, column in jobs.items()}
        times = [int(row[name]) for name in ("submit_s", "gpus", "duration_s")]
        run = Run(place, *times, priority=row.get("priority", 0), user=row.get("user", ""))
        run.deadline_s = row.get("deadline_s", math.inf)
        own_s = int(row.get("restart_s", -1))
        run.restart_s = restart_s if own_s < 0 else own_s
        runs.append(run)
    return runs


def expect_same(policy: str, seed: int, rule: Rule, restart_s: int, **options: Any) -> None:
    jobs, gpus = columns(seed)
    want = runs_of(jobs, restart_s)
    play(want, gpus, rule)
    expect_runs(jobs, gpus, policy, want, f"seed {seed}", restart_s=restart_s, **options)


def expect_runs(
    jobs: dict[str, Any], gpus: int, policy: str, want: list[Run], said: str, **options: Any
) -> None:
    workload = gp.Workload([gp.Tier("t", gpus)], jobs)
    got = gp.simulate(workload, policy, spans=False, **options)
    said = f"{policy}, {said}, {options}"
    assert got.jobs["end_s"].tolist() == [run.end_s for run in want], said
    assert got.jobs["jct_s"].tolist() == [run.end_s - run.submit_s for run in want], said
    assert got.jobs["preemptions"].tolist() == [run.starts - 1 for run in want], said


@pytest.mark.parametrize("policy", KEYS)
def test_who_is_first_in_an_order_runs_whatever_a_restart_costs(policy: str) -> None:
    for seed in SEEDS:
        for restart_s in (0, 30, 650):
            rule = InOrder(KEYS[policy], blocks=policy == "fifo")
            expect_same(policy, seed, rule, restart_s)


def test_las_serves_the_queues_of_tiresias_in_turn() -> None:
    for seed in range(100):
        for restart_s in (0, 30, 650):
            expect_same("las", seed, Las(), restart_s)
        round_s = 1 + int(columns(seed)[0]["duration_s"].max()) // 20
        expect_same("las", seed, Las(round_s), 30, round_s=round_s)


@pytest.mark.parametrize("limited", [False, True])
def test_backfill_starts_what_delays_the_first_job_that_waits_by_nothing(limited: bool) -> None:
    for seed in range(200):
        most = int(columns(seed)[0]["gpus"].max()) if limited else None
        expect_same("slurm_backfill", seed, Backfill(most), 0, user_gpus=most)


def test_dare_preempts_where_sessions_end() -> None:
    for seed in range(100):
        session_s = 1 + int(columns(seed)[0]["duration_s"].max()) // 20
        for restart_s in (0, 30):
            rule = Sessions(session_s)
            expect_same("dare", seed, rule, restart_s, session_s=session_s)


def test_without_sessions_and_curves_nobody_preempts_under_dare() -> None:
    for seed in range(100):
        expect_same("dare", seed, Sessions(math.inf), 30)


def mean_jct_s(past: list[Run], gpus: int, key: Callable[[Run, int], float]) -> float:
    """Without restarts."""
    runs = [Run(i, run.submit_s, run.gpus, run.duration_s) for i, run in enumerate(past)]
    play(runs, gpus, InOrder(key))
    return sum(run.end_s - run.submit_s for run in runs) / len(runs)


class Leader(Rule):
    """SRTF or SRSF, whichever would have served the last thousand jobs better."""

    def __init__(self) -> None:
        self.come: list[Run] = []
        self.name = "srtf"
        self.asked, self.look_at = 0, math.inf  # jobs that have come
        self.ended, self.heard = False, 0

    def arrive(self, run: Run) -> None:
        self.come.append(run)

    def leave(self, run: Run) -> None:
        self.ended = True

    def look(self, live: list[Run], gpus: int) -> None:
        """Again at each decision until one of the two is ahead, then as jobs double."""
        new, self.asked = len(self.come) - self.asked, len(self.come)
        waiting = sum(not run.runs for run in live)
        free = gpus - sum(run.gpus for run in live if run.runs)
        must_wait = waiting > new or (waiting > 0 and free == 0)
        if not (must_wait if self.look_at == math.inf else len(self.come) >= self.look_at):
            return
        past = self.come[-1000:]
        mean_s = {name: mean_jct_s(past, gpus, KEYS[name]) for name in ("srtf", "srsf")}
        apart = mean_s["srtf"] != mean_s["srsf"]
        if apart:
            self.name = min(mean_s, key=mean_s.__getitem__)
        if apart or self.look_at < math.inf:
            self.look_at = 2 * len(self.come)

    def choose(self, now_s: int, live: list[Run], gpus: int) -> list[Run]:
        """Only an end, or a job that comes before all others of its gang, changes who runs."""
        waiting = sorted((run for run in live if not run.runs), key=self.rank(now_s))
        first = {run.gpus: run for run in reversed(waiting)}
        if self.ended or any(run in self.come[self.heard :] for run in first.values()):
            self.look(live, gpus)
        self.ended, self.heard = False, len(self.come)
        return fill(sorted(live, key=self.rank(now_s)), gpus)

    def rank(self, now_s: int) -> Callable[[Run], tuple[float, int]]:
        key = KEYS[self.name]
        return lambda run: (key(run, now_s), run.place)


def test_gittins_with_known_durations_follows_the_leader() -> None:
    leaders = set()
    for seed in range(60):
        for restart_s in (0, 30, 650):
            starts_cost = restart_s > 0 or seed % 5 == 0
            patience = {"patience": False} if starts_cost else {}
            rule = Leader()
            expect_same("gittins", seed, rule, restart_s, **patience)
            leaders.add(rule.name)
    assert leaders == {"srtf", "srsf"}


class Best(Rule):
    """The choice of the largest value among all that fit; a running job is worth 5 % more."""

    def __init__(self, value: Callable[[Run, int], float]) -> None:
        self.value = value
        self.margin = math.inf  # by which the second best was worse

    def choose(self, now_s: int, live: list[Run], gpus: int) -> list[Run]:
        worth = [self.value(run, now_s) * (1.05 if run.runs else 1) for run in live]
        sizes = range(len(live) + 1)
        choices = [
            (sum(worth[i] for i in those), those)
            for those in chain.from_iterable(combinations(range(len(live)), k) for k in sizes)
            if sum(live[i].gpus for i in those) <= gpus
        ]
        second, (best, those) = sorted([(-math.inf, ()), *choices])[-2:]
        if best > 0:
            self.margin = min(self.margin, 1 - second[0] / best)
        return [live[i] for i in those]


class LedBest(Best):
    """For completion times; with SRTF ahead the weight is times GPUs."""

    def __init__(self) -> None:
        self.leader = Leader()
        super().__init__(lambda run, now_s: self.weight(run) / run.left_s(now_s))

    def weight(self, run: Run) -> float:
        return run.gpus if self.leader.name == "srtf" else 1

    def arrive(self, run: Run) -> None:
        self.leader.arrive(run)

    def choose(self, now_s: int, live: list[Run], gpus: int) -> list[Run]:
        """Where all run, or the only one that waits has room, nothing is asked."""
        if sum(run.gpus for run in live) > gpus or sum(not run.runs for run in live) > 1:
            self.leader.look(live, gpus)
        return super().choose(now_s, live, gpus)


class LeastMakespan(Best):
    """The longest remaining time first, and late jobs as far as all work leaves room."""

    def __init__(self) -> None:
        super().__init__(self.worth)

    def choose(self, now_s: int, live: list[Run], gpus: int) -> list[Run]:
        left = [run.left_s(now_s) for run in live]
        self.longest_s = max(left, default=0)
        work_s = sum(run.gpus * time for run, time in zip(live, left, strict=True)) / gpus
        self.all_s = max(self.longest_s, work_s)
        self.gpus, self.live = gpus, len(live)
        return super().choose(now_s, live, gpus)

    def worth(self, run: Run, now_s: int) -> float:
        left_s = run.left_s(now_s)
        fair_s = run.duration_s * max(1, self.live * run.gpus / self.gpus)
        late = 4 * max(0, (now_s - run.submit_s + left_s) / fair_s - 1.2) ** 2
        room = 1 - self.longest_s / self.all_s
        share = (left_s / self.longest_s) ** 2
        return run.gpus * max(share + room * late, min(late, 0.8))

    def wake_s(self, now_s: int, live: list[Run]) -> float:
        return (now_s // 360 + 1) * 360 if live else math.inf


def heads_for(run: Run, now_s: int) -> float:
    """The value of `fairness`, e to the power of rho."""
    return math.exp((now_s - run.submit_s + run.left_s(now_s)) / run.duration_s)


PLANNERS: dict[str, Callable[[], Best]] = {
    "themis": lambda: Best(heads_for),
    "optimus": lambda: Best(lambda run, now_s: 1 / run.left_s(now_s)),
    "best_value": LedBest,
    "makespan": LeastMakespan,
}


def few_columns(seed: int) -> tuple[dict[str, Any], int]:
    """So few jobs at a time that a plan is the best of all, as a rule."""
    draw = np.random.default_rng(seed)
    n, gpus = 20, int(draw.choice([2, 4, 8]))
    return {
        "job": np.arange(n),
        "submit_s": np.cumsum(draw.integers(0, 3000, n)),
        "gpus": draw.integers(1, gpus + 1, n),
        "duration_s": np.ceil(10 ** draw.uniform(1, 4, n)),
    }, gpus


@pytest.mark.parametrize("policy", PLANNERS)
def test_a_planner_takes_the_best_of_all_choices(policy: str) -> None:
    compared = 0
    for seed in range(100):
        jobs, gpus = few_columns(seed)
        rule, want = PLANNERS[policy](), runs_of(jobs, 0)
        play(want, gpus, rule)
        if rule.margin > 1e-9:  # else two choices are equally good
            expect_runs(jobs, gpus, policy, want, f"seed {seed}")
            compared += 1
    assert compared > 50


class OnNodes(Rule):
    """Order of arrival on nodes by best fit; a larger gang has whole nodes and a part of one."""

    def __init__(self, node_gpus: int, *, blocks: bool) -> None:
        self.node_gpus, self.blocks = node_gpus, blocks
        self.seats: dict[int, list[tuple[int, int]]] = {}  # of a job: nodes and how many GPUs

    def seat(self, run: Run, free: list[int]) -> list[tuple[int, int]] | None:
        """Take the parts from the nodes on which they leave least, or nothing at all."""
        left, seats = list(free), []
        whole, rest = divmod(run.gpus, self.node_gpus)
        for part in [self.node_gpus] * whole + [rest] * (rest > 0):
            fitting = [node for node, room in enumerate(left) if room >= part]
            if not fitting:
                return None
            best = min(fitting, key=left.__getitem__)
            left[best] -= part
            seats.append((best, part))
        free[:] = left
        return seats

    def choose(self, now_s: int, live: list[Run], gpus: int) -> list[Run]:
        free = [self.node_gpus] * (gpus // self.node_gpus)
        chosen = [run for run in live if run.runs]
        for run in chosen:
            for node, part in self.seats[run.place]:
                free[node] -= part
        for run in live:
            if run.runs:
                continue
            seats = self.seat(run, free)
            if seats is not None:
                self.seats[run.place] = seats
                chosen.append(run)
            elif self.blocks:
                break
        return chosen


@pytest.mark.parametrize("policy", ["fifo", "first_fit"])
def test_gangs_sit_on_nodes_by_best_fit(policy: str) -> None:
    for seed in SEEDS:
        node_gpus = (2, 4, 6)[seed % 3]
        jobs, _ = columns(seed)
        gpus = node_gpus * -(-int(jobs["gpus"].max()) // node_gpus)
        gpus += node_gpus * (seed % 2)
        want = runs_of(jobs, 0)
        play(want, gpus, OnNodes(node_gpus, blocks=policy == "fifo"))
        tier = gp.Tier("t", gpus // node_gpus, node_gpus)
        run = gp.simulate(gp.Workload([tier], jobs), policy, in_nodes=True)
        assert run.jobs["end_s"].tolist() == [job.end_s for job in want], seed
