"""`observatory copy`: everything of a SQLite database into an empty PostgreSQL."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from observatory.cli.terminal import progress_to, say
from observatory.features.backup.copy import copy_database


def copy(
    *,
    from_: Annotated[str, Parameter(name="--from", help="sqlite:///FILE or postgresql://… to read.")],
    to: Annotated[str, Parameter(help="The empty database to fill.")],
) -> None:
    """Move everything to an empty database, verified on the way; the source is marked as moved."""

    with progress_to("copying") as report:
        copied = copy_database(from_, to, report)
    say(
        f"copied {copied.tenants:,} tenants, {copied.events:,} events and {copied.messages:,} messages",
        f"  to {copied.moved_to}",
        "  the source is marked as moved; continue with `observatory serve --db URL` of the new one",
    )
