# SPDX-License-Identifier: Apache-2.0
"""Forecasts training-loss curves and schedules training jobs on tiered GPUs.

Five stages, each a handful of functions: traces, fit, forecast, plan, simulate.
"""

from glidepath._compare import Comparison, compare
from glidepath._core import InputError, IoError, __version__
from glidepath._fit import (
    Fit,
    FitBatch,
    FitScore,
    ScheduleLaw,
    evaluate_batch,
    fit,
    fit_batch,
    fit_schedule_law,
)
from glidepath._follow import Follow, follow
from glidepath._forecast import (
    Forecast,
    ForecastBatch,
    Reach,
    forecast,
    forecast_batch,
    reach,
    reach_batch,
)
from glidepath._past_runs import PastRuns, Widths
from glidepath._plan import (
    AcceleratorChoice,
    Allocation,
    Job,
    JobKind,
    KindPair,
    Option,
    Pairs,
    Plan,
    Profile,
    RoundPlan,
    Scaling,
    Snapshot,
    Tier,
    catalogue,
    choose_accelerator,
    fit_scaling,
    gittins_index,
    learn_pairs,
    options_of,
    plan,
    read_pairs,
    shared_speeds,
    solve_round,
    violations,
)
from glidepath._schedule import Schedule
from glidepath._simulate import POLICIES, Simulation, simulate
from glidepath._trace import Cleaned, Trace, clean
from glidepath._watch import VERDICTS, Decision, Watch
from glidepath._workload import Workload, generate_workload, read_workload
from glidepath.readers._open import read_traces

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
    "InputError",
    "IoError",
    "Job",
    "JobKind",
    "KindPair",
    "Option",
    "Pairs",
    "PastRuns",
    "Plan",
    "Profile",
    "Reach",
    "RoundPlan",
    "Scaling",
    "Schedule",
    "ScheduleLaw",
    "Simulation",
    "Snapshot",
    "Tier",
    "Trace",
    "Watch",
    "Widths",
    "Workload",
    "__version__",
    "catalogue",
    "choose_accelerator",
    "clean",
    "compare",
    "evaluate_batch",
    "fit",
    "fit_batch",
    "fit_scaling",
    "fit_schedule_law",
    "follow",
    "forecast",
    "forecast_batch",
    "generate_workload",
    "gittins_index",
    "learn_pairs",
    "options_of",
    "plan",
    "reach",
    "reach_batch",
    "read_pairs",
    "read_traces",
    "read_workload",
    "shared_speeds",
    "simulate",
    "solve_round",
    "violations",
]
