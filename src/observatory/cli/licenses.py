"""`observatory licenses`: the licenses of the third-party packages that are built into the pages."""

from __future__ import annotations

import sys
from pathlib import Path

TEXT = Path(__file__).parents[1] / "THIRD_PARTY_LICENSES.txt"


def licenses() -> None:
    """Print the whole text; `/licenses` of a running gateway answers the same."""
    sys.stdout.write(TEXT.read_text("utf-8"))
