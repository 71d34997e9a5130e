# SPDX-License-Identifier: Apache-2.0
"""Read every log of a folder of foreign ones, each alone and without arguments.

Prints a line a file (metric and points, or why it is refused) and a table by family: the format
that the folder's `index.csv` names, else the folder's first level.
Usage: bench/read_wild.py FOLDER [--all]    (only what is refused, and the table, without --all)
"""

import csv
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import glidepath as gp


def main() -> None:
    """Read, print, count."""
    if len(sys.argv) < 2:
        sys.exit("usage: bench/read_wild.py FOLDER [--all]")
    folder = Path(sys.argv[1])
    index = folder / "index.csv"
    families = {}
    if index.exists():
        with index.open(newline="") as file:
            families = {row["file"]: row["format"] for row in csv.DictReader(file)}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    began = time.perf_counter()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or path == index:
            continue
        family = families.get(name, name.split("/")[0])
        try:
            runs = gp.read_traces(path)
            kind = "read" if any(len(run) >= 10 for run in runs) else "short"
            said = "; ".join(
                f"{run.metric} {len(run)} {run.direction} {run.step[0]:g}..{run.step[-1]:g}"
                for run in runs[:3]
            )
        except (gp.InputError, gp.IoError) as error:
            kind, said = "refused", str(error).removeprefix(str(path))[:300]
        except Exception as error:
            kind, said = "BROKEN", f"{type(error).__name__}: {error}"
        counts[family][kind] += 1
        if kind in ("refused", "BROKEN") or "--all" in sys.argv:
            print(f"{kind:8s} {name}: {said}")
    print(f"\n{'family':20s} files  read  under 10 points  refused  broken")
    for family, found in sorted(counts.items()):
        print(
            f"{family:20s} {found.total():5d} {found['read']:5d} {found['short']:16d} "
            f"{found['refused']:8d} {found['BROKEN']:7d}"
        )
    print(f"{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
