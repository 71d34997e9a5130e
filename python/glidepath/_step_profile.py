# SPDX-License-Identifier: Apache-2.0
"""Where the time of a training step goes, as a profiler saw it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from glidepath._accelerator import fit_scaling
from glidepath._core import InputError, Scaling, StepTime
from glidepath._results import Result, counted

# What a moment of a step counts as: the first of these that it belongs to.
CATEGORIES = {
    "kernel": "computes on the GPU",
    "memcpy": "copies to or from the GPU",
    "memset": "clears memory of the GPU",
    "communication": "exchanges with other GPUs",
    "runtime": "calls the GPU's runtime: launches, waits",
    "data_loading": "waits for the next batch",
    "cpu": "computes on the CPU",
    "other": "is in none of these",
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StepProfile(Result):
    """Where the time of a step of one GPU's process goes.

    Parameters
    ----------
    step_seconds : float
        Time of a step, the sum of the eight that follow.
    kernel_s, memcpy_s, memset_s, communication_s, runtime_s, data_loading_s, cpu_s : float
        Seconds of a step. A moment counts once, as the first of these that it belongs to.
    other_s : float, optional
        The rest of a step, in seconds: waiting that none of the others explains.
    host_s : float, optional
        Seconds of a step in which the CPU worked or waited for data, under kernels or not: no GPU
        makes a step shorter. By default what is in `cpu_s` and `data_loading_s`.
    gpus, nodes : int
        Size of the gang, in GPUs and in nodes.
    device : str
        Name of the GPU.
    steps : int
        Profiled steps that these are the mean of.
    name : str
        What pictures call it.
    notes : tuple of str
        What a reader assumed, a sentence each. Equality does not look at them.

    Raises
    ------
    InputError
        A time that is negative or not finite, parts that are more than the step, more nodes than
        GPUs.
    """

    step_seconds: float
    kernel_s: float = 0.0
    memcpy_s: float = 0.0
    memset_s: float = 0.0
    communication_s: float = 0.0
    runtime_s: float = 0.0
    data_loading_s: float = 0.0
    cpu_s: float = 0.0
    other_s: float = math.nan
    host_s: float = math.nan
    gpus: int = 1
    nodes: int = 1
    device: str = ""
    steps: int = 1
    name: str = ""
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        known = sum(getattr(self, f"{key}_s") for key in CATEGORIES if key != "other")
        if math.isnan(self.other_s):
            object.__setattr__(self, "other_s", self.step_seconds - known)
        if math.isnan(self.host_s):
            object.__setattr__(self, "host_s", self.cpu_s + self.data_loading_s)
        for key in ("step_seconds", "host_s", *(f"{key}_s" for key in CATEGORIES)):
            value = getattr(self, key)
            if not -1e-9 * abs(self.step_seconds) <= value < math.inf or self.step_seconds <= 0:
                raise InputError(
                    f"step profile: {key} is {value:g} of {self.step_seconds:g} s, expected 0 or "
                    "more and finite of more than 0"
                )
        if abs(known + self.other_s - self.step_seconds) > 1e-3 * self.step_seconds:
            raise InputError(
                f"step profile: the parts sum to {known + self.other_s:g} s, not to the "
                f"{self.step_seconds:g} s of the step"
            )
        if not 1 <= self.nodes <= self.gpus:
            raise InputError(
                f"step profile: {self.gpus} GPUs on {self.nodes} nodes, expected a node at least "
                "and a GPU on each"
            )

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of a step by category, in the order in which they take precedence."""
        return {key: getattr(self, f"{key}_s") for key in CATEGORIES}

    def at_speed(self, speed: float) -> float:
        """Seconds of a step on a GPU whose kernels are so many times as fast.

        Parameters
        ----------
        speed : float
            How fast kernels are, relative to this GPU: 2 halves their time. `Gpu.relative_speed`
            of the catalogue, divided by that of this one, says how fast cards train.

        Returns
        -------
        float
            Only kernels become shorter, and no step shorter than `host_s`.

        Raises
        ------
        InputError
            When the speed is not above 0 and finite.
        """
        _check_speed("at_speed", speed)
        return max(self.step_seconds - self.kernel_s * (1.0 - 1.0 / speed), self.host_s)

    def bound_by(self, speed: float = 1.0) -> str:
        """Say what most of a step is spent on: where it is not the kernels, a faster GPU is idle.

        Parameters
        ----------
        speed : float
            As in `at_speed`.

        Returns
        -------
        str
            A category; ``"data_loading"`` or ``"cpu"`` as soon as the step is as long as `host_s`.

        Raises
        ------
        InputError
            As for `at_speed`.
        """
        _check_speed("bound_by", speed)
        seconds = self.at_speed(speed)
        parts = self.seconds | {"kernel": self.kernel_s / speed}
        if seconds <= self.host_s * (1.0 + 1e-9):
            parts = {key: parts[key] for key in ("data_loading", "cpu")}
        return max(parts, key=parts.__getitem__)

    def more_than(self, other: StepProfile) -> dict[str, float]:
        """Seconds by which each category is longer than in another profile, such as on one GPU.

        Parameters
        ----------
        other : StepProfile

        Returns
        -------
        dict of str to float
            The largest first; negative where it is shorter.

        Raises
        ------
        TypeError
            For what is no profile.
        """
        theirs = other.seconds
        more = {key: value - theirs[key] for key, value in self.seconds.items()}
        return dict(sorted(more.items(), key=lambda item: -item[1]))

    def step_time(self, *, batch_per_gpu: float = 1.0) -> StepTime:
        """Give what `fit_scaling` learns from.

        Parameters
        ----------
        batch_per_gpu : float
            In any unit; 1 where it does not change.

        Returns
        -------
        StepTime

        Raises
        ------
        TypeError
            When the batch is no number; `fit_scaling` refuses one out of range.
        """
        return StepTime(self.gpus, self.step_seconds, nodes=self.nodes, batch_per_gpu=batch_per_gpu)

    @staticmethod
    def scaling(profiles: Sequence[StepProfile]) -> Scaling:
        """Fit how the time of a step goes with GPUs and nodes, the batch of each GPU unchanged.

        Parameters
        ----------
        profiles : sequence of StepProfile
            One for each gang, all of one kind of GPU.

        Returns
        -------
        Scaling
            For `options_of`.

        Raises
        ------
        InputError
            Profiles of several kinds of GPU, or as for `fit_scaling`.
        """
        devices = {profile.device for profile in profiles}
        if len(devices) > 1:
            raise InputError(f"scaling: profiles of {', '.join(sorted(devices))}, expected one GPU")
        return fit_scaling(
            [profile.gpus for profile in profiles],
            [profile.step_seconds for profile in profiles],
            nodes=[profile.nodes for profile in profiles],
        )

    def plot(self, *others: StepProfile, ax: Any = None) -> Any:
        """Draw this step and others as stacked bars; returns the matplotlib Axes."""
        from glidepath._pictures import runs

        return runs.steps([self, *others], ax=ax)

    def _summary(self) -> str:
        gang = counted(self.gpus, "GPU")
        if self.nodes > 1:
            gang += f" on {self.nodes} nodes"
        parts = {key: value / self.step_seconds for key, value in self.seconds.items()}
        shown = sorted((key for key in parts if parts[key] >= 0.005), key=lambda key: -parts[key])
        shares = ", ".join(f"{key} {100 * parts[key]:.0f} %" for key in shown)
        words = [repr(self.name)] if self.name else []
        words += [self.device] if self.device else []
        return "; ".join(
            [", ".join([*words, gang, f"{self.step_seconds:.4g} s: {shares}"]), *self.notes]
        )

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "step", f"{self.step_seconds:.4g} s"
        for key, value in self.seconds.items():
            yield key, f"{value:.4g} s, {100 * value / self.step_seconds:.1f} %"


def from_parts(parts: Mapping[str, float], **more: Any) -> StepProfile:
    """Make a profile from seconds by category, and what is not one."""
    fields: dict[str, Any] = {f"{key}_s": value for key, value in parts.items()}
    return StepProfile(**fields, **more)


def _check_speed(verb: str, speed: float) -> None:
    if not 0 < speed < math.inf:
        raise InputError(f"{verb}: speed is {speed}, expected more than 0 and finite")
