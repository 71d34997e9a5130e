# SPDX-License-Identifier: Apache-2.0
"""Score forecasters, ours and anybody's, on finished runs.

`docs/benchmark.md` says what a method gets and gives, how it is scored, and what is in a results
file. On the command line: ``glidepath bench accuracy``, ``compare`` and ``reach``.
"""

from glidepath._bench.accuracy import CUTOFFS, LEVELS, NAMES, Accuracy, accuracy, read_accuracy
from glidepath._bench.reach import ReachScores, reach

__all__ = [
    "CUTOFFS",
    "LEVELS",
    "NAMES",
    "Accuracy",
    "ReachScores",
    "accuracy",
    "reach",
    "read_accuracy",
]
