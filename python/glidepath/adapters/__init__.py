# SPDX-License-Identifier: Apache-2.0
"""A `Watch` inside the training loop: one small module a framework, imported by name.

`transformers`, `lightning`, `keras` and `skorch` have a ``ForecastCallback``, `optuna` a
``ForecastPruner``, `ray` a ``ForecastStopper``. Each writes its forecast and its advice to where
the framework logs; with ``mode="act"`` it also stops runs that are reached or lost.
"""
