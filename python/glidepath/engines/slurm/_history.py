# SPDX-License-Identifier: Apache-2.0
"""Earlier rounds, as the decision log has them, and the rows that this round adds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from glidepath.engines.slurm._decision_log import DecisionLog, Event
from glidepath.engines.slurm._job_forecast import JobView
from glidepath.engines.slurm._model import OF_A_PARTITION, Action, ActionKind, Cluster
from glidepath.engines.slurm._options import PilotOptions

_KINDS = get_args(ActionKind)


@dataclass
class History:
    """Earlier rounds as far as this one needs them."""

    at_s: float
    options: PilotOptions
    forecasts: dict[str, Event]
    deferred: dict[str, Event]
    advised: dict[str, Event]
    annotated: dict[str, Event]
    limits: dict[str, float]  # minutes before we first changed them
    nices: dict[str, float]
    submitted_to: dict[str, str]  # partitions of a job that we placed in one of them
    sent_back: dict[str, str]  # why Slurm did not start a job where we had placed it
    moves: Counter[str]
    refused: set[tuple[str, str]]  # (job, kind) not to be tried again yet

    @classmethod
    def of(cls, log: DecisionLog, cluster: Cluster, at_s: float, options: PilotOptions) -> History:
        # A requeue counts as a new submission.
        jobs = {
            job.id: (0.0 if job.restarts else job.submit_s, job.submit_s) for job in cluster.jobs
        }

        def counts(
            kinds: tuple[str, ...], phases: tuple[str, ...], seconds: float
        ) -> list[tuple[str, str]]:
            rows = log.recent(kinds, phases, at_s - seconds)
            nothing = (math.inf, -math.inf)
            return [
                (job, kind)
                for job, kind, submit in rows
                if jobs.get(job, nothing)[0] <= submit <= jobs.get(job, nothing)[1]
            ]

        def before(kind: str) -> dict[str, float]:
            events = log.of_each(kind, ("intended",), jobs, first=True)
            known = {job: (event.detail or {}).get("before") for job, event in events.items()}
            return {job: float(was) for job, was in known.items() if isinstance(was, (int, float))}

        now_in = {job.id: job.partition for job in cluster.jobs}

        events = log.of_each("place", ("intended",), jobs)
        details = {job: event.detail or {} for job, event in events.items()}
        # Unless a person has changed the partition since.
        placed = {job: d for job, d in details.items() if d.get("tier") == now_in[job]}

        moves = counts(("checkpoint", "requeue"), ("done", "unknown"), 3600)
        return cls(
            at_s,
            options,
            log.of_each("forecast", ("noted",), jobs),
            log.of_each("defer", ("intended",), jobs),
            log.of_each("advice", ("advised",), jobs),
            log.of_each("annotate", ("intended",), jobs),
            before("limit"),
            before("rank"),
            {job: str(d["submitted_to"]) for job, d in placed.items() if d.get("submitted_to")},
            {job: str(d["sent_back"]) for job, d in placed.items() if d.get("sent_back")},
            Counter(job for job, _ in moves),
            set(counts(_KINDS, ("refused",), 600)),
        )

    def set_rate(self, view: JobView, cluster: Cluster) -> None:
        """Work out steps per second at speed 1 from the pace on the tier where it was logged."""
        job, forecast = view.job, view.forecast
        speeds = {tier.name: tier.speed for tier in cluster.tiers}
        earlier = self.forecasts.get(job.id)
        detail = (earlier.detail or {}) if earlier else {}
        if forecast.steps_per_s is None or view.tier not in speeds:
            rate = detail.get("base_rate")
            view.base_rate = rate if isinstance(rate, float) and 0 < rate < math.inf else None
            return
        # No row yet since the job came to this tier: the pace is that of the tier before.
        fresh = job.state != "PENDING" and (
            not detail
            or detail.get("tier") == view.tier
            or forecast.last_step > detail.get("observed_to", -math.inf)
        )
        where = view.tier if fresh else detail.get("tier", view.tier)
        view.base_rate = forecast.steps_per_s / speeds.get(where, 1.0)

    def forecast_event(self, view: JobView) -> Event | None:
        """Make a row for a forecast that has changed."""
        forecast, job = view.forecast, view.job
        moving = job.move
        detail: dict[str, Any] = {
            "state": job.state,
            "tier": view.tier,
            "planned": view.planned,
            "verdict": forecast.verdict,
            "probability": None if math.isnan(forecast.probability) else forecast.probability,
            "observed_to": forecast.last_step,
            "loss": None if math.isnan(forecast.last_value) else forecast.last_value,
            "base_rate": view.base_rate,
            "finish_s": view.finish_s and [t if math.isfinite(t) else None for t in view.finish_s],
            "moving": moving.to if moving else "",
        }
        before = self.forecasts.get(job.id)
        if before is not None and before.at_s > self.at_s - 600:
            old = before.detail or {}
            same = all(old.get(k) == detail[k] for k in ("state", "tier", "verdict", "planned"))
            p, q = old.get("probability"), detail["probability"]
            if same and (p == q or (p is not None and q is not None and abs(p - q) < 0.1)):
                return None
        why = view.reason or forecast.problem
        return Event(job.id, "forecast", "noted", why, "", detail, job.submit_s)

    def advice(self, actions: Sequence[Action], words: Callable[[Action], str]) -> list[Event]:
        """Make rows for advice that is new."""
        events = []
        for action in actions:
            if action.kind in ("annotate", "defer", "rank"):
                continue
            before = self.advised.get(action.job.id)
            detail = {"does": action.kind, "tier": action.tier}
            if before is None or before.detail != detail:
                events.append(
                    Event(action.job.id, "advice", "advised", action.why, words(action), detail,
                          action.job.submit_s)
                )  # fmt: skip
        return events


def action_event(
    action: Action, phase: str, command: str, detail: str = "", of: int | None = None
) -> Event:
    job = action.job
    more: dict[str, Any] = {"state": job.state, "partition": job.partition}
    if detail:
        more["said"] = detail
    if action.kind == "limit":
        more["before"] = job.limit_s / 60 if math.isfinite(job.limit_s) else math.inf
    if action.kind == "rank":
        more["before"] = job.nice
    if action.kind == "place":
        more["tier"], more["submitted_to"] = action.tier, action.submitted_to
        if job.barred.startswith(OF_A_PARTITION) and not job.move:
            more["sent_back"] = job.barred
    if action.kind == "defer":
        more["until"] = action.until_s
    if action.kind == "annotate":
        more["note"] = action.comment
    return Event(job.id, action.kind, phase, action.why, command, more, job.submit_s, of)
