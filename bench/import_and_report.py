# SPDX-License-Identifier: Apache-2.0
"""What a user waits for: `import glidepath` over numpy, and the report of 50 runs.

python bench/import_and_report.py [CURVES.csv.gz]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import glidepath as gp
from glidepath import _report

CODE = (
    "import time, numpy; a = time.process_time(); import glidepath; print(time.process_time() - a)"
)
file = sys.argv[1] if len(sys.argv) > 1 else "data/curves/docstring-t5.csv.gz"

seconds = [
    float(subprocess.run([sys.executable, "-c", CODE], capture_output=True, check=True).stdout)
    for _ in range(5)
]
print(f"import glidepath over numpy: {1e3 * min(seconds):.0f} ms of CPU, the best of 5")

runs = gp.read_traces(file)
runs = [runs[i % len(runs)].until(0.4 * runs[i % len(runs)].step[-1]) for i in range(50)]
with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "runs.html"
    started = time.perf_counter()
    _report.write_runs(page, runs, target=2.2, budget=1000)
    took = time.perf_counter() - started
    print(f"report of {len(runs)} runs: {took:.2f} s, {page.stat().st_size / 1e6:.1f} MB")
