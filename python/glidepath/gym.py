# SPDX-License-Identifier: Apache-2.0
"""Gymnasium environments over the simulator: scheduling as a game, for reinforcement learning.

Needs ``pip install 'glidepath[gym]'``. One decision at a time: start a waiting job on its fastest
tier with room, preempt a running one, or let time pass to the next event at which jobs wait. Or,
with ``weights_for_s``, weigh the objectives of the planner, which then starts and preempts. The
import registers ``glidepath/Scheduling-v0`` for `gymnasium.make` and ``make_vec``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glidepath import _core
from glidepath._core import InputError
from glidepath._results import require
from glidepath._simulate import _OPTIONS, Simulation, _simulation
from glidepath._workload import Workload

require("gymnasium")
import gymnasium  # noqa: E402 after the sentence that says how to get it

__all__ = [
    "OBJECTIVES",
    "RUNNING_FEATURES",
    "SLOT_FEATURES",
    "SchedulingEnv",
    "SchedulingVectorEnv",
]

SLOT_FEATURES: tuple[str, ...] = _core.SLOT_FEATURES
RUNNING_FEATURES: tuple[str, ...] = _core.RUNNING_FEATURES
OBJECTIVES: tuple[str, ...] = _core.OBJECTIVES

_SIMULATION = (
    "restart_s", "forecast_sigma", "knows_phases", "stop_at_target", "failures", "sleep",
    "in_nodes", "carbon_g_per_kwh", "unfair_above",
)  # fmt: skip

Floats = NDArray[np.float32]


def _check_whole(name: str, value: Any, bits: int) -> None:
    if not isinstance(value, (int, np.integer)):
        raise InputError(f"environment: {name} is {value!r:.40}, expected a whole number")
    if value < 0:
        raise InputError(f"environment: {name} is {value!r:.40}, expected 0 or more")
    if value >= 1 << bits:
        raise InputError(
            f"environment: {name} is {value!r:.40}, expected a whole number of at most {bits} bits"
        )


class _Batch:
    """Environments of the core side by side, and the arrays that they fill."""

    def __init__(
        self,
        workloads: Workload | Sequence[Workload],
        count: int,
        slots: int,
        running: int,
        energy_weight: float,
        weights_for_s: float,
        simulation: Mapping[str, Any],
    ) -> None:
        for name in simulation:
            if name not in _OPTIONS:
                read = ", ".join(_SIMULATION)
                raise TypeError(f"environment: no option {name!r}, expected one of {read}")
            if name not in _SIMULATION:
                raise InputError(f"environment: does not read {name}, but {', '.join(_SIMULATION)}")
        intensity = simulation.get("carbon_g_per_kwh")
        if intensity is not None:
            simulation = {**simulation, "carbon_g_per_kwh": np.atleast_1d(intensity)}
        drawn = [workloads] if isinstance(workloads, Workload) else workloads
        known: Any = drawn
        if not isinstance(known, Sequence) or not all(isinstance(w, Workload) for w in known):
            raise InputError(f"environment: workloads is {drawn!r:.40}, expected some gp.Workload")
        drawn = list(drawn)
        whole: dict[str, Any] = {"num_envs": count, "slots": slots, "running": running}
        for name, value in whole.items():
            if not isinstance(value, (int, np.integer)) or not -(2**31) <= value < 2**31:
                raise InputError(f"environment: {name} is {value!r:.40}, expected a whole number")
        numbers: dict[str, Any] = {"energy_weight": energy_weight, "weights_for_s": weights_for_s}
        for name, value in numbers.items():
            if not isinstance(value, (int, float, np.integer, np.floating)):
                raise InputError(f"environment: {name} is {value!r:.40}, expected a number")
        if energy_weight == math.inf:  # of which the rewards would be NaN
            raise InputError("environment: energy_weight is inf, expected 0 or more and finite")
        self.workloads = drawn
        self.core = _core.EnvironmentBatch(
            [workload._record for workload in drawn], count, _core.SimulationOptions(**simulation),
            slots, running, energy_weight, weights_for_s,
        )  # fmt: skip
        self.weighs = weights_for_s > 0
        self.observation = np.zeros((count, self.core.observation_size), np.float32)
        self.mask = np.zeros((count, self.core.actions), np.uint8)
        self.reward = np.zeros(count)
        self.terminated = np.zeros(count, np.uint8)

    @staticmethod
    def check_seed(seed: int | None) -> None:
        """Refuse what no seed is, before gymnasium does by errors of its own."""
        if seed is not None:
            _check_whole("seed", seed, 64)

    def reset(self, seed: int, options: Mapping[str, Any] | None) -> None:
        if not isinstance(options, Mapping | None):
            raise InputError(f"environment: options is {options!r:.40}, expected a dict")
        given = dict(options or {})
        _check_whole("seed", seed, 64)
        _check_whole("workload", given.get("workload", 0), 31)
        first = int(given.pop("workload", -1))  # -1: as the seed draws
        if given:
            name = next(iter(given))
            raise InputError(f"environment: no option {name!r:.40}, expected workload")
        if first >= len(self.workloads):
            have = len(self.workloads)
            raise InputError(f"environment: workload is {first}, expected 0 to {have - 1}")
        self.core.reset(int(seed), first, self.observation, self.mask)

    def step(self, actions: Any) -> None:
        filled = self.observation, self.reward, self.terminated, self.mask
        if self.weighs:
            try:
                weights = np.ascontiguousarray(actions, np.float64)
            except (TypeError, ValueError):
                raise InputError(
                    f"environment: an action is {actions!r:.40}, expected numbers"
                ) from None
            self.core.weigh(weights, *filled)
            return
        chosen = np.ascontiguousarray(actions)
        if chosen.dtype.kind not in "iu":
            raise InputError(f"environment: an action is {chosen.dtype}, expected whole numbers")
        chosen = chosen.astype(np.int64, copy=False)
        # Without a sign those below 0 are the largest. The core takes the lower 32 bits alone.
        if chosen.size and chosen.view(np.uint64).max() >> 31:
            wrong = next(each for each in np.ravel(actions) if not 0 <= each < 1 << 31)
            last = self.core.actions - 1
            raise InputError(f"environment: action is {wrong}, expected 0 to {last}")
        self.core.step(chosen, *filled)

    def simulation(self, which: int) -> Simulation:
        return _simulation(self.core.simulation(which))


class SchedulingEnv(gymnasium.Env[Floats, Any]):
    """One simulated cluster, one decision at a time.

    Parameters
    ----------
    workloads : Workload or sequence of Workload
        Each episode plays one of them, drawn by the seed of `reset`; all have as many tiers.
    slots : int
        Waiting jobs that are seen and can be started, in order of submission.
    running : int
        Running jobs that are seen and can be preempted, those with the longest forecast.
    energy_weight : float
        Job-hours that a kWh costs. The rewards of an episode add up to
        -(sum of JCT + energy_weight x kWh) in job-hours.
    weights_for_s : float
        Above 0 an action is a weight for each of `OBJECTIVES`, by which the planner decides for so
        long.
    **simulation
        ``restart_s``, ``forecast_sigma``, ``knows_phases``, ``stop_at_target`` (on unless False),
        ``failures``, ``sleep``, ``in_nodes``, ``carbon_g_per_kwh`` and ``unfair_above`` of
        `glidepath.simulate`.

    Notes
    -----
    ``action_space``: Discrete; 0 ... slots - 1 start, the next `running` preempt, the last lets
    time pass, as does an action that cannot be taken; ``info["action_mask"]`` has a 1 for each that
    can. With ``weights_for_s`` it is a Box of weights in [0, 1]; all 0 is ``jct`` alone.
    ``observation_space``: a Box of numbers in [0, 1], `SLOT_FEATURES` of each slot,
    `RUNNING_FEATURES` of each running job, free share and size of each tier, then jobs waiting,
    running, and whether more will come. Forecasts of jobs with curves are those of `reach`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 the type of the base class

    def __init__(
        self,
        workloads: Workload | Sequence[Workload],
        *,
        slots: int = _core.ENVIRONMENT_SLOTS,
        running: int = _core.ENVIRONMENT_RUNNING,
        energy_weight: float = 0.0,
        weights_for_s: float = 0.0,
        **simulation: Any,
    ) -> None:
        self._batch = _Batch(workloads, 1, slots, running, energy_weight, weights_for_s, simulation)
        self.observation_space, self.action_space = _spaces(self._batch)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin an episode; ``options={"workload": k}`` plays the k-th workload."""
        self._batch.check_seed(seed)
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**62)) if seed is None else seed
        self._batch.reset(drawn, options)
        return self._batch.observation[0].copy(), self._info()

    def step(self, action: Any) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        self._batch.step([action])
        batch = self._batch
        return (
            batch.observation[0].copy(), float(batch.reward[0]), bool(batch.terminated[0]), False,
            self._info(),
        )  # fmt: skip

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._batch.mask[0].astype(np.int8)}

    def simulation(self) -> Simulation:
        """Return what came of the episode so far, all of it once the episode is over."""
        return self._batch.simulation(0)


class SchedulingVectorEnv(gymnasium.vector.VectorEnv[Floats, Any, Any]):
    """Many simulated clusters stepped together in the core, without a process for each.

    Parameters
    ----------
    workloads, slots, running, energy_weight, weights_for_s, **simulation
        Parameters of `SchedulingEnv`.
    num_envs : int
        An environment that is over begins its next episode at the step after.

    Notes
    -----
    The arrays that `reset` and `step` return are written anew by the next step.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 the type of the base class
        "render_modes": [],
        "autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        workloads: Workload | Sequence[Workload],
        *,
        num_envs: int = 64,
        slots: int = _core.ENVIRONMENT_SLOTS,
        running: int = _core.ENVIRONMENT_RUNNING,
        energy_weight: float = 0.0,
        weights_for_s: float = 0.0,
        **simulation: Any,
    ) -> None:
        self._batch = _Batch(
            workloads, num_envs, slots, running, energy_weight, weights_for_s, simulation
        )
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = _spaces(self._batch)
        batch_space = gymnasium.vector.utils.batch_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._never = np.zeros(num_envs, np.bool_)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin; ``options={"workload": k}`` plays the workloads k, k + 1 ... in order."""
        self._batch.check_seed(seed)
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**62)) if seed is None else seed
        self._batch.reset(drawn, options)
        return self._batch.observation, {"action_mask": self._batch.mask}

    def step(
        self, actions: Any
    ) -> tuple[Floats, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Take an action in each."""
        batch = self._batch
        batch.step(actions)
        return (
            batch.observation, batch.reward, batch.terminated.view(np.bool_), self._never,
            {"action_mask": batch.mask},
        )  # fmt: skip


def _spaces(batch: _Batch) -> tuple[Any, Any]:
    box = gymnasium.spaces.Box(0.0, 1.0, (batch.core.observation_size,), np.float32)
    if batch.weighs:
        return box, gymnasium.spaces.Box(0.0, 1.0, (batch.core.actions,), np.float32)
    return box, gymnasium.spaces.Discrete(batch.core.actions)


gymnasium.register(
    "glidepath/Scheduling-v0",
    entry_point="glidepath.gym:SchedulingEnv",
    vector_entry_point="glidepath.gym:SchedulingVectorEnv",
)
