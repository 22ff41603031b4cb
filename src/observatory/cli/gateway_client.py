"""The terminal's HTTP client: which gateway a command uses, with which key, and its errors as sentences.

Order: --url and --key; the folder given by --data; OBSERVATORY_URL and OBSERVATORY_KEY; the configured
folder. A key from a folder's credentials is sent only to that folder's own gateway.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import httpx2
import msgspec
from cyclopts import Parameter

from observatory import settings as settings_module
from observatory.cli.terminal import CommandFailed
from observatory.sdk.client import tls, tls_error_text
from observatory.sdk.credentials import Trust, find_trust

TIMEOUT = httpx2.Timeout(60, connect=3)
LOCAL = tuple(f"{s}://{h}:" for s in ("http", "https") for h in ("127.0.0.1", "localhost", "[::1]"))
ROLE_WITH = {
    "read": "a viewer's",
    "verify": "an auditor's or an operator's",
    "export": "an auditor's",
    "approve": "an approver's or an operator's",
    "operate": "an operator's",
    "send": "an agent's",
}


@Parameter(name="*")
@dataclass(frozen=True)
class GatewayOptions:
    """Which gateway to use."""

    data: Annotated[str | None, Parameter(help="Folder whose credentials.json is used.")] = None
    url: Annotated[str | None, Parameter(help="The gateway's address, e.g. http://127.0.0.1:4800.")] = None
    key: Annotated[str | None, Parameter(help="An API key (obs_…); better in OBSERVATORY_KEY.")] = None
    ca: Annotated[str | None, Parameter(help="PEM of the authority of its certificate; OBSERVATORY_CA.")] = (
        None
    )
    cert: Annotated[str | None, Parameter(help="PEM of the certificate to show; OBSERVATORY_CERT.")] = None
    cert_key: Annotated[str | None, Parameter(help="PEM of its key; OBSERVATORY_CERT_KEY.")] = None


ANY = GatewayOptions()


def folder_of(data: str | None) -> Path:
    return settings_module.load({"data": data}).folder


def read_credentials(folder: Path) -> dict[str, str] | None:
    try:
        found = msgspec.json.decode((folder / "credentials.json").read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandFailed(
            f"{folder / 'credentials.json'} cannot be read ({error.strerror}); run as its owner"
        ) from None
    except msgspec.MsgspecError:
        raise CommandFailed(_damaged(folder)) from None
    if not _is_address(found.get("url", "")):
        raise CommandFailed(_damaged(folder))
    return found


def _damaged(folder: Path) -> str:
    return f"{folder / 'credentials.json'} is damaged; remove it and start `observatory serve` for new keys"


def find(gateway: GatewayOptions, role: str = "admin") -> tuple[str, str]:
    """(url, key); CommandFailed with a sentence that says what to set."""
    url, key = gateway.url, gateway.key
    if gateway.data is None:
        url, key = url or os.environ.get("OBSERVATORY_URL"), key or os.environ.get("OBSERVATORY_KEY")
    if not (url and key):
        folder = folder_of(gateway.data)
        known = read_credentials(folder)
        if known is None and url:
            raise CommandFailed(f"no key for {url}; give one with --key or OBSERVATORY_KEY")
        if known is None:
            raise CommandFailed(
                f"no Observatory was ever started on {folder}; start it with `observatory serve`, "
                "or name a running one with --url and --key"
            )
        if url and url.rstrip("/") != known["url"].rstrip("/"):
            raise CommandFailed(f"no key for {url}: {folder} is for {known['url']}; give one with --key")
        key = key or known.get(f"{role}_key")
        if key is None:
            raise CommandFailed(f"{folder / 'credentials.json'} has no {role}'s key; give one with --key")
        url = known["url"]
    if not _is_address(url):
        raise CommandFailed("the address of a gateway looks like http://127.0.0.1:4800")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise CommandFailed("this is not a key: a key is obs_ and ASCII characters, as it was shown")
    return url.rstrip("/"), key


def _is_address(url: str) -> bool:
    try:
        httpx2.URL(url)
        return url.startswith(("http://", "https://")) and urlsplit(url).port != 0
    except (httpx2.InvalidURL, ValueError):
        return False


def trust_of(gateway: GatewayOptions, url: str) -> Trust:
    """The CA and client certificate to use; the CA that a folder names is trusted for its own URL only."""
    given = Trust(gateway.ca, gateway.cert, gateway.cert_key)
    authority = None
    if url.startswith("https:") and not (gateway.ca or os.environ.get("OBSERVATORY_CA")):
        known = read_credentials(folder_of(gateway.data))
        if known is not None and known["url"].rstrip("/") == url:
            authority = known.get("ca")
    return find_trust(given, os.environ, authority)


class GatewayRefused(CommandFailed):
    """A refusal by the gateway: its sentence, and the whole response."""

    def __init__(self, sentence: str, code: int, answer: Any) -> None:
        super().__init__(sentence)
        self.code, self.answer = code, answer

    @property
    def reason(self) -> str:
        return str(self.answer.get("reason")) if isinstance(self.answer, dict) else ""


class GatewayApi:
    """A gateway's HTTP API; every failure is a `CommandFailed` with a sentence."""

    def __init__(
        self,
        url: str,
        key: str,
        timeout: httpx2.Timeout = TIMEOUT,
        *,
        is_own: bool = False,
        trust: Trust | None = None,
    ) -> None:
        """`is_own`: the folder's gateway on this machine, so that an error need not name it."""
        self.url, self.key, self._is_own = url, key, is_own
        self.trust = find_trust() if trust is None else trust
        headers = {"Authorization": f"Bearer {key}"}
        self._client = httpx2.Client(
            base_url=url, headers=headers, timeout=timeout, trust_env=False, verify=tls(url, self.trust)
        )

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        content = None if body is None else msgspec.json.encode(body)
        headers = {"content-type": "application/json"} if content else {}
        given = {name: value for name, value in query.items() if value is not None}
        try:
            answer = self._client.request(method, path, content=content, headers=headers, params=given)
        except httpx2.TimeoutException:
            raise CommandFailed(f"the Observatory at {self.url} timed out; is it overloaded?") from None
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            raise CommandFailed(connection_error(self.url, error)) from None
        if answer.status_code < 400:
            try:
                return msgspec.json.decode(answer.content)
            except msgspec.MsgspecError:
                raise CommandFailed(f"the server at {self.url} is not an Observatory; check --url") from None
        raise self._refusal(answer)

    def bytes(self, path: str, **query: Any) -> bytes:
        """The raw bytes of a response that is not JSON."""
        try:
            answer = self._client.get(path, params=query)
        except httpx2.TransportError as error:
            raise CommandFailed(connection_error(self.url, error)) from None
        if answer.status_code >= 400:
            raise self._refusal(answer)
        return answer.content

    def items(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Every item of a list, page by page."""
        while True:
            page = self.ask("GET", path, **query)
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            query["cursor"] = page["next_cursor"]

    def _refusal(self, answer: httpx2.Response) -> GatewayRefused:
        code, refusal = answer.status_code, None
        try:
            refusal = msgspec.json.decode(answer.content)
            detail = str(refusal.get("detail") or _faults(refusal) or refusal.get("reason"))
        except (msgspec.MsgspecError, AttributeError, KeyError, TypeError):
            refusal, detail = None, f"code {code}"
        sentence = detail if self._is_own else f"the Observatory at {self.url} refused: {detail}"
        if code == 401:
            sentence = (
                f"the Observatory at {self.url} does not accept this key (wrong, revoked or expired); "
                "give a good one with --key, or use the folder's own with --data"
            )
        elif code == 403 and refusal is not None and refusal.get("reason") == "not_allowed":
            sentence = f"this key may not do that: {detail}; use {_least_role(detail)} key"
        return GatewayRefused(sentence, code, refusal)

    def close(self) -> None:
        self._client.close()


def _faults(refusal: dict[str, Any]) -> str:
    """Every fault of a message with its path: such a response has no sentence of its own."""
    faults = refusal.get("faults") or ()
    listed = "; ".join(f"{fault['path'] or 'the whole'}: {fault['problem']}" for fault in faults)
    return f"{refusal['reason']}: {listed}" if listed else ""


def _least_role(detail: str) -> str:
    """The lowest role that has the permission the sentence ends with."""
    return ROLE_WITH.get(detail.rpartition(" ")[2], "an admin's")


def connection_error(url: str, error: BaseException | None = None) -> str:
    trouble = None if error is None else tls_error_text(error)
    if trouble is not None:
        return f"{url}: {trouble}"
    if url.startswith("https:") and isinstance(error, httpx2.ReadError | httpx2.RemoteProtocolError):
        return (
            f"{url} closed the connection without a response: it may require a client certificate it trusts "
            "(--cert and --cert-key, or OBSERVATORY_CERT and OBSERVATORY_CERT_KEY)"
        )
    return f"no Observatory is reachable at {url}; start it with `observatory serve`"


def open_api(gateway: GatewayOptions, role: str = "admin") -> GatewayApi:
    """An API client that the caller must close."""
    url, key = find(gateway, role)
    return GatewayApi(url, key, trust=trust_of(gateway, url))


@contextmanager
def api(gateway: GatewayOptions, role: str = "admin") -> Iterator[GatewayApi]:
    url, key = find(gateway, role)
    named = gateway.url or (gateway.data is None and os.environ.get("OBSERVATORY_URL"))
    is_own = not named and url.startswith(LOCAL)
    client = GatewayApi(url, key, is_own=is_own, trust=trust_of(gateway, url))
    try:
        yield client
    finally:
        client.close()
