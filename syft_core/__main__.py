"""Run the command line with ``python -m syft_core``."""

import sys

from syft_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
