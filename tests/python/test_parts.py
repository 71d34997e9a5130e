# SPDX-License-Identifier: Apache-2.0
"""Pods on parts of GPUs, mixes and slices: records, refusals, and what others measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import glidepath as gp
from glidepath import cli
from glidepath._bench import pods, sharing, slices
from glidepath._csv_rows import csv_rows
from glidepath._pods import read_free_nodes, read_pods


def test_two_parts_share_a_gpu_and_a_third_takes_another() -> None:
    node = gp.FreeNode("n", cpu_milli=8000, memory_mib=1024, gpu_milli=[1000, 1000])
    asked = [gp.Pod(str(i), cpu_milli=1000, gpus=1, gpu_milli=450) for i in range(3)]
    places = gp.place_pods([node], asked, policy="best_fit")
    assert places == [gp.PodPlace(0, [0]), gp.PodPlace(0, [0]), gp.PodPlace(0, [1])]
    assert not gp.pod_violations([node], asked, places)
    with pytest.raises(gp.InputError, match="needs expected pods"):
        gp.place_pods([node], asked, policy="fgd_cpu")
    with pytest.raises(TypeError, match=r"Pod: gpus is 0.5, expected a whole number"):
        gp.Pod("p", gpus=0.5)  # type: ignore[arg-type]


def test_a_pod_that_fits_nowhere_is_left_out_and_takes_nothing() -> None:
    node = gp.FreeNode("n", cpu_milli=1000, gpu_milli=[400])
    asked = [gp.Pod(gpus=1, gpu_milli=500), gp.Pod(gpus=1, gpu_milli=400)]
    places = gp.place_pods([node], asked, policy="fgd", expected=asked)
    assert [place.node for place in places] == [-1, 0]


NODES = "node,cpu_milli,memory_mib,gpus,gpu_model\na,8000,4096,1,T4\nb,8000,4096,2,P100\n"
PODS = (
    "job,cpu_milli,memory_mib,gpus,gpu_milli,gpu_spec,qos\n"
    "x,1000,64,1,400,P100|V100,LS\ny,1000,64,2,1000,,\nz,1000,64,0,,,\n"
)


def test_the_command_line_places_pods_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes, asked = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(NODES)
    asked.write_text(PODS)
    line = ["place", str(nodes), str(asked), "--policy", "best_fit", "--json"]
    assert cli.main(line) == 1, "a pod fits nowhere"
    said = capsys.readouterr()
    assert said.err == f"{asked}: not read: qos\n"
    found = json.loads(said.out)
    assert [row["node"] for row in found["rows"]][:2] == ["b", None]
    assert found["rows"][0]["gpu_indices"] == [0]
    assert (found["left_out"], found["share"]) == (1, pytest.approx(0.4 / 3))
    assert cli.main([*line[:3], "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == found, "best_fit where no pods are expected"
    assert cli.main([*line[:3], "--policy", "fgd"]) == 2
    assert "the policy 'fgd' needs expected pods" in capsys.readouterr().err
    assert cli.main([*line, "--seed", "9" * 20]) == 2
    assert capsys.readouterr().err.endswith(
        f"glidepath: place_pods: seed is {'9' * 20}, expected a whole number of at most 64 bits\n"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("job,cpu_milli,memory_mib\nx,1,1\n", ":1: no column 'gpus'"),
        ("job,cpu_milli,memory_mib,gpus\n", ": no rows below the header"),
        (
            "job,cpu_milli,memory_mib,gpus\nx,1,1,1\ny,1,1,0.5\n",
            ":3: gpus is '0.5', expected a whole number; parts of a GPU are gpu_milli",
        ),
        ("job,cpu_milli,memory_mib,gpus\nx,1,,1\n", ":2: memory_mib is '', expected a whole"),
        ("job,cpu_milli,memory_mib,gpus\nx,1,1\n", ":2: 3 fields where the header has 4"),
        ("job,cpu_milli,memory_mib,gpus\nx,1,1,1,9\n", ":2: 5 fields where the header has 4"),
        ("job,cpu_milli,memory_mib,gpus\n\n\nx,1,1,y\n", ":4: gpus is 'y', expected a whole"),
        ("job,gpus,cpu_milli,memory_mib,gpus\nx,1,1,1,2\n", ":1: two columns are named 'gpus'"),
        ("job,cpu_milli,memory_mib,gpus\nx,1,1,1\nx,1,1,1\n", ":3: job 'x' is there twice"),
    ],
)
def test_a_bad_file_of_pods_is_named_by_line(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "pods.csv").write_text(text)
    with pytest.raises(gp.IoError, match=re.escape(f"{tmp_path / 'pods.csv'}{sentence}")):
        read_pods(tmp_path / "pods.csv", distinct=True)


def test_a_byte_order_mark_and_blanks_around_cells_are_no_part_of_them(tmp_path: Path) -> None:
    text = "job,cpu_milli,memory_mib,gpus,qos\n x , 1,2 ,1,a\n"
    (tmp_path / "pods.csv").write_text(text, encoding="utf-8-sig")
    assert read_pods(tmp_path / "pods.csv") == (
        [gp.Pod("x", cpu_milli=1, memory_mib=2, gpus=1)],
        ["qos"],
    )
    (tmp_path / "pods.csv").write_bytes(text.replace(" x ", "\xff").encode("latin-1"))
    with pytest.raises(gp.IoError, match=r":2: '\\xff' is not UTF-8"):
        read_pods(tmp_path / "pods.csv")


def test_pods_like_those_to_come_may_have_the_same_names(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text("job,cpu_milli,memory_mib,gpus\nx,1,1,1\nx,1,1,1\n")
    assert len(read_pods(tmp_path / "pods.csv")[0]) == 2


def test_a_node_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("node,cpu_milli,memory_mib,gpus\nn,1,1,1\nn,1,1,1\n")
    with pytest.raises(gp.IoError, match=r"nodes\.csv:3: node 'n' is there twice"):
        read_free_nodes(tmp_path / "nodes.csv")


@pytest.mark.parametrize("policy", [*pods.PUBLISHED, "fgd_cpu"])
def test_the_published_shares_come_out_within_half_a_point(shared: Path, policy: str) -> None:
    folder = shared / "data" / "traces"
    nodes, mix = pods.read_nodes(folder), pods.read_workload(folder, "gpushare40")
    answers = pods.published(folder)
    assert answers["gpushare40", "fgd"] == pytest.approx(93.96, abs=0.01)
    runs = [pods.run(nodes, mix, policy, 42 + seed) for seed in range(4)]
    assert not any(run.violations for run in runs)
    share = np.mean([run.allocated for run in runs])
    if policy == "fgd_cpu":
        assert share > answers["gpushare40", "fgd"] + 0.25
    else:
        assert share == pytest.approx(answers["gpushare40", policy], abs=0.5)


def test_a_mix_of_two_is_the_pair_and_a_measured_speed_above_one_is_kept() -> None:
    tier = gp.Tier.of("card", "A100 PCIe 40GB", 1, 1)
    jobs = [gp.Profile(0.6, kind="a"), gp.Profile(0.3, kind="b"), gp.Profile(0.1)]
    pair = gp.shared_speeds(jobs[0], jobs[1], "mps")
    assert tuple(gp.mix_speeds(jobs[:2], "mps", tier)) == pair
    pairs = gp.learn_pairs([gp.KindPair(tier.gpu, "a", "b", 0.8, 1.25, sharing="mps")])
    assert gp.mix_speeds(jobs[:2], "mps", tier, pairs=pairs)[0] == 1.25
    assert 1.0 < gp.mix_speeds(jobs, "mps", tier, pairs=pairs)[0] < 1.25
    with pytest.raises(gp.InputError, match="5 jobs, expected 1 to 4"):
        gp.mix_speeds([jobs[0]] * 5, "mps", tier)


def test_a_pair_that_runs_faster_together_ends_sooner_in_a_simulation() -> None:
    jobs = {
        "job": [1, 2],
        "submit_s": [0, 0],
        "gpus": [1, 1],
        "duration_s": [1000, 1000],
        "job_class": ["a", "b"],
    }
    workload = gp.Workload([gp.Tier("t", 1, 1)], jobs, pairs=[("a", "b", 0, 1.25, 1.1)])
    run = gp.simulate(workload, "best_value", sharing="mps")
    # 800 s together at 1.25 and 1.1, then what is left of the second alone.
    np.testing.assert_allclose(run.jobs["end_s"], [800, 800 + (1000 - 1.1 * 800)])


def test_speeds_of_mixes_under_mps(shared: Path) -> None:
    folder = shared / "data" / "mig"
    for count, most in ((2, 0.095), (3, 0.105), (4, 0.11)):
        measured = np.array([speed for _, _, speed in sharing.mixes(folder)[count]])
        errors = slices.mix_errors(folder, count)
        assert errors.mean() < most
        assert errors.mean() < np.abs(measured - np.median(measured)).mean()


def test_the_partitions_of_the_published_scheduler_are_among_ours(shared: Path) -> None:
    rows = csv_rows(shared / "data" / "mig" / "mig_partitions.csv.gz")
    theirs = {tuple(sorted(row["slices"].split("+"))) for row in rows}
    ours = [tuple(sorted(name[0] for name in each.slices)) for each in gp.partitions()]
    assert len(ours) == 19
    assert theirs <= set(ours)


def test_step_times_on_slices_follow_from_the_run_on_the_whole_card(shared: Path) -> None:
    folder = shared / "data" / "mig"
    truth = slices.measured(folder)
    assert truth["resnet", 64][2] > 1.0, "a measured speed above 1 is kept"
    guess = slices.left_out(slices.predicted(sharing.profiles(folder)), truth)
    errors = np.concatenate(list(slices.errors(guess, truth).values()))
    assert errors.size == 59
    assert np.median(errors) <= 0.07
    for count in range(1, 8):
        ratios = slices.throughput_ratios(guess, truth, count, 100)
        assert ratios.size
        assert ratios.max() <= 1.0 + 1e-12
        assert ratios.mean() >= 0.97
