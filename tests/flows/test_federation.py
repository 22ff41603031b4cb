"""Federation through public doors: gateways witness each other, one forks, and no head ever goes back."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from observatory.features.transparency.commands_federation import witness_of
from observatory.ledger import note, tlog_proof, witness
from observatory.ledger.witness import CheckpointOffer
from tests.contract.peering import ORIGIN, PeerLog
from tests.flows.databases import ALONE
from tests.flows.hand import answer, done, refused
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log
from tests.waiting import until

Json = dict[str, Any]
OPEN = ALONE | {"OBSERVATORY_EGRESS_ALLOW": "127.0.0.1"}
HOME = "tnt_default"
KILLS = 4


@pytest.fixture
def own(server: Server, tmp_path: Path) -> Iterator[Tenant]:
    made = Tenant(server, tmp_path / "own")
    yield made
    made.stop()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """Two gateways that know each other."""
    with (
        Server(tmp_path / "ours", environment=OPEN) as ours,
        Server(tmp_path / "theirs", environment=OPEN) as theirs,
    ):
        know(ours, theirs)
        know(theirs, ours)
        yield ours, theirs


def door(server: Server, tenant_id: str = HOME) -> str:
    return f"{server.url}/v1/witness/{tenant_id}"


def signed(server: Server) -> Json:
    def look() -> Json:
        found: Json = server.http("admin").get("/v1/audit/log").json()
        return found if found["state"] == "signed" else {}

    return until(look)


def know(server: Server, peer: Server) -> None:
    vkey = signed(peer)["vkey"]
    body = {"name": "peer", "vkey": vkey, "url": door(peer)}
    made = server.http("admin").post("/v1/peers", json=body)
    assert made.status_code == 201, made.text


def peer_of(server: Server) -> Json:
    (found,) = server.http("admin").get("/v1/peers").json()["items"]
    return dict(found)


def offer(server: Server) -> Json:
    """On demand; as the list shows the peer afterwards."""
    signed(server)
    answer = server.http("admin").post(f"/v1/peers/{peer_of(server)['peer_id']}/offer")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def events(server: Server, kind: str) -> list[Json]:
    found = server.http("admin").get("/v1/audit/tenant", params={"limit": 1000}).json()["items"]
    return [event["body"] for event in found if event["body"]["event_type"] == kind]


def post(server: Server, body: bytes, tenant_id: str = HOME) -> httpx2.Response:
    return server.http("nobody").post(f"{door(server, tenant_id)}/add-checkpoint", content=body)


def say(server: Server, count: int = 1) -> None:
    for _ in range(count):
        assert server.send(decision_log()).status_code == 202


@pytest.mark.req(461, 512)
def test_two_gateways_witness_each_other_s430(pair: tuple[Server, Server]) -> None:
    """S430, S434, S603, S604: each cosigns for the other; checkpoint, proof and list show it; strangers can
    check it; a key that follows is followed over there; the terminal does what the doors do.
    """
    ours, theirs = pair
    for server in pair:
        say(server, 2)
        assert offer(server)["asked"]["state"] == "cosigned"
    for server, other in (pair, pair[::-1]):
        log, peer = server.http("admin").get("/v1/audit/log").json(), peer_of(server)
        assert log["witnessed"]["size"] == peer["cosigned_size"]
        (seen,) = log["witnessed"]["witnesses"]
        own = other.http("admin").get("/v1/peers").json()["witness"]
        assert (seen["name"], peer["witness_vkey"]) == (own["name"], own["vkey"])
        keys = [note.Verifier.from_vkey(text) for text in (log["vkey"], own["vkey"])]
        _, names = note.open(log["witnessed"]["checkpoint"].encode(), keys)
        assert names == [key.name for key in keys], "ours, and theirs under it"
        head = peer_of(other)["head"]
        assert head["size"] == peer["cosigned_size"]
        kept = httpx2.get(f"{door(other)}/{witness.log_id_of(log['origin'])}/checkpoint", trust_env=False)
        assert kept.text == head["checkpoint"]
        assert note.open(kept.content, keys)[1] == [key.name for key in keys]
        assert events(other, "checkpoint_witnessed")[0]["origin"] == log["origin"]
    first = ours.http("admin").get("/v1/audit/tenant", params={"limit": 1000}).json()["items"][-1]
    path = f"/v1/audit/proof/{first['audit_event_id']}"
    file = ours.http("viewer").get(path, params={"format": "tlog-proof", "witnessed": "true"})
    _, _, checkpoint = tlog_proof.read(file.content)
    assert note.open(checkpoint, [witness_of(peer_of(ours)["vkey"])])[1] == [own_name(theirs)]
    say(ours)
    newest = ours.http("admin").get("/v1/audit/tenant", params={"limit": 1}).json()["items"][0]
    late = ours.http("viewer").get(f"/v1/audit/proof/{newest['audit_event_id']}?witnessed=true")
    assert (late.status_code, late.json()["reason"]) == (409, "not_witnessed")
    rotated(ours, theirs)
    at_the_terminal(ours, theirs)


def rotated(ours: Server, theirs: Server) -> None:
    """S603: a key that followed ours is believed over there by the next offer, whatever was said between."""
    old = peer_of(theirs)["vkey"]
    new = ours.http("admin").post("/v1/audit/log/rotate").json()["vkey"]
    until(lambda: ours.http("admin").get("/v1/audit/log").json()["vkey"] == new and signed(ours))
    say(ours, 2)
    assert offer(ours)["asked"]["state"] == "cosigned"
    assert old != peer_of(theirs)["vkey"] == new
    (received,) = events(theirs, "peer_key_changed")
    assert (received["vouched_by"], received["previous_vkey"], received["vkey"]) == ("log", old, new)
    (rotation,) = events(ours, "log_key_rotated")
    assert rotation["vkey"] == new and received["rotation_event_id"]
    figures = ours.http("admin").get("/metrics").text
    assert 'observatory_peers{state="cosigned"}' in figures and "observatory_peer_forks 0" in figures


def at_the_terminal(ours: Server, theirs: Server) -> None:
    """S604: what the doors do, and what a peer needs of us in two lines."""
    mine = answer(ours, "peers", "own")
    assert mine == {"vkey": signed(ours)["vkey"], "witness": door(ours)}
    assert f"witness  {door(ours)}" in done(ours, "peers", "own")
    (line,) = done(theirs, "peers", "list").splitlines()[1:]
    assert line.split("\t")[1] == "peer" and line.split("\t")[4] == str(peer_of(theirs)["head"]["size"])
    shown = done(theirs, "peers", "show", "peer")
    assert mine["vkey"] in shown and "cosigned here" in shown and "— " in shown
    assert "peer: cosigned; " in done(ours, "peers", "offer", "peer")
    assert "Trust peer by this key" in refused(theirs, "peers", "key", "peer", mine["vkey"], code=2)
    assert "another name" in refused(theirs, "peers", "key", "peer", PeerLog().vkey, "--yes")
    assert answer(theirs, "peers", "key", "peer", mine["vkey"], "--yes")["vkey"] == mine["vkey"]
    log, forked = PeerLog(), PeerLog(fork=3)
    assert "peer low added" in done(theirs, "peers", "add", "low", log.vkey)
    for shows in (log, forked):
        post(theirs, witness.write(shows.offer(0, 5)))
    assert "\tfork" in done(theirs, "peers", "list")
    assert "FORK: two roots" in done(theirs, "peers", "show", "low")
    assert "peer low removed" in done(theirs, "peers", "remove", "low", "--yes")
    assert "low not found" in refused(theirs, "peers", "show", "low")


def own_name(server: Server) -> str:
    return str(server.http("admin").get("/v1/peers").json()["witness"]["name"])


@pytest.mark.req(512)
def test_a_gateway_restored_whole_is_stopped_by_its_witness_s433(
    pair: tuple[Server, Server], tmp_path: Path
) -> None:
    """S433, S425: on start; a fork signed while the witness was away is told there, not gone on with."""
    ours, theirs = pair
    say(ours, 2)
    offer(ours)
    ours.stop()
    copy = tmp_path / "copy"
    shutil.copytree(ours.folder, copy)
    ours.start()
    say(ours, 3)
    assert offer(ours)["asked"]["state"] == "cosigned"
    size = peer_of(ours)["cosigned_size"]

    def restore() -> None:
        ours.stop()
        shutil.rmtree(ours.folder)
        shutil.copytree(copy, ours.folder)

    restore()
    ours.start()
    state = until(lambda: ours.http("admin").get("/v1/audit/log").json()["detail"])
    assert f"{size:,} events were signed" in state and "--accept-rollback" in state
    assert ours.send(decision_log()).status_code == 202, "what is sent is stored all the same"
    restore()
    theirs.stop()
    ours.start()
    say(ours, 9)
    signed(ours)
    theirs.start()
    assert offer(ours)["asked"]["state"] == "refused"
    say(ours)
    until(lambda: ours.http("admin").get("/v1/audit/log").json()["state"] == "refused")
    (received,) = events(theirs, "peer_fork_detected")
    assert (
        received["kind"] == "inconsistent" and received["known"]["size"] == size < received["shown"]["size"]
    )
    fork = peer_of(theirs)["fork"]
    assert (fork["kind"], fork["size"]) == ("inconsistent", received["shown"]["size"])


def test_every_code_of_the_protocol_at_the_door_s423(own: Tenant) -> None:
    """S423, S427: exactly the standard's; who is not known learns nothing, nor does another tenant."""
    log, impostor = PeerLog(), PeerLog(seed=b"impostor")
    tenant_id = own.tenant_id

    def code(offered: CheckpointOffer | bytes, tenant: str = tenant_id) -> int:
        body = offered if isinstance(offered, bytes) else witness.write(offered)
        return post(own, body, tenant).status_code

    unknown = post(own, witness.write(log.offer(0, 5)), tenant_id)
    nowhere = post(own, witness.write(log.offer(0, 5)), "tnt_nowhere")
    assert (unknown.status_code, unknown.content) == (404, nowhere.content)
    made = own.http("admin").post("/v1/peers", json={"name": "them", "vkey": log.vkey})
    assert made.status_code == 201
    assert code(log.offer(0, 5)) == 200
    assert code(log.offer(0, 5), HOME) == 404, "known to this tenant only"
    answer = post(own, witness.write(log.offer(3, 8)), tenant_id)
    assert (answer.status_code, answer.text) == (409, "5\n")
    assert answer.headers["content-type"] == "text/x.tlog.size"
    assert code(CheckpointOffer(5, [], log.checkpoint(8))) == 422
    assert code(PeerLog(fork=1).offer(5, 5)) == 422
    assert code(log.offer(9, 8)) == 400
    assert code(CheckpointOffer(5, log.proof(5, 8), impostor.checkpoint(8))) == 403
    assert code(CheckpointOffer(5, [], log.checkpoint(5)[:-9] + b"AAAAAAAA\n")) in (400, 403)
    both = log.checkpoint(8) + impostor.checkpoint(8).rpartition(b"\n\n")[2]
    assert code(CheckpointOffer(5, log.proof(5, 8), both)) == 200, (
        "lines of keys that are not known are passed over"
    )
    for nonsense in (b"", b"{}", b"\xff" * 99, b"old 5\n\n", b"old 8\n\nnot a note", b"old 8\n\n\n\n"):
        assert code(nonsense) == 400, nonsense
    assert code(b"x" * 100_000) == 413
    assert len(events(own, "checkpoint_witnessed")) == 2
    assert [one["kind"] for one in events(own, "peer_fork_detected")][-1] in ("inconsistent", "fork")


def test_of_64_that_race_at_the_door_none_makes_it_go_back_s422(own: Tenant) -> None:
    """S422: all at once from threads; the heads that were cosigned are one growing line."""
    log = PeerLog()
    own.http("admin").post("/v1/peers", json={"name": "them", "vkey": log.vkey})
    bodies = {(old, size): witness.write(log.offer(old, size)) for old in (0, 7, 20) for size in (7, 20, 31)}
    pairs = [pair for pair in bodies if pair[0] <= pair[1]]
    start, codes = threading.Barrier(16), list[int]()

    def race(number: int) -> None:
        with httpx2.Client(base_url=own.url, trust_env=False) as client:
            start.wait()
            for turn in range(4):
                body = bodies[pairs[(number + turn) % len(pairs)]]
                answer = client.post(f"/v1/witness/{own.tenant_id}/add-checkpoint", content=body)
                codes.append(answer.status_code)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(codes) == 64 and set(codes) <= {200, 409} and 200 in codes
    sizes = [event["size"] for event in reversed(events(own, "checkpoint_witnessed"))]
    assert sizes == sorted(set(sizes)), "each once, in order"
    assert peer_of(own)["head"]["size"] == sizes[-1]


def is_more(got: list[Any], count: int) -> bool:
    return len(got) > count


def test_a_witness_that_is_killed_never_cosigns_two_histories_s422(fresh_server: Server) -> None:
    """S422: two histories race for its signature while it is killed; all it ever signed is one of them."""
    log, forked = PeerLog(), PeerLog(fork=10)
    server = fresh_server
    server.http("admin").post("/v1/peers", json={"name": "them", "vkey": log.vkey})
    assert post(server, witness.write(log.offer(0, 10))).status_code == 200
    got: list[tuple[PeerLog, int]] = []
    over = threading.Event()

    def press(history: PeerLog) -> None:
        old, size = 10, 11
        while not over.wait(0.03):
            try:
                body = witness.write(history.offer(old, size))
                answer = httpx2.post(f"{door(server)}/add-checkpoint", content=body, trust_env=False)
            except httpx2.HTTPError:
                continue
            if answer.status_code == 200:
                got.append((history, size))
                old, size = size, size + 1
            elif answer.status_code == 409:
                old = min(int(answer.text), size)
                size = max(size, old + 1)

    threads = [threading.Thread(target=press, args=(one,)) for one in (log, forked)]
    for thread in threads:
        thread.start()
    for _ in range(KILLS):
        before = len(got)
        until(partial(is_more, got, before))
        server.restart(kill=True)
    over.set()
    for thread in threads:
        thread.join()
    assert len({history for history, _ in got}) == 1, "one of the two, from its first signature on"
    winner, sizes = got[0][0], [size for _, size in got]
    assert sizes == sorted(set(sizes)), "and it only grew"
    head = peer_of(server)["head"]
    assert head["size"] >= sizes[-1]
    text, _ = note.open(head["checkpoint"].encode(), [note.Verifier.from_vkey(log.vkey)])
    assert note.parse_checkpoint(text) == (ORIGIN, *winner.head(head["size"]))
    assert server.http("admin").post("/v1/audit/verify", json={}).json()["valid"]


LOW = "peer.example/log"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"vkey": "nonsense"}, "bad_key"),
        ({"vkey": PeerLog().vkey[:-4] + "AAAA"}, "bad_key"),
        ({"vkey": PeerLog().vkey.replace("peer", "poor")}, "bad_key"),
        ({"url": "http://peer.example/v1"}, "bad_url"),
        ({"url": "https://peer.example:22/v1"}, "bad_url"),
        ({"log_url": "https://u:p@peer.example/v1"}, "bad_url"),
        ({"name": ""}, "bad_request"),
        ({"name": "a\nb"}, "bad_request"),
        ({"more": 1}, "bad_request"),
    ],
)
def test_what_cannot_be_a_peer_is_refused_s420(own: Tenant, body: Json, reason: str) -> None:
    """S420, S429: with a sentence; nothing is written."""
    whole = {"name": "them", "vkey": PeerLog().vkey} | body
    answer = own.http("admin").post("/v1/peers", json=whole)
    assert (answer.status_code, answer.json()["reason"]) == (422, reason), answer.text
    assert own.http("admin").get("/v1/peers").json()["items"] == []


def test_a_key_of_low_order_or_of_ones_own_is_no_peer_s420(own: Tenant) -> None:
    """S420: anything would verify under the one; by the other one would witness oneself."""
    for point in (bytes(32), (1).to_bytes(32, "little"), (2**255 - 20).to_bytes(32, "little")):
        answer = own.http("admin").post("/v1/peers", json={"name": "low", "vkey": note.vkey(LOW, point)})
        assert (answer.status_code, answer.json()["reason"]) == (422, "bad_key")
        assert "low order" in answer.json()["detail"]
    mine = {"name": "me", "vkey": signed(own)["vkey"]}
    assert own.http("admin").post("/v1/peers", json=mine).json()["reason"] == "bad_key"


def test_an_address_within_is_not_asked_s429(own: Tenant) -> None:
    """S429: this gateway lists no host, so its own loopback is out of a tenant's reach."""
    body = {"name": "them", "vkey": PeerLog().vkey, "url": "https://127.0.0.1:8443/v1/witness/tnt_1"}
    named = own.http("admin").post("/v1/peers", json=body | {"url": "https://localhost:8443/v1"})
    assert (named.status_code, named.json()["reason"]) == (422, "bad_url")
    assert own.http("admin").post("/v1/peers", json=body).status_code == 201
    said = offer(own)["asked"]
    assert said["state"] == "unreachable" and "not a public one" in said["detail"]


def test_lines_of_the_record_tell_who_added_and_removed_a_peer_s420(own: Tenant) -> None:
    """S420: both are events."""
    made = own.http("admin").post("/v1/peers", json={"name": "them", "vkey": PeerLog().vkey}).json()
    assert own.http("admin").delete(f"/v1/peers/{made['peer_id']}").json()["removed"] is True
    for kind in ("peer_added", "peer_removed"):
        (received,) = events(own, kind)
        assert (received["origin"], received["peer_id"]) == (ORIGIN, made["peer_id"]), json.dumps(received)
