# SPDX-License-Identifier: Apache-2.0
"""Logs of jobs that other schedulers write are read as they are, or refused by what is missing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import glidepath as gp
from glidepath import cli

SACCT = "JobID|JobIDRaw|User|JobName|Submit|Start|End|Elapsed|ElapsedRaw|State|ReqTRES|AllocTRES"
SACCT_ROWS = """\
70|70|ann|train|2026-03-01T08:00:00|2026-03-01T08:00:10|2026-03-01T09:00:10|01:00:00|3600|COMPLETED|\
cpu=8,gres/gpu=2|billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,node=1
70.batch|70.batch||batch|2026-03-01T08:00:10|||01:00:00|3600|COMPLETED||cpu=8,gres/gpu=2
71_0|72|ben|a|b|2026-03-01T08:00:30|||00:10:00|600|FAILED|cpu=4,gres/gpu=1|cpu=4,gres/gpu:h100=1
73|73|ben|cpus|2026-03-01T08:01:00|||00:10:00|600|COMPLETED|cpu=4|cpu=4
74|74|ann|waits|2026-03-01T08:02:00|Unknown|Unknown|00:00:00|0|CANCELLED by 7|gres/gpu=1|
75|75|ann|runs|2026-03-01T08:03:00|2026-03-01T08:03:00|Unknown|00:05:00|300|RUNNING|gres/gpu=1|gres/gpu=1
"""


def read(folder: Path, name: str, text: str, gpus: int = 8) -> gp.Workload:
    (folder / name).write_text(text)
    return gp.Workload.from_trace(folder / name, gpus=gpus)


def rows(workload: gp.Workload) -> list[tuple[int, float, int, float]]:
    jobs = workload.jobs
    columns = (jobs[key].tolist() for key in ("job", "submit_s", "gpus", "duration_s"))
    return list(zip(*columns, strict=True))


def test_what_sacct_prints_is_a_workload(tmp_path: Path) -> None:
    workload = read(tmp_path, "march.txt", f"{SACCT}\n{SACCT_ROWS}")
    assert rows(workload) == [(70, 0, 2, 3600), (72, 30, 1, 600)]
    assert workload.jobs["user"].tolist() == ["ann", "ben"]
    assert workload.name == "march"
    assert workload.notes == (
        "march.txt: 1 job of 0 GPUs left out, the first is job 73",
        "march.txt: 1 job that had not ended left out, the first is job 75",
        "march.txt: 1 job that never ran left out, the first is job 74",
    )
    assert gp.simulate(workload, "fifo").mean_wait_s == 0


def test_sacct_may_have_other_columns_clocks_and_delimiters(tmp_path: Path) -> None:
    text = "JobID\tSubmit\tElapsed\tReqTRES\n5\t1700000000\t1-02:03:04\tgres/gpu=4\n"
    assert rows(read(tmp_path, "tabs", text)) == [(5, 0, 4, 93784)]
    lines = (
        "JobID|Submit|SubmitLine|Elapsed|AllocTRES\n"
        "1|2026-03-01T08:00:00|sbatch --wrap=if true\nthen a | b\nfi|05:06|gres/gpu=1\n"
    )
    assert rows(read(tmp_path, "script", lines)) == [(1, 0, 1, 306)]
    again = "JobID|Submit|Elapsed|AllocTRES|\n1_1|2026-03-01T08:00:00|00:01|gres/gpu=1|\n"
    workload = read(tmp_path, "parsable", again)
    assert rows(workload) == [(0, 0, 1, 1)]
    assert workload.notes == ("parsable: jobs are numbered in its order, from 0",)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "JobID|Submit|Elapsed\n",
            r"log:1: no column 'AllocTRES', expected what sacct --parsable2",
        ),
        ("JobID|Start|ElapsedRaw|AllocTRES\n", "log:1: no column 'Submit', expected what sacct"),
        ("JobID|Submit|ElapsedRaw|AllocTRES\n1|2026-03-01T08:00:00\n", "log:2: 2 fields where the"),
        (
            "JobID|Submit|ElapsedRaw|AllocTRES\n1|a|b|c|d\n",
            "log:2: 5 fields where the header has 4",
        ),
        (
            "JobID|Submit|ElapsedRaw|AllocTRES\n1|soon|9|gres/gpu=1\n",
            "log:2: the submission is 'so",
        ),
        (
            "JobID|Submit|ElapsedRaw|AllocTRES\n1|5|long|gres/gpu=1\n",
            "log:2: Elapsed is 'long', exp",
        ),
        (
            "JobID|Submit|ElapsedRaw|AllocTRES\n1|5|9|gres/gpu=x\n",
            "log:2: gres/gpu is 'x', expected",
        ),
        (
            "JobID|Submit|ElapsedRaw|AllocTRES\n1|5|9|gres/gpu=9\n",
            "log:2: job 1 asks 9 GPUs, the cl",
        ),
        ("JobID|Submit|ElapsedRaw|AllocTRES\n1|5|9|cpu=9\n", "log: no job that ran on GPUs"),
        (
            "JobID    JobName  State\n-------- -------- -----\n1 a OK\n",
            "log:1: is a table for people",
        ),
        ("; a comment\n1 0 0 5 4\n", "log:2: 5 fields, expected 18 between blanks"),
        (
            "id,when,size\n1,0,1\n",
            "no columns 'job', 'submit_s', 'gpus' and 'duration_s', only id, w",
        ),
        ("job_id,submit_time,gpu_num\n1,0,1\n", "log:1: no column 'duration_s', only job_id, sub"),
        (
            "job_id,submit_time,gpu_num,duration\n1,0,.5,9\n",
            "log:2: gpu_num is '.5', expected a wh",
        ),
        ("job_id,submit_time,gpu_num,duration\n1,2026-99-01,1,9\n", "submission is '2026-99-01'"),
    ],
)
def test_what_a_log_lacks_is_named_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(gp.IoError, match=sentence):
        read(tmp_path, "log", text)


def test_a_log_in_the_standard_workload_format_is_a_workload(tmp_path: Path) -> None:
    text = (
        "; Version: 2.2\n; MaxProcs: 8\n\n"
        "  1  40 10  100  4 -1 -1  8  600 -1 1 3 1 -1 -1 -1 -1 -1\n"
        "  2  50 -1   20 -1 -1 -1  2  600 -1 1 7 1 -1 -1 -1 -1 -1\n"
        "  3  60 -1   -1 -1 -1 -1  2  600 -1 5 7 1 -1 -1 -1 -1 -1\n"
    )
    workload = read(tmp_path, "site.swf", text)
    assert rows(workload) == [(1, 0, 4, 100), (2, 10, 2, 20)]
    assert workload.jobs["user"].tolist() == ["3", "7"]
    assert workload.notes == (
        "site.swf: processors are taken as GPUs",
        "site.swf: 1 job that never ran left out, the first is job 3",
    )
    packed = tmp_path / "packed.swf.gz"
    packed.write_bytes(gzip.compress(text.split("\n", 3)[3].encode()))
    assert rows(gp.Workload.from_trace(packed, gpus=8)) == rows(workload)


def test_published_tables_are_read_by_their_own_names(tmp_path: Path) -> None:
    helios = (
        "job_id,user,vc,gpu_num,state,submit_time,duration,queue\n"
        "31,u1,vcA,8,COMPLETED,2020-04-01 00:01:00,60,0\n"
        "32,u2,vcB,0,COMPLETED,2020-04-01 00:00:00,60,0\n"
        "33,u2,vcB,1,CANCELLED,2020-04-01 00:02:00,0,5\n"
        "34,u2,vcB,1,FAILED,2020-04-01 00:00:30,7.5,5\n"
    )
    workload = read(tmp_path, "helios.csv", helios)
    assert rows(workload) == [(31, 30, 8, 60), (34, 0, 1, 7.5)]
    assert workload.notes[0] == "helios.csv: the columns vc, state, queue are not read"
    acme = (
        "job_id,user,gpu_num,submit_time,duration\n"
        "dlc1,ann,8.0,2023-05-01 10:00:00+08:00,60\ndlc2,ben,8.0,2023-05-01 02:00:05+00:00,\n"
        "dlc3,ben,1,2023-05-01T02:00:09Z,30\n"
    )
    assert rows(read(tmp_path, "acme.csv", acme)) == [(0, 0, 8, 60), (1, 9, 1, 30)]
    philly = "timestamp,duration,num_gpus\n2017-10-09 07:01:55,66.0,1\n2017-10-09 07:01:50,5,2\n"
    assert rows(read(tmp_path, "philly.csv", philly)) == [(0, 5, 1, 66), (1, 0, 2, 5)]
    tiresias = "job_id,num_gpu,submit_time,duration\n4,2,2026-01-01 00:00:00,9\n"
    assert rows(read(tmp_path, "dated.csv", tiresias)) == [(4, 0, 2, 9)]


def test_the_tables_of_the_library_keep_their_times_and_their_refusals(tmp_path: Path) -> None:
    tiresias = "job_id,num_gpu,submit_time,duration\n4,2,100,9\n"
    assert rows(read(tmp_path, "t.csv", tiresias)) == [(4, 100, 2, 9)]
    with pytest.raises(gp.IoError, match=r"t\.csv:2: duration_s is 0, expected more than 0"):
        read(tmp_path, "t.csv", tiresias.replace(",9\n", ",0\n"))
    with pytest.raises(gp.IoError, match=r"t\.csv: the file is empty"):
        read(tmp_path, "t.csv", "")
    with pytest.raises(gp.InputError, match="8 GPUs are not whole nodes of 3"):
        gp.Workload.from_trace(tmp_path / "t.csv", gpus=8, gpus_per_node=3)


def test_the_command_line_reads_them_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "march.txt"
    log.write_text(f"{SACCT}\n{SACCT_ROWS}")
    asked = ["simulate", str(log), "--gpus", "4", "--gpus-per-node", "2", "-p", "fifo", "--json"]
    assert cli.main(asked) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)
    assert "march.txt: 1 job of 0 GPUs left out, the first is job 73" in printed.err
