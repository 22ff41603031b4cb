"""The gateway's own certificate, and whom it believes: kept as the files on disk say, without a restart.

Laws: every connection is greeted with what is current when it comes; those that are open stay. A context is
made whole or not at all, so no session of an old one can be resumed under a new one. Files that cannot serve
change nothing: what was good goes on, the problem is told once in the log, to the panel and to alert rules.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from observatory.errors import StartupError
from observatory.protocol.certificates import bound_to, read, read_pem
from observatory.protocol.clock import from_ns
from observatory.runtime.metrics import Measure
from observatory.runtime.tls_files import Loaded, Mark, Unusable, load, mark_of
from observatory.settings import Settings

LOOK_S = 1.0
log = logging.getLogger("observatory.tls")


class Tls:
    """Made at start; StartupError when the files cannot serve."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._mark = mark_of(settings)
        try:
            self.loaded: Loaded = load(settings)
        except Unusable as error:
            raise StartupError(f"TLS cannot be served: {error}") from error
        self._tried: Mark | None = None  # what failed when it was last looked at
        self.problem: str | None = None
        self.reloads = self.failures = 0
        self.refused = 0  # handshakes that came to nothing
        self.told: Callable[[Iterable[str]], None] = lambda names: None  # of the hosts of a new certificate
        self.proxies = frozenset(_pinned(one) for one in settings.tls_proxy_certs)

    @property
    def names(self) -> list[str]:
        """Hosts the certificate is for, those with a wildcard left out."""
        return [one[4:] for one in self.loaded.server.names if one.startswith("dns:") and "*" not in one]

    @property
    def own_authority(self) -> str | None:
        """The file in which this folder's own clients find whom to trust: the chain, if it ends in a root."""
        last = read(read_pem(self.loaded.chain_pem)[-1])
        if last.subject != last.issuer:
            return None  # of a known authority, which every system trusts
        return str(Path(self._settings.tls_cert).expanduser().absolute())

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            await self.look()

    async def look(self) -> bool:
        """Whether the files changed and are in force now. A change is believed once it holds still: who
        writes a certificate and then its key is between the two for a moment."""
        mark = await asyncio.to_thread(mark_of, self._settings)
        if mark == self._mark:
            if self.problem is not None:  # put back as it was
                self.problem, self._tried = None, None
            return False
        try:
            loaded = await asyncio.to_thread(load, self._settings)
        except Unusable as error:
            if mark == self._tried and self.problem != str(error):
                self.failures += 1
                self.problem = str(error)
                log.error("the new TLS files cannot be used, the old ones stay in force: %s", error)
            self._tried = mark
            return False
        if await asyncio.to_thread(mark_of, self._settings) != mark:
            return False  # replaced while it was read; the next look sees the rest
        self.loaded, self._mark, self._tried, self.problem = loaded, mark, None, None
        self.reloads += 1
        self.told(self.names)
        ends = from_ns(loaded.server.not_after_ns)
        log.info("the TLS files were replaced: %s, until %s", loaded.server.subject, ends)
        return True

    def measures(self) -> list[Measure]:
        now_ns = time.time_ns()
        left = "observatory_certificate_seconds_left"
        told = "Until the soonest certificate of this use ends; negative once it has"
        ends = {"server": self.loaded.server.not_after_ns}
        if self.loaded.authorities:
            ends["authority"] = min(one.not_after_ns for one in self.loaded.authorities)
        return [
            *(Measure(left, "gauge", told, (at - now_ns) / 1e9, {"use": use}) for use, at in ends.items()),
            Measure("observatory_tls_reloads_total", "counter", "TLS files taken over", self.reloads),
            Measure(
                "observatory_tls_reload_failures_total",
                "counter",
                "TLS files that could not be used",
                self.failures,
            ),
            Measure(
                "observatory_tls_refused_total",
                "counter",
                "Connections that came to no handshake",
                self.refused,
            ),
        ]


def _pinned(text: str) -> str:
    try:
        return bound_to("fingerprint", text).value
    except ValueError as error:
        raise StartupError(f"tls_proxy_certs: {error}") from error
