# SPDX-License-Identifier: Apache-2.0
"""Pictures of results: axes in, axes out.

`series` computes the numbers behind them; `runs`, `clusters` and `scores` draw them by matplotlib,
in one `style`. Every function takes `ax=None` (a new figure when none is given), draws on it and
returns it; nothing is shown, saved or set globally.
"""
