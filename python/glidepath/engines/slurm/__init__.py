# SPDX-License-Identifier: Apache-2.0
"""A pilot that watches the jobs of a cluster, and advises or acts: see docs/slurm.md.

The words of this package:

================  ===============================================================================
`Pilot`           does one `Round` after the other: read, forecast, plan, act, write down
`Scheduler`       the system that runs the jobs: `Slurm`, or `simulated.SimulatedCluster`
`Cluster`         all jobs and tiers at one moment, as the scheduler describes them
`ClusterJob`      a job of the scheduler
`ClusterTier`     a partition whose GPUs are alike, and how fast they are
`JobRequest`      what the user wrote into the comment of a job: target, budget, tiers
`JobForecast`     what the log of a job says about the rest of its run
`JobView`         a job with its request, its forecast and what the plan does with it
`Move`            a job on its way from one tier to another
`Action`          one change to one job; `Outcome` says what became of it
`DecisionLog`     the file in which every `Event`, a forecast or a step of an action, is written
================  ===============================================================================

`rehearsal` plays a workload under the pilot; `checkpoint` is for the training script; `urgency`
turns a forecast into a priority class for other schedulers.
"""

from glidepath.engines.slurm._commands import Answer, Slurm
from glidepath.engines.slurm._comment import JobRequest
from glidepath.engines.slurm._decision_log import DecisionLog, Event, LogError
from glidepath.engines.slurm._job_forecast import JobForecast, JobView
from glidepath.engines.slurm._model import (
    Action,
    Cluster,
    ClusterError,
    ClusterJob,
    ClusterTier,
    Outcome,
    Scheduler,
)
from glidepath.engines.slurm._options import PilotOptions
from glidepath.engines.slurm._pilot import Pilot, Round

__all__ = [
    "Action",
    "Answer",
    "Cluster",
    "ClusterError",
    "ClusterJob",
    "ClusterTier",
    "DecisionLog",
    "Event",
    "JobForecast",
    "JobRequest",
    "JobView",
    "LogError",
    "Outcome",
    "Pilot",
    "PilotOptions",
    "Round",
    "Scheduler",
    "Slurm",
]
