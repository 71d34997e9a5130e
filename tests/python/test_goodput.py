# SPDX-License-Identifier: Apache-2.0
"""The batch of a gang: against sums over all choices."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import glidepath as gp

Exact = np.longdouble


def linear(other: float, compute: float) -> gp.Scaling:
    """Step time other + compute x batch on one GPU, to the accuracy of the fit."""
    batches = [1.0, 8.0, 64.0, 512.0]
    return gp.fit_scaling([1] * 4, [other + compute * b for b in batches], batch_per_gpu=batches)


def gangs(seed: int) -> gp.Scaling:
    """Scaling of gangs of 1 to 8 GPUs that exchange gradients."""
    rng = np.random.default_rng(seed)
    compute, other, exchange = rng.uniform([1e-3, 1e-2, 1e-2], [1e-2, 1e-1, 2e-1])
    rows = [(k, b) for k in (1, 2, 4, 8) for b in (1, 16, 128)]
    seconds = [other + compute * b + exchange * (1 - 1 / k) for k, b in rows]
    batch = [float(b) for _, b in rows]
    return gp.fit_scaling([k for k, _ in rows], seconds, batch_per_gpu=batch)


def test_efficiency_is_the_gain_of_a_larger_batch_over_its_examples() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        reference, sqr, var = (Exact(x) for x in np.exp(rng.uniform(0, 12, 3)))
        batch = reference * Exact(np.exp(rng.uniform(0, 6)))
        # Pollux's gain of a batch of m references, the variance that of a reference batch.
        m = batch / reference
        gain = (var + sqr) / (var / m + sqr)
        limits = gp.BatchLimits(
            float(reference), float(batch), noise_scale=float(reference * var / sqr)
        )
        assert limits.statistical_efficiency(float(batch)) == pytest.approx(
            float(gain / m), rel=1e-12
        )
        assert limits.statistical_efficiency(float(reference)) == 1


def best_of_all(scaling: gp.Scaling, limits: gp.BatchLimits, gpus: int, nodes: int) -> Exact:
    """Largest goodput over every whole batch per GPU and every number of passes."""
    best = Exact(0)
    for per_gpu in range(1, int(min(limits.largest_per_gpu, limits.largest / gpus)) + 1):
        pass_s = Exact(scaling.step_seconds(1, 1, per_gpu))
        step_s = Exact(scaling.step_seconds(gpus, nodes, per_gpu))
        for passes in range(1, int(limits.largest / gpus / per_gpu) + 1):
            batch = Exact(per_gpu * passes * gpus)
            if batch < limits.reference:
                continue
            noise, reference = Exact(limits.noise_scale), Exact(limits.reference)
            efficiency = (noise + reference) / (noise + batch)
            best = max(best, batch / reference * efficiency / ((passes - 1) * pass_s + step_s))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_batch_is_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scaling = gangs(seed)
    for _ in range(40):
        gpus = int(rng.choice([1, 2, 4, 8]))
        nodes = int(rng.integers(1, min(gpus, 2) + 1))
        reference = int(rng.integers(1, 60))
        limits = gp.BatchLimits(
            reference,
            reference + int(rng.choice([0, rng.integers(0, 9), rng.integers(0, 900)])),
            largest_per_gpu=float(rng.integers(1, rng.choice([10, 130]))),
            noise_scale=float(rng.choice([0, np.exp(rng.uniform(0, 8))])),
        )
        chosen = gp.best_batch(scaling, limits, gpus=gpus, nodes=nodes)
        best = best_of_all(scaling, limits, gpus, nodes)
        if chosen is None:
            assert best == 0
            continue
        assert chosen.steps_per_s == pytest.approx(float(best), rel=1e-12)
        assert chosen.batch == chosen.per_gpu * chosen.passes * gpus
        assert chosen.per_gpu <= limits.largest_per_gpu
        assert limits.reference <= chosen.batch <= limits.largest
        assert chosen.efficiency == limits.statistical_efficiency(chosen.batch)
        rate = chosen.batch / reference * chosen.efficiency / chosen.step_s
        assert chosen.steps_per_s == pytest.approx(rate, rel=1e-12)


@pytest.mark.parametrize(
    ("reference", "largest", "largest_per_gpu"), [(128, 128, 48), (9, 9, 8), (67, 71, 8)]
)
def test_passes_that_divide_the_batch_are_found_beyond_those_that_do_not(
    reference: float, largest: float, largest_per_gpu: float
) -> None:
    scaling = gangs(1)
    limits = gp.BatchLimits(reference, largest, largest_per_gpu=largest_per_gpu, noise_scale=100)
    chosen = gp.best_batch(scaling, limits)
    assert chosen is not None
    assert chosen.steps_per_s == pytest.approx(float(best_of_all(scaling, limits, 1, 1)), rel=1e-12)
    (option,) = gp.options_of([gp.Tier("a", 1)], [scaling], batches=limits)
    assert option.steps_per_s == chosen.steps_per_s


def test_large_batches_come_within_a_thousandth_of_a_continuous_search() -> None:
    scaling = linear(0.5, 1e-3)
    for noise in (100.0, 3000.0, 1e5):
        limits = gp.BatchLimits(64, 1e6, noise_scale=noise)

        def slowness(log_batch: float, noise: float = noise) -> float:
            batch = math.exp(log_batch)
            return -batch / 64 * (noise + 64) / (noise + batch) / scaling.step_seconds(1, 1, batch)

        found = minimize_scalar(slowness, bounds=(math.log(64), math.log(1e6)), method="bounded")
        chosen = gp.best_batch(scaling, limits)
        assert chosen is not None
        assert chosen.steps_per_s == pytest.approx(-found.fun, rel=1e-3)
        assert chosen.passes == 1


def test_a_batch_beyond_the_memory_takes_passes() -> None:
    scaling = gangs(0)
    roomy = gp.best_batch(scaling, gp.BatchLimits(256, 256, noise_scale=10), gpus=4)
    tight = gp.best_batch(
        scaling, gp.BatchLimits(256, 256, largest_per_gpu=16, noise_scale=10), gpus=4
    )
    assert roomy is not None
    assert tight is not None
    assert (roomy.per_gpu, roomy.passes) == (64, 1)
    assert (tight.per_gpu, tight.passes) == (16, 4)
    assert tight.step_s > roomy.step_s
    assert gp.best_batch(scaling, gp.BatchLimits(2, 3), gpus=4) is None


def test_limits_that_make_no_sense_are_refused() -> None:
    scaling = linear(0.1, 1e-3)
    for limits, words in (
        (gp.BatchLimits(0, 10), "reference is 0"),
        (gp.BatchLimits(10, 5), "largest is 5"),
        (gp.BatchLimits(1, 10, largest_per_gpu=0.5), "largest_per_gpu is 0.5"),
        (gp.BatchLimits(1, 10, noise_scale=-1), "noise_scale is -1"),
        (gp.BatchLimits(1, math.nan), "largest is nan"),
    ):
        with pytest.raises(gp.InputError, match=words):
            gp.best_batch(scaling, limits)
    with pytest.raises(gp.InputError, match="2 GPUs on 3 nodes"):
        gp.best_batch(scaling, gp.BatchLimits(1, 2), gpus=2, nodes=3)


def test_the_options_of_a_job_have_the_goodput_of_their_gangs() -> None:
    tiers = [gp.Tier("a", 2, 4)]
    limits = gp.BatchLimits(32, 4096, largest_per_gpu=64, noise_scale=500)
    options = gp.options_of(tiers, [gangs(3)], batches=limits)
    assert [option.gpus for option in options] == [1, 2, 4, 8]
    for option in options:
        chosen = gp.best_batch(gangs(3), limits, gpus=option.gpus, nodes=math.ceil(option.gpus / 4))
        assert chosen is not None
        assert option.steps_per_s == chosen.steps_per_s
    with pytest.raises(gp.InputError, match="batch and batches"):
        gp.options_of(tiers, [gangs(3)], batches=limits, batch=64)


@pytest.mark.parametrize("batch", [0.0, -1.0, math.nan, math.inf])
def test_no_batch_that_cannot_be_has_an_efficiency(batch: float) -> None:
    with pytest.raises(gp.InputError, match=f"batch is {batch:g}, expected more than 0 examples"):
        gp.BatchLimits(8, 64).statistical_efficiency(batch)
