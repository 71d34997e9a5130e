# SPDX-License-Identifier: Apache-2.0
"""Bound records: made by keyword, read, compared, printed, copied and pickled from one table."""

import copy
import inspect
import pickle
import subprocess
import sys
import typing
from typing import Any

import numpy as np
import pytest
from records import records

import glidepath as gp
from glidepath import _core


def classes() -> list[type]:
    """Every class of the package and of its compiled part."""
    found = {
        value
        for module in (gp, _core)
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__.startswith("glidepath")
    }
    return sorted(found, key=lambda cls: (cls.__module__, cls.__name__))


POKE = """
import copy, pickle, sys
import glidepath as gp
from glidepath import _core
for name in sys.argv[1:]:
    print(name, flush=True)
    cls = getattr(gp, name, None) or getattr(_core, name)
    try:
        empty = cls.__new__(cls)
    except TypeError:
        continue
    tries = [lambda: repr(empty), lambda: str(empty), lambda: empty == empty, lambda: hash(empty)]
    tries += [lambda each=each: getattr(empty, each) for each in dir(cls) if each[:2] != "__"]
    tries += [lambda each=each: pickle.dumps(empty, each) for each in range(6)]
    tries += [lambda: copy.copy(empty), lambda: len(empty)]
    tries += [lambda: gp.plan(empty), lambda: gp.Snapshot([empty], [empty])]
    for each in tries:
        try:
            each()
        except Exception:
            pass
"""


def test_an_object_that_was_never_initialized_raises_and_does_not_crash() -> None:
    names = [cls.__name__ for cls in classes()]
    assert {"Tier", "Job", "Plan", "Snapshot", "Watch"} <= set(names)
    command = [sys.executable, "-c", POKE, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"at {done.stdout.split()[-1]}: {done.stderr}"
    assert done.stdout.split() == names


def test_what_was_never_initialized_is_named_in_a_sentence() -> None:
    with pytest.raises(TypeError, match="never initialized: call its class, not __new__"):
        repr(gp.Tier.__new__(gp.Tier))


def test_what_a_serializer_calls_of_an_object_never_ends_the_process() -> None:
    fit = gp.fit((np.arange(1.0, 9.0), 1.0 / np.arange(1.0, 9.0)))
    for record in (*records(), fit._record):
        make, arguments, state = record.__reduce__()
        again = make(*arguments)
        again.__setstate__(state)
        assert again == record
    with pytest.raises(TypeError, match="cannot pickle a LogRows"):
        _core.LogRows().__reduce__()


def test_one_number_is_a_column_of_one() -> None:
    for number in (5, 5.0, np.float64(5.0), [5.0]):
        job = gp.Job(1, [gp.Option(0, 1, 1.0)], remaining_steps=number)
        assert job.remaining_steps.tolist() == [5.0]


MADE_BY_FUNCTIONS = (
    *(gp.BatchChoice, gp.Gpu, gp.JobSpan, gp.Pairs, gp.Partition, gp.PodPolicyInfo, gp.Scaling),
    gp.Slice,
)


@pytest.mark.parametrize("record", records(), ids=lambda record: type(record).__name__)
def test_a_record_is_what_its_fields_are(record: Any) -> None:
    by_protocol = [pickle.loads(pickle.dumps(record, each)) for each in range(6)]
    for again in (*by_protocol, copy.copy(record), copy.deepcopy(record)):
        assert again == record
        assert repr(again) == repr(record)
    assert record != 1
    fields = record.__match_args__
    assert len(fields) >= 1
    assert type(record).__name__ in repr(record)
    with pytest.raises(AttributeError):
        setattr(record, fields[0], 1)
    with pytest.raises(TypeError):
        hash(record)


@pytest.mark.parametrize("record", records(), ids=lambda record: type(record).__name__)
def test_a_record_is_made_again_by_its_keywords(record: Any) -> None:
    if type(record) in MADE_BY_FUNCTIONS:
        with pytest.raises(TypeError, match="No constructor"):
            type(record)()
        return
    fields = {name: getattr(record, name) for name in record.__match_args__}
    assert type(record)(**fields) == record


def test_a_field_that_is_nan_equals_itself() -> None:
    assert gp.Option(0, 1, np.nan) == gp.Option(0, 1, np.nan)
    assert gp.Option(0, 1, np.nan) != gp.Option(0, 1, 1.0)
    assert gp.Job(1, [], remaining_steps=[np.nan]) == gp.Job(1, [], remaining_steps=[np.nan])


def test_a_record_prints_the_call_that_makes_it() -> None:
    option = gp.Option(1, 2, 3.0, sharing="mps")
    assert repr(option) == "Option(tier=1, gpus=2, steps_per_s=3.0, sharing='mps')"
    assert eval(repr(option), {"Option": gp.Option}) == option


def test_input_that_is_almost_right_is_taken() -> None:
    option = gp.Option(np.int64(0), np.int32(2), np.float32(1.5))
    assert (option.tier, option.gpus, option.steps_per_s) == (0, 2, 1.5)
    job = gp.Job(np.int64(1), (option,), remaining_steps=(1, 2), preemptible=np.bool_(False))
    assert job.options == [option]
    assert job.remaining_steps.tolist() == [1.0, 2.0]
    assert not job.preemptible
    snapshot = gp.Snapshot((gp.Tier("a", 1, 2),), iter([job]))
    assert gp.plan(snapshot, objective=("jct",), prices=[0.0], user_quota={"": np.int64(2)})


def test_fields_have_the_types_that_they_are_read_as() -> None:
    assert typing.get_type_hints(gp.Snapshot) == {
        "tiers": list[gp.Tier],
        "jobs": list[gp.Job],
        "running": list[gp.Allocation],
        "now_s": float,
    }
    hints = typing.get_type_hints(gp.Job)
    assert list(hints) == list(gp.Job.__match_args__)
    assert (hints["id"], hints["user"], hints["preemptible"]) == (int, str, bool)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: gp.Option(0, 1.5, 1.0), "Option: gpus is 1.5, expected a whole number"),
        (lambda: gp.Option(0, 1, "fast"), "Option: steps_per_s is 'fast', expected a number"),
        (lambda: gp.Option(0, 1), "Option: steps_per_s is missing"),
        (lambda: gp.Option(0, 1, 1.0, 1.0), "Option: takes 3 values without a name, got 4"),
        (lambda: gp.Option(0, 1, 1.0, gpus=2), "Option: gpus is given twice"),
        (
            lambda: gp.Job(1, [], wieght=2),
            "Job: no field 'wieght', expected one of id, options, user",
        ),
        (lambda: gp.Job(1, [gp.Tier("a", 1)]), r"Job: options\[0\] is .*, expected an Option"),
        (lambda: gp.Job(1, gp.Option(0, 1, 1.0)), "Job: options is .*, expected a list"),
        (lambda: gp.Job(1, [], user=3), "Job: user is 3, expected text"),
        (lambda: gp.Job(1, [], preemptible="no"), "Job: preemptible is 'no', expected True or"),
        (lambda: gp.Job(1, [], remaining_steps="x"), "remaining_steps: expected an array of num"),
        (lambda: gp.plan(gp.Snapshot([], []), objective=3), "objective is 3, expected a name, a"),
        (lambda: gp.plan(gp.Snapshot([], []), user_quota=3), "user_quota is 3, expected a dict of"),
        (lambda: gp.plan(gp.Snapshot([], []), pairs="x"), "pairs is 'x', expected Pairs or None"),
    ],
)
def test_what_does_not_fit_a_field_is_refused_in_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        call()
