# SPDX-License-Identifier: Apache-2.0
"""glidepath on a real Slurm: three tiers on this machine, real training runs, real signals."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onebox
import pytest

import glidepath
from glidepath.engines.slurm import DecisionLog, LogError, Pilot, PilotOptions, Slurm

TIERS = "bronze=1,silver=2,gold=4"
SPEEDS = {"bronze": 1.0, "silver": 2.0, "gold": 4.0}
TRAIN = Path(onebox.__file__).with_name("train.py")


@pytest.fixture(scope="module")
def box() -> Iterator[onebox.OneBox]:
    missing = onebox.missing_programs()
    if missing:
        how = "apt-get install --no-install-recommends slurmctld slurmd slurm-client munge"
        sentence = f"no Slurm on this machine ({', '.join(missing)} missing): {how}"
        if os.environ.get("CI"):
            pytest.fail(sentence)
        pytest.skip(sentence)
    gpus = {"bronze": 2, "silver": 2, "gold": 1}
    # /tmp: a short socket path.
    with tempfile.TemporaryDirectory(prefix="onebox", dir="/tmp") as folder, ExitStack() as stack:
        try:
            running = stack.enter_context(onebox.onebox(Path(folder), gpus))
        except RuntimeError as error:  # such as a chroot without /sys, which slurmd reads
            pytest.skip(f"Slurm does not start on this machine: {error}")
        yield running


@pytest.fixture(autouse=True)
def _talk_to_the_box(box: onebox.OneBox, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATH", "SLURM_CONF"):
        monkeypatch.setenv(name, box.environment[name])
    monkeypatch.setenv("PYTHONPATH", str(Path(glidepath.__file__).parents[1]))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")


@dataclass
class Work:
    """A job of the queue that both schedulers get, and what became of it."""

    name: str
    partition: str
    budget: int
    comment: str
    id: str = ""
    submitted: float = 0.0
    ended: float = 0.0
    waited: float = 0.0
    nodes: list[str] = field(default_factory=list)


ANY = "tiers=bronze,silver,gold checkpoint=usr1"


def queue() -> list[Work]:
    """Nine runs, the longest first, as users submit them; the noise of the labels is 0.1."""

    def request(target: float, budget: int, rest: str) -> str:
        return f"glidepath target={target} budget={budget} {rest}"

    up = "tiers=bronze,silver checkpoint=usr1"
    return [
        Work("climber", "bronze", 1000, request(0.205, 1000, up)),
        Work("hopeless", "bronze", 800, request(0.05, 800, "tiers=bronze")),
        Work("a", "bronze", 400, request(0.4, 400, "tiers=bronze,gold checkpoint=usr1")),
        Work("b", "bronze", 400, request(0.4, 400, "tiers=bronze,gold checkpoint=usr1")),
        Work("c", "bronze", 400, request(0.4, 400, "tiers=bronze,gold checkpoint=usr1")),
        Work("d", "bronze", 400, request(0.4, 400, "tiers=bronze,gold checkpoint=usr1")),
        Work("e", "silver", 400, request(0.4, 400, "tiers=silver")),
        Work("vain", "silver", 2000, request(0.05, 2000, "tiers=silver")),
        Work("f", "gold", 600, request(0.4, 600, "tiers=gold")),
    ]


def submit(box: onebox.OneBox, folder: Path, works: Sequence[Work]) -> None:
    """Put the jobs in the queue, held, then let them all go at once."""
    folder.mkdir()
    script = folder / "train.sbatch"
    script.write_text(
        "#!/bin/bash\n"
        "#SBATCH --gres=gpu:1 --requeue --open-mode=append --time=10 --hold\n"
        f"exec {shlex.quote(sys.executable)} {shlex.quote(str(TRAIN))} "
        '--budget "$1" --step-s 0.02 --seed "$2"\n'
    )
    for seed, work in enumerate(works):
        options = [f"--partition={work.partition}", f"--job-name={work.name}"]
        work.id = box.command(
            "sbatch", "--parsable", f"--chdir={folder}", *options, f"--comment={work.comment}",
            str(script), str(work.budget), str(seed),
        ).strip()  # fmt: skip
    box.command("scontrol", "release", ",".join(work.id for work in works))
    for work in works:
        work.submitted = time.monotonic()


def watch(works: Sequence[Work], seconds: float = 240) -> None:
    """Look at the queue until all is done, adding up who waits and who ended."""
    engine, end = Slurm(tiers=SPEEDS), time.monotonic() + seconds
    before = time.monotonic()
    while not all(work.ended for work in works):
        assert time.monotonic() < end, [work.name for work in works if not work.ended]
        jobs = {job.id: job for job in engine.read().jobs}
        now = time.monotonic()
        for work in works:
            job = jobs.get(work.id)
            if work.ended:
                continue
            if job is None or job.state not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING"):
                work.ended = now
            elif job.state != "RUNNING":
                work.waited += now - before
            elif job.nodes[0] not in work.nodes[-1:]:
                work.nodes.append(job.nodes[0])
        before = now
        time.sleep(0.1)


@contextlib.contextmanager
def pilot_process(folder: Path, log: Path) -> Iterator[subprocess.Popen[str]]:
    """`glidepath slurm run --act`, until the end of the block; killed there, it must end well."""
    command = [
        sys.executable, "-m", "glidepath", "slurm", "run", "--act",
        "--tiers", TIERS, "--log", str(log), "--round-s", "0.7", "--grace-s", "10",
        "--restart-s", "1",
    ]  # fmt: skip
    with (folder / "pilot.txt").open("a") as output:
        pilot = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, text=True)
    try:
        yield pilot
    finally:
        pilot.send_signal(signal.SIGTERM)
        code = pilot.wait(30)
    assert code in (0, -signal.SIGKILL), (folder / "pilot.txt").read_text()


def test_a_queue_of_real_runs_ends_sooner_than_under_fifo(
    box: onebox.OneBox, tmp_path: Path
) -> None:
    fifo, flown = queue(), queue()
    submit(box, tmp_path / "fifo", fifo)
    watch(fifo)
    log = tmp_path / "decisions.db"
    submit(box, tmp_path / "flown", flown)
    with pilot_process(tmp_path / "flown", log):
        watch(flown)

    def means(works: Sequence[Work]) -> tuple[float, float]:
        times = [work.ended - work.submitted for work in works]
        return float(np.mean(times)), sum(work.waited for work in works)

    (jct, wait), (fifo_jct, fifo_wait) = means(flown), means(fifo)
    story = f"mean JCT {fifo_jct:.1f} to {jct:.1f} s, waiting {fifo_wait:.0f} to {wait:.0f} s"
    sys.stdout.write(story + "\n")
    printed = (tmp_path / "flown" / "pilot.txt").read_text()
    assert jct < 0.9 * fifo_jct, story + "\n" + printed
    assert wait < fifo_wait, story + "\n" + printed
    # However often a job was moved, none of its steps was lost or done twice.
    for work in flown:
        steps = logged(tmp_path / "flown", work)[:, 0]
        assert steps.tolist() == list(range(1, len(steps) + 1)), work.name


def test_one_climbs_one_reaches_one_is_hopeless_and_the_log_tells_why(
    box: onebox.OneBox, tmp_path: Path
) -> None:
    """Each has GPUs to itself and time enough, so none of it depends on who comes first."""
    budget, folder, log = 4_000, tmp_path / "flown", tmp_path / "decisions.db"
    climber, reacher, hopeless = works = [
        Work(name, partition, budget, f"glidepath target={target} budget={budget} {rest}")
        for name, partition, target, rest in (
            ("climber", "bronze", 0.11, "tiers=bronze,silver checkpoint=usr1"),
            ("reacher", "gold", 0.4, "tiers=gold"),
            ("hopeless", "bronze", 0.05, "tiers=bronze"),
        )
    ]
    submit(box, folder, works)
    engine = Slurm(tiers=SPEEDS)

    def all_run() -> bool:
        jobs = engine.reread([work.id for work in works]).values()
        return [job.state for job in jobs] == ["RUNNING"] * len(works)

    def climbed() -> bool:
        job = engine.reread([climber.id])[climber.id]
        return job.state == "RUNNING" and job.nodes[0] == "silver0"

    def goes_on(after: int) -> bool:
        return len(logged(folder, climber)) > after

    try:
        # Else the first round may place the climber on silver before it starts.
        onebox.wait_until(all_run, 60, "the start of all three")
        with pilot_process(folder, log) as pilot:
            onebox.wait_until(lambda: told(log, "checkpoint"), 60, "the first move")
            pilot.kill()
        with pilot_process(folder, log):
            onebox.wait_until(climbed, 60, "the climb to silver")
            onebox.wait_until(lambda: goes_on(len(logged(folder, climber))), 60, "steps on silver")
            for work in (reacher, hopeless):
                onebox.wait_until(
                    lambda work=work: work.id not in queued(box), 120, f"the end of {work.name}"
                )
        with DecisionLog(log, readonly=True) as book:
            events = {work.name: book.events(work.id) for work in works}
            assert book.interrupted() == []
        printed = (folder / "pilot.txt").read_text()

        # A hopeless job is cancelled early, and the log says on what odds.
        assert logged(folder, hopeless)[-1, 0] < budget, printed
        stop = [event for event in events["hopeless"] if event.kind == "stop"]
        phases = [event.phase for event in stop]
        # "unknown" where the kill came between the command and the note of what came of it.
        assert phases[-2:] in (["intended", "done"], ["intended", "unknown"])
        assert phases.count("done") <= 1
        assert stop[0].why.startswith("reaches 0.05 by step 4 000 with probability ")
        # A job that reached its target stops.
        assert logged(folder, reacher)[-1, 1] <= 0.4
        assert logged(folder, reacher)[-1, 0] < budget
        assert any("reached 0.4 by step" in event.why for event in events["reacher"])
        # The climber goes on from its checkpoint: no step lost, none repeated.
        steps = logged(folder, climber)[:, 0]
        assert steps.tolist() == list(range(1, len(steps) + 1))
        with np.load(folder / f"model-{climber.id}.npz") as saved:
            assert 0 < saved["step"] <= len(steps)
        kinds = [(event.kind, event.phase) for event in events["climber"]]
        assert ("checkpoint", "done") in kinds or ("checkpoint", "unknown") in kinds
        assert ("place", "done") in kinds or ("place", "unknown") in kinds
        # `why` tells it to a person.
        why = subprocess.run(
            [sys.executable, "-m", "glidepath", "slurm", "why",
             climber.id, "--log", str(log)], capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert "silver" in why
        assert "scancel --signal=USR1" in why
    finally:
        box.command("scancel", *(work.id for work in works))
        onebox.wait_until(lambda: not queued(box), 30, "the queue empties")


def queued(box: onebox.OneBox) -> list[str]:
    return box.command("squeue", "-h", "--format=%A").split()


def logged(folder: Path, work: Work) -> np.ndarray:
    """Steps and losses of the lines that the job wrote whole so far."""
    text = (folder / f"glidepath-{work.id}.csv").read_text()
    rows = [line.split(",")[:2] for line in text.split("\n")[1:-1]]
    return np.array(rows, dtype=float).reshape(-1, 2)


def told(log: Path, kind: str) -> bool:
    with contextlib.suppress(LogError), DecisionLog(log, readonly=True) as book:
        return any(event.kind == kind for event in book.events())
    return False


def sleeper(box: onebox.OneBox, folder: Path, *options: str) -> str:
    """A job that takes part, has no log, and only waits."""
    script = folder / "sleep.sbatch"
    script.write_text("#!/bin/bash\nsleep 600\n")
    return box.command(
        "sbatch", "--parsable", "--gres=gpu:1", f"--chdir={folder}", *options, str(script)
    ).strip()


def new_pilot(folder: Path, **engine: object) -> Pilot:
    options = PilotOptions(mode="act", round_s=60)
    return Pilot(Slurm(tiers=SPEEDS, **engine), folder / "log.db", options)  # type: ignore[arg-type]


def test_levers_do_what_the_engine_believes(box: onebox.OneBox, tmp_path: Path) -> None:
    """Move a waiting job, defer two, write into their comments: as squeue then says."""
    engine = Slurm(tiers=SPEEDS)
    others = [
        sleeper(box, tmp_path, "--partition=bronze", "--comment=do not glidepath") for _ in range(3)
    ]
    ours: list[str] = []
    try:
        onebox.wait_until(
            lambda: [engine.reread(others)[i].state for i in others].count("RUNNING") == 2,
            30,
            "bronze is full",
        )
        ours += [
            sleeper(box, tmp_path, "--partition=bronze", "--comment=glidepath tiers=gold")
            for _ in range(3)
        ]
        before = engine.reread(others)
        result = new_pilot(tmp_path).round()
        assert result.trouble == ""
        assert {outcome.status for outcome in result.outcomes} == {"done"}
        onebox.wait_until(
            lambda: "RUNNING" in {job.state for job in engine.reread(ours).values()}, 30, "one runs"
        )
        seen = engine.reread([*ours, *others])
        (first,) = [seen[i] for i in ours if seen[i].state == "RUNNING"]
        assert first.nodes == ("gold0",)
        # The others wait for a time that will come by itself, should nobody come back.
        waiting = [seen[i] for i in ours if seen[i].state == "PENDING"]
        assert all(time.time() + 30 < job.eligible_s < time.time() + 300 for job in waiting)
        assert not any(job.held for job in waiting)
        for other in others:
            assert seen[other].same_situation(before[other])
            assert seen[other].comment == "do not glidepath"
        again = new_pilot(tmp_path).round()
        assert {action.kind for action in again.actions} == {"annotate"}
        assert {outcome.status for outcome in again.outcomes} == {"done"}
        noted = engine.reread(ours)
        assert all(job.comment.startswith("glidepath tiers=gold | ") for job in noted.values())
    finally:
        box.command("scancel", *ours, *others)
        onebox.wait_until(lambda: not queued(box), 30, "the queue empties")


def test_the_controller_goes_away_is_slow_and_comes_back(
    box: onebox.OneBox, tmp_path: Path
) -> None:
    job = sleeper(box, tmp_path, "--partition=silver", "--comment=glidepath tiers=silver")
    engine = Slurm(tiers=SPEEDS)
    try:
        onebox.wait_until(
            lambda: engine.reread([job])[job].state == "RUNNING", 30, "the job starts"
        )
        pilot = new_pilot(tmp_path, timeout_s=4.0)
        box.stop_controller()
        away = pilot.round()
        assert "squeue" in away.trouble or "sinfo" in away.trouble
        assert away.actions == ()
        box.start_controller()
        onebox.wait_until(lambda: pilot.round().trouble == "", 30, "the pilot goes on")
        assert engine.reread([job])[job].state == "RUNNING"

        patient = new_pilot(tmp_path)
        box.signal_controller(signal.SIGSTOP)
        awake = threading.Timer(10, box.signal_controller, [signal.SIGCONT])
        awake.start()
        try:
            result = patient.round()
        finally:
            awake.join()
        assert result.trouble == ""
        assert result.seconds["read"] > 5
        assert engine.reread([job])[job].state == "RUNNING"
    finally:
        box.command("scancel", job)
        onebox.wait_until(lambda: not queued(box), 30, "the queue empties")
