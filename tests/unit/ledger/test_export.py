"""The file form of a trail: what is left out is left out of every kind of line."""

from __future__ import annotations

from observatory.ledger.export import ExportedMessage, ExportEntry, line_of, without_payloads


def test_without_payloads_nothing_that_anybody_wrote_is_in_a_line_s703() -> None:
    """S703: neither an agent's message, nor what a person put in its place, nor a thought."""
    message = ExportedMessage(
        message_id="msg_1",
        session_id="s",
        step_id="s/1",
        message_type="text",
        state="held",
        raw=b"secret of an agent",
    )
    page = [
        ExportEntry(1, b"{}", b"", message),
        ExportEntry(2, b"{}", b"", rewritten=b"secret of a person"),
        ExportEntry(3, b"{}", b"", words=b"secret of a thought"),
    ]
    assert all(b"secret" in line_of(entry) for entry in page)
    assert not any(b"secret" in line_of(entry) for entry in without_payloads(page))
