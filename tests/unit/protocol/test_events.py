"""One table of severities, on OTel's scale."""

import msgspec
import pytest

from observatory.protocol.events import (
    SEVERITY,
    EntropyAlertEvent,
    RepeatedPattern,
    SchemaViolationEvent,
    alert_severity,
    severity_text,
)


@pytest.mark.parametrize(
    ("event", "number", "text"),
    [
        ("heartbeat", 5, "DEBUG"),
        ("message_delivered", 9, "INFO"),
        ("message_read", 9, "INFO"),
        ("agent_connected", 9, "INFO"),
        ("agent_disconnected", 9, "INFO"),
        ("decision_made", 10, "INFO"),
        ("policy_evaluated", 10, "INFO"),
        ("action_executed", 10, "INFO"),
        ("error", 17, "ERROR"),
        ("security_violation", 21, "FATAL"),
        ("schema_violation", 13, "WARN"),
    ],
)
def test_the_seeds_severities_stand(event: str, number: int, text: str) -> None:
    assert SEVERITY[event] == number
    assert severity_text(number) == text


def test_every_number_has_a_name_and_no_other_has() -> None:
    names = [severity_text(number) for number in range(1, 25)]
    assert names == [name for name in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL") for _ in range(4)]
    for number in (0, 25):
        with pytest.raises(ValueError):
            severity_text(number)


def test_an_alerts_severity_follows_its_own_word() -> None:
    assert [alert_severity(word) for word in ("info", "warning", "error", "critical")] == [9, 13, 17, 21]


def test_events_carry_the_seeds_keys() -> None:
    violation = SchemaViolationEvent(
        agent_id="a", capability_version="1.0.0", violation_reason="r", raw_payload_hash="sha256:0"
    )
    assert set(msgspec.to_builtins(violation)) == {
        "event_type",
        "agent_id",
        "capability_version",
        "violation_reason",
        "raw_payload_hash",
    }
    pattern = RepeatedPattern(intent="i", tool_call="t", action_status="failure")
    alert = EntropyAlertEvent(
        session_id="s",
        agent_id="a",
        entropy_score=0.2,
        window_size=5,
        repeated_pattern=pattern,
        occurrence_count=5,
    )
    assert set(msgspec.to_builtins(alert)) >= {
        "event_type",
        "session_id",
        "agent_id",
        "entropy_score",
        "window_size",
        "repeated_pattern",
        "occurrence_count",
    }
