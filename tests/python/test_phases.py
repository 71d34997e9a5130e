# SPDX-License-Identifier: Apache-2.0
"""Jobs whose speed changes in mid-run: columns, files and the command line."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import glidepath as gp
from glidepath import cli


def growing() -> gp.Workload:
    """Two jobs; the first takes 10 s and then 9 s, at ten times the speed."""
    jobs = {
        "job": [1, 2],
        "submit_s": [0.0, 0.0],
        "duration_s": [100.0, 50.0],
        "phases": [{0.1: 10.0}, {}],
    }
    return gp.Workload([gp.Tier("a", 1)], jobs)


def write(folder: Path, work: gp.Workload) -> None:
    (folder / "tiers.csv").write_text("name,nodes,gpus_per_node\na,1,1\n")
    work.write_jobs(folder / "jobs.csv")


def test_phases_are_a_column_of_a_workload() -> None:
    work = growing()
    assert work.jobs["phases"].tolist() == [{0.1: 10.0}, {}]
    assert pickle.loads(pickle.dumps(work)) == work
    plain = gp.Workload(work.tiers, {k: v for k, v in work.jobs.items() if k != "phases"})
    assert "phases" not in plain.jobs
    assert plain != work
    unordered = gp.Workload(work.tiers, {**work.jobs, "phases": [{0.5: 2.0, 0.1: 10.0}, {}]})
    assert list(unordered.jobs["phases"][0]) == [0.1, 0.5]
    with pytest.raises(gp.InputError, match=r"job 1 has speed 0 from 0\.1, expected more than 0"):
        gp.Workload(work.tiers, {**work.jobs, "phases": [{0.1: 0.0}, {}]})
    with pytest.raises(TypeError, match="phases is 3"):
        gp.Workload(work.tiers, {**work.jobs, "phases": [3, {}]})


def test_what_policies_know_of_the_speed_decides_who_goes_first() -> None:
    np.testing.assert_allclose(gp.simulate(growing(), "srtf").jobs["end_s"], [19, 69])
    present = gp.simulate(growing(), "srtf", knows_phases=False)
    np.testing.assert_allclose(present.jobs["end_s"], [69, 50])
    # Alone with all phases it takes 19 s; two jobs have one GPU.
    np.testing.assert_allclose(present.jobs["ftf_static"], [69 / 38, 0.5])


def test_phases_gangs_and_restarts_go_through_files(tmp_path: Path) -> None:
    work = growing()
    write(tmp_path, work)
    assert (tmp_path / "phases.csv").read_text() == "job,from,speed\n1,0.1,10\n"
    assert gp.read_workload(tmp_path).jobs["phases"].tolist() == work.jobs["phases"].tolist()
    columns = {**work.jobs, "restart_s": [3.5, -1], "phases": [{}, {}]}
    columns |= {"steps_per_s": [[1.0], [2.0]], "gpus": [1, 1]}
    write(tmp_path, gp.Workload(work.tiers, columns))
    read = gp.read_workload(tmp_path)
    assert "phases" not in read.jobs
    assert read.jobs["restart_s"].tolist() == [3.5, -1]


def test_a_row_of_phases_for_no_job_is_named_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, growing())
    (tmp_path / "phases.csv").write_text("job,from,speed\n1,0.1,2\n7,0.1,2\n")
    with pytest.raises(gp.IoError, match=r"phases\.csv:3: jobs\.csv has no job 7"):
        gp.read_workload(tmp_path)
    (tmp_path / "phases.csv").write_text("job,from,speed\n1,0.1,0\n")
    with pytest.raises(gp.IoError, match=r"phases\.csv:2: speed is 0, expected more than 0"):
        gp.read_workload(tmp_path)


def test_the_command_line_reads_them_and_may_hide_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, growing())

    def mean_jct(*options: str) -> float:
        assert cli.main(["simulate", str(tmp_path), "-p", "srtf", "--json", *options]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        return float(row["mean_jct_s"])

    assert mean_jct() == pytest.approx((19 + 69) / 2)
    assert mean_jct("--no-knows-phases") == pytest.approx((69 + 50) / 2)
