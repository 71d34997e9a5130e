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
__all__: list[str] = ['Allocation', 'CleanedRecord', 'EnvironmentBatch', 'FAMILIES', 'FIT_STATUSES', 'FitBatchRecord', 'FitRecord', 'FitScore', 'ForecastConstants', 'ForecastMemo', 'InputError', 'IoError', 'Job', 'JobKind', 'KindPair', 'OUTCOMES', 'Option', 'POLICIES', 'Pairs', 'Profile', 'Scaling', 'ScheduleLawRecord', 'Snapshot', 'Tier', 'TraceRecord', 'Watch', 'WorkloadRecord', 'available_threads', 'best_isa', 'calibrate', 'calibrate_online', 'catalogue', 'choose_accelerator', 'clean', 'constants_named', 'evaluate_columns', 'fit', 'fit_batch', 'fit_rows', 'fit_scaling', 'fit_schedule_law', 'forecast', 'forecast_batch', 'forecast_nodes', 'forecast_prob_below', 'forecast_quantile', 'generate_workload', 'gittins_index', 'learn_pairs', 'lower_bound_jct_s', 'make_workload', 'options_of', 'plan', 'reach', 'read_constants', 'read_long_csv', 'read_pairs', 'read_workload', 'shared_speeds', 'simulate', 'solve_round', 'usable', 'validate_trace', 'violations', 'workload_from_trace', 'write_jobs']
class TraceRecord:
    """
    A trace as the library has it; an empty column is absent.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple] = ('step', 'loss', 'lr', 'wall_seconds', 'name', 'metric', 'direction', 'planned_steps')
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
class FitScore:
    """
    How one family did in the choice by AICc.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    __match_args__: typing.ClassVar[tuple] = ('family', 'aicc', 'status')
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
    __match_args__: typing.ClassVar[tuple] = ('kind', 'status', 'floor', 'scale', 'rate', 'drop', 'memory', 'speed', 'shape', 'power', 'warmup', 'sigma', 'rss', 'points')
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
class ForecastConstants:
    pass
class Watch:
    def __init__(self, arg0: typing.SupportsFloat | typing.SupportsIndex | None, arg1: typing.SupportsFloat | typing.SupportsIndex | None, arg2: str, arg3: typing.Any, arg4: typing.SupportsFloat | typing.SupportsIndex, arg5: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], arg6: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex]) -> None:
        ...
    def add(self, arg0: typing.SupportsFloat | typing.SupportsIndex, arg1: typing.SupportsFloat | typing.SupportsIndex, arg2: typing.SupportsFloat | typing.SupportsIndex) -> None:
        ...
    def decision(self) -> tuple[str, float, tuple[float, float, float], str]:
        ...
    def restore(self, arg0: dict) -> None:
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
    @staticmethod
    def of(name: str, gpu: str, nodes: typing.SupportsInt | typing.SupportsIndex, gpus_per_node: typing.SupportsInt | typing.SupportsIndex = 1) -> Tier:
        """
        Tier of a GPU of the catalogue, with its memory and power.
        """
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> tuple[str, str, int, int, float, float, float, float, float]:
        ...
    def __init__(self, name: str, nodes: typing.SupportsInt | typing.SupportsIndex, gpus_per_node: typing.SupportsInt | typing.SupportsIndex = 1, *, gpu: str = '', memory_gb: typing.SupportsFloat | typing.SupportsIndex = 0.0, host_memory_gb: typing.SupportsFloat | typing.SupportsIndex = 0.0, idle_watts: typing.SupportsFloat | typing.SupportsIndex = 0.0, busy_watts: typing.SupportsFloat | typing.SupportsIndex = 0.0, price_per_gpu_hour: typing.SupportsFloat | typing.SupportsIndex = 0.0) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: tuple) -> None:
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
class Scaling:
    """
    Step time of a gang as a function of GPUs and nodes.
    
    Made by `fit_scaling`. A sum of non-negative terms (compute, communication inside a node and between
    nodes, other) times a correction that follows the measurements nearby.
    """
    def __getstate__(self) -> tuple[list[tuple[int, int, float, float]]]:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: tuple) -> None:
        ...
    def seconds(self, gpus: typing.SupportsInt | typing.SupportsIndex, nodes: typing.SupportsInt | typing.SupportsIndex = 1, batch_per_gpu: typing.SupportsFloat | typing.SupportsIndex = 1.0) -> float:
        """
        Seconds per step.
        """
    @property
    def terms(self) -> dict:
        ...
    @property
    def typical_error(self) -> float:
        """
        Median relative error on the measurements that were fitted.
        """
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
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> tuple[float, float, str]:
        ...
    def __init__(self, sm_activity: typing.SupportsFloat | typing.SupportsIndex = 1.0, memory_gb: typing.SupportsFloat | typing.SupportsIndex = 0.0, kind: str = '') -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: tuple) -> None:
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
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> tuple[str, str, str, str, float, float, bool]:
        ...
    def __init__(self, gpu: str, first: str, second: str, first_slowdown: typing.SupportsFloat | typing.SupportsIndex, second_slowdown: typing.SupportsFloat | typing.SupportsIndex, *, sharing: str = 'naive') -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: tuple) -> None:
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
        """
        Not measured.
        """
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
    def __init__(self, kind: str, gpu: str, model: str = '', features: typing.Any = None) -> None:
        ...
    def __repr__(self) -> str:
        ...
    @property
    def features(self) -> list[float]:
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
    Measured pairs and those learned from them. Made by `learn_pairs`.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> tuple[list[KindPair]]:
        ...
    def __len__(self) -> int:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: tuple) -> None:
        ...
    @property
    def rows(self) -> list[KindPair]:
        """
        Each pair, both ways round.
        """
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
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> tuple[int, int, float, float, str]:
        ...
    def __init__(self, tier: typing.SupportsInt | typing.SupportsIndex, gpus: typing.SupportsInt | typing.SupportsIndex, steps_per_s: typing.SupportsFloat | typing.SupportsIndex, *, utilization: typing.SupportsFloat | typing.SupportsIndex = 1.0, sharing: str = 'exclusive') -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: tuple) -> None:
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
    GPUs that a job holds, since `since_s`.
    """
    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> tuple[int, int, int, float, int]:
        ...
    def __init__(self, job: typing.SupportsInt | typing.SupportsIndex, tier: typing.SupportsInt | typing.SupportsIndex, gpus: typing.SupportsInt | typing.SupportsIndex, since_s: typing.SupportsFloat | typing.SupportsIndex = 0.0, partner: typing.SupportsInt | typing.SupportsIndex = -1) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: tuple) -> None:
        ...
    @property
    def gpus(self) -> int:
        ...
    @property
    def job(self) -> int:
        ...
    @property
    def partner(self) -> int:
        """
        Job that shares the same GPUs; -1 = they are its own.
        """
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
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> tuple:
        ...
    def __init__(self, id: typing.SupportsInt | typing.SupportsIndex, options: collections.abc.Sequence[Option], *, user: str = '', submit_s: typing.SupportsFloat | typing.SupportsIndex = 0.0, weight: typing.SupportsFloat | typing.SupportsIndex = 1.0, memory_gb: typing.SupportsFloat | typing.SupportsIndex = 0.0, steps_done: typing.SupportsFloat | typing.SupportsIndex = 0.0, attained_s: typing.SupportsFloat | typing.SupportsIndex = 0.0, attained_gpu_s: typing.SupportsFloat | typing.SupportsIndex = 0.0, target_loss: typing.SupportsFloat | typing.SupportsIndex = 0.0, budget_steps: typing.SupportsFloat | typing.SupportsIndex = 0.0, remaining_steps: typing.Any = None, restart_s: typing.SupportsFloat | typing.SupportsIndex = 0.0, observed_step: typing.Any = None, observed_loss: typing.Any = None, forecast_at_steps: typing.SupportsFloat | typing.SupportsIndex = -1.0, group: str = '', priority: typing.SupportsInt | typing.SupportsIndex = 0, preemptible: bool = True, waiting_s: typing.SupportsFloat | typing.SupportsIndex = -1.0, deadline_s: typing.SupportsFloat | typing.SupportsIndex = ..., ahead_steps: typing.Any = None, ahead_loss: typing.Any = None, sm_activity: typing.SupportsFloat | typing.SupportsIndex = 1.0, kind: str = '') -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: tuple) -> None:
        ...
    def with_remaining(self, remaining_steps: typing.Any) -> Job:
        """
        The job with a new forecast, made now.
        """
    @property
    def ahead_loss(self) -> typing.Any:
        ...
    @property
    def ahead_steps(self) -> typing.Any:
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
    def observed_loss(self) -> typing.Any:
        ...
    @property
    def observed_step(self) -> typing.Any:
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
    def remaining_steps(self) -> typing.Any:
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
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __getstate__(self) -> tuple[list[Tier], list[Job], list[Allocation], float]:
        ...
    def __init__(self, tiers: collections.abc.Sequence[Tier], jobs: collections.abc.Sequence[Job], *, running: collections.abc.Sequence[Allocation] = [], now_s: typing.SupportsFloat | typing.SupportsIndex = 0.0) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, arg0: tuple) -> None:
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
class ForecastMemo:
    def __init__(self) -> None:
        ...
class WorkloadRecord:
    def curves(self) -> list:
        """
        (name, step, loss) of each hidden curve.
        """
    def jobs(self) -> dict:
        """
        Columns of the jobs.
        """
    def pairs(self) -> list:
        """
        (first, second, tier, speed of first, of second) of each pair.
        """
    @property
    def job_count(self) -> int:
        ...
    @property
    def name(self) -> str:
        ...
    @property
    def tiers(self) -> list[Tier]:
        ...
class EnvironmentBatch:
    def __init__(self, workloads: collections.abc.Sequence[WorkloadRecord], count: typing.SupportsInt | typing.SupportsIndex, simulation: dict, slots: typing.SupportsInt | typing.SupportsIndex, running: typing.SupportsInt | typing.SupportsIndex, energy_weight: typing.SupportsFloat | typing.SupportsIndex, weights_for_s: typing.SupportsFloat | typing.SupportsIndex) -> None:
        ...
    def reset(self, seed: typing.SupportsInt | typing.SupportsIndex, first: typing.SupportsInt | typing.SupportsIndex, observation: numpy.typing.NDArray[numpy.float32], mask: numpy.typing.NDArray[numpy.uint8]) -> None:
        ...
    def simulation(self, environment: typing.SupportsInt | typing.SupportsIndex) -> dict:
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
def calibrate(arg0: list, arg1: str, arg2: dict, arg3: typing.SupportsInt | typing.SupportsIndex) -> tuple:
    ...
def calibrate_online(arg0: tuple, arg1: list, arg2: str, arg3: dict) -> tuple:
    ...
def catalogue() -> list:
    """
    Every GPU of the catalogue as a dict.
    """
def choose_accelerator(job: Job, tiers: collections.abc.Sequence[Tier], max_hours: typing.SupportsFloat | typing.SupportsIndex, max_watts: typing.SupportsFloat | typing.SupportsIndex, max_kwh: typing.SupportsFloat | typing.SupportsIndex, max_cost: typing.SupportsFloat | typing.SupportsIndex, confidence: typing.SupportsFloat | typing.SupportsIndex, prefer: str) -> list:
    """
    Options of a job against a need, best first.
    """
def clean(trace: TraceRecord, *, max_points: typing.SupportsInt | typing.SupportsIndex, winsorise_sigmas: typing.SupportsFloat | typing.SupportsIndex) -> CleanedRecord:
    """
    The cleaned trace and what was done to it.
    """
def constants_named(arg0: str) -> str:
    ...
def evaluate_columns(family: str, params: collections.abc.Sequence[numpy.typing.ArrayLike], steps: numpy.typing.ArrayLike, threads: typing.SupportsInt | typing.SupportsIndex, out: typing.Any) -> numpy.typing.NDArray[numpy.float64]:
    ...
def fit(step: numpy.typing.ArrayLike, loss: numpy.typing.ArrayLike, weight: numpy.typing.ArrayLike | None, family: str, robust: str, lowest_floor: typing.SupportsFloat | typing.SupportsIndex, solver: str, starts: typing.SupportsInt | typing.SupportsIndex) -> FitRecord:
    ...
def fit_batch(steps: collections.abc.Sequence[numpy.typing.ArrayLike], losses: collections.abc.Sequence[numpy.typing.ArrayLike], family: str, robust: str, lowest_floor: typing.SupportsFloat | typing.SupportsIndex, threads: typing.SupportsInt | typing.SupportsIndex) -> list[FitRecord]:
    ...
def fit_rows(step: numpy.typing.ArrayLike, loss: numpy.typing.ArrayLike, family: str, lowest_floor: typing.SupportsFloat | typing.SupportsIndex, threads: typing.SupportsInt | typing.SupportsIndex) -> FitBatchRecord:
    ...
def fit_scaling(gpus: typing.Any, seconds: typing.Any, *, nodes: typing.Any = None, batch_per_gpu: typing.Any = None) -> Scaling:
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
def forecast(arg0: typing.Any, arg1: typing.Any, arg2: typing.Any, arg3: dict) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], str, dict]:
    ...
def forecast_batch(arg0: typing.Any, arg1: typing.Any, arg2: typing.Any, arg3: typing.SupportsInt | typing.SupportsIndex, arg4: dict) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], list[str]]:
    ...
def forecast_nodes(arg0: typing.Any, arg1: typing.Any, arg2: typing.Any, arg3: dict) -> typing.Any:
    ...
def forecast_prob_below(arg0: typing.Any, arg1: dict, arg2: typing.SupportsFloat | typing.SupportsIndex) -> numpy.typing.NDArray[numpy.float64]:
    ...
def forecast_quantile(arg0: typing.Any, arg1: dict, arg2: typing.SupportsFloat | typing.SupportsIndex, arg3: bool) -> numpy.typing.NDArray[numpy.float64]:
    ...
def generate_workload(path: bytes, users: typing.SupportsInt | typing.SupportsIndex, seed: typing.SupportsInt | typing.SupportsIndex) -> WorkloadRecord:
    ...
def gittins_index(samples: typing.Any) -> float:
    """
    Gittins index of equally likely samples.
    """
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
def lower_bound_jct_s(workload: WorkloadRecord) -> float:
    ...
def make_workload(tiers: collections.abc.Sequence[Tier], jobs: dict, curves: list, pairs: list, name: str) -> WorkloadRecord:
    ...
def options_of(tiers: collections.abc.Sequence[Tier], scaling: collections.abc.Sequence[Scaling | None], alone: Profile, batch: typing.SupportsFloat | typing.SupportsIndex, most_gpus: typing.SupportsInt | typing.SupportsIndex, utilization: typing.SupportsFloat | typing.SupportsIndex, sharing: str, partner: Profile | None, pairs: typing.Any) -> list[Option]:
    """
    Options of a job.
    """
def plan(snapshot: Snapshot, goals: collections.abc.Sequence[tuple[str, typing.SupportsFloat | typing.SupportsIndex]], in_order: bool, prices: typing.Any, user_quota: dict, group_quota: dict, sharing: str, in_nodes: bool, pairs: typing.Any, reasons: bool, numbers: dict) -> tuple:
    """
    (allocations, stop, value, bound, gap, prices, reasons)
    """
def reach(arg0: typing.Any, arg1: typing.Any, arg2: typing.SupportsFloat | typing.SupportsIndex, arg3: typing.SupportsFloat | typing.SupportsIndex, arg4: dict) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], float, str]:
    ...
def read_constants(arg0: str) -> ForecastConstants:
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
def shared_speeds(first: Profile, second: Profile, sharing: str, gpu: str, gpu_gb: typing.SupportsFloat | typing.SupportsIndex, pairs: typing.Any) -> tuple[float, float]:
    """
    Speeds of a pair.
    """
def simulate(workload: WorkloadRecord, policy: typing.Any, options: dict) -> dict:
    ...
def solve_round(job: typing.Any, tier: typing.Any, gpus: typing.Any, value: typing.Any, capacity: typing.Any, gap: typing.SupportsFloat | typing.SupportsIndex, prices: typing.Any, threads: typing.SupportsInt | typing.SupportsIndex, watts: typing.Any, power_cap_w: typing.SupportsFloat | typing.SupportsIndex, user: typing.Any, user_quota: typing.Any, group: typing.Any, group_quota: typing.Any, node_gpus: typing.Any) -> tuple:
    """
    (chosen, value, bound, gap, prices)
    """
def usable(status: str) -> bool:
    """
    Whether a fit of that status has a curve.
    """
def validate_trace(step: numpy.typing.ArrayLike, loss: numpy.typing.ArrayLike) -> None:
    """
    Throws InputError unless the columns make a trace.
    """
def violations(snapshot: Snapshot, plan: typing.Any, user_quota: dict, group_quota: dict, sharing: str, in_nodes: bool, power_cap_w: typing.SupportsFloat | typing.SupportsIndex, min_run_s: typing.SupportsFloat | typing.SupportsIndex) -> list[str]:
    """
    What is wrong with a plan, one sentence each.
    """
def workload_from_trace(path: bytes, gpus: typing.SupportsInt | typing.SupportsIndex, gpus_per_node: typing.SupportsInt | typing.SupportsIndex | None) -> WorkloadRecord:
    ...
def write_jobs(workload: WorkloadRecord, path: bytes) -> None:
    ...
FAMILIES: dict = {'pow2': ('scale', 'rate'), 'pow3': ('floor', 'scale', 'rate'), 'pow4': ('floor', 'scale', 'rate', 'shift'), 'exp3': ('floor', 'scale', 'rate'), 'weibull4': ('floor', 'scale', 'rate', 'shape'), 'mmf4': ('floor', 'scale', 'half', 'shape'), 'log2': ('floor', 'scale'), 'powexp': ('floor', 'scale', 'rate', 'decay')}
FIT_STATUSES: tuple = ('converged', 'iteration_limit', 'too_few_points', 'flat', 'not_finite')
OUTCOMES: tuple = ('unfinished', 'finished', 'target', 'never')
POLICIES: tuple = ('fifo', 'first_fit', 'slurm_backfill', 'sjf', 'srtf', 'srsf', 'las', 'gittins', 'max_min', 'max_min_unaware', 'fifo_perf', 'isolated', 'themis', 'optimus', 'slaq', 'makespan', 'session_fifo', 'dare', 'best_value')
__version__: str
