# SPDX-License-Identifier: Apache-2.0
"""Read large logs of the common formats, as training leaves them.

Prints size, rows, and wall-clock and CPU seconds of each, the best of three.
Usage: bench/read_logs.py [ROWS] [SCALARS OF TENSORBOARD]
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


def json_lines(file: Path, rows: int) -> None:
    """Write what LLaMA-Factory does."""
    with file.open("w") as out:
        for t in range(1, rows + 1):
            row = {"current_steps": t, "loss": 2 + 3 * t**-0.5, "lr": 1 / t}
            row |= {"elapsed_time": f"0:{t // 60 % 60:02d}:{t % 60:02d}"}
            out.write(json.dumps(row) + "\n")


def table(file: Path, rows: int) -> None:
    """Write what Lightning does."""
    with file.open("w") as out:
        out.write("epoch,step,train_loss,lr\n")
        out.writelines(f"{t // 100},{t},{2 + 3 * t**-0.5},{1 / t}\n" for t in range(1, rows + 1))


def console(file: Path, rows: int) -> None:
    """Write what Megatron-LM does, without most of its columns."""
    with file.open("w") as out:
        out.writelines(
            f" [2026-01-01 10:00:00] iteration {t}/ {rows} | elapsed time per iteration (ms): 99.5 "
            f"| learning rate: {1 / t:.3E} | lm loss: {2 + 3 * t**-0.5:.6E} | grad norm: 0.5 |\n"
            for t in range(1, rows + 1)
        )


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
            ("log.jsonl", json_lines, rows),
            ("metrics.csv", table, rows),
            ("train.log", console, rows),
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
