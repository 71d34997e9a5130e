# SPDX-License-Identifier: Apache-2.0
"""What will a run become that has not begun? Past runs know, those of its settings best."""

from dataclasses import replace

import glidepath as gp


def settings_of(run: gp.Trace) -> dict[str, float | str]:
    """What our own runs have in their names: `base-b8x900/cosine_base_adamw-lr2e-3_s0`."""
    model, _, rest = run.name.partition("/")
    size, _, steps = model.partition("-b")
    rate = rest.partition("-lr")[2].partition("_")[0].partition("-noclip")[0]
    return {"size": size, "batch": float(steps.partition("x")[0]), "lr": float(rate)}


runs = gp.read_traces("data/curves/docstring-t5.csv.gz")
finished = [replace(run, settings=settings_of(run)) for run in runs]
past = gp.PastRuns(finished)
print(past.relevance)
soon = gp.Trace([], [], settings={"size": "base", "batch": 8, "lr": 2e-3})
print(gp.forecast(soon, [800], past=past))
print(gp.reach(soon, 2.2, budget=800, past=past).remaining_steps(10))  # for gp.Job
