# SPDX-License-Identifier: Apache-2.0
"""Forecasts training-loss curves and schedules training jobs on tiered GPUs.

Five stages, each a handful of functions: traces, fit, forecast, plan, simulate.
"""

from glidepath._core import InputError, IoError, __version__

__all__ = [
    "InputError",
    "IoError",
    "__version__",
]
