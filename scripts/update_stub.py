# SPDX-License-Identifier: Apache-2.0
"""Write python/glidepath/_core.pyi from the built extension; `--check` only compares.

Run with the package importable: PYTHONPATH=python python scripts/update_stub.py
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

STUB = Path(__file__).resolve().parent.parent / "python" / "glidepath" / "_core.pyi"


def generate() -> str:
    """Text of the stub that the extension on the path deserves."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "pybind11_stubgen", "--output-dir", folder, "glidepath._core"],
            check=True,
            capture_output=True,
        )
        text = (Path(folder) / "glidepath" / "_core.pyi").read_text()
    # The version has one source, and it is not this file.
    text = re.sub(r"^__version__: str = .*$", "__version__: str", text, flags=re.MULTILINE)
    # The errors call themselves glidepath.<name>; for a type checker they must live here.
    for name, base in {"InputError": "ValueError", "IoError": "OSError"}.items():
        text = text.replace(f"from glidepath import {name}\n", f"class {name}({base}): ...\n")
    # Records refuse to be made by __new__, which a type checker could not make sense of.
    text = re.sub(
        r"^    @staticmethod\n    def __new__\(arg0: typing.Any, .*\) -> None:\n        \.\.\.\n",
        "",
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(r"^(class \w+:)\n(?=\S)", r"\1 ...\n", text, flags=re.MULTILINE)
    # A class with == and no hash says so with None, which object's own type does not foresee.
    text = re.sub(
        r"^(\s+__hash__: typing.ClassVar\[None\] = None).*$",
        r"\1  # type: ignore[assignment]",
        text,
        flags=re.MULTILINE,
    )
    # Names of fields: a tuple of one loses its comma, and the signatures say them anyway.
    text = re.sub(
        r"^(\s+__match_args__: typing.ClassVar\[tuple)\] = .*$",
        r"\1[str, ...]]",
        text,
        flags=re.MULTILINE,
    )
    return "# SPDX-License-Identifier: Apache-2.0\n# Written by scripts/update_stub.py\n" + text


def main() -> int:
    """Write or compare; exit code 1 when the committed stub is stale."""
    text = generate()
    if "--check" in sys.argv[1:]:
        if STUB.read_text() != text:
            print(f"{STUB.name} is stale: run python scripts/update_stub.py", file=sys.stderr)
            return 1
        return 0
    STUB.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
