# SPDX-License-Identifier: Apache-2.0
"""Whether a wheel runs on a machine that has none of what it was built with.

    python scripts/check_wheel.py dist/glidepath-*.whl

It is installed in a fresh environment with its dependencies and nothing else; a fit, a forecast and
the command line run there; then the process says which shared libraries glidepath made it open.
Apart from those inside the wheel, only what every Linux has may be among them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path

# What the manylinux policies let a wheel take from the system (PEP 600), and zlib is one of them.
ANYWHERE = {
    "libc",
    "libm",
    "libdl",
    "libpthread",
    "librt",
    "libutil",
    "libgcc_s",
    "libstdc++",
    "libz",
}
PYTHON = sysconfig.get_path("stdlib")  # not its prefix, which for a system's Python is all of /usr
INSIDE = ("LICENSE", "NOTICE")

PROGRAM = """
import ctypes, hashlib, lzma, sqlite3, ssl, numpy  # what these open is not ours


def opened():
    with open("/proc/self/maps") as maps:
        return {line.split(maxsplit=5)[5].strip() for line in maps if ".so" in line}


before = opened()
import glidepath as gp

steps = [float(t) for t in range(1, 201)]
run = gp.Trace(steps, [2 + 3 * t**-0.5 + 0.01 * (-1) ** t for t in steps])
fit = gp.fit(run, family="pow3")
assert abs(fit.params["floor"] - 2) < 0.05, fit
assert abs(gp.fit(run, family="pow4").params["floor"] - 2) < 0.2
assert gp.reach(run, 2.15, budget=2000).prob_never < 0.5
print(*opened() - before, sep="\\n")
"""


def foreign(libraries: list[str], home: Path) -> list[str]:
    """Return the libraries that are neither in the environment nor on every machine."""
    return sorted(
        library
        for library in libraries
        if not library.startswith((str(home), f"{PYTHON}/"))
        and Path(library).name.partition(".so")[0] not in ANYWHERE
    )


def main() -> int:
    """Check the wheel that the command line names."""
    (wheel,) = (Path(argument).resolve() for argument in sys.argv[1:])
    names = zipfile.ZipFile(wheel).namelist()
    missing = [name for name in INSIDE if not any(each.endswith(f"/{name}") for each in names)]
    if "manylinux" not in wheel.name or missing:
        sys.exit(f"{wheel.name}: not repaired, or without {', '.join(missing) or 'its tag'}")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        venv.create(home / "venv", with_pip=True)
        python = home / "venv" / "bin" / "python"
        clean = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "LD_LIBRARY_PATH"}}

        def run(*command: str | Path) -> str:
            done = subprocess.run(
                command, env=clean, cwd=home, check=False, capture_output=True, text=True
            )
            if done.returncode:
                sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
            return done.stdout

        run(python, "-m", "pip", "install", "--quiet", wheel)
        libraries = run(python, "-c", PROGRAM).split()
        run(home / "venv" / "bin" / "glidepath", "--version")
        strangers = foreign(libraries, home)
    if strangers:
        sys.exit(f"{wheel.name} takes from this machine: {', '.join(strangers)}")
    size = wheel.stat().st_size / 1e6
    print(f"{wheel.name}, {size:.1f} MB: runs with what it carries and the C library")
    return 0


if __name__ == "__main__":
    sys.exit(main())
