# SPDX-License-Identifier: Apache-2.0
"""The runs of code_gpt.py: schedules and rates, cooldowns and fine-tuning, good and bad."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

Schedule = Literal["constant", "cosine", "wsd", "wsd-sqrt", "step", "linear", "restarts"]
CONTEXT = 256  # tokens
VALID_EVERY = 50  # steps
SIZES = {"small": (192, 4), "base": (320, 6), "large": (512, 8)}  # width, layers
PRETRAINING_FROM = 8_000_000  # tokens before are for fine-tuning alone


@dataclass(frozen=True)
class Run:
    """Everything that decides one run."""

    collection: str
    group: str
    size: str
    schedule: Schedule
    peak_lr: float
    batch: int
    steps: int
    seed: int
    warmup: float = 0.03  # fraction of the steps
    decay: float = 0.2  # fraction of the steps, of the schedules that are stable first
    first_token: int = PRETRAINING_FROM
    tokens: int = 0  # what it trains on; 0 is all but what is held out
    valid: Literal["held out", "beside"] = "held out"
    begins_from: str = ""  # the checkpoint it begins with: another run's curve@step

    @property
    def curve(self) -> str:
        """``<group>/<schedule>_<size>_lr<peak>_s<seed>``."""
        mantissa, exponent = f"{self.peak_lr:.1e}".split("e")
        peak = f"{float(mantissa):g}e{int(exponent)}"
        return f"{self.group}/{self.schedule}_{self.size}_lr{peak}_s{self.seed}"

    @property
    def first_step(self) -> int:
        """Steps that the checkpoint was trained before, where the run is its continuation."""
        return int(self.begins_from.split("@")[1]) if self.collection.endswith("cooldown") else 0

    def lr(self, step: int) -> float:
        """Learning rate of a step of this run, counted from 1."""
        warm = round(self.warmup * self.steps)
        if step <= warm:
            return self.peak_lr * step / warm
        done = (step - warm) / (self.steps - warm)
        late = max(0.0, 1 - (1 - done) / self.decay)  # share of the decay that is over
        factor = {
            "constant": 1.0,
            "cosine": 0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2,
            "wsd": 1 - late,
            "wsd-sqrt": 1 - math.sqrt(late),
            "step": 0.3 ** ((done > 0.5) + (done > 0.8)),
            "linear": 1 - done,
            "restarts": 0.1 + 0.9 * (1 + math.cos(math.pi * (3 * done % 1))) / 2,
        }[self.schedule]
        return self.peak_lr * factor


def _pretraining() -> Iterator[Run]:
    """Groups of one size, batch and number of steps; schedules and rates, good and bad."""
    seed = 0
    table: dict[tuple[str, int, int], dict[Schedule, tuple[float, ...]]] = {
        ("small", 32, 3000): {
            "constant": (3e-3,),
            "cosine": (3e-3, 1e-3, 1e-2),
            "wsd": (3e-3,),
            "wsd-sqrt": (3e-3,),
            "linear": (3e-3,),
            "step": (3e-3,),
            "restarts": (3e-3,),
        },
        ("base", 32, 3000): {
            "constant": (2e-3, 2e-5),
            "cosine": (2e-3, 5e-4),
            "wsd": (2e-3,),
            "wsd-sqrt": (1e-3,),
            "linear": (2e-3,),
            "step": (2e-3,),
        },
        ("large", 32, 2000): {
            "cosine": (1e-3,),
            "wsd": (1e-3,),
            "linear": (1e-3, 1e-2),
        },
        ("small", 16, 5000): {"constant": (2e-3,), "cosine": (2e-3,), "wsd": (2e-3,)},
        ("base", 64, 1500): {"cosine": (3e-3,), "wsd": (3e-3,), "linear": (3e-3,)},
    }
    for (size, batch, steps), peaks in table.items():
        for schedule, rates in peaks.items():
            for rate in rates:
                group = f"{size}-b{batch}x{steps}"
                yield Run("code-gpt", group, size, schedule, rate, batch, steps, seed)
                seed += 1


def _cooldowns(stems: list[Run]) -> Iterator[Run]:
    """Branches of constant runs to a rate of zero, at several steps and over several lengths."""
    for number, stem in enumerate(stems):
        for share in (0.4, 0.6, 0.8):
            at = round(stem.steps * share)
            lengths: dict[Schedule, int] = {
                "linear": round(0.15 * stem.steps),
                "wsd-sqrt": round(0.2 * stem.steps),
            }
            for schedule, length in lengths.items():
                yield replace(
                    stem,
                    collection="code-gpt-cooldown",
                    group=f"{stem.group}-s{stem.seed}@{at}",
                    schedule=schedule,
                    steps=length // VALID_EVERY * VALID_EVERY,
                    seed=100 + number * 10 + round(share * 10),
                    warmup=0.0,
                    decay=1.0,
                    begins_from=f"{stem.curve}@{at}",
                )


def _finetuning(stem: Run) -> Iterator[Run]:
    """A few epochs of a small text from a trained model, and many from none."""
    seed = 200
    for tokens, epochs in ((100_000, 8), (300_000, 6), (1_000_000, 3)):
        for schedule, rate in (
            ("linear", 1e-3),
            ("cosine", 3e-4),
            ("constant", 1e-3),
            ("constant", 1e-4),
        ):
            batch = 8 if tokens < 1_000_000 else 16
            steps = round(tokens / CONTEXT * epochs / batch) // VALID_EVERY * VALID_EVERY
            yield Run(
                "code-gpt-finetune",
                f"{stem.size}-b{batch}x{steps}",
                stem.size,
                schedule,  # type: ignore[arg-type]
                rate,
                batch,
                steps,
                seed,
                first_token=450_000 * (seed - 200),
                tokens=tokens,
                valid="beside",
                begins_from=f"{stem.curve}@{stem.steps}",
            )
            seed += 1
    for size, tokens, schedule, rate in (
        ("small", 1_000_000, "constant", 3e-3),
        ("small", 2_000_000, "cosine", 3e-3),
        ("base", 1_000_000, "cosine", 2e-3),
        ("base", 2_000_000, "wsd", 2e-3),
    ):
        yield Run(
            "code-gpt-finetune",
            f"{size}-scratch-b32x2000",
            size,
            schedule,  # type: ignore[arg-type]
            rate,
            32,
            2000,
            seed,
            first_token=500_000,
            tokens=tokens,
            valid="beside",
        )
        seed += 1


def table() -> list[Run]:
    """Every run, in the order in which they are trained: a stem before its branches."""
    pretraining = list(_pretraining())
    stems = [run for run in pretraining if run.schedule == "constant" and run.peak_lr >= 1e-3]
    good = next(run for run in pretraining if run.size == "base" and run.schedule == "cosine")
    first = [run for run in pretraining if run.steps == 3000]
    rest = [run for run in pretraining if run.steps != 3000]
    return [*first, *_cooldowns(stems[:2]), *_finetuning(good), *rest, *_cooldowns(stems[2:])]
