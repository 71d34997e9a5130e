# SPDX-License-Identifier: Apache-2.0
"""Forecasts training-loss curves and schedules training jobs on tiered GPUs.

Five stages, each a handful of functions: traces, fit, forecast, plan, simulate.
"""

from glidepath._core import InputError, IoError, __version__
from glidepath._fit import Fit, FitBatch, FitScore, evaluate_batch, fit, fit_batch, fit_many
from glidepath._forecast import Forecast, ForecastBatch, Reach, forecast, forecast_batch, reach
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
from glidepath._simulate import (
    POLICIES,
    Comparison,
    Simulation,
    Workload,
    compare,
    generate_workload,
    read_workload,
    simulate,
)
from glidepath._trace import Cleaned, Trace, clean, read_traces

__all__ = [
    "POLICIES",
    "AcceleratorChoice",
    "Allocation",
    "Cleaned",
    "Comparison",
    "Fit",
    "FitBatch",
    "FitScore",
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
    "Simulation",
    "Snapshot",
    "Tier",
    "Trace",
    "Workload",
    "__version__",
    "catalogue",
    "choose_accelerator",
    "clean",
    "compare",
    "evaluate_batch",
    "fit",
    "fit_batch",
    "fit_many",
    "fit_scaling",
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
