"""The system's authorities are read once by a process of the tests, and not by each of its HTTP clients.

Reading them takes 30 ms of CPU; a test opens clients by the dozen, and nearly all of them speak plain HTTP.
Whoever trusts by the environment reads anew: there the answer may change. Who gives a context a further
authority must have one of their own (`read`), or every other client of the process believes it too.
"""

from __future__ import annotations

import ssl
from functools import cache
from typing import Any

import httpcore2

read = httpcore2.default_ssl_context


@cache
def system() -> ssl.SSLContext:
    return read(_trust_env=False)


def _kept(*, _trust_env: bool = True) -> ssl.SSLContext:
    return read(_trust_env=True) if _trust_env else system()


def read_once() -> None:
    library: Any = httpcore2
    library.default_ssl_context = _kept
