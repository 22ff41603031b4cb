"""Client certificates required: who gets through the handshake, by HTTP and by gRPC, and who does not."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from observatory import Agent
from observatory.features.certificates.authority import agent_uri, make_authority, write_pair
from observatory.protocol.certificates import read, read_pem
from observatory.runtime.tls import Tls
from observatory.settings import load
from tests.certifying import Folder, Secured
from tests.flows.server import observatory
from tests.flows.test_tls import span
from tests.flows.test_tls_files import refused, seen
from tests.waiting import until

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("mtls") / "files")


@pytest.fixture(scope="module")
def gateway(files: Folder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    data = tmp_path_factory.mktemp("gateway") / "data"
    with Secured(files, data, "required", OTLP_GRPC=f"127.0.0.1:{port}") as running:
        assert isinstance(running, Secured)
        running.wire = f"localhost:{port}"  # type: ignore[attr-defined]
        yield running


@pytest.mark.req(248)
def test_the_handshake_refuses_whom_no_trusted_authority_vouches_for_s869(
    gateway: Secured, files: Folder, tmp_path: Path
) -> None:
    """S869: nobody, ended, not yet begun, of another authority, of themselves, or a gateway's own."""
    foreign = Folder(tmp_path / "foreign", "Test authority")  # the same name, another key
    alone = make_authority("ada")
    write_pair(tmp_path, "alone", alone)
    good = files.agent("ada")
    bad = {
        "none": None,
        "ended": files.agent("ended", since=-9, until=-1),
        "not begun": files.agent("early", since=1, until=9),
        "foreign": foreign.agent("ada"),
        "self-signed": (str(tmp_path / "alone.crt"), str(tmp_path / "alone.key")),
        "a server's": (str(files.path / "server.crt"), str(files.path / "server.key")),
    }
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        for name, shown in bad.items():
            context = files.context()
            context.maximum_version = version
            assert refused(gateway, context, shown), f"{name} was let in by {version!r}"
        assert not refused(gateway, files.context(), good)
    listed = gateway.http("admin").get("/v1/certificates").json()
    assert not {"CN=ended", "CN=early"} & {one["subject"] for one in listed["items"]}
    assert listed["tls"]["client_certs"] == "required"
    metrics = gateway.http("admin").get("/metrics").text
    assert "observatory_tls_refused_total " in metrics and "observatory_tls_refused_total 0\n" not in metrics


def test_clients_of_ours_show_their_certificate_and_say_what_is_wrong_without_s855_s875(
    gateway: Secured, files: Folder
) -> None:
    """S855: by words and by environment; S875: one that was replaced is shown with the next request."""
    where, mine = ("--data", str(gateway.folder)), files.agent("sdk-1")
    bare = observatory("agents", *where)
    assert bare.returncode == 1 and "--cert" in bare.stderr, bare.stderr
    for words, environment in (
        (("--cert", mine[0], "--cert-key", mine[1]), {}),
        ((), {"OBSERVATORY_CERT": mine[0], "OBSERVATORY_CERT_KEY": mine[1]}),
    ):
        done = observatory("agents", *where, *words, environment=environment)
        assert done.returncode == 0, done.stderr
    http = gateway.http("operator")
    with Agent("sdk-1", data=gateway.folder, cert=mine[0], cert_key=mine[1], control=False) as agent:
        agent.step("One", status="success")
        assert agent.flush(20) and not agent.rejections
        body = {"kind": "uri", "value": agent_uri("sdk-1")}
        assert http.put("/v1/agents/sdk-1/certificate", json=body).status_code == 200
        first = until(lambda: http.get("/v1/agents/sdk-1/certificate").json()["shown"])["fingerprint"]
        files.agent("sdk-1")
        agent.step("Two", status="success")
        assert agent.flush(20) and not agent.rejections
        assert agent.listen(20)

        def renewed() -> bool:
            shown = http.get("/v1/agents/sdk-1/certificate").json()["shown"]
            return shown is not None and shown["fingerprint"] != first

        until(renewed)


@pytest.mark.req(248)
def test_grpc_has_the_same_certificates_bindings_and_rotation_s872(gateway: Secured, files: Folder) -> None:
    """S872: none gets through without, a bound agent only with its own, and replaced files count."""
    mine, another = files.agent("wire-1"), files.agent("wire-2")
    assert received(gateway, mine, "wire-1") == 0
    body = {"kind": "uri", "value": agent_uri("wire-1")}
    assert gateway.http("operator").put("/v1/agents/wire-1/certificate", json=body).status_code == 200
    assert received(gateway, mine, "wire-1") == 0
    assert received(gateway, another, "wire-1") == 1
    with pytest.raises(grpc.RpcError) as failed:
        received(gateway, None, "wire-1")
    assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
    before = seen(gateway, mine)
    files.serve(30)
    fresh = until(lambda: (now := seen(gateway, mine)) != before and now)
    assert until(lambda: wire_certificate(gateway, mine) == fresh)


def test_thoughts_and_mcp_tools_need_the_certificate_too_s860(gateway: Secured, files: Folder) -> None:
    """S860: the bridge hands the certificate on to our own doors with the key."""
    admin, mine, another = gateway.http("admin"), files.agent("thinker-1"), files.agent("thinker-2")
    assert admin.post("/v1/agents", json={"agent_id": "thinker-1"}).status_code == 201
    key = admin.post("/v1/keys", json={"role": "agent", "agent_id": "thinker-1"}).json()["key"]
    body = {"kind": "subject", "value": "CN=thinker-1"}
    assert admin.put("/v1/agents/thinker-1/certificate", json=body).status_code == 200
    said = {"Authorization": f"Bearer {key}", "Accept": "application/json, text/event-stream"}
    start = {"intent": "prove it", "task_id": "tsk_proof"}
    called = {"name": "audit_session_start", "arguments": start}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
    for shown, is_heard in ((another, False), (mine, True)):
        with gateway.showing(shown) as client:
            answer = client.post("/mcp", json=call, headers=said).json()["result"]
            assert answer.get("isError", False) is not is_heard, answer
            assert ("certificate_required" in str(answer)) is not is_heard
            thought = client.post("/v1/thought-sessions", json=start, headers=said)
            assert thought.status_code == (201 if is_heard else 403), thought.text


def test_a_newcomer_makes_the_files_in_one_command_and_nothing_is_overwritten_s873(tmp_path: Path) -> None:
    """S873: they serve as they are; keys are their owner's alone; a renewed one keeps its name."""
    place = tmp_path / "tls"
    made = observatory("tls", "init", str(place), "--host", "gateway.example", "--agent", "ada")
    assert made.returncode == 0 and "--tls-cert" in made.stdout, made.stderr
    assert {path.stat().st_mode & 0o777 for path in place.glob("*.key")} == {0o600}
    options = {"tls_cert": f"{place}/server.crt", "tls_key": f"{place}/server.key"}
    options |= {"tls_client_ca": f"{place}/ca.crt", "tls_client_certs": "required"}
    tls = Tls(load(options, {}))
    assert tls.names == ["localhost", "gateway.example"] and tls.own_authority == f"{place}/server.crt"
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    assert observatory("tls", "init", str(place)).returncode == 1
    assert observatory("tls", "init", str(tmp_path / "no"), "--host", "bad host").returncode == 2
    assert observatory("tls", "agent", str(place), "../ca").returncode == 2
    assert observatory("tls", "agent", str(tmp_path), "ada").returncode == 1
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    assert observatory("tls", "agent", str(place), "ada", "--days", "3").returncode == 0
    renewed = read(read_pem((place / "ada.crt").read_bytes())[0])
    assert renewed.names == (f"uri:{agent_uri('ada')}",)
    assert before["ada.crt"] != (place / "ada.crt").read_bytes()
    assert observatory("tls", "agent", str(place), "CA").returncode == 2, "one name on some disks"
    assert observatory("tls", "server", str(place), "--host", "two.example").returncode == 0
    assert asyncio.run(tls.look()) and tls.names == ["localhost", "gateway.example", "two.example"]
    assert before["server.crt"] != (place / "server.crt").read_bytes()
    assert before["ca.key"] == (place / "ca.key").read_bytes()


def wire_certificate(gateway: Secured, shown: tuple[str, str]) -> str:
    port = int(gateway.wire.rpartition(":")[2])  # type: ignore[attr-defined]
    context = gateway.files.context(shown)
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", port)) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as wrapped,
    ):
        return read(wrapped.getpeercert(True) or b"").fingerprint


def received(gateway: Secured, shown: tuple[str, str] | None, agent_id: str) -> int:
    """How many spans were rejected; RpcError when nobody was let in."""
    request = span(agent_id)
    for one in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        one["traceId"], one["spanId"] = as_bytes(one["traceId"]), as_bytes(one["spanId"])
    packed = ParseDict(request, ExportTraceServiceRequest()).SerializeToString()
    pair = (None, None) if shown is None else (Path(shown[1]).read_bytes(), Path(shown[0]).read_bytes())
    credentials = grpc.ssl_channel_credentials(Path(gateway.files.ca).read_bytes(), *pair)
    key = (("authorization", f"Bearer {gateway.key('agent')}"),)
    with grpc.secure_channel(gateway.wire, credentials) as channel:  # type: ignore[attr-defined]
        answer = channel.unary_unary(METHOD)(packed, metadata=key, timeout=20)
    return int(ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans)


def as_bytes(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text)).decode()
