"""Compact keys of the big tables: packed row keys, the dedupe key and entity keys (ADR-024).

All are 64-bit integers, because random text indexes cost half the ingest rate at a million rows.
A dedupe or entity key is a hash: code that finds a row by it must compare the full text too.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

SEQ_BITS = 40
SEQ_MASK = (1 << SEQ_BITS) - 1


def dedupe_key(tenant_id: str, name: str) -> int:
    digest = hashlib.sha256(f"{tenant_id}\n{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


@lru_cache(maxsize=16_384)
def entity_key(tenant_id: str, entity_id: str) -> int:
    return dedupe_key(tenant_id, entity_id)
