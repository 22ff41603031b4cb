"""The seed's severity table, number by number; and every event of ours on OTel's scale."""

import pytest

from observatory.protocol.events import SEVERITY, alert_severity, severity_text

# Copied from the seed: event type, SeverityText, SeverityNumber.
SEED = [
    ("heartbeat", "DEBUG", 5),
    ("message_delivered", "INFO", 9),
    ("message_read", "INFO", 9),
    ("agent_connected", "INFO", 9),
    ("agent_disconnected", "INFO", 9),
    ("decision_made", "INFO", 10),
    ("policy_evaluated", "INFO", 10),
    ("action_executed", "INFO", 10),
    ("error", "ERROR", 17),
    ("security_violation", "FATAL", 21),
]


@pytest.mark.req(*range(440, 450))
@pytest.mark.parametrize(("event_type", "text", "number"), SEED)
def test_the_seeds_table_is_kept_s46(event_type: str, text: str, number: int) -> None:
    """S46."""
    assert (SEVERITY[event_type], severity_text(SEVERITY[event_type])) == (number, text)


@pytest.mark.req(435, 436)
def test_every_event_of_ours_lies_on_the_otel_scale_s46() -> None:
    """S46: and has one of the five names the seed uses."""
    assert {severity_text(number) for number in SEVERITY.values()} <= {
        *("DEBUG", "INFO", "WARN", "ERROR", "FATAL")
    }
    assert all(1 <= number <= 24 for number in SEVERITY.values())
    for outside in (0, 25, -1):
        with pytest.raises(ValueError):
            severity_text(outside)


@pytest.mark.req(367)
def test_an_alert_takes_its_own_severity_s46() -> None:
    """S46, ruling 9."""
    levels = ("info", "warning", "error", "critical")
    assert [alert_severity(level) for level in levels] == [9, 13, 17, 21]
