"""Certificates as facts, and bindings in their one spelling."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from observatory.features.certificates.authority import issue, make_authority
from observatory.features.certificates.inventory import DAY_NS, AgentBinding, inventory, validity_of
from observatory.protocol.certificates import InvalidCertificate, make_binding, read, read_pem

AUTHORITY = make_authority("Unit, authority")


def test_facts_are_read_and_garbage_is_refused_in_words_s866() -> None:
    pair = issue(AUTHORITY, "Ada, the first", "agent", ["urn:x:ada", "Ada.Agents.Example", "10.0.0.7"])
    found = read(pair.der)
    assert found.subject == "CN=Ada\\, the first" and found.issuer == "CN=Unit\\, authority"
    assert found.names == ("uri:urn:x:ada", "dns:ada.agents.example", "ip:10.0.0.7")
    assert found.serial == f"{pair.certificate.serial_number:x}"
    now_ns = int(datetime.now(UTC).timestamp() * 1e9)
    assert found.is_current(now_ns) and not found.is_current(found.not_after_ns + 1)
    assert read_pem(pair.pem + AUTHORITY.pem) == [pair.der, AUTHORITY.der]
    for bad in (b"", b"\x30\x03\x02\x01\x01", pair.der[:-7], b"-" * 99):
        with pytest.raises(InvalidCertificate):
            read(bad)
        with pytest.raises(InvalidCertificate):
            read_pem(bad)


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        ("fingerprint", "SHA256:" + ":".join(["AB"] * 32), "ab" * 32),
        ("dns", "Planner.Agents.Example.", "planner.agents.example"),
        ("uri", " spiffe://example.org/agent/a ", "spiffe://example.org/agent/a"),
        ("subject", "CN=a,O=Example", "CN=a,O=Example"),
    ],
)
def test_a_binding_has_one_spelling_s861(kind: str, given: str, kept: str) -> None:
    assert make_binding(kind, given).value == kept  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("fingerprint", "ab" * 20),
        ("dns", "*.agents.example"),
        ("dns", "a..b"),
        ("uri", "no-scheme"),
        ("uri", "urn:with space"),
        ("subject", "planner"),
        ("subject", ""),
    ],
)
def test_what_is_no_binding_is_refused_s861(kind: str, given: str) -> None:
    with pytest.raises(ValueError, match="a "):
        make_binding(kind, given)  # type: ignore[arg-type]


def test_only_what_is_in_use_can_alarm_s867() -> None:
    """S867: a certificate that was rotated out ends in peace."""
    now = datetime.now(UTC)
    now_ns = int(now.timestamp() * 1e9)

    def row(name: str, days: float) -> dict[str, object]:
        pair = issue(
            AUTHORITY, name, "agent", ["urn:x:ada"], now - timedelta(days=9), now + timedelta(days=days)
        )
        facts = read(pair.der)
        received = {field: getattr(facts, field) for field in facts.__struct_fields__}
        return received | {
            "names": '["uri:urn:x:ada"]',
            "key_ids": "[]",
            "first_seen_ns": 1,
            "last_seen_ns": 2,
        }

    old, new = row("old", -1), row("new", 5)
    speakers = {str(new["fingerprint"]): ["ada"]}
    bound = [AgentBinding("ada", "e", "uri", "urn:x:ada")]
    server = read(AUTHORITY.der)
    found = inventory(server, [server], [old, new], speakers, bound, now_ns, 14)
    assert [(one.use, one.standing, one.is_used) for one in found] == [
        ("server", "current", True),
        ("authority", "current", True),
        ("client", "expiring", True),
        ("client", "expired", False),
    ]
    assert found[2].agents == found[2].bound == ("ada",)
    assert validity_of(server, server.not_before_ns - DAY_NS, 14) == "not_yet"
