# SPDX-License-Identifier: Apache-2.0
"""Tiers, scaling and sharing as Python sees them."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath._bench import sharing
from glidepath._bench.hardware import held_out_scaling_errors, held_out_sharing_errors


def test_a_pair_measured_elsewhere_is_predicted_and_memory_is_checked() -> None:
    # DLRM 5.36 h and ResNet152 1.05 h alone, 6.09 and 1.11 h in time slices of one A100
    dlrm, resnet = gp.Profile(0.05, 29.1), gp.Profile(0.82, 8.5)
    first, second = gp.shared_speeds(dlrm, resnet, "naive", gpu_memory_gb=40)
    assert first == pytest.approx(5.36 / 6.09, abs=0.06)
    assert second == pytest.approx(1.05 / 1.11, abs=0.06)
    assert gp.shared_speeds(dlrm, resnet, "mps", gpu_memory_gb=24) == (0, 0)


def test_measured_pairs_are_read_and_asked_before_the_activities(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("gpu,job_a,job_b,slowdown_a,slowdown_b,sharing\nA100,dlrm,resnet,1.25,2,mps\n")
    (pair,) = gp.read_pairs(table)
    assert (pair.first, pair.second, pair.sharing, pair.predicted) == (
        "dlrm",
        "resnet",
        "mps",
        False,
    )
    pairs = gp.learn_pairs([pair])
    assert pickle.loads(pickle.dumps(pairs)) == pairs
    both = gp.Profile(0.5, 30, "resnet"), gp.Profile(0.5, 30, "dlrm")
    known: dict[str, Any] = {"gpu": "A100", "pairs": pairs}
    assert gp.shared_speeds(*both, "mps", **known) == (0.5, 0.8)
    assert gp.shared_speeds(*both, "naive", **known) == gp.shared_speeds(*both, "naive")
    assert gp.shared_speeds(*both, "mps", gpu_memory_gb=40, **known) == (0, 0)
    with pytest.raises(gp.InputError, match="shared_speeds: pairs without gpu"):
        gp.shared_speeds(*both, "mps", pairs=pairs)
    with pytest.raises(gp.InputError, match="shared_speeds: gpu without pairs"):
        gp.shared_speeds(*both, "mps", gpu="A100")
    table.write_text("gpu,job_a,job_b,slowdown_a,slowdown_b\nA100,dlrm,resnet,-1,2\n")
    with pytest.raises(gp.IoError, match=r"pairs.csv:2: a slowdown is -1"):
        gp.read_pairs(table)
    table.write_text("gpu,a,b\n")
    with pytest.raises(gp.IoError, match="job_a"):
        gp.read_pairs(table)


@pytest.mark.parametrize(("leave", "most"), [("kind", 0.055), ("pair", 0.035)])
def test_speeds_of_pairs_that_were_not_measured(shared: Path, leave: str, most: float) -> None:
    table = shared / "data" / "traces" / "gavel_throughputs.csv.gz"
    errors = held_out_sharing_errors(table, leave)
    assert errors.size > 1800
    assert errors.mean() <= most


def test_speeds_of_pairs_follow_from_what_each_job_does_alone(shared: Path) -> None:
    folder = shared / "data" / "mig"

    def crowded(first: gp.Profile, second: gp.Profile) -> tuple[float, float]:
        speed = 1.0 / max(1.0, first.sm_activity + second.sm_activity)
        return speed, speed

    speeds = np.array([pair.speed for pair in sharing.pairs(folder)])
    assert speeds.size == 184
    constant = np.abs(speeds - np.median(speeds)).mean()
    errors = sharing.pair_errors(folder, sharing.planned("mps"))
    assert errors.mean() < 0.1 < sharing.pair_errors(folder, crowded).mean() < constant
    assert sharing.half_errors(folder, sharing.planned("mig")).mean() < 0.075
    blind = sharing.half_errors(folder, sharing.planned("mig", memory=False))
    assert 0.09 < blind.mean() < 0.11


def test_a_measured_speed_above_one_is_kept() -> None:
    pairs = gp.learn_pairs([gp.KindPair("A100", "a", "b", 0.8, 1.25, sharing="mps")])
    both = gp.Profile(0.5, kind="a"), gp.Profile(0.5, kind="b")
    speeds = gp.shared_speeds(*both, "mps", gpu="A100", pairs=pairs)
    assert speeds == (1.25, 0.8)


def test_measured_power_gives_the_utilization_of_a_plan() -> None:
    tier = gp.Tier.of("gold", "RTX 3090", 1, 4)
    assert tier.watts(tier.utilization(222.0)) == pytest.approx(222.0)
    with pytest.raises(gp.InputError, match=r"gold.*watts is .*, expected between"):
        tier.utilization(5000.0)


def test_the_options_of_a_job_come_from_its_scaling() -> None:
    tiers = [
        gp.Tier("small", 2, 4, gpu="T4", memory_gb=16),
        gp.Tier("large", 1, 4, gpu="A100", memory_gb=40),
    ]
    gpus = np.array([1, 2, 4, 8])
    fit = gp.fit_scaling(gpus, 0.1 + 0.8 / gpus, nodes=(gpus + 3) // 4, batch_per_gpu=64 / gpus)
    options = gp.options_of(tiers, {"small": fit, "large": fit}, batch=64.0)
    assert [(o.tier, o.gpus) for o in options] == [
        *[(0, k) for k in (1, 2, 4, 8)],
        *[(1, k) for k in (1, 2, 4)],
    ]
    for option in options:
        assert option.steps_per_s == pytest.approx(1 / (0.1 + 0.8 / option.gpus), rel=0.03)
    heavy = gp.Profile(sm_activity=0.2, memory_gb=20)
    shared = gp.options_of(
        tiers, [fit, fit], alone=heavy, batch=64.0, sharing="mps", partner=gp.Profile(0.1, 10)
    )
    assert [(o.tier, o.gpus, o.sharing) for o in shared] == [
        *[(1, k, "exclusive") for k in (1, 2, 4)],
        *[(1, k, "mps") for k in (1, 2, 4)],
    ]
    assert shared[3].steps_per_s < shared[0].steps_per_s
    assert pickle.loads(pickle.dumps(shared)) == shared
    live = gp.Job(1, shared, memory_gb=20, remaining_steps=[1000.0])
    assert len(gp.choose_accelerator(live, tiers)) == 6
    assert [a.gpus for a in gp.plan(gp.Snapshot(tiers, [live])).allocations] == [4]
    with pytest.raises(gp.InputError, match="no tier 'huge', expected one of large, small"):
        gp.options_of(tiers, {"huge": fit})
    with pytest.raises(gp.InputError, match="scaling has 1 fits, expected 2"):
        gp.options_of(tiers, [fit])
    assert gp.options_of(tiers, [None, None]) == []


def test_scaling_is_fitted_and_predicts_between_its_measurements() -> None:
    gpus = np.array([1, 2, 4, 8, 16])
    seconds = 0.02 + 0.8 / gpus + 0.01 * np.log2(gpus)
    scaling = gp.fit_scaling(gpus, seconds, batch_per_gpu=64 / gpus)
    assert scaling.step_seconds(4, batch_per_gpu=16.0) == pytest.approx(seconds[2], rel=0.03)
    assert scaling.terms["compute"] > 0
    assert pickle.loads(pickle.dumps(scaling)).step_seconds(8) == scaling.step_seconds(8)
    with pytest.raises(gp.InputError, match="measurement 0 took 0 s, expected above 0"):
        gp.fit_scaling([1], [0.0])
    with pytest.raises(gp.InputError, match="measurement 1 has a batch of 0, expected above 0"):
        gp.fit_scaling([1, 2], [1.0, 2.0], batch_per_gpu=[1.0, 0.0])


def test_the_terms_of_a_scaling_are_the_best_that_are_not_negative() -> None:
    nnls = pytest.importorskip("scipy.optimize").nnls
    for seed in range(60):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(1, 12))
        gpus = 2 ** rng.integers(0, 6, count)
        nodes = np.minimum(gpus, 2 ** rng.integers(0, 4, count))
        batch = 64 / gpus if seed % 2 else np.ones(count)
        seconds = rng.uniform(0.3, 1, count) / gpus + 0.05 * rng.uniform(0.5, 1.5, count)
        inside, across = gpus / nodes, 1.0 * (nodes > 1)
        terms = [np.ones(count), batch, 1 - 1 / inside, np.log2(inside), (inside - 1) / 8]
        terms += [across, 1 - 1 / nodes, np.log2(nodes)]
        terms += [across * (1 - 1 / inside), across * np.log2(inside)]
        shares = np.stack(terms, 1) / seconds[:, None]
        largest = np.where(shares.max(0) > 0, shares.max(0), 1)
        ridge = np.diag([0.01] * 2 + [0.1] * 8)
        best, _ = nnls(np.vstack([shares / largest, ridge]), np.repeat([1.0, 0.0], [count, 10]))
        found = gp.fit_scaling(gpus, seconds, nodes=nodes, batch_per_gpu=batch).terms
        assert np.array(list(found.values())) * largest == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize(
    ("table", "strict"),
    [
        ("elasticflow_throughputs", False),
        ("elasticflow_throughputs", True),
        ("sia_throughput", False),
    ],
)
def test_scaling_predicts_held_out_gpu_counts(shared: Path, table: str, strict: bool) -> None:
    errors = held_out_scaling_errors(
        shared / "data" / "traces" / f"{table}.csv.gz", most=60, strict=strict
    )
    assert np.median(errors) <= 0.05
    assert np.quantile(errors, 0.9) <= 0.15  # the smallest and largest counts included


def test_tiers_come_out_of_the_catalogue() -> None:
    tier = gp.Tier.of("Bronze", "RTX 2080 Ti", 2, 4)
    assert (tier.gpus, tier.memory_gb, tier.watts(1.0)) == (8, 11.0, 250.0)
    assert all(gpu.source for gpu in gp.catalogue())
    with pytest.raises(gp.InputError, match="gpu is '"):
        gp.Tier.of("x", "GTX 1", 1)
