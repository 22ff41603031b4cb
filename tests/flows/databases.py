"""The two databases a promise is kept on: a gateway on either takes these options.

The PostgreSQL server is the `postgres_url` of the worker; every gateway that is no twin of another gets an
empty database of its own there, which costs less than a server.
"""

from __future__ import annotations

import uuid

import pytest

from bench.postgres import ask

DATABASES = ("sqlite", "postgres")
# A fresh gateway is about the corridor: without its analyst it starts in half the time.
ALONE = {"OBSERVATORY_INSIGHT": "false"}


def new_database(postgres_url: str) -> str:
    """The URL of an empty database on this server."""
    name = f"flows_{uuid.uuid4().hex[:12]}"
    ask(postgres_url, f"CREATE DATABASE {name}")
    return postgres_url.replace("/postgres?", f"/{name}?")


def options_of(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """For `Server`, in a fixture with `params=DATABASES`."""
    if request.param == "sqlite":
        return ()
    return ("--db", new_database(request.getfixturevalue("postgres_url")))
