"""E-mail channel: sends an event as a plain-text message through one SMTP server.

Invariants: the server is the operator's, from settings; users only name recipients. The connection is
encrypted unless the settings say `starttls=never`, and no password is sent over an unencrypted one. No header
can be injected: every value is one printable line, and addresses are ASCII of one strict form. The message id
is that of the delivery, so a mailbox that gets it twice can deduplicate. The server's responses are never
quoted.
"""

from __future__ import annotations

import asyncio
import re
import smtplib
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from observatory.errors import StartupError
from observatory.features.webhooks.event_text import clean_line, event_text
from observatory.features.webhooks.worker import DeliveryOutcome

CONNECT_S = 10.0  # for each response of the server
WHOLE_S = 45.0
MAX_PARALLEL = 2
MAX_RECIPIENTS = 20
ADDRESS = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
)
Row = dict[str, Any]


class SmtpServer(NamedTuple):
    host: str
    port: int
    user: str
    password: str
    tls: bool  # from the first byte
    starttls: bool


def is_address(text: str) -> bool:
    return len(text) <= 254 and ADDRESS.fullmatch(text) is not None


def recipients(url: str) -> tuple[str, ...]:
    """The addresses of `mailto:a@b,c@d`; ValueError with a message when it is not of that form."""
    scheme, _, rest = url.partition(":")
    found = tuple(part.strip() for part in rest.split(",")) if scheme.lower() == "mailto" else ()
    if not 1 <= len(found) <= MAX_RECIPIENTS or not all(map(is_address, found)):
        raise ValueError(
            f"an e-mail endpoint is mailto: and 1 to {MAX_RECIPIENTS} comma-separated addresses, such as "
            "mailto:ops@example.com"
        )
    return found


def server_of(url: str) -> SmtpServer:
    """Parse the setting `smtp_url`. No error quotes it: it may contain a password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
    except ValueError:
        raise StartupError("the setting smtp_url is not a URL") from None
    starttls = options.pop("starttls", "required")
    if parts.scheme not in ("smtp", "smtps") or not host or options or starttls not in ("required", "never"):
        raise StartupError(
            "the setting smtp_url must be smtp://USER:PASSWORD@HOST:PORT or smtps://…; the only option is "
            "?starttls=never, for a server without encryption"
        )
    tls = parts.scheme == "smtps"
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if user and not tls and starttls == "never":
        raise StartupError("the setting smtp_url would send a password without encryption")
    return SmtpServer(
        host, port or (465 if tls else 587), user, password, tls, not tls and starttls == "required"
    )


def compose(event: Mapping[str, Any], delivery_id: str, sender: str, to: tuple[str, ...]) -> EmailMessage:
    text = event_text(event)
    message = EmailMessage(policy=SMTP)
    message["From"] = sender
    message["To"] = ", ".join(to)
    message["Subject"] = clean_line(text.title)
    message["Date"] = format_datetime(datetime.fromisoformat(event["timestamp"][:19]).replace(tzinfo=UTC))
    message["Message-ID"] = f"<{delivery_id}@observatory.invalid>"
    message["Auto-Submitted"] = "auto-generated"
    lines = [text.title, "", *(f"{label}: {value}" for label, value in text.lines)]
    if text.link is not None:
        lines += ["", text.link]
    message.set_content("\n".join(lines) + "\n")
    return message


class EmailTransport:
    """The transport of endpoints of kind `email`."""

    def __init__(self, smtp_url: str, smtp_from: str) -> None:
        self._server = server_of(smtp_url) if smtp_url else None
        if smtp_url and not is_address(smtp_from):
            raise StartupError("the setting smtp_from must be the sender address, such as ops@example.com")
        self._from = smtp_from
        self._threads = ThreadPoolExecutor(MAX_PARALLEL, thread_name_prefix="mail")

    @property
    def is_set(self) -> bool:
        return self._server is not None

    async def send(
        self, endpoint: Row, delivery_id: str, event: Mapping[str, Any], body: bytes, now_ns: int
    ) -> DeliveryOutcome:
        if self._server is None:
            return DeliveryOutcome(False, detail="no mail server is configured; set smtp_url and smtp_from")
        try:
            to = recipients(endpoint["url"])
        except ValueError as error:
            return DeliveryOutcome(False, detail=str(error))
        message = compose(event, delivery_id, self._from, to)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(WHOLE_S):
                return await loop.run_in_executor(self._threads, _send, self._server, message, self._from, to)
        except TimeoutError:
            return DeliveryOutcome(False, detail="the mail server timed out")


def _send(server: SmtpServer, message: EmailMessage, sender: str, to: tuple[str, ...]) -> DeliveryOutcome:
    try:
        with _connected(server) as smtp:
            if server.user:
                smtp.login(server.user, server.password)
            refused = smtp.send_message(message, sender, list(to))
    except smtplib.SMTPRecipientsRefused as error:
        code = next(iter(error.recipients.values()))[0]
        return DeliveryOutcome(False, code, f"the mail server refused every recipient ({code})")
    except smtplib.SMTPAuthenticationError as error:
        return DeliveryOutcome(False, error.smtp_code, "the mail server rejected the user or password")
    except smtplib.SMTPResponseException as error:
        return DeliveryOutcome(False, error.smtp_code, f"the mail server answered {error.smtp_code}")
    except ssl.SSLError:
        return DeliveryOutcome(False, detail="the encrypted connection to the mail server failed")
    except smtplib.SMTPNotSupportedError:
        return DeliveryOutcome(
            False, detail="the mail server offers no encryption; ?starttls=never allows that"
        )
    except TimeoutError:
        return DeliveryOutcome(False, detail="the mail server timed out")
    except (smtplib.SMTPException, OSError, UnicodeError):
        return DeliveryOutcome(False, detail="the mail server cannot be reached")
    if refused:  # the others have it: a retry would send it to them twice
        return DeliveryOutcome(
            True, 250, f"accepted, but {len(refused)} of {len(to)} recipients were refused"
        )
    return DeliveryOutcome(True, 250, "accepted")


def _connected(server: SmtpServer) -> smtplib.SMTP:
    if server.tls:
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(server.host, server.port, timeout=CONNECT_S, context=context)
    smtp = smtplib.SMTP(server.host, server.port, timeout=CONNECT_S)
    if server.starttls:
        try:
            smtp.starttls(context=ssl.create_default_context())
        except BaseException:
            smtp.close()
            raise
    return smtp
