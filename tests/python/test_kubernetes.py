# SPDX-License-Identifier: Apache-2.0
"""The shell lines of docs/kubernetes.md, run with a kubectl that only notes what it was told."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import glidepath
from glidepath.engines.slurm import JobForecast
from glidepath.engines.slurm.urgency import urgency

PAGE = Path(__file__).resolve().parents[2] / "docs/kubernetes.md"


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_loop_of_the_page_labels_each_job_by_its_forecast(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(size=400) * 0.005
    losses = [(0.2 + 2 * step**-0.5) * math.exp(noise[step]) for step in range(1, 400)]
    rows = [f"{step},{loss:.6g}" for step, loss in enumerate(losses, 1)]
    (tmp_path / "good.csv").write_text("step,loss\n" + "\n".join(rows) + "\n")
    (tmp_path / "new.csv").write_text("step,loss\n")
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(
        "#!/bin/sh\n"
        f'printf "%s\\n" "$*" >> {tmp_path}/told\n'
        'if [ "$1" = get ]; then\n'
        f'  echo "quick {tmp_path}/good.csv 0.29 20000 30"\n'
        f'  echo "slow {tmp_path}/good.csv 0.29 20000 0.006"\n'
        f'  echo "vain {tmp_path}/good.csv 0.01 20000 0.006"\n'
        f'  echo "new {tmp_path}/new.csv 0.29 20000 0.006"\n'
        "fi\n"
    )
    kubectl.chmod(0o755)
    (tmp_path / "python").symlink_to(sys.executable)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(Path(glidepath.__file__).parents[1]), *sys.path]),
    }
    subprocess.run(["bash", "-euo", "pipefail", "-c", block("sh")], env=environment, check=True)
    told = (tmp_path / "told").read_text().splitlines()
    assert told[0].startswith("get jobs -l glidepath=yes -o jsonpath={range .items[*]}")
    assert "{.metadata.annotations.glidepath/steps-per-s}" in told[0]
    label = "kueue.x-k8s.io/priority-class"
    assert told[1] == f"label job quick {label}=glide-soon --overwrite"
    assert re.fullmatch(rf"label job slow {label}=glide-(today|later) --overwrite", told[2])
    assert told[3] == f"label job vain {label}=glide-doubtful --overwrite"
    assert len(told) == 4  # of the new one nothing is known yet


def test_the_classes_of_the_page_are_those_of_the_program_in_order() -> None:
    names = re.findall(r"name: (glide-\w+)", block("yaml"))
    values = [int(value) for value in re.findall(r"value: (\d+)", block("yaml"))]
    assert values == sorted(values, reverse=True)
    hours = [0.5, 12.0, 100.0, math.inf]
    assert names == [urgency(JobForecast("unknown", 0.9, remaining=(h,)), 1 / 3600) for h in hours]


@pytest.mark.parametrize(
    ("probability", "word"),
    [(0.4, "glide-doubtful"), (0.6, "glide-soon"), (math.nan, "glide-soon")],
)
def test_a_run_that_more_likely_than_not_fails_is_doubtful(probability: float, word: str) -> None:
    assert urgency(JobForecast("unknown", probability, remaining=(1.0,)), 10.0) == word
    assert urgency(JobForecast(), 10.0) is None


def urgency_of(log: Path, *options: str) -> subprocess.CompletedProcess[str]:
    asked = ("--target", "0.9", "--budget", "20000", "--steps-per-s", "30")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = (sys.executable, "-m", "glidepath.engines.slurm.urgency", str(log), *asked, *options)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_which_way_is_better_is_a_word_or_what_the_name_says(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    rows = (f"{i},{0.95 - 0.9 * i**-0.5:.6g}\n" for i in range(1, 200))
    log.write_text("step,val_accuracy\n" + "".join(rows))
    assert urgency_of(log).stdout == urgency_of(log, "--direction", "max").stdout == "glide-soon\n"
    refused = urgency_of(log, "--direction", "up")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "urgency: --direction is up, expected min or max\n"


def test_what_a_job_says_in_its_comment_is_said_by_options(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    rows = (f"{name},{i},{2 * i**-0.5:.6g}\n" for name in "ab" for i in range(1, 200))
    log.write_text("curve,step,value\n" + "".join(rows))
    said = urgency_of(log)
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr == (
        f"urgency: {log} holds 2 curves, expected one; name it by --metric, where its metric has a"
        " name of its own\n"
    )
    log.write_text("step,score\n" + "".join(f"{i},{i}\n" for i in range(1, 200)))
    assert urgency_of(log).stderr.endswith("give --direction min or --direction max\n")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--steps-per-s", "-5"), "--steps-per-s is -5, expected above 0 and finite"),
        (("--steps-per-s", "0"), "--steps-per-s is 0, expected above 0 and finite"),
        (("--steps-per-s", "nan"), "--steps-per-s is nan, expected above 0 and finite"),
        (("--budget", "-2"), "--budget is -2, expected above 0 and finite"),
        (("--target", "inf"), "--target is inf, expected a finite number"),
    ],
)
def test_a_number_that_no_run_has_is_refused(
    tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    log = tmp_path / "a.csv"
    log.write_text("step,loss\n" + "".join(f"{i},{2 * i**-0.5:.6g}\n" for i in range(1, 200)))
    refused = urgency_of(log, *options)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"urgency: {sentence}\n"
    for pace in (0.0, math.inf):
        why = f"^steps_per_s is {pace:g}, expected above 0 and finite$"
        with pytest.raises(glidepath.InputError, match=why):
            urgency(JobForecast(), pace)


@pytest.mark.parametrize(("points", "word"), [(1, ""), (2, ""), (3, ""), (60, "glide-doubtful\n")])
def test_a_run_that_has_just_begun_keeps_its_class(tmp_path: Path, points: int, word: str) -> None:
    log = tmp_path / "a.csv"
    rows = (f"{i},{2 + i**-0.5:.6g}\n" for i in range(1, points + 1))
    log.write_text("step,loss\n" + "".join(rows))
    said = urgency_of(log)
    assert (said.returncode, said.stdout) == (0 if word else 1, word)
    assert said.stderr == ("" if word else "urgency: too little is known\n")
