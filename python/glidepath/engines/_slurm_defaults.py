# SPDX-License-Identifier: Apache-2.0
"""Defaults of the Slurm pilot, apart from it: the command line shows them without loading it."""

from typing import Final

ORDER: Final = "defer"  # how waiting jobs are kept behind
OBJECTIVE: Final = "jct"  # what the plan maximises
ROUND_S = 60.0  # between two rounds
DISRUPTIONS_PER_ROUND = 20  # of running jobs, at most
GRACE_S = 60.0  # from SIGUSR1 to requeue
RESTART_S = 60.0  # that a move costs a job
TIMEOUT_S = 30.0  # of a command of Slurm
