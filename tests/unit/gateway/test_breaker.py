"""The circuit of a capability, moved by outcomes and by the clock."""

from typing import Any

import msgspec
import pytest

from observatory.features.registry import circuit_breaker as breaker
from observatory.features.registry.circuit_breaker import LIMITS, SECOND
from observatory.ledger.chain import GENESIS_HASH, ChainHead
from observatory.pipeline.event_writer import EventWriter
from observatory.pipeline.message_event import ServiceInfo
from observatory.pipeline.rows import BreakerRow, TenantRow
from observatory.pipeline.state import BatchState, Principal, TenantConfig, TransactionChanges

TENANT = "tnt_default"
START = 1_000 * SECOND
OPERATOR = Principal(tenant_id=TENANT, role="operator", key_id="key_2", user_id="usr_op")


class Circuit:
    """One capability, a clock to move, and what was told."""

    def __init__(self) -> None:
        self.memory = BatchState(
            TenantRow(tenant_id=TENANT, tenant_no=1), ChainHead(0, GENESIS_HASH), TenantConfig()
        )
        self.now_ns = START
        self.received: list[str] = []

    def _event_writer(self) -> EventWriter:
        return EventWriter(
            ServiceInfo("observatory", "0", "test"), self.memory, TransactionChanges(), self.now_ns
        )

    def _read(self, event_writer: EventWriter) -> None:
        self.received += [
            msgspec.json.decode(row.record)["body"]["event_type"] for row in event_writer.changes.audit
        ]

    def asks(self, number: int = 1) -> bool:
        event_writer = self._event_writer()
        may = breaker.admits("search", event_writer, number)
        self._read(event_writer)
        return may

    def reports(self, *statuses: str) -> None:
        event_writer = self._event_writer()
        for status in statuses:
            breaker.count_outcome(("search", "other"), status, event_writer)
        self._read(event_writer)

    def force(self, state: Any) -> None:
        verdict = breaker.force_state(OPERATOR, "search", state, self.now_ns).decide(self._event_writer())
        self.received += [event.event_type for event in verdict.events]

    def passes(self, seconds: float) -> None:
        self.now_ns += int(seconds * SECOND)

    @property
    def row(self) -> BreakerRow:
        return self.memory.breakers["search"]

    @property
    def state(self) -> str:
        return self.row.state


@pytest.fixture
def circuit() -> Circuit:
    made = Circuit()
    assert made.asks()
    return made


def test_a_capability_nobody_asked_for_has_no_circuit_and_its_outcomes_cost_nothing() -> None:
    """S140"""
    untouched = Circuit()
    untouched.reports(*["failure"] * 50)
    assert untouched.memory.breakers == {} and untouched.received == []


def test_the_first_to_ask_makes_the_circuit_and_the_rulebook_names_it(circuit: Circuit) -> None:
    """S140: so that another gateway, whose rulebook is older, reads it."""
    assert circuit.state == "closed"
    assert circuit.memory.tenant_config.breakers == {"search"} and circuit.memory.tenant.rulebook_version == 1


@pytest.mark.parametrize(
    ("statuses", "state"),
    [
        (["failure"] * 9, "closed"),  # too few to tell
        (["failure"] * 10, "open"),
        (["success"] * 6 + ["failure"] * 5, "closed"),
        (["success"] * 5 + ["failure"] * 5, "open"),
        (["skipped", "pending"] * 20, "closed"),  # no outcomes
    ],
)
def test_it_opens_when_enough_of_a_window_failed(circuit: Circuit, statuses: list[str], state: str) -> None:
    """S140"""
    circuit.reports(*statuses)
    assert circuit.state == state
    assert circuit.received == (["breaker_opened"] if state == "open" else [])


def test_outcomes_of_the_window_before_are_forgotten(circuit: Circuit) -> None:
    """S140"""
    circuit.reports(*["failure"] * 9)
    circuit.passes(LIMITS.window_ns / SECOND)
    circuit.reports("failure")
    assert (circuit.state, circuit.row.failures) == ("closed", 1)


def test_open_lets_nothing_pass_then_one_probe_whose_outcome_decides(circuit: Circuit) -> None:
    """S141"""
    circuit.reports(*["failure"] * 10)
    assert not circuit.asks()
    circuit.passes(LIMITS.open_ns / SECOND)
    assert circuit.asks(number=8) and circuit.row.probe_seq == 8
    assert not circuit.asks() and circuit.state == "half_open"
    circuit.reports("failure")
    assert circuit.state == "open" and not circuit.asks()
    circuit.passes(LIMITS.open_ns / SECOND)
    assert circuit.asks()
    circuit.reports("success")
    assert circuit.state == "closed" and circuit.asks() and circuit.row.failures == 0
    received = [
        "breaker_opened",
        "breaker_half_opened",
        "breaker_opened",
        "breaker_half_opened",
        "breaker_closed",
    ]
    assert circuit.received == received


def test_a_probe_nobody_answers_is_followed_by_another(circuit: Circuit) -> None:
    """S141"""
    circuit.reports(*["failure"] * 10)
    circuit.passes(LIMITS.open_ns / SECOND)
    assert circuit.asks()
    circuit.passes(LIMITS.open_ns / SECOND)
    assert circuit.asks(number=9) and circuit.row.probe_seq == 9
    assert circuit.received.count("breaker_half_opened") == 1


def test_opened_by_hand_it_stays_open_until_it_is_closed_by_hand(circuit: Circuit) -> None:
    """S141"""
    circuit.force("open")
    assert circuit.row.forced_by == "usr_op"
    circuit.passes(10 * LIMITS.open_ns / SECOND)
    circuit.reports(*["success"] * 20)
    assert not circuit.asks() and circuit.state == "open"
    circuit.force("closed")
    assert circuit.asks() and circuit.row.forced_by is None
    assert circuit.received == ["breaker_opened", "breaker_closed"]
