"""The certificate inventory: what is configured, what was presented, which agents use which, and its
validity.

Pure. An agent uses the certificate it last connected with; its binding may name another one. Only
certificates in use raise alerts: the gateway's own, client authorities, and those agents use or are bound to
by fingerprint. A rotated-out certificate may expire silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from observatory.protocol.certificates import Certificate

Use = Literal["server", "authority", "client"]
CertificateValidity = Literal["current", "expiring", "expired", "not_yet"]
DAY_NS: Final = 86_400_000_000_000
Row = Mapping[str, Any]


class InventoryEntry(NamedTuple):
    use: Use
    certificate: Certificate
    standing: CertificateValidity
    agents: tuple[str, ...] = ()  # that last connected with it
    bound: tuple[str, ...] = ()  # that are bound to it by name or fingerprint
    key_ids: tuple[str, ...] = ()
    first_seen_ns: int | None = None
    last_seen_ns: int | None = None

    @property
    def is_used(self) -> bool:
        return self.use != "client" or bool(self.agents) or bool(self.bound)


class AgentBinding(NamedTuple):
    """An agent's binding, from its row."""

    agent_id: str
    entity_id: str
    kind: str
    value: str


def validity_of(certificate: Certificate, now_ns: int, days: int) -> CertificateValidity:
    if certificate.not_after_ns < now_ns:
        return "expired"
    if certificate.not_before_ns > now_ns:
        return "not_yet"
    return "expiring" if certificate.not_after_ns - now_ns < days * DAY_NS else "current"


def days_left(certificate: Certificate, now_ns: int) -> int:
    """Whole days; negative once it has expired."""
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


def bindings_of(rows: Iterable[Row]) -> list[AgentBinding]:
    return [
        AgentBinding(row["agent_id"], row["entity_id"], row["kind"], row["value"])
        for row in rows
        if row["removed_ns"] is None
    ]


def binding_matches(bound: AgentBinding, certificate: Certificate) -> bool:
    """Whether this binding names this certificate, whatever its validity."""
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
    bound: Sequence[AgentBinding],
    now_ns: int,
    days: int,
) -> list[InventoryEntry]:
    """The gateway's own first, then client authorities, then clients' certificates, earliest expiry first.

    `speakers`: fingerprint -> agents that last connected with it.
    """
    made: list[InventoryEntry] = []
    if server is not None:
        made.append(InventoryEntry("server", server, validity_of(server, now_ns, days)))
    made += [InventoryEntry("authority", one, validity_of(one, now_ns, days)) for one in authorities]
    clients: list[InventoryEntry] = []
    for row in shown:
        facts = certificate_of(row)
        agents = tuple(speakers.get(facts.fingerprint, ()))
        bound_agents = tuple(
            one.agent_id
            for one in bound
            # A binding by name covers every certificate of that name; only those in use matter.
            if binding_matches(one, facts) and (one.kind == "fingerprint" or one.agent_id in agents)
        )
        clients.append(
            InventoryEntry(
                "client",
                facts,
                validity_of(facts, now_ns, days),
                agents,
                bound_agents,
                tuple(msgspec.json.decode(row["key_ids"], type=list[str])),
                row["first_seen_ns"],
                row["last_seen_ns"],
            )
        )
    clients.sort(key=lambda one: (not one.is_used, one.certificate.not_after_ns, one.certificate.fingerprint))
    return made + clients
