# SPDX-License-Identifier: Apache-2.0
"""The export of radt: one JSON object, an array for each field of DCGM that it collected."""

from __future__ import annotations

import json
import re
from pathlib import Path

from glidepath._core import IoError
from glidepath.readers._series import read_whole
from glidepath.readers.monitors._samples import NAN, Options, Samples

# What is read of each field, and the factor to the unit of `Metrics`. "SN Actuie" is SM active.
FIELDS = {
    "Power Usage": ("power_w", 1.0),
    "Total Energy Consumption": ("energy_counter_j", 1e-3),
    "PCIE TX Throughput": ("pcie_tx_sampled_bytes_s", 1e3),
    "PCIE RX Throughput": ("pcie_rx_sampled_bytes_s", 1e3),
    "GPU Utilization": ("utilization", 0.01),
    "Memory Copy Utilization": ("memory_utilization", 0.01),
    "GR Engine Active": ("gr_activity", 1.0),
    "SN Actuie": ("sm_activity", 1.0),
    "SN Active": ("sm_activity", 1.0),
    "SM Active": ("sm_activity", 1.0),
    "SM Occupancy": ("sm_occupancy", 1.0),
    "Tensor Active": ("tensor_activity", 1.0),
    "DRAM Active": ("memory_activity", 1.0),
    "FP64 Active": ("fp64_activity", 1.0),
    "FP32 Active": ("fp32_activity", 1.0),
    "FP16 Active": ("fp16_activity", 1.0),
    "PCIE TX Bytes": ("pcie_tx_bytes_s", 1.0),
    "PCIE RX Bytes": ("pcie_rx_bytes_s", 1.0),
    "NVlink TX Bytes": ("nvlink_tx_bytes_s", 1.0),
    "NVlink RX Bytes": ("nvlink_rx_bytes_s", 1.0),
}


def recognises(head: str) -> bool:
    """Tell whether a file begins as these do."""
    return re.match(r'\s*\{\s*"', head) is not None and '"DCGMI - ' in head


def read(path: Path, options: Options) -> Samples:
    """Collect the samples of a file; IoError with its line where it is damaged."""
    samples = Samples(path, options)
    try:
        document = json.loads(read_whole(path).replace(b"\0", b""))
    except ValueError as error:
        raise IoError(f"{path}: {error}") from None
    if not isinstance(document, dict):
        what = f"the document is {document!r:.40}, expected an object of arrays"
        raise IoError(f"{path}: {what}")
    columns = {}
    for key, values in document.items():
        field = FIELDS.get(key.removeprefix("DCGMI - "))
        if field is not None:
            columns[field[0]] = [
                float(x) * field[1] if isinstance(x, (int, float)) else NAN for x in values
            ]
    times = document.get("Timestamp") or document.get("MSPast")
    count = len(next(iter(columns.values()), []))
    if times is None or any(len(column) != len(times) for column in columns.values()):
        raise IoError(f"{path}: {count} samples, but {len(times or [])} times")
    for row, time in enumerate(times):
        values = {name: column[row] for name, column in columns.items()}
        samples.add("0", float(time) / 1000.0, values)
    return samples
