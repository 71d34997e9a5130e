# SPDX-License-Identifier: Apache-2.0
"""Methods of other people: what they get and give, what becomes of their failures."""

from __future__ import annotations

import json
import math
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import glidepath as gp
from glidepath._bench.accuracy import protocol
from glidepath._bench.accuracy.methods import neighbours, noise
from glidepath._bench.accuracy.paired import Bootstrap, sign_test
from glidepath._json import plain
from glidepath.cli import main

Floats = NDArray[np.float64]


def run(name: str, rate: float, points: int = 40, lr: bool = False) -> gp.Trace:
    step = np.arange(1.0, points + 1)
    return gp.Trace(step, 1 + step**-rate, lr=1 / step if lr else None, name=name)


RUNS = [run(f"{group}/{i}", 0.3 + 0.1 * i, lr=True) for group in "abc" for i in range(3)]


def write(file: Path, runs: list[gp.Trace]) -> None:
    points = [
        f"{each.name},{step},{loss}\n"
        for each in runs
        for step, loss in zip(each.step.tolist(), each.loss.tolist(), strict=True)
    ]
    file.write_text("curve,step,value\n" + "".join(points))


# --------------------------------------------------------------------------- what a method gets


def test_a_folder_without_a_log_says_so_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = tmp_path / "readme.txt"
    note.write_text("hello\n")
    for verb in ("reach", "accuracy"):
        assert main(["bench", verb, str(tmp_path)]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert f"bench: {tmp_path}: no log that can be read; {note}: a log of no known" in said


def test_a_method_gets_the_part_that_is_seen_and_the_steps_that_follow() -> None:
    seen = []

    def spy(trace: gp.Trace, at: Floats) -> Floats:
        seen.append((trace, at))
        return np.ones(at.shape)

    gp.bench.accuracy([run("a", 0.5)], spy, cutoffs=[0.4])
    ((trace, at),) = seen
    np.testing.assert_array_equal(trace.step, np.arange(1.0, 17))
    np.testing.assert_array_equal(at, np.arange(17.0, 41))
    assert trace.name == ""  # a name may say how it ends
    assert not trace.loss.flags.writeable


def test_keywords_are_given_to_those_that_take_them() -> None:
    got: dict[str, Any] = {}

    def all_of_it(trace: gp.Trace, at: Floats, **known: Any) -> Floats:
        got.update(known)
        return np.ones(at.shape)

    def some(trace: gp.Trace, at: Floats, *, past: tuple[gp.Trace, ...], own: int = 3) -> Floats:
        assert own == 3
        assert len(past) == 6  # the runs of the two other groups
        assert {each.name[0] for each in past} == {"b", "c"}
        return np.ones(at.shape)

    result = gp.bench.accuracy(RUNS[:1] + RUNS[3:], [all_of_it, some], max_curves=1, seed=7)
    assert not result.failures() or result.rows[0]["run"][0] != "a"
    assert set(got) == {"schedule", "past", "levels", "seed"}
    assert got["seed"] == 7
    np.testing.assert_allclose(got["levels"], np.arange(1, 20) / 20)
    np.testing.assert_allclose(got["schedule"].lr, 1 / np.arange(1, 41))


def test_scores_are_handed_over_so_that_lower_is_better() -> None:
    accuracy = gp.Trace(np.arange(20.0), np.linspace(10.0, 90.0, 20), direction="max")

    def spy(trace: gp.Trace, at: Floats) -> Floats:
        np.testing.assert_allclose(trace.loss[0], 0.9)  # of 10 %
        assert trace.step[0] == 1.0
        return np.full(at.shape, 0.1)

    result = gp.bench.accuracy([accuracy], spy)
    assert not result.failures()
    assert max(row["error"] for row in result.rows if row["method"] == "spy") < 1e-9


def test_ours_know_that_a_score_is_one() -> None:
    # Of a log that begins late, and does not tell which clock is right, a score and a loss differ.
    step, point = np.arange(900.0, 1300.0, 10), np.arange(40.0)
    percent = 80 - 10 * (1 + point) ** -0.8 + np.cos(1.7 * point**1.3)
    run = gp.Trace(step, percent, direction="max")
    result = gp.bench.accuracy([run], "glidepath", cutoffs=[0.5])
    (row,) = (row for row in result.rows if row["method"] == "glidepath")
    f = gp.forecast(gp.Trace(step[:20], percent[:20] / 100, direction="max"), step[20:])
    np.testing.assert_allclose(row["final"], 1 - f.median[-1], rtol=1e-9)
    target = row["truth"]  # of one curve, the median final value
    below = 1 - f.prob_below(1 - target)[-1]
    np.testing.assert_allclose(row["prob_target"], below, rtol=1e-6)
    loss = gp.forecast(gp.Trace(step[:20], 1 - percent[:20] / 100), step[20:])
    assert abs(row["final"] - loss.median[-1]) > 1e-3


def test_scores_of_a_collection_share_their_unit() -> None:
    first = []

    def spy(trace: gp.Trace, at: Floats) -> Floats:
        first.append(float(trace.loss[0]))
        return np.ones(at.shape)

    step, rise = np.arange(1.0, 21.0), np.linspace(10.0, 40.0, 20)
    low, high = (gp.Trace(step, k * rise, direction="max", name=f"g/{k}") for k in (1.0, 5.0))
    gp.bench.accuracy([low, high], spy, cutoffs=[0.5])
    assert first == [1 - 10, 1 - 50]  # returns up to 200 are no percentages, nor is one of 40
    first.clear()
    gp.bench.accuracy([low], spy, cutoffs=[0.5])
    assert first == [1 - 0.1]


def test_a_class_is_made_once_and_a_forecast_of_ours_is_a_method() -> None:
    made = []

    class Model:
        def __init__(self) -> None:
            made.append(self)

        def __call__(self, trace: gp.Trace, at: Floats) -> gp.Forecast:
            return gp.forecast(trace, at)

    result = gp.bench.accuracy(RUNS, {"model": Model, "ours": "glidepath", "other": gp.forecast})
    assert len(made) == 1
    table = {row["method"]: row for row in result.table()}
    for key in ("mae", "crps", "cov80", "bias"):
        assert table["model"][key] == table["ours"][key]
    assert table["other"]["crps"] != table["ours"]["crps"]  # it takes schedule and past


def test_what_is_no_method_is_refused_before_anything_runs(tmp_path: Path) -> None:
    refused: list[tuple[Any, str]] = [
        (lambda trace: 1, "takes 1 arguments, not"),
        (lambda trace, at, *, magic: 1, "needs 'magic'; besides the trace and the steps there are"),
        ("json:no_such_function", "json has no 'no_such_function'"),
        ("json:__name__", "is a str, not callable"),
        ("oracle", "method is 'oracle', expected module:callable or one of glidepath"),
    ]
    for method, said in refused:
        with pytest.raises(gp.InputError, match=said):
            gp.bench.accuracy(RUNS, method)
    with pytest.raises(ImportError, match=r"'no_such_module:f': cannot import it: No module named"):
        gp.bench.accuracy(RUNS, "no_such_module:f")
    with pytest.raises(gp.InputError, match="two methods are called 'last'"):
        gp.bench.accuracy(RUNS, ["last", "last"])
    with pytest.raises(gp.InputError, match="constants are for our own methods"):
        gp.bench.accuracy(RUNS, "aic", constants="x")
    with pytest.raises(gp.InputError, match=r"a cutoff is 1\.5, expected between 0 and 1"):
        gp.bench.accuracy(RUNS, "aic", cutoffs=[1.5])
    with pytest.raises(gp.InputError, match="sees at least 4 points and at most 90% of a curve"):
        gp.bench.accuracy(RUNS, "aic", cutoffs=[0.95])
    with pytest.raises(gp.InputError, match="max_curves is 0"):
        gp.bench.accuracy(RUNS, "aic", max_curves=0)


@pytest.mark.parametrize(
    ("code", "error", "said"),
    [
        ("def f(:", gp.InputError, "cannot import it: SyntaxError"),
        ("1 / 0", gp.InputError, "cannot import it: ZeroDivisionError"),
        ("raise SystemExit(1)", gp.InputError, "cannot import it: SystemExit: 1"),
        ("import no_such_package", ImportError, "No module named 'no_such_package'"),
        (
            "class f:\n    def __init__(self): open('weights')",
            gp.InputError,
            "cannot make one: File",
        ),
    ],
)
def test_a_module_that_does_not_load_is_one_sentence(
    code: str,
    error: type[Exception],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    (tmp_path / "broken.py").write_text(code)
    with pytest.raises(error, match=f"method 'broken:f': .*{said}"):
        gp.bench.accuracy(RUNS, "broken:f")
    write(tmp_path / "runs.csv", RUNS)
    assert main(["bench", "accuracy", "runs.csv", "-m", "broken:f"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


# -------------------------------------------------------------------------- what a method gives

AT = np.array([10.0, 20.0, 30.0])
NORMAL = np.linspace(-1.0, 1.0, 19)[:, None] + AT / 10


def test_quantiles_samples_and_medians_say_the_same_where_they_can() -> None:
    bare = protocol.answer_of(NORMAL, AT)
    named = protocol.answer_of({"quantiles": NORMAL.tolist()}, AT)
    np.testing.assert_array_equal(bare.quantiles, named.quantiles)
    np.testing.assert_array_equal(bare.median, AT / 10)
    grid = np.linspace(0.0, 1.0, 201)[:, None] + AT  # its p-quantile is p + at
    sampled = protocol.answer_of({"samples": grid}, AT)
    np.testing.assert_allclose(sampled.quantiles, protocol.LEVELS[:, None] + AT)
    assert sampled.prob_below is not None
    assert sampled.prob_below(30.5) == pytest.approx(101 / 201)
    alone = protocol.answer_of([1, 2, 3], AT)
    assert alone.quantiles is None
    both = protocol.answer_of({"median": [1, 2, 3], "quantiles": NORMAL}, AT)
    np.testing.assert_array_equal(both.median, [1, 2, 3])


def test_the_probability_by_quantiles_of_a_normal_law_is_that_of_the_law() -> None:
    stats = pytest.importorskip("scipy.stats")
    law = stats.norm(3.0, 0.5)
    below = protocol.chances(law.ppf(protocol.LEVELS))
    for target in (1.0, 2.2, 2.9, 3.0, 3.6, 4.4):
        assert below(target) == pytest.approx(law.cdf(target), abs=2e-3)
    assert protocol.chances(np.full(19, 2.0))(1.9) == 0.0
    assert protocol.chances(np.full(19, 2.0))(2.1) == 1.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "the answer: NoneType is no array"),
        ("high", "the answer: str is no array"),
        (np.ones(3) * 1j, "the answer: ndarray is no array of numbers"),
        (
            {"samples": np.outer([-1.7e308, 1.7e308], np.ones(3))},
            "quantiles of the samples: .* not",
        ),
        ([1.0, 2.0], r"an answer of shape \(2,\): expected a median \(3,\) or quantiles \(19, 3\)"),
        (np.ones((100, 3)), "samples go as"),
        ({"mean": [1, 2, 3]}, "an answer with 'mean': expected median, quantiles, samples"),
        ({}, "without a median, quantiles or samples"),
        ({"median": None}, "without a median, quantiles or samples"),
        ([1.0, math.nan, 2.0], "median: 1 of 3 values are not finite"),
        ({"quantiles": NORMAL[:5]}, r"quantiles of shape \(5, 3\): expected \(19, 3\)"),
        ({"quantiles": np.where(NORMAL > 2.5, np.inf, NORMAL)}, "quantiles: .* are not finite"),
        ({"samples": np.ones((1, 3))}, "expected .n, 3., n >= 2"),
        (np.ma.array([1.0, 2.0, 3.0], mask=True), "median: 3 of 3 values are not finite"),
        (
            {"quantiles": np.ma.masked_greater(NORMAL, 2.5)},
            "quantiles: .* are not finite",
        ),
        ({"samples": np.full((4, 3), np.nan)}, "samples: 12 of 12 values are not finite"),
        ({"samples": np.ones((4, 3)), "quantiles": NORMAL}, "both samples and quantiles"),
    ],
)
def test_wrong_answers_are_failures_with_a_sentence(given: Any, said: str) -> None:
    came = protocol.reply_to(lambda: given, lambda answer: protocol.answer_of(answer, AT))
    assert came.answer is None
    with pytest.raises(gp.InputError, match=said):
        raise gp.InputError(came.why)


def raising(error: BaseException) -> Callable[..., Floats]:
    def method(trace: gp.Trace, at: Floats) -> Floats:
        if len(trace) > 20:
            raise error
        return np.full(at.shape, trace.loss[-1])

    return method


@pytest.mark.parametrize(
    "error", [ValueError("no\nidea"), SystemExit(3), MemoryError(), RecursionError("deep")]
)
def test_whatever_a_method_raises_is_counted_shown_and_ends_nothing(error: BaseException) -> None:
    result = gp.bench.accuracy(RUNS, {"weak": raising(error), "aic": "aic"})
    table = {row["method"]: row for row in result.table()}
    failed = [r for r in result.rows if r["method"] == "weak" and r["seen"] > 20]
    assert table["weak"]["n"] == table["aic"]["n"]  # none is dropped
    assert table["weak"]["n_failed"] == len(failed) > 0
    assert all(r["error"] == r["crps"] == 1.0 for r in failed)
    (line,) = result.failures()
    assert line["n_failed"] == len(failed)
    assert type(error).__name__ in line["why"]
    assert "\n" not in line["why"]
    assert table["weak"]["bad"] >= len(failed) / table["weak"]["n"]


@pytest.mark.parametrize("far", [1e300, -1.7e308])
def test_numbers_beyond_measure_are_wrong_by_one(far: float) -> None:
    def method(trace: gp.Trace, at: Floats) -> Floats:
        return np.full((19, at.size), far)

    result = gp.bench.accuracy(RUNS, method)
    assert not result.failures()
    rows = [row for row in result.rows if row["method"] == "method"]
    assert {row["error"] for row in rows} == {row["crps"] for row in rows} == {1.0}
    assert {row["bias"] for row in rows} == {math.copysign(1.0, far)}


def test_an_interrupt_is_no_failure() -> None:
    with pytest.raises(KeyboardInterrupt):
        gp.bench.accuracy(RUNS, {"stop": raising(KeyboardInterrupt())})


# --------------------------------------------------------------------------------- comparisons


def test_the_sign_test_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for better, worse in ((0, 6), (3, 9), (8, 8), (40, 60), (700, 800)):
        expected = stats.binomtest(better, better + worse).pvalue
        assert sign_test(better, worse) == pytest.approx(expected, rel=1e-9)
    assert sign_test(0, 0) == 1.0


def rows_of(method: str, errors: dict[tuple[str, str], float]) -> list[dict[str, Any]]:
    return [
        {"method": method, "collection": name, "run": curve, "cutoff": 0.5, "error": e, "crps": e}
        for (name, curve), e in errors.items()
    ]


def test_intervals_of_one_collection_are_those_of_a_mean() -> None:
    draws = np.random.default_rng(0).standard_normal(400)
    rows = rows_of("m", {("c", f"run{i}"): float(e) for i, e in enumerate(draws)})
    low, high = Bootstrap(rows, draws=4000).interval(rows, "error")
    half = 1.96 * draws.std() / 20
    assert low == pytest.approx(draws.mean() - half, abs=0.1 * half)
    assert high == pytest.approx(draws.mean() + half, abs=0.1 * half)


def test_intervals_know_that_collections_differ_and_that_groups_are_alike() -> None:
    rng = np.random.default_rng(1)
    level = rng.standard_normal(8)
    apart = {(f"c{i}", f"{j}"): float(level[i] + 0.01 * j) for i in range(8) for j in range(50)}
    rows = rows_of("m", apart)
    low, high = Bootstrap(rows).interval(rows, "error")
    assert high - low == pytest.approx(2 * 1.96 * level.std() / math.sqrt(8), rel=0.15)
    # Ten copies of each run in its group: no more is known than by one of each.
    alone = rows_of("m", {("c", f"g{i}/0"): float(level[i]) for i in range(8)})
    copied = rows_of(
        "m", {("c", f"g{i}/{j}"): float(level[i]) for i in range(8) for j in range(10)}
    )
    assert Bootstrap(copied).interval(copied, "error") == pytest.approx(
        Bootstrap(alone).interval(alone, "error")
    )


def test_differences_are_drawn_in_pairs() -> None:
    hard = np.random.default_rng(2).random(40)
    one = rows_of("one", {("c", f"r{i}"): float(e) for i, e in enumerate(hard)})
    other = rows_of("other", {("c", f"r{i}"): float(e) + 0.01 for i, e in enumerate(hard)})
    found = Bootstrap(one + other).pair(one, other, "error")
    for key in ("difference", "low", "high"):  # far inside the spread of either mean
        assert found[key] == pytest.approx(-0.01)
    assert found["better"], found["worse"] == (40, 0)
    assert found["p_sign"] == pytest.approx(2 / 2**40)
    assert found["p_bootstrap"] < 0.01
    few = Bootstrap(one[:5] + other[:5]).pair(one[:5], other[:5], "error")
    assert math.isnan(few["low"])
    assert math.isnan(few["p_sign"])


def test_equal_methods_differ_by_chance_in_one_test_of_twenty() -> None:
    rng = np.random.default_rng(3)
    found = []
    for _ in range(200):
        a, b = rng.random((2, 30))
        one = rows_of("a", {("c", f"r{i}"): float(e) for i, e in enumerate(a)})
        other = rows_of("b", {("c", f"r{i}"): float(e) for i, e in enumerate(b)})
        found.append(Bootstrap(one + other).pair(one, other, "crps"))
    for key, most in (("p_bootstrap", 0.11), ("p_sign", 0.08)):
        assert np.mean([each[key] < 0.05 for each in found]) < most


def test_pairs_compare_with_the_first_method_or_the_one_that_is_named() -> None:
    result = gp.bench.accuracy(RUNS, ["glidepath", "best"])
    assert {(p["method"], p["against"]) for p in result.pairs()} == {
        ("best", "glidepath"),
        ("last", "glidepath"),
    }
    by_name = {row["method"]: row for row in result.table()}
    for pair in result.pairs("last", score="error"):
        expected = by_name[pair["method"]]["mae"] - by_name["last"]["mae"]
        assert pair["difference"] == pytest.approx(expected)
    with pytest.raises(gp.InputError, match="no method 'oracle', there are glidepath, best, last"):
        result.pairs("oracle")
    with pytest.raises(gp.InputError, match="no test of 'cov80'"):
        result.pairs(score="cov80")


# ------------------------------------------------------------------------------- results files


def test_a_results_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    result = gp.bench.accuracy(RUNS, {"weak": raising(ValueError("why"))})
    result.write(tmp_path / "r.json")
    again = gp.bench.read_accuracy(tmp_path / "r.json")
    assert again == result
    assert again.table() == result.table()
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["schema"] == "glidepath.accuracy/3"
    assert document["about"]["cutoffs"] == [0.1, 0.2, 0.4, 0.6, 0.8]


def test_other_files_are_refused_in_a_sentence(tmp_path: Path) -> None:
    result = plain(gp.bench.accuracy(RUNS, "best").to_dict())
    row = result["rows"][0]
    broken: list[tuple[Any, str]] = [
        ("{", "no JSON"),
        ("[1]", "expected a document of schema 'glidepath.accuracy/3', got None"),
        (json.dumps(result | {"schema": "glidepath.accuracy/9"}), "got 'glidepath.accuracy/9'"),
        (json.dumps({"schema": result["schema"]}), "has no rows"),
        (json.dumps({"schema": result["schema"], "rows": [{"method": "a"}]}), "row 0 lacks"),
        (json.dumps({"schema": result["schema"], "rows": [3]}), "row 0 is no object"),
        (
            json.dumps(result | {"rows": [row | {"crps": None}]}),
            "row 0: 'crps' is None, expected a number",
        ),
        (json.dumps(result | {"rows": [row | {"run": 3}]}), "row 0: 'run' is 3, expected text"),
        (
            json.dumps(result | {"rows": [row | {"pit": "x"}]}),
            "row 0: 'pit' is 'x', expected a number",
        ),
        (json.dumps(result | {"about": 3}), "about is no object"),
    ]
    path = tmp_path / "r.json"
    for text, said in broken:
        path.write_text(text)
        with pytest.raises(gp.IoError, match=f"r.json: .*{said}"):
            gp.bench.read_accuracy(path)
    path.write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    with pytest.raises(
        gp.IoError, match=r"r\.json: not the results of a benchmark, which are text$"
    ):
        gp.bench.read_accuracy(path)
    with pytest.raises(gp.IoError, match="No such file"):
        gp.bench.read_accuracy(tmp_path / "none.json")


def test_files_over_the_same_prefixes_are_one_comparison(tmp_path: Path) -> None:
    for name, method in (("one", "best"), ("two", "walk")):
        gp.bench.accuracy(RUNS, {"mine": method}).write(tmp_path / f"{name}.json")
    both = gp.bench.read_accuracy(tmp_path / "one.json", tmp_path / "two.json")
    assert both.methods == ["mine", "last", "mine (two)"]
    alone = gp.bench.accuracy(RUNS, "walk").table()[0]
    assert both.table()[2]["crps"] == alone["crps"]
    gp.bench.accuracy(RUNS, "walk", max_curves=2).write(tmp_path / "three.json")
    with pytest.raises(gp.InputError, match=r"three.json scored other prefixes than .*one.json"):
        gp.bench.read_accuracy(tmp_path / "one.json", tmp_path / "three.json")


# --------------------------------------------------------------------------- sources of curves


def test_logs_of_any_format_are_scored_by_collection(tmp_path: Path) -> None:
    for task in ("images", "text"):
        for i in range(2):
            folder = tmp_path / task / f"run{i}"
            folder.mkdir(parents=True)
            rows = [{"step": t, "loss": 1 + t**-0.5 + i} for t in range(1, 31)]
            (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for i in range(3):
        folder = tmp_path / f"alone{i}"
        folder.mkdir()
        lines = "".join(f"{t},{2 + t**-0.4 + i}\n" for t in range(1, 31))
        (folder / "metrics.csv").write_text("epoch,val_loss\n" + lines)
    (tmp_path / "notes.txt").write_text("nothing to see")
    (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": 2}\n{"step": \n')
    result = gp.bench.accuracy(tmp_path, "aic")
    found = {each["name"]: each for each in result.about["collections"]}
    assert {name: each["usable"] for name, each in found.items() if each["usable"]} == {
        "images": 2,
        "text": 2,
        tmp_path.name: 3,
    }
    names = {row["run"] for row in result.rows if row["collection"] == tmp_path.name}
    assert names == {f"alone{i}/metrics.csv" for i in range(3)}
    broken = found["log"]["trouble"]
    assert broken == "" or "log.jsonl" in broken


def test_the_seed_draws_the_curves() -> None:
    def drawn(seed: int) -> set[str]:
        rows = gp.bench.accuracy(RUNS, "last", max_curves=4, seed=seed).rows
        return {row["run"] for row in rows}

    assert len(drawn(0)) == 4
    assert drawn(1) == drawn(1)
    assert len({frozenset(drawn(seed)) for seed in range(5)}) > 1


# ------------------------------------------------------------------------------------ baselines


def test_neighbours_find_the_run_that_is_the_same_but_for_level_and_scale() -> None:
    past = tuple(run(f"{i}", 0.1 * i) for i in range(1, 21))
    same = past[9]  # rate 1.0
    seen = gp.Trace(same.step[:16], 3 + 0.5 * same.loss[:16])
    given = neighbours(seen, same.step[16:], past=(*past, *[same] * 10))
    truth = 3 + 0.5 * same.loss[16:]
    error = np.abs(given["quantiles"][9] - truth).max()
    assert error < 0.1 * abs(seen.loss[-1] - truth[-1]) + 0.05
    few = neighbours(seen, same.step[16:], past=past[:4])
    assert few["quantiles"].shape == (19, 24)


def test_noise_is_that_of_the_points() -> None:
    rng = np.random.default_rng(4)
    curve = 5 / np.sqrt(np.arange(1, 5001))
    assert noise(curve[1000:] + 0.1 * rng.standard_normal(4000)) == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("name", ["best", "walk", "median", "neighbours"])
def test_baselines_answer_on_our_own_runs(name: str) -> None:
    file = Path(__file__).parents[2] / "data/curves/docs-lstm.csv.gz"
    result = gp.bench.accuracy(file, name, max_curves=2)
    assert not result.failures()
    assert all(0 <= row["crps"] <= 1 for row in result.rows)


def test_arima_foresees_a_straight_line_and_says_what_to_install() -> None:
    pytest.importorskip("statsmodels")
    step = np.arange(1.0, 61)
    noisy = 10 - 0.1 * step + 0.001 * np.random.default_rng(5).standard_normal(60)
    result = gp.bench.accuracy([gp.Trace(step, noisy)], "arima", cutoffs=[0.6])
    assert not result.failures()
    assert result.rows[0]["error"] < 0.2 * result.rows[1]["error"]


def test_a_missing_package_is_said_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "statsmodels"]:
        monkeypatch.delitem(sys.modules, name)

    class Absent:
        def find_spec(self, name: str, *_: Any) -> None:
            if name.partition(".")[0] == "statsmodels":
                raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    with pytest.raises(ImportError, match=r"pip install 'glidepath\[bench\]'"):
        gp.bench.accuracy(RUNS, "arima")


# ------------------------------------------------------------------------------ time to target

DOWN = [run(f"{group}/{i}", 0.5 + 0.05 * i) for group in "abcd" for i in range(4)]


def test_past_times_are_those_of_past_runs() -> None:
    result = gp.bench.reach(DOWN, "past-times", target=1.25)
    truth = {each.name: float(each.step[np.argmax(each.loss <= 1.25)]) for each in DOWN}
    for row in result.rows:
        assert row["truth"] == truth[row["run"]]
    row = result.rows[0]
    assert row["inside"] in (0.0, 1.0)
    assert {r["share"] for r in result.rows} == {0.3, 0.5, 0.7}


def test_a_law_of_ones_own_is_scored_and_a_forecast_is_read_for_one() -> None:
    def knows(trace: gp.Trace, at: Floats) -> Floats:
        rate = -np.log(trace.loss[-1] - 1) / np.log(trace.step[-1])
        return 1 + at**-rate

    def when(trace: gp.Trace, target: float) -> Floats:
        rate = -np.log(trace.loss[-1] - 1) / np.log(trace.step[-1])
        return np.ceil(np.full(5, (target - 1) ** (-1 / rate)) - 1e-9)

    def own(trace: gp.Trace, at: Floats) -> Floats:
        raise AssertionError("not called: it says when")

    own.reach = when  # type: ignore[attr-defined]
    result = gp.bench.reach(DOWN, [knows, own, "glidepath"], target=1.25)
    table = {row["method"]: row for row in result.table()}
    assert table["own"]["error"] == 0.0
    assert table["own"]["inside"] == 1.0
    assert table["knows"]["error"] < 0.06  # as fine as the grid of steps
    assert table["knows"]["probability"] == 1.0
    assert not result.failures()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"probability": 2.0, "quantiles": (1, 2, 3)}, "probability 2"),
        ({"when": 3}, "reach gave when: expected probability, quantiles"),
        ([], "expected steps"),
        ([math.nan], "no NaN"),
        ("soon", "reach: str is no array"),
    ],
)
def test_a_wrong_law_is_a_failure_with_a_sentence(given: Any, said: str) -> None:
    def method(trace: gp.Trace, at: Floats) -> dict[str, Floats]:
        return {"quantiles": np.ones((19, at.size))}

    method.reach = lambda trace, target: given  # type: ignore[attr-defined]
    result = gp.bench.reach(DOWN, method, target=1.25)
    (line,) = result.failures()
    assert line["n_failed"] == len(result.rows)
    assert said in line["why"]
    assert result.table()[0]["error"] == 3.0
    scored = gp.bench.accuracy(DOWN, method)
    assert said in scored.failures()[0]["why"]


def test_never_is_a_law_too() -> None:
    law = protocol.arrival_of([math.inf, 5.0, 7.0, math.inf])
    assert law.probability == 0.5
    assert law.quantiles[1] == 6.0
    never = protocol.arrival_of([math.inf])
    assert never.probability == 0.0
    assert never.quantiles == (math.inf,) * 3


def test_scores_of_time_to_target_are_those_of_the_targets_beside_files(tmp_path: Path) -> None:
    lines = ["curve,step,value"]
    for each in DOWN:  # as accuracies
        lines += [
            f"{each.name},{s:g},{2 - float(v)!r}" for s, v in zip(each.step, each.loss, strict=True)
        ]
    (tmp_path / "races.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "races.json").write_text('{"direction": "max", "target": 0.75}')
    up = gp.bench.reach(tmp_path, "past-times")
    down = gp.bench.reach(
        [gp.Trace(t.step, t.loss, name=t.name) for t in DOWN], "past-times", target=1.25
    )
    for a, b in zip(up.rows, down.rows, strict=True):
        assert a["truth"] == b["truth"]
        assert a["error"] == pytest.approx(b["error"])
    (tmp_path / "races.json").write_text('{"target": "soon"}')
    with pytest.raises(gp.InputError, match=r"races.json: its target is 'soon', expected a number"):
        gp.bench.reach(tmp_path, "past-times")
    with pytest.raises(gp.InputError, match="bench: no target: give one"):
        gp.bench.reach(DOWN, "past-times")
    with pytest.raises(gp.InputError, match="none of the runs drawn comes to a target"):
        gp.bench.reach(DOWN, "past-times", target=-1)


def test_ours_know_that_the_target_of_a_score_is_one_of_a_score() -> None:
    # Of a log that begins late, and does not tell which clock is right, a score and a loss differ.
    step, point = np.arange(900.0, 1300.0, 10), np.arange(40.0)
    percent = 80 - 10 * (1 + point) ** -0.8 + np.cos(1.7 * point**1.3)
    run = gp.Trace(step, percent, name="a", direction="max")
    result = gp.bench.reach([run], "glidepath", target=79.0)
    first = int(np.argmax(percent >= 79.0))
    for row in result.rows:
        seen = max(3, round(row["share"] * first))
        known = {"budget": 3 * float(step[first]), "reached_by": "point"}
        score = gp.Trace(step[:seen], percent[:seen] / 100, direction="max")
        law = gp.reach(score, 0.79, **known)
        assert row["probability"] == pytest.approx(1 - law.prob_never)
        middle = law.quantile(0.5, if_reached=True)
        assert row["error"] == pytest.approx(abs(math.log(middle / step[first])))


# --------------------------------------------------------------------------------- command line


def test_one_document_is_printed_whatever_a_method_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "chatty.py").write_text(
        "def f(trace, at):\n    print('thinking')\n    raise RuntimeError('tired')\n"
    )
    lines = ["curve,step,value"]
    lines += [
        f"{t.name},{s:g},{float(v)!r}" for t in RUNS for s, v in zip(t.step, t.loss, strict=True)
    ]
    Path("runs.csv").write_text("\n".join(lines) + "\n")
    line = ["bench", "accuracy", "runs.csv", "-m", "chatty:f", "-m", "best", "--cutoff", "0.5"]
    assert main([*line, "--json", "--out", "r.json", "--seed", "3"]) == 1  # it failed
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["about"]["seed"] == 3
    assert document["failed_calls"][0]["why"] == "9 times RuntimeError: tired"
    assert "thinking" in err
    assert main(["bench", "compare", "r.json"]) == 1
    out, _ = capsys.readouterr()
    assert "9 of 9" in out
    assert "RuntimeError: tired" in out
    assert main(["bench", "accuracy", "runs.csv", "--out", "r.txt"]) == 2
    assert "--out r.txt: neither .json nor .html" in capsys.readouterr().err
    reach = ["bench", "reach", "runs.csv", "--target", "1.3", "-m", "past-times", "--json"]
    assert main(reach) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "glidepath.reach/2"
    assert main(reach[:-1]) == 0
    assert "past-times" in capsys.readouterr().out


def test_the_page_has_the_figures_of_the_result(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    from glidepath import _report

    result = gp.bench.accuracy(RUNS, {"<b>": raising(ValueError("<i>")), "glidepath": "glidepath"})
    _report.write_accuracy(tmp_path / "p.html", result)
    page = (tmp_path / "p.html").read_text()
    text = page[page.index("id=data>") + 8 :]
    data = json.loads(text[: text.index("</script>")])
    assert data["overall"][1]["mae"] == result.table()[1]["mae"]
    text = page[page.index("id=figures>") + 11 :]
    drawn = json.loads(text[: text.index("</script>")])
    assert {line["name"] for line in drawn["figure-0"]["data"]} == {"calibrated", "glidepath"}
    assert {line["name"] for line in drawn["figure-1"]["data"]} == {"<b>", "glidepath", "last"}
    assert "ValueError: &lt;i&gt;" in page
    assert page.count("plotly.js v") == 1


# ---------------------------------------------------------------------- examples of others' models


def stub(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> None:
    module = types.ModuleType(name)
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, name, module)


class NearestRow:
    """What TabPFN's regressor is called for: quantiles at rows, here of the nearest one seen."""

    def __init__(self, *, model_path: str, device: str, random_state: int) -> None:
        assert (model_path, device) == ("weights.ckpt", "cpu")

    def fit(self, rows: Floats, values: Floats) -> None:
        assert rows.shape == (values.size, 1)
        self.rows, self.values = rows, values

    def predict(self, rows: Floats, *, output_type: str, quantiles: list[float]) -> list[Floats]:
        assert output_type == "quantiles"
        nearest = self.values[np.abs(rows - self.rows.T).argmin(1)]
        return [nearest + p - 0.5 for p in quantiles]


def test_the_adapter_of_tabpfn_gives_its_quantiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples/python")
    monkeypatch.setenv("TABPFN_WEIGHTS", "weights.ckpt")
    stub(monkeypatch, "tabpfn", TabPFNRegressor=NearestRow)
    long = [run("long", 0.5, points=900)]  # more rows than it sees, and more than it is asked of
    result = gp.bench.accuracy(long, ["with_tabpfn:Running", "with_tabpfn:LogStep"])
    assert not result.failures()
    for row in result.rows:
        if row["method"] != "last":  # flat, as the last block mean
            assert row["final"] == pytest.approx(row["last"], abs=0.02)
            assert row["cov80"] == 1.0


def test_the_adapter_of_deephyper_gives_paths_of_logged_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Posterior:
        def __init__(self, *, batch_size: int, min_max_scaling: bool, random_state: int) -> None:
            assert min_max_scaling
            self.size = batch_size
            self.mcmc_ = self

        def fit(self, step: Floats, score: Floats) -> None:
            assert step.shape == score.shape == (self.size,)
            assert step[0] < 10
            self.last = score[-1]

        def predict_posterior_samples(self, step: Floats) -> Floats:
            return np.full((400, step.size), self.last)

        def get_samples(self) -> dict[str, Floats]:
            return {"sigma": np.full(400, 0.1)}

    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples/python")
    stub(monkeypatch, "deephyper.stopper.lce", BayesianLearningCurveRegressor=Posterior)
    result = gp.bench.accuracy([run("long", 0.5, points=900)], "with_deephyper:posterior")
    assert not result.failures()
    row = result.rows[-2]
    assert row["final"] == pytest.approx(row["last"], abs=0.02)
    assert row["cov80"] == 1.0  # a tenth of the range is more than what is left of it


@pytest.mark.parametrize("methods", [None, 3])
def test_methods_that_are_none_are_refused(methods: Any) -> None:
    with pytest.raises(gp.InputError, match="expected names or callables"):
        gp.bench.accuracy(RUNS, methods)
