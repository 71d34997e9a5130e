# SPDX-License-Identifier: Apache-2.0
# Written by scripts/update_stub.py
"""
The C++ library behind glidepath; private.
"""
from __future__ import annotations
import collections.abc
class InputError(ValueError): ...
class IoError(OSError): ...
import numpy
import numpy.typing
import os
import typing
__all__: list[str] = ['AcceleratorChoiceRecord', 'Allocation', 'CleanedRecord', 'DecisionRecord', 'EnvironmentBatch', 'FAMILIES', 'FIT_STATUSES', 'FitBatchRecord', 'FitRecord', 'FitScore', 'ForecastBatchRecord', 'ForecastConstants', 'ForecastMemo', 'ForecastRecord', 'Gpu', 'InputError', 'IoError', 'Job', 'JobKind', 'KindPair', 'OBJECTIVES', 'OUTCOMES', 'Option', 'PairSpeeds', 'Pairs', 'PastRunsRecord', 'PlacementOptions', 'PlanLimits', 'PlanOptions', 'PlanRecord', 'PolicyInfo', 'Profile', 'ReachRecord', 'RoundPlanRecord', 'RunLimits', 'Scaling', 'ScheduleLawRecord', 'ScheduleRecord', 'SharedSpeedsRecord', 'SimulationOptions', 'SimulationRecord', 'Snapshot', 'StepTime', 'Tier', 'TraceRecord', 'VERDICTS', 'WatchRecord', 'WidthsRecord', 'WorkloadRecord', 'available_threads', 'best_isa', 'catalogue', 'choose_accelerator', 'clean', 'evaluate_columns', 'fit', 'fit_batch', 'fit_rows', 'fit_scaling', 'fit_schedule_law', 'forecast', 'forecast_batch', 'forecast_nodes', 'generate_workload', 'gittins_index', 'learn_pairs', 'learn_widths', 'learned_table', 'make_workload', 'options_of', 'plan', 'policies', 'reach_batch', 'read_constants', 'read_long_csv', 'read_pairs', 'read_workload', 'shared_speeds', 'simulate', 'solve_round', 'usable', 'validate_trace', 'violations', 'workload_from_trace']
class TraceRecord:
    """
    A trace as the library has it; an empty column is absent.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, step: numpy.typing.ArrayLike | None, loss: numpy.typing.ArrayLike | None, *, lr: numpy.typing.ArrayLike | None = None, wall_seconds: numpy.typing.ArrayLike | None = None, name: str = '', metric: str = 'loss', direction: str = 'min', planned_steps: typing.SupportsFloat | typing.SupportsIndex | None = None) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def direction(self) -> str:
        ...
    @property
    def loss(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def lr(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def metric(self) -> str:
        ...
    @property
    def name(self) -> str:
        ...
    @property
    def planned_steps(self) -> float | None:
        ...
    @property
    def step(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def wall_seconds(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
class CleanedRecord:
    """
    A cleaned trace and what was done to it.
    """
    @property
    def dropped_nonfinite(self) -> int:
        ...
    @property
    def dropped_repeats(self) -> int:
        ...
    @property
    def pulled_in(self) -> int:
        ...
    @property
    def thinned(self) -> int:
        ...
    @property
    def trace(self) -> TraceRecord:
        ...
class ScheduleRecord:
    @staticmethod
    def constant(lr: typing.SupportsFloat | typing.SupportsIndex) -> ScheduleRecord:
        ...
    @staticmethod
    def cosine(peak: typing.SupportsFloat | typing.SupportsIndex, steps: typing.SupportsFloat | typing.SupportsIndex, *, warmup: typing.SupportsFloat | typing.SupportsIndex, final: typing.SupportsFloat | typing.SupportsIndex) -> ScheduleRecord:
        ...
    @staticmethod
    def linear(peak: typing.SupportsFloat | typing.SupportsIndex, steps: typing.SupportsFloat | typing.SupportsIndex, *, warmup: typing.SupportsFloat | typing.SupportsIndex, final: typing.SupportsFloat | typing.SupportsIndex) -> ScheduleRecord:
        ...
    @staticmethod
    def logged(run: collections.abc.Sequence) -> ScheduleRecord | None:
        """
        The schedule that the one run of the list logged, or None.
        """
    @staticmethod
    def of(*, step: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], lr: typing.Annotated[numpy.typing.ArrayLike, numpy.float64]) -> ScheduleRecord:
        ...
    @staticmethod
    def wsd(peak: typing.SupportsFloat | typing.SupportsIndex, steps: typing.SupportsFloat | typing.SupportsIndex, *, warmup: typing.SupportsFloat | typing.SupportsIndex, decay: typing.SupportsFloat | typing.SupportsIndex, final: typing.SupportsFloat | typing.SupportsIndex) -> ScheduleRecord:
        ...
    def at(self, steps: typing.Annotated[numpy.typing.ArrayLike, numpy.float64]) -> numpy.typing.NDArray[numpy.float64]:
        ...
    def state(self) -> dict:
        ...
    @property
    def lr(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def step(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
class FitScore:
    """
    How one family did in the choice by AICc.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, family: str, aicc: typing.SupportsFloat | typing.SupportsIndex, status: str) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def aicc(self) -> float:
        ...
    @property
    def family(self) -> str:
        ...
    @property
    def status(self) -> str:
        ...
class FitRecord:
    def __getstate__(self) -> tuple:
        ...
    def __setstate__(self, arg0: tuple) -> None:
        ...
    def predict(self, steps: numpy.typing.ArrayLike) -> numpy.typing.NDArray[numpy.float64]:
        ...
    def state(self) -> tuple:
        ...
    @property
    def aicc(self) -> float:
        ...
    @property
    def at_bound(self) -> tuple:
        ...
    @property
    def bic(self) -> float:
        ...
    @property
    def covariance(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def family(self) -> str:
        ...
    @property
    def last_step(self) -> float:
        ...
    @property
    def params(self) -> tuple:
        ...
    @property
    def points(self) -> int:
        ...
    @property
    def rss(self) -> float:
        ...
    @property
    def scores(self) -> list[FitScore]:
        ...
    @property
    def sigma(self) -> float:
        ...
    @property
    def status(self) -> str:
        ...
    @property
    def stderr(self) -> tuple:
        ...
class FitBatchRecord:
    @property
    def family(self) -> str:
        ...
    @property
    def params(self) -> dict:
        ...
    @property
    def sigma(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def status(self) -> numpy.typing.NDArray[numpy.uint8]:
        ...
class ScheduleLawRecord:
    """
    The law as the library has it.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, *, kind: str = 'annealing', status: str = 'too_few_points', floor: typing.SupportsFloat | typing.SupportsIndex = 0.0, scale: typing.SupportsFloat | typing.SupportsIndex = 0.0, rate: typing.SupportsFloat | typing.SupportsIndex = 0.0, drop: typing.SupportsFloat | typing.SupportsIndex = 0.0, memory: typing.SupportsFloat | typing.SupportsIndex = 0.0, speed: typing.SupportsFloat | typing.SupportsIndex = 0.0, shape: typing.SupportsFloat | typing.SupportsIndex = 0.0, power: typing.SupportsFloat | typing.SupportsIndex = 0.0, warmup: typing.SupportsFloat | typing.SupportsIndex = 0.0, sigma: typing.SupportsFloat | typing.SupportsIndex = 0.0, rss: typing.SupportsFloat | typing.SupportsIndex = 0.0, points: typing.SupportsIndex = 0) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    def predict(self, step: numpy.typing.ArrayLike, lr: numpy.typing.ArrayLike) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def drop(self) -> float:
        ...
    @property
    def floor(self) -> float:
        ...
    @property
    def kind(self) -> str:
        ...
    @property
    def memory(self) -> float:
        ...
    @property
    def points(self) -> int:
        ...
    @property
    def power(self) -> float:
        ...
    @property
    def rate(self) -> float:
        ...
    @property
    def rss(self) -> float:
        ...
    @property
    def scale(self) -> float:
        ...
    @property
    def shape(self) -> float:
        ...
    @property
    def sigma(self) -> float:
        ...
    @property
    def speed(self) -> float:
        ...
    @property
    def status(self) -> str:
        ...
    @property
    def warmup(self) -> float:
        ...
class ForecastConstants: ...
class WidthsRecord:
    @staticmethod
    def of(*, horizon: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], factor: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], runs: typing.SupportsInt | typing.SupportsIndex, scheduled_factor: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], scheduled_runs: typing.SupportsInt | typing.SupportsIndex, schedule_helps: bool) -> WidthsRecord:
        ...
    def state(self) -> dict:
        ...
    @property
    def factor(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def horizon(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def runs(self) -> int:
        ...
    @property
    def schedule_helps(self) -> bool:
        ...
    @property
    def scheduled_factor(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def scheduled_runs(self) -> int:
        ...
class PastRunsRecord:
    @staticmethod
    def of(runs: collections.abc.Sequence, *, constants: ForecastConstants | None, threads: typing.SupportsInt | typing.SupportsIndex) -> PastRunsRecord:
        ...
    @staticmethod
    def restored(runs: collections.abc.Sequence, widths: WidthsRecord) -> PastRunsRecord:
        ...
    @staticmethod
    def unlearned(runs: collections.abc.Sequence) -> PastRunsRecord:
        ...
    def update(self, finished: collections.abc.Sequence, *, constants: ForecastConstants | None) -> PastRunsRecord:
        """
        Learns from the one run of the list.
        """
    @property
    def widths(self) -> WidthsRecord:
        ...
class ForecastRecord:
    @staticmethod
    def of(*, at: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], levels: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], median: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], quantiles: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], curve_quantiles: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], status: str, law: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex]) -> ForecastRecord:
        ...
    def curve_quantile(self, p: typing.SupportsFloat | typing.SupportsIndex) -> numpy.typing.NDArray[numpy.float64]:
        ...
    def prob_below(self, target: typing.SupportsFloat | typing.SupportsIndex) -> numpy.typing.NDArray[numpy.float64]:
        ...
    def quantile(self, p: typing.SupportsFloat | typing.SupportsIndex) -> numpy.typing.NDArray[numpy.float64]:
        ...
    def state(self) -> dict:
        ...
    @property
    def at(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def curve_quantiles(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def levels(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def median(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def quantiles(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def status(self) -> str:
        ...
class ForecastBatchRecord:
    @staticmethod
    def of(*, at: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], levels: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], median: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], quantiles: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], status: collections.abc.Sequence[str]) -> ForecastBatchRecord:
        ...
    def state(self) -> dict:
        ...
    @property
    def at(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def levels(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def median(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def quantiles(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def status(self) -> list[str]:
        ...
class ReachRecord:
    @staticmethod
    def of(*, step: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], cdf: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], prob_never: typing.SupportsFloat | typing.SupportsIndex, target: typing.SupportsFloat | typing.SupportsIndex, budget: typing.SupportsFloat | typing.SupportsIndex, status: str) -> ReachRecord:
        ...
    def prob_by(self, step: typing.SupportsFloat | typing.SupportsIndex) -> float:
        ...
    def quantile(self, p: typing.SupportsFloat | typing.SupportsIndex) -> float:
        ...
    def quantile_if_reached(self, p: typing.SupportsFloat | typing.SupportsIndex) -> float:
        ...
    def remaining_steps(self, n: typing.SupportsInt | typing.SupportsIndex) -> numpy.typing.NDArray[numpy.float64]:
        ...
    def state(self) -> dict:
        ...
    @property
    def budget(self) -> float:
        ...
    @property
    def cdf(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def prob_never(self) -> float:
        ...
    @property
    def status(self) -> str:
        ...
    @property
    def step(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def target(self) -> float:
        ...
class DecisionRecord:
    @staticmethod
    def of(*, verdict: str, probability: typing.SupportsFloat | typing.SupportsIndex, steps_to_target: typing.Annotated[collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], "FixedSize(3)"], reason: str) -> DecisionRecord:
        ...
    def state(self) -> dict:
        ...
    @property
    def probability(self) -> float:
        ...
    @property
    def reason(self) -> str:
        ...
    @property
    def steps_to_target(self) -> tuple[float, float, float]:
        ...
    @property
    def verdict(self) -> str:
        ...
class WatchRecord:
    @staticmethod
    def of(*, target: typing.SupportsFloat | typing.SupportsIndex | None, budget: typing.SupportsFloat | typing.SupportsIndex | None, direction: str, schedule: ScheduleRecord | None, past: PastRunsRecord | None, alpha: typing.SupportsFloat | typing.SupportsIndex) -> WatchRecord:
        ...
    def add(self, step: typing.SupportsFloat | typing.SupportsIndex, loss: typing.SupportsFloat | typing.SupportsIndex, lr: typing.SupportsFloat | typing.SupportsIndex = ...) -> None:
        ...
    def decision(self) -> DecisionRecord:
        ...
    def restore(self, state: dict) -> None:
        ...
    def state(self) -> dict:
        ...
class Tier:
    """
    A pool of equal GPUs; memory and power are per GPU.
    
    Parameters
    ----------
    name : str
    nodes : int
    gpus_per_node : int
    gpu : str
        Model, for the reader.
    memory_gb, host_memory_gb : float
        Of one GPU and of one node; 0 = not known, so that no job is refused for memory.
    idle_watts, busy_watts : float
    price_per_gpu_hour : float
        In any currency; 0 = not priced.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    @staticmethod
    def of(name: str, gpu: str, nodes: typing.SupportsInt | typing.SupportsIndex, gpus_per_node: typing.SupportsInt | typing.SupportsIndex = 1) -> Tier:
        """
        Tier of a GPU of the catalogue, with its memory and power.
        """
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, name: str, nodes: typing.SupportsIndex, gpus_per_node: typing.SupportsIndex = 1, *, gpu: str = '', memory_gb: typing.SupportsFloat | typing.SupportsIndex = 0.0, host_memory_gb: typing.SupportsFloat | typing.SupportsIndex = 0.0, idle_watts: typing.SupportsFloat | typing.SupportsIndex = 0.0, busy_watts: typing.SupportsFloat | typing.SupportsIndex = 0.0, price_per_gpu_hour: typing.SupportsFloat | typing.SupportsIndex = 0.0) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    def watts(self, utilization: typing.SupportsFloat | typing.SupportsIndex) -> float:
        """
        Power of one GPU at a utilization in [0, 1].
        """
    @property
    def busy_watts(self) -> float:
        ...
    @property
    def gpu(self) -> str:
        ...
    @property
    def gpus(self) -> int:
        ...
    @property
    def gpus_per_node(self) -> int:
        ...
    @property
    def host_memory_gb(self) -> float:
        ...
    @property
    def idle_watts(self) -> float:
        ...
    @property
    def memory_gb(self) -> float:
        ...
    @property
    def name(self) -> str:
        ...
    @property
    def nodes(self) -> int:
        ...
    @property
    def price_per_gpu_hour(self) -> float:
        ...
class Gpu:
    """
    A GPU of the catalogue as its vendor describes it.
    
    0 where a figure is not published; `relative_speed` is measured training speed, V100 SXM2 = 1.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def architecture(self) -> str:
        ...
    @property
    def bandwidth_gb_s(self) -> float:
        ...
    @property
    def busy_watts(self) -> float:
        ...
    @property
    def fp16_tflops(self) -> float:
        ...
    @property
    def fp32_tflops(self) -> float:
        ...
    @property
    def idle_watts(self) -> float:
        ...
    @property
    def memory_gb(self) -> float:
        ...
    @property
    def name(self) -> str:
        ...
    @property
    def relative_speed(self) -> float:
        ...
    @property
    def source(self) -> str:
        ...
    @property
    def vendor(self) -> str:
        ...
    @property
    def year(self) -> int:
        ...
class StepTime:
    """
    One measured step of a gang.
    
    Parameters
    ----------
    gpus : int
    seconds : float
    nodes : int
    batch_per_gpu : float
        Global batch / gpus, or 1 where it does not change.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, gpus: typing.SupportsIndex, seconds: typing.SupportsFloat | typing.SupportsIndex, *, nodes: typing.SupportsIndex = 1, batch_per_gpu: typing.SupportsFloat | typing.SupportsIndex = 1.0) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def batch_per_gpu(self) -> float:
        ...
    @property
    def gpus(self) -> int:
        ...
    @property
    def nodes(self) -> int:
        ...
    @property
    def seconds(self) -> float:
        ...
class Scaling:
    """
    Step time of a gang as a function of GPUs and nodes.
    
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
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    def step_seconds(self, gpus: typing.SupportsInt | typing.SupportsIndex, nodes: typing.SupportsInt | typing.SupportsIndex = 1, batch_per_gpu: typing.SupportsFloat | typing.SupportsIndex = 1.0) -> float:
        """
        Seconds per step of a gang.
        """
    @property
    def correction(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def measured(self) -> list[StepTime]:
        ...
    @property
    def terms(self) -> dict:
        ...
    @property
    def typical_error(self) -> float:
        ...
class Profile:
    """
    What is known of a job that runs alone.
    
    Parameters
    ----------
    sm_activity : float
        Share of the multiprocessors busy, averaged over time, in [0, 1].
    memory_gb : float
        Per GPU.
    kind : str
        As measured pairs name it; empty = of no measured kind.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, sm_activity: typing.SupportsFloat | typing.SupportsIndex = 1.0, memory_gb: typing.SupportsFloat | typing.SupportsIndex = 0.0, kind: str = '') -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def kind(self) -> str:
        ...
    @property
    def memory_gb(self) -> float:
        ...
    @property
    def sm_activity(self) -> float:
        ...
class KindPair:
    """
    Two kinds of job together on a kind of GPU.
    
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
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, gpu: str, first: str, second: str, first_slowdown: typing.SupportsFloat | typing.SupportsIndex, second_slowdown: typing.SupportsFloat | typing.SupportsIndex, *, sharing: str = 'naive', predicted: bool = False) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def first(self) -> str:
        ...
    @property
    def first_slowdown(self) -> float:
        ...
    @property
    def gpu(self) -> str:
        ...
    @property
    def predicted(self) -> bool:
        ...
    @property
    def second(self) -> str:
        ...
    @property
    def second_slowdown(self) -> float:
        ...
    @property
    def sharing(self) -> str:
        ...
class JobKind:
    """
    What tells a kind of job from others, measured alone.
    
    Parameters
    ----------
    kind, gpu : str
    model : str
        What kinds have in common that differ in batch size only.
    features : array_like, shape (features,)
        Finite and dimensionless, the same for all kinds on this GPU: logarithms of the batch size,
        of the time of a step, and so on.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, kind: str, gpu: str, model: str = '', features: numpy.typing.ArrayLike | None = None) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def features(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def gpu(self) -> str:
        ...
    @property
    def kind(self) -> str:
        ...
    @property
    def model(self) -> str:
        ...
class Pairs:
    """
    Measured pairs and those learned from them.
    
    Made by `learn_pairs`; `rows` has each pair both ways round.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __len__(self) -> int:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def rows(self) -> list[KindPair]:
        ...
class SharedSpeedsRecord:
    """
    Speeds of two jobs on the same GPUs.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def first(self) -> float:
        ...
    @property
    def second(self) -> float:
        ...
class Option:
    """
    One way to run a job.
    
    Parameters
    ----------
    tier : int
        Index into the snapshot's tiers.
    gpus : int
        The whole gang.
    steps_per_s : float
        Of the gang, in the job's own steps.
    utilization : float
        Of each GPU in [0, 1], for power.
    sharing : str
        Other than ``exclusive``: the rate is that beside a partner, and `plan` may pair the job on this
        tier and gang. A job without any such option may be paired wherever it may run.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, tier: typing.SupportsIndex, gpus: typing.SupportsIndex, steps_per_s: typing.SupportsFloat | typing.SupportsIndex, *, utilization: typing.SupportsFloat | typing.SupportsIndex = 1.0, sharing: str = 'exclusive') -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def gpus(self) -> int:
        ...
    @property
    def sharing(self) -> str:
        ...
    @property
    def steps_per_s(self) -> float:
        ...
    @property
    def tier(self) -> int:
        ...
    @property
    def utilization(self) -> float:
        ...
class Allocation:
    """
    GPUs that a job holds.
    
    Parameters
    ----------
    job, tier, gpus : int
    since_s : float
    partner : int
        Job that shares the same GPUs; -1 = they are its own.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, job: typing.SupportsIndex, tier: typing.SupportsIndex, gpus: typing.SupportsIndex, since_s: typing.SupportsFloat | typing.SupportsIndex = 0.0, partner: typing.SupportsIndex = -1) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def gpus(self) -> int:
        ...
    @property
    def job(self) -> int:
        ...
    @property
    def partner(self) -> int:
        ...
    @property
    def since_s(self) -> float:
        ...
    @property
    def tier(self) -> int:
        ...
class Job:
    """
    A live job as a scheduler may see it.
    
    Parameters
    ----------
    id : int
    options : list of Option
        The ways to run it.
    user, group : str
        For quotas.
    submit_s : float
    weight : float
        What a second of it is worth, relative to the other jobs.
    memory_gb : float
        Per GPU.
    steps_done, attained_s, attained_gpu_s : float
        What it has had so far.
    target_loss, budget_steps : float
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
    ahead_steps, ahead_loss : array_like, shape (k,)
        Expected loss at steps from now on, for the objective ``quality``.
    sm_activity : float
        Share of the multiprocessors busy when alone, for sharing.
    kind : str
        As measured pairs name it, for sharing.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, id: typing.SupportsIndex, options: collections.abc.Sequence[Option], *, user: str = '', submit_s: typing.SupportsFloat | typing.SupportsIndex = 0.0, weight: typing.SupportsFloat | typing.SupportsIndex = 1.0, memory_gb: typing.SupportsFloat | typing.SupportsIndex = 0.0, steps_done: typing.SupportsFloat | typing.SupportsIndex = 0.0, attained_s: typing.SupportsFloat | typing.SupportsIndex = 0.0, attained_gpu_s: typing.SupportsFloat | typing.SupportsIndex = 0.0, target_loss: typing.SupportsFloat | typing.SupportsIndex = 0.0, budget_steps: typing.SupportsFloat | typing.SupportsIndex = 0.0, remaining_steps: numpy.typing.ArrayLike | None = None, restart_s: typing.SupportsFloat | typing.SupportsIndex = 0.0, observed_step: numpy.typing.ArrayLike | None = None, observed_loss: numpy.typing.ArrayLike | None = None, forecast_at_steps: typing.SupportsFloat | typing.SupportsIndex = -1.0, group: str = '', priority: typing.SupportsIndex = 0, preemptible: bool = True, waiting_s: typing.SupportsFloat | typing.SupportsIndex = -1.0, deadline_s: typing.SupportsFloat | typing.SupportsIndex = ..., ahead_steps: numpy.typing.ArrayLike | None = None, ahead_loss: numpy.typing.ArrayLike | None = None, sm_activity: typing.SupportsFloat | typing.SupportsIndex = 1.0, kind: str = '') -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    def with_remaining(self, remaining_steps: numpy.typing.ArrayLike | None) -> Job:
        """
        The job with a new forecast, made now.
        """
    @property
    def ahead_loss(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def ahead_steps(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def attained_gpu_s(self) -> float:
        ...
    @property
    def attained_s(self) -> float:
        ...
    @property
    def budget_steps(self) -> float:
        ...
    @property
    def deadline_s(self) -> float:
        ...
    @property
    def forecast_at_steps(self) -> float:
        ...
    @property
    def group(self) -> str:
        ...
    @property
    def id(self) -> int:
        ...
    @property
    def kind(self) -> str:
        ...
    @property
    def memory_gb(self) -> float:
        ...
    @property
    def observed_loss(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def observed_step(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def options(self) -> list[Option]:
        ...
    @property
    def preemptible(self) -> bool:
        ...
    @property
    def priority(self) -> int:
        ...
    @property
    def remaining_steps(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def restart_s(self) -> float:
        ...
    @property
    def sm_activity(self) -> float:
        ...
    @property
    def steps_done(self) -> float:
        ...
    @property
    def submit_s(self) -> float:
        ...
    @property
    def target_loss(self) -> float:
        ...
    @property
    def user(self) -> str:
        ...
    @property
    def waiting_s(self) -> float:
        ...
    @property
    def weight(self) -> float:
        ...
class Snapshot:
    """
    All that a policy may know at one moment.
    
    Parameters
    ----------
    tiers : list of Tier
    jobs : list of Job
        Waiting and running.
    running : list of Allocation
    now_s : float
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, tiers: collections.abc.Sequence[Tier], jobs: collections.abc.Sequence[Job], *, running: collections.abc.Sequence[Allocation] = [], now_s: typing.SupportsFloat | typing.SupportsIndex = 0.0) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def jobs(self) -> list[Job]:
        ...
    @property
    def now_s(self) -> float:
        ...
    @property
    def running(self) -> list[Allocation]:
        ...
    @property
    def tiers(self) -> list[Tier]:
        ...
class RoundPlanRecord:
    """
    What `solve_round` found.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def bound(self) -> float:
        ...
    @property
    def chosen(self) -> numpy.typing.NDArray[numpy.int64]:
        ...
    @property
    def gap(self) -> float:
        ...
    @property
    def prices(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def value(self) -> float:
        ...
class PlanOptions:
    """
    Options of `plan`.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, *, objective: str | collections.abc.Mapping[str, float] | collections.abc.Sequence[str] = 'jct', slack: typing.SupportsFloat | typing.SupportsIndex = 0.0, round_s: typing.SupportsFloat | typing.SupportsIndex = 360.0, gap: typing.SupportsFloat | typing.SupportsIndex = 0.02, stop_probability: typing.SupportsFloat | typing.SupportsIndex = 0.98, outrun_probability: typing.SupportsFloat | typing.SupportsIndex = 0.95, power_cap_w: typing.SupportsFloat | typing.SupportsIndex = ..., user_quota: collections.abc.Mapping[str, int] | None = {}, group_quota: collections.abc.Mapping[str, int] | None = {}, in_nodes: bool = False, sharing: str = 'exclusive', min_run_s: typing.SupportsFloat | typing.SupportsIndex = 0.0, pairs: Pairs | None = None, joule_value: typing.SupportsFloat | typing.SupportsIndex = 0.0, hysteresis: typing.SupportsFloat | typing.SupportsIndex = 0.05, ageing_s: typing.SupportsFloat | typing.SupportsIndex = ..., max_wait_s: typing.SupportsFloat | typing.SupportsIndex = ..., reasons: bool = True, prices: numpy.typing.ArrayLike | None = None) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def ageing_s(self) -> float:
        ...
    @property
    def gap(self) -> float:
        ...
    @property
    def group_quota(self) -> dict:
        ...
    @property
    def hysteresis(self) -> float:
        ...
    @property
    def in_nodes(self) -> bool:
        ...
    @property
    def joule_value(self) -> float:
        ...
    @property
    def max_wait_s(self) -> float:
        ...
    @property
    def min_run_s(self) -> float:
        ...
    @property
    def objective(self) -> typing.Any:
        ...
    @property
    def outrun_probability(self) -> float:
        ...
    @property
    def pairs(self) -> typing.Any:
        ...
    @property
    def power_cap_w(self) -> float:
        ...
    @property
    def prices(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def reasons(self) -> bool:
        ...
    @property
    def round_s(self) -> float:
        ...
    @property
    def sharing(self) -> str:
        ...
    @property
    def slack(self) -> float:
        ...
    @property
    def stop_probability(self) -> float:
        ...
    @property
    def user_quota(self) -> dict:
        ...
class PlanRecord:
    """
    What `plan` decided.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def allocations(self) -> list[Allocation]:
        ...
    @property
    def bound(self) -> float:
        ...
    @property
    def gap(self) -> float:
        ...
    @property
    def prices(self) -> numpy.typing.NDArray[numpy.float64]:
        ...
    @property
    def reasons(self) -> dict:
        ...
    @property
    def stop(self) -> list[int]:
        ...
    @property
    def value(self) -> float:
        ...
class PlanLimits:
    """
    What a plan must keep to.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, *, power_cap_w: typing.SupportsFloat | typing.SupportsIndex = ..., user_quota: collections.abc.Mapping[str, int] | None = {}, group_quota: collections.abc.Mapping[str, int] | None = {}, in_nodes: bool = False, sharing: str = 'exclusive', min_run_s: typing.SupportsFloat | typing.SupportsIndex = 0.0) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def group_quota(self) -> dict:
        ...
    @property
    def in_nodes(self) -> bool:
        ...
    @property
    def min_run_s(self) -> float:
        ...
    @property
    def power_cap_w(self) -> float:
        ...
    @property
    def sharing(self) -> str:
        ...
    @property
    def user_quota(self) -> dict:
        ...
class PlacementOptions:
    """
    Options of `options_of`.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, *, alone: Profile = ..., batch: typing.SupportsFloat | typing.SupportsIndex = 0.0, max_gpus: typing.SupportsIndex = 1048576, utilization: typing.SupportsFloat | typing.SupportsIndex = 1.0, sharing: str = 'exclusive', partner: Profile | None = None, pairs: Pairs | None = None) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def alone(self) -> Profile:
        ...
    @property
    def batch(self) -> float:
        ...
    @property
    def max_gpus(self) -> int:
        ...
    @property
    def pairs(self) -> typing.Any:
        ...
    @property
    def partner(self) -> Profile | None:
        ...
    @property
    def sharing(self) -> str:
        ...
    @property
    def utilization(self) -> float:
        ...
class RunLimits:
    """
    What one run must keep to.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __init__(self, *, max_hours: typing.SupportsFloat | typing.SupportsIndex = ..., max_watts: typing.SupportsFloat | typing.SupportsIndex = ..., max_kwh: typing.SupportsFloat | typing.SupportsIndex = ..., max_cost: typing.SupportsFloat | typing.SupportsIndex = ..., confidence: typing.SupportsFloat | typing.SupportsIndex = 0.9) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def confidence(self) -> float:
        ...
    @property
    def max_cost(self) -> float:
        ...
    @property
    def max_hours(self) -> float:
        ...
    @property
    def max_kwh(self) -> float:
        ...
    @property
    def max_watts(self) -> float:
        ...
class AcceleratorChoiceRecord:
    """
    One option judged.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple[str, ...]]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> dict:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: dict) -> None:
        ...
    @property
    def cost(self) -> float:
        ...
    @property
    def good(self) -> bool:
        ...
    @property
    def hours(self) -> float:
        ...
    @property
    def hours_high(self) -> float:
        ...
    @property
    def hours_low(self) -> float:
        ...
    @property
    def kwh(self) -> float:
        ...
    @property
    def option(self) -> Option:
        ...
    @property
    def pareto(self) -> bool:
        ...
    @property
    def probability(self) -> float:
        ...
    @property
    def reason(self) -> str:
        ...
    @property
    def watts(self) -> float:
        ...
class PolicyInfo:
    """
    A policy that simulate() knows by name.
    """
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> str:
        ...
    def __hash__(self) -> int:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: str) -> None:
        ...
    @property
    def description(self) -> str:
        ...
    @property
    def name(self) -> str:
        ...
    @property
    def round_s(self) -> float | None:
        ...
    @property
    def sees(self) -> str:
        ...
    @property
    def session_s(self) -> float | None:
        ...
    @property
    def source(self) -> str:
        ...
    @property
    def stops_at_target(self) -> bool:
        ...
class PairSpeeds:
    """
    Measured speeds of two jobs on the same GPUs of a tier, each as a share of its own speed alone.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __init__(self, first: str, second: str, tier: typing.SupportsInt | typing.SupportsIndex, first_speed: typing.SupportsFloat | typing.SupportsIndex, second_speed: typing.SupportsFloat | typing.SupportsIndex) -> None:
        ...
    def __reduce__(self) -> tuple[type, tuple[str, str, int, float, float]]:
        ...
    def __repr__(self) -> str:
        ...
    @property
    def first(self) -> str:
        ...
    @property
    def first_speed(self) -> float:
        ...
    @property
    def second(self) -> str:
        ...
    @property
    def second_speed(self) -> float:
        ...
    @property
    def tier(self) -> int:
        ...
class WorkloadRecord:
    def curves(self) -> list:
        """
        Arguments of a Trace for each hidden curve.
        """
    def jobs(self) -> dict:
        """
        Columns of the jobs.
        """
    def write_jobs(self, path: bytes) -> None:
        ...
    @property
    def job_count(self) -> int:
        ...
    @property
    def lower_bound_jct_s(self) -> float:
        ...
    @property
    def name(self) -> str:
        ...
    @property
    def pairs(self) -> list[PairSpeeds]:
        ...
    @property
    def tiers(self) -> list[Tier]:
        ...
class SimulationOptions:
    in_nodes: bool
    sharing: str
    spans: bool
    stop_at_target: bool | None
    def __init__(self) -> None:
        ...
    @property
    def carbon_g_per_kwh(self) -> list[float]:
        ...
    @carbon_g_per_kwh.setter
    def carbon_g_per_kwh(self, arg1: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex] | typing.SupportsFloat | typing.SupportsIndex | None) -> None:
        ...
    @property
    def failures(self) -> dict[str, float]:
        ...
    @failures.setter
    def failures(self, arg1: collections.abc.Mapping[str, typing.SupportsFloat | typing.SupportsIndex] | None) -> None:
        ...
    @property
    def forecast_sigma(self) -> float | None:
        ...
    @forecast_sigma.setter
    def forecast_sigma(self, arg0: typing.SupportsFloat | typing.SupportsIndex | None) -> None:
        ...
    @property
    def restart_s(self) -> float:
        ...
    @restart_s.setter
    def restart_s(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None:
        ...
    @property
    def round_s(self) -> float | None:
        ...
    @round_s.setter
    def round_s(self, arg0: typing.SupportsFloat | typing.SupportsIndex | None) -> None:
        ...
    @property
    def seed(self) -> int:
        ...
    @seed.setter
    def seed(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    @property
    def session_s(self) -> float | None:
        ...
    @session_s.setter
    def session_s(self, arg0: typing.SupportsFloat | typing.SupportsIndex | None) -> None:
        ...
    @property
    def sleep(self) -> dict[str, float]:
        ...
    @sleep.setter
    def sleep(self, arg1: collections.abc.Mapping[str, typing.SupportsFloat | typing.SupportsIndex] | None) -> None:
        ...
    @property
    def user_gpus(self) -> int | None:
        ...
    @user_gpus.setter
    def user_gpus(self, arg0: typing.SupportsInt | typing.SupportsIndex | None) -> None:
        ...
class SimulationRecord:
    @property
    def carbon_kg(self) -> float:
        ...
    @property
    def energy_kwh(self) -> float:
        ...
    @property
    def events(self) -> int:
        ...
    @property
    def failures(self) -> int:
        ...
    @property
    def gpu_seconds(self) -> float:
        ...
    @property
    def jobs(self) -> dict:
        ...
    @property
    def lost_gpu_seconds(self) -> float:
        ...
    @property
    def lower_bound_jct_s(self) -> float:
        ...
    @property
    def makespan_s(self) -> float:
        ...
    @property
    def mean_jct_s(self) -> float:
        ...
    @property
    def mean_wait_per_user_s(self) -> float:
        ...
    @property
    def mean_wait_s(self) -> float:
        ...
    @property
    def median_jct_s(self) -> float:
        ...
    @property
    def p95_jct_s(self) -> float:
        ...
    @property
    def policy(self) -> str:
        ...
    @property
    def preemptions(self) -> int:
        ...
    @property
    def share_in_time(self) -> float:
        ...
    @property
    def share_unfair(self) -> float:
        ...
    @property
    def spans(self) -> dict:
        ...
    @property
    def tier_accounts(self) -> dict:
        ...
    @property
    def tiers(self) -> list[str]:
        ...
    @property
    def timeline(self) -> dict:
        ...
    @property
    def total_wait_s(self) -> float:
        ...
    @property
    def user_accounts(self) -> dict:
        ...
    @property
    def utilization(self) -> float:
        ...
    @property
    def workload(self) -> str:
        ...
    @property
    def worst_ftf(self) -> float:
        ...
class ForecastMemo:
    def __init__(self) -> None:
        ...
class EnvironmentBatch:
    def __init__(self, workloads: collections.abc.Sequence[WorkloadRecord], count: typing.SupportsInt | typing.SupportsIndex, simulation: SimulationOptions, slots: typing.SupportsInt | typing.SupportsIndex, running: typing.SupportsInt | typing.SupportsIndex, energy_weight: typing.SupportsFloat | typing.SupportsIndex, weights_for_s: typing.SupportsFloat | typing.SupportsIndex) -> None:
        ...
    def reset(self, seed: typing.SupportsInt | typing.SupportsIndex, first: typing.SupportsInt | typing.SupportsIndex, observation: numpy.typing.NDArray[numpy.float32], mask: numpy.typing.NDArray[numpy.uint8]) -> None:
        ...
    def simulation(self, environment: typing.SupportsInt | typing.SupportsIndex) -> SimulationRecord:
        ...
    def step(self, actions: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], observation: numpy.typing.NDArray[numpy.float32], reward: numpy.typing.NDArray[numpy.float64], terminated: numpy.typing.NDArray[numpy.uint8], mask: numpy.typing.NDArray[numpy.uint8]) -> None:
        ...
    def weigh(self, weights: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], observation: numpy.typing.NDArray[numpy.float32], reward: numpy.typing.NDArray[numpy.float64], terminated: numpy.typing.NDArray[numpy.uint8], mask: numpy.typing.NDArray[numpy.uint8]) -> None:
        ...
    @property
    def actions(self) -> int:
        ...
    @property
    def observation_size(self) -> int:
        ...
def available_threads() -> int:
    """
    Number of threads that threads=0 means here.
    """
def best_isa() -> str:
    """
    Instruction set that the batch kernels use here.
    """
def catalogue() -> list[Gpu]:
    """
    Every GPU of the catalogue, in its order.
    """
def choose_accelerator(job: Job, tiers: collections.abc.Sequence[Tier], limits: RunLimits, prefer: str) -> list[AcceleratorChoiceRecord]:
    ...
def clean(trace: TraceRecord, *, max_points: typing.SupportsInt | typing.SupportsIndex, winsorise_sigmas: typing.SupportsFloat | typing.SupportsIndex) -> CleanedRecord:
    """
    The cleaned trace and what was done to it.
    """
def evaluate_columns(family: str, params: collections.abc.Sequence[numpy.typing.ArrayLike], steps: numpy.typing.ArrayLike, threads: typing.SupportsInt | typing.SupportsIndex, out: typing.Any) -> numpy.typing.NDArray[numpy.float64]:
    ...
def fit(step: numpy.typing.ArrayLike, loss: numpy.typing.ArrayLike, weight: numpy.typing.ArrayLike | None, family: str, robust: str, lowest_floor: typing.SupportsFloat | typing.SupportsIndex, solver: str, starts: typing.SupportsInt | typing.SupportsIndex, from_step: typing.SupportsFloat | typing.SupportsIndex) -> FitRecord:
    ...
def fit_batch(steps: collections.abc.Sequence[numpy.typing.ArrayLike], losses: collections.abc.Sequence[numpy.typing.ArrayLike], family: str, robust: str, lowest_floor: typing.SupportsFloat | typing.SupportsIndex, from_step: typing.SupportsFloat | typing.SupportsIndex, threads: typing.SupportsInt | typing.SupportsIndex) -> list[FitRecord]:
    ...
def fit_rows(step: numpy.typing.ArrayLike, loss: numpy.typing.ArrayLike, family: str, lowest_floor: typing.SupportsFloat | typing.SupportsIndex, from_step: typing.SupportsFloat | typing.SupportsIndex, threads: typing.SupportsInt | typing.SupportsIndex) -> FitBatchRecord:
    ...
def fit_scaling(gpus: numpy.typing.ArrayLike, seconds: numpy.typing.ArrayLike, *, nodes: numpy.typing.ArrayLike | None = None, batch_per_gpu: numpy.typing.ArrayLike | None = None) -> Scaling:
    """
    Fit how step time falls with GPUs and nodes.
    
    Least squares in relative error by Ceres, every term at least 0.
    
    Parameters
    ----------
    gpus : array_like of int, shape (n,)
        Of each measured gang.
    seconds : array_like of float, shape (n,)
        Its time per step.
    nodes : array_like of int, optional
        1 where it is not given.
    batch_per_gpu : array_like of float, optional
        Global batch / gpus where that changes; 1 where it is not given.
    
    Returns
    -------
    Scaling
    
    Raises
    ------
    InputError
        Naming the measurement: a count below 1, a time not above 0, more nodes than GPUs.
    """
def fit_schedule_law(traces: collections.abc.Sequence[TraceRecord], kind: str) -> ScheduleLawRecord:
    ...
def forecast(*, step: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], loss: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], lr: typing.Annotated[numpy.typing.ArrayLike, numpy.float64] | None, at: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], schedule: ScheduleRecord | None, past: PastRunsRecord | None, levels: typing.Annotated[numpy.typing.ArrayLike, numpy.float64] | None, direction: str, constants: ForecastConstants | None) -> ForecastRecord:
    ...
def forecast_batch(*, step: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], loss: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], at: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], threads: typing.SupportsInt | typing.SupportsIndex, levels: typing.Annotated[numpy.typing.ArrayLike, numpy.float64] | None, direction: str, constants: ForecastConstants | None) -> ForecastBatchRecord:
    ...
def forecast_nodes(step: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], loss: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], at: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], constants: ForecastConstants) -> typing.Any:
    ...
def generate_workload(path: bytes, users: typing.SupportsInt | typing.SupportsIndex, seed: typing.SupportsInt | typing.SupportsIndex) -> WorkloadRecord:
    ...
def gittins_index(samples: numpy.typing.ArrayLike) -> float:
    ...
def learn_pairs(measured: collections.abc.Sequence[KindPair], alone: collections.abc.Sequence[JobKind] = []) -> Pairs:
    """
    Complete a table of measured pairs.
    
    For each GPU and way of sharing with measured pairs, the other pairs of the kinds in `alone` are
    predicted from kinds of the same model or with features alike, by a Gaussian process.
    
    Parameters
    ----------
    measured : list of KindPair
    alone : list of JobKind
        Every kind that may be predicted, measured or not.
    
    Returns
    -------
    Pairs
    
    Raises
    ------
    InputError
        A slowdown not above 0, one pair with two results, features that do not match.
    """
def learn_widths(teachers: collections.abc.Sequence, shapes: collections.abc.Sequence, *, constants: ForecastConstants | None, threads: typing.SupportsInt | typing.SupportsIndex) -> WidthsRecord:
    ...
def learned_table() -> str:
    ...
def make_workload(tiers: collections.abc.Sequence[Tier], jobs: dict, curves: list, pairs: collections.abc.Sequence[PairSpeeds], name: str) -> WorkloadRecord:
    ...
def options_of(tiers: collections.abc.Sequence[Tier], scaling: collections.abc.Sequence[Scaling | None], options: PlacementOptions) -> list[Option]:
    ...
def plan(snapshot: Snapshot, options: PlanOptions) -> PlanRecord:
    ...
def policies() -> list[PolicyInfo]:
    ...
def reach_batch(traces: collections.abc.Sequence, targets: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], budgets: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], *, schedule: ScheduleRecord | None, past: PastRunsRecord | None, direction: str, constants: ForecastConstants | None, threads: typing.SupportsInt | typing.SupportsIndex) -> list[ReachRecord]:
    ...
def read_constants(text: str) -> ForecastConstants:
    ...
def read_long_csv(path: bytes, metric: str) -> list[TraceRecord]:
    """
    Every curve of a long CSV.
    """
def read_pairs(file: os.PathLike | str | bytes) -> list[KindPair]:
    """
    Read measured pairs of jobs on the same GPUs.
    
    Parameters
    ----------
    file : path
        CSV ``gpu,job_a,job_b,slowdown_a,slowdown_b``, plain or gzip, perhaps with ``sharing``.
    
    Returns
    -------
    list of KindPair
    
    Raises
    ------
    IoError
        Naming file and line.
    """
def read_workload(path: bytes) -> WorkloadRecord:
    ...
def shared_speeds(first: Profile, second: Profile, sharing: str, gpu: str, gpu_gb: typing.SupportsFloat | typing.SupportsIndex, pairs: Pairs | None) -> SharedSpeedsRecord:
    """
    Speeds of a pair.
    """
def simulate(workload: WorkloadRecord, policy: str | collections.abc.Callable[[Snapshot], typing.Any], options: SimulationOptions, memo: ForecastMemo | None = None, stream: collections.abc.Callable[[int, int, int, float, float, int], typing.Any] | None = None, progress: collections.abc.Callable[[int, int], typing.Any] | None = None) -> SimulationRecord:
    ...
def solve_round(job: numpy.typing.ArrayLike, tier: numpy.typing.ArrayLike, gpus: numpy.typing.ArrayLike, value: numpy.typing.ArrayLike, capacity: numpy.typing.ArrayLike, *, gap: typing.SupportsFloat | typing.SupportsIndex, prices: numpy.typing.ArrayLike | None, threads: typing.SupportsInt | typing.SupportsIndex, watts: numpy.typing.ArrayLike | None, power_cap_w: typing.SupportsFloat | typing.SupportsIndex, user: numpy.typing.ArrayLike | None, user_quota: numpy.typing.ArrayLike | None, group: numpy.typing.ArrayLike | None, group_quota: numpy.typing.ArrayLike | None, node_gpus: numpy.typing.ArrayLike | None) -> RoundPlanRecord:
    ...
def usable(status: str) -> bool:
    """
    Whether the curve of such a fit may be used beyond its points.
    """
def validate_trace(step: numpy.typing.ArrayLike, loss: numpy.typing.ArrayLike) -> None:
    """
    Throws InputError unless the columns make a trace.
    """
def violations(snapshot: Snapshot, plan: typing.Any, limits: PlanLimits) -> list[str]:
    ...
def workload_from_trace(path: bytes, gpus: typing.SupportsInt | typing.SupportsIndex, gpus_per_node: typing.SupportsInt | typing.SupportsIndex | None) -> WorkloadRecord:
    ...
FAMILIES: dict = {'pow2': ('scale', 'rate'), 'pow3': ('floor', 'scale', 'rate'), 'pow4': ('floor', 'scale', 'rate', 'shift'), 'exp3': ('floor', 'scale', 'rate'), 'weibull4': ('floor', 'scale', 'rate', 'shape'), 'mmf4': ('floor', 'scale', 'half', 'shape'), 'log2': ('floor', 'scale'), 'powexp': ('floor', 'scale', 'rate', 'decay')}
FIT_STATUSES: tuple = ('converged', 'iteration_limit', 'too_few_points', 'flat', 'not_finite', 'poor')
OBJECTIVES: tuple = ('jct', 'known_size', 'quality', 'deadline', 'fairness', 'energy', 'edp', 'cost')
OUTCOMES: tuple = ('unfinished', 'finished', 'target', 'never')
VERDICTS: tuple = ('unknown', 'reached', 'will_reach', 'never', 'diverged')
__version__: str
