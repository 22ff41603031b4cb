"""`observatory verify`: it says what held, and names what was bent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.server import Server
from tests.flows.trail.outside import HOME, ROW, bend, lines, refused, verified
from tests.waiting import until

LOG = "UPDATE audit_log SET"
ROWS = ("density", "chain", "record", "leaf", "columns", "payloads", "thoughts", "head")


@pytest.mark.req(324, 450, 459, 460, 498)
def test_verify_says_what_held_of_every_tenant_while_the_gateway_runs(server: Server) -> None:
    """S82."""
    server.send_lines(lines(20))
    until(lambda: server.http().get("/v1/audit/log").json()["size"])
    code, found = verified("--data", str(server.folder))
    assert code == 0 and found["valid"]
    home = next(tenant for tenant in found["tenants"] if tenant["tenant_id"] == "tnt_default")
    log = ("log_root", "signature", "consistency", "missing_tail", "checkpoints")
    assert home["checks"] == dict.fromkeys((*ROWS, *log), True)
    assert home["payloads_checked"] >= 20 and home["events_verified"] == home["to_sequence"]


def test_verify_takes_a_range_a_tenant_and_leaves_payloads_out(data: Path) -> None:
    code, found = verified(
        "--data", str(data), "--tenant", "tnt_default", "--from", "5", "--to", "9", "--no-payloads"
    )
    (tenant,) = found["tenants"]
    assert code == 0 and tenant["events_verified"] == 5
    assert tenant["checks"]["payloads"] is None and tenant["checks"]["head"] is None
    assert "no such tenant" in refused("verify", "--data", str(data), "--tenant", "tnt_none")
    assert "past the head" in refused("verify", "--data", str(data), "--tenant", "tnt_other", "--from", "999")


def test_verify_can_ask_the_gateway(server: Server) -> None:
    code, found = verified("--url", server.url, "--key", server.key("operator"))
    assert code == 0 and found["tenants"][0]["checks"]["chain"] is True


TAIL = f"DELETE FROM audit_log WHERE key = (SELECT max(key) FROM audit_log WHERE key < 2 * {HOME})"


BENT: list[tuple[str, str, int | None, list[str]]] = [
    ("a record", "record", 90, [f"{LOG} record = replace(CAST(record AS TEXT), 'INFO', 'WARN') {ROW}"]),
    ("its leaf", "leaf", 90, [f"{LOG} leaf_hash = zeroblob(32) {ROW}"]),
    ("its severity", "column", 90, [f"{LOG} severity = 17 {ROW}"]),
    ("its sender", "column", 90, [f"{LOG} sender_key = NULL {ROW}"]),
    ("a row is gone", "density", 90, [f"DELETE FROM audit_log {ROW}"]),
    ("the last row is gone", "head", None, [TAIL]),
    (
        "the head",
        "head",
        None,
        ["UPDATE chain_heads SET event_hash = 'sha256:0' WHERE tenant_id = 'tnt_default'"],
    ),
    ("the archived bytes", "payload", 90, [f"UPDATE payloads SET raw = raw || ' ' {ROW}"]),
    ("bytes vanish unordered", "payload", 90, [f"UPDATE payloads SET raw = NULL {ROW}"]),
    ("a message is gone", "payload", 90, [f"DELETE FROM payloads {ROW}", f"DELETE FROM messages {ROW}"]),
]


@pytest.mark.req(324, 457, 458)
@pytest.mark.parametrize(
    ("what", "number", "statements"), [case[1:] for case in BENT], ids=[c[0] for c in BENT]
)
def test_what_was_bent_is_named(data: Path, what: str, number: int | None, statements: list[str]) -> None:
    bend(data, *statements)
    code, found = verified("--data", str(data), "--tenant", "tnt_default")
    broken = found["tenants"][0]["first_break"]
    assert code == 2 and not found["valid"]
    # A changed record is no longer the one in its leaf; which of the two is told first is not the point.
    assert broken["what"] == what or (what, broken["what"]) == ("record", "leaf")
    assert number is None or broken["sequence_number"] == number
    named = {"payload": "payloads", "column": "columns"}.get(what, broken["what"])
    assert found["tenants"][0]["checks"][named] is False
