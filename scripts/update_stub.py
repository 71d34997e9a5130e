# SPDX-License-Identifier: Apache-2.0
"""Write python/glidepath/_core.pyi from the built extension; `--check` only compares.

Run with the package importable: PYTHONPATH=python python scripts/update_stub.py
"""

import ast
import subprocess
import sys
import tempfile
from pathlib import Path

STUB = Path(__file__).resolve().parent.parent / "python" / "glidepath" / "_core.pyi"
# The errors call themselves glidepath.<name>; for a type checker they must live here.
HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Written by scripts/update_stub.py
"""The C++ library behind glidepath; private."""

import collections.abc
import os
import typing

import numpy
from numpy.typing import ArrayLike, NDArray

from glidepath._plan import Plan
from glidepath._trace import Trace

Float: typing.TypeAlias = typing.SupportsFloat | typing.SupportsIndex
Int: typing.TypeAlias = typing.SupportsInt | typing.SupportsIndex

class InputError(ValueError): ...
class IoError(OSError): ...
'''
NAMES = {  # as pybind11 writes the types of arguments, and what the head calls them
    "typing.SupportsFloat | typing.SupportsIndex": "Float",
    "typing.SupportsInt | typing.SupportsIndex": "Int",
    "typing.Annotated[numpy.typing.ArrayLike, numpy.float64]": "ArrayLike",
    "typing.Annotated[numpy.typing.ArrayLike, numpy.int64]": "ArrayLike",
    "numpy.typing.": "",
    "glidepath._trace.Trace": "Trace",
    "glidepath._plan.Plan": "Plan",
    "(glidepath.IoError)": "(IoError)",
    # A class with == and no hash says so with None, which object's own type does not foresee.
    "ClassVar[None]": "ClassVar[None]  # type: ignore[assignment]",
}
# What every module or object has, and what only pickle and `match` ask for.
DROPPED = {
    "__all__", "__annotations__", "__eq__", "__getstate__", "__match_args__", "__reduce__",
    "__repr__", "__setstate__",
}  # fmt: skip


class Plain(ast.NodeTransformer):
    """Keeps what a type checker and a reader need."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt | None:
        """Functions with their documentation; a property is a field that is only read."""
        if node.name in DROPPED:
            return None
        match node:
            case ast.FunctionDef(decorator_list=[ast.Name("property")], returns=ast.expr() as kind):
                return ast.parse(f"{node.name}: typing.Final[{ast.unparse(kind)}]").body[0]
        for each in (*node.args.args, *node.args.kwonlyargs):
            if each.annotation is not None:  # what takes anything narrows nothing
                kind = ast.unparse(each.annotation).replace("typing.Any", "object")
                each.annotation = ast.parse(kind, mode="eval").body
        return documented(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        """Classes with what is left of their members."""
        self.generic_visit(node)
        node.body = node.body or [ast.Expr(ast.Constant(...))]
        return documented(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | None:
        """Constants without their values, which have one source, and it is not this file."""
        if node.value is not None and ast.unparse(node.annotation) in ("tuple", "dict"):
            node.annotation = ast.parse(kind_of(ast.literal_eval(node.value)), mode="eval").body
        node.value = None
        return None if ast.unparse(node.target) in DROPPED else node


def kind_of(value: object) -> str:
    """Give the type of a constant: all its parts are alike."""
    match value:
        case tuple():
            return f"tuple[{' | '.join(sorted({kind_of(each) for each in value}))}, ...]"
        case dict():
            (key,), (item,) = ({kind_of(x) for x in part} for part in (value, value.values()))
            return f"dict[{key}, {item}]"
    return type(value).__name__


def documented(node: ast.FunctionDef | ast.ClassDef) -> ast.stmt:
    """Begin the docstring on its first line."""
    if text := ast.get_docstring(node):
        node.body[0] = ast.Expr(ast.Constant(text + "\n" if "\n" in text else text))
    return node


def generate() -> str:
    """Text of the stub that the extension on the path deserves."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "pybind11_stubgen", "--output-dir", folder, "glidepath._core"],
            check=True,
            capture_output=True,
        )
        module = ast.parse((Path(folder) / "glidepath" / "_core.pyi").read_text())
    # The head has the docstring and the imports.
    module.body = [n for n in module.body[1:] if not isinstance(n, ast.Import | ast.ImportFrom)]
    text = ast.unparse(Plain().visit(module))
    for name, short in NAMES.items():
        text = text.replace(name, short)
    formatted = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", STUB, "-"],
        input=HEAD + text,
        check=True,
        capture_output=True,
        text=True,
    )
    return formatted.stdout


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
