"""The commands that own a database: `serve`, `migrate` and `copy`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from observatory import settings as settings_module
from observatory.cli import unfinished_files as unfinished
from observatory.cli.terminal import say


def serve(
    *,
    data: Annotated[str | None, Parameter(help="Data folder; ~/.observatory by default.")] = None,
    port: Annotated[int | None, Parameter(help="Port, 4800 by default; 0 takes a free one.")] = None,
    host: Annotated[str | None, Parameter(help="Address to listen on, 127.0.0.1 by default.")] = None,
    db: Annotated[str | None, Parameter(help="Database URL; SQLite in the data folder by default.")] = None,
    bus: Annotated[str | None, Parameter(help="nats://host:4222[/prefix]; in-process by default.")] = None,
    tls_cert: Annotated[str | None, Parameter(help="PEM of the certificate to serve https with.")] = None,
    tls_key: Annotated[str | None, Parameter(help="PEM of its key.")] = None,
    tls_key_passphrase_file: Annotated[
        str | None, Parameter(help="File of the key's passphrase, if it has one.")
    ] = None,
    tls_client_ca: Annotated[
        str | None, Parameter(help="PEM of the authorities of clients' certificates.")
    ] = None,
    tls_client_certs: Annotated[
        Literal["none", "optional", "required"] | None,
        Parameter(help="Whether clients must show a certificate; none by default."),
    ] = None,
    accept_rollback: Annotated[
        bool,
        Parameter(negative=(), help="Continue signing from less than was signed before; it is recorded."),
    ] = False,
) -> None:
    """Run the gateway. Without options: SQLite in ~/.observatory on http://127.0.0.1:4800."""
    from observatory.bootstrap import start

    flags: dict[str, Any] = {"data": data, "port": port, "host": host, "db": db, "bus": bus}
    flags |= {"tls_cert": tls_cert, "tls_key": tls_key, "tls_key_passphrase_file": tls_key_passphrase_file}
    flags |= {"tls_client_ca": tls_client_ca, "tls_client_certs": tls_client_certs}
    settings = settings_module.load(flags)
    unfinished.clear(settings.folder)  # of a backup or restore that was killed
    start(settings, accept_rollback)


def migrate(
    *,
    data: str | None = None,
    db: Annotated[str | None, Parameter(help="Database URL instead of the folder's own.")] = None,
) -> None:
    """Bring a database to this version; a safety copy of a SQLite file is kept next to it."""
    from observatory.bootstrap import locked_folder
    from observatory.store.migrations.migrate import migrate as run_migration

    settings = settings_module.load({"data": data, "db": db})
    url = settings.database_url
    with nullcontext() if settings.is_postgres or db else locked_folder(settings.folder):
        before, copy = run_migration(url)
        after, _ = run_migration(url)
    if before is None:
        say(f"a new database was created at schema {after}")
    elif before == after:
        say(f"nothing to do: the database is at schema {after}")
    else:
        say(f"migrated from schema {before} to {after}")
    if copy is not None:
        say(f"  a copy of the old one is at {Path(copy)}")
