# ---
# # SPDX-License-Identifier: Apache-2.0
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Stop hopeless runs
#
# Twelve runs of one study. Each is watched as it logs, and ended once it reached the target, or once three looks in a row said
# that it would not.

# %%
import glidepath as gp

runs = gp.read_traces("../data/curves/docstring-t5.csv.gz")[:12]
target = 2.2
decisions = {}
for run in runs:
    watch, never = gp.Watch(target=target, budget=run.step[-1], alpha=0.02), 0
    for i, (step, loss) in enumerate(zip(run.step, run.loss, strict=True)):
        watch.add(step, loss)
        if i % 20 == 19:  # a look at every twentieth logged value
            decision = watch.decision()
            never = never + 1 if decision.verdict == "never" else 0
            if decision.verdict == "reached" or never == 3:
                break
    decisions[run.name] = (step, decision)
decision

# %% [markdown]
# What was stopped too early? The logs go on to the end of each run, so every stop can be judged: did the run reach the
# target after all? By the rule by which the watch reads it, its level, not one lucky batch: of a run that is over, `gp.reach`
# knows. `alpha` is the share of wrong stops that is allowed; lower it, or wait for more looks, where a wrong stop is dear.

# %%
saved = wrong = 0.0
for run in runs:
    step, decision = decisions[run.name]
    reached = gp.reach(run, target, budget=run.step[-1]).prob_never == 0
    print(f"{run.name:45} {decision.verdict:10} at {step:5.0f} of {run.step[-1]:5.0f}   {reached=}")
    if decision.verdict == "never":
        saved += 1 - step / run.step[-1]
        wrong += reached
print(f"{saved:.1f} of {len(runs)} runs' steps saved by never, {wrong:.0f} of them wrongly")
