# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer itself, with the model of the example."""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from typing import Any

import pytest

import glidepath as gp

pl = pytest.importorskip("lightning.pytorch", reason="lightning is not installed")
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / "with_lightning.py"))


def fit(
    example: dict[str, Any], folder: Path, callbacks: list[Any], resume: Any = None, **options: Any
) -> Any:
    trainer = pl.Trainer(
        accelerator="cpu",
        callbacks=callbacks,
        logger=example["CSVLogger"](str(folder), version=0),
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
        **{"max_epochs": 6, "enable_checkpointing": False, **options},
    )
    trainer.fit(example["Regression"](), example["data"], example["data"], ckpt_path=resume)
    return trainer


def test_the_example_stops_a_run_that_cannot_reach_its_target(example: dict[str, Any]) -> None:
    trainer, callback = example["trainer"], example["callback"]
    assert trainer.current_epoch < 40
    assert callback.adviser.decision.verdict == "never"
    (chance,) = gp.read_traces(trainer.logger.log_dir, metric="forecast_probability")
    assert chance.step.tolist() == [8.0 * epoch for epoch in range(1, trainer.current_epoch + 1)]
    assert chance.loss[-1] == pytest.approx(callback.adviser.decision.probability)
    assert callback.adviser.watch.to_dict()["budget"] == 320


def test_advice_each_few_steps_stops_nothing(example: dict[str, Any], tmp_path: Path) -> None:
    callback = example["ForecastCallback"](-10.0, monitor="train_loss", every_n_steps=4, budget=60)
    trainer = fit(example, tmp_path, [callback])
    assert trainer.global_step == 48
    assert callback.adviser.watch.to_dict()["step"] == [4.0 * i for i in range(1, 13)]
    (stop,) = gp.read_traces(tmp_path, metric="forecast_stop")
    assert stop.loss[-1] == 1.0


def test_the_state_survives_a_checkpoint(example: dict[str, Any], tmp_path: Path) -> None:
    kind = example["ForecastCallback"]
    save = pl.callbacks.ModelCheckpoint(dirpath=tmp_path, save_last=True)
    half = kind(0.3)
    fit(example, tmp_path, [half, save], max_epochs=3, enable_checkpointing=True)
    resumed = kind(0.3)
    fit(example, tmp_path / "again", [resumed], resume=tmp_path / "last.ckpt")
    first, second = (each.adviser.watch.to_dict() for each in (half, resumed))
    assert second["step"] == [8.0 * epoch for epoch in range(1, 7)]
    assert second["loss"][:3] == first["loss"]
    assert (first["budget"], second["budget"]) == (24, 48)  # more epochs, a later end


def test_batches_that_make_one_step_are_seen_once(example: dict[str, Any], tmp_path: Path) -> None:
    callback = example["ForecastCallback"](0.3, monitor="train_loss", every_n_steps=1)
    fit(example, tmp_path, [callback], accumulate_grad_batches=4, max_epochs=3)
    state = callback.adviser.watch.to_dict()
    assert (state["step"], state["restarts"]) == ([1, 2, 3, 4, 5, 6], 0)


def seen(callback: Any) -> tuple[list[float], list[float]]:
    state = callback.adviser.watch.to_dict()
    return state["step"], state["loss"]


class Means(pl.Callback):
    """Keep the mean loss of each epoch."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self.losses.append(float(trainer.callback_metrics["train_loss"]))


@pytest.mark.parametrize("steps", [None, 1, 3])
def test_a_validation_is_one_look_however_long_its_value_stands(
    example: dict[str, Any], tmp_path: Path, steps: int | None
) -> None:
    class Sick(example["Regression"]):  # type: ignore[misc]
        def validation_step(self, batch: Any, _: int) -> None:
            loss = self.loss(batch)
            self.log("val_loss", loss * math.nan if self.current_epoch == 2 else loss)

    kind = example["ForecastCallback"]
    callback = kind(mode="act", every_n_steps=steps)
    trainer = fit({**example, "Regression": Sick}, tmp_path, [callback], max_epochs=12)
    assert trainer.global_step == 96
    assert seen(callback)[0] == [8.0 * epoch for epoch in range(1, 13) if epoch != 3]


@pytest.mark.parametrize("on_step", [False, True])
@pytest.mark.parametrize("steps", [None, 5])
@pytest.mark.parametrize("validates", [False, True])
def test_the_mean_of_an_epoch_is_seen_at_its_end(
    example: dict[str, Any], tmp_path: Path, validates: bool, steps: int | None, on_step: bool
) -> None:
    class Averaged(example["Regression"]):  # type: ignore[misc]
        def training_step(self, batch: Any, _: int) -> Any:
            loss = self.loss(batch)
            self.log("train_loss", loss, on_step=on_step, on_epoch=True)
            return loss

    callback = example["ForecastCallback"](1e-3, monitor="train_loss", every_n_steps=steps)
    means = Means()
    trainer = pl.Trainer(
        accelerator="cpu",
        callbacks=[callback, means],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        max_epochs=4,
    )
    trainer.fit(Averaged(), example["data"], example["data"] if validates else None)
    if on_step and steps:  # the loss of that step
        assert seen(callback)[0] == [5, 10, 15, 20, 25, 30]
    else:
        assert seen(callback) == ([8, 16, 24, 32], pytest.approx(means.losses))


def test_what_the_module_logs_as_an_epoch_ends_is_seen_at_its_end(
    example: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Late(example["Regression"]):  # type: ignore[misc]
        def on_train_epoch_start(self) -> None:
            self.losses: list[Any] = []

        def on_train_batch_end(self, outputs: Any, *_: Any) -> None:
            self.losses.append(outputs["loss"].detach())

        def on_train_epoch_end(self) -> None:
            self.log("epoch_loss", sum(self.losses) / len(self.losses))

    callback = example["ForecastCallback"](1e-3, monitor="epoch_loss")
    fit({**example, "Regression": Late}, tmp_path, [callback], max_epochs=3)
    assert seen(callback)[0] == [8, 16, 24]
    stopped = example["ForecastCallback"](1e3, monitor="epoch_loss", mode="act")
    trainer = fit({**example, "Regression": Late}, tmp_path, [stopped])
    assert (trainer.current_epoch, trainer.global_step) == (2, 16)  # none without a batch
    assert not [said for said in caplog.messages if "not among the metrics" in said]


def test_steps_between_looks_that_are_none_are_refused(
    example: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kind = example["ForecastCallback"]
    for steps in (0, -1, 1.5, math.nan, "5", True):
        with pytest.raises(gp.InputError, match=f"^every_n_steps is {steps!r}, expected a whole"):
            kind(0.3, every_n_steps=steps)
    fit(example, tmp_path, [kind(0.3, every_n_steps=1000)], max_epochs=1)
    assert caplog.messages[-1] == (
        "'val_loss' was logged, but every_n_steps=1000 has not passed: nothing was forecast"
    )


def test_a_monitor_that_is_never_logged_is_told(
    example: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fit(example, tmp_path, [example["ForecastCallback"](1.0, monitor="vall_loss")], max_epochs=1)
    assert "'vall_loss' was never logged: nothing was forecast" in caplog.messages
    (first,) = (said for said in caplog.messages if "not among the metrics" in said)
    assert "'vall_loss'" in first
    assert "val_loss, " in first or ", val_loss" in first


def test_an_accuracy_below_its_target_does_not_stop_the_training(
    example: dict[str, Any], tmp_path: Path
) -> None:
    class Classifier(example["Regression"]):  # type: ignore[misc]
        def validation_step(self, batch: Any, index: int) -> None:
            self.log("val_acc", 0.3 + 0.01 * self.current_epoch)

    callback = example["ForecastCallback"](target=0.97, monitor="val_acc", mode="act")
    trainer = pl.Trainer(
        accelerator="cpu",
        callbacks=[callback],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        max_epochs=4,
    )
    trainer.fit(Classifier(), example["data"], example["data"])
    assert trainer.current_epoch == 4
    assert callback.adviser.decision.verdict != "reached"


def score(ceiling: float, epoch: int) -> float:
    """Rise from chance towards a ceiling."""
    return ceiling - (ceiling - 0.1) * epoch**-1.0


@pytest.mark.parametrize(("ceiling", "verdict"), [(0.97, "reached"), (0.6, "never")])
def test_a_score_that_rises_ends_at_its_target_or_where_it_cannot_get_there(
    example: dict[str, Any], ceiling: float, verdict: str
) -> None:
    class Classifier(example["Regression"]):  # type: ignore[misc]
        def validation_step(self, batch: Any, index: int) -> None:
            self.log("val_acc", score(ceiling, self.current_epoch + 1))

    callback = example["ForecastCallback"](target=0.9, monitor="val_acc", mode="act")
    trainer = pl.Trainer(
        accelerator="cpu",
        callbacks=[callback],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        max_epochs=40,
    )
    trainer.fit(Classifier(), example["data"], example["data"])
    epochs = trainer.current_epoch
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
