# SPDX-License-Identifier: Apache-2.0
"""Data sets that are made from a seed: numbers in words, tones, sums, ratings and a graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


def _words(text: str) -> list[str]:
    return text.split()


_ENGLISH = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_ENGLISH_TENS = _words("- - twenty thirty forty fifty sixty seventy eighty ninety")
_FRENCH = _words(
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze "
    "seize dix-sept dix-huit dix-neuf"
)
_FRENCH_TENS = _words("- - vingt trente quarante cinquante soixante soixante quatre-vingt")


def _english_below_thousand(number: int) -> list[str]:
    hundreds, rest = divmod(number, 100)
    words = [_ENGLISH[hundreds], "hundred"] if hundreds else []
    if rest < 20:
        return [*words, *([_ENGLISH[rest]] if rest else [])]
    tens, ones = divmod(rest, 10)
    return [*words, _ENGLISH_TENS[tens], *([_ENGLISH[ones]] if ones else [])]


def english(number: int) -> list[str]:
    """Words of a number from 1 to 999 999."""
    thousands, rest = divmod(number, 1000)
    head = [*_english_below_thousand(thousands), "thousand"] if thousands else []
    return head + _english_below_thousand(rest)


def _french_below_hundred(number: int) -> list[str]:
    if number < 20:
        return [_FRENCH[number]] if number else []
    # 70 to 79 and 90 to 99 count on from sixty and from eighty.
    tens, ones = divmod(number, 10)
    if tens in (7, 9):
        tens, ones = tens - 1, ones + 10
    words = [_FRENCH_TENS[tens]]
    if ones in (1, 11) and tens < 8:
        words.append("et")
    return [*words, *([_FRENCH[ones]] if ones else [])]


def _french_below_thousand(number: int) -> list[str]:
    hundreds, rest = divmod(number, 100)
    head = ([_FRENCH[hundreds]] if hundreds > 1 else []) + (["cent"] if hundreds else [])
    return head + _french_below_hundred(rest)


def french(number: int) -> list[str]:
    """Words of a number from 1 to 999 999, without the s of many hundreds and eighties."""
    thousands, rest = divmod(number, 1000)
    head = _french_below_thousand(thousands) if thousands > 1 else []
    return head + (["mille"] if thousands else []) + _french_below_thousand(rest)


@dataclass(frozen=True)
class Numbers:
    """English words and their French translation as token ids; 0 pads and 1 ends."""

    source: Integers
    target: Integers
    vocabulary: tuple[str, ...]


def numbers(count: int = 4000, length: int = 13) -> Numbers:
    """Distinct numbers of one to six digits, each length as likely, in random order."""
    rng = np.random.default_rng(20)
    drawn = np.unique((10 ** rng.uniform(0, 6, 2 * count)).astype(np.int64))
    drawn = rng.permutation(drawn)[:count].tolist()
    both = [(english(number), french(number)) for number in drawn]
    words = sorted({word for pair in both for text in pair for word in text})
    token = {word: place for place, word in enumerate(words, start=2)}

    def encode(text: list[str]) -> list[int]:
        ids = [*(token[word] for word in text), 1]
        return ids + [0] * (length - len(ids))

    return Numbers(
        np.array([encode(source) for source, _ in both]),
        np.array([encode(target) for _, target in both]),
        tuple(words),
    )


def tones(count: int = 2400, words: int = 12) -> tuple[Floats, Integers]:
    """Log spectrograms of spoken-like keywords, (count, 32 bands, 16 frames), and the keyword.

    A keyword is four gliding tones; a speaker shifts pitch, start and loudness and adds noise.
    """
    rng = np.random.default_rng(21)
    start = rng.uniform(0.06, 0.3, (words, 4))  # cycles a sample
    glide = rng.uniform(-0.06, 0.06, (words, 4))
    labels = rng.integers(words, size=count)
    samples, segment = 2048, 320
    spoken = rng.normal(0.0, 1.0, (count, samples)) * rng.uniform(0.3, 1.5, (count, 1))
    pitch = rng.uniform(0.85, 1.15, count)
    place = rng.integers(0, samples - 4 * segment, count)
    ramp = np.linspace(0.0, 1.0, segment, endpoint=False)
    for i, label in enumerate(labels):
        frequency = pitch[i] * (start[label][:, None] + glide[label][:, None] * ramp)
        phase = 2 * np.pi * np.cumsum(frequency.ravel())
        spoken[i, place[i] : place[i] + 4 * segment] += np.sin(phase) + 0.4 * np.sin(2 * phase)
    frames = spoken.reshape(count, 16, 128) * np.hanning(128)
    power = np.abs(np.fft.rfft(frames, axis=2)[:, :, :64]) ** 2
    bands = np.log(power.reshape(count, 16, 32, 2).mean(axis=3) + 1.0)
    bands = (bands - bands.mean()) / bands.std()
    return bands.transpose(0, 2, 1).astype(np.float32), labels


def sums(modulus: int) -> tuple[Integers, Integers]:
    """All pairs of residues and their sum, in random order."""
    pairs = np.stack(np.meshgrid(np.arange(modulus), np.arange(modulus)), axis=-1).reshape(-1, 2)
    pairs = np.random.default_rng(22).permutation(pairs)
    return pairs, pairs.sum(axis=1) % modulus


def ratings(count: int = 7000, users: int = 400, items: int = 300) -> tuple[Integers, Floats]:
    """(user, item) and the rating: two biases, six factors and noise of variance 0.25."""
    rng = np.random.default_rng(23)
    who = rng.integers(users, size=count)
    what = (items * rng.beta(0.7, 1.5, size=count)).astype(np.int64)  # few items are rated often
    of_user, of_item = rng.normal(0, 0.6, (users, 6)), rng.normal(0, 0.6, (items, 6))
    biases = rng.normal(0, 0.5, users)[who] + rng.normal(0, 0.5, items)[what]
    rating = biases + (of_user[who] * of_item[what]).sum(axis=1) + rng.normal(0, 0.5, count)
    return np.stack([who, what], axis=1), rating.astype(np.float32)


@dataclass(frozen=True)
class Graph:
    """A network of communities: its normalised adjacency, features and labels of each node."""

    adjacency: Floats
    features: Floats
    labels: Integers


def graph(nodes: int = 500, communities: int = 6) -> Graph:
    """Stochastic block model; a node's features hint at its community."""
    rng = np.random.default_rng(24)
    labels = rng.integers(communities, size=nodes)
    chance = np.where(labels[:, None] == labels[None, :], 10.0, 2.5) / nodes
    upper = np.triu(rng.random((nodes, nodes)) < chance, 1)
    linked = (upper | upper.T | np.eye(nodes, dtype=bool)).astype(np.float64)
    scale = linked.sum(axis=1) ** -0.5
    features = rng.normal(0, 1, (nodes, 24)) + rng.normal(0, 0.35, (communities, 24))[labels]
    return Graph(
        (scale[:, None] * linked * scale[None, :]).astype(np.float32),
        features.astype(np.float32),
        labels,
    )


def contents() -> dict[str, bytes]:
    """Bytes of each data set as the tasks use it."""
    text, network = numbers(), graph()
    return {
        "numbers": text.source.tobytes() + text.target.tobytes(),
        "tones": b"".join(part.tobytes() for part in tones()),
        "ratings": b"".join(part.tobytes() for part in ratings()),
        "graph": network.adjacency.tobytes() + network.features.tobytes(),
    }
