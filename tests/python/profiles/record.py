# SPDX-License-Identifier: Apache-2.0
"""Records the profiles in this folder: a step of a small network, by PyTorch's profiler on a CPU.

    python tests/python/profiles/record.py    # needs torch; not run by the tests

`cpu_step.json.gz` is the trace of two steps with a loader of data, `cpu_step.txt` the table of the
same. Fields that the reader does not use (arguments of operators, flows) are left out of the trace
to keep it small; times are as they were recorded.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, TensorDataset

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Train three steps, record the last two."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(24, 8), torch.randn(24, 1))
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(
        activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=2, repeat=1)
    ) as profiler:
        for x, y in DataLoader(data, batch_size=8):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            profiler.step()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        trace = json.loads(path.read_text())
    trace = {key: trace[key] for key in ("schemaVersion", "deviceProperties", "traceEvents")}
    kept = ("ph", "cat", "name", "pid", "tid", "ts", "dur")
    trace["traceEvents"] = [
        {key: event[key] for key in kept if key in event}
        for event in trace["traceEvents"]
        if event.get("ph") == "X"
    ]
    packed = gzip.compress(json.dumps(trace).encode(), compresslevel=9, mtime=0)
    (HERE / "cpu_step.json.gz").write_bytes(packed)
    (HERE / "cpu_step.txt").write_text(profiler.key_averages().table(row_limit=-1) + "\n")


if __name__ == "__main__":
    main()
