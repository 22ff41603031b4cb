"""Entities and their prefixed ids: how ids are minted and compared.

Law: an id is prefixed text (`agt_…`), the same in JSON and in both databases. Minted ids are UUIDv7
and may carry the sequence number of their row, so a row is found by its id without an index on random
text. UUIDs compare without case and hyphens; `canonical_uuid` returns the canonical spelling.
"""

import re
import uuid
from functools import lru_cache
from random import getrandbits
from typing import Final, Literal

import msgspec

EntityType = Literal["agent", "user", "system"]
TrustLevel = Literal["tenant_verified", "federation_verified", "unverified"]

NAMESPACE: Final = uuid.UUID("a1b2c3d4-e5f6-7890-abcd-ef1234567890")

TENANT: Final = "tnt_"
USER: Final = "usr_"
AGENT: Final = "agt_"
MESSAGE: Final = "msg_"
EVENT: Final = "evt_"
DECISION: Final = "dec_"
ALERT: Final = "alt_"
ACTION: Final = "act_"
TASK: Final = "tsk_"
ARTIFACT: Final = "art_"
SESSION: Final = "ses_"
KEY: Final = "key_"
PREFIXES: Final = (
    TENANT,
    USER,
    AGENT,
    MESSAGE,
    EVENT,
    DECISION,
    ALERT,
    ACTION,
    TASK,
    ARTIFACT,
    SESSION,
    KEY,
)

COUNTER_BITS: Final = 40

_LOWER: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch
_HEX: Final = re.compile(r"[0-9a-f]{32}").fullmatch


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    """An entity as defined by the seed. `trust_level` is set by the server, never by the agent."""

    entity_id: str
    entity_type: EntityType
    tenant_id: str
    display_name: str
    hub_address: str | None = None
    capabilities: tuple[str, ...] = ()
    trust_level: TrustLevel = "unverified"


def hyphenated(digits: str) -> str:
    """A UUID's text from its 32 hex digits."""
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


# Called for a step's id when it is read, placed and written, and again as the parent of the next step.
@lru_cache(maxsize=8_192)
def canonical_uuid(text: str) -> str | None:
    """The lower-case hyphenated spelling of a UUID, or None when the text is not a UUID."""
    if _LOWER(text):
        return text
    lower = text.lower()
    if _LOWER(lower):
        return lower
    return hyphenated(lower) if _HEX(lower) else None


def canonical_id(text: str) -> str:
    """A UUID in canonical spelling; any other id unchanged."""
    return canonical_uuid(text) or text


@lru_cache(maxsize=65536)
def agent_entity_id(tenant_id: str, agent_id: str) -> str:
    """The entity id of an agent's name; an id that already has the prefix is returned unchanged."""
    if agent_id.startswith(AGENT):
        return agent_id
    return f"{AGENT}{uuid.uuid5(NAMESPACE, f'{tenant_id}/{agent_id}')}"


def mint(prefix: str, now_ns: int, counter: int | None = None) -> str:
    """A new id: the prefix and a UUIDv7, whose lowest 40 bits carry `counter` when one is given."""
    if counter is None:
        low = getrandbits(62)
    elif 0 <= counter < 1 << COUNTER_BITS:
        low = (getrandbits(22) << COUNTER_BITS) | counter
    else:
        raise ValueError("a counter has 40 bits")
    # RFC 9562 section 5.7: 48 bits of Unix ms, version 7, 12 bits, variant 10, 62 bits.
    d = f"{1 << 63 | low:016x}"
    return f"{prefix}{_stamp(now_ns // 1_000_000)}-7{getrandbits(12):03x}-{d[:4]}-{d[4:]}"


@lru_cache(maxsize=16)
def _stamp(ms: int) -> str:
    """The first 48 bits of an id: a batch shares its time, so this is computed once per batch."""
    digits = f"{ms & 0xFFFF_FFFF_FFFF:012x}"
    return f"{digits[:8]}-{digits[8:]}"


def counter_of(id_text: str) -> int | None:
    """The counter of a minted id, or None when it is not a prefixed UUIDv7.

    A random id yields a random number: the caller must compare the id of the row it finds.
    """
    _, _, text = id_text.rpartition("_")
    if not _LOWER(text) or text[14] != "7":
        return None
    return int(text[-10:], 16)


DeliveryKey = tuple[int, int]  # sequence number, agent number


def delivery_id(key: DeliveryKey) -> str:
    return f"dlv_{key[0]}-{key[1]}"
