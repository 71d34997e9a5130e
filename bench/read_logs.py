# SPDX-License-Identifier: Apache-2.0
"""Read a large trainer_state.json and a large event file, as training leaves them.

Prints size, rows, and wall-clock and CPU seconds of each, the best of three.
Usage: bench/read_logs.py [ROWS OF THE TRAINER] [SCALARS OF TENSORBOARD]
"""

import json
import struct
import sys
import tempfile
import time
from pathlib import Path

import glidepath as gp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))
from wire import varint


def trainer_state(file: Path, rows: int) -> None:
    """Write what Hugging Face's Trainer does: 35 MB for 200 000 rows."""
    history = [
        {
            "epoch": t / 1000 + 1 / 3,
            "grad_norm": 1.0 + 1 / (7 + t),
            "learning_rate": 5e-05 * (1 - t / (rows + 1)),
            "loss": round(2 + 3 * t**-0.5 + 0.01 * (t % 7), 4),
            "step": 10 * t,
        }
        for t in range(1, rows + 1)
    ]
    state = {"best_metric": None, "global_step": 10 * rows, "log_history": history}
    file.write_text(json.dumps(state, indent=2) + "\n")


def events(file: Path, scalars: int) -> None:
    """Write what tensorboardX does for two metrics; the checksums are not read."""

    def record(data: bytes) -> bytes:
        return struct.pack("<Q", len(data)) + b"0000" + data + b"0000"

    def scalar(tag: bytes, value: float) -> bytes:
        said = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + struct.pack("<f", value)
        return b"\x0a" + bytes([len(said)]) + said

    with file.open("wb") as out:
        out.write(record(b"\x09" + struct.pack("<d", 1.7e9) + b"\x1a\x0dbrain.Event:2"))
        for t in range(1, scalars // 2 + 1):
            for tag, value in ((b"train/loss", 2 + 3 * t**-0.5), (b"train/lr", 1e-3 / t)):
                said = scalar(tag, value)
                head = b"\x09" + struct.pack("<d", 1.7e9 + t) + b"\x10" + varint(t)
                out.write(record(head + b"\x2a" + bytes([len(said)]) + said))


def main() -> None:
    """Write, read, print."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    scalars = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        for name, write, count in (
            ("trainer_state.json", trainer_state, rows),
            ("events.out.tfevents.1.host", events, scalars),
        ):
            file = Path(folder) / name
            write(file, count)
            taken = []
            for _ in range(3):
                wall, cpu = time.perf_counter(), time.process_time()
                (run,) = gp.read_traces(file)
                taken.append((time.perf_counter() - wall, time.process_time() - cpu))
            size, (wall, cpu) = file.stat().st_size / 1e6, min(taken)
            print(
                f"{name}: {size:.1f} MB, {count} rows, {len(run)} points: "
                f"{wall:.2f} s, {cpu:.2f} s of CPU"
            )


if __name__ == "__main__":
    main()
