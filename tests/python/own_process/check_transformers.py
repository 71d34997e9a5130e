# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer itself, with the model of the example."""

from __future__ import annotations

import logging
import runpy
from pathlib import Path
from typing import Any

import pytest

import glidepath as gp

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / "with_transformers.py"))


def trainer(example: dict[str, Any], folder: Path, callbacks: list[Any], **options: Any) -> Any:
    arguments = transformers.TrainingArguments(
        **{
            "output_dir": str(folder),
            "max_steps": 100,
            "logging_steps": 10,
            "save_steps": 50,
            "learning_rate": 0.05,
            "max_grad_norm": 0.0,
            "report_to": "none",
            "disable_tqdm": True,
            "use_cpu": True,
        }
        | options
    )
    model = example["Regression"]()
    data = example["data"]
    return transformers.Trainer(
        model, arguments, train_dataset=data, eval_dataset=data[:64], callbacks=callbacks
    )


def test_the_example_stops_a_run_that_cannot_reach_its_target(example: dict[str, Any]) -> None:
    state = example["trainer"].state
    assert state.global_step < 400
    assert example["callback"].adviser.decision.verdict == "never"
    rows = [row for row in state.log_history if "loss" in row]
    assert len(rows) == state.global_step // 10
    assert [row["forecast_stop"] for row in rows] == [0.0] * (len(rows) - 1) + [1.0]
    assert rows[-1]["forecast_probability"] == example["callback"].adviser.decision.probability


def test_advice_is_told_to_the_trackers_and_stops_nothing(
    example: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Tracker(transformers.TrainerCallback):
        rows: list[dict[str, float]] = []  # noqa: RUF012

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            self.rows.append(dict(logs))

    callback = example["ForecastCallback"](target=-10.0, budget=120)
    run = trainer(example, tmp_path, [callback, Tracker()], save_strategy="no")
    with caplog.at_level(logging.INFO, "glidepath"):
        run.train()
    assert run.state.global_step == 100
    assert callback.adviser.decision.verdict == "never"
    schedule = callback.adviser.watch.to_dict()["schedule"]
    assert schedule["step"] == [0.0, 100.0, 120.0]  # of the Trainer, linear to 0 at its last step
    assert schedule["lr"] == pytest.approx([0.05, 0.0, 0.0])
    assert any("(would stop)" in record.message for record in caplog.records)
    assert [row["forecast_stop"] for row in Tracker.rows if "loss" in row][-1] == 1.0
    run.save_state()
    (chance,) = gp.read_traces(tmp_path, metric="forecast_probability")
    assert chance.step.tolist() == list(range(10, 101, 10))


def test_the_trackers_of_the_trainer_log_the_forecast_of_a_callback_that_leads(
    example: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path))
    callback = example["ForecastCallback"](target=0.26)
    options = {"report_to": "tensorboard", "save_strategy": "no"}
    run = trainer(example, tmp_path / "run", [callback], **options)
    callback.lead(run)
    run.train()
    (chance,) = gp.read_traces(tmp_path, metric="train/forecast_probability")
    assert chance.step.tolist() == list(range(10, 101, 10))
    assert chance.loss[-1] == pytest.approx(callback.adviser.decision.probability)


def test_the_state_survives_a_checkpoint(example: dict[str, Any], tmp_path: Path) -> None:
    whole = example["ForecastCallback"](target=0.26)
    trainer(example, tmp_path, [whole]).train()
    resumed = example["ForecastCallback"](target=0.26)
    again = trainer(example, tmp_path, [resumed], save_strategy="no")
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-50"))
    first, second = (each.adviser.watch.to_dict() for each in (whole, resumed))
    assert second["step"] == first["step"] == list(range(10, 101, 10))
    assert second["loss"][:5] == first["loss"][:5]
    assert (second["points"], second["budget"]) == (10, 100)


def test_a_loss_that_the_trainer_shows_as_zero_has_diverged(
    example: dict[str, Any], tmp_path: Path
) -> None:
    callback = example["ForecastCallback"](target=0.3, mode="act")
    run = trainer(example, tmp_path, [callback], save_strategy="no")
    run.model.layer.weight.data.fill_(float("nan"))
    run.train()
    assert run.state.log_history[0]["loss"] == 0
    assert callback.adviser.decision.verdict == "diverged"
    assert run.state.global_step < 100


def test_a_loss_that_is_no_number_is_a_sentence(example: dict[str, Any], tmp_path: Path) -> None:
    callback = example["ForecastCallback"](target=0.3)
    run = trainer(example, tmp_path, [callback], save_strategy="no")
    for logs, said in (
        ({"loss": "x"}, "loss is 'x', expected a number"),
        ({"loss": 0.0, "grad_norm": "x"}, "grad_norm is 'x', expected a number"),
    ):
        with pytest.raises(gp.InputError, match=said):
            callback.on_log(run.args, run.state, run.control, logs=logs)
    for norm, known in ((None, True), (1.0, True), (float("nan"), False)):
        loss = callback._loss({"loss": 0.0, "grad_norm": norm})
        assert (loss == 0.0) is known


def test_evaluation_can_be_watched_and_a_wrong_mode_is_refused(
    example: dict[str, Any], tmp_path: Path
) -> None:
    callback = example["ForecastCallback"](target=3.9, metric="eval_loss", mode="act")
    options = {"eval_strategy": "steps", "eval_steps": 20, "save_strategy": "no"}
    run = trainer(example, tmp_path, [callback], **options)
    run.train()
    assert callback.adviser.decision.verdict == "reached"
    with pytest.raises(gp.InputError, match="mode is 'stop', expected 'advise' or 'act'"):
        example["ForecastCallback"](target=1.0, mode="stop")


def test_a_metric_that_is_never_logged_is_told(
    example: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    callback = example["ForecastCallback"](1.0, metric="eval_loss")
    trainer(example, tmp_path, [callback], save_strategy="no", max_steps=2).train()
    assert "'eval_loss' was never logged: nothing was forecast" in caplog.messages


@pytest.mark.parametrize(
    ("metric", "options", "step"),
    [
        ("los", {}, 10),
        ("eval_los", {"eval_strategy": "steps", "eval_steps": 20}, 20),
        ("eval_loss", {}, 10),  # no evaluation is planned
    ],
)
def test_a_metric_that_a_log_lacks_is_said_at_once(
    example: dict[str, Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    metric: str,
    options: dict[str, Any],
    step: int,
) -> None:
    class Until(transformers.TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            said = any("is not among the metrics" in message for message in caplog.messages)
            evaluated = step == 10 or "eval_loss" in state.log_history[-1]
            if said or (state.global_step >= step and evaluated):
                control.should_training_stop = True
                self.said = said

    until = Until()
    callback = example["ForecastCallback"](1.0, metric=metric, direction="min")
    run = trainer(example, tmp_path, [callback, until], save_strategy="no", **options)
    run.train()
    assert until.said
    assert run.state.global_step == step
    (first,) = (message for message in caplog.messages if "is not among" in message)
    assert first.startswith(f"'{metric}' is not among the metrics that were logged (")
    assert ("eval_loss" if step == 20 else "loss, grad_norm") in first


def test_evaluation_that_comes_later_is_waited_for(
    example: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    callback = example["ForecastCallback"](target=0.1, metric="eval_loss")
    options = {"eval_strategy": "steps", "eval_steps": 20, "save_strategy": "no", "max_steps": 40}
    trainer(example, tmp_path, [callback], **options).train()
    assert not any("is not among" in message for message in caplog.messages)


def score(ceiling: float, epoch: int) -> float:
    """Rise from chance towards a ceiling."""
    return ceiling - (ceiling - 0.1) * epoch**-1.0


@pytest.mark.parametrize(("ceiling", "verdict"), [(0.97, "reached"), (0.6, "never")])
def test_a_score_that_rises_ends_at_its_target_or_where_it_cannot_get_there(
    example: dict[str, Any], tmp_path: Path, ceiling: float, verdict: str
) -> None:
    callback = example["ForecastCallback"](0.9, metric="eval_accuracy", mode="act")
    run = trainer(
        example, tmp_path, [callback], max_steps=400, eval_strategy="steps", eval_steps=10
    )

    def evaluate(*args: Any, **options: Any) -> dict[str, float]:
        told = {"eval_accuracy": score(ceiling, run.state.global_step // 10)}
        run.log(told)
        return told

    run.evaluate = evaluate
    run.train()
    rounds = run.state.global_step // 10
    assert callback.adviser.decision.verdict == verdict
    assert rounds < 40
    assert (score(ceiling, rounds) >= 0.9) == (verdict == "reached")
    assert score(ceiling, rounds - 1) < 0.9


def test_the_direction_is_what_the_name_of_the_metric_says(example: dict[str, Any]) -> None:
    kind = example["ForecastCallback"]
    for name, direction in (("eval_accuracy", "max"), ("eval_loss", "min")):
        assert kind(0.9, metric=name).adviser.watch.to_dict()["direction"] == direction
    with pytest.raises(gp.InputError, match="'score' does not say which way is better: give dir"):
        kind(0.9, metric="score")
    assert kind(0.9, metric="score", direction="max").adviser.watch.to_dict()["direction"] == "max"
    with pytest.raises(gp.InputError, match="expected 'advise' or 'act'; say direction='max'"):
        kind(0.9, mode="max")
