"""The inventory of certificates: what is configured, what was shown, who uses which, and how each stands.

Pure. An agent uses the certificate it last spoke with; it is bound to whatever its binding says, shown or
not. Only what is in use can alarm: the gateway's own, the authorities of clients, and what agents use or are
bound to by fingerprint. One that was rotated out may end in peace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from observatory.protocol.certificates import Certificate

Use = Literal["server", "authority", "client"]
Standing = Literal["current", "expiring", "expired", "not_yet"]
DAY_NS: Final = 86_400_000_000_000
Row = Mapping[str, Any]


class Entry(NamedTuple):
    use: Use
    certificate: Certificate
    standing: Standing
    agents: tuple[str, ...] = ()  # that last spoke with it
    bound: tuple[str, ...] = ()  # that are bound to it by name or fingerprint
    key_ids: tuple[str, ...] = ()
    first_seen_ns: int | None = None
    last_seen_ns: int | None = None

    @property
    def is_used(self) -> bool:
        return self.use != "client" or bool(self.agents) or bool(self.bound)


class Bound(NamedTuple):
    """An agent that is bound, as its row says."""

    agent_id: str
    entity_id: str
    kind: str
    value: str


def standing_of(certificate: Certificate, now_ns: int, days: int) -> Standing:
    if certificate.not_after_ns < now_ns:
        return "expired"
    if certificate.not_before_ns > now_ns:
        return "not_yet"
    return "expiring" if certificate.not_after_ns - now_ns < days * DAY_NS else "current"


def days_left(certificate: Certificate, now_ns: int) -> int:
    """Whole days; negative once it has ended."""
    return (certificate.not_after_ns - now_ns) // DAY_NS


def certificate_of(row: Row) -> Certificate:
    names = msgspec.json.decode(row["names"], type=tuple[str, ...])
    return Certificate(
        fingerprint=row["fingerprint"],
        subject=row["subject"],
        issuer=row["issuer"],
        serial=row["serial"],
        names=names,
        not_before_ns=row["not_before_ns"],
        not_after_ns=row["not_after_ns"],
    )


def bound_of(rows: Iterable[Row]) -> list[Bound]:
    return [
        Bound(row["agent_id"], row["entity_id"], row["kind"], row["value"])
        for row in rows
        if row["removed_ns"] is None
    ]


def is_meant(bound: Bound, certificate: Certificate) -> bool:
    """Whether this binding names this certificate, in time or not."""
    if bound.kind == "fingerprint":
        return bound.value == certificate.fingerprint
    if bound.kind == "subject":
        return bound.value == certificate.subject
    return f"{bound.kind}:{bound.value}" in certificate.names


def inventory(
    server: Certificate | None,
    authorities: Sequence[Certificate],
    shown: Iterable[Row],
    speakers: Mapping[str, Sequence[str]],
    bound: Sequence[Bound],
    now_ns: int,
    days: int,
) -> list[Entry]:
    """The gateway's own first, then its authorities, then clients', the one that ends first at the top.

    `speakers`: fingerprint -> agents that last spoke with it.
    """
    made: list[Entry] = []
    if server is not None:
        made.append(Entry("server", server, standing_of(server, now_ns, days)))
    made += [Entry("authority", one, standing_of(one, now_ns, days)) for one in authorities]
    clients: list[Entry] = []
    for row in shown:
        facts = certificate_of(row)
        agents = tuple(speakers.get(facts.fingerprint, ()))
        meant = tuple(
            one.agent_id
            for one in bound
            # By a name all certificates of that name are meant; an old one is of no concern to anybody.
            if is_meant(one, facts) and (one.kind == "fingerprint" or one.agent_id in agents)
        )
        clients.append(
            Entry(
                "client",
                facts,
                standing_of(facts, now_ns, days),
                agents,
                meant,
                tuple(msgspec.json.decode(row["key_ids"], type=list[str])),
                row["first_seen_ns"],
                row["last_seen_ns"],
            )
        )
    clients.sort(key=lambda one: (not one.is_used, one.certificate.not_after_ns, one.certificate.fingerprint))
    return made + clients
