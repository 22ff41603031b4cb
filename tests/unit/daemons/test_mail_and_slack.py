"""The two channels people read: real receivers on this machine, hostile names in every place."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from observatory.errors import StartupError
from observatory.features.webhooks.email import EmailTransport, recipients, server_of
from observatory.features.webhooks.event_text import event_text
from observatory.features.webhooks.slack import SlackTransport, render
from observatory.features.webhooks.worker import DeliveryOutcome
from observatory.runtime.outbound_http import OutboundHttp
from tests.mailbox import Mailbox

Row = dict[str, Any]
CLEAR = "?starttls=never"
HOSTILE = "<!channel> @here <@U123> & [click](https://evil.example)\r\nBcc: x@evil.example\u202e"


def event(**body: Any) -> Row:
    said: Row = {
        "event_type": "alert_raised",
        "summary": "Agent is silent: agent writer: 90 s, told from 60 on",
        "subject": "agent:writer",
        "condition": "silence",
        "severity": "critical",
        "value": "90",
        "threshold": "60",
        "link": "http://127.0.0.1:4800/fleet?peek=agent:writer",
        "test": False,
    }
    return {
        "timestamp": "2026-11-16T12:00:00.000000000Z",
        "severity_text": "FATAL",
        "body": said | body,
        "hash_chain": {"sequence_number": 7},
    }


def test_what_an_agent_hides_in_its_name_is_named_to_those_who_decide() -> None:
    """S1112: of a name that is written backwards, and of one with letters of another alphabet."""
    words = event_text(event(summary="pay bob\u202e1234\nnow", agent_id="p\u0430ypal", subject="a\u200bb"))
    assert words.title == "[CRITICAL] pay bob⟨U+202E⟩1234 now"
    assert ("Agent", "p\u0430ypal⟨Latin+Cyrillic⟩") in words.lines and (
        "Subject",
        "a⟨U+200B⟩b",
    ) in words.lines


# Slack


class Receiver:
    """An incoming webhook that keeps what it is sent and answers as it is told."""

    def __init__(self) -> None:
        self.bodies: list[Row] = []
        self.code, self.headers = 200, dict[str, str]()
        kept = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                kept.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(kept.code)
                for name, value in kept.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_: Any) -> None: ...

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/services/T0/B0/secret"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.stop()


def to_slack(receiver: Receiver, what: Row, allow: tuple[str, ...] = ("127.0.0.1",)) -> DeliveryOutcome:
    slack = SlackTransport(OutboundHttp(allow))
    return asyncio.run(slack.send({"url": receiver.url}, "whd_1", what, b"", 0))


def test_slack_is_told_in_words_with_one_link_of_ours_s555(receiver: Receiver) -> None:
    """S555: text and blocks say the same; how it was taken is told."""
    assert to_slack(receiver, event()) == DeliveryOutcome(
        True, 200, "the receiver returned 200", excerpt="ok"
    )
    (body,) = receiver.bodies
    assert body["text"].startswith("*[CRITICAL] Agent is silent: agent writer: 90 s, told from 60 on*")
    assert "Value: 90" in body["text"] and "Record: event 7" in body["text"]
    assert body["text"].count("http") == 1
    assert "<http://127.0.0.1:4800/fleet?peek=agent:writer|Open in the Observatory>" in body["text"]
    assert {part["type"] for part in body["blocks"]} == {"section"}
    test = event_text(event(test=True)).title
    assert test.startswith("[TEST CRITICAL]")
    assert event_text(event(event_type="alert_resolved")).title.startswith("[RESOLVED]")


def test_nothing_in_a_name_mentions_anybody_or_becomes_a_link_s555() -> None:
    """S555: neither by Slack's signs nor by Markdown's, in any place a name can stand."""
    for place in ("summary", "subject", "agent_id", "session_id", "value"):
        body = json.loads(render(event(**{place: HOSTILE})))
        text = body["text"].replace("<http://127.0.0.1:4800/fleet?peek=agent:writer|Open", "")
        assert "&lt;!channel&gt;" in text and "&amp;" in text
        for sign in ("<!", "<@", "@here", "@U", "](http", "://", "\r", "\u202e"):
            assert sign not in text, (place, sign)
        assert "Bcc" not in [line.partition(":")[0] for line in text.splitlines()], "one line stays one line"
        received = [part for part in body["blocks"] if "evil" in json.dumps(part)]
        assert received and "mrkdwn" not in json.dumps(received), "blocks hold names as plain text"
    long = json.loads(render(event(subject="x" * 100_000)))
    assert len(json.dumps(long)) < 4_000


CODES: list[tuple[int, dict[str, str], Row]] = [
    (302, {"location": "http://169.254.169.254/"}, {"ok": False, "code": 302, "gone": False}),
    (404, {}, {"ok": False, "code": 404, "gone": False}),
    (410, {}, {"ok": False, "code": 410, "gone": True}),
    (429, {"retry-after": "30"}, {"ok": False, "code": 429, "retry_after_s": 30}),
    (500, {}, {"ok": False, "code": 500, "retry_after_s": None}),
]


@pytest.mark.parametrize(("code", "headers", "outcome"), CODES)
def test_how_slack_took_it_s555(receiver: Receiver, code: int, headers: dict[str, str], outcome: Row) -> None:
    """S555: a redirect is a failure, 410 means gone, Retry-After is heard; the URL is in no sentence."""
    receiver.code, receiver.headers = code, headers
    found = to_slack(receiver, event())
    assert found._asdict() | outcome == found._asdict()
    assert "secret" not in found.detail


def test_a_private_address_is_not_asked_s555(receiver: Receiver) -> None:
    """S555: unless the operator of the gateway lists it."""
    found = to_slack(receiver, event(), allow=())
    assert not found.ok and found.code is None and not receiver.bodies


# E-mail


@pytest.fixture(scope="module")
def post_office() -> Iterator[Mailbox]:
    made = Mailbox()
    yield made
    made.stop()


@pytest.fixture
def mailbox(post_office: Mailbox) -> Mailbox:
    post_office.got, post_office.refused, post_office.answer = [], set(), "250 OK"
    return post_office


def mail(port: int, what: Row, to: str = "mailto:ops@example.com", options: str = CLEAR) -> DeliveryOutcome:
    made = EmailTransport(f"smtp://127.0.0.1:{port}{options}", "observatory@example.com")
    return asyncio.run(made.send({"url": to}, "whd_1", what, b"", 0))


def test_mail_arrives_as_one_plain_letter_s556(mailbox: Mailbox) -> None:
    """S556: a real server takes it; its id is that of the delivery, the same with every try."""
    for _ in range(2):
        assert mail(mailbox.port, event(), "mailto:ops@example.com,lead@example.com").ok
    assert [one.rcpt_tos for one in mailbox.got] == [["ops@example.com", "lead@example.com"]] * 2
    letter = mailbox.letters[-1]
    assert letter["From"] == "observatory@example.com" and letter["To"] == "ops@example.com, lead@example.com"
    assert letter["Subject"] == "[CRITICAL] Agent is silent: agent writer: 90 s, told from 60 on"
    assert letter["Message-ID"] == "<whd_1@observatory.invalid>" and letter["Auto-Submitted"]
    assert letter["Date"] == "Mon, 16 Nov 2026 12:00:00 +0000"
    text = letter.get_content()
    assert "Threshold: 60" in text and text.rstrip().endswith("/fleet?peek=agent:writer")


def test_no_name_injects_a_header_or_ends_a_letter_s556(mailbox: Mailbox) -> None:
    """S556: line ends, dots and other letters in every place a name can stand."""
    hostile = "x\r\nBcc: evil@example.com\r\n\r\n.\r\nMAIL FROM:<evil@example.com>\r\n=?utf-8?q?é?= \u2028ü"
    for place in ("summary", "subject", "agent_id"):
        assert mail(mailbox.port, event(**{place: hostile})).ok
        letter = mailbox.letters[-1]
        assert letter["Bcc"] is None and letter.get_content_type() == "text/plain"
        assert [name for name, _ in letter.items()] == [
            "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted",
            "Content-Type", "Content-Transfer-Encoding", "MIME-Version",
        ]  # fmt: skip
        assert "ü" in letter.get_content()
    assert len(mailbox.got) == 3 and all(one.mail_from == "observatory@example.com" for one in mailbox.got)


def test_how_the_server_took_it_s556(mailbox: Mailbox) -> None:
    """S556: refused by all is a failure; by some it is not, or the others would get it twice."""
    port, both = mailbox.port, "mailto:gone@example.com,ops@example.com"
    mailbox.refused = {"gone@example.com"}
    found = mail(port, event(), both)
    assert found.ok and "1 of 2 recipients" in found.detail
    mailbox.refused = {"gone@example.com", "ops@example.com"}
    assert mail(port, event(), both)[:2] == (False, 550)
    mailbox.refused, mailbox.answer = set(), "452 swordfish full"
    found = mail(port, event())
    assert found[:3] == (False, 452, "the mail server answered 452")
    found = mail(port, event(), options="")
    assert not found.ok and "no encryption" in found.detail, "nothing goes in the clear unless one says so"
    assert not mail(1, event()).ok
    assert len(mailbox.got) == 1


def test_who_is_meant_by_mailto_s556() -> None:
    """S556: 1 to 20 plain addresses and nothing else."""
    assert recipients("mailto:a.b+c@x.example,d@localhost") == ("a.b+c@x.example", "d@localhost")
    bad = ["", "mailto:", "https://x", "mailto:a", "mailto:a@", "mailto:a@b?cc=c@d", "mailto:a@b%0d%0aB:c@d"]
    bad += ["mailto:a@b\r\nRCPT TO:<c@d>", "mailto:<a@b>", "mailto:a@b c@d", "mailto:é@b", "mailto:a@-b"]
    for url in (*bad, "mailto:" + ",".join(f"a{n}@b" for n in range(21)), f"mailto:{'a' * 250}@b.example"):
        with pytest.raises(ValueError, match="an e-mail endpoint is"):
            recipients(url)
    outcome = asyncio.run(EmailTransport("", "").send({"url": "mailto:a@b"}, "whd_1", event(), b"", 0))
    assert not outcome.ok and "smtp_url" in outcome.detail


def test_a_setting_that_would_leak_or_not_work_is_refused_at_start_s557() -> None:
    """S557: with a sentence that quotes nothing of it."""
    assert server_of("smtp://mail.example")[:2] == ("mail.example", 587)
    assert server_of("smtps://u%40x:p%3Aw@mail.example") == ("mail.example", 465, "u@x", "p:w", True, False)
    assert server_of("smtp://u:p@mail.example:25").starttls
    bad = ("mail.example", "http://swordfish@x", "smtp://", "smtp://u:swordfish@x?starttls=never")
    for url in (*bad, "smtp://x:swordfish", "smtp://x?starttls=perhaps", "smtp://x?verify=swordfish"):
        with pytest.raises(StartupError) as refused:
            EmailTransport(url, "ops@example.com")
        assert "swordfish" not in str(refused.value) and "smtp_url" in str(refused.value)
    with pytest.raises(StartupError, match="smtp_from"):
        EmailTransport("smtp://mail.example", "Ops\r\nBcc: x@y")
