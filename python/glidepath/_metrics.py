# SPDX-License-Identifier: Apache-2.0
"""What names say: which metric to look at, which way is better, what has reached a target."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from glidepath._core import InputError

# Names of the data that are not trained on.
HELD_OUT = "eval|evaluation|val|valid|validation|test|testing|dev"
# A word of a name, as `normal` spells it.
_WORD = r"(?:^|_)(?:{})(?:_|$)"
_HIGH = re.compile(
    _WORD.format(
        r"acc\d*|accuracy|f1|auc|auroc|auprc|bleu\d*|sacrebleu|chrf|cider|meteor|rouge\w*|precision"
        r"|recall|m?ap\d*|m?iou\w*|dice|r2|rewards?|rew|returns?|psnr|ssim|average_precision"
        r"|hellaswag|mrr|hits|ndcg|mcc|kappa|jaccard|spearman\w*|pearson\w*|success_rate|win_rate"
        r"|top_?\d+"
    )
)
# Of these one value is a whole evaluation, unless the name says that it is of training.
_SCORE = re.compile(_WORD.format("wer|cer|fid"))
_NOISY = re.compile(_WORD.format(r"train|training|rewards?|rew|returns?"))
_ERRORS = (
    r"errors?|err|perplexity|ppl|wer|cer|rmse|mse|mae|mape|nll|bpb|bpc|bits_per_\w+|fid|xent|ce"
    r"|cross_?entropy|cost"
)
_LOW = re.compile(_WORD.format(_ERRORS + "|value"))
_RATE = re.compile(r"(^|_)(lr\d*|learning_rate)(_|$)|^lr")
# What a log counts or measures beside its metrics: never read unless it is named.
_ASIDE = re.compile(
    _WORD.format(
        r"best|percentage|progress|eta|time|seconds|secs?|ms|fps|throughput|memory|mem|tokens|samples"
        r"|grad_norm|gnorm|norm|runtime|elapsed|remaining|timestamp|speed|usd|size|scale"
    )
    + r"|^(system|config|time|perf|timers)_|_per_s"
)
# Which metric is read where none is named, best first: of a run of reinforcement learning its
# return, whose loss says little, then losses of training, of evaluation, errors, and scores.
TRAINING_LOSSES = (
    *("loss", "train_loss", "training_loss", "loss_train", "lm_loss", "trl", "total_loss"),
    *("loss_total", "train_total_loss", "loss_step", "train_loss_step", "train_loss_epoch"),
    *("loss_epoch", "avg_loss", "average_loss", "mean_loss"),
)
_RANKS = tuple(
    re.compile(rank)
    for rank in (
        r"^(?!.*(?<![a-z])(?:max|min|std|len)).*?(?<![a-z])(?:ep|episode|episodic|rollout)_"
        r".*?(?:rew|ret)|^eprewmean$",
        *(f"^{name}$" for name in TRAINING_LOSSES),
        *(r"(?=.*total)(?=.*train).*loss", r"(?=.*train).*loss"),
        *(f"^{name}_loss$" for name in ("eval", "val", "valid", "validation", "test")),
        *("^tel$", _WORD.format(HELD_OUT) + "(?:.*_)?loss", "^total.*loss", "loss"),
        *(_WORD.format(_ERRORS), r"(?:^|_)map\d*_95", _WORD.format("m?ap")),
        rf"(?=.*{_WORD.format(HELD_OUT + '|metrics')})(?=.*(?:{_HIGH.pattern}))",
        *(_HIGH.pattern, _WORD.format("score|objective|elbo|energy"), "^metric$", "^value$"),
    )
)
_RANKED = re.compile("|".join(f"(?:{rank.pattern})" for rank in _RANKS))
_FEW = 10  # points: a metric of fewer gives way to one that has twice as many
# Under which Hugging Face and Lightning log their step to a tracker whose own counts calls.
TRAINERS = ("train_global_step", "trainer_global_step")
# What counts steps, best first, and what only counts within an epoch.
WITHIN = ("batch", "batch_id", "batch_idx", "minibatch", "it", "i", "index")
EPOCHS = ("epoch", "epochs", "epoch_num", "total_epochs", "ep")
STEPS = (
    *("step", "global_step", "current_steps", "num_updates", "update", "updates"),
    *("total_timesteps", "time_total_timesteps", "misc_total_timesteps", "timesteps"),
    *("timesteps_total", "num_env_steps_sampled_lifetime", "num_env_steps_sampled"),
    *("total_env_interacts", "total_steps", "train_step", "training_step"),
    *("iteration", "iter", *TRAINERS, "_step", "n_iter", "steps", "iterations", "iters"),
    *("time_iterations", "training_iteration", "nupdates", "samples_count", "timestep"),
    *(*WITHIN, *EPOCHS, "episode", "episodes", "round", "generation", "gen"),
)
_LONGEST = 200  # letters of a name that are looked at
# Columns of wall-clock time: seconds since the beginning, and times of day.
CLOCKS = (
    *("wall_seconds", "seconds", "elapsed_s", "time_s"),
    *("elapsed_seconds", "elapsed_time", "total_duration", "_runtime"),
    *("time_time_elapsed", "time_elapsed", "time_total_s"),
)
STAMPS = ("timestamp", "_timestamp", "wall_time", "time_ms")


@lru_cache(maxsize=4096)
def normal(name: str) -> str:
    """Spell a name in one way: ``"Train/Loss"``, ``"trainLoss"`` and so on as train_loss."""
    name = re.sub(r"(?<=[a-z]{2})(?=[A-Z])", "_", name.strip()[:_LONGEST]).lower()
    name = name.replace("losses", "loss").replace("accuracies", "accuracy")
    return re.sub(r"[^a-z0-9_]+", "_", name)


def is_rate(name: str) -> bool:
    """Whether a column holds learning rates."""
    return _RATE.search(normal(name)) is not None


@lru_cache(maxsize=4096)
def is_metric(name: str) -> bool:
    """Whether a name is that of a loss or a score."""
    key = normal(name)
    return _RANKED.search(key) is not None and not (_RATE.search(key) or _ASIDE.search(key))


def best_name(points: Mapping[str, float]) -> str | None:
    """Pick the metric that a person would look at, of names with their number of points.

    Returns
    -------
    str or None
        None where several are left, none of them by its name a loss or a score.
    """
    metrics: dict[str, str] = {}
    for name in points:
        key = normal(name)
        if not (_RATE.search(key) or _ASIDE.search(key) or key in STEPS):
            metrics.setdefault(key, name)
    ranked = {
        name: next(rank for rank, pattern in enumerate(_RANKS) if pattern.search(key))
        for key, name in metrics.items()
        if _RANKED.search(key)
    }
    most = max((points[name] for name in ranked), default=0)
    for name in sorted(ranked, key=ranked.__getitem__):
        if points[name] >= min(_FEW, most / 2):
            return name
    return next(iter(metrics.values())) if len(metrics) == 1 else None


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


def reached_by_name(name: str) -> str:
    """Tell by what a target is reached: ``"point"`` of evaluations and scores, else ``"curve"``."""
    spelled = normal(name)
    if re.search(_WORD.format(HELD_OUT), spelled):
        return "point"
    if _NOISY.search(spelled):
        return "curve"
    return "point" if _SCORE.search(spelled) or direction_by_name(name) == "max" else "curve"
