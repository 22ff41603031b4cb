"""`observatory`: start the gateway, and everything an operator does from a terminal."""

from __future__ import annotations

import asyncio
import sys

from cyclopts import App

from observatory import settings as settings_module
from observatory.errors import ObservatoryError

app = App(name="observatory", help="A control plane for meshes of autonomous AI agents.", version=settings_module.VERSION)


@app.command
def serve(
    *,
    data: str | None = None,
    port: int | None = None,
    host: str | None = None,
    db: str | None = None,
    bus: str | None = None,
) -> None:
    """Run the gateway. Without options: SQLite in ~/.observatory on http://127.0.0.1:4800."""
    from observatory.bootstrap import run

    chosen = settings_module.load({"data": data, "port": port, "host": host, "db": db, "bus": bus})
    asyncio.run(run(chosen))


def main() -> None:
    try:
        app()
    except ObservatoryError as error:
        print(f"observatory: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
