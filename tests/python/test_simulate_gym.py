# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp

gymnasium = pytest.importorskip("gymnasium", reason="needs glidepath[gym]")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from glidepath.gym import (  # noqa: E402
    OBJECTIVES,
    RUNNING_FEATURES,
    SLOT_FEATURES,
    SchedulingEnv,
    SchedulingVectorEnv,
)

ROOT = Path(__file__).parents[2]
SUPERCOM = ROOT / "data" / "workloads" / "supercom"


def draw(seed: int, jobs: int = 30) -> gp.Workload:
    rng = np.random.default_rng(seed)
    return gp.Workload(
        [gp.Tier("a", 4, 2, idle_watts=20.0, busy_watts=300.0)],
        {
            "job": np.arange(jobs),
            "submit_s": np.floor(np.cumsum(rng.exponential(600, jobs))),
            "gpus": 2 ** rng.integers(0, 4, jobs),
            "duration_s": np.ceil(np.exp(rng.normal(6.5, 1.2, jobs))),
        },
    )


def play(env: SchedulingEnv, seed: int, workload: int, rank: object = None) -> float:
    """Start what fits, the oldest first, or the one with the least in a column of its features."""
    seen, info = env.reset(seed=seed, options={"workload": workload})
    total = 0.0
    while True:
        may = info["action_mask"][:32].astype(bool)
        slots = seen[: 32 * len(SLOT_FEATURES)].reshape(32, -1)
        key = np.arange(32) if rank is None else slots[:, SLOT_FEATURES.index(str(rank))]
        action = int(np.where(may, key, np.inf).argmin()) if may.any() else env.action_space.n - 1
        seen, reward, over, _, info = env.step(action)
        total += reward
        if over:
            return total


def test_gymnasium_finds_nothing_wrong() -> None:
    check_env(SchedulingEnv([draw(0), draw(1)], forecast_sigma=0.5), skip_render_check=True)


def test_gymnasium_finds_nothing_wrong_with_weights() -> None:
    env = SchedulingEnv([draw(0), draw(1)], weights_for_s=600, forecast_sigma=0.5)
    check_env(env, skip_render_check=True)
    assert env.action_space.shape == (len(OBJECTIVES),)


@pytest.mark.parametrize("objective", ["known_size", "energy"])
def test_all_weight_on_one_objective_is_the_planner_with_it(objective: str) -> None:
    workload = draw(2)
    env = SchedulingEnv(workload, weights_for_s=900, energy_weight=1.0, restart_s=30.0)
    env.reset(seed=0)
    weights = np.array([float(name == objective) for name in OBJECTIVES], np.float32)
    total, over, steps = 0.0, False, 0
    while not over:
        _, reward, over, _, _ = env.step(weights)
        total += reward
        steps += 1
    run = env.simulation()
    want = gp.simulate(workload, f"best_value:{objective}", restart_s=30.0)
    np.testing.assert_array_equal(run.jobs["end_s"], want.jobs["end_s"])
    assert -total == pytest.approx(run.jobs["jct_s"].sum() / 3600 + run.energy_kwh)
    assert steps > 3


@pytest.mark.parametrize("options", [{}, {"in_nodes": True}])
def test_all_weight_on_completion_times_is_best_value_for_them(options: dict[str, Any]) -> None:
    weights = np.array([float(name == "jct") for name in OBJECTIVES], np.float32)
    for seed in range(8):
        workload = draw(seed)
        env = SchedulingEnv(workload, weights_for_s=900, **options)
        env.reset(seed=0)
        while not env.step(weights)[2]:
            pass
        want = gp.simulate(workload, "best_value:jct", **options)
        np.testing.assert_array_equal(env.simulation().jobs["end_s"], want.jobs["end_s"])


@pytest.mark.parametrize("wake_s", [0.0, 30.0])
def test_nodes_that_sleep_cost_as_much_in_the_reward_as_in_the_account(wake_s: float) -> None:
    sleep = {"after_s": 60.0, "watts": 5.0, "wake_s": wake_s}
    env = SchedulingEnv(draw(3), energy_weight=1.0, sleep=sleep)
    reward = play(env, 0, 0)
    run = env.simulation()
    assert -reward == pytest.approx(run.jobs["jct_s"].sum() / 3600 + run.energy_kwh)
    awake = gp.simulate(draw(3), "first_fit").energy_kwh
    assert run.energy_kwh < awake


def test_starting_what_fits_in_order_is_first_fit() -> None:
    workloads = [draw(seed) for seed in range(4)]
    env = SchedulingEnv(workloads)
    for k, workload in enumerate(workloads):
        reward = play(env, 0, k)
        run = env.simulation()
        want = gp.simulate(workload, "first_fit")
        np.testing.assert_array_equal(run.jobs["end_s"], want.jobs["end_s"])
        assert -3600 * reward == pytest.approx(run.jobs["jct_s"].sum())


def test_energy_is_part_of_the_reward() -> None:
    workload = draw(3)
    plain = play(SchedulingEnv(workload), 0, 0)
    env = SchedulingEnv(workload, energy_weight=2.0)
    priced = play(env, 0, 0)
    assert plain - priced == pytest.approx(2 * env.simulation().energy_kwh)


def test_random_actions_keep_the_rules() -> None:
    workload = draw(5)
    env = SchedulingEnv(workload, restart_s=30.0)
    rng = np.random.default_rng(0)
    for seed in range(5):
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            seen, _, over, _, info = env.step(action)
            assert seen.min() >= 0
            assert seen.max() <= 1
        run = env.simulation()
        assert np.isfinite(run.jobs["end_s"]).all()
        assert run.timeline["busy"].max() <= 8
        held = run.jobs["gpu_seconds"] / workload.jobs["gpus"]
        assert (held >= workload.jobs["duration_s"]).all()


def test_a_vector_is_its_parts() -> None:
    workloads = [draw(seed) for seed in range(3)]
    vector = SchedulingVectorEnv(workloads, num_envs=3, forecast_sigma=0.5)
    single = [SchedulingEnv(workload, forecast_sigma=0.5) for workload in workloads]
    seen, info = vector.reset(seed=7, options={"workload": 0})
    parts = [env.reset(seed=7, options={"workload": 0}) for env in single]
    for _ in range(40):
        np.testing.assert_array_equal(seen, np.stack([part[0] for part in parts]))
        actions = [int(np.flatnonzero(mask)[0]) for mask in info["action_mask"]]
        seen, reward, over, _, info = vector.step(actions)
        steps = [env.step(action) for env, action in zip(single, actions, strict=True)]
        np.testing.assert_array_equal(reward, [step[1] for step in steps])
        assert not over.any()
        parts = [(step[0], step[4]) for step in steps]


def test_what_came_of_an_episode_may_be_asked_at_any_time_and_again() -> None:
    sleep = {"after_s": 60.0, "watts": 5.0}
    asked, left_alone = (SchedulingEnv(draw(3), sleep=sleep) for _ in range(2))
    runs = []
    for env in (asked, left_alone):
        _, info = env.reset(seed=0)
        over = False
        while not over:
            action = int(np.flatnonzero(info["action_mask"])[0])
            _, _, over, _, info = env.step(action)
            if env is asked:
                assert env.simulation() == env.simulation()
        runs.append(env.simulation())
        assert env.simulation() == runs[-1]
    assert len(runs[0].spans["job"]) >= 30
    assert runs[0] == runs[1]


def test_an_episode_that_is_over_begins_anew() -> None:
    vector = SchedulingVectorEnv(draw(0, jobs=2), num_envs=2)
    _, info = vector.reset(seed=0)
    ended = 0
    for _ in range(50):
        actions = np.argmax(info["action_mask"], axis=1)
        _, _, over, _, info = vector.step(actions)
        ended += int(over.sum())
    assert ended > 4


def test_jobs_with_curves_show_their_forecasts() -> None:
    env = SchedulingEnv(gp.generate_workload(SUPERCOM, users=10, seed=2))
    play(env, 0, 0)
    assert set(env.simulation().jobs["outcome"]) <= {"finished", "target"}


def test_mistakes_are_named() -> None:
    with pytest.raises(gp.InputError, match="0 slots"):
        SchedulingEnv(draw(0), slots=0)
    with pytest.raises(TypeError, match="no option 'colour', expected one of restart_s, forecast"):
        SchedulingEnv(draw(0), colour=3)
    with pytest.raises(gp.InputError, match="2147483647 slots and 8 running jobs, expected"):
        SchedulingEnv(draw(0), slots=2**31 - 1)
    env = SchedulingEnv(draw(0))
    for too_early in (lambda: env.step(0), env.simulation):
        with pytest.raises(gp.InputError, match=r"reset\(\) begins an episode, it comes first"):
            too_early()
    env.reset(seed=0)
    with pytest.raises(gp.InputError, match="action is 99, expected 0 to 40"):
        env.step(99)
    weighs = SchedulingEnv(draw(0), weights_for_s=60)
    weighs.reset(seed=0)
    with pytest.raises(gp.InputError, match="expected 8 numbers"):
        weighs.step([1.0])
    with pytest.raises(gp.InputError, match=r"weights\[\d\] is -1, expected 0 or more and finite"):
        weighs.step([-1.0] * 8)
    env = SchedulingEnv(draw(0))
    env.reset(seed=0)
    with pytest.raises(gp.InputError, match="an action is float64, expected whole numbers"):
        env.step(1.5)
    with pytest.raises(
        gp.InputError, match=r"^environment: an action is \['x'\], expected numbers$"
    ):
        weighs.step("x")


@pytest.mark.parametrize("action", [-1, 2**31, 2**32, -(2**63), np.uint64(2**63)])
def test_an_action_beyond_32_bits_is_not_taken_for_another(action: Any) -> None:
    env, vector = SchedulingEnv(draw(0)), SchedulingVectorEnv(draw(0), num_envs=2)
    refusal = rf"^environment: action is {action}, expected 0 to 40$"
    env.reset(seed=0)
    with pytest.raises(gp.InputError, match=refusal):
        env.step(action)
    vector.reset(seed=0)
    with pytest.raises(gp.InputError, match=refusal):
        vector.step(np.full(2, action))


def test_before_the_first_reset_there_is_nothing_to_step() -> None:
    calls: list[Callable[[], object]] = [
        lambda: SchedulingEnv(draw(0)).step(0),
        lambda: SchedulingEnv(draw(0)).simulation(),
        lambda: SchedulingEnv(draw(0), weights_for_s=60).step(np.zeros(len(OBJECTIVES))),
        lambda: SchedulingVectorEnv(draw(0), num_envs=2).step([0, 0]),
    ]
    for call in calls:
        with pytest.raises(gp.InputError, match=r"reset\(\) begins an episode, it comes first"):
            call()


def test_what_no_episode_can_begin_with_is_refused_in_a_sentence() -> None:
    any_env: Any = SchedulingEnv
    vector: Any = SchedulingVectorEnv
    begin: Any = SchedulingEnv(draw(0)).reset
    refused: dict[str, Callable[[], object]] = {
        "environment: workloads is 'x', expected some gp.Workload": lambda: any_env("x"),
        "environment: workloads is [1], expected some gp.Workload": lambda: any_env([1]),
        "environment: 1000000000 environments, expected 1 to 65536": lambda: vector(
            draw(0), num_envs=10**9
        ),
        f"environment: slots is {2**63}, expected a whole number": lambda: SchedulingEnv(
            draw(0), slots=2**63
        ),
        "environment: running is None, expected a whole number": lambda: any_env(
            draw(0), running=None
        ),
        "environment: energy_weight is 'x', expected a number": lambda: any_env(
            draw(0), energy_weight="x"
        ),
        "environment: energy_weight is inf, expected 0 or more and finite": lambda: any_env(
            draw(0), energy_weight=math.inf
        ),
        "environment: options is 5, expected a dict": lambda: begin(options=5),
        "environment: workload is 1.7, expected a whole number": lambda: begin(
            options={"workload": 1.7}
        ),
        "environment: workload is nan, expected a whole number": lambda: begin(
            options={"workload": float("nan")}
        ),
        "environment: workload is -1, expected 0 or more": lambda: begin(options={"workload": -1}),
        "environment: workload is 1, expected 0 to 0": lambda: begin(options={"workload": 1}),
        "environment: no option 'reset_mask', expected workload": lambda: begin(
            options={"workload": 0, "reset_mask": [True]}
        ),
        f"environment: seed is {2**64}, expected a whole number of at most 64 bits": lambda: begin(
            seed=2**64
        ),
    }
    for sentence, call in refused.items():
        with pytest.raises(gp.InputError) as error:
            call()
        assert str(error.value) == sentence


def test_an_option_that_simulate_refuses_for_a_workload_is_refused_for_an_episode() -> None:
    with_curves = gp.generate_workload(SUPERCOM, users=2)
    for workload, option in (
        (with_curves, {"forecast_sigma": 0.5}),
        (draw(0), {"stop_at_target": True}),
    ):
        with pytest.raises(gp.InputError) as error:
            gp.simulate(workload, "fifo", **option)  # type: ignore[arg-type]
        with pytest.raises(gp.InputError, match=f"^{re.escape(str(error.value))}$"):
            SchedulingEnv(workload, **option).reset(seed=0)
    SchedulingEnv(draw(0), stop_at_target=False, forecast_sigma=0.5).reset(seed=0)


def test_gymnasium_makes_it_by_name() -> None:
    env: Any = gymnasium.make("glidepath/Scheduling-v0", workloads=draw(0), max_episode_steps=3)
    env.reset(seed=0)
    ends = [env.step(env.action_space.n - 1)[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    envs = gymnasium.make_vec(
        "glidepath/Scheduling-v0",
        num_envs=3,
        vectorization_mode="vector_entry_point",
        workloads=draw(0),
    )
    assert isinstance(envs.unwrapped, SchedulingVectorEnv)
    assert envs.reset(seed=0)[0].shape == (3, *env.observation_space.shape)


def test_processes_play_what_one_process_plays() -> None:
    envs = gymnasium.vector.AsyncVectorEnv([lambda: SchedulingEnv(draw(0), slots=4)] * 2)
    try:
        seen, _ = envs.reset(seed=[5, 6])
        for seed, row in zip((5, 6), seen, strict=True):
            alone, _ = SchedulingEnv(draw(0), slots=4).reset(seed=seed)
            np.testing.assert_array_equal(row, alone)
    finally:
        envs.close()


def test_the_page_has_the_spaces_and_the_features() -> None:
    page = (ROOT / "docs" / "environment.md").read_text()
    rows = [[cell.strip(" `") for cell in line.split("|")] for line in page.splitlines()]
    named = [(row[1], row[3]) for row in rows if len(row) == 6 and row[1] in SLOT_FEATURES]
    assert tuple(slot for slot, _ in named) == SLOT_FEATURES
    assert tuple(seat for _, seat in named if seat) == RUNNING_FEATURES
    shape = re.search(r"\((\d) slots \+ (\d) running \+ (\d) tiers \+ (\d),\)", page)
    assert shape is not None
    slot, seat, tier, rest = map(int, shape.groups())
    env: Any = SchedulingEnv(draw(0), slots=5, running=3)
    assert env.observation_space.shape == (slot * 5 + seat * 3 + tier * 1 + rest,)
    assert env.action_space.n == 5 + 3 + 1
    assert f"`Box(0, 1, ({len(OBJECTIVES)},), float32)`" in page


def test_an_environment_takes_what_every_policy_reads() -> None:
    workload = draw(0)
    env = SchedulingEnv(workload, carbon_g_per_kwh=250.0, unfair_above=1.5)
    play(env, 0, 0)
    run, same = env.simulation(), gp.simulate(workload, "first_fit", unfair_above=1.5)
    assert run.carbon_kg == pytest.approx(run.energy_kwh * 0.25)
    assert run.share_unfair == same.share_unfair
    blind = SchedulingEnv(workload, knows_phases=False)
    with pytest.raises(gp.InputError, match="knows_phases is off, no job has phases"):
        blind.reset(seed=0)


@pytest.mark.parametrize("kind", [SchedulingEnv, SchedulingVectorEnv])
def test_a_seed_out_of_range_is_refused_as_that_of_a_simulation_is(kind: Any) -> None:
    for seed, expected in ((-1, "0 or more"), (2**64, "a whole number of at most 64 bits")):
        sentence = rf"^environment: seed is {seed}, expected {expected}$"
        with pytest.raises(gp.InputError, match=sentence):
            kind(draw(0)).reset(seed=seed)
        with pytest.raises(gp.InputError, match=sentence.replace("environment", "simulate")):
            gp.simulate(draw(0), "fifo", seed=seed)


def test_a_learner_may_weigh_what_the_tiers_say_nothing_of() -> None:
    jobs = {"job": [1, 2], "submit_s": [0, 0], "gpus": [1, 2], "duration_s": [500, 50]}
    env = SchedulingEnv(gp.Workload([gp.Tier("a", 2)], jobs), weights_for_s=60)
    env.reset(seed=0)
    over = False
    while not over:
        _, _, over, _, _ = env.step(np.ones(len(OBJECTIVES), np.float32))
    assert set(env.simulation().jobs["outcome"]) == {"finished"}


def test_a_seed_and_the_actions_say_all() -> None:
    def episodes(env: SchedulingEnv) -> list[float]:
        env.action_space.seed(3)
        found = []
        for seed in (4, None):  # the second goes on drawing from the first
            seen, info = env.reset(seed=seed)
            over = False
            while not over:
                found.append(float(seen.sum()))
                action = env.action_space.sample(info["action_mask"])
                seen, reward, over, _, info = env.step(action)
                found.append(reward)
        return found

    options: dict[str, Any] = {"forecast_sigma": 1.0, "failures": {"job_every_s": 5000.0}}
    first, again = (episodes(SchedulingEnv([draw(0), draw(1)], **options)) for _ in range(2))
    assert first == again


def test_threads_have_environments_of_their_own_or_take_turns() -> None:
    workload = draw(0, jobs=200)

    def alone(seed: int) -> float:
        return play(SchedulingEnv(workload, forecast_sigma=1.0), seed, 0, "remaining")

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(alone, range(4))) == [alone(seed) for seed in range(4)]

    shared: Any = SchedulingVectorEnv(workload, num_envs=200, forecast_sigma=1.0)
    shared.reset(seed=0)

    def steps(_: int) -> set[str]:
        said = set()
        for _ in range(30):
            try:
                shared.step(np.full(200, shared.single_action_space.n - 1))
            except gp.InputError as error:
                said.add(str(error))
        return said

    with ThreadPoolExecutor(4) as pool:
        said = set().union(*pool.map(steps, range(4)))
    assert said <= {"environment: one call at a time, another thread is in it"}
