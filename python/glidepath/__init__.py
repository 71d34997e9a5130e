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
    fit_many,
    fit_schedule_law,
)
from glidepath._follow import Follow, follow
from glidepath._forecast import (
    Calibration,
    Forecast,
    ForecastBatch,
    Reach,
    calibrate,
    forecast,
    forecast_batch,
    reach,
)
from glidepath._plan import (
    AcceleratorChoice,
    Allocation,
    Job,
    Option,
    Plan,
    RoundPlan,
    Scaling,
    Snapshot,
    Tier,
    catalogue,
    choose_accelerator,
    fit_scaling,
    gittins_index,
    plan,
    shared_speeds,
    solve_round,
    violations,
)
from glidepath._simulate import POLICIES, Simulation, simulate
from glidepath._trace import Cleaned, Trace, clean, read_traces
from glidepath._watch import Decision, Watch
from glidepath._workload import Workload, generate_workload, read_workload

__all__ = [
    "POLICIES",
    "AcceleratorChoice",
    "Allocation",
    "Calibration",
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
    "Option",
    "Plan",
    "Reach",
    "RoundPlan",
    "Scaling",
    "ScheduleLaw",
    "Simulation",
    "Snapshot",
    "Tier",
    "Trace",
    "Watch",
    "Workload",
    "__version__",
    "calibrate",
    "catalogue",
    "choose_accelerator",
    "clean",
    "compare",
    "evaluate_batch",
    "fit",
    "fit_batch",
    "fit_many",
    "fit_scaling",
    "fit_schedule_law",
    "follow",
    "forecast",
    "forecast_batch",
    "generate_workload",
    "gittins_index",
    "plan",
    "reach",
    "read_traces",
    "read_workload",
    "shared_speeds",
    "simulate",
    "solve_round",
    "violations",
]
