# SPDX-License-Identifier: Apache-2.0
"""The language model of code_gpt.py, its text and its training step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from code_runs import CONTEXT, SIZES, Run
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 4096
VALID_WINDOWS = 256
HELD_OUT = 0.02  # of the tokens, at their end


class Block(nn.Module):
    """Attention with rotary positions, then a gated layer; both after a norm."""

    def __init__(self, width: int, rotation: tuple[Tensor, Tensor]) -> None:
        super().__init__()
        self.heads = width // 64
        self.norm_a, self.norm_b = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.cos, self.sin = rotation

    def _turn(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * self.cos - b * self.sin, a * self.sin + b * self.cos), dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm_a(x)).view(batch, length, 3, self.heads, 64)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        q, k = self._turn(q).to(v.dtype), self._turn(k).to(v.dtype)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        wider: Tensor = self.down(functional.gelu(self.up(self.norm_b(x))))
        return x + wider


class Gpt(nn.Module):
    """Decoder-only transformer."""

    def __init__(self, width: int, layers: int, device: torch.device) -> None:
        super().__init__()
        angle = torch.arange(CONTEXT)[:, None] / 10000 ** (torch.arange(32) / 32)
        rotation = angle.cos().to(device), angle.sin().to(device)
        self.embed = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.Sequential(*(Block(width, rotation) for _ in range(layers)))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        nn.init.normal_(self.embed.weight, std=0.02)
        for name, weight in self.named_parameters():
            if name.endswith(("out.weight", "down.weight")):
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * layers))
        self.to(device)

    def loss(self, windows: Tensor) -> Tensor:
        """Mean cross-entropy of each next token."""
        with torch.autocast(windows.device.type, dtype=torch.bfloat16):
            logits = self.head(self.norm(self.blocks(self.embed(windows[:, :-1]))))
        return functional.cross_entropy(logits.float().flatten(0, 1), windows[:, 1:].flatten())


@dataclass
class Text:
    """All tokens on the device, the last of them held out."""

    tokens: Tensor

    @property
    def held_out(self) -> int:
        return int(len(self.tokens) * (1 - HELD_OUT))

    def windows(self, starts: Tensor) -> Tensor:
        """One window of tokens for each start."""
        offsets = torch.arange(CONTEXT + 1, device=starts.device)
        return self.tokens[starts[:, None] + offsets].long()

    def range_of(self, run: Run) -> tuple[int, int]:
        """First and end token of what a run trains on."""
        return run.first_token, run.first_token + run.tokens if run.tokens else self.held_out

    def valid_starts(self, run: Run) -> Tensor:
        """Where the windows begin that a run is evaluated on."""
        first, end = self.held_out, len(self.tokens)
        if run.valid == "beside":  # the tokens after those it trains on, which are like them
            first = self.range_of(run)[1]
            end = first + VALID_WINDOWS * CONTEXT * 2
        return torch.from_numpy(
            np.linspace(first, end - CONTEXT - 1, VALID_WINDOWS).astype(np.int64)
        )

    def train_starts(self, run: Run) -> Tensor:
        """Where the windows begin, step by step: each epoch sees each window once."""
        first, end = self.range_of(run)
        rng = np.random.default_rng(run.seed)
        starts: list[Any] = []
        while len(starts) * ((end - first - 1) // CONTEXT - 1) < run.steps * run.batch:
            offset = int(rng.integers(CONTEXT))
            starts.append(
                rng.permutation(
                    first + offset + CONTEXT * np.arange((end - first - 1) // CONTEXT - 1)
                )
            )
        return torch.from_numpy(np.concatenate(starts)[: run.steps * run.batch]).view(-1, run.batch)


class Trainer:
    """A model, its optimizer and one training step that reads what it needs from the device."""

    def __init__(self, run: Run, text: Text, weights: dict[str, Any] | None) -> None:
        device = text.tokens.device
        torch.manual_seed(run.seed)
        self.run, self.text = run, text
        self.model = Gpt(*SIZES[run.size], device)
        self.lr = torch.tensor(0.0, device=device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=self.lr,
            betas=(0.9, 0.95),
            weight_decay=0.1,
            fused=device.type == "cuda",
            capturable=device.type == "cuda",
        )
        self.starts = text.train_starts(run).to(device)
        self.lrs = torch.tensor([run.lr(step) for step in range(1, run.steps + 1)], device=device)
        self.losses = torch.zeros(run.steps, device=device)
        self.at = torch.zeros(1, dtype=torch.long, device=device)
        self.valid_starts = text.valid_starts(run).to(device)
        if weights is not None:
            self.model.load_state_dict(weights["model"])
        self.graph: torch.cuda.CUDAGraph | None = None
        if device.type == "cuda":
            self._capture(weights)
        elif weights is not None:
            self._resume(weights)

    def _resume(self, weights: dict[str, Any]) -> None:
        """Take over the checkpoint's moments, so that a cooldown goes on where it was."""
        if self.run.collection.endswith("cooldown"):
            for weight, kept in zip(self.model.parameters(), weights["moments"], strict=True):
                state = self.optimizer.state[weight]
                for name, value in kept.items():
                    if name in state:
                        state[name].copy_(value)  # in place: a captured graph writes there
                    else:
                        state[name] = value.clone()

    def state(self) -> dict[str, Any]:
        """A checkpoint."""
        return {
            "model": {name: value.clone() for name, value in self.model.state_dict().items()},
            "moments": [
                {name: value.clone() for name, value in self.optimizer.state[weight].items()}
                for weight in self.model.parameters()
            ],
        }

    def _step(self) -> None:
        self.lr.copy_(self.lrs.index_select(0, self.at)[0])
        loss = self.model.loss(self.text.windows(self.starts.index_select(0, self.at)[0]))
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        self.losses.index_copy_(0, self.at, loss.detach()[None])
        self.at += 1

    def _capture(self, weights: dict[str, Any] | None) -> None:
        """Warm up, capture a step and put everything back to where it was."""
        before = {name: value.clone() for name, value in self.model.state_dict().items()}
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self._step()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._step()
        self.model.load_state_dict(before)
        for state in self.optimizer.state.values():
            for value in state.values():
                value.zero_()
        if weights is not None:
            self._resume(weights)
        self.at.zero_()
        self.losses.zero_()

    def step(self) -> None:
        """One training step."""
        if self.graph is None:
            self._step()
        else:
            self.graph.replay()

    def valid_loss(self) -> float:
        """Loss of the windows that the run is evaluated on."""
        with torch.no_grad():
            parts = [
                self.model.loss(self.text.windows(part)) for part in self.valid_starts.chunk(4)
            ]
            return torch.stack(parts).mean().item()
