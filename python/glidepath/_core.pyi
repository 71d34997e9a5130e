# SPDX-License-Identifier: Apache-2.0
# Written by scripts/update_stub.py
"""The C++ library behind glidepath; private."""

import collections.abc
import os
import typing

import numpy
from numpy.typing import ArrayLike, NDArray

from glidepath._plan import Plan
from glidepath._trace import Trace

Float: typing.TypeAlias = typing.SupportsFloat | typing.SupportsIndex
Int: typing.TypeAlias = typing.SupportsInt | typing.SupportsIndex

class InputError(ValueError): ...
class IoError(OSError): ...

class Interruptible:
    """Asks `poll` every 50 ms in calls of the thread that enters it, unless it is the main one; what it raises leaves the call."""

    def __enter__(self) -> None: ...
    def __exit__(self, arg0: object, arg1: object, arg2: object) -> None: ...
    def __init__(self, poll: collections.abc.Callable[[], object]) -> None: ...

class TraceRecord:
    """A trace as the library has it; an empty column is absent."""

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> TraceRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        step: ArrayLike | None,
        loss: ArrayLike | None,
        *,
        lr: ArrayLike | None = None,
        wall_seconds: ArrayLike | None = None,
        name: str = "",
        metric: str = "loss",
        direction: str = "min",
        planned_steps: Float | None = None,
        settings: collections.abc.Mapping[str, float | str | bool] = {},
        notes: collections.abc.Sequence[str] = [],
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    direction: typing.Final[str]
    loss: typing.Final[NDArray[numpy.float64]]
    lr: typing.Final[NDArray[numpy.float64]]
    metric: typing.Final[str]
    name: typing.Final[str]
    notes: typing.Final[list[str]]
    planned_steps: typing.Final[float | None]
    settings: typing.Final[dict]
    step: typing.Final[NDArray[numpy.float64]]
    wall_seconds: typing.Final[NDArray[numpy.float64]]

class CleanedRecord:
    """A cleaned trace and what was done to it."""

    dropped_nonfinite: typing.Final[int]
    dropped_repeats: typing.Final[int]
    pulled_in: typing.Final[int]
    thinned: typing.Final[int]
    trace: typing.Final[TraceRecord]

class AbsentError(IoError):
    pass

class RefusedError(IoError):
    pass

class Series:
    """One metric as it was logged, nothing repaired yet."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def add(self, step: Float, value: Float, seconds: Float = ...) -> None:
        """Append a row."""

    def count_seconds(self, origin: Float, ticks: Float) -> None:
        """Count the seconds from an origin, of so many ticks in each."""
    seconds: typing.Final[list[float]]
    value: typing.Final[list[float]]

class RunRecord:
    """What a reader found in a file of one run."""

    name: typing.Final[str]
    notes: typing.Final[list[str]]
    planned_steps: typing.Final[float | None]
    series: typing.Final[dict[str, Series]]
    settings: typing.Final[dict[str, float | str]]

class LogRows:
    """Rows as they were logged, a column a name."""

    def __init__(self) -> None: ...
    def add(self, cells: dict[str, object]) -> None:
        """Append a row; what is no number is left out."""

    def put_column(
        self,
        name: str,
        rows: collections.abc.Sequence[Int],
        values: collections.abc.Sequence[Float],
    ) -> None:
        """Put a column: its values, and the rows in which they stand."""

    def put_labels(
        self,
        name: str,
        rows: collections.abc.Sequence[Int],
        codes: collections.abc.Sequence[Int],
        texts: collections.abc.Sequence[str],
    ) -> None:
        """Put a column of names: the rows in which they stand, and of each which of the texts."""

    def runs(self) -> list[RunRecord]:
        """The run, or each that a column tells apart."""

    def series(self) -> dict[str, Series]:
        """Each metric by its steps."""
    names: typing.Final[list[str]]

class ScheduleRecord:
    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def constant(lr: Float) -> ScheduleRecord: ...
    @staticmethod
    def cosine(peak: Float, steps: Float, *, warmup: Float, final: Float) -> ScheduleRecord: ...
    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> ScheduleRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    @staticmethod
    def linear(peak: Float, steps: Float, *, warmup: Float, final: Float) -> ScheduleRecord: ...
    @staticmethod
    def logged(run: Trace) -> ScheduleRecord | None: ...
    @staticmethod
    def wsd(
        peak: Float, steps: Float, *, warmup: Float, decay: Float, final: Float
    ) -> ScheduleRecord: ...
    def __init__(self, step: ArrayLike | None, lr: ArrayLike | None) -> None: ...
    def at(self, steps: ArrayLike) -> NDArray[numpy.float64]: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    lr: typing.Final[NDArray[numpy.float64]]
    step: typing.Final[NDArray[numpy.float64]]

class FitScore:
    """How one family did in the choice by AICc."""

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> FitScore:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(self, family: str, aicc: Float, status: str) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    aicc: typing.Final[float]
    family: typing.Final[str]
    status: typing.Final[str]

class FitRecord:
    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> FitRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def predict(self, steps: ArrayLike) -> NDArray[numpy.float64]: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    aicc: typing.Final[float]
    at_bound: typing.Final[dict[str, bool]]
    bic: typing.Final[float]
    covariance: typing.Final[NDArray[numpy.float64]]
    family: typing.Final[str]
    last_step: typing.Final[float]
    params: typing.Final[dict[str, float]]
    points: typing.Final[int]
    rss: typing.Final[float]
    scores: typing.Final[list[FitScore]]
    sigma: typing.Final[float]
    status: typing.Final[str]
    stderr: typing.Final[dict[str, float]]

class FitBatchRecord:
    family: typing.Final[str]
    params: typing.Final[dict[str, numpy.ndarray]]
    sigma: typing.Final[NDArray[numpy.float64]]
    status: typing.Final[NDArray[numpy.uint8]]

class ScheduleLawRecord:
    """The law as the library has it."""

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> ScheduleLawRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        *,
        kind: str = "annealing",
        status: str = "too_few_points",
        floor: Float = 0.0,
        scale: Float = 0.0,
        rate: Float = 0.0,
        drop: Float = 0.0,
        memory: Float = 0.0,
        speed: Float = 0.0,
        shape: Float = 0.0,
        power: Float = 0.0,
        warmup: Float = 0.0,
        sigma: Float = 0.0,
        rss: Float = 0.0,
        points: typing.SupportsIndex = 0,
    ) -> None: ...
    def predict(self, step: ArrayLike, lr: ArrayLike) -> NDArray[numpy.float64]: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    drop: typing.Final[float]
    floor: typing.Final[float]
    kind: typing.Final[str]
    memory: typing.Final[float]
    points: typing.Final[int]
    power: typing.Final[float]
    rate: typing.Final[float]
    rss: typing.Final[float]
    scale: typing.Final[float]
    shape: typing.Final[float]
    sigma: typing.Final[float]
    speed: typing.Final[float]
    status: typing.Final[str]
    warmup: typing.Final[float]

class ForecastConstants: ...

class WidthsRecord:
    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> WidthsRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        horizon: ArrayLike | None,
        factor: ArrayLike | None,
        runs: typing.SupportsIndex,
        scheduled_factor: ArrayLike | None,
        scheduled_runs: typing.SupportsIndex,
        schedule_helps: bool,
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    factor: typing.Final[NDArray[numpy.float64]]
    horizon: typing.Final[NDArray[numpy.float64]]
    runs: typing.Final[int]
    schedule_helps: typing.Final[bool]
    scheduled_factor: typing.Final[NDArray[numpy.float64]]
    scheduled_runs: typing.Final[int]

class PastRunsRecord:
    @staticmethod
    def restored(runs: collections.abc.Sequence[Trace], widths: WidthsRecord) -> PastRunsRecord: ...
    @staticmethod
    def unlearned(runs: collections.abc.Sequence[Trace]) -> PastRunsRecord: ...
    def __init__(
        self,
        runs: collections.abc.Sequence[Trace],
        *,
        constants: ForecastConstants | None,
        threads: int,
    ) -> None: ...
    def update(self, finished: Trace, *, constants: ForecastConstants | None) -> PastRunsRecord: ...
    relevance: typing.Final[dict[str, float]]
    widths: typing.Final[WidthsRecord]

class ForecastRecord:
    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> ForecastRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        at: ArrayLike | None,
        levels: ArrayLike | None,
        median: ArrayLike | None,
        quantiles: ArrayLike,
        curve_quantiles: ArrayLike,
        status: str,
        law: ArrayLike | None,
    ) -> None: ...
    def curve_quantile(self, p: Float) -> NDArray[numpy.float64]: ...
    def prob_below(self, target: Float) -> NDArray[numpy.float64]: ...
    def quantile(self, p: Float) -> NDArray[numpy.float64]: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    at: typing.Final[NDArray[numpy.float64]]
    curve_quantiles: typing.Final[NDArray[numpy.float64]]
    law: typing.Final[NDArray[numpy.float64]]
    levels: typing.Final[NDArray[numpy.float64]]
    median: typing.Final[NDArray[numpy.float64]]
    quantiles: typing.Final[NDArray[numpy.float64]]
    status: typing.Final[str]

class ForecastBatchRecord:
    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> ForecastBatchRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        at: ArrayLike | None,
        levels: ArrayLike | None,
        median: ArrayLike,
        quantiles: ArrayLike,
        status: collections.abc.Sequence[str],
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    at: typing.Final[NDArray[numpy.float64]]
    levels: typing.Final[NDArray[numpy.float64]]
    median: typing.Final[NDArray[numpy.float64]]
    quantiles: typing.Final[NDArray[numpy.float64]]
    status: typing.Final[list[str]]

class ReachRecord:
    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> ReachRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        step: ArrayLike | None,
        cdf: ArrayLike | None,
        prob_never: Float,
        target: Float,
        budget: Float,
        status: str,
    ) -> None: ...
    def prob_by(self, step: Float) -> float: ...
    def quantile(self, p: Float) -> float: ...
    def quantile_if_reached(self, p: Float) -> float: ...
    def remaining_steps(self, n: int) -> NDArray[numpy.float64]: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    budget: typing.Final[float]
    cdf: typing.Final[NDArray[numpy.float64]]
    prob_never: typing.Final[float]
    status: typing.Final[str]
    step: typing.Final[NDArray[numpy.float64]]
    target: typing.Final[float]

class BestSoFarRecord:
    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> BestSoFarRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self, step: Float, value: Float, prob_past: Float, budget: Float, status: str
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    budget: typing.Final[float]
    prob_past: typing.Final[float]
    status: typing.Final[str]
    step: typing.Final[float]
    value: typing.Final[float]

class DecisionRecord:
    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> DecisionRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    probability: typing.Final[float]
    reason: typing.Final[str]
    steps_to_target: typing.Final[tuple[float, float, float]]
    verdict: typing.Final[str]

class WatchState:
    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> WatchState:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    at_target: typing.Final[int]
    best_loss: typing.Final[float]
    first_loss: typing.Final[float]
    last_step: typing.Final[float]
    longest_gap: typing.Final[int]
    loss: typing.Final[NDArray[numpy.float64]]
    lr: typing.Final[NDArray[numpy.float64]]
    newest: typing.Final[NDArray[numpy.float64]]
    nonfinite: typing.Final[int]
    points: typing.Final[int]
    reached_step: typing.Final[float]
    restarts: typing.Final[int]
    step: typing.Final[NDArray[numpy.float64]]
    trailing_nonfinite: typing.Final[int]
    weight: typing.Final[NDArray[numpy.float64]]

class WatchRecord:
    def __init__(
        self,
        *,
        target: Float | None,
        budget: Float | None,
        direction: str,
        schedule: ScheduleRecord | None,
        past: PastRunsRecord | None,
        alpha: Float,
        reached_by: str,
    ) -> None: ...
    def add(self, step: Float, loss: Float, lr: Float) -> None: ...
    def decision(self) -> DecisionRecord: ...
    def judge(
        self, steps: collections.abc.Sequence[Float], losses: collections.abc.Sequence[Float]
    ) -> tuple[DecisionRecord, bool]: ...
    def restore(self, state: WatchState) -> None: ...
    state: typing.Final[WatchState]

class Tier:
    """A pool of equal GPUs; memory and power are per GPU.

    Parameters
    ----------
    name : str
    nodes : int
    gpus_per_node : int
    gpu : str
        Model, as `KindPair.gpu` names it.
    memory_gb, host_memory_gb : float
        Memory of one GPU and of one node; 0 = not known, so that no job is refused for memory.
    idle_watts, busy_watts : float
        Power of one GPU that does nothing and of one at full utilization, in W.
    price_per_gpu_hour : float
        In any currency; 0 = not priced.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> Tier:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    @staticmethod
    def of(name: str, gpu: str, nodes: Int, gpus_per_node: Int = 1) -> Tier:
        """Tier of a GPU of the catalogue, with its memory and power.

        Raises
        ------
        InputError
            Naming the GPU that is not in the catalogue.
        """

    def __init__(
        self,
        name: str,
        nodes: typing.SupportsIndex,
        gpus_per_node: typing.SupportsIndex = 1,
        *,
        gpu: str = "",
        memory_gb: Float = 0.0,
        host_memory_gb: Float = 0.0,
        idle_watts: Float = 0.0,
        busy_watts: Float = 0.0,
        price_per_gpu_hour: Float = 0.0,
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""

    def utilization(self, watts: Float) -> float:
        """Utilization at which one GPU draws this power.

        The inverse of `watts`, for power that was measured: ``tier.utilization(profile.mean_watts)`` is the
        utilization that `Option`, `options_of` and workloads take.

        Raises
        ------
        InputError
            Where the power is not between the idle and the busy one of the tier.
        """

    def watts(self, utilization: Float) -> float:
        """Power of one GPU at a utilization in [0, 1].

        Raises
        ------
        InputError
            Where the utilization is outside.
        """
    busy_watts: typing.Final[float]
    gpu: typing.Final[str]
    gpus: typing.Final[int]
    gpus_per_node: typing.Final[int]
    host_memory_gb: typing.Final[float]
    idle_watts: typing.Final[float]
    memory_gb: typing.Final[float]
    name: typing.Final[str]
    nodes: typing.Final[int]
    price_per_gpu_hour: typing.Final[float]

class Gpu:
    """A GPU of the catalogue as its vendor describes it.

    0 where a figure is not published; `relative_speed` is measured training speed, V100 SXM2 = 1.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> Gpu:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    architecture: typing.Final[str]
    bandwidth_gb_s: typing.Final[float]
    busy_watts: typing.Final[float]
    fp16_tflops: typing.Final[float]
    fp32_tflops: typing.Final[float]
    idle_watts: typing.Final[float]
    memory_gb: typing.Final[float]
    name: typing.Final[str]
    relative_speed: typing.Final[float]
    source: typing.Final[str]
    vendor: typing.Final[str]
    year: typing.Final[int]

class StepTime:
    """One measured step of a gang.

    Parameters
    ----------
    gpus : int
    seconds : float
    nodes : int
    batch_per_gpu : float
        Global batch / gpus, or 1 where it does not change.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> StepTime:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        gpus: typing.SupportsIndex,
        seconds: Float,
        *,
        nodes: typing.SupportsIndex = 1,
        batch_per_gpu: Float = 1.0,
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    batch_per_gpu: typing.Final[float]
    gpus: typing.Final[int]
    nodes: typing.Final[int]
    seconds: typing.Final[float]

class Scaling:
    """Step time of a gang as a function of GPUs and nodes.

    Made by `fit_scaling`. A sum of non-negative terms (compute, communication inside a node and between
    nodes, other) times a correction that follows the measurements nearby.

    Attributes
    ----------
    terms : dict of str to float
        Coefficient of each term, in seconds per unit of the term.
    measured : list of StepTime
    correction : ndarray, shape (measured,)
        Weight of each measurement in the logarithm of the correction, a pure number.
    typical_error : float
        Median relative error on the measurements that were fitted.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> Scaling:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def step_seconds(self, gpus: Int, nodes: Int = 1, batch_per_gpu: Float = 1.0) -> float:
        """Seconds per step of a gang.

        Raises
        ------
        InputError
            GPUs or nodes below 1, more nodes than GPUs, a batch that is not above 0.
        """

    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    correction: typing.Final[NDArray[numpy.float64]]
    measured: typing.Final[list[StepTime]]
    terms: typing.Final[dict[str, float]]
    typical_error: typing.Final[float]

class BatchLimits:
    """The batches that a job may take.

    Parameters
    ----------
    reference : float
        The batch that its user chose, in examples of all GPUs together; none is smaller.
    largest : float
        The largest batch, in examples of all GPUs together.
    largest_per_gpu : float
        Examples that the memory holds in one pass; larger batches take several passes.
    noise_scale : float
        Summed variance of the gradient of one example over the square of its mean, a number of
        examples (McCandlish et al. 2018): how much is learned of a large batch.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> BatchLimits:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        reference: Float,
        largest: Float,
        *,
        largest_per_gpu: Float = 1000000000.0,
        noise_scale: Float = 0.0,
    ) -> None: ...
    def statistical_efficiency(self, batch: Float) -> float:
        """Progress by an example of a batch over that by one of the reference batch.

        ``(noise_scale + reference) / (noise_scale + batch)``: Pollux, Qiao et al., OSDI 2021.

        Raises
        ------
        InputError
            Where the batch is not above 0 or not finite.
        """

    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    largest: typing.Final[float]
    largest_per_gpu: typing.Final[float]
    noise_scale: typing.Final[float]
    reference: typing.Final[float]

class BatchChoice:
    """A batch of a gang and what it brings.

    Attributes
    ----------
    batch : float
        Examples of all GPUs together: passes x gpus x per_gpu.
    per_gpu : float
        Examples of a GPU in one pass.
    passes : int
        The number of passes in a step: gradients are added up before GPUs exchange them.
    step_s : float
        Time of a step.
    efficiency : float
        `BatchLimits.statistical_efficiency` of the batch, a share of 1.
    steps_per_s : float
        Goodput: steps of the reference batch that would learn as much.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> BatchChoice:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    batch: typing.Final[float]
    efficiency: typing.Final[float]
    passes: typing.Final[int]
    per_gpu: typing.Final[float]
    step_s: typing.Final[float]
    steps_per_s: typing.Final[float]

class Profile:
    """What is known of a job that runs alone.

    Parameters
    ----------
    sm_activity : float
        Share of the multiprocessors busy, averaged over time, in [0, 1].
    memory_gb : float
        Per GPU.
    kind : str
        As measured pairs name it; empty = of no measured kind.
    memory_activity : float
        Share of the time in which the card's memory is read or written, in [0, 1]; negative = not
        known.
    step_seconds : float
        Time of a step; 0 = not known, here and below.
    mean_watts, peak_watts : float
        Power of one GPU.
    step_joules : float
        Energy of one step, of all GPUs together.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> Profile:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        sm_activity: Float = 1.0,
        memory_gb: Float = 0.0,
        kind: str = "",
        *,
        memory_activity: Float = -1.0,
        step_seconds: Float = 0.0,
        mean_watts: Float = 0.0,
        peak_watts: Float = 0.0,
        step_joules: Float = 0.0,
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    kind: typing.Final[str]
    mean_watts: typing.Final[float]
    memory_activity: typing.Final[float]
    memory_gb: typing.Final[float]
    peak_watts: typing.Final[float]
    sm_activity: typing.Final[float]
    step_joules: typing.Final[float]
    step_seconds: typing.Final[float]

class KindPair:
    """Two kinds of job together on a kind of GPU.

    Parameters
    ----------
    gpu : str
        As in `Tier.gpu`.
    first, second : str
        Kinds, as in `Job.kind`.
    first_slowdown, second_slowdown : float
        Time of a step together over that alone: 1 = as fast as alone, inf = they did not run.
    sharing : str
        ``naive`` (time slices), ``mps`` or ``mig``.
    predicted : bool
        Learned, not measured.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> KindPair:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        gpu: str,
        first: str,
        second: str,
        first_slowdown: Float,
        second_slowdown: Float,
        *,
        sharing: str = "naive",
        predicted: bool = False,
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    first: typing.Final[str]
    first_slowdown: typing.Final[float]
    gpu: typing.Final[str]
    predicted: typing.Final[bool]
    second: typing.Final[str]
    second_slowdown: typing.Final[float]
    sharing: typing.Final[str]

class JobKind:
    """What tells a kind of job from others, measured alone.

    Parameters
    ----------
    kind, gpu : str
    model : str
        What kinds have in common that differ in batch size only.
    features : array_like, shape (features,)
        Finite and dimensionless, the same for all kinds on this GPU: logarithms of the batch size,
        of the time of a step, and so on.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> JobKind:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self, kind: str, gpu: str, model: str = "", features: ArrayLike | None = None
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    features: typing.Final[NDArray[numpy.float64]]
    gpu: typing.Final[str]
    kind: typing.Final[str]
    model: typing.Final[str]

class Pairs:
    """Measured pairs and those learned from them.

    Made by `learn_pairs`; `rows` has each pair both ways round.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> Pairs:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __len__(self) -> int: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    rows: typing.Final[list[KindPair]]

class SharedSpeedsRecord:
    """Speeds of two jobs on the same GPUs."""

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> SharedSpeedsRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    first: typing.Final[float]
    second: typing.Final[float]

class Pod:
    """What a pod asks of one node.

    Parameters
    ----------
    name : str
    cpu_milli : int
        Thousandths of a CPU.
    memory_mib : int
        Main memory, MiB.
    gpus : int
    gpu_milli : int
        Thousandths of each GPU, 1 to 1000; below 1000 only with one GPU.
    gpu_models : sequence of str
        Allowed models of GPU; empty = any.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> Pod:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        name: str = "",
        *,
        cpu_milli: typing.SupportsIndex = 0,
        memory_mib: typing.SupportsIndex = 0,
        gpus: typing.SupportsIndex = 0,
        gpu_milli: typing.SupportsIndex = 1000,
        gpu_models: collections.abc.Sequence[str] = [],
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    cpu_milli: typing.Final[int]
    gpu_milli: typing.Final[int]
    gpu_models: typing.Final[list[str]]
    gpus: typing.Final[int]
    memory_mib: typing.Final[int]
    name: typing.Final[str]

class FreeNode:
    """What is free on a node.

    Parameters
    ----------
    name : str
    cpu_milli : int
        Thousandths of a CPU.
    memory_mib : int
        Main memory, MiB.
    gpu_milli : sequence of int
        Free thousandths of each GPU, 0 to 1000.
    gpu_model : str
    gpu_pods : sequence of int
        Pods that each GPU has already; empty = none on any.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> FreeNode:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        name: str = "",
        *,
        cpu_milli: typing.SupportsIndex = 0,
        memory_mib: typing.SupportsIndex = 0,
        gpu_milli: collections.abc.Sequence[typing.SupportsIndex] = [],
        gpu_model: str = "",
        gpu_pods: collections.abc.Sequence[typing.SupportsIndex] = [],
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    cpu_milli: typing.Final[int]
    gpu_milli: typing.Final[list[int]]
    gpu_model: typing.Final[str]
    gpu_pods: typing.Final[list[int]]
    memory_mib: typing.Final[int]
    name: typing.Final[str]

class PodPlace:
    """Where a pod runs.

    Parameters
    ----------
    node : int
        Index of the node; -1 = it fits nowhere.
    gpus : sequence of int
        Indices of its GPUs on that node.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> PodPlace:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        node: typing.SupportsIndex = -1,
        gpus: collections.abc.Sequence[typing.SupportsIndex] = [],
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    gpus: typing.Final[list[int]]
    node: typing.Final[int]

class PodPolicyInfo:
    """A policy that places pods.

    Attributes
    ----------
    name, rule : str
    reads_expected : bool
        Needs the pods that are expected.
    by_default : bool
        Taken where none is named: the one that reads ``expected`` where it is given, else the other.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> PodPolicyInfo:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    by_default: typing.Final[bool]
    name: typing.Final[str]
    reads_expected: typing.Final[bool]
    rule: typing.Final[str]

class PodOptions:
    """Options of `place_pods`."""

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> PodOptions:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        *,
        policy: str = "",
        expected: collections.abc.Sequence[Pod] = [],
        seed: typing.SupportsIndex = 0,
        pods_per_gpu: typing.SupportsIndex = 0,
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    expected: typing.Final[list[Pod]]
    pods_per_gpu: typing.Final[int]
    policy: typing.Final[str]
    seed: typing.Final[int]

class Slice:
    """A MIG instance of a card.

    Attributes
    ----------
    name : str
        ``1g`` to ``7g``.
    compute, memory : int
        It has compute / 7 of the multiprocessors and memory / 8 of the memory.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> Slice:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    compute: typing.Final[int]
    memory: typing.Final[int]
    name: typing.Final[str]

class Partition:
    """A card in slices and who runs on which.

    Attributes
    ----------
    slices : list of str
        As they lie on the card.
    jobs : list of int
        Index of the job on each slice; -1 = nobody.
    throughput : float
        Sum of the speeds, each a share of that on the whole card.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> Partition:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    jobs: typing.Final[list[int]]
    slices: typing.Final[list[str]]
    throughput: typing.Final[float]

class RoundPlanRecord:
    """What `solve_round` found."""

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> RoundPlanRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    bound: typing.Final[float]
    chosen: typing.Final[NDArray[numpy.int64]]
    gap: typing.Final[float]
    prices: typing.Final[NDArray[numpy.float64]]
    value: typing.Final[float]

class Option:
    """One way to run a job.

    Parameters
    ----------
    tier : int
        Index into the snapshot's tiers.
    gpus : int
        The whole gang.
    steps_per_s : float
        Pace of the whole gang, in the job's own steps.
    utilization : float
        Share of each GPU that is busy, in [0, 1], for power.
    sharing : str
        Other than ``exclusive``: the rate is that beside a partner, and `plan` may pair the job on this
        tier and gang. A job without any such option may be paired wherever it may run.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> Option:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        tier: typing.SupportsIndex,
        gpus: typing.SupportsIndex,
        steps_per_s: Float,
        *,
        utilization: Float = 1.0,
        sharing: str = "exclusive",
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    gpus: typing.Final[int]
    sharing: typing.Final[str]
    steps_per_s: typing.Final[float]
    tier: typing.Final[int]
    utilization: typing.Final[float]

class Allocation:
    """GPUs that a job holds.

    Parameters
    ----------
    job : int
        Its id.
    tier : int
        Index into the snapshot's tiers.
    gpus : int
        The whole gang.
    since_s : float
        When it got them, on the clock of the snapshot's `now_s`.
    partner : int
        Job that shares the same GPUs; -1 = they are its own.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> Allocation:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        job: typing.SupportsIndex,
        tier: typing.SupportsIndex,
        gpus: typing.SupportsIndex,
        since_s: Float = 0.0,
        partner: typing.SupportsIndex = -1,
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    gpus: typing.Final[int]
    job: typing.Final[int]
    partner: typing.Final[int]
    since_s: typing.Final[float]
    tier: typing.Final[int]

class Job:
    """A live job as a scheduler may see it.

    Parameters
    ----------
    id : int
    options : list of Option
        The ways to run it.
    user, group : str
        For quotas.
    submit_s : float
        When it was submitted, on the clock of the snapshot's `now_s`.
    weight : float
        What a second of it is worth, relative to the other jobs.
    memory_gb : float
        Per GPU.
    steps_done : float
        Steps that it has done.
    attained_s : float
        Seconds for which it has held GPUs.
    attained_gpu_s : float
        The same times the GPUs that it held.
    target_loss : float
        The loss at which it would be done.
    budget_steps : float
        The step at which it ends at the latest; 0 = no budget.
    remaining_steps : array_like, shape (n,)
        Equally likely values of the steps still needed; inf = never, None = nothing is known.
    restart_s : float
        Cost of a start after a preemption.
    observed_step, observed_loss : array_like, shape (m,)
        The curve so far.
    forecast_at_steps : float
        `steps_done` when `remaining_steps` was made; negative = now.
    priority : int
        A higher class is served strictly first.
    preemptible : bool
        False: keeps its GPUs until it ends.
    waiting_s : float
        Seconds since it ran last; negative = since submission, less what it ran.
    deadline_s : float
        When it should be done, on the clock of the snapshot's `now_s`.
    ahead_steps, ahead_loss : array_like, shape (k,)
        Expected loss at steps from now on, for the objective ``quality``.
    sm_activity : float
        Share of the multiprocessors busy when alone, for sharing.
    kind : str
        As measured pairs name it, for sharing.
    memory_activity : float
        Share of the time in which it reads or writes the card's memory alone; negative = not known.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> Job:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        id: typing.SupportsIndex,
        options: collections.abc.Sequence[Option],
        *,
        user: str = "",
        submit_s: Float = 0.0,
        weight: Float = 1.0,
        memory_gb: Float = 0.0,
        steps_done: Float = 0.0,
        attained_s: Float = 0.0,
        attained_gpu_s: Float = 0.0,
        target_loss: Float = 0.0,
        budget_steps: Float = 0.0,
        remaining_steps: ArrayLike | None = None,
        restart_s: Float = 0.0,
        observed_step: ArrayLike | None = None,
        observed_loss: ArrayLike | None = None,
        forecast_at_steps: Float = -1.0,
        group: str = "",
        priority: typing.SupportsIndex = 0,
        preemptible: bool = True,
        waiting_s: Float = -1.0,
        deadline_s: Float = ...,
        ahead_steps: ArrayLike | None = None,
        ahead_loss: ArrayLike | None = None,
        sm_activity: Float = 1.0,
        kind: str = "",
        memory_activity: Float = -1.0,
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""

    def with_remaining(self, remaining_steps: ArrayLike | None) -> Job:
        """The job with a new forecast, made now.

        Raises
        ------
        TypeError, InputError
            Where they are no column of numbers; whoever plans with it refuses values out of range.
        """
    ahead_loss: typing.Final[NDArray[numpy.float64]]
    ahead_steps: typing.Final[NDArray[numpy.float64]]
    attained_gpu_s: typing.Final[float]
    attained_s: typing.Final[float]
    budget_steps: typing.Final[float]
    deadline_s: typing.Final[float]
    forecast_at_steps: typing.Final[float]
    group: typing.Final[str]
    id: typing.Final[int]
    kind: typing.Final[str]
    memory_activity: typing.Final[float]
    memory_gb: typing.Final[float]
    observed_loss: typing.Final[NDArray[numpy.float64]]
    observed_step: typing.Final[NDArray[numpy.float64]]
    options: typing.Final[list[Option]]
    preemptible: typing.Final[bool]
    priority: typing.Final[int]
    remaining_steps: typing.Final[NDArray[numpy.float64]]
    restart_s: typing.Final[float]
    sm_activity: typing.Final[float]
    steps_done: typing.Final[float]
    submit_s: typing.Final[float]
    target_loss: typing.Final[float]
    user: typing.Final[str]
    waiting_s: typing.Final[float]
    weight: typing.Final[float]

class Snapshot:
    """All that a policy may know at one moment.

    Parameters
    ----------
    tiers : list of Tier
    jobs : list of Job
        Waiting and running.
    running : list of Allocation
    now_s : float
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> Snapshot:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        tiers: collections.abc.Sequence[Tier],
        jobs: collections.abc.Sequence[Job],
        *,
        running: collections.abc.Sequence[Allocation] = [],
        now_s: Float = 0.0,
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    jobs: typing.Final[list[Job]]
    now_s: typing.Final[float]
    running: typing.Final[list[Allocation]]
    tiers: typing.Final[list[Tier]]

class PlanOptions:
    """Options of `plan`."""

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> PlanOptions:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        *,
        objective: str
        | collections.abc.Mapping[str, float]
        | collections.abc.Sequence[str] = "jct",
        slack: Float = 0.0,
        round_s: Float = 360.0,
        gap: Float = 0.02,
        stop_probability: Float = 0.98,
        outrun_probability: Float = 0.95,
        power_cap_w: Float = ...,
        user_quota: collections.abc.Mapping[str, int] | None = {},
        group_quota: collections.abc.Mapping[str, int] | None = {},
        in_nodes: bool = False,
        sharing: str = "exclusive",
        min_run_s: Float = 0.0,
        pairs: Pairs | None = None,
        joule_value: Float = 0.0,
        hysteresis: Float = 0.05,
        ageing_s: Float = ...,
        max_wait_s: Float = ...,
        learned: str | os.PathLike[str] | ArrayLike | None | None = [],
        reasons: bool = True,
        prices: ArrayLike | None = None,
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    ageing_s: typing.Final[float]
    gap: typing.Final[float]
    group_quota: typing.Final[dict[str, int]]
    hysteresis: typing.Final[float]
    in_nodes: typing.Final[bool]
    joule_value: typing.Final[float]
    learned: typing.Final[list[float]]
    max_wait_s: typing.Final[float]
    min_run_s: typing.Final[float]
    objective: typing.Final[str | dict[str, float] | list[str]]
    outrun_probability: typing.Final[float]
    pairs: typing.Final[Pairs | None]
    power_cap_w: typing.Final[float]
    prices: typing.Final[NDArray[numpy.float64]]
    reasons: typing.Final[bool]
    round_s: typing.Final[float]
    sharing: typing.Final[str]
    slack: typing.Final[float]
    stop_probability: typing.Final[float]
    user_quota: typing.Final[dict[str, int]]

class PlanRecord:
    """What `plan` decided."""

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> PlanRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    allocations: typing.Final[list[Allocation]]
    bound: typing.Final[float]
    fallback: typing.Final[str]
    gap: typing.Final[float]
    prices: typing.Final[NDArray[numpy.float64]]
    reasons: typing.Final[dict[int, str]]
    stop: typing.Final[list[int]]
    value: typing.Final[float]

class PlanLimits:
    """What a plan must keep to."""

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> PlanLimits:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        *,
        power_cap_w: Float = ...,
        user_quota: collections.abc.Mapping[str, int] | None = {},
        group_quota: collections.abc.Mapping[str, int] | None = {},
        in_nodes: bool = False,
        sharing: str = "exclusive",
        min_run_s: Float = 0.0,
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    group_quota: typing.Final[dict[str, int]]
    in_nodes: typing.Final[bool]
    min_run_s: typing.Final[float]
    power_cap_w: typing.Final[float]
    sharing: typing.Final[str]
    user_quota: typing.Final[dict[str, int]]

class PlacementOptions:
    """Options of `options_of`."""

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> PlacementOptions:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        *,
        alone: Profile = ...,
        batch: Float = 0.0,
        batches: BatchLimits | None = None,
        max_gpus: typing.SupportsIndex = 1048576,
        utilization: Float = 1.0,
        sharing: str = "exclusive",
        partner: Profile | None = None,
        pairs: Pairs | None = None,
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    alone: typing.Final[Profile]
    batch: typing.Final[float]
    batches: typing.Final[BatchLimits | None]
    max_gpus: typing.Final[int]
    pairs: typing.Final[Pairs | None]
    partner: typing.Final[Profile | None]
    sharing: typing.Final[str]
    utilization: typing.Final[float]

class RunLimits:
    """What one run must keep to."""

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> RunLimits:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        *,
        max_hours: Float = ...,
        max_watts: Float = ...,
        max_node_watts: Float = ...,
        max_kwh: Float = ...,
        max_cost: Float = ...,
        confidence: Float = 0.9,
        target: Float | None = None,
        reached_by: str | None = None,
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    confidence: typing.Final[float]
    max_cost: typing.Final[float]
    max_hours: typing.Final[float]
    max_kwh: typing.Final[float]
    max_node_watts: typing.Final[float]
    max_watts: typing.Final[float]
    reached_by: typing.Final[str | None]
    target: typing.Final[float | None]

class AcceleratorChoiceRecord:
    """One option judged."""

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> AcceleratorChoiceRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    cost: typing.Final[float]
    good: typing.Final[bool]
    hours: typing.Final[float]
    hours_high: typing.Final[float]
    hours_low: typing.Final[float]
    kwh: typing.Final[float]
    node_watts: typing.Final[float]
    option: typing.Final[Option]
    pareto: typing.Final[bool]
    probability: typing.Final[float]
    reason: typing.Final[str]
    watts: typing.Final[float]

class PairSpeeds:
    """Measured speeds of two jobs on the same GPUs of a tier, each as a share of its own speed alone."""

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> PairSpeeds:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        first: str,
        second: str,
        tier: typing.SupportsIndex,
        first_speed: Float,
        second_speed: Float,
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    first: typing.Final[str]
    first_speed: typing.Final[float]
    second: typing.Final[str]
    second_speed: typing.Final[float]
    tier: typing.Final[int]

class WorkloadRecord:
    def jobs(self) -> dict[str, numpy.ndarray]: ...
    def note(self, text: str) -> None: ...
    def write_jobs(self, path: os.PathLike | str | bytes) -> None: ...
    curves: typing.Final[list[TraceRecord]]
    job_count: typing.Final[int]
    lower_bound_jct_s: typing.Final[float]
    name: typing.Final[str]
    notes: typing.Final[list[str]]
    pairs: typing.Final[list[PairSpeeds]]
    tiers: typing.Final[list[Tier]]

class TextTable:
    columns: typing.Final[list[str]]
    rows: typing.Final[list[tuple[int, list[str]]]]

class PolicyInfo:
    """A policy that simulate() knows by name."""

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> PolicyInfo:
        """Read what `to_dict` wrote; InputError for a policy that this library does not have."""

    def __hash__(self) -> int: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON."""
    checked_on: typing.Final[str]
    compared: typing.Final[bool]
    description: typing.Final[str]
    elastic: typing.Final[bool]
    name: typing.Final[str]
    reads: typing.Final[tuple[str, ...]]
    round_s: typing.Final[float | None]
    sees: typing.Final[str]
    session_s: typing.Final[float | None]
    source: typing.Final[str]
    stops_at_target: typing.Final[bool]

class SimulationOptions:
    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> SimulationOptions:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        *,
        seed: typing.SupportsIndex = 0,
        restart_s: Float = 0.0,
        session_s: Float | None = None,
        round_s: Float | None = None,
        forecast_sigma: Float | None = None,
        knows_phases: bool = True,
        stop_at_target: bool | None = None,
        failures: collections.abc.Mapping[str, Float] | None = ...,
        sleep: collections.abc.Mapping[str, Float] | None = ...,
        in_nodes: bool = False,
        sharing: str = "exclusive",
        user_gpus: typing.SupportsIndex | None = None,
        carbon_g_per_kwh: Float | collections.abc.Sequence[Float] | None = [],
        planner: collections.abc.Mapping[str, object] | None = None,
        max_ftf: Float | None = None,
        long_share: Float | None = None,
        patience: bool = True,
        unfair_above: Float = 1.0,
        spans: bool = True,
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    carbon_g_per_kwh: typing.Final[list[float]]
    failures: typing.Final[dict[str, float]]
    forecast_sigma: typing.Final[float | None]
    in_nodes: typing.Final[bool]
    knows_phases: typing.Final[bool]
    long_share: typing.Final[float | None]
    max_ftf: typing.Final[float | None]
    patience: typing.Final[bool]
    planner: typing.Final[PlanOptions | None]
    restart_s: typing.Final[float]
    round_s: typing.Final[float | None]
    seed: typing.Final[int]
    session_s: typing.Final[float | None]
    sharing: typing.Final[str]
    sleep: typing.Final[dict[str, float]]
    spans: typing.Final[bool]
    stop_at_target: typing.Final[bool | None]
    unfair_above: typing.Final[float]
    user_gpus: typing.Final[int | None]

class JobSpan:
    """A stretch for which a job held GPUs.

    Attributes
    ----------
    job, partner : int
        The job, and the one that shared its GPUs; -1 = nobody did.
    tier, gpus : int
        Index of the tier, and how many of its GPUs.
    start_s, end_s : float
        Seconds since the start of the simulation.
    """

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> JobSpan:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    end_s: typing.Final[float]
    gpus: typing.Final[int]
    job: typing.Final[int]
    partner: typing.Final[int]
    start_s: typing.Final[float]
    tier: typing.Final[int]

class SimulationRecord:
    carbon_kg: typing.Final[float]
    energy_kwh: typing.Final[float]
    events: typing.Final[int]
    failures: typing.Final[int]
    fallback: typing.Final[str]
    gpu_seconds: typing.Final[float]
    jobs: typing.Final[dict[str, numpy.ndarray]]
    lost_gpu_seconds: typing.Final[float]
    lower_bound_jct_s: typing.Final[float]
    makespan_s: typing.Final[float]
    mean_jct_s: typing.Final[float]
    mean_wait_per_user_s: typing.Final[float]
    mean_wait_s: typing.Final[float]
    median_jct_s: typing.Final[float]
    p95_jct_s: typing.Final[float]
    policy: typing.Final[str]
    preemptions: typing.Final[int]
    share_in_time: typing.Final[float]
    share_unfair: typing.Final[float]
    share_unfair_static: typing.Final[float]
    spans: typing.Final[dict[str, numpy.ndarray]]
    tier_accounts: typing.Final[dict[str, numpy.ndarray]]
    tiers: typing.Final[list[str]]
    timeline: typing.Final[dict[str, numpy.ndarray]]
    total_wait_s: typing.Final[float]
    user_accounts: typing.Final[dict[str, numpy.ndarray]]
    utilization: typing.Final[float]
    workload: typing.Final[str]
    worst_ftf: typing.Final[float]
    worst_ftf_static: typing.Final[float]

class ForecastMemo:
    def __init__(self) -> None: ...

class EnvironmentBatch:
    def __init__(
        self,
        workloads: collections.abc.Sequence[WorkloadRecord],
        count: Int,
        simulation: SimulationOptions,
        slots: Int,
        running: Int,
        energy_weight: Float,
        weights_for_s: Float,
    ) -> None: ...
    def reset(
        self, seed: Int, first: Int, observation: NDArray[numpy.float32], mask: NDArray[numpy.uint8]
    ) -> None: ...
    def simulation(self, environment: Int) -> SimulationRecord: ...
    def step(
        self,
        actions: ArrayLike,
        observation: NDArray[numpy.float32],
        reward: NDArray[numpy.float64],
        terminated: NDArray[numpy.uint8],
        mask: NDArray[numpy.uint8],
    ) -> None: ...
    def weigh(
        self,
        weights: ArrayLike,
        observation: NDArray[numpy.float32],
        reward: NDArray[numpy.float64],
        terminated: NDArray[numpy.uint8],
        mask: NDArray[numpy.uint8],
    ) -> None: ...
    actions: typing.Final[int]
    observation_size: typing.Final[int]

class StartOptions:
    """Options of `start_times`."""

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> StartOptions:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def __init__(
        self,
        *,
        samples: typing.SupportsIndex = 200,
        seed: typing.SupportsIndex = 0,
        horizon_s: Float = 2592000.0,
        levels: ArrayLike | None = None,
        recent: collections.abc.Sequence[Job] = [],
        believed: collections.abc.Mapping[int, float] | None = {},
    ) -> None: ...
    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    believed: typing.Final[dict[int, float]]
    horizon_s: typing.Final[float]
    levels: typing.Final[NDArray[numpy.float64]]
    recent: typing.Final[list[Job]]
    samples: typing.Final[int]
    seed: typing.Final[int]

class StartTimesRecord:
    """What `start_times` found."""

    __hash__: typing.ClassVar[None]  # type: ignore[assignment]

    @staticmethod
    def from_dict(state: collections.abc.Mapping[str, object]) -> StartTimesRecord:
        """Read what `to_dict` wrote; InputError where it is something else or damaged."""

    def to_dict(self) -> dict[str, typing.Any]:
        """Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text."""
    job: typing.Final[NDArray[numpy.int64]]
    levels: typing.Final[NDArray[numpy.float64]]
    quantiles: typing.Final[NDArray[numpy.float64]]

class Moment:
    """A moment of a simulation, as `start_times` takes it."""

    def snapshot(self, tiers: collections.abc.Sequence[Tier]) -> Snapshot: ...
    believed: typing.Final[dict[int, float]]
    now_s: typing.Final[float]
    recent: typing.Final[list[Job]]

def available_threads() -> int:
    """Number of threads that threads=0 means here."""

def best_batch(
    scaling: Scaling, limits: BatchLimits, *, gpus: int = 1, nodes: int = 1
) -> BatchChoice | None:
    """Choose the batch of a gang."""

def best_isa() -> str:
    """Instruction set that the batch kernels use here."""

def best_name(points: dict[str, float]) -> str | None: ...
def best_partition(speeds: ArrayLike) -> Partition:
    """Cut a card for jobs and say who runs on which slice."""

def best_so_far(
    trace: Trace,
    *,
    budget: Float,
    schedule: ScheduleRecord | None,
    past: PastRunsRecord | None,
    reached_by: str | None,
    constants: ForecastConstants | None,
) -> BestSoFarRecord: ...
def catalogue() -> list[Gpu]:
    """Every GPU of the catalogue, in its order."""

def choose(points: dict[str, float], metric: str | None, label: str) -> str:
    """The metric to read."""

def choose_accelerator(
    job: Job, tiers: collections.abc.Sequence[Tier], limits: RunLimits, prefer: str
) -> list[AcceleratorChoiceRecord]: ...
def clean(trace: TraceRecord, *, max_points: int, winsorize_sigmas: Float) -> CleanedRecord:
    """The cleaned trace and what was done to it."""

def direction_by_name(name: str) -> str | None: ...
def evaluate_columns(
    family: str,
    params: collections.abc.Sequence[ArrayLike],
    steps: ArrayLike,
    threads: int,
    out: numpy.ndarray | None,
) -> NDArray[numpy.float64]: ...
def fit(
    step: ArrayLike,
    loss: ArrayLike,
    weight: ArrayLike | None,
    family: str,
    robust: str,
    lowest_floor: Float,
    solver: str,
    starts: int | None,
    from_step: Float,
) -> FitRecord: ...
def fit_batch(
    steps: collections.abc.Sequence[ArrayLike],
    losses: collections.abc.Sequence[ArrayLike],
    weights: collections.abc.Sequence[ArrayLike],
    family: str,
    robust: str,
    lowest_floor: Float,
    solver: str,
    starts: int | None,
    from_step: Float,
    threads: int,
) -> list[FitRecord]: ...
def fit_rows(
    step: ArrayLike,
    loss: ArrayLike,
    family: str,
    lowest_floor: Float,
    from_step: Float,
    threads: int,
) -> FitBatchRecord: ...
def fit_scaling(
    gpus: ArrayLike,
    seconds: ArrayLike,
    *,
    nodes: ArrayLike | None = None,
    batch_per_gpu: ArrayLike | None = None,
) -> Scaling:
    """Fit how step time falls with GPUs and nodes."""

def fit_schedule_law(
    traces: collections.abc.Sequence[TraceRecord], kind: str
) -> ScheduleLawRecord: ...
def forecast(
    trace: Trace,
    at: ArrayLike,
    *,
    schedule: ScheduleRecord | None,
    past: PastRunsRecord | None,
    levels: ArrayLike | None,
    constants: ForecastConstants | None,
) -> ForecastRecord: ...
def forecast_batch(
    *,
    step: ArrayLike,
    loss: ArrayLike,
    at: ArrayLike,
    schedule: ScheduleRecord | None,
    past: PastRunsRecord | None,
    threads: int,
    levels: ArrayLike | None,
    direction: str,
    constants: ForecastConstants | None,
) -> ForecastBatchRecord: ...
def generate_workload(path: os.PathLike | str | bytes, users: int, seed: int) -> WorkloadRecord: ...
def gittins_index(samples: ArrayLike) -> float: ...
def head_of(path: os.PathLike | str | bytes) -> bytes:
    """How a file begins, unpacked."""

def header_of(head: bytes) -> list[str]:
    """The names of the columns in the first line of a CSV."""

def is_console(path: os.PathLike | str | bytes, head: bytes) -> bool: ...
def is_json_lines(path: os.PathLike | str | bytes, head: bytes) -> bool: ...
def is_long(path: os.PathLike | str | bytes, head: bytes) -> bool: ...
def is_metric_name(name: str) -> bool: ...
def is_rate_name(name: str) -> bool: ...
def is_step_name(name: str) -> bool: ...
def is_step_within_epoch(name: str) -> bool: ...
def is_table(path: os.PathLike | str | bytes, head: bytes) -> bool: ...
def is_trainer_state(path: os.PathLike | str | bytes, head: bytes) -> bool: ...
def is_utf16(front: bytes) -> bool:
    """Whether a file that begins so is UTF-16."""

def learn_pairs(
    measured: collections.abc.Sequence[KindPair], alone: collections.abc.Sequence[JobKind] = []
) -> Pairs:
    """Complete a table of measured pairs."""

def learn_widths(
    teachers: collections.abc.Sequence[Trace],
    shapes: collections.abc.Sequence[Trace],
    *,
    constants: ForecastConstants | None,
    threads: int,
) -> WidthsRecord: ...
def learned_table() -> str: ...
def learned_values() -> NDArray[numpy.float64]: ...
def make_workload(
    tiers: collections.abc.Sequence[Tier],
    jobs: dict[str, ArrayLike],
    curves: collections.abc.Sequence[Trace],
    pairs: collections.abc.Sequence[PairSpeeds],
    name: str,
) -> WorkloadRecord: ...
def mix_speeds(
    jobs: collections.abc.Sequence[Profile], sharing: str, tier: Tier, *, pairs: Pairs | None = None
) -> NDArray[numpy.float64]:
    """Speeds of up to four jobs on one GPU."""

def moments_of(
    workload: WorkloadRecord,
    policy: str,
    options: SimulationOptions,
    at_s: collections.abc.Sequence[Float],
    recent: Int,
) -> list[Moment]: ...
def names_run(name: str) -> bool:
    """Whether a column tells of which run a row is."""

def normal_name(name: str) -> str: ...
def number_in(text: str) -> float | None:
    """The number that a text spells, or None."""

def open_budget(first_step: Float, last_step: Float) -> float:
    """Step to which a run may go on where nothing says how far."""

def options_of(
    tiers: collections.abc.Sequence[Tier],
    scaling: collections.abc.Sequence[Scaling | None],
    options: PlacementOptions,
) -> list[Option]: ...
def partitions() -> list[Partition]:
    """List the ways to cut a card."""

def place_pods(
    nodes: collections.abc.Sequence[FreeNode],
    pods: collections.abc.Sequence[Pod],
    options: PodOptions,
) -> list[PodPlace]:
    """Place pods one after the other, each once and for good."""

def plan(snapshot: Snapshot, options: PlanOptions) -> PlanRecord: ...
def pod_policies() -> list[PodPolicyInfo]:
    """List the policies of `place_pods`."""

def pod_policy_of(options: PodOptions) -> str:
    """The policy that the options name, or the one by default."""

def pod_violations(
    nodes: collections.abc.Sequence[FreeNode],
    pods: collections.abc.Sequence[Pod],
    places: collections.abc.Sequence[PodPlace],
    pods_per_gpu: int,
) -> list[str]:
    """Say what is wrong with places of pods."""

def policies() -> list[PolicyInfo]: ...
def reach_batch(
    traces: collections.abc.Sequence[Trace],
    targets: ArrayLike,
    budgets: ArrayLike,
    *,
    schedule: ScheduleRecord | None,
    past: PastRunsRecord | None,
    direction: str,
    constants: ForecastConstants | None,
    reached_by: str | None,
    threads: int,
) -> list[ReachRecord]: ...
def reached_by_name(name: str) -> str: ...
def read_cells(path: os.PathLike | str | bytes, needed: collections.abc.Sequence[str]) -> TextTable:
    """A CSV as text: its columns, and each row with its line."""

def read_console(path: os.PathLike | str | bytes, metric: str | None) -> list[RunRecord]: ...
def read_constants(text: str) -> ForecastConstants: ...
def read_json_lines(path: os.PathLike | str | bytes, metric: str | None) -> list[RunRecord]: ...
def read_learned_values(file: os.PathLike | str | bytes) -> NDArray[numpy.float64]: ...
def read_long_csv(path: os.PathLike | str | bytes, metric: str) -> list[TraceRecord]: ...
def read_pairs(file: os.PathLike | str | bytes) -> list[KindPair]:
    """Read measured pairs of jobs on the same GPUs."""

def read_table(path: os.PathLike | str | bytes, metric: str | None) -> list[RunRecord]: ...
def read_tiers(path: os.PathLike | str | bytes) -> tuple[list[Tier], list[str]]:
    """The tiers of a tiers.csv, and what of it is not read."""

def read_trainer_state(path: os.PathLike | str | bytes, metric: str | None) -> RunRecord: ...
def read_workload(path: os.PathLike | str | bytes) -> WorkloadRecord: ...
def require_column(path: os.PathLike | str | bytes, head: bytes, metric: str | None) -> None: ...
def sample_quantile(sorted: collections.abc.Sequence[Float], level: Float) -> float:
    """The least of increasing samples that at least a share `level` of them does not exceed."""

def settings_of_file(path: os.PathLike | str | bytes) -> tuple[dict[str, float | str], list[str]]:
    """The settings that a JSON or YAML file has, and notes of what it is wrong with."""

def settings_of_json(texts: dict[str, str]) -> dict[str, float | str]:
    """The settings among values by name, each as JSON."""

def settings_of_texts(texts: dict[str, str]) -> dict[str, float | str]:
    """The settings among plain texts by name."""

def shared_speeds(
    first: Profile,
    second: Profile,
    sharing: str,
    gpu: str,
    gpu_memory_gb: Float,
    pairs: Pairs | None,
) -> SharedSpeedsRecord:
    """Speeds of a pair."""

def simulate(
    workload: WorkloadRecord,
    policy: str | collections.abc.Callable[[Snapshot], Plan],
    options: SimulationOptions,
    memo: ForecastMemo | None = None,
    stream: collections.abc.Callable[[JobSpan], object] | None = None,
    progress: collections.abc.Callable[[int, int], object] | None = None,
) -> SimulationRecord: ...
def slice_speeds(jobs: collections.abc.Sequence[Profile], tier: Tier) -> NDArray[numpy.float64]:
    """Predict the speeds of jobs on the slices of a card."""

def slices() -> list[Slice]:
    """List the slices."""

def solve_round(
    job: ArrayLike,
    tier: ArrayLike,
    gpus: ArrayLike,
    value: ArrayLike,
    capacity: ArrayLike,
    *,
    gap: Float,
    prices: ArrayLike | None,
    threads: int,
    watts: ArrayLike | None,
    power_cap_w: Float,
    user: ArrayLike | None,
    user_quota: ArrayLike | None,
    group: ArrayLike | None,
    group_quota: ArrayLike | None,
    node_gpus: ArrayLike | None,
    taken_tier: ArrayLike | None,
    taken_gpus: ArrayLike | None,
) -> RoundPlanRecord: ...
def start_times(
    snapshot: Snapshot, policy: str, options: StartOptions, threads: int
) -> StartTimesRecord: ...
def step_columns(names: collections.abc.Sequence[str]) -> list[str]:
    """The names that count steps, best first."""

def trace_of(
    series: dict[str, Series],
    metric: str | None,
    label: str,
    name: str,
    notes: collections.abc.Sequence[str],
    planned_steps: Float | None,
    settings: collections.abc.Mapping[str, Float | str],
) -> TraceRecord:
    """The trace of one run."""

def unknown_format(path: os.PathLike | str | bytes, head: bytes, formats: str) -> str:
    """The format whose reader says what a file of none of them lacks."""

def usable(status: str) -> bool: ...
def utf8_of_utf16(data: bytes) -> bytes:
    """The bytes of such a file as UTF-8."""

def validate_trace(step: ArrayLike, loss: ArrayLike) -> None:
    """Throws InputError unless the columns make a trace."""

def violations(snapshot: Snapshot, plan: Plan, limits: PlanLimits) -> list[str]: ...
def whole_state(path: os.PathLike | str | bytes) -> bytes:
    """The longest state of a run of the Trainer that begins as a file does."""

def workload_from_trace(
    path: os.PathLike | str | bytes, gpus: int, gpus_per_node: int | None
) -> WorkloadRecord: ...
def write_learned_values(
    values: collections.abc.Sequence[Float], file: os.PathLike | str | bytes
) -> None: ...

CLEAN_POINTS: int
CLOCKS: tuple[str, ...]
DATES: tuple[str, ...]
ENVIRONMENT_RUNNING: int
ENVIRONMENT_SLOTS: int
FAMILIES: dict[str, tuple[str, ...]]
FIT_STATUSES: tuple[str, ...]
MAD_PER_DEVIATION: float
MIN_WATCHED_POINTS: int
OBJECTIVES: tuple[str, ...]
OUTCOMES: tuple[str, ...]
POLICY_READS: tuple[str, ...]
READING: str
ROUND_GAP: float
RUNNING_FEATURES: tuple[str, ...]
SETTINGS_KEYS: tuple[str, ...]
SHOWN_LEVELS: tuple[float, ...]
SLOT_FEATURES: tuple[str, ...]
STAMPS: tuple[str, ...]
TIMES: tuple[str, ...]
UTF16_FRONT: int
VERDICTS: tuple[str, ...]
WATCH_ALPHA: float
WATCH_LOOKS: int
WATCH_PATIENCE: int
__version__: str
