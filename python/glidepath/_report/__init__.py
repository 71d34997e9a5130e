# SPDX-License-Identifier: Apache-2.0
"""Interactive pages: `pages` says what is on each, `figures` draws, `page` writes the HTML."""

from glidepath._report.accuracy import write_accuracy
from glidepath._report.pages import write_runs, write_simulations, write_study

__all__ = ["write_accuracy", "write_runs", "write_simulations", "write_study"]
