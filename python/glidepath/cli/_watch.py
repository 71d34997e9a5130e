# SPDX-License-Identifier: Apache-2.0
"""`glidepath watch`: a growing log, looked at again and again, and what is to be expected of it."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterable
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

import glidepath as gp
from glidepath._json import plain
from glidepath.adapters._adviser import judge
from glidepath.cli._console import (
    ANSWER,
    WARNING,
    Curve,
    Json,
    Log,
    Metric,
    Past,
    emit,
    learned,
    stderr,
    stdout,
)

_COLOURS = {
    "reached": "bold green",
    "will_reach": "green",
    "unknown": "yellow",
    "never": "bold red",
    "diverged": "bold red",
}
_BARS = "▁▂▃▄▅▆▇█"
_SEEN_BARS, _AHEAD_BARS = 24, 12


def watch(
    file: Log,
    target: Annotated[float | None, typer.Option(help="Loss to reach.")] = None,
    budget: Annotated[
        float | None, typer.Option(help="Last step allowed; default: ten times those seen.")
    ] = None,
    curve: Curve = None,
    past: Past = None,
    metric: Metric = None,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 2.0,
    alpha: Annotated[
        float, typer.Option(help="Error rate of the verdicts will_reach and never.")
    ] = 0.02,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
    until_decided: Annotated[
        bool, typer.Option("--until-decided", help="End when no run has anything left to gain.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Watch a growing log: forecast, verdict, probability and time left of each run.

    A log that is not there yet is waited for. In a terminal the view is kept up to date until
    Ctrl-C; elsewhere each change is a line, with --json one JSON document a line.
    """
    view = _View(file, target, budget, curve, alpha, learned(past, metric, []))
    follow = gp.follow(file, metric=metric, every_s=every)
    if once:
        changed = view.look(follow)
        if not changed:
            raise gp.IoError(follow.trouble or f"{file}: no curve {curve!r}")
        if as_json:
            emit([_told(row) for row in changed])
        else:
            stdout.print(view.show(""))
        return view.code()
    if stdout.is_terminal and not as_json:
        with Live(console=stdout, auto_refresh=False) as live:
            while not (view.look(follow) and until_decided and view.decided()):
                live.update(view.show(follow.trouble), refresh=True)
                follow.wait()
            live.update(view.show(""), refresh=True)
        return view.code()
    said = ""
    while True:
        changed = view.look(follow)
        for row in changed:
            text = json.dumps(plain(_told(row)), allow_nan=False) if as_json else _line(row)
            sys.stdout.write(text + "\n")
        sys.stdout.flush()
        if follow.trouble != said:
            said = follow.trouble
            if said:
                stderr.print(f"waiting: {said}", highlight=False, markup=False, soft_wrap=True)
        if until_decided and changed and view.decided():
            return view.code()
        follow.wait()


class _View:
    """What is known of each run."""

    def __init__(
        self,
        log: str,
        target: float | None,
        budget: float | None,
        curve: str | None,
        alpha: float,
        past: gp.PastRuns | None,
    ) -> None:
        self._log, self._curve, self._past = log, curve, past
        self._watch: dict[str, Any] = {"target": target, "budget": budget, "alpha": alpha}
        gp.Watch(**self._watch)  # refuses bad options before anything is waited for
        self._rows: dict[str, dict[str, Any]] = {}
        self._began: dict[str, tuple[float, float]] = {}

    def look(self, follow: gp.Follow) -> list[dict[str, Any]]:
        """Look at the log again; give the runs that changed."""
        changed = []
        for trace in follow.poll():
            if self._curve in (None, trace.name) and len(trace):
                self._rows[trace.name] = self._judge(trace)
                changed.append(self._rows[trace.name])
        return changed

    def _judge(self, trace: gp.Trace) -> dict[str, Any]:
        points = list(zip(trace.step.tolist(), trace.loss.tolist(), strict=True))
        past = None if self._past is None else self._past.without(trace)
        # The error rate of verdicts was measured without learned widths: docs/live.md.
        shapes = None if past is None else past.runs
        live = gp.Watch(direction=trace.direction, past=shapes, **self._watch)
        decision, stop = judge(live, points)
        last = float(trace.step[-1])
        end = max(self._watch["budget"] or 2.0 * last, last + 1.0)
        steps = np.linspace(last + (end - last) / _AHEAD_BARS, end, _AHEAD_BARS)
        ahead = gp.forecast(trace, steps, past=past)
        low, middle, high = decision.steps_to_target
        pace = self._seconds_per_step(trace)
        return {
            "run": trace.name,
            "points": len(trace),
            "step": last,
            "loss": float(trace.loss[-1]),
            "verdict": decision.verdict,
            "probability": decision.probability,
            "stop": stop,
            "reason": decision.reason,
            "steps_q10": low,
            "steps_q50": middle,
            "steps_q90": high,
            "seconds_q10": low * pace,
            "seconds_q50": middle * pace,
            "seconds_q90": high * pace,
            "forecast": {
                "step": end,
                "median": float(ahead.median[-1]),
                "q10": float(ahead.quantile(0.1)[-1]),
                "q90": float(ahead.quantile(0.9)[-1]),
                "status": ahead.status,
            },
            "notes": list(trace.notes),
            "_seen": trace.loss,
            "_ahead": ahead.median,
        }

    def _seconds_per_step(self, trace: gp.Trace) -> float:
        """By the clock of the log, over its later half; else by ours, since the first look."""
        if trace.wall_seconds is not None:
            known = np.flatnonzero(np.isfinite(trace.wall_seconds))[-(len(trace) + 1) // 2 - 1 :]
            if known.size > 1:
                first, last = known[0], known[-1]
                seconds = trace.wall_seconds[last] - trace.wall_seconds[first]
                if seconds > 0:
                    return float(seconds / (trace.step[last] - trace.step[first]))
        now, step = time.monotonic(), float(trace.step[-1])
        began, at = self._began.setdefault(trace.name, (now, step))
        return (now - began) / (step - at) if step > at else math.nan

    def decided(self) -> bool:
        """Whether no run has anything left to gain."""
        return all(row["stop"] for row in self._rows.values())

    def code(self) -> int:
        """Give the exit code: whether stopping a run is advised."""
        lost = any(row["stop"] and row["verdict"] != "reached" for row in self._rows.values())
        return WARNING if lost else ANSWER

    def show(self, trouble: str) -> Group:
        """Draw the view: first the runs that should be stopped."""
        texts = []
        for row in sorted(self._rows.values(), key=lambda row: not row["stop"]):
            name = Text.assemble((row["run"] or self._log, "bold"), _position(row))
            verdict = (row["verdict"], _COLOURS[row["verdict"]])
            texts += [name, Text.assemble(_spark(row["_seen"], row["_ahead"]), "  ", verdict)]
            texts += [Text(f"  {sentence}") for sentence in _sentences(row)]
            texts += [Text(f"  {note}", style="dim") for note in row["notes"]]
        if trouble:
            texts.append(Text(f"waiting: {trouble}", style="yellow"))
        return Group(*texts)


def _position(row: dict[str, Any]) -> str:
    return f": step {row['step']:g}, loss {row['loss']:.4g}"


def _sentences(row: dict[str, Any]) -> list[str]:
    """Say what is to be expected of a run."""
    sentences = [row["reason"]]
    if row["verdict"] in ("will_reach", "unknown") and math.isfinite(row["steps_q10"]):
        at = [row["step"] + row[f"steps_{q}"] for q in ("q50", "q10", "q90")]
        middle, low, high = (f"{step:.0f}" if math.isfinite(step) else "never" for step in at)
        left = f", {_time(row['seconds_q50'])} from now" if _time(row["seconds_q50"]) else ""
        sentences.append(f"target at step {middle} ({low} to {high}){left}")
    ahead = row["forecast"]
    law = f"{ahead['mean']:.4g} ({ahead['q10']:.4g} to {ahead['q90']:.4g})"
    return [*sentences, f"forecast at step {ahead['step']:g}: {law}"]


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only the picture needs."""
    return {key: value for key, value in row.items() if key[0] != "_"}


def _line(row: dict[str, Any]) -> str:
    return "; ".join([f"{row['run']}{_position(row)}, {row['verdict']}", *_sentences(row)])


def _time(seconds: float) -> str:
    if not math.isfinite(seconds):
        return ""
    days, rest = divmod(round(seconds), 86400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def _spark(seen: Iterable[float], ahead: Iterable[float]) -> Text:
    """Draw the curve in a row of bars, what is forecast in another colour."""
    past = np.asarray(seen, dtype=float)
    pieces = np.array_split(past, min(_SEEN_BARS, past.size))
    finite = [piece[np.isfinite(piece)] for piece in pieces]
    levels = [float(np.median(piece)) if piece.size else math.nan for piece in finite]
    levels += [float(value) for value in ahead]
    known = [level for level in levels if math.isfinite(level)]
    if not known:
        return Text("")
    low, span = min(known), (max(known) - min(known)) or 1.0
    bars = "".join(
        _BARS[round((level - low) / span * (len(_BARS) - 1))] if math.isfinite(level) else " "
        for level in levels
    )
    return Text.assemble(bars[: len(pieces)], (bars[len(pieces) :], "cyan"))
