# SPDX-License-Identifier: Apache-2.0
"""Forecasts training-loss curves and schedules training jobs on tiered GPUs.

Five stages, each a handful of functions: traces, fit, forecast, plan, simulate.
"""

from glidepath._core import InputError, IoError, __version__
from glidepath._trace import Cleaned, Trace, clean, read_traces

__all__ = [
    "Cleaned",
    "InputError",
    "IoError",
    "Trace",
    "__version__",
    "clean",
    "read_traces",
]
