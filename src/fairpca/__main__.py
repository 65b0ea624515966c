"""``python -m fairpca``: the same as the program ``fairpca``."""

import sys

from fairpca.cli import main

if __name__ == "__main__":
    sys.exit(main())
