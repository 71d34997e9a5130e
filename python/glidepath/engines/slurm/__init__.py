# SPDX-License-Identifier: Apache-2.0
"""A pilot that watches the jobs of a cluster and advises or acts: see docs/slurm.md.

`Slurm` and `simulated.Simulated` are the clusters that it knows; `checkpoint` is the side of the
training script; `urgency` turns a forecast into a priority class for other schedulers.
"""

from glidepath.engines.slurm._commands import Slurm
from glidepath.engines.slurm._decision_log import DecisionLog, Event, LogError
from glidepath.engines.slurm._model import (
    Action,
    Cluster,
    ClusterError,
    ClusterJob,
    Engine,
    Outcome,
    Pool,
    Wish,
)
from glidepath.engines.slurm._options import PilotOptions
from glidepath.engines.slurm._outlook import JobView, Outlook
from glidepath.engines.slurm._pilot import Pilot, Round

__all__ = [
    "Action",
    "Cluster",
    "ClusterError",
    "ClusterJob",
    "DecisionLog",
    "Engine",
    "Event",
    "JobView",
    "LogError",
    "Outcome",
    "Outlook",
    "Pilot",
    "PilotOptions",
    "Pool",
    "Round",
    "Slurm",
    "Wish",
]
