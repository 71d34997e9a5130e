# SPDX-License-Identifier: Apache-2.0
"""Logs of GPU monitors: real ones against independent sums, and each format's layout by hand."""

from __future__ import annotations

import gzip
import json
import math
import os
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from log_files import write

import glidepath as gp
from glidepath.cli import main
from glidepath.readers.monitors._open import FORMATS

RADT = ("11523", "12f6a", "f1974")


@pytest.fixture
def hardware(shared: Path) -> Path:
    return shared / "data" / "hardware"


# ------------------------------------------------------------------------------------ real logs


@pytest.mark.parametrize("name", RADT)
def test_power_of_dcgm_integrates_to_its_energy_counter(hardware: Path, name: str) -> None:
    metrics = gp.read_metrics(hardware / f"radt_{name}.json.gz")
    with gzip.open(hardware / f"radt_{name}.json.gz") as file:
        raw = json.load(file)
    seconds = np.array(raw["Timestamp"]) / 1000.0
    watts = np.array(raw["DCGMI - Power Usage"])
    counter = np.array(raw["DCGMI - Total Energy Consumption"]) / 1000.0
    trapezoid = float((0.5 * (watts[1:] + watts[:-1]) * np.diff(seconds)).sum())
    assert metrics.energy_j(source="power") == pytest.approx(trapezoid)
    assert metrics.energy_j() == pytest.approx(counter[-1] - counter[0])
    assert metrics.energy_j(source="power") == pytest.approx(metrics.energy_j(), rel=0.01)
    assert len(metrics.columns) == 18
    assert metrics["sm_activity"].mean() == pytest.approx(np.mean(raw["DCGMI - SN Actuie"]))
    said = json.loads((hardware / f"radt_{name}.json").read_text())
    assert len(metrics) == said["counts"]["samples"]
    assert metrics["utilization"].mean() == pytest.approx(
        said["checks"]["mean_gpu_utilization_pct"] / 100, abs=1e-4
    )


@pytest.mark.parametrize(("job", "nuls"), [("55", 0), ("60", 0), ("63", 851)])
def test_logs_of_nvidia_smi_are_read_to_their_end(hardware: Path, job: str, nuls: int) -> None:
    metrics = gp.read_metrics(hardware / f"nvidia_smi_rltune_{job}.csv.gz")
    said = json.loads((hardware / f"nvidia_smi_rltune_{job}.json").read_text())["counts"]
    assert metrics.gpus == tuple(said["per_gpu"])
    for gpu, of_it in said["per_gpu"].items():
        one = metrics.only(gpu)
        assert len(one) == of_it["samples"]
        assert 100 * one["utilization"].mean() == pytest.approx(of_it["mean_util_pct"], abs=0.01)
        assert 1024 * one.peak("memory_used_gb") == of_it["max_memory_mib"]
    assert (f"{nuls} NUL bytes left out" in metrics.notes) == (nuls > 0)
    assert "no times in this log: samples are taken to be 1 s apart" in metrics.notes


def test_tables_of_four_drivers_are_read(hardware: Path, tmp_path: Path) -> None:
    with gzip.open(hardware / "monitor_text_samples.json.gz") as file:
        entries = json.load(file)
    found = {}
    for number, entry in enumerate(entries):
        file_of = write(tmp_path / f"{number}.txt", entry["text"])
        if entry["tool"] == "nvidia-smi":
            found[entry["what"]] = gp.read_metrics(file_of)
        else:
            with pytest.raises(gp.IoError, match="no log of a monitor"):
                gp.read_metrics(file_of)
    assert [len(each.gpus) for each in found.values()] == [8, 1, 2, 4]
    pair = found["2 x GeForce RTX 4090, one training process"]
    np.testing.assert_array_equal(pair["power_w"], [[14.0, 34.0]])
    np.testing.assert_array_equal(1024 * pair["memory_used_gb"], [[18.0, 428.0]])
    np.testing.assert_array_equal(pair["temperature_c"], [[32.0, 43.0]])


# ------------------------------------------------------------------------- each format by hand

# Two samples, one second apart, of GPU 0 at 100 then 300 W and, where it has two, of GPU 1 at 50 W.
LOGS = {
    "radt": json.dumps(
        {
            "DCGMI - Power Usage": [100.0, 300.0],
            "DCGMI - SM Active": [0.25, 0.5],
            "Timestamp": [1700000000000, 1700000001000],
        }
    ),
    "dcgmi_dmon": (
        "#Entity   POWER    TOTEC    GPUTL  SMACT  FBUSD\n"
        "ID            W       mJ\n"
        "GPU 0       100  1000000       25   0.25   2048\n"
        "GPU 1        50      N/A        0  0.000   1024\n"
        "#Entity   POWER    TOTEC    GPUTL  SMACT  FBUSD\n"
        "GPU 0       300  1200000       50   0.50   4096\n"
        "GPU 1        50      N/A        0  0.000   1024\n"
    ),
    "dcgm_exporter": "".join(
        "# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).\n"
        "# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n"
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-a",modelName="A, {{B}}"}} {watts} {at}000\n'
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="1",UUID="GPU-b"}} 50 {at}000\n'
        f'DCGM_FI_PROF_SM_ACTIVE{{gpu="0",UUID="GPU-a"}} {share} {at}000\n'
        f'DCGM_FI_DEV_FB_USED{{gpu="0",UUID="GPU-a"}} {memory} {at}000\n'
        for at, watts, share, memory in (
            (1700000000, 100, 0.25, 2048),
            (1700000001, 300, 0.5, 4096),
        )
    ),
    "nvidia_smi_csv": (
        "timestamp, index, power.draw [W], utilization.gpu [%], memory.used [MiB]\n"
        "2024/01/31 23:59:59.500, 0, 100.00 W, 25 %, 2048 MiB\n"
        "2024/01/31 23:59:59.503, 1, 50.00 W, [N/A], 1024 MiB\n"
        "2024/02/01 00:00:00.500, 0, 300.00 W, 50 %, 4096 MiB\n"
        "2024/02/01 00:00:00.503, 1, 50.00 W, [N/A], 1024 MiB\n"
    ),
    "nvidia_smi_dmon": (
        "#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem     fb\n"
        "#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %     MB\n"
        " 20240131   23:59:59      0    100     40      -     25      4   2048\n"
        " 20240131   23:59:59      1     50     40      -      0      0   1024\n"
        " 20240201   00:00:00      0    300     41      -     50      8   4096\n"
        " 20240201   00:00:00      1     50     40      -      0      0   1024\n"
    ),
    "samples": (
        "time_s,gpu,power_mw,utilization_gpu_pct,memory_used_bytes\n"
        f"10,0,100000,25,{2 << 30}\n10,1,50000,0,{1 << 30}\n"
        f"11,0,300000,50,{4 << 30}\n11,1,50000,0,{1 << 30}\n"
    ),
    "zeus": "time,power0,power1\n1700000000.0,100,50\n1700000001.0,300,50\n",
}


@pytest.mark.parametrize("name", LOGS)
def test_each_format_gives_the_same_samples(tmp_path: Path, name: str) -> None:
    metrics = gp.read_metrics(write(tmp_path / "log.txt", LOGS[name]))
    assert gp.read_metrics(tmp_path / "log.txt", format=name) == metrics
    np.testing.assert_allclose(metrics.time_s, [0.0, 1.0], atol=1e-6)
    np.testing.assert_allclose(metrics["power_w"][:, 0], [100.0, 300.0])
    if len(metrics.gpus) == 2:
        np.testing.assert_allclose(metrics["power_w"][:, 1], [50.0, 50.0])
    both = 50.0 * (len(metrics.gpus) - 1)
    assert metrics.energy_j(source="power") == pytest.approx(200.0 + both)
    busy = next((c for c in ("sm_activity", "utilization") if c in metrics), None)
    if busy is not None:
        np.testing.assert_allclose(metrics[busy][:, 0], [0.25, 0.5])
    if "memory_used_gb" in metrics:
        np.testing.assert_allclose(metrics["memory_used_gb"][:, 0], [2.0, 4.0])
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(LOGS[name].encode()))
    assert gp.read_metrics(packed)["power_w"].tolist() == metrics["power_w"].tolist()


def test_other_layouts_of_the_same_tools(tmp_path: Path) -> None:
    def read(text: str, **more: Any) -> gp.Metrics:
        return gp.read_metrics(write(tmp_path / "log.txt", text), **more)

    stamped = "".join(
        f"2024-01-31T00:00:0{i // 2}.0 {line}\n"
        for i, line in enumerate(LOGS["dcgmi_dmon"].splitlines()[2:4] * 2)
    )
    found = read("#Entity   POWER    TOTEC    GPUTL  SMACT  FBUSD\n" + stamped)
    np.testing.assert_array_equal(found.time_s, [0.0, 1.0])
    mig = read("#Entity  SMACT\nGPU 0  0.4\nGPU-I 3  0.9\nGPU 0  0.6\n", every_s=2.0)
    assert (mig.gpus, mig.mean("sm_activity"), mig.duration_s) == (("0",), 0.5, 2.0)
    night = read("#Time  gpu  pwr\n#HH:MM:SS Idx W\n23:59:59 0 10\n00:00:01 0 10\n")
    assert night.duration_s == 2.0
    gpm = read("# gpu pwr smutil dram\n# Idx W GPM:% GPM:%\n0 56 - -\n0 60 50 25\n")
    np.testing.assert_array_equal(gpm["sm_activity"], [[np.nan], [0.5]])
    assert gpm["memory_activity"][1, 0] == 0.25
    first = read(
        "Time,Power\n2022-07-13 02:07:36.708783111,32402\n2022-07-13 02:07:37.708783111,100\n"
    )
    assert first["power_w"].ravel().tolist() == pytest.approx([32.402, 0.1])
    rows = [{"timestamp_ms": 1000 * k, "power_w": 10.0} for k in range(3)]
    assert read(json.dumps(rows)) == read("\n".join(json.dumps(row) for row in rows))


def test_windows_of_zeus_count_their_energy_up(tmp_path: Path) -> None:
    log = write(
        tmp_path / "zeus.csv",
        "start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy\n"
        "1700000000.0,step,2.0,200,100\n1700000002.0,step,2.0,300,100\n"
        "1700000000.0,epoch,4.5,560,230\n",
    )
    steps = gp.read_metrics(log)
    assert steps.energy_j() == 700.0
    assert steps.notes == ("windows 'step' were read, not epoch",)
    assert gp.read_metrics(log, run="epoch").energy_j() == 790.0
    with pytest.raises(gp.IoError, match="run is 'x', expected a window: step, epoch"):
        gp.read_metrics(log, run="x")


def test_codecarbon_gives_the_energy_of_a_run(tmp_path: Path) -> None:
    header = "timestamp,run_id,duration,gpu_power,gpu_energy,gpu_count\n"
    rows = "2024-01-31T00:00:00,a,3600,500,0.4,2\n2024-01-31T01:00:00,a,7200,500,0.8,2\n"
    log = write(tmp_path / "emissions.csv", header + rows)
    metrics = gp.read_metrics(log)
    assert metrics.energy_j() == pytest.approx(0.8 * 3.6e6)
    assert metrics.profile(step_seconds=2.0).mean_watts == pytest.approx(200.0)
    more = write(tmp_path / "two.csv", header + rows + "2024-01-31T00:00:00,b,60,1,0.001,1\n")
    with pytest.raises(gp.IoError, match=r"2 runs; say run= one of a, b"):
        gp.read_metrics(more)
    assert gp.read_metrics(more, run="b").energy_j() == pytest.approx(3600.0)


# ---------------------------------------------------------------------------- what is damaged


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time_s,power_w\n0,5\n1,much\n2,5\n", "3: power_w is 'much', expected a number"),
        ("time_s,power_w\n0,5\n1,5 V\n2,5\n", "3: the unit of power_w is 'V', expected one of %"),
        ("time_s,power_w\n0,5\nsoon,5\n2,5\n", "3: time_s is 'soon', expected seconds or a date"),
        ("time_s,power_w\n0,5\nnan,5\n2,5\n", "3: time_s is 'nan', expected seconds or a date"),
        ('{"time_s": 0, "power_w": 5}\n[1, 2]\n', "2: a row is [1, 2], expected an object of"),
        ("Time,Power\n1,5\nsoon,5\n2,5\n", "3: Time is 'soon', expected seconds or a date"),
        ("# gpu pwr\n# Idx W\n0 5\n0 much\n0 5\n", "4: pwr is 'much', expected a number"),
    ],
)
def test_a_damaged_value_is_named_with_what_was_expected(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(gp.IoError, match=rf"log\.txt:{re.escape(said)}"):
        gp.read_metrics(write(tmp_path / "log.txt", text))


def test_a_damaged_row_names_its_line_and_an_unfinished_last_one_is_left_out(
    tmp_path: Path,
) -> None:
    for name in ("dcgmi_dmon", "nvidia_smi_csv", "nvidia_smi_dmon"):
        lines = LOGS[name].splitlines()
        lines[3] = lines[3][: len(lines[3]) // 2]
        with pytest.raises(gp.IoError, match=r"log\.txt:4: "):
            gp.read_metrics(write(tmp_path / "log.txt", "\n".join(lines) + "\n"))
        whole = LOGS[name].splitlines()
        cut = "\n".join(whole[:-1]) + "\n" + whole[-1].rsplit(None, 2)[0]
        found = gp.read_metrics(write(tmp_path / "log.txt", cut))
        assert f"line {len(whole)}, the last, is not finished and was left out" in found.notes
        assert np.isnan(found["power_w"][1, 1])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02", b"\xff" * 99, b"{}\n", b"[1]", b"a,b\n"])
def test_a_format_forced_on_garbage_is_an_io_error(
    tmp_path: Path, name: str, content: bytes
) -> None:
    file = tmp_path / "garbage"
    file.write_bytes(content)
    with pytest.raises(gp.IoError, match="garbage"):
        gp.read_metrics(file, format=name)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(gp.IoError, match="pipe: not a regular file"):
        gp.read_metrics(tmp_path / "pipe")
    with pytest.raises(gp.IoError, match="No such file"):
        gp.read_metrics(tmp_path / "absent")
    with pytest.raises(gp.IoError, match="a folder"):
        gp.read_metrics(tmp_path)
    log = write(tmp_path / "log.txt", LOGS["nvidia_smi_dmon"])
    with pytest.raises(gp.InputError, match=r"times of its own, so every_s=2 is of no use"):
        gp.read_metrics(log, every_s=2.0)
    with pytest.raises(gp.InputError, match="source is 'x', expected 'counter' or 'power'"):
        gp.read_metrics(log).energy_j(source="x")
    with pytest.raises(gp.InputError, match="every_s is nan, expected above 0 and finite"):
        gp.read_metrics(log, every_s=math.nan)
    with pytest.raises(gp.InputError, match="run='a' is not for a log of nvidia_smi_dmon"):
        gp.read_metrics(log, run="a")
    with pytest.raises(gp.InputError, match="format is 'x', expected one of radt"):
        gp.read_metrics(log, format="x")
    negative = write(tmp_path / "n.csv", "time_s,power_w\n0,5\n1,-5\n")
    with pytest.raises(gp.IoError, match=r"n\.csv: metrics: power_w has a value -5"):
        gp.read_metrics(negative)


# --------------------------------------------------------------------------------- the values


def test_energy_is_integrated_over_irregular_samples_and_gaps() -> None:
    rng = np.random.default_rng(3)
    time = np.cumsum(rng.uniform(0.1, 3.0, 300))
    watts = rng.uniform(50.0, 300.0, (300, 2))
    watts[rng.random((300, 2)) < 0.2] = np.nan
    metrics = gp.Metrics(time, {"power_w": watts}, gpus=("a", "b"))
    expected = 0.0
    for column in watts.T:
        known = np.isfinite(column)
        expected += float(np.trapezoid(column[known], time[known]))
    assert metrics.energy_j() == pytest.approx(expected)
    at = metrics.energy_at([time[0], time[-1], time[-1] + 1])
    np.testing.assert_allclose(at, [0.0, expected, np.nan])
    half = metrics.until(time[150])
    assert (len(half), half.time_s[-1]) == (151, time[150])
    assert metrics.only("b").gpus == ("b",)


def test_a_counter_that_began_anew_goes_on(tmp_path: Path) -> None:
    log = write(tmp_path / "a.csv", "time_s,energy_mj\n0,5000\n1,7000\n2,1000\n3,4000\n")
    metrics = gp.read_metrics(log)
    assert metrics["energy_counter_j"].ravel().tolist() == [0.0, 2.0, 2.0, 5.0]
    assert "began anew once" in metrics.notes[0]


def test_a_profile_joins_the_steps_of_a_run_with_what_its_gpus_did() -> None:
    time = np.arange(0.0, 101.0)
    power = np.where(time < 20, 50.0, 200.0 + time)
    columns = {
        "power_w": np.stack([power, power], axis=1),
        "sm_activity": np.stack([np.where(time < 20, 0.0, 0.8)] * 2, axis=1),
        "memory_used_gb": np.stack([0.1 * time, 0.05 * time], axis=1),
    }
    metrics = gp.Metrics(time, columns, gpus=("0", "1"))
    step = np.array([0.0, 50.0, 100.0])
    run = gp.Trace(step, 3.0 - 0.01 * step, wall_seconds=[0.0, 20.0, 40.0])
    profile = metrics.profile(trace=run, began_s=30.0, kind="resnet")
    assert profile.step_seconds == 0.4
    # 40 s from 30 to 70 at 250 W on average, on two GPUs, for 100 steps
    assert profile.step_joules == pytest.approx(2 * 250.0 * 40.0 / 100.0)
    assert profile.mean_watts == pytest.approx(250.0)
    assert (profile.peak_watts, profile.memory_gb) == (270.0, 7.0)
    assert profile.sm_activity == pytest.approx(0.8)
    assert (profile.memory_activity, profile.kind) == (-1.0, "resnet")
    joules = np.diff(metrics.energy_at(run.wall_seconds + 30.0)) / np.diff(run.step)
    assert joules.mean() == pytest.approx(profile.step_joules)
    whole = metrics.profile(step_seconds=2.0)
    assert whole.step_joules == pytest.approx(metrics.energy_j() / metrics.duration_s * 2.0)
    with pytest.raises(gp.InputError, match=r"the run went from 90 to 130 s of this log"):
        metrics.profile(trace=run, began_s=90.0)
    with pytest.raises(gp.InputError, match="either trace= or step_seconds="):
        metrics.profile()
    with pytest.raises(gp.InputError, match=r"^profile: step_seconds is 0, expected above 0"):
        metrics.profile(step_seconds=0.0)
    with pytest.raises(gp.InputError, match="two points with wall_seconds"):
        metrics.profile(trace=gp.Trace([1, 2], [3, 2]))


def test_a_measured_profile_gives_the_energy_of_a_plan() -> None:
    tier = gp.Tier("gold", 1, 4, memory_gb=24, idle_watts=25, busy_watts=350)
    time = np.arange(0.0, 61.0)
    metrics = gp.Metrics(time, {"power_w": np.full(61, 220.0), "sm_activity": np.full(61, 0.6)})
    profile = metrics.profile(step_seconds=0.5)
    fit = gp.fit_scaling([1], [0.5])
    share = tier.utilization(profile.mean_watts)
    (option, *_) = gp.options_of([tier], [fit], alone=profile, utilization=share, max_gpus=1)
    job = gp.Job(1, [option], remaining_steps=[7200.0])
    (choice,) = gp.choose_accelerator(job, [tier])
    assert choice.watts == pytest.approx(220.0)
    # kWh of all steps = joules of one step x steps
    assert choice.kwh * 3.6e6 == pytest.approx(profile.step_joules * 7200.0, rel=0.02)


def test_metrics_go_through_json_and_pickle_and_say_what_they_are() -> None:
    columns = {"power_w": [[100.0, np.nan], [300.0, 50.0]], "sm_activity": [[0.5, 0.1], [0.7, 0.1]]}
    metrics = gp.Metrics([0.0, 3600.0], columns, gpus=("0", "1"), name="log", notes=["a note"])
    again = gp.Metrics.from_dict(json.loads(json.dumps(metrics.to_dict())))
    assert again == metrics == pickle.loads(pickle.dumps(metrics))
    assert again.notes == ("a note",)
    assert repr(metrics) == (
        "<Metrics: 'log', 2 samples of 2 GPUs over 1 h, mean 125 W, 0.2 kWh, sm_activity 35 %; "
        "a note>"
    )
    with pytest.raises(gp.InputError, match="no 'temperature_c', only power_w, sm_activity"):
        metrics["temperature_c"]
    for bad, words in (
        (([0.0, 0.0], {}), r"time_s\[1\] is 0, expected finite times that increase"),
        (([0.0], {"watts": [1.0]}), "no column 'watts', expected one of power_w"),
        (([0.0], {"power_w": [[1.0, 2.0]]}), "shape"),
        (([], {}), "some samples"),
    ):
        with pytest.raises(gp.InputError, match=words):
            gp.Metrics(*bad)
    for begin_s, end_s, name in ((math.nan, 1.0, "begin_s"), (0.0, math.nan, "end_s")):
        with pytest.raises(gp.InputError, match=rf"metrics: {name} is nan, expected a number"):
            metrics.between(begin_s, end_s)
    with pytest.raises(gp.InputError, match="expected a state of format"):
        gp.Metrics.from_dict({"format": "x"})


def test_a_refusal_of_metrics_names_what_is_wrong() -> None:
    below_zero = gp.Metrics([0.0], {"temperature_c": [-5.0]})
    assert below_zero.peak("temperature_c") == -5.0
    with pytest.raises(gp.InputError, match="temperature_c has a value inf, expected finite ones"):
        gp.Metrics([0.0, 1.0], {"temperature_c": [-5.0, math.inf]})
    with pytest.raises(gp.InputError, match="power_w has a value -5, expected 0 or more"):
        gp.Metrics([0.0], {"power_w": [-5.0]})
    with pytest.raises(gp.InputError, match="metrics: time_s is nan, expected a number"):
        below_zero.until(math.nan)


def test_the_command_line_sums_up_a_monitors_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write(tmp_path / "log.txt", LOGS["nvidia_smi_dmon"])
    assert main(["metrics", str(log), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    first, second = document["rows"]
    assert (first["mean_watts"], first["peak_watts"]) == (200.0, 300.0)
    assert (first["sm_activity"], first["memory_gb"]) == (0.375, 4.0)
    assert second["energy_kwh"] == pytest.approx(50.0 / 3.6e6)
    assert main(["metrics", str(log)]) == 0
    assert "2 GPUs of log.txt" in capsys.readouterr().out


def test_the_picture_has_a_line_a_gpu_and_the_loss_where_there_is_one() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    time = np.arange(0.0, 7201.0)
    watts = np.stack([200.0 + time / 72.0, np.full(7201, 50.0)], axis=1)
    columns = {"power_w": watts, "sm_activity": np.full((7201, 2), 0.5)}
    metrics = gp.Metrics(time, columns, gpus=("0", "1"))
    ax = metrics.plot()
    first, second = ax.get_lines()
    assert len(first.get_xdata()) == 400
    assert (first.get_xdata()[0], first.get_xdata()[-1]) == pytest.approx((0.0, 2.0), abs=0.01)
    assert np.mean(first.get_ydata()) == pytest.approx(250.0, abs=0.1)
    assert set(second.get_ydata()) == {50.0}
    assert ax.get_ylabel() == "power, W"
    behind = next(each for each in ax.figure.axes if each is not ax)
    assert set(behind.get_lines()[0].get_ydata()) == {50.0}
    run = gp.Trace([1, 2, 3], [3.0, 2.0, 1.5], wall_seconds=[0.0, 100.0, 200.0], metric="val_loss")
    ax = metrics.plot(trace=run, began_s=3600.0)
    behind = next(each for each in ax.figure.axes if each is not ax)
    assert behind.get_ylabel() == "val_loss"
    np.testing.assert_allclose(behind.get_lines()[0].get_xdata() * 3600, [3600.0, 3700.0, 3800.0])
    with pytest.raises(gp.InputError, match="no wall_seconds"):
        metrics.plot(trace=gp.Trace([1, 2], [3, 2]))


# ------------------------------------------------------------------------- what is often left out

QUERY = "timestamp, utilization.gpu [%], power.draw [W]\n"


def looks(gaps_ms: list[list[int]]) -> str:
    """One list a look, a second apart: how many milliseconds after it each row comes."""
    return QUERY + "".join(
        f"2024/03/01 10:00:{at:02d}.{ms:03d}, 50 %, {100 * (1 + gpu)}.00 W\n"
        for at, look in enumerate(gaps_ms)
        for gpu, ms in enumerate(look)
    )


def test_rows_of_one_look_without_an_index_are_of_several_gpus(tmp_path: Path) -> None:
    for gpus in (1, 2, 8):
        text = looks([[17 + 3 * gpu for gpu in range(gpus)]] * 20)
        found = gp.read_metrics(write(tmp_path / "smi.csv", text))
        assert (len(found.gpus), found.duration_s) == (gpus, pytest.approx(19.0))
        watts = sum(100.0 * (1 + gpu) for gpu in range(gpus))
        assert found.energy_j() == pytest.approx(19.0 * watts)
        assert any("no index" in note for note in found.notes) == (gpus > 1)
    # The last look may be cut; another one that lacks a GPU could be of any of them.
    cut = gp.read_metrics(write(tmp_path / "smi.csv", looks([[1, 5]] * 20 + [[1]])))
    assert cut.energy_j() == pytest.approx(19.0 * 300.0 + 100.0)
    with pytest.raises(gp.IoError, match="add index to --query-gpu"):
        gp.read_metrics(write(tmp_path / "smi.csv", looks([[1, 5]] * 9 + [[1]] + [[1, 5]] * 9)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (looks([[1]] * 5).removeprefix(QUERY), "leave noheader out"),
        ("gpu,pwr,gtemp,sm\n0,200,60,90\n", "leave nounit out"),
        (
            '{"hostname": "n", "gpus": [{"index": 0, "power.draw": 200}]}\n',
            "nvidia-smi --query-gpu",
        ),
        ("timestamp,gpu_id,power_usage\n1,0,200\n", "columns such as time_s, gpu and power_w"),
        ("step,loss\n1,2\n", "no log of a monitor that is known"),
    ],
)
def test_a_file_that_is_no_log_of_a_monitor_says_what_it_lacks(
    text: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(gp.IoError, match=says):
        gp.read_metrics(write(tmp_path / "log", text))


def test_milliwatts_of_zeus_are_said(tmp_path: Path) -> None:
    text = "Time,Power\n1700000000,200000\n1700000001,200000\n"
    found = gp.read_metrics(write(tmp_path / "zeus.csv", text))
    assert found.energy_j() == pytest.approx(200.0)
    assert any("milliwatts" in note for note in found.notes)
