# SPDX-License-Identifier: Apache-2.0
"""`python -m glidepath`: the command line, where its script is not on the path."""

import sys

from glidepath.cli import main

sys.exit(main())
