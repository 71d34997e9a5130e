# SPDX-License-Identifier: Apache-2.0
"""A tiny model trained by Hugging Face's Trainer, which forecasts its own loss."""

import tempfile

import torch
from transformers import Trainer, TrainingArguments

from glidepath.adapters.transformers import ForecastCallback


class Regression(torch.nn.Module):
    """Ten weights, and a loss as the Trainer wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(10, 1)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": torch.nn.functional.mse_loss(self.layer(x)[:, 0], labels)}


torch.manual_seed(0)
x = torch.randn(512, 10)
labels = x @ torch.linspace(-1, 1, 10) + 0.5 * torch.randn(512)
data = [{"x": row, "labels": label} for row, label in zip(x, labels, strict=True)]

arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    max_steps=400,
    logging_steps=10,
    save_strategy="no",
    per_device_train_batch_size=32,
    learning_rate=0.05,
    optim="sgd",
    lr_scheduler_type="constant",
    report_to="none",
    disable_tqdm=True,
    use_cpu=True,
)
# The noise alone has a loss of 0.25.
callback = ForecastCallback(target=0.1, mode="act")
trainer = Trainer(Regression(), arguments, train_dataset=data, callbacks=[callback])
callback.lead(trainer)  # before the trackers of report_to=, so that they log the forecast too
trainer.train()
print(f"stopped at step {trainer.state.global_step}: {callback.adviser.decision}")
