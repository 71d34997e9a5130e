# SPDX-License-Identifier: Apache-2.0
"""A tiny model trained by Lightning, which forecasts its own loss."""

import tempfile

import lightning.pytorch as pl
import torch
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

from glidepath.adapters.lightning import ForecastCallback


class Regression(pl.LightningModule):
    """Ten weights."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(10, 1)

    def loss(self, batch: list[torch.Tensor]) -> torch.Tensor:
        x, y = batch
        return torch.nn.functional.mse_loss(self.layer(x)[:, 0], y)

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        loss = self.loss(batch)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: list[torch.Tensor], _: int) -> None:
        self.log("val_loss", self.loss(batch))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.02)


torch.manual_seed(0)
x = torch.randn(512, 10)
y = x @ torch.linspace(-1, 1, 10) + 0.5 * torch.randn(512)
data = DataLoader(TensorDataset(x, y), batch_size=64)

# The noise alone has a loss of 0.25.
callback = ForecastCallback(target=0.1, monitor="val_loss", mode="act")
trainer = pl.Trainer(
    accelerator="cpu",
    max_epochs=40,
    callbacks=[callback],
    logger=CSVLogger(tempfile.mkdtemp()),
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    log_every_n_steps=1,
)
trainer.fit(Regression(), data, data)
print(f"stopped after epoch {trainer.current_epoch}: {callback.adviser.decision}")
