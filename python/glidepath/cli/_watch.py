# SPDX-License-Identifier: Apache-2.0
"""`glidepath watch`: a growing log, read again and again, and a verdict on each of its runs."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterable
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

import glidepath as gp
from glidepath import _words
from glidepath._answer import (
    best_in_words,
    best_keys,
    decision_keys,
    forecast_cells,
    forecast_keys,
    quantile_keys,
    run_keys,
    when,
)
from glidepath._core import reached_by_name
from glidepath._follow import EVERY_S, by_name
from glidepath._horizon import horizon, in_words, outlook
from glidepath._json import plain
from glidepath._judge import rule
from glidepath._results import counted
from glidepath._trace import pace
from glidepath._verdicts import meaning
from glidepath._watch import ALPHA
from glidepath.cli._console import (
    ANSWER,
    WARNING,
    emit,
    hint,
    say,
    shown,
    stderr,
    stdout,
    wide_stdout,
    with_cursor,
)
from glidepath.cli._inputs import begins_at_target, doubt_target, learned, no_run
from glidepath.cli._options import (
    Budget,
    Json,
    Log,
    Lr,
    Metric,
    Past,
    Pattern,
    ReachedBy,
    Run,
    Target,
    check_budget,
    check_reached_by,
    planned_lr,
)

_BARS = "▁▂▃▄▅▆▇█"
_SEEN_BARS, _AHEAD_BARS = 24, 12


def watch(
    file: Log,
    target: Target = None,
    reached_by: ReachedBy = None,
    budget: Budget = None,
    run: Run = None,
    lr: Lr = None,
    past: Past = None,
    metric: Metric = None,
    pattern: Pattern = None,
    every_s: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            metavar="SECONDS",
            help=f"Time between two looks at the log; default: {EVERY_S:g}.",
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            metavar="RATE",
            help=f"Error rate of the verdicts will_reach and never; default: {ALPHA:g}.",
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
    until_decided: Annotated[
        bool, typer.Option("--until-decided", help="End when every run is reached or lost.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Watch a growing log: forecast, verdict, probability and time left of each run.

    The command waits for a log that does not exist yet. In a terminal the view is kept up to date
    until Ctrl-C; elsewhere each change is a line, with --json one JSON document a line. Without
    --budget a run may go on to the step at which its log says that it ends, else to the end of
    --lr, else to ten times the steps seen. The answer says which.
    """
    check_budget(budget)
    check_reached_by(reached_by, target)
    if alpha is not None and target is None:
        raise gp.InputError(f"--alpha {alpha:g}: say with --target what is to be reached")
    if once and (until_decided or every_s is not None):
        flag = "--until-decided" if until_decided else f"--every-s {every_s:g}"
        raise gp.InputError(f"{flag} is for more than one look: leave --once out")
    live = [] if past is None else _there_now(file, run, metric, pattern)
    runs = learned(past, metric, pattern, live, quiet=True)  # each run says how many it has
    error_rate = ALPHA if alpha is None else alpha
    view = _View(file, target, budget, run, error_rate, runs, lr, reached_by)
    follow = gp.Follow(file, metric=metric, pattern=pattern, every_s=every_s or EVERY_S)
    if once:
        return _once(view, follow, file, run, as_json=as_json)
    if stdout.is_terminal and not as_json:
        return _in_terminal(view, follow, until_decided=until_decided)
    return _in_lines(view, follow, until_decided=until_decided, as_json=as_json)


def _there_now(
    file: str, run: str | None, metric: str | None, pattern: str | None
) -> list[gp.Trace]:
    """Read the runs that are watched, as far as there are any yet."""
    try:
        found = gp.read_traces(file, metric=metric, pattern=pattern)
    except (gp.InputError, gp.IoError):  # the watch waits for it and says so
        return []
    return [trace for trace in found if run in (None, trace.name)]


def _once(view: _View, follow: gp.Follow, file: str, run: str | None, *, as_json: bool) -> int:
    changed = view.look(follow)
    if not changed and follow._unfinished:  # unless it stays so: then its writer has gone
        follow.wait()
        changed = view.look(follow)
    if not changed:
        raise gp.IoError(view.trouble(follow) or no_run(file, run, follow.traces))
    if as_json:
        emit([_public(row) for row in changed])
    else:
        wide_stdout().print(view.show(""))
        hint(*("--target VALUE for a verdict",) * (not view.has_target))
    return view.code()


def _in_terminal(view: _View, follow: gp.Follow, *, until_decided: bool) -> int:
    """Keep one view up to date."""
    live = Live(console=stdout, auto_refresh=False)
    with with_cursor(live):
        view.look(follow)
        while not (until_decided and view.decided()):
            live.update(view.show(view.trouble(follow)), refresh=True)
            follow.wait()
            view.look(follow)
        live.update(view.show(""), refresh=True)
    return view.code()


def _in_lines(view: _View, follow: gp.Follow, *, until_decided: bool, as_json: bool) -> int:
    """Print a line for each change."""
    trouble = ""
    while True:
        changed = view.look(follow)
        for row in changed:
            text = json.dumps(plain(_public(row)), allow_nan=False) if as_json else _line(row)
            sys.stdout.write(text + "\n")
        sys.stdout.flush()
        if view.trouble(follow) != trouble:
            trouble = view.trouble(follow)
            if trouble:
                say(f"waiting: {trouble}", to=stderr)
        if until_decided and view.decided():
            return view.code()
        follow.wait()


class _View:
    """The runs of a log: a row of numbers for each."""

    def __init__(
        self,
        log: str,
        target: float | None,
        budget: float | None,
        run: str | None,
        alpha: float,
        past: gp.PastRuns | None,
        lr: str | None,
        reached_by: str | None,
    ) -> None:
        self._log, self._run, self._past = log, run, past
        self._lr, self._plan = lr, planned_lr(lr)
        self.has_target = target is not None
        self._asked: dict[str, Any] = {"target": target, "alpha": alpha}
        self._budget = budget
        self._reached_by = reached_by
        # Refuses bad options before the command waits.
        gp.Watch(**self._asked)
        gp.Watch(target=0.0, budget=budget)  # forecasts look at it without a target, too
        # Runs of several files may share a name: each by it and its number among them.
        self._rows: dict[tuple[str, int], dict[str, Any]] = {}
        self._began: dict[tuple[str, int], tuple[float, float]] = {}
        self._absent: set[tuple[str, int]] = set()
        self._doubted: set[tuple[str, int]] = set()

    def look(self, follow: gp.Follow) -> list[dict[str, Any]]:
        """Look at the log again; give the runs that changed, and drop those that are gone."""
        new = {id(trace) for trace in follow.poll()}
        runs, changed = by_name(follow.traces), []
        begun_there: list[gp.Trace] = []  # at the target, and not yet doubted
        if not follow.trouble:
            self._drop({key for key in self._rows if key not in runs})
        watched = {key: run for key, run in runs.items() if self._run in (None, run.name)}
        news = {key: run for key, run in watched.items() if id(run) in new and len(run)}
        past = self._past.without(*watched.values()) if self._past is not None and news else None
        for key, trace in news.items():
            self._rows[key] = self._row(key, trace, past)
            changed.append(self._rows[key])
            if key not in self._doubted and begins_at_target(trace, self._rows[key]):
                self._doubted.add(key)
                begun_there.append(trace)
        doubt_target(begun_there, self._asked["target"])
        return changed

    def trouble(self, follow: gp.Follow) -> str:
        """Say what the view waits for: a log, or its run, which may be yet to come."""
        names = {trace.name for trace in follow.traces}
        if follow.trouble or self._run is None or not names or self._run in names:
            return follow.trouble
        return no_run(self._log, self._run, follow.traces)

    def _drop(self, missing: set[tuple[str, int]]) -> None:
        """Drop runs that two looks did not find: one may see a file that is being rewritten."""
        for key in missing & self._absent:
            del self._rows[key]
            self._began.pop(key, None)
            self._doubted.discard(key)
        self._absent = missing

    def _row(
        self, key: tuple[str, int], trace: gp.Trace, past: gp.PastRuns | None
    ) -> dict[str, Any]:
        given = None if self._plan is None else f"--lr {self._lr}"
        plan = horizon(trace, budget=self._budget, schedule=self._plan, schedule_from=given)
        reached_by = self._reached_by or reached_by_name(trace.metric)
        seen = rule(trace, plan, past=past, reached_by=reached_by, **self._asked)
        ahead = outlook(trace, plan, past=past)
        best = gp.best_so_far(
            trace, budget=plan.budget, schedule=plan.schedule, past=past, reached_by=reached_by
        )
        pace, last = self._seconds_per_step(key, trace), float(trace.step[-1])
        left = [max(0.0, step - last) * pace for step in seen.reach]
        return {
            **run_keys(trace),
            **forecast_keys(ahead),
            **best_keys(best),
            **decision_keys(
                target=self._asked["target"],
                budget=plan.budget,
                reached_by=reached_by,
                verdict=seen.decision.verdict,
                probability=seen.probability,
                reason=seen.reason,
                observed_to=last,
                reach=seen.reach if self.has_target else None,
            ),
            **quantile_keys("seconds", left if self.has_target else None),
            "budget_from": plan.budget_from,
            "schedule_from": plan.schedule_from,
            "past_runs": 0 if past is None else len(past.runs),
            "stop": seen.stop,
            "_seen": trace.loss,
            "_ahead": () if ahead._is_blind else _bars_ahead(last, ahead),
        }

    def _seconds_per_step(self, key: tuple[str, int], trace: gp.Trace) -> float:
        """Take the pace from the log's clock, else from ours."""
        logged = pace(trace)
        if logged is not None:
            return 1.0 / logged
        now, step = time.monotonic(), float(trace.step[-1])
        began, at = self._began.setdefault(key, (now, step))
        return (now - began) / (step - at) if step > at else math.nan

    def decided(self) -> bool:
        """Whether there are runs, and each is reached or lost."""
        return bool(self._rows) and all(row["stop"] for row in self._rows.values())

    def code(self) -> int:
        """Give the exit code: a warning where a run is lost."""
        lost = any(row["stop"] and meaning(row["verdict"]).is_lost for row in self._rows.values())
        return WARNING if lost else ANSWER

    def show(self, trouble: str) -> Group:
        """Draw the view: first the runs that should be stopped."""
        texts: list[RenderableType] = []
        for row in sorted(self._rows.values(), key=lambda row: not row["stop"]):
            name = shown(row["run"] or self._log)
            name.stylize("bold")
            name.append_text(shown(_position(row)))
            means = meaning(row["verdict"])
            verdict = (means.words, means.style)
            texts += [name, Text.assemble(_spark(row["_seen"], row["_ahead"]), "  ", verdict)]
            texts += [_below(sentence) for sentence in _sentences(row)]
            texts += [_below(note, "dim") for note in row["notes"]]
        if trouble:
            texts.append(shown(f"waiting: {trouble}", "yellow"))
        return Group(*texts)


def _below(sentence: str, style: str = "") -> Padding:
    """Set a sentence below the name of its run, its further lines in a terminal, too."""
    return Padding(shown(sentence, style), (0, 0, 0, 2), expand=False)


def _position(row: dict[str, Any]) -> str:
    return f": step {_words.count(row['observed_to'])}, {row['metric']} {row['loss']:.4g}"


def _sentences(row: dict[str, Any]) -> list[str]:
    """Say what to expect of a run."""
    sentences = [row["reason"]]
    means = meaning(row["verdict"])
    earliest = math.inf if row["reach_q10"] is None else row["reach_q10"]
    if not (means.is_settled or means.is_lost) and math.isfinite(earliest):
        known = math.isfinite(row["seconds_q50"])
        left = f", {_words.duration(row['seconds_q50'])} from now" if known else ""
        sentences.append(f"target: {when(row)}{left}")
    sentences += [best_in_words(row), in_words(row)]
    if row["past_runs"]:
        sentences.append(f"learned from {counted(row['past_runs'], 'past run')}")
    if row["median"] is None:
        return sentences
    median, within = forecast_cells(row)
    return [*sentences, f"forecast at step {_words.count(row['at'])}: {median} ({within})"]


def _public(row: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only the picture needs."""
    return {key: value for key, value in row.items() if key[0] != "_"}


def _line(row: dict[str, Any]) -> str:
    verdict = meaning(row["verdict"]).words
    return shown("; ".join([f"{row['run']}{_position(row)}, {verdict}", *_sentences(row)])).plain


def _bars_ahead(last: float, ahead: gp.Forecast) -> Any:
    """Give the medians of a forecast at even distances."""
    even = np.linspace(last, ahead.at[-1], min(_AHEAD_BARS, len(ahead.at)) + 1)[1:]
    return np.interp(even, ahead.at, ahead.median)


def _spark(seen: Iterable[float], ahead: Iterable[float]) -> Text:
    """Draw the curve as a row of bars, its forecast in another colour."""
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
