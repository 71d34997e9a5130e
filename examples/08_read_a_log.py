# SPDX-License-Identifier: Apache-2.0
"""What a training loop wrote, whatever its format. Usage: 08_read_a_log.py [LOG] [METRIC]"""

import sys

import glidepath as gp

log = sys.argv[1] if len(sys.argv) > 1 else "data/curves/docs-transformer.csv.gz"
metric = sys.argv[2] if len(sys.argv) > 2 else None
try:
    for run in gp.read_traces(log, metric=metric):
        print(f"{run.name}: {len(run)} points of {run.metric}")
        for note in run.notes:
            print(f"  {note}")
except gp.IoError as error:
    sys.exit(str(error))
