"""A real mail server on a free port of this machine, in a thread: keeps what is delivered."""

from __future__ import annotations

import asyncio
import threading
from email import message_from_bytes, policy
from email.message import EmailMessage

from aiosmtpd.smtp import SMTP, Envelope, Session


class Mailbox:
    """Refuses whom it is told to, and answers a letter as it is told."""

    def __init__(self) -> None:
        self.got: list[Envelope] = []
        self.refused: set[str] = set()
        self.answer = "250 OK"
        self.port = 0
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(ready,))
        self._thread.start()
        ready.wait()

    def _serve(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        making = self._loop.create_server(lambda: SMTP(self, loop=self._loop), "127.0.0.1", 0)
        server = self._loop.run_until_complete(making)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(server.wait_closed())
        self._loop.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def handle_RCPT(  # noqa: N802 - the library's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refused:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.answer.startswith("250"):
            self.got.append(envelope)
        return self.answer

    @property
    def letters(self) -> list[EmailMessage]:
        found = []
        for envelope in self.got:
            assert envelope.original_content is not None
            letter = message_from_bytes(envelope.original_content, policy=policy.default)
            assert isinstance(letter, EmailMessage)
            found.append(letter)
        return found
