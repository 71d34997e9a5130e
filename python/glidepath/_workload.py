# SPDX-License-Identifier: Apache-2.0
"""What is simulated: tiers of GPUs and the jobs that come to them, from files or drawn."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath import _core
from glidepath._arguments import checked
from glidepath._core import InputError, IoError, PairSpeeds, Tier
from glidepath._gavel import read_gavel
from glidepath._job_logs import read_job_log
from glidepath._results import Shown, counted, same
from glidepath._trace import Trace, as_traces, of_record
from glidepath.readers._formats import refusing

Column = NDArray[Any]
_NAMES = ("user", "job_class")
_COLUMNS = (
    *("job", "submit_s", "gpus", "duration_s", "truth", "target_loss", "budget_steps"),
    *_NAMES,
    *("memory_gb", "utilization", "sm_activity", "memory_activity", "weight", "priority"),
    *("deadline_s", "restart_s", "steps_per_s", "gangs", "phases"),
)


def _texts(key: str, column: Column) -> list[str]:
    for row, value in enumerate(column):
        if value is None or value != value:
            raise InputError(f"workload: {key} of row {row} of jobs is {value}, expected a text")
    return list(map(str, column))


class Workload(Shown):
    """Tiers of GPUs and the jobs that come to them.

    Parameters
    ----------
    tiers : sequence of Tier
    jobs : mapping of str to array_like, shape (n,)
        Columns: ``job`` (unique ids), ``submit_s``, and ``duration_s`` or, with curves, ``truth``
        (index into `curves`), ``target_loss`` and ``budget_steps``; perhaps ``gpus`` (1 without),
        ``user``, ``job_class``, ``memory_gb`` (per GPU), ``utilization`` (0 to 1), ``sm_activity``
        and ``memory_activity`` (alone, for sharing; negative = not known), ``weight``,
        ``priority``, ``deadline_s``, ``restart_s`` (negative = that of the simulation) and
        ``steps_per_s`` of shape (n, tiers), 0 where a job cannot run. ``gangs`` has for each job a
        mapping of other numbers of GPUs, beside ``gpus``, to the rate on each tier, for policies
        that choose gangs. ``phases`` has for each job without a curve a mapping of shares of its
        work to speeds: from there on it is so many times as fast as its rates say. One value in
        place of a column is that of every job.
    curves : sequence of Trace, optional
        Hidden truths: no policy sees more of one than the job has run.
    pairs : sequence of PairSpeeds, optional
        Measured speeds of two job classes on the same GPUs; `shared_speeds` predicts the pairs
        that are not there.
    name : str, optional

    Raises
    ------
    InputError
        Naming the job: a gang below 1 or larger than every tier, one that is there twice, a speed
        of 0, a negative time, no work. Naming the column that is not known.
    """

    __slots__ = ("_record",)

    def __init__(
        self,
        tiers: Sequence[Tier],
        jobs: Mapping[str, ArrayLike],
        *,
        curves: Sequence[Trace] = (),
        pairs: Sequence[PairSpeeds | tuple[str, str, int, float, float]] = (),
        name: str = "",
    ) -> None:
        if not hasattr(jobs, "items"):
            raise TypeError
        unknown = [key for key in jobs if key not in _COLUMNS]
        if unknown:
            known = ", ".join(_COLUMNS)
            raise InputError(f"workload: no column '{unknown[0]}' of jobs, expected one of {known}")
        if "target_loss" in jobs and "truth" not in jobs:
            raise InputError(
                "workload: jobs have target_loss and no truth, a target is that of a curve"
            )
        count = np.size(jobs.get("job", ()))
        columns: dict[str, ArrayLike] = {}
        for key, values in jobs.items():
            column = np.asanyarray(values)  # masked values are refused below
            if not column.ndim:
                column = np.full(count, column)
            columns[key] = _texts(key, column) if key in _NAMES else column
        speeds = [pair if isinstance(pair, PairSpeeds) else PairSpeeds(*pair) for pair in pairs]
        self._record = _core.make_workload(
            list(tiers), columns, list(as_traces(curves, "workload")), speeds, name
        )

    @classmethod
    def _of(cls, record: _core.WorkloadRecord) -> Workload:
        workload = cls.__new__(cls)
        workload._record = record
        return workload

    @classmethod
    def from_trace(
        cls, path: str | os.PathLike[str], *, gpus: int, gpus_per_node: int | None = None
    ) -> Workload:
        """Read a cluster trace as a workload of one tier.

        Parameters
        ----------
        path : path
            CSV, plain or gzip, with the columns ``job,submit_s,gpus,duration_s``, or a trace of
            Tiresias (``job_id,submit_time,num_gpu,duration``). Perhaps also ``user``, ``class``,
            ``memory_gb``, ``utilization``, ``sm_activity``, ``memory_activity``, ``weight``,
            ``priority``, ``deadline_s`` and ``restart_s``. Of other columns, and of jobs of 0 GPUs,
            which are left out, `notes` has a sentence. Or what ``sacct --parsable2`` prints, a log
            in the Standard Workload Format, or a table with the names of Helios, Acme or Philly;
            submissions of these count from the first.
        gpus : int
            GPUs of the cluster.
        gpus_per_node : int, optional

        Returns
        -------
        Workload

        Raises
        ------
        IoError
            Naming file and line.
        """
        try:
            return cls._of(_core.workload_from_trace(path, gpus, gpus_per_node))
        except IoError as error:
            refused = error
        file, per_node = Path(os.fsdecode(path)), gpus_per_node or 1
        with refusing(str(file)):
            log = read_job_log(file, gpus)
        if log is None:
            raise refused
        tier = Tier("gpu", gpus // per_node, per_node)
        found = cls([tier], log.jobs, name=Path(file.stem).stem)
        for note in log.notes:
            found._record.note(note)
        return found

    @classmethod
    def from_gavel(
        cls,
        path: str | os.PathLike[str],
        throughputs: str | os.PathLike[str],
        *,
        cluster: Mapping[str, int],
        sharing: bool = False,
    ) -> Workload:
        """Read a trace with the measured rate of each job on each type of GPU.

        Parameters
        ----------
        path : path
            CSV, plain or gzip, with the columns ``job,submit_s,gpus,model,batch,total_steps``, or
            one of Gavel's own ``.trace`` files.
        throughputs : path
            CSV with the columns ``gpu_type,consolidated,model,batch,gpus,other_model,other_batch,
            other_gpus,steps_per_s,other_steps_per_s`` (rows spread over servers are left out), or
            Gavel's own ``simulation_throughputs.json``.
        cluster : mapping of str to int
            GPUs of each type, such as ``{"v100": 8, "p100": 16, "k80": 24}``.
        sharing : bool
            Keep the measured pairs of jobs on the same GPUs, for ``simulate(..., sharing="mps")``.

        Returns
        -------
        Workload

        Raises
        ------
        IoError
            A file that cannot be read; a job without a rate.
        """
        jobs, pairs = read_gavel(path, throughputs, list(cluster), sharing=sharing)
        tiers = [Tier(gpu, count) for gpu, count in cluster.items()]
        return cls(tiers, jobs, pairs=pairs, name=Path(path).name.split(".")[0])

    @property
    def name(self) -> str:
        """What reports call it."""
        return self._record.name

    @property
    def tiers(self) -> list[Tier]:
        """Pools of equal GPUs."""
        return self._record.tiers

    @property
    def jobs(self) -> dict[str, Column]:
        """Columns of the jobs, as the constructor takes them."""
        return self._record.jobs()

    @property
    def curves(self) -> list[Trace]:
        """The hidden truths."""
        return [of_record(curve) for curve in self._record.curves]

    @property
    def pairs(self) -> list[PairSpeeds]:
        """Measured speeds of pairs of classes on the same GPUs."""
        return self._record.pairs

    @property
    def notes(self) -> tuple[str, ...]:
        """What its files hold and it does not: columns that are not read, jobs left out."""
        return tuple(self._record.notes)

    @property
    def lower_bound_jct_s(self) -> float:
        """Mean JCT that no schedule without sharing can beat; NaN for jobs with curves.

        The larger of pooled preemptive SRPT and, where speeds differ by tier, a Lagrangian bound
        of the linear program over jobs, tiers and intervals of time.
        """
        return self._record.lower_bound_jct_s

    def write_jobs(self, path: str | os.PathLike[str]) -> None:
        """Write the jobs as the ``jobs.csv`` that `read_workload` reads.

        ``gangs.csv`` and ``phases.csv`` go beside it where jobs have them. IoError where one cannot
        be written.
        """
        self._record.write_jobs(path)

    def __len__(self) -> int:
        return self._record.job_count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Workload):
            return NotImplemented
        return (
            self.name == other.name
            and self.tiers == other.tiers
            and same(self.jobs, other.jobs)
            and self.curves == other.curves
            and self.pairs == other.pairs
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        made = partial(Workload, curves=self.curves, pairs=self.pairs, name=self.name)
        return made, (self.tiers, self.jobs)

    def _summary(self) -> str:
        tiers = " + ".join(f"{tier.gpus} {tier.name}" for tier in self.tiers)
        name = f"{self.name!r}, " if self.name else ""
        return f"{name}{counted(len(self), 'job')} on {tiers}"

    def _rows(self) -> Iterator[tuple[str, str]]:
        for tier in self.tiers:
            yield tier.name, f"{counted(tier.gpus, 'GPU')} {tier.gpu}".rstrip()
        yield from (("note", note) for note in self.notes)


@checked
def read_workload(folder: str | os.PathLike[str]) -> Workload:
    """Read ``tiers.csv``, ``jobs.csv``, perhaps ``gangs.csv`` and ``phases.csv``, and ``truth/``.

    Parameters
    ----------
    folder : path

    Returns
    -------
    Workload

    Raises
    ------
    IoError
        Naming file and line.
    InputError
        Naming the job.
    """
    return Workload._of(_core.read_workload(folder))


@checked
def generate_workload(folder: str | os.PathLike[str], *, users: int, seed: int = 0) -> Workload:
    """Draw the jobs of many users from the classes and habits of a workload folder.

    Parameters
    ----------
    folder : path
        With ``tiers.csv``, ``classes.csv``, ``habits.csv`` and ``truth/``, such as
        ``data/workloads/supercom``.
    users : int
        More users add jobs and change none of the others'.
    seed : int

    Returns
    -------
    Workload

    Raises
    ------
    IoError, InputError
    """
    return Workload._of(_core.generate_workload(folder, users, seed))
