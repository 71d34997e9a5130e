# SPDX-License-Identifier: Apache-2.0
"""Forecasts training-loss curves and schedules training jobs on tiered GPUs.

Five stages, each a handful of functions: traces, fit, forecast, plan, simulate.
"""

from glidepath._core import InputError, IoError, __version__
from glidepath._fit import Fit, FitBatch, FitScore, evaluate_batch, fit, fit_batch, fit_many
from glidepath._forecast import Forecast, ForecastBatch, Reach, forecast, forecast_batch, reach
from glidepath._plan import (
    Allocation,
    Job,
    Option,
    Plan,
    RoundPlan,
    Snapshot,
    Tier,
    catalogue,
    gittins_index,
    plan,
    solve_round,
    violations,
)
from glidepath._trace import Cleaned, Trace, clean, read_traces

__all__ = [
    "Allocation",
    "Cleaned",
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
    "Snapshot",
    "Tier",
    "Trace",
    "__version__",
    "catalogue",
    "clean",
    "evaluate_batch",
    "fit",
    "fit_batch",
    "fit_many",
    "forecast",
    "forecast_batch",
    "gittins_index",
    "plan",
    "reach",
    "read_traces",
    "solve_round",
    "violations",
]
