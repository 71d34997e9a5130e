# SPDX-License-Identifier: Apache-2.0
"""Long calls of the compiled part: Ctrl-C ends them, a fork survives them, threads are limited."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath import _core

LATE_S = 1.0  # of this process from the signal to the exception, however busy others are; mostly .1
STEPS = np.arange(1.0, 257.0)


def losses(rows: int, points: int = 256) -> np.ndarray:
    rng = np.random.default_rng(1)
    return 1 + np.arange(1.0, points + 1) ** -0.5 + 0.05 * rng.normal(size=(rows, points))


def traces(rows: int) -> list[gp.Trace]:
    return [gp.Trace(STEPS, loss, planned_steps=2000) for loss in losses(rows)]


def queue(jobs: int) -> gp.Workload:
    rng = np.random.default_rng(2)
    columns = {
        "job": np.arange(jobs), "submit_s": np.sort(rng.integers(0, 10 * jobs, jobs)),
        "gpus": rng.integers(1, 8, jobs), "duration_s": rng.integers(10, 10_000, jobs),
    }  # fmt: skip
    return gp.Workload([gp.Tier("a", 8, 8)], columns)


def round_of(jobs: int) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    options = 8 * jobs
    gpus = rng.integers(1, 9, options)
    return {
        "job": np.repeat(np.arange(jobs), 8), "tier": rng.integers(0, 4, options), "gpus": gpus,
        "value": gpus * rng.random(options), "capacity": [jobs // 2] * 4,
        "user": np.repeat(rng.integers(0, 500, jobs), 8), "user_quota": [8] * 500, "gap": 0.0,
    }  # fmt: skip


def fit_from_many_starts() -> None:
    gp.fit(gp.Trace(np.arange(1.0, 20_001.0), losses(1, 20_000)[0]), robust=True, starts=1000)


def many_points() -> gp.Trace:
    return gp.Trace(np.arange(1.0, 2_000_001.0), losses(1, 2_000_000)[0])


CALLS: dict[str, Callable[[], Callable[[], object]]] = {
    "fit": lambda: fit_from_many_starts,
    "fit of many points": lambda: (
        lambda run: lambda: gp.fit(run, family="powexp")
    )(many_points()),
    "fit_batch on shared steps": lambda: (
        lambda rows: lambda: gp.fit_batch(STEPS, rows, family="mmf4", threads=2)
    )(losses(100_000)),
    "fit_batch on own steps": lambda: (
        lambda runs: lambda: gp.fit_batch(runs, robust=True, threads=2)
    )(traces(2000)),
    "fit_batch on one thread": lambda: (
        lambda runs: lambda: gp.fit_batch(runs, robust=True, threads=1)
    )(traces(2000)),
    "forecast_batch": lambda: (
        lambda rows: lambda: gp.forecast_batch(STEPS, rows, [500.0, 2000.0], threads=2)
    )(losses(50_000)),
    "reach_batch": lambda: (
        lambda runs: lambda: gp.reach_batch(runs, 1.01, budgets=2000, threads=2)
    )(traces(20_000)),
    "PastRuns": lambda: (lambda runs: lambda: gp.PastRuns(runs))(traces(20_000)),
    "simulate": lambda: (lambda work: lambda: gp.simulate(work, "best_value"))(queue(20_000)),
    "simulate by rounds": lambda: (
        lambda work: lambda: gp.simulate(work, "max_min")
    )(queue(20_000)),
    "simulate by sessions": lambda: (
        lambda work: lambda: gp.simulate(work, "dare", session_s=60.0)
    )(queue(50_000)),
    "compare": lambda: (
        lambda work: lambda: gp.compare(work, ["best_value", "max_min"], seeds=4, threads=2)
    )(queue(20_000)),
    "solve_round": lambda: (
        lambda given: lambda: [gp.solve_round(**given) for _ in range(20)]
    )(round_of(30_000)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_a_long_call(name: str) -> None:
    call = CALLS[name]()
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, interrupt)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
        late = time.process_time() - sent[0]
    finally:
        timer.cancel()
        timer.join()
    assert late < LATE_S, f"{name}: {late:.3f} s after the signal"


@pytest.mark.parametrize("after_s", [0.02, 0.3])  # sooner than the library asks of itself, later
def test_ctrl_c_ends_the_wait_for_the_writer_of_a_pipe(after_s: float, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    timer = threading.Timer(after_s, lambda: os.kill(os.getpid(), signal.SIGINT))

    def wait() -> None:
        timer.start()
        gp.read_pairs(tmp_path / "pipe")

    try:
        with pytest.raises(KeyboardInterrupt):
            wait()
    finally:
        timer.cancel()
        timer.join()


def test_the_handler_of_a_signal_may_call_the_library_and_the_call_goes_on() -> None:
    rows = losses(20_000)
    alone = gp.forecast_batch(STEPS, rows, [500.0], threads=2)
    trace, seen = traces(1)[0], []

    def handler(*_: object) -> None:
        median = gp.forecast(trace, [300.0], levels=[0.25]).median[0]
        sigma = gp.fit_batch(STEPS, rows[:200], family="pow3", threads=2).sigma[0]
        seen.append((float(median), float(sigma)))
        signal.setitimer(signal.ITIMER_REAL, 0.1)  # not while it is still at work

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        while len(seen) < 2:
            found = gp.forecast_batch(STEPS, rows, [500.0], threads=2)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len({*seen}) == 1
    assert found.quantiles.tobytes() == alone.quantiles.tobytes()


def test_fits_that_the_handler_of_a_signal_makes_leave_the_fit_of_a_call_as_it_is() -> None:
    run, small = many_points().until(200_000), traces(1)[0]
    alone = gp.fit(run, family="powexp"), gp.fit(small, family="powexp")
    seen = []

    def handler(*_: object) -> None:
        seen.append(gp.fit(small, family="powexp"))
        signal.setitimer(signal.ITIMER_REAL, 0.02)  # not while it is still at work

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        found = gp.fit(run, family="powexp")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen
    assert [found, *seen] == [alone[0], *[alone[1]] * len(seen)]


@pytest.mark.parametrize("policy", ["fifo", "best_value", "max_min"])
def test_what_a_callback_raises_leaves_the_call(policy: str) -> None:
    class EnoughError(Exception):
        pass

    def stop(*_: object) -> None:
        raise EnoughError

    work = queue(50)
    for option in ({"progress": stop}, {"stream": stop}):
        with pytest.raises(EnoughError):
            gp.simulate(work, policy, **option)  # type: ignore[arg-type]
    with pytest.raises(EnoughError):
        gp.compare(work, [policy], seeds=3, progress=stop)
    assert gp.simulate(work, policy) == gp.simulate(work, policy)  # it was no one's loss


FORK = """
import os, signal, sys
import numpy as np
import glidepath as gp
x = np.arange(1., 65)
rows = np.random.default_rng(0).random((4000, 64))
first = gp.fit_batch(x, rows, family="pow3", threads=2)
child = os.fork()
again = gp.fit_batch(x, rows, family="pow3", threads=2)
ahead = gp.forecast_batch(x, rows[:100], [100.], threads=2)
assert again.sigma.tobytes() == first.sigma.tobytes()
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""

POOL = """
import multiprocessing
import numpy as np
import glidepath as gp
x = np.arange(1., 65)
rows = np.random.default_rng(0).random((4000, 64))
def sigma(row):
    return gp.fit_batch(x, rows[row:], family="pow3", threads=2).sigma[0]
if __name__ == "__main__":
    here = [sigma(i) for i in range(4)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(sigma, range(4)) == here
"""

NO_ROOM = """
import resource, sys
import numpy as np
import glidepath as gp
x = np.arange(1., 9)
rows = np.random.default_rng(0).random((20_000, 8))
one = gp.fit_batch(x, rows, family="pow2", threads=1)
pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
room = pages + (64 << 20)  # for the answer, not for the stacks of threads
resource.setrlimit(resource.RLIMIT_AS, (room, room))
many = gp.fit_batch(x, rows, family="pow2", threads=10**6)
assert many.sigma.tobytes() == one.sigma.tobytes()
"""


DAEMONS = """
import sys, threading, time
import numpy as np
import glidepath as gp
x = np.arange(1., 257)
rows = 1 + x**-.5 + .05 * np.random.default_rng(0).normal(size=(20_000, 256))
jobs = {"job": range(300), "submit_s": range(300), "duration_s": np.full(300, 50.)}
work = gp.Workload([gp.Tier("a", 8)], jobs)
calls = {
    "a batch": lambda: gp.fit_batch(x, rows, family="pow3", threads=2),
    "a forecast": lambda: gp.forecast(gp.Trace(x, rows[0]), [500.]),
    "a policy": lambda: gp.simulate(work, lambda snapshot: gp.plan(snapshot)),
    "progress": lambda: gp.simulate(work, "max_min", progress=lambda done, all: sum(range(99))),
    "a stream": lambda: gp.simulate(work, "max_min", stream=lambda span: sum(range(99))),
}
began = [threading.Event() for _ in range(3)]
def work_on(event):
    while True:
        calls[sys.argv[1]]()
        event.set()
for event in began:
    threading.Thread(target=work_on, args=(event,), daemon=True).start()
for event in began:
    event.wait()
"""


CHANGED = """
import sys, threading, time
import numpy as np
import glidepath as gp
job, tier = np.repeat(np.arange(300), 4), np.zeros(1200, int)
gpus, value = np.ones(1200, int), np.full(1200, .5)
step, at = np.arange(1., 401), np.linspace(500, 5000, 20)
loss = 1 + step**-.5 + np.zeros((60, 1))
calls = {
    "a round": lambda: gp.solve_round(job, tier, gpus, value, [100, 100, 100]),
    "a forecast": lambda: gp.forecast_batch(step, loss, at, threads=2),
}
over = threading.Event()
def change():
    kept = [(array, array.copy()) for array in (job, tier, gpus, step)]
    while not over.is_set():
        for wrong in (np.nan, 2**40, -1, 0):
            for array, copy in kept:
                if array.dtype == float or not np.isnan(wrong):
                    array[:] = wrong
                    array[:] = copy
def call():
    while not over.is_set():
        try:
            calls[sys.argv[1]]()
        except gp.InputError:
            pass
threads = [threading.Thread(target=target) for target in (change, call, call)]
for thread in threads:
    thread.start()
time.sleep(5)
over.set()
"""


@pytest.mark.parametrize("call", ["a round", "a forecast"])
def test_arrays_that_another_thread_changes_meanwhile_break_no_process(call: str) -> None:
    command = [sys.executable, "-c", CHANGED, call]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("call", ["a batch", "a forecast", "a policy", "progress", "a stream"])
def test_a_daemon_thread_that_is_in_a_call_lets_the_interpreter_end(call: str) -> None:
    command = [sys.executable, "-c", DAEMONS, call]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")


LOOP_OF_ANOTHER = """
import ctypes, os, signal, sys
import numpy as np
import glidepath as gp
try:
    openmp = ctypes.CDLL("libgomp.so.1")
except OSError:
    sys.exit()
x = np.arange(1., 65)
rows = np.random.default_rng(0).random((4000, 64))
loop = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
openmp.GOMP_parallel(loop, None, 2, 0)
child = os.fork()
if child == 0:
    signal.alarm(60)
    two = gp.fit_batch(x, rows, family="pow3", threads=2)
    one = gp.fit_batch(x, rows, family="pow3", threads=1)
    os._exit(two.sigma.tobytes() != one.sigma.tobytes())
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    "script",
    [FORK, POOL, NO_ROOM, LOOP_OF_ANOTHER],
    ids=["fork", "pool", "no room", "loop of another"],
)
def test_a_batch_outlives_a_fork_and_a_lack_of_threads(script: str, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(script)
    command = [sys.executable, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


PIPE = """
import os, sys, threading
import glidepath as gp
pipe, kept = sys.argv[1:]
os.mkfifo(pipe)
gp.write_learned_values(gp.learned_values(), kept)
def fill():
    with open(pipe, "wb") as file:
        file.write(open(kept, "rb").read())
for read in gp.read_learned_values, gp.read_pairs:
    filling = threading.Thread(target=fill)
    filling.start()
    try:
        assert read(pipe).tolist() == gp.learned_values().tolist()
    except gp.IoError as error:
        print(error)
    filling.join()
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_another_thread_may_fill_the_pipe_that_a_call_reads(tmp_path: Path) -> None:
    pipe, kept = tmp_path / "pipe", tmp_path / "kept"
    command = [sys.executable, "-c", PIPE, str(pipe), str(kept)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{pipe}:1: no column 'gpu'")


SETTINGS = """
import os
import numpy as np
cores = len(os.sched_getaffinity(0))
import glidepath as gp
x = np.arange(1., 65)
rows = np.random.default_rng(0).random((4000, 64))
many = gp.fit_batch(x, rows, family="pow3")
assert many.sigma.tobytes() == gp.fit_batch(x, rows, family="pow3", threads=1).sigma.tobytes()
print(gp._core.available_threads() / cores)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks for the cores of a process")
@pytest.mark.parametrize(
    ("setting", "threads"),  # of each core
    [
        ("OMP_NUM_THREADS=0", 1),
        ("OMP_NUM_THREADS=many", 1),
        ("OMP_NUM_THREADS=100000", 4),
        ("OMP_PROC_BIND=true", 1),
        ("OMP_STACKSIZE=16", 1),
        ("OMP_STACKSIZE=900 G", 1),
    ],
)
def test_whatever_the_environment_says_of_threads_a_batch_is_computed(
    setting: str, threads: int
) -> None:
    name, _, value = setting.partition("=")
    left = {key: text for key, text in os.environ.items() if not key.startswith("OMP_")}
    command = [sys.executable, "-c", SETTINGS]
    done = subprocess.run(
        command, env={**left, name: value}, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"{threads:.1f}\n"), done.stderr


def test_one_environment_is_refused_to_a_second_thread() -> None:
    batch = _core.EnvironmentBatch(
        [queue(3000)._record], 1, _core.SimulationOptions(), 8, 4, 0.0, 3600.0
    )
    seen = np.zeros((1, batch.observation_size), np.float32)
    mask = np.zeros((1, batch.actions), np.uint8)
    weights, reward, over = np.ones((1, batch.actions)), np.zeros(1), np.zeros(1, np.uint8)
    batch.reset(0, 0, seen, mask)
    said: list[str] = []

    def play() -> None:
        for _ in range(20):
            try:
                batch.weigh(weights, seen, reward, over, mask)
            except gp.InputError as error:
                said.append(str(error))

    threads = [threading.Thread(target=play) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {*said} == {"environment: one call at a time, another thread is in it"}


def test_a_watch_may_be_added_to_while_another_thread_decides() -> None:
    watch = gp.Watch(target=0.5, budget=1e6)
    for step in range(1, 200):
        watch.add(step, 1 + step**-0.5)
    errors: list[BaseException] = []
    going = threading.Event()

    def decide() -> None:
        try:
            while not going.is_set():
                watch.decision()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=decide) for _ in range(2)]
    for thread in threads:
        thread.start()
    for step in range(200, 60_000):
        watch.add(step, 1 + step**-0.5)
    going.set()
    for thread in threads:
        thread.join()
    assert errors == []
