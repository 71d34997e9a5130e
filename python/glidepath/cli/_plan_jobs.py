# SPDX-License-Identifier: Apache-2.0
"""`glidepath plan JOBS.csv`: the plan of one's own jobs, from their logs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import glidepath as gp
from glidepath import _words
from glidepath._answer import reach_keys, run_keys, when
from glidepath._core import reached_by_name
from glidepath._csv_rows import read_rows
from glidepath._horizon import horizon, in_words
from glidepath._judge import Ruling, rule
from glidepath._plan import REMAINING_SAMPLES
from glidepath._trace import pace
from glidepath._verdicts import meaning
from glidepath.cli._console import each

_COLUMNS = (
    *("job", "log", "target", "budget", "gpus", "metric", "run", "user"),
    *("priority", "weight", "deadline_s", "hardware"),
)
_PACE = "steps_per_s_"
_REFUSAL = "cannot be planned: "  # how a plan begins to say so
_LARGEST_WHOLE = 2**31 - 1  # of a whole number


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of a file: those that can be planned, and why the others cannot.

    The outlook of a job is its forecast, as keys of an answer; `endings` say why a job ends.
    """

    snapshot: gp.Snapshot
    names: dict[int, str]
    outlooks: dict[int, dict[str, Any]]
    endings: dict[int, str]
    refused: dict[str, str]


def read_jobs(path: Path, tiers: list[gp.Tier], *, reached_by: str | None = None) -> Jobs:
    """Read the jobs and their logs; a job that cannot be planned gets a reason."""
    columns, rows = read_rows(path, "job", "log", "target")
    known = {*_COLUMNS, *(_PACE + tier.name for tier in tiers)}
    for name in columns:
        if name not in known:
            raise gp.IoError(f"{path}:1: column {name!r} is none of {', '.join(sorted(known))}")
    jobs, names, refused = [], dict[int, str](), dict[str, str]()
    outlooks, endings = dict[int, dict[str, Any]](), dict[int, str]()
    seen: set[str] = set()
    for index, (line, row) in enumerate(each("reading", rows)):
        name = row["job"] or f"line {line}"
        if name in seen:
            raise gp.IoError(f"{path}:{line}: job {name!r} is there twice")
        seen.add(name)
        try:
            job, outlook, ruling = _job(index, row, path.parent, tiers, reached_by)
            _try(gp.Snapshot(tiers, [job]))
        except (gp.InputError, gp.IoError, ImportError, OSError, ValueError) as error:
            refused[name] = str(error)
            continue
        jobs.append(job)
        names[index], outlooks[index] = name, outlook
        if ruling.stop or job.budget_steps <= job.steps_done:
            endings[index] = f"ends: {ruling.reason}"
    return Jobs(gp.Snapshot(tiers, jobs), names, outlooks, endings, refused)


def _try(alone: gp.Snapshot) -> None:
    """Refuse here what would fail the plan of all, or the times at which they start."""
    (job,) = alone.jobs
    reason = gp.plan(alone).reasons.get(job.id, "")
    if reason.startswith(_REFUSAL):
        raise gp.InputError(reason.removeprefix(_REFUSAL).replace(f"job {job.id} ", "it ", 1))


def _job(
    index: int,
    row: Mapping[str, str],
    folder: Path,
    tiers: list[gp.Tier],
    reached_by: str | None,
) -> tuple[gp.Job, dict[str, Any], Ruling]:
    """Make one job, its outlook, and what its log says of it."""
    trace = _trace(row, folder)
    last = float(trace.step[-1])
    target = _number(row, "target")
    if target is None:
        raise gp.InputError("it has no target")
    budget = _number(row, "budget")
    if budget is not None and budget <= 0:
        raise gp.InputError(f"its budget is {row['budget']!r}, expected above 0")
    plan = horizon(trace, budget=budget)
    by = reached_by or reached_by_name(trace.metric)
    reach = gp.reach(trace, target, budget=plan.budget, schedule=plan.schedule, reached_by=by)
    ruling = rule(trace, plan, target=target, reached_by=by, law=reach)
    gpus = _whole(row, "gpus", blank=1, least=1)
    paces = _paces(row, trace, tiers)
    profile = _profile(row, folder, max(paces.values()))
    weight, deadline_s = _number(row, "weight"), _number(row, "deadline_s")
    job = gp.Job(
        index,
        _options(paces, gpus, tiers, profile.sm_activity),
        user=row.get("user", ""),
        memory_gb=profile.memory_gb,
        steps_done=last,
        target_loss=target,
        budget_steps=plan.budget,
        remaining_steps=_remaining(reach, ruling, plan.budget - last),
        priority=_whole(row, "priority", blank=0, least=-_LARGEST_WHOLE),
        weight=1.0 if weight is None else weight,
        deadline_s=math.inf if deadline_s is None else deadline_s,
    )
    keys = plan.keys() | reach_keys(reach, last, by, budget=plan.budget)
    if keys["budget_from"] == "--budget":
        keys["budget_from"] = "of the file of jobs"
    if meaning(ruling.decision.verdict).is_reached:  # if only after its budget
        keys["probability"] = ruling.probability
    return job, run_keys(trace) | keys | {"verdict": ruling.decision.verdict}, ruling


def _remaining(reach: gp.Reach, ruling: Ruling, left: float) -> Any:
    """Steps that a job still needs. What ends it is the rule of its log, not one forecast."""
    if ruling.stop or left <= 0:
        return [0.0 if meaning(ruling.decision.verdict).is_reached else math.inf]
    samples = reach.remaining_steps(REMAINING_SAMPLES)
    hopeful = samples[(samples > 0) & (samples < math.inf)]
    return samples if hopeful.size else [left]  # unless it is ended, it runs to its budget


def outlook_in_words(keys: Mapping[str, Any]) -> str:
    """Say what to expect of a job."""
    at = when(keys)
    if meaning(keys["verdict"]).is_reached and math.isinf(keys["reach_q10"]):
        at = "past its budget"
    return f"{_words.percent(keys['probability'])}, {at}; {in_words(keys)}"


def _trace(row: Mapping[str, str], folder: Path) -> gp.Trace:
    if not row["log"]:
        raise gp.InputError("it has no log")
    traces = gp.read_traces(folder / row["log"], metric=row.get("metric") or None)
    run = row.get("run") or None
    found = [trace for trace in traces if run in (None, trace.name) and len(trace)]
    if len(found) != 1:
        which = f"run {run!r}" if run else "run (say which in a column run)"
        raise gp.InputError(f"{row['log']}: expected one {which}, found {len(found)}")
    return found[0]


def _paces(row: Mapping[str, str], trace: gp.Trace, tiers: list[gp.Tier]) -> dict[str, float]:
    """Steps per second on each tier: of its columns, else of its log, the same on all."""
    paces = {tier.name: _number(row, _PACE + tier.name) or 0.0 for tier in tiers}
    if any(paces.values()):
        return paces
    known = pace(trace)
    if known is None:
        raise gp.InputError(
            "its pace is not known: the log has no clock, the CSV of jobs no column"
            f" {_PACE}{tiers[0].name}"
        )
    return dict.fromkeys(paces, known)


def _profile(row: Mapping[str, str], folder: Path, steps_per_s: float) -> gp.Profile:
    """What its log of hardware metrics says that a step takes."""
    file = row.get("hardware")
    if not file:
        return gp.Profile()
    return gp.read_metrics(folder / file).busy().profile(step_seconds=1 / steps_per_s)


def _options(
    paces: Mapping[str, float], gpus: int, tiers: list[gp.Tier], utilization: float
) -> list[gp.Option]:
    """List the tiers on which a job can run."""
    options = [
        gp.Option(index, gpus, paces[tier.name], utilization=utilization)
        for index, tier in enumerate(tiers)
        if paces[tier.name] and gpus <= tier.gpus
    ]
    if not options:
        raise gp.InputError(f"no tier has {gpus} GPUs on which it makes steps")
    return options


def _number(row: Mapping[str, str], column: str) -> float | None:
    text = row.get(column) or ""
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise gp.InputError(f"its {column} is {text!r}, expected a finite number")
    return number


def _whole(row: Mapping[str, str], column: str, *, blank: int, least: int) -> int:
    number = _number(row, column)
    if number is None:
        return blank
    if number != int(number) or not least <= number <= _LARGEST_WHOLE:
        raise gp.InputError(
            f"its {column} is {row[column]!r}, expected a whole number from {least} to "
            f"{_LARGEST_WHOLE}"
        )
    return int(number)
