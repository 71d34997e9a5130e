# SPDX-License-Identifier: Apache-2.0
"""Real engines, imported by name: `slurm` drives a scheduler, `dask` fits tables of runs."""
