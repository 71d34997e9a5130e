# SPDX-License-Identifier: Apache-2.0
"""Links to other systems: `slurm` drives a job scheduler, `dask` works on tables of runs."""
