# SPDX-License-Identifier: Apache-2.0
"""The text of code_gpt.py: Python sources of named wheels, as byte-pair tokens.

    pip download --no-deps -d WHEELS -r data/record/code_wheels.txt
    python data/record/code_tokens.py WHEELS tokens.npz

The files of a wheel follow each other in the order of their names and the wheels in theirs; blocks
of 64 files are then shuffled, so that what is held out is like what is trained on.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import zipfile
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 4096
BLOCK_FILES = 64
MAX_FILE_BYTES = 200_000  # longer ones are tables


def sources(wheels: Path) -> list[str]:
    """Every Python source of the wheels, shuffled by blocks of neighbours."""
    files = []
    for wheel in sorted(wheels.glob("*.whl")):
        print(wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest())
        with zipfile.ZipFile(wheel) as archive:
            for entry in sorted(archive.infolist(), key=lambda entry: entry.filename):
                if entry.filename.endswith(".py") and 0 < entry.file_size <= MAX_FILE_BYTES:
                    files.append(archive.read(entry).decode("utf-8", "ignore"))
    blocks = [files[at : at + BLOCK_FILES] for at in range(0, len(files), BLOCK_FILES)]
    random.Random(0).shuffle(blocks)
    return [file for block in blocks for file in block]


def main() -> None:
    parser = argparse.ArgumentParser(description="Turn the sources of wheels into tokens.")
    parser.add_argument("wheels", type=Path)
    parser.add_argument("tokens", type=Path)
    args = parser.parse_args()
    files = sources(args.wheels)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(files[::4], trainer)
    encoded = tokenizer.encode_batch(files)
    tokens = np.concatenate([np.array(part.ids, dtype=np.uint16) for part in encoded])
    print(
        len(files), "files,", len(tokens), "tokens,", hashlib.sha256(tokens.tobytes()).hexdigest()
    )
    np.savez_compressed(args.tokens, tokens=tokens)


if __name__ == "__main__":
    main()
