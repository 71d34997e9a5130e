# SPDX-License-Identifier: Apache-2.0
"""Score the Bayesian learning curve of DeepHyper beside glidepath.

In an environment of its own, as it needs JAX::

    pip install deephyper==0.13.2 "jax[cpu]" "numpyro[cpu]" glidepath
    glidepath bench accuracy FOLDER -m with_deephyper:posterior

The posterior of a power law with a floor by NUTS (Egele et al., 2023), scaled to the range that was
seen. It says where the curve will be; the noise of its model is added for where a logged value is.
"""

import numpy as np
from numpy.typing import NDArray

import glidepath as gp

Floats = NDArray[np.float64]
ROWS = 100  # block means that it sees of a longer log


def posterior(trace: gp.Trace, at: Floats, seed: int) -> dict[str, Floats]:
    """Paths of the logged values, a row for each sample of the posterior."""
    from deephyper.stopper.lce import BayesianLearningCurveRegressor

    edges = np.linspace(0, len(trace), min(ROWS, len(trace)) + 1).astype(int)
    step, loss = (
        np.add.reduceat(column, edges[:-1]) / np.diff(edges) for column in (trace.step, trace.loss)
    )
    model = BayesianLearningCurveRegressor(
        batch_size=len(step), min_max_scaling=True, random_state=seed
    )
    # It is made for scores of one epoch after the other: higher is better, steps of about 1.
    model.fit(step / trace.step[0], -loss)
    paths = -np.asarray(model.predict_posterior_samples(at / trace.step[0]), dtype=float)
    noise = np.asarray(model.mcmc_.get_samples()["sigma"])[:, None] * np.ptp(loss)
    return {"samples": paths + noise * np.random.default_rng(seed).standard_normal(paths.shape)}
