# SPDX-License-Identifier: Apache-2.0
"""Pictures draw what the results say."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath._pictures import series

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402

from glidepath._pictures import clusters, runs, scores  # noqa: E402

SUPERCOM = Path(__file__).resolve().parents[2] / "data" / "workloads" / "supercom"
STEP = np.arange(1.0, 101.0)
TRACE = gp.Trace(STEP, 2.0 + 3.0 * STEP**-0.5, name="run")


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def simulations() -> list[gp.Simulation]:
    workload = gp.read_workload(SUPERCOM)
    return [gp.simulate(workload, policy) for policy in ("fifo", "srtf")]


def line(ax: Any, label: str) -> Any:
    return next(line for line in ax.get_lines() if line.get_label() == label)


def test_a_plan_shows_each_gang_on_its_tier_and_the_prices() -> None:
    tiers = [gp.Tier("slow", 2, 2), gp.Tier("fast", 1, 2)]
    plan = gp.Plan(
        [gp.Allocation(7, 0, 3, 0.0, 8), gp.Allocation(8, 0, 3, 0.0, 7), gp.Allocation(9, 1, 2)],
        prices=np.array([0.5, 2.0]),
        tiers=tiers,
    )
    ax = plan.plot()
    bars = {(bar.get_x(), round(bar.get_y() + 0.35), bar.get_width()) for bar in ax.patches}
    assert bars == {(0, 0, 3), (3, 0, 1), (0, 1, 2)}  # the pair once, one idle GPU, the gang
    assert [text.get_text() for text in ax.texts] == ["7 + 8", "9"]
    (beside,) = ax.child_axes
    assert [bar.get_width() for bar in beside.patches] == [1800.0, 7200.0]
    assert gp.Plan(tiers=tiers).plot().child_axes


def test_start_times_show_a_row_for_each_job_and_who_may_not_start() -> None:
    seconds = np.array([[0.0, 3600.0, np.inf], [1800.0, 7200.0, np.inf], [3600.0, np.inf, np.inf]])
    starts = gp.StartTimes(np.array([4, 5, 6]), np.array([0.1, 0.5, 0.9]), seconds)
    ax = starts.plot()
    rows = [line for line in ax.get_lines() if line.get_marker() == "None"]
    end = ax.get_xlim()[1]
    assert [line.get_xdata().tolist() for line in rows] == [[0, 1], [1, end], [end, end]]
    assert end > 2
    medians = [line.get_xdata()[0] for line in ax.get_lines() if line.get_marker() == "D"]
    assert medians == [0.5, 2]
    arrows = [line.get_ydata()[0] for line in ax.get_lines() if line.get_marker() == ">"]
    assert arrows == [1, 2]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["job 4", "job 5", "job 6"]
    nobody = gp.StartTimes(np.array([], int), np.array([0.5]), np.empty((1, 0)))
    assert not nobody.plot().get_lines()


def test_the_names_of_many_waiting_jobs_do_not_overlap() -> None:
    for count in (12, 28, 90, 250):
        hours = np.linspace(1.0, 9.0, count) * np.array([[1800.0], [3600.0], [5400.0]])
        starts = gp.StartTimes(np.arange(count), np.array([0.1, 0.5, 0.9]), hours)
        ax = starts.plot()
        ax.figure.canvas.draw()
        boxes = [text.get_window_extent() for text in ax.get_yticklabels()]
        assert all(below.y1 < above.y0 for above, below in itertools.pairwise(boxes)), count


def test_the_fan_shows_forecast_points_target_and_what_came() -> None:
    seen = TRACE.until(40)
    ahead = gp.forecast(seen, np.arange(41.0, 101.0))
    ax = runs.forecast(ahead, trace=seen, later=TRACE, target=2.4)
    assert np.array_equal(line(ax, "forecast").get_ydata(), ahead.median)
    assert np.array_equal(line(ax, "observed").get_xdata(), seen.step)
    assert line(ax, "target 2.4").get_ydata()[0] == 2.4
    low, high = ax.get_ylim()
    assert low < ahead.quantiles.min()
    assert high > ahead.median.max()


def test_a_forecast_of_one_step_shows_its_median_and_its_bands() -> None:
    seen = TRACE.until(40)
    ahead = gp.forecast(seen, [100])
    ax = ahead.plot()
    assert line(ax, "forecast").get_marker() == "_"
    bars = [bar.get_segments()[0][:, 1].tolist() for bar in ax.collections]
    wide, narrow = ([ahead.quantile(p)[0] for p in ends] for ends in ((0.05, 0.95), (0.25, 0.75)))
    assert bars == [pytest.approx(wide), pytest.approx(narrow)]


def test_axes_given_are_the_axes_drawn_on() -> None:
    _, ax = pyplot.subplots()
    assert gp.fit(TRACE, family="pow3").plot(ax=ax) is ax
    assert ax.get_lines()


def test_time_to_target_shows_the_chance_of_never() -> None:
    reach = gp.reach(TRACE.until(40), 2.2, budget=400)
    ax = runs.reach(reach)
    words = " ".join(text.get_text() for text in ax.texts)
    assert f"never {reach.prob_never:.0%}".replace("%", " %") in words
    finite = [p for p in (0.1, 0.5, 0.9) if np.isfinite(reach.quantile(p))]
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == [f"{100 * p:.0f} % by then" for p in finite]
    edges, mass = series.reach_density(reach)
    assert mass.sum() == pytest.approx(1 - reach.prob_never, abs=0.01)
    assert np.all(np.diff(edges) > 0)


def test_a_gantt_chart_never_gives_a_gpu_twice(simulations: list[gp.Simulation]) -> None:
    for simulation in simulations:
        boxes, lanes = series.gantt(simulation.spans)
        for tier, count in lanes.items():
            held = sorted(
                (lane, box.start_s, box.end_s)
                for box in boxes
                if box.tier == tier
                for lane in range(box.lane, box.lane + box.gpus)
            )
            assert {lane for lane, _, _ in held} == set(range(count))
            for (lane, _, end), (next_lane, start, _) in itertools.pairwise(held):
                assert lane != next_lane or end <= start + 1e-6
        drawn = sum(box.gpus * (box.end_s - box.start_s) for box in boxes)
        assert drawn == pytest.approx(simulation.gpu_seconds)


def test_a_gantt_chart_calls_the_tiers_by_their_names(simulations: list[gp.Simulation]) -> None:
    ax = simulations[0].plot()
    names = [label.get_text().split("\n")[0] for label in ax.get_yticklabels()]
    assert names == ["Bronze", "Silver", "Gold"]


def test_bars_have_the_height_of_the_values() -> None:
    ax = clusters.policies({"fifo": 4.0, "dare": 1.5}, label="hours")
    assert [bar.get_width() for bar in ax.patches] == [4.0, 1.5]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["fifo", "dare"]


def test_bars_write_a_large_value_without_an_exponent() -> None:
    ax = clusters.policies({"fifo": 11_381.6, "dare": 1.52345})
    assert [text.get_text() for text in ax.texts] == ["11 380", "1.523"]


def test_bars_of_a_comparison_say_what_they_compare() -> None:
    compared = gp.compare(gp.read_workload(SUPERCOM), ["fifo", "srtf"], seeds=2)
    assert compared.plot().get_xlabel() == "mean_jct_s"
    assert compared.plot(metric="energy_kwh").get_xlabel() == "energy_kwh"


def test_the_gpus_that_are_busy_over_time_add_up_to_gpu_seconds(
    simulations: list[gp.Simulation],
) -> None:
    time, busy = series.busy_gpus(simulations[0].spans)
    assert busy[-1] == 0
    held = float(np.sum(np.diff(time) * busy[:-1]))
    assert held == pytest.approx(simulations[0].gpu_seconds)


def test_reliability_of_a_calibrated_forecast_lies_on_the_diagonal() -> None:
    values = (np.arange(2000) + 0.5) / 2000
    ax = scores.reliability(values)
    drawn = next(line for line in ax.get_lines() if "forecasts" in str(line.get_label()))
    assert np.allclose(drawn.get_xdata(), drawn.get_ydata(), atol=1e-3)


def test_results_draw_themselves_in_a_notebook() -> None:
    ahead = gp.forecast(TRACE, np.array([150.0, 200.0]))
    for result in (TRACE, gp.fit(TRACE, family="pow3"), ahead):
        assert "<svg" in result._repr_html_()


def test_many_points_that_followed_do_not_hide_the_forecast() -> None:
    step = np.arange(1.0, 40_001)
    whole = gp.Trace(step, 2.0 + 3.0 * step**-0.5)
    seen, later = whole.until(20_000), gp.Trace(step[20_000:], whole.loss[20_000:])
    ax = runs.forecast(gp.forecast(seen, [30_000, 40_000]), trace=seen, later=later)
    what, median = line(ax, "what happened"), line(ax, "forecast")
    assert what.get_zorder() < median.get_zorder()
    assert 100 < len(what.get_xdata()) <= 400
    assert what.get_xdata()[-1] == 40_000
    assert what.get_linestyle() == "None"


def test_a_picture_names_its_metric() -> None:
    rising = gp.Trace(STEP, 0.9 - 0.5 * STEP**-0.5, metric="val_acc", direction="max")
    assert runs.forecast(gp.forecast(rising, [200]), trace=rising).get_ylabel() == "val_acc"


def test_a_run_that_has_logged_nothing_has_pictures() -> None:
    empty = gp.Trace([], [])
    found = gp.forecast(empty, [5])
    for ax in (found.plot(), gp.fit(empty).plot(), gp.fit(empty).plot(trace=empty)):
        assert isinstance(ax, Axes)
    assert "<svg" in found._repr_html_()


@pytest.mark.filterwarnings("error")
def test_a_run_that_ends_at_the_largest_numbers_has_pictures() -> None:
    largest = np.finfo(float).max
    for last in (largest, -largest):
        run = gp.Trace([1.0, 2.0, 3.0], [1.0, 2.0, last])
        fan = runs.forecast(gp.forecast(run, [4.0, 5.0]), trace=run, target=0.5)
        for ax in (run.plot(), gp.fit(run, family="pow3").plot(trace=run), fan):
            figure = ax.get_figure()
            assert figure is not None
            figure.canvas.draw()


def test_a_run_without_a_finite_value_has_a_sentence_in_place_of_its_pictures() -> None:
    blind = gp.Trace(STEP, np.full(STEP.size, np.nan), name="run")
    ahead = gp.forecast(blind, [150.0, 200.0])
    fan = runs.forecast(ahead, trace=blind, target=1.0, reach=gp.reach(blind, 1.0, budget=200))
    for ax in (fan, ahead.plot(), blind.plot(), gp.fit(blind).plot(trace=blind)):
        assert [text.get_text() for text in ax.texts] == ["no finite value so far"]
        assert not ax.collections  # no bands
        assert not np.isfinite([y for line in ax.get_lines() for y in line.get_ydata()]).any()
        assert not ax.get_yticks().size


@pytest.mark.parametrize("name", [r"cost $x_{1$", "$5 of $10", r"$\frac{$"])
def test_a_name_with_dollars_is_drawn_as_it_is(name: str) -> None:
    jobs = {"job": range(3), "submit_s": [0.0] * 3, "duration_s": [50.0] * 3}
    played = gp.simulate(gp.Workload([gp.Tier(name, 4)], jobs), "fifo")
    for result in (gp.Trace(STEP, TRACE.loss, metric=name), played):
        picture = result._repr_html_()
        # Each text of a picture is a comment in it, too, and one of TeX is no text but a drawing.
        assert f"<!-- {name}" in picture
