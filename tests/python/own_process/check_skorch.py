# SPDX-License-Identifier: Apache-2.0
"""skorch itself, with the net of the example."""

from __future__ import annotations

import pickle
import runpy
from pathlib import Path
from typing import Any

import pytest

import glidepath as gp

skorch = pytest.importorskip("skorch", reason="skorch is not installed")
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / "with_skorch.py"))


def net(example: dict[str, Any], callback: Any, epochs: int) -> Any:
    from sklearn.base import clone

    return clone(example["net"]).set_params(callbacks=[("forecast", callback)], max_epochs=epochs)


def callback_of(fitted: Any) -> Any:
    return dict(fitted.callbacks_)["forecast"]


def test_the_example_stops_a_run_that_cannot_reach_its_target(example: dict[str, Any]) -> None:
    history = example["net"].history
    assert len(history) < 40
    decision = callback_of(example["net"]).adviser_.decision
    assert decision.verdict == "never"
    assert history[:, "forecast_stop"] == [0.0] * (len(history) - 1) + [1.0]
    assert history[-1, "forecast_probability"] == decision.probability


def test_advice_stops_nothing(example: dict[str, Any]) -> None:
    kind = example["ForecastCallback"]
    fitted = net(example, kind(-10.0, monitor="train_loss", budget=8, patience=3), 7).fit(
        example["x"], example["y"]
    )
    assert len(fitted.history) == 7
    assert fitted.history[-1, "forecast_stop"] == 1.0


def test_the_state_survives_a_pickle_and_a_loaded_history(
    example: dict[str, Any], tmp_path: Path
) -> None:
    kind, data = example["ForecastCallback"], (example["x"], example["y"])
    half = net(example, kind(0.3), 3).fit(*data)
    half.save_params(f_params=tmp_path / "net.pt", f_history=tmp_path / "history.json")
    resumed = net(example, kind(0.3), 3).initialize()
    resumed.load_params(f_params=tmp_path / "net.pt", f_history=tmp_path / "history.json")
    for each in (resumed, pickle.loads(pickle.dumps(half))):
        each.partial_fit(*data)
        state = callback_of(each).adviser_.watch.to_dict()
        assert state["step"] == [1, 2, 3, 4, 5, 6]
        assert state["loss"] == each.history[:, "valid_loss"]
        assert state["budget"] == 6


def test_a_monitor_that_is_never_logged_is_told(
    example: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    kind = example["ForecastCallback"]
    net(example, kind(1.0, monitor="vall_loss"), 1).fit(example["x"], example["y"])
    first, last = caplog.messages
    assert first.startswith("'vall_loss' is not among the metrics that were logged (")
    assert "valid_loss" in first
    assert last == "'vall_loss' was never logged: nothing was forecast"


def score(ceiling: float, epoch: int) -> float:
    """Rise from chance towards a ceiling."""
    return ceiling - (ceiling - 0.1) * epoch**-1.0


class Shown(skorch.callbacks.Callback):  # type: ignore[misc]
    """Record a score of our own."""

    def __init__(self, ceiling: float) -> None:
        self.ceiling = ceiling

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        net.history.record("valid_acc", score(self.ceiling, len(net.history)))


@pytest.mark.parametrize(("ceiling", "verdict"), [(0.97, "reached"), (0.6, "never")])
def test_a_score_that_rises_ends_at_its_target_or_where_it_cannot_get_there(
    example: dict[str, Any], ceiling: float, verdict: str
) -> None:
    callback = example["ForecastCallback"](0.9, monitor="valid_acc", mode="act")
    both = [("shown", Shown(ceiling)), ("forecast", callback)]
    fitted = net(example, callback, 40).set_params(callbacks=both)
    fitted.fit(example["x"], example["y"])
    epochs = len(fitted.history)
    assert callback_of(fitted).adviser_.decision.verdict == verdict
    assert epochs < 40
    assert (score(ceiling, epochs) >= 0.9) == (verdict == "reached")
    assert score(ceiling, epochs - 1) < 0.9


@pytest.mark.parametrize(
    ("monitor", "given", "direction"),
    [("valid_acc", None, "max"), ("valid_loss", None, "min"), ("score", "max", "max")],
)
def test_the_direction_is_what_the_name_of_the_metric_says(
    example: dict[str, Any], monitor: str, given: str | None, direction: str
) -> None:
    callback = example["ForecastCallback"](0.9, monitor=monitor, direction=given)
    callback.on_train_begin(net(example, callback, 1).initialize())
    assert callback.adviser_.watch.to_dict()["direction"] == direction


def test_a_name_that_does_not_say_the_direction_needs_one(example: dict[str, Any]) -> None:
    callback = example["ForecastCallback"](0.9, monitor="score")
    with pytest.raises(gp.InputError, match="'score' does not say which way is better"):
        callback.on_train_begin(net(example, callback, 1).initialize())


def test_a_schedule_is_that_of_the_watch(example: dict[str, Any]) -> None:
    schedule = gp.Schedule.cosine(0.1, 4)
    callback = example["ForecastCallback"](-10.0, monitor="train_loss", schedule=schedule)
    fitted = net(example, callback, 4).fit(example["x"], example["y"])
    state = callback_of(fitted).adviser_.watch.to_dict()
    assert state["schedule"] == schedule.to_dict()
