# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of `glidepath bench`, one module a stage."""
