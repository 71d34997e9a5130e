# SPDX-License-Identifier: Apache-2.0
"""Run the simulators of Tiresias and Gavel on data/traces and print what the tests compare with.

Both run as published, without a changed line:

    git clone https://github.com/SymbioticLab/Tiresias && git -C Tiresias checkout 959f9b0
    git clone https://github.com/stanford-futuredata/gavel && git -C gavel checkout c4fa400
    python3 -m venv rivals && rivals/bin/pip install numpy scipy cvxpy ecos grpcio grpcio-tools
    PATH=$PWD/rivals/bin:$PATH make -C gavel/scheduler rpc_stubs
    rivals/bin/python bench/rivals/cluster_simulators.py --gavel gavel
    rivals/bin/python bench/rivals/cluster_simulators.py --tiresias Tiresias
    rivals/bin/python bench/rivals/cluster_simulators.py --tiresias Tiresias --python python2.7

What they import but do not use is an empty module: numpy in Tiresias, numa and matrix_completion in
Gavel. Tiresias is run twice, because its 2D-LAS depends on the version of Python: the time of the
next demotion is ceil(seconds / gpus), and under Python 2 that is a division of integers. Gavel's
fair shares are computed twice, with ECOS, its default, and with SciPy's HiGHS, because a linear
program may have many optima.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np

TRACES = Path(__file__).resolve().parents[2] / "data" / "traces"
# Their names of the policies, and ours.
TIRESIAS = {
    "fifo": "fifo",
    "fjf": "first_fit",
    "sjf": "sjf",
    "shortest": "srtf",
    "shortest-gpu": "srsf",
    "dlas-gpu": "las",
}
GAVEL = {
    "fifo_perf": "fifo_perf",
    "isolated": "isolated",
    "max_min_fairness_perf": "max_min",
    "max_min_fairness": "max_min_unaware",
}
CLUSTER = {"v100": 8, "p100": 16, "k80": 24}

# Python 3 has no sys.maxint, which is all that Tiresias needs to run under it.
TIRESIAS_DRIVER = """
import runpy, sys
sys.maxint = getattr(sys, "maxint", sys.maxsize)
sys.path.insert(0, ".")
runpy.run_path("run_sim.py", run_name="__main__")
"""
# simulate_scheduler_with_trace.py, with the solver left open and the times as JSON.
GAVEL_DRIVER = """
import contextlib, json, logging, sys
sys.path.insert(0, ".")
import scheduler, utils
trace, rates, policy, solver, cluster = sys.argv[1:]
logging.disable(logging.CRITICAL)
cluster = json.loads(cluster)
jobs, arrivals = utils.parse_trace(trace)
with contextlib.redirect_stdout(sys.stderr):
    run = scheduler.Scheduler(utils.get_policy(policy, solver=solver, seed=0),
                              throughputs_file=rates, simulate=True, seed=0,
                              time_per_iteration=360)
    run.simulate(cluster, arrivals, jobs, num_gpus_per_server=dict.fromkeys(cluster, 1))
times = [run._job_completion_times[job] for job in sorted(run._job_completion_times)]
print(json.dumps([times, run._current_timestamp]))
"""


def rows(name: str) -> list[dict[str, str]]:
    """Rows of one of our traces."""
    with gzip.open(TRACES / f"{name}.csv.gz", "rt", newline="") as file:
        return list(csv.DictReader(file))


def digest(jct: list[float]) -> int:
    """CRC-32 of the completion times of all jobs, cut to seconds where none is close to a cut."""
    return zlib.crc32("".join(f"{int(seconds + 0.1)}\n" for seconds in jct).encode())


def row(policy: str, jct: list[float], makespan: float, *others: object) -> str:
    """What the tests compare with: mean, median and 95th percentile, makespan, digest."""
    figures = [np.mean(jct), np.median(jct), np.percentile(jct, 95), makespan]
    text = ", ".join([f"{figure:.3f}" for figure in figures] + [str(other) for other in others])
    return f"{policy}: {text}, {digest(jct):#010x}"


def stubs(folder: Path, *names: str) -> dict[str, str]:
    """An environment in which these modules exist and are empty."""
    for name in names:
        (folder / f"{name}.py").touch()
    return os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def tiresias(checkout: Path, python: str, work: Path) -> None:
    """Each policy on `queue480`, counting GPUs only, on 60 and on 32 of them."""
    jobs = rows("queue480")
    with (work / "jobs.csv").open("w") as file:
        file.write("job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n")
        for job in jobs:
            file.write(f"{job['job']},{job['gpus']},{job['submit_s']},1,vgg19,")
            file.write(f"{job['duration_s']},0\n")
    spec = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node"
    for nodes in (15, 8):
        (work / "cluster.csv").write_text(f"{spec}\n1,{nodes},4,128,256\n")
        for theirs, ours in TIRESIAS.items():
            subprocess.run(
                [
                    python,
                    *("-c", TIRESIAS_DRIVER, "--scheme=count", f"--schedule={theirs}"),
                    *(f"--cluster_spec={work}/cluster.csv", f"--trace_file={work}/jobs.csv"),
                    f"--log_path={work}/log",
                ],
                cwd=checkout / "simulator",
                env=stubs(work, "numpy"),
                stdout=subprocess.DEVNULL,
                check=True,
            )
            with (work / "log" / "job.csv").open(newline="") as file:
                ran = sorted(csv.DictReader(file), key=lambda job: int(job["job_id"]))
            ends = [int(job["end_time"]) for job in ran]
            submits = [int(job["submit_s"]) for job in jobs]
            jct = [float(end - submit) for end, submit in zip(ends, submits, strict=True)]
            preempted = sum(int(job["preempt"]) for job in ran)
            print(4 * nodes, row(ours, jct, max(ends) - min(submits), preempted), flush=True)


def gavel(checkout: Path, python: str, work: Path) -> None:
    """Each policy on `tiers120`: one GPU a server, rounds of 360 s, seed 0."""
    with (work / "jobs.trace").open("w") as file:
        for job in rows("tiers120"):
            fixed = (job["model"], "true", ".", "--steps", "0", job["total_steps"], job["gpus"])
            file.write("\t".join([*fixed, "1", "-1.000000", job["submit_s"]]) + "\n")
    rates: dict[str, dict[str, dict[str, object]]] = {}
    for rate in rows("rates"):
        own = f"('{rate['model']}', {rate['gpus']})"
        partners = rates.setdefault(rate["gpu_type"], {}).setdefault(own, {})
        if rate["other_model"]:
            other = f"('{rate['other_model']}', {rate['other_gpus']})"
            partners[other] = [float(rate["steps_per_s"]), float(rate["other_steps_per_s"])]
        else:
            partners["null"] = float(rate["steps_per_s"])
    (work / "rates.json").write_text(json.dumps(rates))
    for theirs, ours in GAVEL.items():
        for solver in ("ECOS", "SCIPY") if ours.startswith("max_min") else ("ECOS",):
            done = subprocess.run(
                [
                    *(python, "-c", GAVEL_DRIVER, work / "jobs.trace", work / "rates.json"),
                    *(theirs, solver, json.dumps(CLUSTER)),
                ],
                cwd=checkout / "scheduler",
                env=stubs(work, "numa", "matrix_completion"),
                capture_output=True,
                text=True,
                check=True,
            )
            jct, end = json.loads(done.stdout)
            print(solver, row(ours, jct, end), flush=True)


def main() -> None:
    """Run those whose checkout is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiresias", type=Path, help="checkout of Tiresias")
    parser.add_argument("--gavel", type=Path, help="checkout of Gavel")
    parser.add_argument("--python", default=sys.executable, help="what runs them")
    options = parser.parse_args()
    for run, checkout in ((tiresias, options.tiresias), (gavel, options.gavel)):
        if checkout is not None:
            with tempfile.TemporaryDirectory() as work:
                run(checkout.resolve(), options.python, Path(work))


if __name__ == "__main__":
    main()
