# SPDX-License-Identifier: Apache-2.0
"""Score TabPFN, a trained transformer for tables, as TabPFN-TS uses it, beside glidepath.

In an environment of its own, as it needs torch::

    pip install tabpfn==2.0.9 glidepath
    pip download --no-deps --no-binary :all: tabpfn_time_series==0.1.3
    tar xzf tabpfn_time_series-0.1.3.tar.gz
    export TABPFN_WEIGHTS=$PWD/tabpfn_time_series-0.1.3/tabpfn-v2-regressor-2noar4o2.ckpt
    glidepath bench accuracy FOLDER -m with_tabpfn:Running -m with_tabpfn:LogStep -m glidepath

The weights are those of TabPFN-TS (Hoo, Müller, Salinas and Hutter, 2025): a table of a feature of
time and the value, the rows to come left open. Its features of the calendar are left out, as steps
have no date.
"""

import os
import warnings

import numpy as np
from numpy.typing import NDArray

import glidepath as gp

Floats = NDArray[np.float64]
ROWS, AHEAD = 200, 50  # block means that it sees, and rows to come between which it is linear


def thinned(column: Floats, rows: int) -> Floats:
    """Means of equal blocks."""
    edges = np.linspace(0, len(column), min(rows, len(column)) + 1).astype(int)
    return np.add.reduceat(column, edges[:-1]) / np.diff(edges)


class Running:
    """TabPFN on the running index of the rows, which is what TabPFN-TS gives it."""

    def __init__(self) -> None:
        from tabpfn import TabPFNRegressor

        self.model = TabPFNRegressor(
            model_path=os.environ["TABPFN_WEIGHTS"], device="cpu", random_state=0
        )

    def feature(self, step: Floats, first: float, last: float) -> Floats:
        """A column of what a row is known by."""
        return (step - first) / (last - first)

    def __call__(self, trace: gp.Trace, at: Floats, levels: Floats) -> dict[str, Floats]:
        step, loss = thinned(trace.step, ROWS), thinned(trace.loss, ROWS)
        few = np.linspace(0, len(at) - 1, min(AHEAD, len(at))).astype(int)
        seen, ahead = (
            self.feature(each, trace.step[0], trace.step[-1])[:, None] for each in (step, at[few])
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.fit(seen, loss)
            found = self.model.predict(ahead, output_type="quantiles", quantiles=list(levels))
        return {"quantiles": np.array([np.interp(at, at[few], row) for row in found])}


class LogStep(Running):
    """TabPFN on the logarithm of the step."""

    def feature(self, step: Floats, first: float, last: float) -> Floats:
        """A column of what a row is known by."""
        return np.log(step)
