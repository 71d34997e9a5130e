# SPDX-License-Identifier: Apache-2.0
"""Tasks of many kinds, each small enough to train in seconds, with a metric beside the loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import cartpole
import corpus
import generated
import models
import torch
from tasks import Build, Metric, Task, alike
from torch import Tensor, nn
from torch.nn import functional


def _share_right(logits: Tensor, labels: Tensor) -> Tensor:
    return (logits.argmax(-1) == labels).float().mean()


class Translate:
    """Translate numbers in words from English to French; the last 300 are held out."""

    def __init__(self) -> None:
        data = generated.numbers()
        self.source, self.target = torch.from_numpy(data.source), torch.from_numpy(data.target)
        self.sizes: Mapping[str, Build] = {
            "small": lambda: models.EncoderDecoder(width=16, layers=1, heads=2),
            "base": lambda: models.EncoderDecoder(width=32, layers=1, heads=2),
            "large": lambda: models.EncoderDecoder(width=32, layers=2, heads=4),
        }
        self.metric = Metric(
            "words",
            "share of held-out words translated right, given the words before",
            "max",
            self._words_right,
        )

    @staticmethod
    def _loss(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
        logits = model(source, target)
        return functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=models.PAD
        )

    def _words_right(self, model: nn.Module) -> Tensor:
        target = self.target[-300:]
        written = target != models.PAD
        return _share_right(model(self.source[-300:], target)[written], target[written])

    def loss(self, model: nn.Module, batch: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        picks = torch.randint(len(self.source) - 300, (batch,), generator=rng)
        return alike(self._loss(model, self.source[picks], self.target[picks]))

    def valid_loss(self, model: nn.Module) -> Tensor:
        return self._loss(model, self.source[-300:], self.target[-300:])


class Named:
    """Classify rows of numbers; training rows get fresh Gaussian noise so that the loss stays up.

    ``noise`` is in deviations of a column; a held-out row has none.
    """

    def __init__(
        self,
        train: tuple[Tensor, Tensor],
        valid: tuple[Tensor, Tensor],
        noise: float,
        sizes: Mapping[str, Build],
    ) -> None:
        self.train, self.valid, self.noise, self.sizes = train, valid, noise, sizes
        self.metric = Metric("accuracy", "held-out accuracy", "max", self._accuracy)

    def _accuracy(self, model: nn.Module) -> Tensor:
        return _share_right(model(self.valid[0]), self.valid[1])

    def loss(self, model: nn.Module, batch: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        x, labels = self.train
        picks = torch.randint(len(x), (batch,), generator=rng)
        rows = x[picks]
        if self.noise:
            rows = rows + self.noise * torch.randn(rows.shape, generator=rng)
        return alike(functional.cross_entropy(model(rows), labels[picks]))

    def valid_loss(self, model: nn.Module) -> Tensor:
        return functional.cross_entropy(model(self.valid[0]), self.valid[1])


class Scored:
    """Regress a score; without noise, so that large models learn the training rows by heart."""

    def __init__(
        self,
        train: tuple[Tensor, Tensor],
        valid: tuple[Tensor, Tensor],
        sizes: Mapping[str, Build],
        metric: tuple[str, str, Literal["min", "max"], Callable[[Tensor], Tensor]],
    ) -> None:
        self.train, self.valid, self.sizes = train, valid, sizes
        name, text, direction, of_loss = metric
        self.metric = Metric(name, text, direction, lambda model: of_loss(self.valid_loss(model)))

    @staticmethod
    def _loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return functional.mse_loss(model(x).reshape(y.shape), y)

    def loss(self, model: nn.Module, batch: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        picks = torch.randint(len(self.train[0]), (batch,), generator=rng)
        return alike(self._loss(model, self.train[0][picks], self.train[1][picks]))

    def valid_loss(self, model: nn.Module) -> Tensor:
        return self._loss(model, *self.valid)


class Control:
    """Balance the pole: the return of the episodes played is recorded, not what is minimised."""

    def __init__(self) -> None:
        self.sizes: Mapping[str, Build] = {
            "small": lambda: models.mlp(width=8, layers=1, fan_in=4, fan_out=1),
            "base": lambda: models.mlp(width=32, layers=1, fan_in=4, fan_out=1),
            "large": lambda: models.mlp(width=32, layers=2, fan_in=4, fan_out=1),
        }
        self.start = cartpole.starts(32, torch.Generator().manual_seed(25))
        self.metric = Metric(
            "greedy",
            "mean return of 32 episodes from the same states, the likelier push taken each time",
            "max",
            self._greedy,
        )

    def _greedy(self, policy: nn.Module) -> Tensor:
        _, _, played = cartpole.play(policy, self.start, None)
        return played.sum(0).float().mean()

    def loss(self, model: nn.Module, batch: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        return cartpole.surrogate(model, batch, rng)

    def valid_loss(self, model: nn.Module) -> None:
        return None


class Contrast:
    """Tell two views of a digit from those of others (InfoNCE, van den Oord and others, 2018).

    A view is shifted by up to one pixel in each direction and has Gaussian noise of 0.3.
    """

    def __init__(self) -> None:
        data = corpus.digits()
        train, valid = torch.from_numpy(data.train_x), torch.from_numpy(data.valid_x)
        self.train, self.valid = self._shifted(train), self._shifted(valid)
        self.images = train, valid
        self.labels = torch.from_numpy(data.train_y), torch.from_numpy(data.valid_y)
        noise = torch.Generator().manual_seed(26)
        self.pair = tuple(self._view(self.valid, torch.arange(360), noise) for _ in range(2))
        self.sizes: Mapping[str, Build] = {
            "small": lambda: models.mlp(width=24, layers=1, fan_out=8),
            "base": lambda: models.mlp(width=64, layers=2, fan_out=16),
            "large": lambda: models.mlp(width=128, layers=2, fan_out=32),
        }
        self.metric = Metric(
            "nearest",
            "share of held-out digits whose nearest training digit (cosine) has the same label",
            "max",
            self._nearest,
        )

    @staticmethod
    def _shifted(images: Tensor) -> Tensor:
        padded = functional.pad(images.view(-1, 8, 8), (1, 1, 1, 1))
        places = [(i, j) for i in range(3) for j in range(3)]
        return torch.stack([padded[:, i : i + 8, j : j + 8].flatten(1) for i, j in places])

    @staticmethod
    def _view(shifted: Tensor, picks: Tensor, rng: torch.Generator) -> Tensor:
        images = shifted[torch.randint(9, picks.shape, generator=rng), picks]
        return images + 0.3 * torch.randn(images.shape, generator=rng)

    @staticmethod
    def _loss(model: nn.Module, one: Tensor, other: Tensor) -> Tensor:
        a, b = (functional.normalize(model(view), dim=1) for view in (one, other))
        return functional.cross_entropy(a @ b.T / 0.2, torch.arange(len(a)))

    def _nearest(self, model: nn.Module) -> Tensor:
        seen, asked = (functional.normalize(model(x), dim=1) for x in self.images)
        found = self.labels[0][(asked @ seen.T).argmax(1)]
        return (found == self.labels[1]).float().mean()

    def loss(self, model: nn.Module, batch: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        picks = torch.randint(self.train.shape[1], (batch,), generator=rng)
        one, other = (self._view(self.train, picks, rng) for _ in range(2))
        return alike(self._loss(model, one, other))

    def valid_loss(self, model: nn.Module) -> Tensor:
        return self._loss(model, *self.pair)


class Diffuse:
    """Guess the noise added to a digit (Ho and others, 2020), 40 times on a cosine schedule."""

    TIMES = 40

    def __init__(self) -> None:
        data = corpus.digits()
        self.train = 2 * torch.from_numpy(data.train_x) - 1
        self.valid = 2 * torch.from_numpy(data.valid_x) - 1
        angle = torch.linspace(0.05, 0.98, self.TIMES) * torch.pi / 2
        self.kept = angle.cos() ** 2  # share of the image's variance that is left at each time
        rng = torch.Generator().manual_seed(27)
        self.fixed = self._noised(self.valid, rng)
        self.draws = torch.randn((self.TIMES + 1, 150, 64), generator=rng)
        self.sizes: Mapping[str, Build] = {
            "small": lambda: models.Denoiser(width=32, layers=1),
            "base": lambda: models.Denoiser(width=64, layers=2),
            "large": lambda: models.Denoiser(width=128, layers=2),
        }
        self.metric = Metric(
            "distance",
            "energy distance between 150 drawn digits and 360 held-out ones",
            "min",
            self._distance,
        )

    def _noised(self, images: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        time = torch.randint(self.TIMES, (len(images),), generator=rng)
        noise = torch.randn(images.shape, generator=rng)
        kept = self.kept[time, None]
        return kept.sqrt() * images + (1 - kept).sqrt() * noise, time / self.TIMES, noise

    @staticmethod
    def _loss(model: nn.Module, x: Tensor, time: Tensor, noise: Tensor) -> Tensor:
        return functional.mse_loss(model(x, time), noise)

    def _drawn(self, model: nn.Module) -> Tensor:
        x = self.draws[-1]
        for time in reversed(range(self.TIMES)):
            kept = self.kept[time]
            guess = model(x, torch.full((len(x),), time / self.TIMES))
            image = ((x - (1 - kept).sqrt() * guess) / kept.sqrt()).clamp(-1, 1)
            if time == 0:
                return image
            before = self.kept[time - 1]
            left = kept / before
            x = (before.sqrt() * (1 - left) * image + left.sqrt() * (1 - before) * x) / (
                1 - kept
            ) + ((1 - left) * (1 - before) / (1 - kept)).sqrt() * self.draws[time]
        return x

    def _distance(self, model: nn.Module) -> Tensor:
        drawn, real = self._drawn(model), self.valid
        apart = [torch.cdist(a, b).mean() for a, b in ((drawn, real), (drawn, drawn), (real, real))]
        return 2 * apart[0] - apart[1] - apart[2]

    def loss(self, model: nn.Module, batch: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        picks = torch.randint(len(self.train), (batch,), generator=rng)
        return alike(self._loss(model, *self._noised(self.train[picks], rng)))

    def valid_loss(self, model: nn.Module) -> Tensor:
        return self._loss(model, *self.fixed)


class Communities:
    """Name the community of a node from the labels of 200 of 500 nodes of a graph."""

    def __init__(self) -> None:
        data = generated.graph()
        self.x, self.labels = torch.from_numpy(data.features), torch.from_numpy(data.labels)
        adjacency = torch.from_numpy(data.adjacency)
        self.sizes: Mapping[str, Build] = {
            size: lambda width=width: models.GraphConvolution(width, adjacency, 24, 6)  # type: ignore[misc]
            for size, width in (("small", 8), ("base", 24), ("large", 64))
        }
        self.metric = Metric(
            "accuracy",
            "share of the 300 other nodes named right",
            "max",
            lambda model: _share_right(model(self.x)[200:], self.labels[200:]),
        )

    def loss(self, model: nn.Module, batch: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        picks = torch.randint(200, (batch,), generator=rng)
        return alike(functional.cross_entropy(model(self.x, rng)[picks], self.labels[picks]))

    def valid_loss(self, model: nn.Module) -> Tensor:
        return functional.cross_entropy(model(self.x)[200:], self.labels[200:])


def _split(data: corpus.Split) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    x, y, valid_x, valid_y = map(
        torch.from_numpy, (data.train_x, data.train_y, data.valid_x, data.valid_y)
    )
    return (x, y), (valid_x, valid_y)


def tones_conv() -> Task:
    """Convolutional network on spectrograms of made keywords."""
    sound, words = map(torch.from_numpy, generated.tones())
    return Named(
        (sound[:2000], words[:2000]),
        (sound[2000:], words[2000:]),
        noise=0.5,
        sizes={
            "small": lambda: models.conv1d(8, 1, bands=32, classes=12),
            "base": lambda: models.conv1d(16, 2, bands=32, classes=12),
            "large": lambda: models.conv1d(32, 3, bands=32, classes=12),
        },
    )


def cancer_mlp() -> Task:
    """Fully connected network on the breast cancer table."""
    return Named(
        *_split(corpus.cancer()),
        noise=1.0,
        sizes={
            "small": lambda: models.mlp(width=8, layers=1, fan_in=30, fan_out=2),
            "base": lambda: models.mlp(width=32, layers=2, fan_in=30, fan_out=2),
            "large": lambda: models.mlp(width=64, layers=3, fan_in=30, fan_out=2),
        },
    )


def sums_mlp() -> Task:
    """Learn to add residues from part of the table; what is held out may come much later."""
    pairs, answers = map(torch.from_numpy, generated.sums(31))
    return Named(
        (pairs[:577], answers[:577]),
        (pairs[577:], answers[577:]),
        noise=0.0,
        sizes={
            "small": lambda: models.Adder(16, 31),
            "base": lambda: models.Adder(32, 31),
            "large": lambda: models.Adder(64, 31),
        },
    )


def diabetes_mlp() -> Task:
    """Regress the progression of diabetes."""
    train, valid = _split(corpus.diabetes())
    variance = valid[1].var(correction=0)
    return Scored(
        train,
        valid,
        sizes={
            "small": lambda: models.mlp(width=8, layers=1, fan_in=10, fan_out=1),
            "base": lambda: models.mlp(width=32, layers=2, fan_in=10, fan_out=1),
            "large": lambda: models.mlp(width=64, layers=3, fan_in=10, fan_out=1),
        },
        metric=(
            "r2",
            "share of the held-out variance explained (R squared; below 0 worse than the mean)",
            "max",
            lambda loss: 1 - loss / variance,
        ),
    )


def ratings_factors() -> Task:
    """Matrix factorisation of made ratings."""
    pairs, scores = map(torch.from_numpy, generated.ratings())
    return Scored(
        (pairs[:5600], scores[:5600]),
        (pairs[5600:], scores[5600:]),
        sizes={
            "small": lambda: models.Factors(2, 400, 300),
            "base": lambda: models.Factors(8, 400, 300),
            "large": lambda: models.Factors(32, 400, 300),
        },
        metric=("rmse", "root of the mean squared error of held-out ratings", "min", torch.sqrt),
    )


SMALL_TASKS: dict[str, Callable[[], Task]] = {
    "numbers-translation": Translate,
    "tones-conv": tones_conv,
    "cancer-mlp": cancer_mlp,
    "diabetes-mlp": diabetes_mlp,
    "cartpole-policy": Control,
    "digits-contrastive": Contrast,
    "digits-diffusion": Diffuse,
    "sums-mlp": sums_mlp,
    "ratings-factors": ratings_factors,
    "graph-convolution": Communities,
}
