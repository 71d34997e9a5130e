# SPDX-License-Identifier: Apache-2.0
"""Verdicts on a run, a row for each: what they mean for it, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a verdict means for a run.

    Attributes
    ----------
    words : str
        How a reader writes it.
    style : str
        How `rich` draws it in a terminal.
    is_reached : bool
        The run is at its target: it may end.
    is_lost : bool
        It has no chance left: it is to be stopped.
    is_settled : bool
        What was logged decides it, no forecast can say otherwise.
    weighed : str
        What its probability means, as the end of a sentence.
    """

    words: str
    style: str
    is_reached: bool = False
    is_lost: bool = False
    is_settled: bool = False
    weighed: str = ""


_MEANINGS = {
    "unknown": Meaning("unknown", "yellow", weighed=", which decides nothing yet"),
    "reached": Meaning("reached", "bold green", is_reached=True, is_settled=True),
    "will_reach": Meaning("will reach", "green"),
    "never": Meaning(
        "never", "bold red", is_lost=True, weighed=", so little that it counts as never by now"
    ),
    "diverged": Meaning("diverged", "bold red", is_lost=True, is_settled=True),
}


def meaning(verdict: str) -> Meaning:
    """Say what a verdict means; one that another version wrote is unknown."""
    return _MEANINGS.get(verdict, _MEANINGS["unknown"])
