# SPDX-License-Identifier: Apache-2.0
"""Write the runs of code_gpt.py as collections: their losses, and the same of held-out windows.

python data/record/code_gather.py PARTS [--out data/gpu]
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

COLUMNS = ("curve", "step", "value", "lr", "valid_loss", "wall_seconds", "memory_mb")
HELD_OUT_COLUMNS = ("curve", "step", "value", "lr", "wall_seconds")
SETUP = "Decoder-only transformers predict the next of 4096 byte-pair tokens of Python sources"
ABOUT = {
    "code-gpt": SETUP + ", each token at most once.",
    "code-gpt-cooldown": SETUP + "; branches of the constant runs of code-gpt to a rate of zero.",
    "code-gpt-finetune": SETUP + " of a small text over many epochs, from a trained model or none.",
}


def _write(
    name: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    about: dict[str, Any],
    out: Path,
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    points = list(rows)
    writer.writerows(points)
    (out / f"{name}.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    (out / f"{name}.json").write_text(
        json.dumps({"collection": name, **about, "points": len(points)}, indent=1) + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the runs of code_gpt.py as collections.")
    parser.add_argument("parts", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[1] / "gpu")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    settings = [json.loads(line) for line in (args.parts / "settings.jsonl").open()]
    for collection, setup in ABOUT.items():
        mine = [run for run in settings if run["collection"] == collection]
        rows = []
        for run in mine:
            part = args.parts / f"{collection}__{run['curve'].replace('/', '__')}.csv"
            with part.open(newline="") as file:
                rows += list(csv.reader(file))
        about = {
            "metric": "training loss (cross-entropy, nats)",
            "direction": "min",
            "step_unit": "optimizer step",
            "setup": setup,
            "recorded": "2026-11",
            "versions": {"torch": "2.11.0+cu130", "card": "NVIDIA H100 80GB HBM3"},
            "has_lr": True,
            "curves": len(mine),
        }
        chosen = {
            run.pop("curve"): {name: value for name, value in run.items() if name != "collection"}
            for run in mine
        }
        _write(collection, COLUMNS, rows, {**about, "settings": chosen}, args.out)
        held_out = [(row[0], row[1], row[4], row[3], row[5]) for row in rows if row[4]]
        about |= {"metric": "loss of held-out windows (nats)", "beside": collection}
        _write(f"{collection}-heldout", HELD_OUT_COLUMNS, held_out, about, args.out)


if __name__ == "__main__":
    main()
