# SPDX-License-Identifier: Apache-2.0
"""What each collection trains: a data set, a model in three sizes and a loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import corpus
import models
import torch
from torch import Tensor, nn
from torch.nn import functional

Build = Callable[[], nn.Module]


@dataclass(frozen=True)
class Metric:
    """A score on held-out examples, recorded as a curve of its own beside the loss."""

    name: str
    text: str
    direction: Literal["min", "max"]
    score: Callable[[nn.Module], Tensor]


class Task(Protocol):
    """A data set with a loss; ``sizes`` builds the model of each size."""

    sizes: Mapping[str, Build]
    metric: Metric | None

    def loss(self, model: nn.Module, batch: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """What to minimise over one fresh minibatch, and what to record of it."""
        ...

    def valid_loss(self, model: nn.Module) -> Tensor | None:
        """The same of held-out examples, equal every time; None where there are none."""
        ...


def alike(loss: Tensor) -> tuple[Tensor, Tensor]:
    """Record what is minimised."""
    return loss, loss


class NextByte:
    """Predict each byte of a text; the last tenth of the text is held out."""

    metric = None

    def __init__(self, text: str, length: int, sizes: Mapping[str, Build]) -> None:
        data = torch.tensor(list(text.encode("ascii")))
        cut = len(data) * 9 // 10
        self.train, held_out = data[:cut], data[cut:]
        starts = torch.linspace(0, len(held_out) - length - 1, 48).long()
        self.window = torch.arange(length + 1)
        self.valid = held_out[starts[:, None] + self.window]
        self.sizes = sizes

    @staticmethod
    def _loss(model: nn.Module, windows: Tensor) -> Tensor:
        logits = model(windows[:, :-1])
        return functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())

    def loss(self, model: nn.Module, batch: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        starts = torch.randint(len(self.train) - len(self.window) + 1, (batch, 1), generator=rng)
        return alike(self._loss(model, self.train[starts + self.window]))

    def valid_loss(self, model: nn.Module) -> Tensor:
        return self._loss(model, self.valid)


class Summarise:
    """Write the summary line of a docstring, given its body; every tenth pair is held out."""

    metric = None

    def __init__(self, body: int, summary: int, sizes: Mapping[str, Build]) -> None:
        pairs = corpus.summaries()
        sources = torch.stack([self._encode(source, body) for source, _ in pairs])
        targets = torch.stack([self._encode(target, summary) for _, target in pairs])
        held_out = torch.arange(len(pairs)) % 10 == 0
        self.train = sources[~held_out], targets[~held_out]
        self.valid = sources[held_out][:64], targets[held_out][:64]
        self.sizes = sizes

    @staticmethod
    def _encode(text: str, length: int) -> Tensor:
        codes = [*text.encode("ascii")[: length - 1], models.END]
        return torch.tensor(codes + [models.PAD] * (length - len(codes)))

    @staticmethod
    def _loss(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
        logits = model(source, target)
        return functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=models.PAD
        )

    def loss(self, model: nn.Module, batch: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        source, target = self.train
        picks = torch.randint(len(source), (batch,), generator=rng)
        return alike(self._loss(model, source[picks], target[picks]))

    def valid_loss(self, model: nn.Module) -> Tensor:
        return self._loss(model, *self.valid)


class Classify:
    """Name the digit; training images get fresh Gaussian noise so that the loss has a floor."""

    NOISE = 0.4
    metric = None

    def __init__(self, sizes: Mapping[str, Build]) -> None:
        data = corpus.digits()
        self.train = torch.from_numpy(data.train_x), torch.from_numpy(data.train_y)
        self.valid = torch.from_numpy(data.valid_x), torch.from_numpy(data.valid_y)
        self.sizes = sizes

    def loss(self, model: nn.Module, batch: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        images, labels = self.train
        picks = torch.randint(len(images), (batch,), generator=rng)
        noise = self.NOISE * torch.randn((batch, images.shape[1]), generator=rng)
        return alike(functional.cross_entropy(model(images[picks] + noise), labels[picks]))

    def valid_loss(self, model: nn.Module) -> Tensor:
        images, labels = self.valid
        return functional.cross_entropy(model(images), labels)


def docs_transformer() -> Task:
    """Byte-level transformer on the language reference."""
    return NextByte(
        corpus.reference_pages(),
        length=64,
        sizes={
            "small": lambda: models.Transformer(width=32, layers=1, heads=2),
            "base": lambda: models.Transformer(width=48, layers=2, heads=3),
            "large": lambda: models.Transformer(width=64, layers=3, heads=4),
        },
    )


def docs_lstm() -> Task:
    """Byte-level LSTM on the docstrings of the standard library."""
    return NextByte(
        corpus.docstring_text(),
        length=48,
        sizes={
            "small": lambda: models.Lstm(width=32, layers=1),
            "base": lambda: models.Lstm(width=80, layers=1),
            "large": lambda: models.Lstm(width=128, layers=2),
        },
    )


def docstring_t5() -> Task:
    """T5-style model from docstring body to summary line."""
    return Summarise(
        body=64,
        summary=32,
        sizes={
            "small": lambda: models.EncoderDecoder(width=24, layers=1, heads=2),
            "base": lambda: models.EncoderDecoder(width=32, layers=2, heads=2),
            "large": lambda: models.EncoderDecoder(width=64, layers=2, heads=4),
        },
    )


def digits_mlp() -> Task:
    """Fully connected network on the digits."""
    return Classify(
        sizes={
            "small": lambda: models.mlp(width=16, layers=1),
            "base": lambda: models.mlp(width=64, layers=2),
            "large": lambda: models.mlp(width=128, layers=4),
        },
    )


def digits_cnn() -> Task:
    """Convolutional network on the digits."""
    return Classify(
        sizes={
            "small": lambda: models.cnn(channels=4, layers=1),
            "base": lambda: models.cnn(channels=8, layers=2),
            "large": lambda: models.cnn(channels=16, layers=3),
        },
    )


TASKS: dict[str, Callable[[], Task]] = {
    "digits-mlp": digits_mlp,
    "digits-cnn": digits_cnn,
    "docstring-t5": docstring_t5,
    "docs-transformer": docs_transformer,
    "docs-lstm": docs_lstm,
}
