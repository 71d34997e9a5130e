# SPDX-License-Identifier: Apache-2.0
"""Every stage still gives the answers that were recorded, bit for bit."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

RELATIVE = 1e-9  # allowed where another instruction set or libc rounds the last bits otherwise
# An iterative fit ends where the squares hardly fall any more. What its curve says is then settled
# to the last bits, the parameters to about the root of them: up to 9e-6 between AVX-512 and AVX2.
ITERATED, FITTED = 1e-4, ("params", "stderr")


@pytest.fixture(scope="module")
def recorder(root: Path) -> ModuleType:
    file = root / "tests" / "golden" / "record_answers.py"
    spec = importlib.util.spec_from_file_location("record_answers", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def scalars(answers: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each scalar with the name of its answer, an index behind the name of an array."""
    for key, value in answers.items():
        if isinstance(value, list):
            for i, item in enumerate(value):
                yield f"{key}[{i}]", item
        else:
            yield key, value


def number(value: Any) -> float | None:
    """The float that `float.hex` wrote, or None where it is none."""
    if not isinstance(value, str):
        return None
    bare = value.removeprefix("-")
    if not (bare.startswith("0x") or bare in ("nan", "inf")):
        return None
    return float.fromhex(value)


def alike(key: str, was: Any, now: Any, *, exact: bool) -> bool:
    """Whether an answer is the recorded one, as far as the machine lets it be."""
    if type(was) is type(now) and was == now:
        return True
    if exact:
        return False
    if key.endswith(" digest"):
        return True  # says nothing about numbers that are only close
    a, b = number(was), number(now)
    fitted = key.rpartition("/")[2].partition("[")[0] in FITTED
    relative = ITERATED if fitted else RELATIVE
    return a is not None and b is not None and math.isclose(a, b, rel_tol=relative)


@pytest.mark.parametrize("stage", ["fit", "forecast", "plan", "simulate"])
def test_the_answers_are_those_recorded(recorder: ModuleType, stage: str) -> None:
    recorded = recorder.read()
    here, there = recorder.machine(), recorded["machine"]
    exact = here == there
    now = dict(scalars(recorder.compute(stage)))
    was = dict(scalars(recorded["stages"][stage]))
    assert len(was) >= 300
    missing = [key for key in was if key not in now]
    assert not missing, f"{stage}/{missing[0]} and {len(missing) - 1} others are not computed"
    extra = [key for key in now if key not in was]
    assert not extra, f"{stage}/{extra[0]} and {len(extra) - 1} others are not recorded"
    differing = [key for key in now if not alike(key, was[key], now[key], exact=exact)]
    if not differing:
        return
    first = differing[0]
    how = (
        "compared bit for bit: this is the kind of machine on which the answers were recorded"
        if exact
        else f"compared within {RELATIVE:g} relative: the answers were recorded on {there}, and "
        f"another instruction set or libc, here {here}, may round the last bits otherwise"
    )
    pytest.fail(
        f"{stage}/{first} was {was[first]}, is {now[first]} ({number(was[first])!r}, "
        f"{number(now[first])!r}); {len(differing)} of {len(was)} answers differ; {how}"
    )
