# SPDX-License-Identifier: Apache-2.0
"""The table of policies, options and values of the simulator as Python has them."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath import _core

CURVE = gp.Trace(
    np.arange(1.0, 31.0), 4 / np.arange(1.0, 31.0), lr=np.linspace(1e-3, 1e-4, 30), name="c"
)
PAIR = gp.PairSpeeds("a", "b", tier=0, first_speed=0.8, second_speed=0.7)


def workload() -> gp.Workload:
    jobs = {
        "job": [3, 4], "submit_s": [0, 0], "gpus": [1, 1], "truth": [0, -1],
        "duration_s": [0, 50], "target_loss": [0.2, 0], "budget_steps": [30, 0],
        "user": ["ann", "bob"], "job_class": ["a", "b"],
    }  # fmt: skip
    return gp.Workload([gp.Tier("one", 1)], jobs, curves=[CURVE], pairs=[PAIR], name="two")


def test_the_names_of_the_error_text_are_those_of_the_table() -> None:
    assert tuple(policy.name for policy in gp.policies()) == gp.POLICIES
    with pytest.raises(gp.InputError) as error:
        gp.simulate(workload(), "sooner")
    assert str(error.value) == (
        f"simulate: policy is 'sooner', expected one of {', '.join(gp.POLICIES)}"
    )


def test_every_policy_of_the_table_is_described_and_runs() -> None:
    for policy in gp.policies():
        assert policy.description
        assert policy.sees in ("none", "durations", "all")
        run = gp.simulate(workload(), policy.name)
        assert np.isfinite(run.jobs["end_s"]).all(), policy
        stopped = run.jobs["outcome"][0] == "target"
        assert stopped == policy.stops_at_target, policy
    sessions = {policy.name: policy.session_s for policy in gp.policies()}
    assert sessions["session_fifo"] == 3600
    assert sessions["dare"] == 300
    assert sessions["srtf"] is None


DEFAULTS: dict[str, tuple[Callable[..., object], object]] = {
    "simulate": (gp.simulate, _core.SimulationOptions()),
    "start_times": (gp.start_times, _core.StartOptions()),
    "plan": (gp.plan, _core.PlanOptions()),
    "violations": (gp.violations, _core.PlanLimits()),
    "options_of": (gp.options_of, _core.PlacementOptions()),
    "choose_accelerator": (gp.choose_accelerator, _core.RunLimits()),
}


@pytest.mark.parametrize(("function", "options"), DEFAULTS.values(), ids=DEFAULTS.keys())
def test_options_have_the_defaults_of_the_core(
    function: Callable[..., object], options: object
) -> None:
    compared = 0
    for name, parameter in inspect.signature(function).parameters.items():
        if hasattr(options, name) and parameter.default is not None:
            default = getattr(options, name)
            assert parameter.default == (tuple(default) if name == "recent" else default), name
            compared += 1
    assert compared >= 2


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("restart_s", "soon", "restart_s is 'soon', expected a number"),
        ("session_s", [3], r"session_s is \[3\], expected a number"),
        ("failures", {"repair_s": "x"}, "repair_s is 'x', expected a number"),
        ("spans", "no", "spans is 'no', expected True or False"),
    ],
)
def test_an_option_of_a_wrong_type_is_named(option: str, value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        gp.simulate(workload(), "fifo", **{option: value})


def test_an_option_that_compare_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="compare: no option 'sessions', expected one of restart_s"):
        gp.compare(workload(), ["fifo"], sessions=3)


VALUES: dict[str, Callable[[], Any]] = {
    "workload": workload,
    "pair": lambda: PAIR,
    "policy": lambda: gp.policies()[3],
    "simulation": lambda: gp.simulate(workload(), "dare"),
    "comparison": lambda: gp.compare(workload(), ["fifo", "srtf"]),
}


@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES.keys())
def test_every_value_pickles_copies_and_prints(make: Callable[[], Any]) -> None:
    value = make()
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.copy(value) == value
    assert copy.deepcopy(value) == value
    assert "object at 0x" not in repr(value)
    assert value != "another kind"


def test_a_curve_keeps_its_learning_rate() -> None:
    (curve,) = workload().curves
    assert curve == CURVE
    np.testing.assert_array_equal(curve.lr, CURVE.lr)


def test_a_tuple_is_a_pair() -> None:
    jobs = {"job": [1], "submit_s": [0], "gpus": [1], "duration_s": [5]}
    made = gp.Workload([gp.Tier("one", 1)], jobs, pairs=[("a", "b", 0, 0.8, 0.7)])
    assert made.pairs == [PAIR]


def test_a_workload_that_was_never_initialized_says_so() -> None:
    empty = gp.Workload.__new__(gp.Workload)
    for use in (repr, len, lambda w: w.jobs, lambda w: gp.simulate(w, "fifo")):
        with pytest.raises(TypeError, match="was never initialized"):
            use(empty)


CLASSES = [kind for kind in vars(_core).values() if type(kind).__name__ == "pybind11_type"]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_record_that_was_never_initialized_raises(kind: type) -> None:
    empty = kind.__new__(kind)
    properties = [name for name, member in vars(kind).items() if isinstance(member, property)]
    for name in properties:
        with pytest.raises(TypeError, match="never initialized"):
            getattr(empty, name)
    if "__repr__" in vars(kind):
        with pytest.raises(TypeError, match="never initialized"):
            repr(empty)


def test_an_environment_before_its_first_episode_raises() -> None:
    empty = _core.EnvironmentBatch.__new__(_core.EnvironmentBatch)
    with pytest.raises(TypeError, match="never initialized"):
        empty.reset(0, 0, np.zeros(1, np.float32), np.zeros(1, np.uint8))
    pytest.importorskip("gymnasium", reason="needs glidepath[gym]")
    from glidepath.gym import SchedulingEnv, SchedulingVectorEnv

    want = r"environment: reset\(\) begins an episode, it comes first"
    with pytest.raises(gp.InputError, match=want):
        SchedulingEnv(workload()).step(0)
    with pytest.raises(gp.InputError, match=want):
        SchedulingEnv(workload()).simulation()
    with pytest.raises(gp.InputError, match=want):
        SchedulingVectorEnv(workload(), num_envs=2).step([0, 0])
