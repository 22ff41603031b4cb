"""The gateway's TLS certificate and trusted authorities, reloaded from disk without a restart.

Laws: every handshake uses the context that is current when it begins; open connections stay. A context is
built completely or not at all, so no session of an old one can be resumed under a new one. Unusable files
change nothing: the old ones stay in force, the problem is logged once and shown in the panel and to alert
rules.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from observatory.errors import StartupError
from observatory.protocol.certificates import make_binding, read, read_pem
from observatory.protocol.clock import from_ns
from observatory.runtime.metrics import Measure
from observatory.runtime.tls_files import (
    FilesFingerprint,
    TlsFiles,
    UnusableTlsFiles,
    files_fingerprint,
    load,
)
from observatory.settings import Settings

POLL_S = 1.0
log = logging.getLogger("observatory.tls")


class Tls:
    """Created at start; StartupError when the files cannot be used."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._mark = files_fingerprint(settings)
        try:
            self.loaded: TlsFiles = load(settings)
        except UnusableTlsFiles as error:
            raise StartupError(f"TLS cannot be served: {error}") from error
        self._tried: FilesFingerprint | None = None  # what failed at the last check
        self.problem: str | None = None
        self.reloads = self.failures = 0
        self.refused = 0  # failed handshakes
        self.on_reload: Callable[[Iterable[str]], None] = lambda names: (
            None
        )  # called with the hosts of a new certificate
        self.proxies = frozenset(_pinned(one) for one in settings.tls_proxy_certs)

    @property
    def names(self) -> list[str]:
        """Hosts the certificate is for, without wildcards."""
        return [one[4:] for one in self.loaded.server.names if one.startswith("dns:") and "*" not in one]

    @property
    def own_authority(self) -> str | None:
        """The CA file for this folder's own clients: the chain, if it ends in a root."""
        last = read(read_pem(self.loaded.chain_pem)[-1])
        if last.subject != last.issuer:
            return None  # issued by a public authority, which every system trusts
        return str(Path(self._settings.tls_cert).expanduser().absolute())

    async def run(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            await self.look()

    async def look(self) -> bool:
        """Whether the files changed and are in force now. A change is used once it is stable: writing
        a certificate and then its key leaves a moment between the two."""
        mark = await asyncio.to_thread(files_fingerprint, self._settings)
        if mark == self._mark:
            if self.problem is not None:  # the old files were put back
                self.problem, self._tried = None, None
            return False
        try:
            loaded = await asyncio.to_thread(load, self._settings)
        except UnusableTlsFiles as error:
            if mark == self._tried and self.problem != str(error):
                self.failures += 1
                self.problem = str(error)
                log.error("the new TLS files cannot be used, the old ones stay in force: %s", error)
            self._tried = mark
            return False
        if await asyncio.to_thread(files_fingerprint, self._settings) != mark:
            return False  # replaced while it was read; the next check reads the rest
        self.loaded, self._mark, self._tried, self.problem = loaded, mark, None, None
        self.reloads += 1
        self.on_reload(self.names)
        ends = from_ns(loaded.server.not_after_ns)
        log.info("the TLS files were replaced: %s, until %s", loaded.server.subject, ends)
        return True

    def measures(self) -> list[Measure]:
        now_ns = time.time_ns()
        left = "observatory_certificate_seconds_left"
        text = "Seconds until the earliest expiry of this use; negative once expired"
        ends = {"server": self.loaded.server.not_after_ns}
        if self.loaded.authorities:
            ends["authority"] = min(one.not_after_ns for one in self.loaded.authorities)
        return [
            *(Measure(left, "gauge", text, (at - now_ns) / 1e9, {"use": use}) for use, at in ends.items()),
            Measure("observatory_tls_reloads_total", "counter", "Reloads of the TLS files", self.reloads),
            Measure(
                "observatory_tls_reload_failures_total",
                "counter",
                "Reloads that failed: the files could not be used",
                self.failures,
            ),
            Measure(
                "observatory_tls_refused_total",
                "counter",
                "Connections without a successful handshake",
                self.refused,
            ),
        ]


def _pinned(text: str) -> str:
    try:
        return make_binding("fingerprint", text).value
    except ValueError as error:
        raise StartupError(f"tls_proxy_certs: {error}") from error
