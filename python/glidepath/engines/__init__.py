# SPDX-License-Identifier: Apache-2.0
"""Real engines: a scheduler that runs the jobs, and a cluster that runs the batches.

`slurm` and `simulated` are engines for a `Pilot`; `checkpoint` is the side of the training script;
`dask` fits and forecasts tables of runs. See docs/slurm.md.
"""

from glidepath.engines._decision_log import DecisionLog, Event, LogError
from glidepath.engines._model import (
    Action,
    Cluster,
    ClusterError,
    ClusterJob,
    Engine,
    Outcome,
    Pool,
    Wish,
)
from glidepath.engines._options import PilotOptions
from glidepath.engines._outlook import JobView, Outlook
from glidepath.engines._pilot import Pilot, Round

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
    "Wish",
]
