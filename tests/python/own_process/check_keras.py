# SPDX-License-Identifier: Apache-2.0
"""Keras itself, on torch, with the model of the example."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

import pytest

import glidepath as gp

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras", reason="keras is not installed")
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / "with_keras.py"))


def fit(example: dict[str, Any], callbacks: list[Any], epochs: int = 6) -> Any:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.02), "mse")
    return model.fit(
        example["x"],
        example["y"],
        validation_split=0.25,
        batch_size=64,
        epochs=epochs,
        shuffle=False,
        callbacks=callbacks,
        verbose=0,
    )


def test_the_example_stops_a_run_that_cannot_reach_its_target(example: dict[str, Any]) -> None:
    history, decision = example["history"], example["callback"].adviser.decision
    assert len(history.epoch) < 40
    assert decision.verdict == "never"
    assert history.history["forecast_stop"] == [0.0] * (len(history.epoch) - 1) + [1.0]
    assert history.history["forecast_probability"][-1] == decision.probability


def test_advice_is_told_to_the_loggers_and_stops_nothing(
    example: dict[str, Any], tmp_path: Path
) -> None:
    callback = example["ForecastCallback"](-10.0, monitor="loss", budget=7, patience=2)
    file = tmp_path / "log.csv"
    assert len(fit(example, [callback, keras.callbacks.CSVLogger(str(file))]).epoch) == 6
    (chance,) = gp.read_traces(file, metric="forecast_probability")
    assert len(chance) == 6
    assert gp.read_traces(file, metric="forecast_stop")[0].loss[-1] == 1.0
    assert callback.adviser.decision.probability == chance.loss[-1]


def test_the_state_survives_a_kill(example: dict[str, Any], tmp_path: Path) -> None:
    class Killed(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch == 3:
                raise InterruptedError

    kind, state = example["ForecastCallback"], tmp_path / "state.json"
    backup = str(tmp_path / "backup")
    callbacks = [kind(0.3, state=state), keras.callbacks.BackupAndRestore(backup), Killed()]
    with pytest.raises(InterruptedError):
        fit(example, callbacks)
    assert state.exists()
    resumed = kind(0.3, state=state)
    history = fit(example, [resumed, keras.callbacks.BackupAndRestore(backup)])
    assert history.epoch == [3, 4, 5]
    seen = resumed.adviser.watch.to_dict()
    assert (seen["step"], seen["restarts"]) == ([1, 2, 3, 4, 5, 6], 0)
    assert not state.exists()
    whole = kind(0.3)
    fit(example, [whole])
    assert seen["loss"] == pytest.approx(whole.adviser.watch.to_dict()["loss"], rel=1e-5)


def test_a_monitor_that_is_never_logged_is_told(
    example: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    fit(example, [example["ForecastCallback"](1.0, monitor="vall_loss")], epochs=1)
    first, last = caplog.messages
    assert first == (
        "'vall_loss' is not among the metrics that were logged (loss, val_loss): nothing is "
        "forecast until it is"
    )
    assert last == "'vall_loss' was never logged: nothing was forecast"


def test_an_accuracy_below_its_target_does_not_stop_the_training(example: dict[str, Any]) -> None:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(keras.optimizers.SGD(0.001), "binary_crossentropy", metrics=["accuracy"])
    callback = example["ForecastCallback"](0.999, monitor="val_accuracy", mode="act")
    labels = (example["y"] > 0).astype("float32")
    history = model.fit(
        example["x"], labels, validation_split=0.25, epochs=4, callbacks=[callback], verbose=0
    )
    assert len(history.epoch) == 4
    assert callback.adviser.decision.verdict != "reached"


def score(ceiling: float, epoch: int) -> float:
    """Rise from chance towards a ceiling."""
    return ceiling - (ceiling - 0.1) * epoch**-1.0


@pytest.mark.parametrize(("ceiling", "verdict"), [(0.97, "reached"), (0.6, "never")])
def test_a_score_that_rises_ends_at_its_target_or_where_it_cannot_get_there(
    example: dict[str, Any], ceiling: float, verdict: str
) -> None:
    shown = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: logs.update(val_accuracy=score(ceiling, epoch + 1))
    )
    callback = example["ForecastCallback"](0.9, monitor="val_accuracy", mode="act")
    epochs = len(fit(example, [shown, callback], 40).epoch)
    assert callback.adviser.decision.verdict == verdict
    assert epochs < 40
    assert (score(ceiling, epochs) >= 0.9) == (verdict == "reached")
    assert score(ceiling, epochs - 1) < 0.9


def test_the_direction_is_what_the_name_of_the_metric_says(example: dict[str, Any]) -> None:
    kind = example["ForecastCallback"]
    for name, direction in (("val_acc", "max"), ("val_loss", "min")):
        assert kind(0.9, monitor=name).adviser.watch.to_dict()["direction"] == direction
    with pytest.raises(gp.InputError, match="'score' does not say which way is better: give dir"):
        kind(0.9, monitor="score")
    assert kind(0.9, monitor="score", direction="max").adviser.watch.to_dict()["direction"] == "max"
    with pytest.raises(gp.InputError, match="expected 'advise' or 'act'; say direction='max'"):
        kind(0.9, mode="max")
