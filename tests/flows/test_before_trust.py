"""What holds before anybody is known: bounds on heads, bodies and connections, the key before the body, and
the headers of every answer."""

from __future__ import annotations

import gzip
import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import httpx2
import pytest
from litestar.routes import HTTPRoute
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from observatory.features import parts
from observatory.features.hooks.types import HOOK_OPERATIONS
from observatory.features.transparency.types_peers import WITNESS_OPERATIONS
from observatory.http.app import litestar_app
from tests.flows.databases import ALONE
from tests.flows.server import Server
from tests.samples import decision_log
from tests.waiting import until

MIB = 1 << 20
OPEN = {"healthz", "readyz", *WITNESS_OPERATIONS, *HOOK_OPERATIONS}
BOUNDS = {
    "OBSERVATORY_HEADER_S": "1",
    "OBSERVATORY_BODY_S": "2",
    "OBSERVATORY_READING_BYTES": str(8 * MIB),
    "OBSERVATORY_CONNECTIONS": "24",
}


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("bounded") / "data", environment=ALONE | BOUNDS) as running:
        yield running


def raw(server: Server, timeout: float = 20) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=timeout)


def heard(connection: socket.socket) -> bytes:
    """All of the answer, until the other side closes."""
    parts = []
    try:
        while part := connection.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def code_of(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer[:80]
    return int(answer[9:12])


def is_guarded(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    return b"nosniff" in head and b"no-store" in head and bool(json.loads(body)["reason"])


def post(server: Server, path: str, *lines: str, key: str | None = None) -> bytes:
    keyed = [] if key is None else [f"Authorization: Bearer {key}"]
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", *keyed, *lines, "", ""]).encode()


HEADS = {
    "a long URL": [b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"],
    "a long header": [b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000 + b"\r\n\r\n"],
    "many headers": [b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 300 + b"\r\n"],
    "a header without end": [b"GET / HTTP/1.1\r\nX: ", *[b"a" * 8_192] * 12],
    "a URL without end": [b"GET /", *[b"a" * 8_192] * 12],
    "trailers without end": [
        b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"1\r\nx\r\n0\r\nX: ",
        *[b"a" * 8_192] * 60,
    ],
    "a socket's long header": [
        b"GET /v1/live HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nX: "
        + b"a" * 70_000
        + b"\r\n\r\n"
    ],
}


@pytest.mark.parametrize("name", HEADS)
def test_a_head_beyond_64_kib_is_431_and_the_connection_is_over_s1000(server: Server, name: str) -> None:
    """S1000: however it is spread, and before the key."""
    with closing(raw(server)) as connection:
        with suppress(OSError):
            for part in HEADS[name]:
                connection.sendall(part)
        answers = heard(connection)
    if name.startswith("trailers"):  # what it asked was answered when its head was there
        return
    assert code_of(answers) == 431 and is_guarded(answers), answers[:200]


def test_a_head_of_60_kib_is_read_s1000(server: Server) -> None:
    found = server.http("admin").get("/v1/agents", headers={"X-Long": "a" * 60_000})
    assert found.status_code == 200


def test_a_head_that_does_not_come_is_408_s1001(bounded: Server) -> None:
    """S1001: nor may a connection be held by saying nothing, or a blank line after an answer."""
    with closing(raw(bounded)) as connection:  # it may have been opened in advance: closed without a word
        assert heard(connection) == b""
    with closing(raw(bounded)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: local")
        assert code_of(heard(connection)) == 408
    with closing(raw(bounded)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert code_of(connection.recv(65_536)) == 200
        connection.sendall(b"\r\n")
        assert b"HTTP/1.1 408 " in heard(connection)


def test_a_body_that_does_not_come_is_408_s1001(bounded: Server) -> None:
    """S1001: a byte now and then does not help."""
    key, before = bounded.key("agent"), time.monotonic()
    with closing(raw(bounded)) as connection:
        connection.sendall(
            post(bounded, "/v1/messages", "Content-Type: application/json", "Content-Length: 50", key=key)
        )
        connection.settimeout(0.05)
        answer = b""
        while not answer and time.monotonic() < before + 20:
            connection.sendall(b" ")
            try:
                answer = connection.recv(65_536)
            except TimeoutError:
                continue
    assert code_of(answer) == 408 and is_guarded(answer)


@pytest.mark.parametrize("path", ["/v1/live", "/v1/ingest", "/v1/agents/x/channel"])
def test_a_socket_that_shows_no_key_is_closed_s1001(bounded: Server, path: str) -> None:
    with connect(bounded.socket_url + path) as silent, pytest.raises(ConnectionClosed) as closed:
        silent.recv(20)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 4401


def test_unfinished_bodies_share_one_budget_and_nothing_is_lost_s1002(bounded: Server) -> None:
    """S1002: what is beyond it is told to come again; small messages pass all the while."""
    key = bounded.key("agent")
    head = post(
        bounded, "/v1/messages", "Content-Type: application/x-ndjson", f"Content-Length: {6 * MIB}", key=key
    )
    codes = []
    with ExitStack() as stack:
        senders = [stack.enter_context(closing(raw(bounded))) for _ in range(4)]
        for one in senders:
            one.settimeout(0.5)
            with suppress(OSError):
                one.sendall(head + b" " * (4 * MIB))
        sent = bounded.send(decision_log())
        for one in senders:
            one.settimeout(20)
            codes.append(answer := heard(one))
            assert answer[9:12] in (b"503", b"408") and is_guarded(answer)
    assert sent.status_code == 202
    busy = [answer for answer in codes if answer[9:12] == b"503"]
    assert busy and all(b"retry-after" in answer for answer in busy)
    assert bounded.send_lines([json.dumps(decision_log()).encode()])[0]["code"] == 202


def test_what_is_unpacked_counts_too_s1002(tmp_path: Path) -> None:
    """S1002: many small bodies that unpack to large ones are not held at once."""
    environment = ALONE | {"OBSERVATORY_READING_BYTES": str(2 * MIB)}
    with Server(tmp_path / "data", environment=environment) as server:
        packed = gzip.compress(b" " * (3 * MIB))
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        answer = server.http("agent").post("/v1/messages", content=packed, headers=headers)
        assert answer.status_code == 429 and answer.headers["retry-after"]
        small = gzip.compress(json.dumps(decision_log()).encode())
        assert server.http("agent").post("/v1/messages", content=small, headers=headers).status_code == 202


def test_a_frame_before_the_key_counts_too_s1002(bounded: Server) -> None:
    """S1002: an unfinished first frame is a body being read."""
    hand = (
        b"GET /v1/ingest HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    frame = b"\x81\xff" + (1_000_000).to_bytes(8, "big") + b"mask" + b"x" * 900_000
    cut = 0
    with ExitStack() as stack:
        for _ in range(12):
            one = stack.enter_context(closing(raw(bounded)))
            one.sendall(hand)
            assert code_of(one.recv(65_536)) == 101
            try:
                one.sendall(frame)
                one.settimeout(0.2)
                cut += one.recv(65_536) == b""
            except TimeoutError:
                continue
            except OSError:
                cut += 1
    assert 0 < cut < 12
    assert bounded.send(decision_log()).status_code == 202


def test_connections_have_a_cap_and_idle_ones_go_first_s1003(bounded: Server) -> None:
    """S1003: who holds many open and says nothing shuts nobody out."""
    with ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(closing(raw(bounded)))
        assert httpx2.get(f"{bounded.url}/healthz", trust_env=False).status_code == 200


@pytest.fixture(scope="module")
def large(bounded: Server) -> str:
    """What is asked for to get 9 MB: more than the kernel takes of an answer that is not read."""
    for _ in range(3):
        lines = [json.dumps(decision_log(cognition={"intent": "x" * 30_000})).encode() for _ in range(100)]
        assert {line["status"] for line in bounded.send_lines(lines)} == {"accepted"}
    key = bounded.key("admin")
    return f"GET /v1/messages?limit=1000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"


def asking(server: Server, stack: ExitStack, request: str) -> socket.socket:
    """A connection whose answer has begun, and that reads no more of it yet."""
    connection = stack.enter_context(closing(socket.socket()))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 262_144)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(request.encode())
    assert connection.recv(1) == b"H"
    return connection


def connections(server: Server) -> int:
    opened = Path(f"/proc/{server.pid}/fd").iterdir()
    return sum(str(one.readlink()).startswith("socket:") for one in opened if one.is_symlink())


def test_a_client_that_reads_nothing_of_its_answer_is_cut_off_s1400(bounded: Server, large: str) -> None:
    """S1400: after `body_s`; meanwhile others are answered."""
    before = connections(bounded)
    with ExitStack() as stack:
        for _ in range(8):
            asking(bounded, stack, large)
        assert httpx2.get(f"{bounded.url}/healthz", trust_env=False).status_code == 200
        until(lambda: connections(bounded) <= before + 1)


def test_connections_with_unread_answers_shut_nobody_out_s1400(bounded: Server, large: str) -> None:
    with ExitStack() as stack:
        for _ in range(30):
            with suppress(OSError):  # beyond the cap: refused until the first ones have waited for too long
                asking(bounded, stack, large)
        until(lambda: httpx2.get(f"{bounded.url}/healthz", trust_env=False).status_code == 200)


def test_a_client_that_reads_slowly_gets_all_of_its_answer_s1400(bounded: Server, large: str) -> None:
    """S1400: for longer than `body_s`, because it reads on."""
    with ExitStack() as stack:
        connection, begun = asking(bounded, stack, large), time.monotonic()
        head, _, body = connection.recv(65_536).partition(b"\r\n\r\n")
        length, said = len(body), int(re.findall(rb"content-length: (\d+)", head)[0])
        while length < said:
            part = connection.recv(262_144)
            assert part, "it was cut off"
            length += len(part)
            time.sleep(max(0, begun + length / 4_000_000 - time.monotonic()))  # 4 MB a second
        assert time.monotonic() - begun > 2 and length == said > 9_000_000


@pytest.mark.parametrize("way", ["sockets", "streams", "polls"])
def test_sockets_and_streams_of_agents_leave_connections_for_people_s1405(bounded: Server, way: str) -> None:
    """S1405: one agent's key holds as many as it can; an admin still revokes it."""
    key, opened = bounded.key("agent"), 0
    with ExitStack() as stack:
        for number in range(40):
            if way == "sockets":
                where = f"{bounded.socket_url}/v1/agents/a{number}/channel"
                channel = connect(where, additional_headers={"Authorization": f"Bearer {key}"}, proxy=None)
                with suppress(ConnectionClosed):
                    opened += bool(stack.enter_context(channel).recv())
                continue
            connection = stack.enter_context(closing(raw(bounded)))
            wait, kind = ("", "text/event-stream") if way == "streams" else ("?wait=60", "application/json")
            lines = [f"GET /v1/agents/a{number}/inbox{wait} HTTP/1.1", "Host: localhost", f"Accept: {kind}"]
            connection.sendall("\r\n".join([*lines, f"Authorization: Bearer {key}", "", ""]).encode())
        who = {"Authorization": f"Bearer {bounded.key('admin')}"}
        until(lambda: httpx2.get(f"{bounded.url}/v1/keys", headers=who, trust_env=False).is_success)
        assert opened < 24


def test_the_process_may_open_as_many_files_as_it_is_allowed_s1003(server: Server) -> None:
    limits = Path(f"/proc/{server.pid}/limits")
    if not limits.exists():
        pytest.skip("this system does not show limits of a process")
    line = next(line for line in limits.read_text().splitlines() if line.startswith("Max open files"))
    soft, hard = line.split()[3:5]
    assert soft == hard


def test_two_host_headers_are_400_s1004(server: Server) -> None:
    for more in (b"evil.example", b"localhost"):
        with closing(raw(server)) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: %s\r\n\r\n" % more)
            connection.shutdown(socket.SHUT_WR)
            assert code_of(heard(connection)) == 400


def test_forwarded_addresses_count_only_from_named_proxies_s1004(tmp_path: Path) -> None:
    """S1004: by default from nobody, not from this machine either."""
    for proxies, blocked in (("", True), ("127.0.0.1", False), ("192.0.2.0/24", True)):
        environment = ALONE | ({"OBSERVATORY_TRUSTED_PROXIES": proxies} if proxies else {})
        with Server(tmp_path / (proxies.replace("/", "-") or "none"), environment=environment) as server:
            codes = []
            with httpx2.Client(base_url=server.url, trust_env=False) as client:
                for n in range(700):  # one address may knock 512 times
                    received = {"X-Forwarded-For": f"198.51.100.{n % 250}"}
                    codes.append(client.post("/v1/webhooks/whk_x", headers=received).status_code)
                    if codes[-1] == 429:
                        break
            assert (429 in codes) == blocked, proxies


def operations(server: Server) -> list[tuple[str, str, str]]:
    document = server.http("nobody").get("/schemas/openapi.json").json()
    return [
        (method.upper(), re.sub(r"\{\w+\}", "x", path), one["operationId"])
        for path, methods in document["paths"].items()
        for method, one in methods.items()
    ]


def test_without_a_key_every_operation_is_401_before_the_body_is_sent_s1005(server: Server) -> None:
    """S1005: neither query nor body is judged; the body need not even come."""
    wrong = []
    for method, path, name in operations(server):
        if name in OPEN:
            continue
        for query in ("", "?limit=nonsense&from=x"):
            with closing(raw(server)) as connection:
                lines = [f"{method} {path}{query} HTTP/1.1", "Host: localhost", "Connection: close"]
                if method != "GET":
                    lines += ["Content-Type: application/json", "Content-Length: 100000"]
                connection.sendall("\r\n".join([*lines, "", ""]).encode())
                answer = connection.recv(65_536)
            if answer[9:12] != b"401":
                wrong.append((name, query, answer[:60]))
    assert not wrong, wrong


def test_mcp_answers_without_a_key_before_the_body_is_sent_s1005(server: Server) -> None:
    with closing(raw(server)) as connection:
        connection.sendall(post(server, "/mcp", "Content-Type: application/json", "Content-Length: 9"))
        assert code_of(connection.recv(65_536)) == 401


GUARDS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def guarded(answer: httpx2.Response) -> list[str]:
    """What is missing."""
    headers = answer.headers
    gone = [name for name, text in GUARDS.items() if headers.get_list(name) != [text]]
    if "camera=()" not in headers.get("permissions-policy", ""):
        gone.append("permissions-policy")
    kept = headers.get("cache-control", "")
    path = answer.request.url.path
    is_lasting = path.startswith(("/assets/", "/favicon.svg")) or "/tile/" in path or "/checkpoint" in path
    if kept != "no-store" and not (is_lasting and answer.is_success):
        gone.append(f"cache-control: {kept}")
    is_json = headers.get("content-type", "").startswith("application/json")
    policy = headers.get("content-security-policy", "")
    if not is_json and ("default-src" not in policy or "http" in policy or "*" in policy):
        gone.append(f"policy: {policy}")
    return gone


def test_every_answer_is_json_or_carries_our_policy_and_the_guards_s1006(server: Server) -> None:
    """S1006, S1007: every route with every role's answer, pages, files, errors."""
    routes = [
        route
        for route in litestar_app(None, [part.FEATURE for part in parts("feature")]).routes
        if isinstance(route, HTTPRoute)
    ]
    paths: set[tuple[str, str]] = {
        (re.sub(r"\{[^}]+\}", "x", route.path), method) for route in routes for method in route.methods
    }
    paths |= {(path, "POST") for path in ("/v1/messages", "/v1/traces", "/v1/logs", "/mcp")}
    paths |= {("/", "BREW"), ("/nowhere", "GET"), ("/v1/agents", "DELETE"), ("/docs", "GET"), ("/mcp", "GET")}
    paths |= {("/pages/docs.js", "GET"), ("/internal-openapi/redoc", "GET")}
    paths -= {("/v1/kill-switch/x/confirm", "POST")}
    wrong = {}
    for role in ("nobody", "viewer"):
        for path, method in sorted(paths):
            if role == "viewer" and path == "/logout":
                continue
            with server.http(role).stream(method, path) as answer:
                if gone := guarded(answer):
                    wrong[role, method, path] = gone
    assert not wrong, wrong


def test_pages_that_load_scripts_of_strangers_are_gone_s1007(server: Server) -> None:
    for path in ("", "/redoc", "/swagger", "/elements", "/rapidoc", "/openapi.json", "/openapi.yml", "/x"):
        answer = server.http("admin").get(f"/internal-openapi{path}")
        assert answer.status_code == 404 and answer.json()["reason"] == "not_found", path
        assert "<" not in answer.text
