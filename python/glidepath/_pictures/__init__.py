# SPDX-License-Identifier: Apache-2.0
"""Pictures: `series` computes the numbers behind them, `plots` draws them by matplotlib."""
