# SPDX-License-Identifier: Apache-2.0
"""What the name of a metric says: which way is better."""

from __future__ import annotations

import re

from glidepath._core import InputError

_HIGH = re.compile(
    r"(^|_)(acc|accuracy|f1|auc|auroc|bleu|rouge\w*|precision|recall|map\d*|iou|dice|r2|reward|psnr"
    r"|ssim|average_precision|hellaswag)(_|$)"
)
_LOW = re.compile(
    r"(^|_)(error|err|perplexity|ppl|wer|cer|rmse|mse|mae|nll|bpb|bpc|bits_per_\w+|fid|value)(_|$)"
)


def normal(name: str) -> str:
    """Spell a metric's name in one way: ``"Train/Loss"`` and ``"train loss"`` as train_loss."""
    return re.sub(r"[^a-z0-9_]+", "_", name.strip().lower())


def direction_by_name(name: str) -> str | None:
    """Tell whether a metric is better when low or when high; None where its name does not say."""
    spelled = normal(name)
    if "loss" in spelled or _LOW.search(spelled):
        return "min"
    return "max" if _HIGH.search(spelled) else None


def required_direction(name: str) -> str:
    """Tell as `direction_by_name` does; InputError where the name does not say."""
    direction = direction_by_name(name)
    if direction is None:
        raise InputError(
            f"the name {name!r} does not say which way is better: give direction='min' or 'max'"
        )
    return direction
