# SPDX-License-Identifier: Apache-2.0
"""Forecasts training-loss curves and schedules training jobs on tiered GPUs.

Five stages, each a handful of functions: traces, fit, forecast, plan, simulate.
"""

from glidepath import bench
from glidepath._accelerator import (
    AcceleratorChoice,
    best_batch,
    catalogue,
    choose_accelerator,
    fit_scaling,
    options_of,
)
from glidepath._clean import Cleaned, clean
from glidepath._compare import Comparison, compare
from glidepath._core import (
    Allocation,
    BatchChoice,
    BatchLimits,
    FitScore,
    FreeNode,
    Gpu,
    InputError,
    IoError,
    Job,
    JobKind,
    JobSpan,
    KindPair,
    Option,
    Pairs,
    PairSpeeds,
    Partition,
    Pod,
    PodPlace,
    PodPolicyInfo,
    PolicyInfo,
    Profile,
    Scaling,
    Slice,
    Snapshot,
    StepTime,
    Tier,
    __version__,
)
from glidepath._fit import Fit, fit, usable
from glidepath._fit_batch import FitBatch, evaluate_batch, fit_batch
from glidepath._follow import Follow
from glidepath._forecast import Forecast, ForecastBatch, forecast, forecast_batch
from glidepath._hardware import Metrics
from glidepath._learned import learned_values, read_learned_values, write_learned_values
from glidepath._past_runs import PastRuns, Widths
from glidepath._plan import Plan, gittins_index, plan, violations
from glidepath._pods import place_pods, pod_policies, pod_violations
from glidepath._reach import BestSoFar, Reach, best_so_far, reach, reach_batch
from glidepath._read import read_metrics, read_profile
from glidepath._round import RoundPlan, solve_round
from glidepath._schedule import Schedule
from glidepath._schedule_law import ScheduleLaw, fit_schedule_law
from glidepath._sharing import (
    SharedSpeeds,
    best_partition,
    learn_pairs,
    mix_speeds,
    partitions,
    read_pairs,
    shared_speeds,
    slice_speeds,
    slices,
)
from glidepath._simulate import POLICIES, Simulation, policies, simulate
from glidepath._starts import StartTimes, start_times
from glidepath._step_profile import StepProfile
from glidepath._trace import Trace
from glidepath._watch import VERDICTS, Decision, Watch
from glidepath._workload import Workload, generate_workload, read_workload
from glidepath.readers._open import MetricInfo, metrics_of, read_traces

__all__ = [
    "POLICIES",
    "VERDICTS",
    "AcceleratorChoice",
    "Allocation",
    "BatchChoice",
    "BatchLimits",
    "BestSoFar",
    "Cleaned",
    "Comparison",
    "Decision",
    "Fit",
    "FitBatch",
    "FitScore",
    "Follow",
    "Forecast",
    "ForecastBatch",
    "FreeNode",
    "Gpu",
    "InputError",
    "IoError",
    "Job",
    "JobKind",
    "JobSpan",
    "KindPair",
    "MetricInfo",
    "Metrics",
    "Option",
    "PairSpeeds",
    "Pairs",
    "Partition",
    "PastRuns",
    "Plan",
    "Pod",
    "PodPlace",
    "PodPolicyInfo",
    "PolicyInfo",
    "Profile",
    "Reach",
    "RoundPlan",
    "Scaling",
    "Schedule",
    "ScheduleLaw",
    "SharedSpeeds",
    "Simulation",
    "Slice",
    "Snapshot",
    "StartTimes",
    "StepProfile",
    "StepTime",
    "Tier",
    "Trace",
    "Watch",
    "Widths",
    "Workload",
    "__version__",
    "bench",
    "best_batch",
    "best_partition",
    "best_so_far",
    "catalogue",
    "choose_accelerator",
    "clean",
    "compare",
    "evaluate_batch",
    "fit",
    "fit_batch",
    "fit_scaling",
    "fit_schedule_law",
    "forecast",
    "forecast_batch",
    "generate_workload",
    "gittins_index",
    "learn_pairs",
    "learned_values",
    "metrics_of",
    "mix_speeds",
    "options_of",
    "partitions",
    "place_pods",
    "plan",
    "pod_policies",
    "pod_violations",
    "policies",
    "reach",
    "reach_batch",
    "read_learned_values",
    "read_metrics",
    "read_pairs",
    "read_profile",
    "read_traces",
    "read_workload",
    "shared_speeds",
    "simulate",
    "slice_speeds",
    "slices",
    "solve_round",
    "start_times",
    "usable",
    "violations",
    "write_learned_values",
]
