# SPDX-License-Identifier: Apache-2.0
"""The cart-pole of Barto, Sutton and Anderson (1983), many at once, and its policy gradient."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

LONGEST = 200  # steps of an episode; each is worth 1
DISCOUNT = 0.99
_GRAVITY, _CART, _POLE, _HALF_LENGTH, _FORCE, _SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
_EDGE, _TILT = 2.4, 12 * np.pi / 180

Floats = NDArray[np.float64]


def push(state: Floats, right: NDArray[np.bool_]) -> Floats:
    """State (episodes, 4) after one Euler step: place, speed, angle and turn of each."""
    x, v, angle, turn = state.T
    total = _CART + _POLE
    sine, cosine = np.sin(angle), np.cos(angle)
    shove = (np.where(right, _FORCE, -_FORCE) + _POLE * _HALF_LENGTH * turn**2 * sine) / total
    swing = (_GRAVITY * sine - cosine * shove) / (
        _HALF_LENGTH * (4 / 3 - _POLE * cosine**2 / total)
    )
    pull = shove - _POLE * _HALF_LENGTH * swing * cosine / total
    return np.stack(
        [x + _SECONDS * v, v + _SECONDS * pull, angle + _SECONDS * turn, turn + _SECONDS * swing],
        axis=1,
    )


def fallen(state: Floats) -> NDArray[np.bool_]:
    """Tell which episodes are over: the cart has left the track or the pole leans too far."""
    out: NDArray[np.bool_] = (np.abs(state[:, 0]) > _EDGE) | (np.abs(state[:, 2]) > _TILT)
    return out


@torch.no_grad()
def play(
    policy: nn.Module, start: Floats, rng: torch.Generator | None
) -> tuple[Tensor, Tensor, Tensor]:
    """States (steps, episodes, 4), pushes to the right and whether each step was still played.

    Without ``rng`` the likelier push is taken.
    """
    state, alive = start, np.ones(len(start), dtype=bool)
    states, pushes, played = [], [], []
    for _ in range(LONGEST):
        seen = torch.from_numpy(state).float()
        chance = torch.sigmoid(policy(seen)).squeeze(1).nan_to_num(0.5)
        drawn = torch.rand(len(start), generator=rng) if rng is not None else 0.5
        right = chance > drawn
        states.append(seen)
        pushes.append(right)
        played.append(torch.from_numpy(alive))
        state = np.where(alive[:, None], push(state, right.numpy()), state)
        alive = alive & ~fallen(state)
        if not alive.any():
            break
    return torch.stack(states), torch.stack(pushes), torch.stack(played)


def starts(episodes: int, rng: torch.Generator) -> Floats:
    """States near the upright pole."""
    drawn: Floats = (0.1 * torch.rand((episodes, 4), generator=rng) - 0.05).double().numpy()
    return drawn


def surrogate(policy: nn.Module, episodes: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """REINFORCE (Williams, 1992): what to minimise, and the mean return of the episodes played.

    The advantage is the discounted return to go, standardised over the steps played.
    """
    states, pushes, played = play(policy, starts(episodes, rng), rng)
    ahead = torch.zeros(episodes)
    to_go = torch.zeros(played.shape)
    for step in reversed(range(len(played))):
        ahead = played[step] * (1.0 + DISCOUNT * ahead)
        to_go[step] = ahead
    known = to_go[played]
    advantage = (known - known.mean()) / (known.std() + 1e-6)
    logits = policy(states[played]).squeeze(1)
    cost = functional.binary_cross_entropy_with_logits(
        logits, pushes[played].float(), reduction="none"
    )
    return (advantage * cost).mean(), played.sum(0).float().mean()
