# SPDX-License-Identifier: Apache-2.0
"""A small log of each format, as bytes by the name of its file: where attacks on readers begin."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import struct
import zlib
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from wire import field, record, varint

DATA = Path(__file__).resolve().parents[2] / "data"
POINTS = [(10 * i, round(2 / i**0.5 + 0.1, 4)) for i in range(1, 25)]


def samples() -> dict[str, bytes]:
    """A log of each format; Parquet where pyarrow is installed."""
    rows = [{"step": step, "loss": loss, "lr": 0.1, "epoch": step / 80} for step, loss in POINTS]
    table = "step,loss,lr\n" + "".join(f"{step},{loss},0.1\n" for step, loss in POINTS)
    panel = "Step,a - loss,a - loss__MIN,a - loss__MAX\n"
    text = {
        "long.csv": "curve,step,value,lr\n" + "".join(f"a,{s},{v},0.1\n" for s, v in POINTS),
        "table.csv": table,
        "table.tsv": table.replace(",", "\t"),
        "panel.csv": panel + "".join(f"{s},{v},{v},{v}\n" for s, v in POINTS),
        "rows.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "mlperf.txt": "".join(
            f':::MLLOG {{"key": "loss", "value": {v}, "metadata": {{"step": {s}}}}}\n'
            for s, v in POINTS
        ),
        "history.json": json.dumps({"loss": [v for _, v in POINTS], "lr": [0.1] * len(POINTS)}),
        "trainer_state.json": json.dumps({"log_history": rows, "max_steps": 500}),
        "console.log": "".join(f"Step {s}/500 | Loss: {v} | lr 1e-3\n" for s, v in POINTS),
        "keras.txt": "".join(
            f"Epoch {i}/25\n 9/9 [====] - 1s - loss: {v} - val_loss: {v}\n"
            for i, (_, v) in enumerate(POINTS, 1)
        ),
        "run/metrics/loss": "".join(f"{1_700_000_000_000 + s} {v} {s}\n" for s, v in POINTS),
        "plots/metrics/loss.tsv": "step\tloss\n" + "".join(f"{s}\t{v}\n" for s, v in POINTS),
    }
    found = {name: each.encode() for name, each in text.items()}
    found["table.csv.gz"] = gzip.compress(found["table.csv"], mtime=0)
    found["rows.jsonl.gz"] = gzip.compress(found["rows.jsonl"], mtime=0)
    whole = gzip.decompress((DATA / "curves" / "docs-lstm.csv.gz").read_bytes())
    found["docs-lstm.csv.gz"] = gzip.compress(whole[: whole.index(b"\n", 2000) + 1], mtime=0)
    found["events.out.tfevents.1"] = _events()
    found["run-a.wandb"] = _wandb()
    found["mlflow.db"], found["project.db"] = _databases()
    found |= _parquet()
    return found


def _events() -> bytes:
    data = record(b"\x09" + bytes(8) + field(3, b"brain.Event:2"))
    for step, loss in POINTS:
        value = field(1, b"loss") + b"\x15" + struct.pack("<f", loss)
        event = b"\x09" + struct.pack("<d", step) + b"\x10" + varint(step)
        data += record(event + field(5, field(1, value)))
    return data


def _wandb() -> bytes:
    data = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
    for step, loss in POINTS:
        items = b"".join(
            field(1, field(1, name) + varint(16 << 3 | 2) + varint(len(text)) + text)
            for name, text in ((b"loss", str(loss).encode()), (b"_step", str(step).encode()))
        )
        message = field(2, items)
        crc = zlib.crc32(b"\x01" + message)
        data += struct.pack("<IHB", crc, len(message), 1) + message
    return data


def _databases() -> tuple[bytes, bytes]:
    with TemporaryDirectory() as folder:
        mlflow, trackio = Path(folder, "mlflow.db"), Path(folder, "project.db")
        with closing(sqlite3.connect(mlflow)) as database, database:
            database.execute("CREATE TABLE runs (run_uuid, lifecycle_stage, start_time)")
            database.execute("INSERT INTO runs VALUES ('a', 'active', 1)")
            columns = "run_uuid, key, value, timestamp, step, is_nan"
            database.execute(f"CREATE TABLE metrics ({columns})")
            rows = [(loss, step, step) for step, loss in POINTS]
            database.executemany("INSERT INTO metrics VALUES ('a', 'loss', ?, ?, ?, 0)", rows)
        with closing(sqlite3.connect(trackio)) as database, database:
            database.execute(
                "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, "
                "step INTEGER, metrics TEXT)"
            )
            logged = [(step, json.dumps({"loss": loss})) for step, loss in POINTS]
            at = "'2026-01-01T00:00:00'"
            database.executemany(f"INSERT INTO metrics VALUES (NULL, {at}, 'a', ?, ?)", logged)
        return mlflow.read_bytes(), trackio.read_bytes()


def _parquet() -> dict[str, bytes]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return {}
    file = io.BytesIO()
    columns = {"step": [step for step, _ in POINTS], "loss": [loss for _, loss in POINTS]}
    pq.write_table(pa.table(columns), file)
    return {"table.parquet": file.getvalue()}
