"""TLS and certificates over real sockets: who is reached, who is refused, what is replaced."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
import uuid
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpcore2
import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from observatory import Agent
from observatory.cli.live import feed
from observatory.features.certificates.authority import agent_uri
from observatory.protocol.certificates import read
from observatory.runtime.outbound_http import OutboundError, OutboundHttp
from observatory.sdk.credentials import Trust
from observatory.sdk.errors import NotConfigured
from tests import authorities
from tests.certifying import Folder, Secured
from tests.flows.server import observatory
from tests.flows.test_mcp_stdio import LIST, Bridge
from tests.samples import decision_log
from tests.waiting import until

Json = dict[str, Any]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("tls") / "files")


@pytest.fixture(scope="module")
def proxy(files: Folder) -> tuple[str, str]:
    return files.agent("proxy")


@pytest.fixture(scope="module")
def gateway(
    files: Folder, proxy: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    """Client certificates optional, one proxy pinned."""
    data = tmp_path_factory.mktemp("gateway") / "data"
    with Secured(files, data, TLS_PROXY_CERTS=fingerprint(proxy)) as running:
        assert isinstance(running, Secured)
        yield running


def fingerprint(shown: tuple[str, str]) -> str:
    return read(der(shown)).fingerprint


def der(shown: tuple[str, str]) -> bytes:
    return ssl.PEM_cert_to_DER_cert(Path(shown[0]).read_text())


def new_message(agent_id: str) -> Json:
    body = decision_log()
    body["meta"] |= {"session_id": str(uuid.uuid4()), "step_id": str(uuid.uuid4())}
    body["identity"]["agent_id"] = agent_id
    return body


def span(agent_id: str) -> Json:
    names = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent_id}
    attributes = [{"key": name, "value": {"stringValue": text}} for name, text in names.items()]
    one = {"traceId": uuid.uuid4().hex, "spanId": uuid.uuid4().hex[:16], "name": "x"}
    times = {"startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [one | times | {"attributes": attributes}]}]}]}


@pytest.mark.req(248)
def test_every_client_of_ours_reaches_a_gateway_with_a_private_authority_s855_s857(
    gateway: Secured, files: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S855: terminal, SDK, live socket, MCP and verify; S857: what a browser is told."""
    assert gateway.url.startswith("https://")
    own = observatory("agents", "list", "--data", str(gateway.folder))
    assert own.returncode == 0, own.stderr
    stranger = {"OBSERVATORY_URL": gateway.url, "OBSERVATORY_KEY": gateway.key("admin")}
    lost = observatory("agents", "list", home=tmp_path, environment=stranger)
    assert lost.returncode == 1 and "is not trusted" in lost.stderr and "--ca" in lost.stderr
    for words in (("agents", "list", "--ca", files.ca), ("verify", gateway.url, "--ca", files.ca)):
        done = observatory(*words, home=tmp_path, environment=stranger)
        assert done.returncode == 0, done.stderr
    with Agent("tls-sdk", data=gateway.folder, control=False) as agent:
        agent.step("Say hello", status="success")
        assert agent.flush(20) and not agent.rejections
        assert agent.listen(20), "the channel is a socket over TLS too"
    tail = observatory("tail", "--data", str(gateway.folder), "--after", "0", "--count", "1", "--json")
    assert tail.returncode == 0 and json.loads(tail.stdout)["message_id"]
    with Bridge(tmp_path, "--data", str(gateway.folder)) as bridge:
        assert bridge.ask(LIST)["id"] == "a"
    asked = f"https://localhost:{gateway.port}/healthz"  # as a peer that witnesses us asks
    monkeypatch.setattr(httpcore2, "default_ssl_context", authorities.read)  # the peer adds to what it reads
    peer = OutboundHttp([f"localhost:{gateway.port}"], authority=files.ca)
    assert asyncio.run(peer.get(asked)).code == 200
    with pytest.raises(OutboundError):
        asyncio.run(OutboundHttp([f"localhost:{gateway.port}"]).get(asked))
    with pytest.raises(NotConfigured, match="OBSERVATORY_CA"):
        Agent("tls-sdk", data=gateway.folder, ca=tmp_path / "missing.crt")
    # A browser: Secure cookies that no plain page can set, and https from now on, but not on localhost.
    link = gateway.http("admin").post("/v1/logins", json={}).json()["url"]
    signed = httpx2.post(link, verify=files.context(), trust_env=False)
    assert (
        signed.headers["set-cookie"].startswith("__Host-observatory=")
        and "Secure" in signed.headers["set-cookie"]
    )
    assert "max-age" in signed.headers["strict-transport-security"]
    local = httpx2.get(f"https://localhost:{gateway.port}/healthz", verify=files.context(), trust_env=False)
    assert local.status_code == 200 and "strict-transport-security" not in local.headers
    old = files.context()
    with warnings.catch_warnings(action="ignore"):  # that it is old is the point
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", gateway.port)) as plain, pytest.raises(ssl.SSLError):
        old.wrap_socket(plain, server_hostname="localhost")


class Watched:
    """OpenSSL's side of a socket, noting calls that overlap; they may lose what they carry."""

    def __init__(self, inner: Any, overlaps: list[str]) -> None:
        self._inner, self._overlaps, self._open = inner, overlaps, 0

    def __getattr__(self, name: str) -> Any:
        if name not in ("read", "write"):
            return getattr(self._inner, name)
        return lambda *given: self._watched(name, *given)

    def _watched(self, name: str, *given: Any) -> Any:
        self._open += 1
        try:
            if self._open > 1:
                self._overlaps.append(name)
            return getattr(self._inner, name)(*given)
        finally:
            self._open -= 1


def test_the_terminal_never_reads_and_writes_a_tls_connection_at_the_same_moment_s1290(
    gateway: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1290: the thread that reads is waiting when the subscription is sent, and the answer comes."""
    overlaps: list[str] = []
    shake = ssl.SSLSocket.do_handshake

    def shaken(self: ssl.SSLSocket, block: bool = False) -> None:
        shake(self, block)
        self._sslobj = Watched(self._sslobj, overlaps)  # type: ignore[attr-defined]

    monkeypatch.setattr(ssl.SSLSocket, "do_handshake", shaken)
    trust = Trust(gateway.files.ca)
    for _ in range(5):
        with feed(gateway.url, gateway.key("viewer"), ["fleet"], None, trust) as live:
            for _ in range(20):
                live.send({"op": "subscribe", "topics": ["fleet"]})
            assert live.frame(20) is not None
    assert overlaps == []


def test_what_is_no_tls_is_answered_or_closed_s869(gateway: Secured) -> None:
    """S869: plain HTTP is told so in a sentence; garbage ends the connection and nothing else."""
    answer = httpx2.get(f"http://127.0.0.1:{gateway.port}/readyz", trust_env=False)
    assert answer.status_code == 400 and "https://" in answer.text
    for rubbish in (b"\x00\xff" * 400, b"\x16\x03\x01\x00\x05hello", b"\x16"):
        with socket.create_connection(("127.0.0.1", gateway.port)) as raw:
            raw.sendall(rubbish)
            raw.shutdown(socket.SHUT_WR)
            raw.settimeout(20)
            try:
                while raw.recv(4_096):
                    pass
            except ConnectionError:
                pass
    assert gateway.http("admin").get("/readyz").status_code == 200


@pytest.mark.req(248)
def test_a_bound_agent_is_heard_by_every_door_only_with_its_certificate_s858_s860_s862(
    gateway: Secured, files: Folder, proxy: tuple[str, str]
) -> None:
    """S858: only the handshake counts; S860: each door refuses; S862: an open channel without it ends."""
    name, mine, another = "bound-1", files.agent("bound-1"), files.agent("eve")
    admin = gateway.http("operator")
    with gateway.showing(None) as bare:
        first = bare.post("/v1/messages", json=new_message(name))
        assert first.status_code == 202
        key = {"Authorization": f"Bearer {gateway.key('agent')}"}
        path = f"{gateway.socket_url}/v1/agents/{name}/channel"
        with connect(path, additional_headers=key, ssl=files.context()) as channel:
            assert json.loads(channel.recv(20))["type"] == "hello"
            body = {"kind": "uri", "value": agent_uri(name)}
            with ThreadPoolExecutor(1) as apart:
                polls = apart.submit(bare.get, f"/v1/agents/{name}/inbox", params={"wait": 20})
                until(lambda: "observatory_agent_channels 2" in gateway.http("admin").get("/metrics").text)
                bound = admin.put(f"/v1/agents/{name}/certificate", json=body)
                prompt = {"agent_id": name, "prompt": "for its own ears"}
                received = admin.post(f"/v1/sessions/{first.json()['session_id']}/inject", json=prompt)
                assert (received.status_code, polls.result().status_code) == (202, 403), polls.result().text
            assert bound.status_code == 200 and bound.json()["binding"]["kind"] == "uri"
            with pytest.raises(ConnectionClosed) as closed:
                channel.recv(20)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 4403
    header = f":{base64.b64encode(der(mine)).decode()}:"
    for shown, more, code in (
        (None, {}, 403),
        (None, {"Client-Cert": header, "X-Client-Cert": header, "X-SSL-Client-Verify": "SUCCESS"}, 403),
        (another, {"Client-Cert": header}, 403),
        (mine, {}, 200),
    ):
        with gateway.showing(shown, **more) as client:
            codes = every_door(client, name)
            assert set(codes.values()) == {code}, codes
        with connect(path, additional_headers=key | more, ssl=files.context(shown)) as channel:
            if code == 200:
                assert json.loads(channel.recv(20))["type"] == "hello"
            else:
                with pytest.raises(ConnectionClosed) as closed:
                    channel.recv(20)
                assert closed.value.rcvd is not None and closed.value.rcvd.code == 4403
    trail = admin.get("/v1/audit/tenant", params={"limit": 500, "severity_min": 21}).json()["items"]
    refused = [one["body"] for one in trail if one["body"].get("reason") == "certificate_required"]
    assert {one["shown"] for one in refused} == {None, fingerprint(another)}
    behind_a_proxy(gateway, proxy, mine, name)
    shown = until(lambda: admin.get(f"/v1/agents/{name}/certificate").json()["shown"])
    assert shown["subject"] == "CN=bound-1" and shown["agents"] == [name]
    assert admin.delete(f"/v1/agents/{name}/certificate").json()["binding"] is None
    with gateway.showing(None) as bare:
        assert bare.post("/v1/messages", json=new_message(name)).status_code == 202


def every_door(client: httpx2.Client, name: str) -> dict[str, int]:
    """How each door of an agent answers; 200 stands for whatever means taken."""
    pulse = {"agent_id": name, "status": "idle"}
    asked = {
        "messages": client.post("/v1/messages", json=new_message(name)),
        "heartbeat": client.post("/v1/heartbeat", json=pulse),
        "register": client.post("/v1/agents", json={"agent_id": name, "model": "m"}),
        "inbox": client.get(f"/v1/agents/{name}/inbox"),
        "ack": client.post(f"/v1/agents/{name}/inbox/ack", json={"ids": ["dlv_1-1"]}),
        "stream": client.get(f"/v1/agents/{name}/inbox", headers={"accept": "application/json"}),
    }
    codes = {door: 200 if answer.status_code < 300 else answer.status_code for door, answer in asked.items()}
    line = client.post(
        "/v1/messages",
        content=json.dumps(new_message(name)),
        headers={"content-type": "application/x-ndjson"},
    )
    codes["line"] = 200 if (received := json.loads(line.text)["code"]) == 202 else received
    traced = client.post("/v1/traces", json=span(name)).json()
    rejected = int(traced.get("partialSuccess", {}).get("rejectedSpans", 0))
    codes["otlp"] = 403 if rejected else 200
    if rejected:
        assert "bound to a certificate" in traced["partialSuccess"]["errorMessage"]
    return codes


def behind_a_proxy(gateway: Secured, proxy: tuple[str, str], mine: tuple[str, str], name: str) -> None:
    """S859: of the pinned proxy the header counts, and its own certificate never does."""
    good = f":{base64.b64encode(der(mine)).decode()}:"
    with gateway.showing(proxy) as client:

        def sent(*headers: str) -> httpx2.Response:
            more = [("client-cert", one) for one in headers]
            return client.post(
                "/v1/messages",
                json=new_message(name),
                headers=httpx2.Headers([*client.headers.multi_items(), *more]),
            )

        assert sent(good).status_code == 202
        assert sent().status_code == 403
        for bad in ((good, good), ("nonsense",), (":AAAA:",), (":" + "A" * 20_000 + ":",)):
            answer = sent(*bad)
            assert (answer.status_code, answer.json()["reason"]) == (400, "bad_client_cert")
    assert b" 403 " in after_its_body(gateway, proxy, name, f"client-cert: {good}").partition(b"\r\n")[0]


def after_its_body(gateway: Secured, shown: tuple[str, str], name: str, trailer: str) -> bytes:
    """The answer to a message in chunks that says one more header behind them; some proxies let them pass."""
    body = json.dumps(new_message(name))
    head = (
        f"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {gateway.key('agent')}\r\n"
    )
    head += "content-type: application/json\r\ntransfer-encoding: chunked\r\ntrailer: client-cert\r\n\r\n"
    with (
        socket.create_connection(("127.0.0.1", gateway.port)) as raw,
        gateway.files.context(shown).wrap_socket(raw, server_hostname="localhost") as wire,
    ):
        wire.settimeout(20)
        wire.sendall(f"{head}{len(body):x}\r\n{body}\r\n0\r\n{trailer}\r\n\r\n".encode())
        return wire.recv(65_536)


@pytest.mark.req(201)
def test_what_was_shown_is_listed_ends_in_words_and_alarms_before_s866_s867_s868(
    gateway: Secured, files: Folder
) -> None:
    """S866: the tenant's own only; S867: an alert before one in use ends; S868: a figure of it."""
    soon = files.agent("soon-1", until=5)
    with gateway.showing(soon) as client:
        assert client.post("/v1/messages", json=new_message("soon-1")).status_code == 202
    admin = gateway.http("admin")

    def listed() -> list[Json]:
        answer = admin.get("/v1/certificates").json()
        return [one for one in answer["items"] if one["subject"] == "CN=soon-1"]

    [one] = until(listed)
    assert (one["standing"], one["days_left"], one["agents"], one["in_use"]) == (
        "expiring",
        4,
        ["soon-1"],
        True,
    )
    assert one["first_seen_at"] and len(one["key_ids"]) == 1
    answer = admin.get("/v1/certificates").json()
    assert {"server", "authority"} <= {item["use"] for item in answer["items"]}
    assert answer["tls"] | {"proxies": 1} == answer["tls"] and answer["tls"]["client_certs"] == "optional"
    assert "soon-1" not in answer["agents"]["without"] and answer["agents"]["using"] >= 1
    made = admin.post("/v1/tenants", json={"display_name": "Neighbour"}).json()
    with httpx2.Client(base_url=gateway.url, verify=gateway.verify, trust_env=False) as client:
        other = client.get("/v1/certificates", headers={"Authorization": f"Bearer {made['key']}"}).json()
    assert {item["use"] for item in other["items"]} == {"server", "authority"}
    rule = {"name": "Ends soon", "condition": "certificate"}
    assert admin.post("/v1/alert-rules", json=rule).status_code == 201

    def raised() -> list[Json]:
        open_ = admin.get("/v1/alerts/open").json()["items"]
        return [alert for alert in open_ if alert["condition"] == "certificate"]

    [alert] = until(raised)
    assert alert["subject"] == f"certificate:client:{one['fingerprint'][:16]}"
    assert alert["link"].endswith("/fleet?panel=certificates")
    metrics = admin.get("/metrics").text
    for use in ("server", "authority", "client"):
        assert f'observatory_certificate_seconds_left{{use="{use}"}}' in metrics
    shown = observatory("certificates", "list", "--data", str(gateway.folder))
    assert "in 4 days" in shown.stdout and "optional" in shown.stderr
    received = observatory("certificates", "show", "soon-1", "--data", str(gateway.folder))
    assert "bound to no certificate" in received.stdout and "CN=soon-1" in received.stdout


def test_bindings_are_refused_in_words_and_need_an_operator_s861_s863(
    gateway: Secured, files: Folder
) -> None:
    with gateway.showing(None) as bare:
        assert bare.post("/v1/messages", json=new_message("refused-1")).status_code == 202
        assert bare.put("/v1/agents/refused-1/certificate", json={"pem": "x"}).status_code == 403
    http, path = gateway.http("operator"), "/v1/agents/refused-1/certificate"
    for body, words in (
        ({"kind": "fingerprint", "value": "abc"}, "64 hexadecimal"),
        ({"kind": "dns", "value": "*.example"}, "without a wildcard"),
        ({"kind": "uri"}, "kind and value, or pem"),
        ({"pem": "nothing", "kind": "uri", "value": "urn:x"}, "not both"),
        ({"pem": "nothing"}, "no certificate in PEM"),
    ):
        answer = http.put(path, json=body)
        assert answer.status_code == 422 and words in answer.json()["detail"], answer.text
    assert (
        http.put("/v1/agents/nobody-9/certificate", json={"kind": "dns", "value": "a.b"}).status_code == 404
    )
    file = files.agent("refused-1")[0]
    where = ("--data", str(gateway.folder))
    done = observatory("certificates", "bind", "refused-1", "--file", file, *where)
    assert done.returncode == 0 and "fingerprint" in done.stdout, done.stderr
    assert observatory("certificates", "bind", "refused-1", *where).returncode == 2
    key = observatory("certificates", "bind", "refused-1", "--file", f"{files.path}/server.key", *where)
    assert key.returncode == 1 and "contains no PEM certificate" in key.stderr, "the key is not sent"
    undone = observatory("certificates", "unbind", "refused-1", "--yes", *where)
    assert undone.returncode == 0 and "no longer bound to a certificate" in undone.stdout


def test_a_resumed_session_keeps_its_identity_s874(gateway: Secured, files: Folder) -> None:
    """S874: under TLS 1.2 and 1.3 alike."""
    mine = files.agent("resumed-1")
    with gateway.showing(mine) as client:
        assert client.post("/v1/messages", json=new_message("resumed-1")).status_code == 202
    body = {"kind": "uri", "value": agent_uri("resumed-1")}
    assert gateway.http("operator").put("/v1/agents/resumed-1/certificate", json=body).status_code == 200
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context, session = files.context(mine), None
        context.maximum_version = context.minimum_version = version
        for resumed in (False, True):
            with (
                socket.create_connection(("127.0.0.1", gateway.port)) as raw,
                context.wrap_socket(raw, server_hostname="localhost", session=session) as wrapped,
            ):
                wrapped.sendall(request_of("resumed-1", gateway.key("agent")))
                assert b" 202 " in wrapped.recv(65_536).partition(b"\r\n")[0]
                assert wrapped.session_reused is resumed
                session = wrapped.session


def request_of(agent_id: str, key: str) -> bytes:
    body = json.dumps(new_message(agent_id)).encode()
    head = f"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
    kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + kind).encode() + body
