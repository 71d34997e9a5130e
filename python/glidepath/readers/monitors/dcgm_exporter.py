# SPDX-License-Identifier: Apache-2.0
"""What DCGM's exporter serves to Prometheus, one scrape or several one after the other."""

from __future__ import annotations

import re
from pathlib import Path

from glidepath.readers.monitors._samples import NAN, Options, Samples, bare_number, rows, unfinished

# Names without DCGM_FI_, their columns, and the factor to their unit.
FIELDS = {
    "DEV_POWER_USAGE": ("power_w", 1.0),
    "DEV_TOTAL_ENERGY_CONSUMPTION": ("energy_counter_j", 1e-3),
    "DEV_GPU_UTIL": ("utilization", 0.01),
    "DEV_MEM_COPY_UTIL": ("memory_utilization", 0.01),
    "DEV_FB_USED": ("memory_used_gb", 1 / 1024),
    "DEV_FB_TOTAL": ("memory_total_gb", 1 / 1024),
    "DEV_GPU_TEMP": ("temperature_c", 1.0),
    "DEV_SM_CLOCK": ("sm_clock_mhz", 1.0),
    "PROF_GR_ENGINE_ACTIVE": ("gr_activity", 1.0),
    "PROF_SM_ACTIVE": ("sm_activity", 1.0),
    "PROF_SM_OCCUPANCY": ("sm_occupancy", 1.0),
    "PROF_PIPE_TENSOR_ACTIVE": ("tensor_activity", 1.0),
    "PROF_DRAM_ACTIVE": ("memory_activity", 1.0),
    "PROF_PIPE_FP64_ACTIVE": ("fp64_activity", 1.0),
    "PROF_PIPE_FP32_ACTIVE": ("fp32_activity", 1.0),
    "PROF_PIPE_FP16_ACTIVE": ("fp16_activity", 1.0),
    "PROF_PCIE_TX_BYTES": ("pcie_tx_bytes_s", 1.0),
    "PROF_PCIE_RX_BYTES": ("pcie_rx_bytes_s", 1.0),
    "PROF_NVLINK_TX_BYTES": ("nvlink_tx_bytes_s", 1.0),
    "PROF_NVLINK_RX_BYTES": ("nvlink_rx_bytes_s", 1.0),
}
_LINE = re.compile(
    r"^\s*DCGM_FI_(?P<name>\w+)\{(?P<labels>.*)\}\s+(?P<value>\S+)(?:\s+(?P<time>-?\d+))?\s*$"
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def recognises(head: str) -> bool:
    """Tell whether a file begins as these do."""
    return any(_LINE.match(line) for line in head.splitlines())


def read(path: Path, options: Options) -> Samples:
    """Collect the samples of a file; IoError with its line where it is damaged."""
    samples = Samples(path, options)
    scrape: dict[str, tuple[float, dict[str, float]]] = {}
    passed = 0

    def end_of_scrape() -> None:
        for gpu, (time, values) in scrape.items():
            samples.add(gpu, time, values)
        scrape.clear()

    for number, line, last in rows(path, samples):
        if line.lstrip().startswith("#") or "DCGM_FI_" not in line:
            continue
        match = _LINE.match(line)
        if match is None:
            unfinished(samples, number, "no sample as Prometheus writes them", last=last)
            continue
        if match["name"] not in FIELDS:
            continue
        labels = dict(_LABEL.findall(match["labels"]))
        if labels.get("GPU_I_ID"):  # a part of a GPU
            passed += 1
            continue
        host = labels.get("Hostname") or labels.get("hostname") or ""
        gpu = "/".join(part for part in (host, labels.get("gpu", "0")) if part)
        column, factor = FIELDS[match["name"]]
        try:
            value = bare_number(match["value"], match["name"]) * factor
        except ValueError as error:
            unfinished(samples, number, str(error), last=last)
            continue
        if column in scrape.get(gpu, (NAN, {}))[1]:
            end_of_scrape()
        time = float(match["time"]) / 1000.0 if match["time"] else NAN
        scrape.setdefault(gpu, (time, {}))[1][column] = value
    end_of_scrape()
    if passed:
        samples.notes.append(f"{passed} lines of parts of a GPU (MIG) passed over")
    return samples
