# SPDX-License-Identifier: Apache-2.0
"""The jobs of Microsoft's Philly trace as a workload, here from a table of two jobs."""

import os
import tempfile
from pathlib import Path

import pandas as pd

import glidepath as gp

os.chdir(tempfile.mkdtemp())
Path("philly.csv").write_text(
    "timestamp,duration,num_gpus,gpu_time,cluster\n"
    "2017-10-03 08:15:00,900,2,1800,0e4a51\n"
    "2017-10-03 08:00:00,3600,1,3600,0e4a51\n"
)

table = pd.read_csv("philly.csv", parse_dates=["timestamp"])
table = table[(table.num_gpus > 0) & (table.duration > 0)].sort_values("timestamp", kind="stable")
columns = {"gpus": table.num_gpus, "duration_s": table.duration, "vc": table.cluster}
columns["submit_s"] = (table.timestamp - table.timestamp.min()).dt.total_seconds()
pd.DataFrame({"job": range(len(table)), **columns}).to_csv("jobs.csv", index=False)

print(gp.simulate(gp.Workload.from_trace("jobs.csv", gpus=2), "fifo"))
