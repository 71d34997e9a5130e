# SPDX-License-Identifier: Apache-2.0
"""Interactive pages, a module each; `figures` draws, `page` writes the HTML."""

from glidepath._report.accuracy import write_accuracy
from glidepath._report.runs import write_runs
from glidepath._report.simulations import write_simulations
from glidepath._report.study import write_study

__all__ = ["write_accuracy", "write_runs", "write_simulations", "write_study"]
