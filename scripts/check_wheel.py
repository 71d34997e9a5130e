# SPDX-License-Identifier: Apache-2.0
"""Whether a wheel runs on a machine that has none of what it was built with.

    python scripts/check_wheel.py WHEEL [--tests [NAME...]]

Inside it: its tag, its size, its licences; the extension asks for no newer C library than the tag
says, takes its mathematics from it, shows what Python looks for alone, and is without the log of
Ceres. Then it is installed in a fresh environment with its dependencies and nothing else: a fit, a
forecast and the command line run there, and the process says which shared libraries glidepath made
it open. A forecast has the digits of this tree's build, where there is one. With ``--tests``, a
minute of our tests runs there as well, or those named: ``trace`` is ``tests/python/test_trace.py``.
The interpreter that runs this may be one for another machine, under qemu.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GLIBC = (2, 28)  # of the oldest system for which we make wheels
LARGEST_MB = 6.0
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
LOGS = b"phase shrank"  # of Ceres' own log, which would go to stderr
MATHEMATICS = ("exp", "log", "pow", "lgamma_r")  # the C library's, or the last digits differ
FORECAST = [str(ROOT / part) for part in (
    "tests/package/one_forecast.py", "data/curves/docs-transformer.csv.gz"
)]  # fmt: skip
TESTS = (
    "trace",
    "fit",
    "forecast",
    "watch",
    "plan",
    "simulate",
    "own_process",
    "long_calls",
    "golden_answers",
)

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


def troubles(wheel: Path) -> list[str]:
    """Say what is wrong with the file itself."""
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        (extension,) = (name for name in names if re.search(r"/_core\.[^/]*\.so$", name))
        symbols = dynamic_symbols(Path(archive.extract(extension, folder)))
        logs = LOGS in archive.read(extension)
    found = [
        f"is without {name}" for name in INSIDE if not any(n.endswith(f"/{name}") for n in names)
    ]
    tag = re.search(r"manylinux_(\d+)_(\d+)_", wheel.name)
    if tag is None:
        return [*found, "is not repaired: it has no tag of manylinux"]
    allowed = (int(tag[1]), int(tag[2]))
    if allowed > GLIBC:
        found.append(f"needs glibc {tag[1]}.{tag[2]}")
    wanted = {tuple(map(int, v.split("."))) for v in re.findall(r"@+GLIBC_([\d.]+)", symbols)}
    newer = [".".join(map(str, version)) for version in sorted(wanted) if version[:2] > allowed]
    if newer:
        found.append(f"asks for glibc {', '.join(newer)} behind its tag")
    shown = [line.split()[-1] for line in symbols.splitlines() if re.search(r" [TDBRVWu] ", line)]
    if shown != ["PyInit__core"]:
        found.append(f"shows more than PyInit__core: {', '.join(shown[:5])}")
    own = [name for name in MATHEMATICS if not re.search(rf" U {name}@", symbols)]
    if own:
        found.append(f"has {', '.join(own)} of its own")
    if logs:
        found.append("writes the log of Ceres to stderr")
    size = wheel.stat().st_size / 1e6
    if size > LARGEST_MB:
        found.append(f"has {size:.1f} MB, at most {LARGEST_MB:g}")
    return found


def dynamic_symbols(library: Path) -> str:
    """List what a library shows and wants, as nm prints it, with versions."""
    command = ["nm", "-D", "--with-symbol-versions", str(library)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Environment:
    """A fresh environment in a folder of its own, that knows nothing of this tree."""

    def __init__(self, home: Path) -> None:
        self.home = home
        venv.create(home / "venv", with_pip=True)
        self.bin = home / "venv" / "bin"
        hidden = {"PYTHONPATH", "LD_LIBRARY_PATH"}
        self.clean = {key: value for key, value in os.environ.items() if key not in hidden}

    def run(self, program: str, *arguments: str | Path, cwd: Path | None = None) -> str:
        """Give what a program of the environment prints; end where it fails."""
        done = subprocess.run(
            [self.bin / program, *arguments],
            env=self.clean,
            cwd=cwd or self.home,
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(f"{program} {' '.join(map(str, arguments))}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def test(self, names: Sequence[str]) -> str:
        """Run some of our tests on what is installed; give pytest's last line."""
        self.run("python", "-m", "pip", "install", "--quiet", "pytest", "pytest-timeout",
                 "hypothesis", "scipy", "pandas", "pyarrow")  # fmt: skip
        chosen = [f"tests/python/test_{name}.py" for name in names]
        options = ("-q", "-p", "no:cacheprovider")
        return self.run("python", "-m", "pytest", *options, *chosen, cwd=ROOT).splitlines()[-1]


def own_forecast() -> str | None:
    """Make the forecast with the build in this tree, if there is one."""
    done = subprocess.run(
        [ROOT / ".venv" / "bin" / "python", *FORECAST],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        check=False,
        capture_output=True,
        text=True,
    ) if (ROOT / ".venv" / "bin" / "python").exists() else None  # fmt: skip
    return done.stdout if done is not None and done.returncode == 0 else None


def main() -> int:
    """Check the wheel that the command line names."""
    wheel = Path(sys.argv[1]).resolve()
    option, names = sys.argv[2:3], sys.argv[3:] or TESTS
    if option not in ([], ["--tests"]):
        sys.exit(f"check_wheel: what is {option[0]}?")
    found = troubles(wheel)
    if found:
        sys.exit(f"{wheel.name} {', and '.join(found)}")
    with tempfile.TemporaryDirectory() as folder:
        fresh = Environment(Path(folder).resolve())
        fresh.run("python", "-m", "pip", "install", "--quiet", wheel)
        libraries = fresh.run("python", "-c", PROGRAM).split()
        fresh.run("glidepath", "--version")
        forecast = fresh.run("python", *FORECAST)
        strangers = foreign(libraries, fresh.home)
        if strangers:
            sys.exit(f"{wheel.name} takes from this machine: {', '.join(strangers)}")
        expected = own_forecast()
        if expected not in (None, forecast):
            sys.exit(f"{wheel.name} forecasts\n{forecast}and the build of this tree\n{expected}")
        tested = f"; {fresh.test(names)}" if option else ""
    same = "" if expected is None else "; a forecast has the digits of this tree's build"
    size = wheel.stat().st_size / 1e6
    print(f"{wheel.name}, {size:.1f} MB: runs with what it carries and the C library{same}{tested}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
