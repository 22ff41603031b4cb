"""OTLP out through public doors: a stranger's process, made of official parts, has every event."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from observatory.protocol.clock import to_ns
from tests.flows.databases import ALONE
from tests.flows.otlp_backend import OtlpBackend
from tests.flows.sender import Sender, certify
from tests.flows.server import Server, observatory
from tests.samples import decision_log, envelope
from tests.waiting import until

Json = dict[str, Any]
WAYS = ("http", "grpc")
SECRET = "planted-otlp-secret"
WORDS = "words of a payload that stay at home"


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtlpBackend]:
    folder = tmp_path_factory.mktemp("backend")
    certify(folder)
    with OtlpBackend(folder) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, backend: OtlpBackend) -> Iterator[Server]:
    tls = backend.ports["tls"]
    environment = ALONE | {
        "OBSERVATORY_EGRESS_ALLOW": f"127.0.0.1,localhost:{tls}",
        "SSL_CERT_FILE": str(backend.folder / "tls.crt"),
    }
    with Server(tmp_path_factory.mktemp("exporting") / "data", environment=environment) as running:
        yield running


@pytest.fixture
def own(gateway: Server, backend: OtlpBackend, tmp_path: Path) -> Iterator[Sender]:
    sender = Sender(gateway, backend, tmp_path / "own")
    backend.mood()
    yield sender
    for one in sender.http.get("/v1/exporters").json()["items"]:
        sender.http.delete(f"/v1/exporters/{one['exporter_id']}")
    backend.mood()
    sender.tenant.stop()


@pytest.mark.req(319, 320, 321, *range(430, 440), 510, 513, 514, 515, 522)
def test_every_event_reaches_every_backend_as_it_is_in_the_record_s560(own: Sender) -> None:
    """S560–S565, S572: both ways, from the start; equal member for member; no payload and no secret shown."""
    own.send(3, cognition={"intent": WORDS})
    own.tenant.send(decision_log(action={"status": "done"}))  # a violation: severity and body of another kind
    own.tenant.send(envelope("heartbeat"))
    headers = {"x-key": SECRET, "authorization": f"Bearer {SECRET}"}
    made = [own.add(way, headers=headers) for way in WAYS]
    own.send(2)
    for one, way in zip(made, WAYS, strict=True):
        received = own.until(one, "caught_up")
        trail = own.trail
        assert own.had(way) == trail, "once each, and whole"
        assert (received["sent"], received["cursor"], received["lag_events"]) == (len(trail), len(trail), 0)
        assert received["headers"] == ["authorization", "x-key"] and SECRET not in str(received)
        requests = [
            one for one in own.backend.requests if one["way"] == way and one["headers"].get("x-key") == SECRET
        ]
        assert requests and all(one["headers"]["authorization"] == f"Bearer {SECRET}" for one in requests)
    assert WORDS not in str(own.backend.requests), "events travel, payloads never"
    requests = [one for one in own.backend.requests if one["way"] == "http"]
    assert requests[-1]["headers"]["path"] == "/v1/logs"
    assert requests[-1]["headers"]["content-encoding"] == "gzip"
    assert requests[-1]["headers"]["content-type"] == "application/x-protobuf"
    assert {1, 5, 9, 10} & {event["severity_number"] for event in own.had()}
    assert SECRET not in own.http.get("/v1/exporters").text
    assert SECRET not in str(own.trail)
    metrics = own.http.get("/metrics").text
    assert "observatory_export_lag_seconds" in metrics and "observatory_export_sent_total" in metrics
    assert own.tenant.tenant_id not in metrics


def test_each_backend_has_what_its_filters_let_through_s563(own: Sender) -> None:
    """S563: types, severity, agents; what is filtered out is counted and never sent."""
    own.add("http", filters={"event_types": ["key_created", "user_created"]}, name="types")
    own.send(1, identity={"agent_id": "ada"})
    own.send(1, identity={"agent_id": "bob"})
    own.add("grpc", filters={"agents": ["ada"]}, name="agents")
    exporters = own.http.get("/v1/exporters").json()["items"]
    types, agents = (own.until(one, "caught_up") for one in exporters)
    assert {event["body"]["event_type"] for event in own.had("http")} == {"key_created", "user_created"}
    assert {event["attributes"].get("av.sender.agent_id") for event in own.had("grpc")} == {"ada"}
    for one in (types, agents):
        assert one["sent"] + one["filtered"] == one["cursor"] and one["filtered"] > 0
    # One that begins now has what tells of its making first, and nothing from before.
    later = own.add("http", name="later", **{"from": "now"}, headers={"x-key": "later"})
    own.until(later, "caught_up")
    first = next(one for one in own.backend.requests if one["headers"].get("x-key") == "later")["events"][0]
    assert first["body"]["event_type"] == "exporter_created" and first["body"]["name"] == "later"


# google.rpc.Status with RetryInfo {retry_delay: {seconds: 5}}, as a gRPC backend says "come again".
AGAIN = b"\x08\x08\x1a\x30\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x04\x0a\x02\x08\x05".hex()
AWAY: dict[str, Json] = {
    "http": {"code": 503, "retry_after": 5},
    "grpc": {"code": "RESOURCE_EXHAUSTED", "details": AGAIN},
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_lost_while_a_backend_is_away_s568(own: Sender, way: str) -> None:
    """S568: it is tried again when it said so; how far it is behind can be seen; resume waits no longer."""
    own.backend.mood(**AWAY[way])
    one = own.add(way)
    own.send(5)
    failing = own.until(one, "failing")
    assert failing["lag_events"] >= 5 and failing["lag_s"] > 0 and failing["sent"] == 0
    again_ns, since_ns = (to_ns(failing[name]) for name in ("next_try_at", "problem_at"))
    assert failing["problem"] and 4.9 < (again_ns - since_ns) / 1e9 < 5.1
    assert "observatory_exporters_failing 1" in own.http.get("/metrics").text
    own.backend.mood()
    own.do(one, "resume")
    assert own.until(one, "caught_up")["failures"] == 0
    assert own.numbers() == list(range(1, len(own.trail) + 1))


@pytest.mark.parametrize("way", WAYS)
def test_what_a_backend_will_never_take_is_found_passed_over_and_told_s567(own: Sender, way: str) -> None:
    """S567: halved until it stands alone; the others arrive, and the record tells of it."""
    own.send(6)
    own.tenant.send(decision_log(action={"status": "done"}))
    own.send(6)
    bad = next(e for e in own.trail if e["body"]["event_type"] == "schema_violation")
    number = bad["hash_chain"]["sequence_number"]
    own.backend.mood(poison="schema_violation")
    one = own.until(own.add(way), "caught_up")
    assert one["refused"] == 1 and one["problem"] is None
    assert number not in own.numbers()
    assert set(own.numbers()) | {number} == set(range(1, one["cursor"] + 1))
    (received,) = [e["body"] for e in own.had() if e["body"]["event_type"] == "export_refused"]
    assert (received["first_sequence"], received["last_sequence"], received["refused"]) == (number, number, 1)
    assert received["exporter_id"] == one["exporter_id"] and received["reason"]
    # And when it tells of refusals that are refused themselves, that is counted and ends.
    own.backend.mood(poison="export_refused")
    own.do(one, "rewind", to=1)
    until(lambda: (now := own.now(one))["refused"] == 2 and now["status"] == "caught_up")
    assert sum(e["body"]["event_type"] == "export_refused" for e in own.trail) == 1


SHUT: list[tuple[str, Json, str]] = [
    ("http", {"code": 401}, "check the headers"),
    ("http", {"code": 404}, "accepts no logs"),
    ("http", {"code": 400}, "answered 400"),
    ("http", {"code": 307, "location": "https://169.254.169.254/"}, "answered 307"),
    ("http", {"kind": "text/html"}, "no OTLP backend"),
    ("grpc", {"code": "UNAUTHENTICATED", "said": f"key {SECRET} is unknown"}, "UNAUTHENTICATED"),
    ("grpc", {"code": "INVALID_ARGUMENT"}, "INVALID_ARGUMENT"),
    ("grpc", {"code": "UNAVAILABLE"}, "cannot be reached"),
]


def test_a_wrong_key_path_or_backend_costs_no_event_s567(own: Sender) -> None:
    """S566, S567: whatever is refused all over is the backend's fault; it waits and says why."""
    own.send(3)
    one: Json | None = None
    for way, mood, received in SHUT:
        own.backend.mood(**mood)
        if one is not None:
            own.http.delete(f"/v1/exporters/{one['exporter_id']}")
        one = own.add(way, name=f"{way} {received}", headers={"x-key": SECRET})
        failing = own.until(one, "failing")
        assert received in failing["problem"], failing
        assert (failing["cursor"], failing["refused"]) == (0, 0)
        assert SECRET not in str(failing), "not even when the backend repeats it"
    assert one is not None
    own.backend.mood()
    own.do(one, "resume")
    own.until(one, "caught_up")
    # A page that answers 200 to everything "took" requests above: it decodes them, but they did not count.
    assert own.numbers("grpc") == list(range(1, len(own.trail) + 1))
    assert not [e for e in own.trail if e["body"]["event_type"] == "export_refused"]


@pytest.mark.parametrize("way", WAYS)
def test_what_was_taken_in_part_is_shown_and_told_s566(own: Sender, way: str) -> None:
    """S566: not sent again, counted, with the backend's reason; it does not echo for ever."""
    own.send(2)
    own.backend.mood(partial=1, said=f"one is too old, {SECRET}")
    one = own.add(way, headers={"x-key": SECRET})
    until(lambda: own.now(one)["refused"] >= 2 and own.now(one)["status"] == "caught_up")
    (body,) = [e["body"] for e in own.trail if e["body"]["event_type"] == "export_refused"]
    assert body["refused"] == 1 and body["first_sequence"] < body["last_sequence"]
    assert body["reason"].startswith("one is too old") and SECRET not in str(own.trail)
    assert len(own.numbers()) == len(set(own.numbers())), "never sent twice for it"


def test_an_exporter_is_steered_by_an_admin_s569(own: Sender) -> None:
    """S569–S571: test, pause, resume, rewind, change and remove; each on record, none shows a secret."""
    one = own.add("http", headers={"x-key": SECRET})
    own.until(one, "caught_up")
    assert own.do(one, "test")["outcome"] == "taken"
    (record,) = [
        event
        for request in own.backend.requests
        for event in request["events"]
        if event["attributes"].get("av.export.test")
        and event["resource"]["av.tenant.id"] == own.tenant.tenant_id
    ]
    assert record["body"]["event_type"] == "export_test"
    assert own.do(one, "pause")["status"] == "paused"
    before = len(own.numbers())
    own.send(3)
    own.backend.mood(code=503)
    assert own.do(one, "test")["outcome"] == "later"
    own.backend.mood()
    assert own.now(one)["lag_events"] >= 3 and len(own.numbers()) == before
    own.do(one, "resume")
    own.until(one, "caught_up")
    own.do(one, "rewind", to=2)
    until(lambda: own.numbers().count(2) == 2)
    assert own.numbers().count(1) == 1
    path = f"/v1/exporters/{one['exporter_id']}"
    assert own.http.post(f"{path}/rewind", json={"to": 10**6}).json()["reason"] == "beyond_the_record"
    changed = own.http.patch(path, json={"name": "renamed", "filters": {"severity_min": 17}})
    assert (changed.json()["name"], changed.json()["filters"]["severity_min"]) == ("renamed", 17)
    assert own.http.get(path).json()["headers"] == ["x-key"], "they stay when not given"
    assert own.http.delete(path).json() == {"exporter_id": one["exporter_id"], "removed": True}
    assert own.http.get(path).status_code == 404
    types = [e["body"]["event_type"] for e in own.trail if e["body"]["event_type"].startswith("exporter_")]
    assert types == [
        *("exporter_created", "exporter_changed", "exporter_changed", "exporter_rewound"),
        *("exporter_changed", "exporter_removed"),
    ]
    assert SECRET not in str(own.trail)


def test_over_tls_the_name_is_checked_and_the_address_is_the_one_looked_at_s562(own: Sender) -> None:
    """S562: under its name it is trusted; under its bare address its certificate says nothing of it."""
    port = own.backend.ports["tls"]
    one = own.add("grpc", url=f"https://localhost:{port}", headers={"x-key": "tls"})
    own.until(one, "caught_up")
    assert own.do(one, "test")["outcome"] == "taken"
    assert len(own.backend.events(x_key="tls")) > 1
    bare = own.add("grpc", url=f"https://127.0.0.1:{port}", name="bare", headers={"x-key": "bare"})
    assert own.do(bare, "test")["outcome"] == "later"
    assert own.backend.events(x_key="bare") == []


BAD: list[tuple[Json, str]] = [
    ({"url": "http://otlp.example"}, "bad_url"),
    ({"url": "https://otlp.example:4317"}, "bad_url"),
    ({"url": "https://otlp.example/v1/logs?key=x"}, "bad_url"),
    ({"url": "https://u:p@otlp.example"}, "bad_url"),
    ({"url": "https://localhost:8443"}, "bad_url"),
    ({"url": "https://otlp.example/path", "protocol": "grpc"}, "bad_url"),
    ({"headers": {"host": SECRET}}, "bad_request"),
    ({"headers": {"x": f"{SECRET}\n"}}, "bad_request"),
    ({"filters": {"event_types": ["mesage_delivered"]}}, "bad_request"),
    ({"filters": {"severity_min": 25}}, "bad_request"),
    ({"from": 0}, "bad_request"),
    ({"from": "yesterday"}, "bad_request"),
    ({"protocol": "carrier pigeon"}, "bad_request"),
    ({"name": " "}, "bad_request"),
    ({"colour": "blue"}, "bad_request"),
]


def test_what_cannot_be_an_exporter_is_refused_with_a_sentence_s562(own: Sender) -> None:
    """S562, S564: and never with a value of what was said; inner addresses are refused when it is asked."""
    body = {"name": "bad", "url": "https://otlp.example"}
    for more, reason in BAD:
        answer = own.http.post("/v1/exporters", json=body | more)
        assert (answer.status_code, answer.json()["reason"]) == (422, reason), (more, answer.text)
        assert SECRET not in answer.text
    for way in WAYS:
        inner = own.add(way, url="https://169.254.169.254", name=f"inner {way}")
        tested = own.do(inner, "test")
        assert tested["outcome"] == "later" and "not a public one" in tested["detail"]


def test_the_terminal_does_what_the_doors_do_s573(own: Sender) -> None:
    """S573: secrets come from the environment or a file, never from the command line."""
    data, url = ("--data", str(own.tenant.folder)), own.backend.http
    environment = {"OTLP_KEY": SECRET}

    def run(*words: str, code: int = 0) -> str:
        done = observatory("exporters", *words, *data, environment=environment)
        assert done.returncode == code, done.stderr
        assert SECRET not in done.stdout + done.stderr
        return done.stdout + done.stderr

    run("add", "grafana", url, "--header", "x-key=env:OTLP_KEY", "--from", "start", "--severity", "5")
    assert "never a secret on the command line" in run("add", "x", url, "--header", f"x={'y' * 9}", code=2)
    (one,) = own.http.get("/v1/exporters").json()["items"]
    own.until(one, "caught_up")
    assert "grafana" in run("list") and "caught_up" in run("list")
    assert "the backend accepted it" in run("test", "grafana")
    assert "x-key" in run("show", "grafana")
    run("pause", "grafana")
    run("change", "grafana", "--name", "loki", "--event", "message_delivered")
    run("resume", "loki")
    assert "use --yes" in run("rewind", "loki", "1", code=2)
    run("rewind", "loki", "1", "--yes")
    run("remove", "loki", "--yes")
    assert run("list").strip().endswith("No exporters")
    assert own.backend.events(x_key=SECRET)


def test_the_smallest_backend_hears_every_event_s574(own: Sender) -> None:
    """S574: the example beside the collector file, as the guide has it: a line for each event."""
    command = [sys.executable, "examples/otel-collector/listen.py", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout is not None
        made = own.add("http", url=listener.stdout.readline().split()[-1])
        heard = [listener.stdout.readline().split() for _ in range(made["lag_events"])]
        listener.terminate()
    assert sorted(int(line[0]) for line in heard) == list(range(1, len(heard) + 1))
    assert {line[2] for line in heard} == {own.tenant.tenant_id}
    assert {"key_created", "exporter_created"} <= {line[3] for line in heard}


@pytest.mark.req(507)
def test_a_collector_beside_the_gateway_has_the_record_by_the_line_in_its_file_s574(own: Sender) -> None:
    """S573, S574: the command in the file names port and protocol of the receiver below it."""
    text = Path("examples/otel-collector/otel-collector-config.yaml").read_text()
    (line,) = re.findall(r"observatory (exporters add collector .*)", text)
    words = line.split()
    way, address = words[words.index("--way") + 1], words.index("http://localhost:4317")
    assert f"{way}:\n        endpoint: 0.0.0.0:4317\n" in text
    words[address] = getattr(own.backend, way)
    done = observatory(*words, "--data", str(own.tenant.folder))
    assert done.returncode == 0, done.stderr
    (made,) = own.http.get("/v1/exporters").json()["items"]
    own.send(2)
    own.until(made, "caught_up")
    assert own.had(way) == own.trail


@pytest.mark.req(515)
def test_a_killed_exporter_goes_on_without_a_gap_s565(
    gateway: Server, backend: OtlpBackend, tmp_path: Path
) -> None:
    """S565: kill -9 while both ways are at work; every number is there, some perhaps twice."""
    backend.mood()
    own = Sender(gateway, backend, tmp_path / "killed")
    for way in WAYS:
        own.add(way)
    for _ in range(2):
        lines = [json.dumps(decision_log()).encode() for _ in range(250)]
        own.tenant.send_lines(lines)
        until(lambda: len(own.numbers("http")) > 50)
        own.tenant.stop()  # only closes its connections
        gateway.restart(kill=True)
        own.tenant.url = gateway.url
        own.http = own.tenant.http("admin")
    for one in own.http.get("/v1/exporters").json()["items"]:
        cursor = own.until(one, "caught_up")["cursor"]
        assert set(own.numbers(one["protocol"])) == set(range(1, cursor + 1))
    assert SECRET not in gateway.log
    own.tenant.stop()
