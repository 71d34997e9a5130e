# SPDX-License-Identifier: Apache-2.0
"""A watch inside the training loop, one small module a framework, imported by name.

`transformers`, `lightning`, `keras` and `skorch` have a ``ForecastCallback``, `optuna` a
``ForecastPruner``, `ray` a ``ForecastStopper``. Each writes its forecast and what it would decide
to where the framework logs, and with ``mode="act"`` stops what has nothing left to gain.
"""
