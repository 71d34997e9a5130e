# SPDX-License-Identifier: Apache-2.0
"""The networks that are trained."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCAB = 128  # ASCII; byte 0 pads and starts a sequence, byte 1 ends it
PAD, END = 0, 1


class Attention(nn.Module):
    """Multi-head attention with an optional learned bias for each relative distance, as in T5."""

    def __init__(self, width: int, heads: int, *, causal: bool = False, span: int = 32) -> None:
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.span = span
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.bias = nn.Embedding(2 * span + 1, heads) if span else None

    def _position_bias(self, length: int) -> Tensor | None:
        if self.bias is None:
            return None
        place = torch.arange(length)
        distance = (place[None, :] - place[:, None]).clamp(-self.span, self.span)
        bias: Tensor = self.bias(distance + self.span).permute(2, 0, 1)
        if self.causal:
            bias = bias.masked_fill(place[None, :] > place[:, None], float("-inf"))
        return bias

    def forward(self, x: Tensor, memory: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Attend from x to memory; ``hidden`` marks the memory positions that are padding."""
        batch, length, width = x.shape
        query = self.query(x).view(batch, length, self.heads, -1).transpose(1, 2)
        key, value = (
            part.view(batch, memory.shape[1], self.heads, -1).transpose(1, 2)
            for part in self.key_value(memory).chunk(2, dim=-1)
        )
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        if (bias := self._position_bias(length)) is not None:
            scores = scores + bias
        if hidden is not None:
            scores = scores.masked_fill(hidden[:, None, None, :], float("-inf"))
        mixed = scores.softmax(dim=-1) @ value
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return out


class Block(nn.Module):
    """Pre-norm residual block: self-attention, then cross-attention if asked for, then an MLP."""

    def __init__(self, width: int, heads: int, *, causal: bool, cross: bool = False) -> None:
        super().__init__()
        self.attend = Attention(width, heads, causal=causal)
        self.attend_norm = nn.RMSNorm(width)
        self.cross = Attention(width, heads, span=0) if cross else None
        self.cross_norm = nn.RMSNorm(width) if cross else None
        self.mlp = nn.Sequential(
            nn.RMSNorm(width),
            nn.Linear(width, 4 * width, bias=False),
            nn.ReLU(),
            nn.Linear(4 * width, width, bias=False),
        )

    def forward(
        self, x: Tensor, memory: Tensor | None = None, hidden: Tensor | None = None
    ) -> Tensor:
        """Padding is ``hidden`` in the memory of a decoder and in the input of an encoder."""
        normed = self.attend_norm(x)
        x = x + self.attend(normed, normed, hidden if self.cross is None else None)
        if self.cross is not None and self.cross_norm is not None and memory is not None:
            x = x + self.cross(self.cross_norm(x), memory, hidden)
        out: Tensor = x + self.mlp(x)
        return out


class Transformer(nn.Module):
    """Decoder-only language model over bytes."""

    def __init__(self, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.blocks = nn.ModuleList(Block(width, heads, causal=True) for _ in range(layers))
        self.head = nn.Sequential(nn.RMSNorm(width), nn.Linear(width, VOCAB, bias=False))

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the byte after each position."""
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(x)
        return logits


class EncoderDecoder(nn.Module):
    """T5-style: relative positions, RMSNorm, no biases, one embedding for both sides."""

    def __init__(self, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.encoder = nn.ModuleList(Block(width, heads, causal=False) for _ in range(layers))
        self.encoder_norm = nn.RMSNorm(width)
        self.decoder = nn.ModuleList(
            Block(width, heads, causal=True, cross=True) for _ in range(layers)
        )
        self.head = nn.Sequential(nn.RMSNorm(width), nn.Linear(width, VOCAB, bias=False))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits of each target byte, given the source and the target bytes before it."""
        hidden = source == PAD
        memory = self.embed(source)
        for block in self.encoder:
            memory = block(memory, hidden=hidden)
        memory = self.encoder_norm(memory)
        x = self.embed(functional.pad(target[:, :-1], (1, 0), value=PAD))
        for block in self.decoder:
            x = block(x, memory, hidden)
        logits: Tensor = self.head(x)
        return logits


class Lstm(nn.Module):
    """LSTM language model over bytes."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, VOCAB)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the byte after each position."""
        states, _ = self.lstm(self.embed(tokens))
        logits: Tensor = self.head(states)
        return logits


def mlp(width: int, layers: int, fan_in: int = 64, fan_out: int = 10) -> nn.Sequential:
    """Fully connected ReLU network, from 64 pixels to 10 classes if nothing else is said."""
    parts: list[nn.Module] = []
    for inputs in [fan_in] + [width] * (layers - 1):
        parts += [nn.Linear(inputs, width), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(width, fan_out))


def cnn(channels: int, layers: int) -> nn.Sequential:
    """3x3 convolutions over the 8x8 image, pooled once, then a linear classifier."""
    parts: list[nn.Module] = [nn.Unflatten(1, (1, 8, 8))]
    for fan_in in [1] + [channels] * (layers - 1):
        parts += [nn.Conv2d(fan_in, channels, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*parts, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * channels, 10))


def conv1d(channels: int, layers: int, bands: int, classes: int) -> nn.Sequential:
    """Convolutions over the frames of a spectrogram, the mean over time, a linear classifier."""
    parts: list[nn.Module] = []
    for fan_in in [bands] + [channels] * (layers - 1):
        parts += [nn.Conv1d(fan_in, channels, 3, padding=1), nn.ReLU()]
    return nn.Sequential(
        *parts, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(channels, classes)
    )


class Denoiser(nn.Module):
    """Guess the noise in an image from the image and the time, by an MLP with residuals."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.first = nn.Linear(64 + 16, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU())
            for _ in range(layers)
        )
        self.last = nn.Linear(width, 64)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        """Noise (batch, 64) at times between 0 and 1."""
        angle = time[:, None] * torch.exp2(torch.arange(8.0)) * torch.pi / 2
        hidden = self.first(torch.cat([x, angle.sin(), angle.cos()], dim=1))
        for block in self.blocks:
            hidden = hidden + block(hidden)
        out: Tensor = self.last(hidden)
        return out


class Adder(nn.Module):
    """Embed two residues, join them and classify their sum."""

    def __init__(self, width: int, modulus: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(modulus, width)
        self.mlp = mlp(2 * width, 1, fan_in=2 * width, fan_out=modulus)

    def forward(self, pairs: Tensor) -> Tensor:
        """Logits of the sum of each pair."""
        logits: Tensor = self.mlp(self.embed(pairs).flatten(1))
        return logits


class Factors(nn.Module):
    """Matrix factorisation with biases."""

    def __init__(self, width: int, users: int, items: int) -> None:
        super().__init__()
        self.user, self.item = nn.Embedding(users, width), nn.Embedding(items, width)
        self.user_bias, self.item_bias = nn.Embedding(users, 1), nn.Embedding(items, 1)
        for table in (self.user, self.item, self.user_bias, self.item_bias):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, pairs: Tensor) -> Tensor:
        """Rating of each (user, item)."""
        user, item = pairs.T
        dot = (self.user(user) * self.item(item)).sum(1)
        rating: Tensor = dot + self.user_bias(user).squeeze(1) + self.item_bias(item).squeeze(1)
        return rating


class GraphConvolution(nn.Module):
    """Two layers that average over neighbours (Kipf and Welling, 2017), half the inputs dropped."""

    def __init__(self, width: int, adjacency: Tensor, features: int, classes: int) -> None:
        super().__init__()
        self.adjacency = adjacency
        self.first, self.second = nn.Linear(features, width), nn.Linear(width, classes)

    def forward(self, x: Tensor, rng: torch.Generator | None = None) -> Tensor:
        """Logits of each node; inputs are dropped where ``rng`` is given."""
        if rng is not None:
            x = 2.0 * x * (torch.rand(x.shape, generator=rng) < 0.5)
        hidden = (self.adjacency @ self.first(x)).relu()
        logits: Tensor = self.adjacency @ self.second(hidden)
        return logits
