# SPDX-License-Identifier: Apache-2.0
"""The readers of what GPUs did, imported when a file is read."""

from __future__ import annotations

import os

from glidepath._arguments import checked
from glidepath._hardware import Metrics
from glidepath._step_profile import StepProfile


@checked
def read_metrics(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - the builtin is not needed here
    every_s: float | None = None,
    run: str | None = None,
) -> Metrics:
    """Read what a monitor logged of GPUs.

    Parameters
    ----------
    path : path_like
        A file, plain or gzip, of one of the formats of `docs/formats.md`.
    format : str, optional
        ``"radt"``, ``"dcgmi_dmon"``, ``"dcgm_exporter"`` (Prometheus text), ``"nvidia_smi_csv"``
        (``--query-gpu``), ``"nvidia_smi_dmon"``, ``"nvidia_smi"`` (its tables), ``"samples"`` (of
        NVML, or one's own), ``"zeus"`` or ``"codecarbon"``. By default it is found from the
        file's content.
    every_s : float, optional
        Seconds between two samples, for a log without times; 1 by default, and a note says so.
    run : str, optional
        Which of several runs of codecarbon, or windows of Zeus, in one file.

    Returns
    -------
    Metrics
        What was repaired is in its `notes`.

    Raises
    ------
    IoError
        With file and line, when the file is missing, not a regular one, malformed, or of no known
        format.
    InputError
        When `format` is unknown, or `every_s` or `run` is not for this log.
    """
    from glidepath.readers.monitors import _open

    return _open.read_metrics(path, format=format, every_s=every_s, run=run)


@checked
def read_profile(
    path: str | os.PathLike[str], *, gpus: int | None = None, nodes: int = 1
) -> StepProfile:
    """Read what the profiler of PyTorch recorded of some steps.

    Parameters
    ----------
    path : path_like
        A trace (``export_chrome_trace``: JSON of Kineto or Chrome), or the table that
        ``key_averages().table()`` prints, as text or CSV; plain or gzip.
    gpus : int, optional
        GPUs of the gang; by default the world size that the trace has, else 1.
    nodes : int
        Nodes of the gang.

    Returns
    -------
    StepProfile
        The mean of the steps marked by ``profiler.step()``; without marks all is one step, and a
        note says so. Intervals that overlap count once: kernels before copies, clearing memory,
        communication, calls of the runtime, data loading, work on the CPU. A table does not say
        what overlaps: there each category has what those before it leave of the step.

    Raises
    ------
    IoError
        With file and line, when the file is missing, not a regular one, damaged, or neither.
    InputError
        When `gpus` contradicts the trace, or there are more nodes than GPUs.
    """
    from glidepath.readers import torch_profile

    return torch_profile.read_profile(path, gpus=gpus, nodes=nodes)
