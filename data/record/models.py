# SPDX-License-Identifier: Apache-2.0
"""The networks: a transformer, an LSTM, a T5-style encoder-decoder, an MLP and a CNN."""

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


def mlp(width: int, layers: int) -> nn.Sequential:
    """Fully connected ReLU network from 64 pixels to 10 classes."""
    parts: list[nn.Module] = []
    for fan_in in [64] + [width] * (layers - 1):
        parts += [nn.Linear(fan_in, width), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(width, 10))


def cnn(channels: int, layers: int) -> nn.Sequential:
    """3x3 convolutions over the 8x8 image, pooled once, then a linear classifier."""
    parts: list[nn.Module] = [nn.Unflatten(1, (1, 8, 8))]
    for fan_in in [1] + [channels] * (layers - 1):
        parts += [nn.Conv2d(fan_in, channels, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*parts, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * channels, 10))
