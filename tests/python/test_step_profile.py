# SPDX-License-Identifier: Apache-2.0
"""Where a step's time goes: traces and tables of PyTorch's profiler, counted in other ways too.

`profiles/` holds two steps that were recorded on a CPU; `profiles/record.py` says how.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from log_files import write

import glidepath as gp
from glidepath._step_profile import CATEGORIES
from glidepath.readers import torch_profile

PROFILES = Path(__file__).parent / "profiles"
CATS = {
    "kernel": ("kernel", "gemm"),
    "memcpy": ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)"),
    "memset": ("gpu_memset", "Memset (Device)"),
    "communication": ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)"),
    "runtime": ("cuda_runtime", "cudaLaunchKernel"),
    "data_loading": ("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter"),
    "cpu": ("cpu_op", "aten::mm"),
}


def event(category: str, begin: float, length: float) -> dict[str, Any]:
    cat, name = CATS.get(category, ("user_annotation", category))
    return {"ph": "X", "cat": cat, "name": name, "ts": begin, "dur": length, "pid": 1, "tid": 1}


def trace(path: Path, events: list[dict[str, Any]], **more: Any) -> Path:
    return write(path, json.dumps({"schemaVersion": 1, **more, "traceEvents": events}))


def painted(events: list[dict[str, Any]], begin: int, end: int) -> dict[str, float]:
    """Microseconds by category, counted one by one: each is painted by the last that covers it."""
    paint = np.full(end - begin, len(CATS))
    for rank, category in reversed(list(enumerate(CATS))):
        cat, name = CATS[category]
        for one in events:
            if (one["cat"], one["name"]) == (cat, name):
                low, high = (round(x) - begin for x in (one["ts"], one["ts"] + one["dur"]))
                paint[max(low, 0) : max(high, 0)] = rank
    counts = np.bincount(paint, minlength=len(CATEGORIES))
    return dict(zip(CATEGORIES, counts.tolist(), strict=True))


def test_overlapping_intervals_count_once_by_precedence(tmp_path: Path) -> None:
    events = [
        event("ProfilerStep#1", 0, 60),
        event("ProfilerStep#2", 60, 40),
        event("cpu", 0, 50),  # 0-10, 30-40 and 45-50 are left to it
        event("data_loading", 0, 10),
        event("runtime", 10, 10),
        event("kernel", 15, 15),  # 5 of the launch are under it
        event("communication", 25, 15),  # 5 of it are hidden behind the kernel
        event("memcpy", 40, 5),
        event("kernel", 90, 30),  # goes on after the last step
    ]
    profile = gp.read_profile(trace(tmp_path / "a.json", events))
    expected = {
        "kernel": 25,
        "memcpy": 5,
        "memset": 0,
        "communication": 10,
        "runtime": 5,
        "data_loading": 10,
        "cpu": 5,
        "other": 40,
    }
    assert {k: round(2e6 * v, 6) for k, v in profile.seconds.items()} == expected
    assert profile.step_seconds == pytest.approx(50e-6)
    assert profile.host_s == pytest.approx(25e-6)
    assert (profile.steps, profile.gpus, profile.nodes, profile.notes) == (2, 1, 1, ())


def test_random_traces_agree_with_counting_microseconds(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    for number in range(20):
        events = [event("ProfilerStep#0", 100, 900)]
        for category in rng.choice(list(CATS), 60):
            begin, length = rng.integers(0, 1100), rng.integers(0, 60)
            events.append(event(str(category), float(begin), float(length)))
        profile = gp.read_profile(trace(tmp_path / f"{number}.json", events))
        found = {key: round(1e6 * value) for key, value in profile.seconds.items()}
        assert found == painted(events, 100, 1000)


def test_a_recorded_trace_and_its_table_say_the_same() -> None:
    of_trace = gp.read_profile(PROFILES / "cpu_step.json.gz")
    with gzip.open(PROFILES / "cpu_step.json.gz") as file:
        events = json.load(file)["traceEvents"]
    marks = [e for e in events if e["name"].startswith("ProfilerStep")]
    begin = min(e["ts"] for e in marks)
    end = max(e["ts"] + e["dur"] for e in marks)
    assert of_trace.steps == len(marks) == 2
    assert of_trace.step_seconds == pytest.approx((end - begin) * 0.5e-6)
    loading = sum(e["dur"] for e in events if e["name"].startswith("enumerate(DataLoader)"))
    assert of_trace.data_loading_s == pytest.approx(0.5e-6 * loading, rel=1e-6)
    # On a grid of tenths of a microsecond
    tenths = [{**e, "ts": 10 * (e["ts"] - begin), "dur": 10 * e["dur"]} for e in events]
    for e in tenths:
        e["cat"], e["name"] = next(
            (
                CATS[c]
                for c in ("data_loading", "cpu")
                if e["name"].startswith(CATS[c][1][:21]) or (c == "cpu" and e["cat"] == "cpu_op")
            ),
            ("", ""),
        )
    counts = painted(tenths, 0, round(10 * (end - begin)))
    assert of_trace.cpu_s == pytest.approx(0.5e-7 * counts["cpu"], rel=0.02)
    assert of_trace.other_s == pytest.approx(0.5e-7 * counts["other"], rel=0.02)
    of_table = gp.read_profile(PROFILES / "cpu_step.txt")
    assert of_table.data_loading_s == pytest.approx(of_trace.data_loading_s, rel=0.001)
    assert of_table.cpu_s == pytest.approx(of_trace.cpu_s, rel=0.05)
    assert of_table.step_seconds == pytest.approx(of_trace.step_seconds, rel=0.03)


TABLE = """\
STAGE:2024-01-31 00:00:00 1:1 ActivityProfilerController.cpp:314] Completed Stage: Warm Up
-------------------  ----------  --------  -----------  ---------  ---------  ----------  ----------
               Name  Self CPU %  Self CPU  CPU total %  CPU total  Self CUDA  CUDA total  # of Calls
-------------------  ----------  --------  -----------  ---------  ---------  ----------  ----------
      ProfilerStep*      10.00%   4.000ms      100.00%   40.000ms    0.000us     0.000us           2
           aten::mm      20.00%   8.000ms       20.00%    8.000ms   20.000ms    20.000ms          10
       volta_sgemm_       0.00%   0.000us        0.00%    0.000us   20.000ms    20.000ms          10
      ProfilerStep*       0.00%   0.000us        0.00%    0.000us   24.000ms    24.000ms           2
   cudaLaunchKernel       5.00%   2.000ms        5.00%    2.000ms    0.000us     0.000us          10
ncclDevKernel_AllRe       0.00%   0.000us        0.00%    0.000us    6.000ms     6.000ms           2
Memcpy HtoD (Pin..)       0.00%   0.000us        0.00%    0.000us    1.000ms     1.000ms           2
-------------------  ----------  --------  -----------  ---------  ---------  ----------  ----------
Self CPU time total: 40.000ms
Self CUDA time total: 27.000ms
"""


def test_a_table_with_a_gpu_counts_its_kernels_once(tmp_path: Path) -> None:
    profile = gp.read_profile(write(tmp_path / "table.txt", TABLE), gpus=16, nodes=2)
    assert (profile.steps, profile.gpus, profile.nodes) == (2, 16, 2)
    found = {key: round(1e3 * value, 6) for key, value in profile.seconds.items()}
    assert found == {
        "kernel": 10.0,
        "memcpy": 0.5,
        "memset": 0.0,
        "communication": 3.0,
        "runtime": 1.0,
        "data_loading": 0.0,
        "cpu": 4.0,
        "other": 1.5,
    }
    rows = [line.split("  ") for line in TABLE.splitlines() if "%" in line or "0us" in line]
    text = tmp_path / "table.csv"
    with text.open("w", newline="") as file:
        csv.writer(file).writerows([[c.strip() for c in row if c.strip()] for row in rows])
    assert gp.read_profile(text, gpus=16, nodes=2).seconds == profile.seconds


def test_a_trace_is_read_the_same_however_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [event("kernel", 2.0 * k, 1.0) for k in range(50)]
    events.append({"ph": "X", "cat": "cpu_op", "name": 'a "}{][" \\ ü', "ts": 99.0, "dur": 1.0})
    plain = trace(tmp_path / "a.json", events)
    expected = gp.read_profile(plain)
    assert expected.notes == ("no steps are marked: all of it is taken for one",)
    assert expected.kernel_s == pytest.approx(50e-6)
    alone = write(tmp_path / "b.json", json.dumps(events, indent=1, ensure_ascii=False))
    packed = tmp_path / "c.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for chunk in (1 << 20, 7, 64):
        monkeypatch.setattr(torch_profile, "_CHUNK", chunk)
        for path in (plain, alone, packed):
            assert gp.read_profile(path).seconds == expected.seconds


def test_what_a_trace_says_of_its_gang_is_used(tmp_path: Path) -> None:
    more: dict[str, Any] = {
        "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 16},
    }
    path = trace(tmp_path / "a.json", [event("kernel", 0, 5)], **more)
    profile = gp.read_profile(path, nodes=2)
    assert (profile.device, profile.gpus, profile.nodes) == ("NVIDIA A100", 16, 2)
    with pytest.raises(gp.InputError, match="is of 16 processes, not of gpus=4"):
        gp.read_profile(path, gpus=4)
    with pytest.raises(gp.InputError, match="16 GPUs on 17 nodes"):
        gp.read_profile(path, nodes=17)


def test_a_damaged_trace_is_an_io_error_with_its_line(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": [event("kernel", 0, 5)] * 3, "x": [1, {"y": 2.5}]}, indent=1)
    for cut in range(1, len(text)):
        with pytest.raises(gp.IoError, match=r"a\.json"):
            gp.read_profile(write(tmp_path / "a.json", text[:cut]))
    broken = text.replace('"dur": 5', '"dur" 5', 1)
    line = broken[: broken.index('"dur" 5')].count("\n") + 1
    with pytest.raises(gp.IoError, match=rf"a\.json:{line}: "):
        gp.read_profile(write(tmp_path / "a.json", broken))
    for bad in ('{"traceEvents": []}', "{}", "[]", '{"a": ' + "[" * 100_000, "", "words\n"):
        with pytest.raises(gp.IoError, match=r"a\.json"):
            gp.read_profile(write(tmp_path / "a.json", bad))
    with pytest.raises(gp.IoError, match="No such file"):
        gp.read_profile(tmp_path / "absent")
    with pytest.raises(gp.IoError, match=r"t\.txt:6: "):
        gp.read_profile(write(tmp_path / "t.txt", TABLE.replace("%   8.000ms", "% 8ms", 1)))


def test_one_long_value_is_read_in_linear_time_and_refused_beyond_a_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = {"ph": "X", "cat": "cpu_op", "name": "x" * 200_000, "ts": 0.0, "dur": 1.0}
    path = trace(tmp_path / "a.json", [long, event("kernel", 0, 5)])
    monkeypatch.setattr(torch_profile, "_CHUNK", 100)
    assert gp.read_profile(path).kernel_s == pytest.approx(5e-6)
    monkeypatch.setattr(torch_profile, "_LONGEST", 100_000)
    with pytest.raises(gp.IoError, match="a value of more than 0 MiB"):
        gp.read_profile(path)


# ------------------------------------------------------------------------- what follows from it


def lumi(shared: Path) -> list[gp.StepProfile]:
    """The breakdowns of the shared table."""
    profiles = []
    with (shared / "data" / "hardware" / "lumi_step_breakdown.csv").open() as file:
        for row in csv.DictReader(file):
            parts = {
                f"{'data_loading' if key == 'dataloader' else key}_s": float(cell or 0) * 1e-6
                for key, cell in (
                    (name.removesuffix("_us").removesuffix("_exec"), cell)
                    for name, cell in row.items()
                    if name.endswith("_us") and name != "average_step_us"
                )
            }
            seconds = 1e-6 * float(row["average_step_us"])
            gang = {"gpus": int(row["gpus"]), "nodes": int(row["nodes"])}
            profiles.append(gp.StepProfile(seconds, **parts, **gang, device=row["device"]))
    return profiles


def test_five_real_breakdowns_say_what_a_second_node_costs(shared: Path) -> None:
    one, four, sixteen, a40, _ = lumi(shared)
    assert sixteen.other_s / sixteen.step_seconds == pytest.approx(0.268, abs=0.001)
    part, seconds = next(iter(sixteen.more_than(one).items()))
    assert (part, round(seconds, 3)) == ("other", 0.178)
    scaling = gp.StepProfile.scaling([one, four, sixteen])
    for profile in (one, four, sixteen):
        predicted = scaling.step_seconds(profile.gpus, profile.nodes)
        assert predicted == pytest.approx(profile.step_seconds, rel=0.02)
    assert scaling.step_seconds(8, 2) > scaling.step_seconds(8, 1)
    assert one.step_time() == gp.StepTime(1, one.step_seconds)
    with pytest.raises(gp.InputError, match="expected one GPU"):
        gp.StepProfile.scaling([one, a40])


def test_a_step_bound_by_its_input_gains_nothing_from_a_faster_gpu() -> None:
    # 60 ms of kernels, all but 10 ms of the loading hidden behind them
    hidden = gp.StepProfile(0.08, kernel_s=0.06, data_loading_s=0.01, cpu_s=0.01, host_s=0.07)
    assert (hidden.bound_by(), hidden.at_speed(1.0)) == ("kernel", 0.08)
    assert hidden.at_speed(1.1) == pytest.approx(0.08 - 0.06 * (1 - 1 / 1.1))
    assert hidden.at_speed(2.0) == hidden.at_speed(9.0) == 0.07
    assert hidden.bound_by(9.0) in ("data_loading", "cpu")
    fed = gp.StepProfile(0.08, kernel_s=0.06, cpu_s=0.005)
    assert fed.at_speed(2.0) == pytest.approx(0.05)
    slow = gp.StepProfile(0.1, kernel_s=0.01, data_loading_s=0.09)
    assert slow.bound_by() == "data_loading"
    assert slow.at_speed(10.0) > 0.9 * slow.step_seconds


def test_a_profile_that_cannot_be_is_refused() -> None:
    for bad, words in (
        ({"step_seconds": 0.0}, "step_seconds is 0"),
        ({"step_seconds": 1.0, "kernel_s": -0.1}, "kernel_s is -0.1"),
        ({"step_seconds": 1.0, "kernel_s": 1.5}, "other_s is -0.5"),
        ({"step_seconds": 1.0, "kernel_s": 0.5, "other_s": 0.1}, "the parts sum to 0.6 s"),
        ({"step_seconds": 1.0, "gpus": 2, "nodes": 3}, "2 GPUs on 3 nodes"),
    ):
        with pytest.raises(gp.InputError, match=words):
            gp.StepProfile(**bad)
    shown = repr(gp.StepProfile(0.5, kernel_s=0.4, gpus=4, device="A100"))
    assert shown == "<StepProfile: A100, 4 GPUs, 0.5 s: kernel 80 %, other 20 %>"


def test_the_picture_stacks_the_parts_of_each_step() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    one, four = (
        gp.StepProfile(t, kernel_s=0.4, cpu_s=0.05, gpus=g) for t, g in ((0.5, 1), (0.7, 4))
    )
    ax = one.plot(four)
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(3, 2)
    np.testing.assert_allclose(widths.sum(axis=0), [0.5, 0.7])
    assert [text.get_text() for text in ax.get_yticklabels()] == [" 1 GPU", " 4 GPUs"]


@pytest.mark.parametrize(
    "times",
    [{"ts": None}, {"ts": "soon"}, {"ts": 1.0, "dur": float("nan")}, {"ts": 1.0, "dur": -2.0}],
)
def test_an_event_without_times_names_its_line(tmp_path: Path, times: dict[str, Any]) -> None:
    bad = {**event("kernel", 0, 5), **times}
    text = '{"traceEvents": [\n' + json.dumps(event("cpu", 0, 5)) + ",\n" + json.dumps(bad) + "]}"
    with pytest.raises(gp.IoError, match=r"a\.json:3: an event"):
        gp.read_profile(write(tmp_path / "a.json", text))


def test_times_that_are_written_as_text_are_read(tmp_path: Path) -> None:
    events = [event("kernel", 0, 5), event("cpu", 5, 5)]
    text = [{**each, "ts": str(each["ts"]), "dur": str(each["dur"])} for each in events]
    file = tmp_path / "profile.json"
    plain = gp.read_profile(write(file, json.dumps({"traceEvents": events})))
    assert gp.read_profile(write(file, json.dumps({"traceEvents": text}))) == plain


@pytest.mark.parametrize("speed", [0.0, -1.0, math.nan, math.inf])
def test_no_gpu_has_a_speed_that_is_not_above_zero(speed: float) -> None:
    for of in (gp.StepProfile(1.0).at_speed, gp.StepProfile(1.0).bound_by):
        with pytest.raises(gp.InputError, match=f"{of.__name__}: speed is {speed:g}"):
            of(speed)
