# SPDX-License-Identifier: Apache-2.0
"""The table of all runs: good, mediocre and hopeless settings alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Schedule = Literal["constant", "cosine", "wsd", "step", "linear", "restarts"]
Optimizer = Literal["adamw", "sgd", "rmsprop", "adagrad"]


@dataclass(frozen=True)
class Run:
    """Everything that decides one training run."""

    collection: str
    size: str
    schedule: Schedule
    peak_lr: float
    batch: int
    steps: int
    seed: int
    log_every: int = 5
    optimizer: Optimizer = "adamw"
    warmup: float = 0.05  # fraction of the steps
    clip: float = 1.0  # gradient norm; infinity does not clip
    weight_decay: float = 0.01  # of AdamW; the others have none

    @property
    def curve(self) -> str:
        """``<group>/<schedule>_<size>_<hyper>_<seed>``; a group shares size, batch and steps."""
        mantissa, exponent = f"{self.peak_lr:.0e}".split("e")
        hyper = f"{self.optimizer}-lr{mantissa}e{int(exponent)}"
        if math.isinf(self.clip):
            hyper += "-noclip"
        if self.weight_decay != 0.01:
            hyper += f"-wd{self.weight_decay:g}"
        group = f"{self.size}-b{self.batch}x{self.steps}"
        return f"{group}/{self.schedule}_{self.size}_{hyper}_s{self.seed}"

    def settings(self) -> dict[str, Any]:
        """Fields that decide the run, as JSON writes them."""
        fields = asdict(self)
        fields["clip"] = None if math.isinf(self.clip) else self.clip
        if self.optimizer != "adamw":
            del fields["weight_decay"]
        return {name: value for name, value in fields.items() if name != "collection"}

    def lr(self, step: int) -> float:
        """Learning rate of a step, counted from 1: linear warm-up, then the schedule."""
        warm = round(self.warmup * self.steps)
        if step <= warm:
            return self.peak_lr * step / warm
        done = (step - warm) / (self.steps - warm)
        match self.schedule:
            case "constant":
                factor = 1.0
            case "cosine":  # to a twentieth
                factor = 0.05 + 0.95 * (1 + math.cos(math.pi * done)) / 2
            case "wsd":  # stable, then linearly to zero over the last fifth
                factor = min(1.0, (1 - done) / 0.2)
            case "step":
                factor = 0.2 ** ((done > 0.5) + (done > 0.8))
            case "linear":  # to zero
                factor = 1 - done
            case "restarts":  # three cosines to zero
                factor = (1 + math.cos(math.pi * (3 * done % 1))) / 2
        return self.peak_lr * factor


def _sweep(
    collection: str,
    size: str,
    batch: int,
    steps: int,
    peaks: Mapping[Schedule, Sequence[float]],
    *,
    log_every: int = 5,
    optimizer: Optimizer = "adamw",
    warmup: float = 0.05,
    clip: float = 1.0,
    first_seed: int = 0,
) -> Iterator[Run]:
    """One run, with a seed of its own, for each schedule and peak learning rate."""
    settings = [(schedule, lr) for schedule, rates in peaks.items() for lr in rates]
    for seed, (schedule, lr) in enumerate(settings, start=first_seed):
        yield Run(
            collection,
            size,
            schedule,
            lr,
            batch,
            steps,
            seed,
            log_every=log_every,
            optimizer=optimizer,
            warmup=warmup,
            clip=clip,
        )


def _docstring_t5() -> Iterator[Run]:
    name = "docstring-t5"
    small: dict[Schedule, Sequence[float]] = {
        "cosine": (3e-3, 3e-3, 1e-1),
        "constant": (3e-3, 1e-3, 1e-5),
        "wsd": (3e-3, 6e-3),
        "step": (3e-3,),
    }
    base: dict[Schedule, Sequence[float]] = {
        "cosine": (2e-3, 2e-3, 2e-5),
        "constant": (2e-3, 5e-4),
        "wsd": (2e-3, 2e-3, 6e-2),
        "step": (2e-3,),
    }
    large: dict[Schedule, Sequence[float]] = {
        "cosine": (1e-3, 3e-3),
        "constant": (1e-3, 1e-5),
        "wsd": (1e-3,),
        "step": (1e-3,),
    }
    yield from _sweep(name, "small", 8, 1000, small)
    yield from _sweep(name, "small", 16, 800, {"cosine": (3e-3,), "wsd": (3e-3,)})
    yield from _sweep(name, "base", 8, 900, base)
    yield from _sweep(name, "base", 4, 1200, {"cosine": (1e-3,), "constant": (1e-3,)})
    yield from _sweep(name, "large", 8, 900, large)
    yield from _sweep(name, "large", 4, 1200, {"cosine": (1e-3,), "wsd": (2e-3,)})
    # A warm-up without end or clipping: learns, then diverges.
    yield from _sweep(
        name, "base", 8, 900, {"constant": (1e0,)}, warmup=1.0, clip=math.inf, first_seed=9
    )


def _docs_transformer() -> Iterator[Run]:
    name = "docs-transformer"
    small: dict[Schedule, Sequence[float]] = {
        "cosine": (5e-3, 5e-3, 1e-3),
        "constant": (5e-3, 1e-5),
        "wsd": (5e-3,),
        "step": (5e-3,),
    }
    base: dict[Schedule, Sequence[float]] = {
        "cosine": (3e-3, 3e-4),
        "constant": (3e-3, 1e-3),
        "wsd": (3e-3, 3e-3),
        "step": (3e-3, 1e-1),
    }
    large: dict[Schedule, Sequence[float]] = {
        "cosine": (2e-3, 2e-3),
        "constant": (2e-3, 5e-2),
        "wsd": (1e-3,),
        "step": (2e-3,),
    }
    yield from _sweep(name, "small", 8, 1200, small)
    yield from _sweep(name, "base", 8, 1000, base)
    yield from _sweep(name, "large", 8, 800, large)
    yield from _sweep(name, "small", 4, 2000, {"cosine": (3e-3,), "wsd": (3e-3,)}, clip=math.inf)
    # A warm-up without end or clipping: learns, then overflows to NaN.
    yield from _sweep(
        name,
        "small",
        4,
        1200,
        {"constant": (1e1,)},
        optimizer="sgd",
        warmup=1.0,
        clip=math.inf,
    )


def _docs_lstm() -> Iterator[Run]:
    name = "docs-lstm"
    small: dict[Schedule, Sequence[float]] = {
        "cosine": (1e-2, 3e-3),
        "constant": (1e-2, 3e-5),
        "wsd": (1e-2, 1e-2),
        "step": (1e-2,),
    }
    base: dict[Schedule, Sequence[float]] = {
        "cosine": (5e-3, 5e-3),
        "constant": (5e-3, 1e-3),
        "wsd": (5e-3,),
        "step": (5e-3, 3e-1),
    }
    large: dict[Schedule, Sequence[float]] = {
        "cosine": (3e-3,),
        "constant": (3e-3, 1e-1),
        "wsd": (3e-3,),
    }
    yield from _sweep(name, "small", 8, 2000, small, log_every=10)
    yield from _sweep(name, "base", 8, 1500, base)
    yield from _sweep(name, "large", 8, 1000, large)
    # A warm-up without end or clipping: learns, then diverges without ever overflowing.
    yield from _sweep(
        name,
        "small",
        4,
        2000,
        {"constant": (4e1,)},
        log_every=10,
        optimizer="sgd",
        warmup=1.0,
        clip=math.inf,
    )


def _digits_mlp() -> Iterator[Run]:
    name = "digits-mlp"
    small: dict[Schedule, Sequence[float]] = {
        "constant": (1e-1, 3e-2, 1e-5),
        "cosine": (1e-1, 1e-1),
        "step": (1e-1,),
    }
    base: dict[Schedule, Sequence[float]] = {
        "constant": (5e-2, 1e-2),
        "cosine": (5e-2, 5e-2),
        "wsd": (5e-2,),
        "step": (5e-2, 1e-5),
    }
    large: dict[Schedule, Sequence[float]] = {
        "constant": (1e-3, 3e-2),
        "cosine": (1e-3, 1e-3),
        "wsd": (1e-3,),
        "step": (1e-3,),
    }
    yield from _sweep(name, "small", 32, 3000, small, log_every=10, optimizer="sgd")
    yield from _sweep(name, "base", 32, 2500, base, log_every=10, optimizer="sgd")
    yield from _sweep(name, "large", 32, 2000, large)
    # A warm-up without end or clipping: diverges.
    yield from _sweep(
        name,
        "small",
        8,
        2500,
        {"constant": (2e1,)},
        log_every=10,
        optimizer="sgd",
        warmup=1.0,
        clip=math.inf,
    )


def _digits_cnn() -> Iterator[Run]:
    name = "digits-cnn"
    small: dict[Schedule, Sequence[float]] = {
        "constant": (1e-2, 1e-5),
        "cosine": (1e-2, 1e-2),
        "wsd": (1e-2,),
        "step": (1e-2,),
    }
    base: dict[Schedule, Sequence[float]] = {
        "constant": (5e-3, 1e-3),
        "cosine": (5e-3,),
        "wsd": (5e-3, 5e-3),
        "step": (5e-3, 3e-1),
    }
    large: dict[Schedule, Sequence[float]] = {
        "constant": (3e-3,),
        "cosine": (3e-3, 3e-3),
        "wsd": (3e-3,),
    }
    yield from _sweep(name, "small", 16, 1500, small)
    yield from _sweep(name, "base", 16, 1500, base)
    yield from _sweep(name, "large", 16, 1200, large)


RUNS: tuple[Run, ...] = (
    *_digits_mlp(),
    *_digits_cnn(),
    *_docstring_t5(),
    *_docs_transformer(),
    *_docs_lstm(),
)
