# SPDX-License-Identifier: Apache-2.0
"""Forecasts training-loss curves and schedules training jobs on tiered GPUs.

Five stages, each a handful of functions: traces, fit, forecast, plan, simulate.
"""

from glidepath import bench
from glidepath._compare import Comparison, compare
from glidepath._core import (
    Allocation,
    FitScore,
    Gpu,
    InputError,
    IoError,
    Job,
    JobKind,
    KindPair,
    Option,
    Pairs,
    PairSpeeds,
    PolicyInfo,
    Profile,
    Scaling,
    Snapshot,
    StepTime,
    Tier,
    __version__,
    catalogue,
    fit_scaling,
    learn_pairs,
    read_pairs,
)
from glidepath._fit import (
    Fit,
    FitBatch,
    ScheduleLaw,
    evaluate_batch,
    fit,
    fit_batch,
    fit_schedule_law,
    usable,
)
from glidepath._follow import Follow
from glidepath._forecast import (
    Forecast,
    ForecastBatch,
    Reach,
    forecast,
    forecast_batch,
    reach,
    reach_batch,
)
from glidepath._hardware import Metrics
from glidepath._past_runs import PastRuns, Widths
from glidepath._plan import (
    AcceleratorChoice,
    Plan,
    RoundPlan,
    SharedSpeeds,
    choose_accelerator,
    gittins_index,
    options_of,
    plan,
    shared_speeds,
    solve_round,
    violations,
)
from glidepath._read import read_metrics, read_profile
from glidepath._schedule import Schedule
from glidepath._simulate import POLICIES, Simulation, policies, simulate
from glidepath._starts import StartTimes, start_times
from glidepath._step_profile import StepProfile
from glidepath._trace import Cleaned, Trace, clean
from glidepath._watch import VERDICTS, Decision, Watch
from glidepath._workload import Workload, generate_workload, read_workload
from glidepath.readers._open import MetricInfo, metrics_of, read_traces

__all__ = [
    "POLICIES",
    "VERDICTS",
    "AcceleratorChoice",
    "Allocation",
    "Cleaned",
    "Comparison",
    "Decision",
    "Fit",
    "FitBatch",
    "FitScore",
    "Follow",
    "Forecast",
    "ForecastBatch",
    "Gpu",
    "InputError",
    "IoError",
    "Job",
    "JobKind",
    "KindPair",
    "MetricInfo",
    "Metrics",
    "Option",
    "PairSpeeds",
    "Pairs",
    "PastRuns",
    "Plan",
    "PolicyInfo",
    "Profile",
    "Reach",
    "RoundPlan",
    "Scaling",
    "Schedule",
    "ScheduleLaw",
    "SharedSpeeds",
    "Simulation",
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
    "metrics_of",
    "options_of",
    "plan",
    "policies",
    "reach",
    "reach_batch",
    "read_metrics",
    "read_pairs",
    "read_profile",
    "read_traces",
    "read_workload",
    "shared_speeds",
    "simulate",
    "solve_round",
    "start_times",
    "usable",
    "violations",
]
