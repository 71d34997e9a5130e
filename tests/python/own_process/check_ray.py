# SPDX-License-Identifier: Apache-2.0
"""Ray Tune itself, with the search of the example, then the stopper on its own."""

from __future__ import annotations

import pickle
import runpy
from pathlib import Path
from typing import Any

import pytest

import glidepath as gp

ray = pytest.importorskip("ray", reason="ray is not installed")
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    for _ in range(3):
        try:
            # Functions of a main module travel to the workers by value.
            return runpy.run_path(str(EXAMPLES / "with_ray.py"), run_name="__main__")
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
            ray.shutdown()
    pytest.skip("this machine is too busy for Ray, which gives itself 30 s to start")


def test_the_example_stops_both_trials_for_their_reasons(example: dict[str, Any]) -> None:
    hopeless, done = sorted(
        (result.metrics for result in example["results"]), key=lambda m: m["config"]["rate"]
    )
    assert hopeless["training_iteration"] < 30
    assert hopeless["forecast_probability"] <= 0.02
    assert done["forecast_probability"] == 1.0
    assert done["loss"] <= 0.3
    # The loggers of Tune have it too.
    (log,) = gp.read_traces(example["results"][0].path + "/progress.csv", metric="forecast_stop")
    assert log.loss[-1] == 1.0
    assert log.loss[0] == 0.0


def told(stopper: Any, trial: str, losses: list[float], begin: int = 1) -> list[bool]:
    rows = [{"training_iteration": i, "loss": loss} for i, loss in enumerate(losses, begin)]
    return [stopper(trial, row) for row in rows]


def test_trials_are_judged_apart_and_advice_stops_nothing(example: dict[str, Any]) -> None:
    kind = example["ForecastStopper"]
    for mode in ("act", "advise"):
        stopper = kind("loss", 0.5, budget=40, mode=mode)
        flat, falling = [3.0, 3.01] * 13, [3.0 / i for i in range(1, 5)]
        assert told(stopper, "a", flat)[-1] is (mode == "act")
        assert not any(told(stopper, "b", falling))
        assert not stopper("a", {"training_iteration": 9})  # a result without the metric
        assert not stopper.stop_all()
        again = pickle.loads(pickle.dumps(stopper))
        assert told(again, "b", [0.4], 5) == [mode == "act"]
    with pytest.raises(gp.InputError, match="mode is 'x'"):
        kind("loss", 0.5, mode="x")
    with pytest.raises(gp.InputError, match="patience is 0, expected a whole number of 1 or more"):
        kind("loss", 0.5, patience=0)
    with pytest.raises(
        gp.InputError, match=r"^state .*check_ray\.py is a file, expected a folder$"
    ):
        kind("loss", 0.5, state=__file__)


def test_a_result_without_a_number_is_passed_over_or_a_sentence(example: dict[str, Any]) -> None:
    stopper = example["ForecastStopper"]("loss", 0.5, budget=40, time_attr="epoch")
    assert not stopper("a", {"epoch": 1, "loss": None})
    for row, said in (
        ({"training_iteration": 1, "loss": 2.0}, "time_attr 'epoch' is not among what trials"),
        ({"epoch": 1, "loss": "x"}, "loss is 'x', expected a number"),
        ({"epoch": [1], "loss": 2.0}, r"the step is \[1\], expected a number"),
    ):
        with pytest.raises(gp.InputError, match=said):
            stopper("a", row)


def test_the_state_survives_an_experiment_that_is_restored(
    example: dict[str, Any], tmp_path: Path
) -> None:
    kind, losses = example["ForecastStopper"], [3.0 / i + 0.001 * (i % 2) for i in range(1, 13)]
    first = kind("loss", 0.01, budget=1000, state=tmp_path)
    told(first, "a", losses[:6])
    second = kind("loss", 0.01, budget=1000, state=tmp_path)
    told(second, "a", losses[6:], 7)
    whole = kind("loss", 0.01, budget=1000)
    told(whole, "a", losses)
    states = [stopper._trials["a"].watch.to_dict() for stopper in (second, whole)]
    assert states[0] == states[1]
    assert states[0]["points"] == 12


def test_a_score_that_rises_ends_at_its_target_or_where_it_cannot_get_there(
    example: dict[str, Any], tmp_path: Path
) -> None:
    def train(config: dict[str, float]) -> None:
        for epoch in range(1, 41):
            score = config["ceiling"] - (config["ceiling"] - 0.1) / epoch
            example["tune"].report({"val_acc": score})

    try:
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except Exception as error:
        if "timed out during startup" not in str(error):
            raise
        pytest.skip("this machine is too busy for Ray, which gives itself 30 s to start")
    tune = example["tune"]
    stopper = example["ForecastStopper"]("val_acc", target=0.9, budget=40, mode="act")
    tuner = tune.Tuner(
        train,
        param_space={"ceiling": tune.grid_search([0.6, 0.97])},
        tune_config=tune.TuneConfig(reuse_actors=True),
        run_config=tune.RunConfig(storage_path=str(tmp_path), stop=stopper, verbose=0),
    )
    found = {result.metrics["config"]["ceiling"]: result.metrics for result in tuner.fit()}
    ray.shutdown()
    assert max(told["training_iteration"] for told in found.values()) < 40
    assert found[0.6]["forecast_probability"] <= 0.02
    assert found[0.97]["forecast_probability"] == 1.0
    assert 0.9 <= found[0.97]["val_acc"] < 0.91


def test_the_direction_is_what_the_name_of_the_metric_says(
    example: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    kind = example["ForecastStopper"]
    stopper = kind("val_acc", 0.97, budget=40, mode="act")
    rows = [{"training_iteration": i, "val_acc": 0.3 + 0.01 * i} for i in range(1, 4)]
    assert not any(stopper("a", row) for row in rows)
    with pytest.raises(gp.InputError, match="'score' does not say which way is better"):
        kind("score", 0.97, budget=40)
    missing = kind("vall_acc", 0.97, budget=40)
    for row in rows:
        missing("a", {"training_iteration": row["training_iteration"], "acc": 0.3, "pid": 7})
    assert caplog.messages == [
        "'vall_acc' is not among the metrics that were logged (acc): nothing is forecast "
        "until it is"
    ]
