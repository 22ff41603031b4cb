"""A peer's key is followed by another: by what its own log tells, by an admin's word, and by nothing else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from observatory.features.transparency import commands_federation as federation
from observatory.features.transparency import commands_key_rotation as succession
from observatory.features.transparency.worker_federation import read_peer_checkpoint
from observatory.ledger import key_rotation as rotations
from observatory.ledger import merkle, note
from observatory.ledger.note import BadNote, Signer
from observatory.pipeline.state import HOME_TENANT, Principal, SubmissionResult
from observatory.runtime.outbound_http import OutboundResponse
from tests.contract import test_witnesses
from tests.contract.conftest import Harness, SqliteHarness
from tests.contract.peering import ORIGIN, PeerLog, add, ask, received
from tests.contract.rotating import Rotating

GATEWAY_PRINCIPAL = Principal(tenant_id=HOME_TENANT, role="admin", key_id="sys_gateway")
DEEP = b"[" * 3_000 + b"]" * 3_000


def follow(harness: Harness, vkey: str, proof: bytes) -> SubmissionResult:
    """As the door does it: under the key that is known."""
    received = rotations.read(proof)
    shown = read_peer_checkpoint(received.checkpoint, vkey)
    (verdict,) = harness.submit(succession.follow(GATEWAY_PRINCIPAL, shown, received, harness.now()))
    return verdict


def key_of(harness: Harness) -> str:
    (row,) = harness.read(harness.store.rows(HOME_TENANT, "peers", removed_ns=None))
    return str(row["vkey"])


@pytest.mark.req(512)
def test_a_key_its_own_log_tells_of_is_followed_s600(harness: Harness) -> None:
    """S600: under the head cosigned last; the head stays, the old key is no key any more, once is enough."""
    log = Rotating()
    add(harness, log)
    ask(harness, log, log.offer(0, 8))
    assert follow(harness, log.vkey, log.shown(8)).code == 200
    assert key_of(harness) == log.new.vkey
    assert follow(harness, log.new.vkey, log.shown(8)).code == 200, "again: nothing is changed"
    assert received(harness, "peer_key_changed") == 1
    event = next(one for one in harness.trail_of() if b"peer_key_changed" in one.record)
    body = json.loads(event.record)["body"]
    assert (body["vouched_by"], body["previous_vkey"], body["vkey"]) == ("log", log.vkey, log.new.vkey)
    (head,) = harness.read(harness.store.rows(HOME_TENANT, "peer_heads"))
    assert (head["size"], bytes(head["root"])) == tuple(log.head(8))
    assert ask(harness, log, log.offer(8, 9)).code == 404, "by the old key nothing is cosigned"
    successor = Rotating()
    successor.signer = log.new
    assert ask(harness, successor, successor.offer(0, 3)).code == 409, "nor rolled back by the new one"
    assert ask(harness, successor, successor.offer(8, 9)).code == 200


def test_what_vouches_for_nothing_is_not_followed_s601(harness: Harness) -> None:
    """S601: a line beside the old key's, an event elsewhere, of another kind, name or key; an older head."""
    log, thief = Rotating(), Signer(ORIGIN, sha256(b"a thief").digest())
    add(harness, log)
    ask(harness, log, log.offer(0, 8))
    other = note.vkey("other.example/log", thief.public_key)
    low = note.vkey(ORIGIN, bytes(32))
    bent = [
        Rotating(vkey=thief.vkey),  # the event is not the one in the tree
        Rotating(vkey=other),
        Rotating(vkey=low),
        Rotating(vkey="nonsense"),
        Rotating(vkey=note.vkey(ORIGIN, thief.public_key, note.COSIGNATURE)),
        Rotating(previous_vkeys=[thief.vkey]),
    ]
    for one in bent:
        proof = log.shown(8, extra=one.record)
        assert follow(harness, log.vkey, proof).code == 422
    hashes = merkle.inclusion_proof(log.leaves(8), 5)
    for wrong in (hashes[:-1], [*hashes, bytes(32)], [bytes(32), *hashes[1:]], []):
        assert follow(harness, log.vkey, log.shown(8, hashes=wrong)).code == 422
    for malformed in (
        log.shown(8, index=4),
        log.shown(8, extra=b""),
        log.shown(8, extra=b"{}"),
        log.shown(8, extra=Rotating(event_type="setting_changed").record),
        log.shown(8, extra=Rotating(previous_vkeys=[]).record),
        log.shown(8).replace(b"extra ", b"extra !"),
        b"nonsense",
        # Read before any signature is looked at, so from anybody: no text, and nested without end.
        log.shown(8, extra=log.record.replace(b'"resource":{', b'"resource":{"a":"\xff",', 1)),
        log.shown(8, extra=log.record.replace(b'"resource":{', b'"resource":{"a":' + DEEP + b",", 1)),
    ):
        with pytest.raises(BadNote):
            follow(harness, log.vkey, malformed)
    forged = note.sign(note.checkpoint(ORIGIN, *log.head(8)), [thief, log.new])
    with pytest.raises(BadNote):
        follow(harness, log.vkey, log.shown(8, checkpoint=forged))
    for size in (7, 9):
        verdict = follow(harness, log.vkey, log.shown(size))
        assert (verdict.code, verdict.answer) == (409, 8), "not the head that was cosigned"
    forked = Rotating(fork=7)
    assert follow(harness, log.vkey, forked.shown(8)).code == 409, "of this size, with another root"
    assert key_of(harness) == log.vkey and received(harness, "peer_key_changed") == 0


def test_an_old_rotation_shown_again_leads_nowhere_s601(harness: Harness) -> None:
    """S601: after the key was followed twice the first proof is under a key that is known no more."""
    log = Rotating()
    peer = add(harness, log).answer
    ask(harness, log, log.offer(0, 8))
    follow(harness, log.vkey, log.shown(8))
    third = note.vkey(ORIGIN, Signer(ORIGIN, sha256(b"the third").digest()).public_key)
    change = succession.change_key(harness.admin(), peer["peer_id"], third, harness.now())
    assert harness.submit(change)[0].code == 200
    with pytest.raises(BadNote):
        follow(harness, key_of(harness), log.shown(8))
    seen = rotations.read(log.shown(8))
    shown = read_peer_checkpoint(seen.checkpoint, log.vkey)
    (verdict,) = harness.submit(succession.follow(GATEWAY_PRINCIPAL, shown, seen, harness.now()))
    assert verdict.code == 404 and key_of(harness) == third


def test_an_admin_lets_a_key_follow_and_the_head_stays_s602(harness: Harness) -> None:
    """S602: audited as such; another name, another use or nobody is refused; nothing goes back."""
    log, after = PeerLog(), PeerLog(seed=b"the next key")
    peer = add(harness, log).answer
    ask(harness, log, log.offer(0, 5))

    def change(vkey: str, peer_id: str = peer["peer_id"]) -> SubmissionResult:
        return harness.submit(succession.change_key(harness.admin(), peer_id, vkey, harness.now()))[0]

    assert change(PeerLog("other.example/log").vkey).code == 422
    assert change(note.vkey(ORIGIN, after.signer.public_key, note.COSIGNATURE)).code == 422
    assert change(after.vkey, "per_nobody").code == 404
    assert change(log.vkey).code == 200 and received(harness, "peer_key_changed") == 0, "the same again"
    assert change(after.vkey).code == 200
    event = next(one for one in harness.trail_of() if b"peer_key_changed" in one.record)
    assert json.loads(event.record)["body"]["vouched_by"] == "admin"
    assert ask(harness, log, log.offer(5, 8)).code == 404
    assert ask(harness, after, after.offer(0, 3)).code == 409
    assert ask(harness, after, PeerLog(seed=b"the next key", fork=2).offer(5, 5)).code == 422
    assert received(harness, "peer_fork_detected") == 1, "what was cosigned is held against the new key too"
    assert ask(harness, after, after.offer(5, 8)).code == 200
    harness.submit(federation.remove_peer(harness.admin(), peer["peer_id"], harness.now()))
    assert change(log.vkey).code == 404


class Follower(test_witnesses.Witness):
    """The other house's witness with its second door."""

    async def post(self, url: str, body: bytes) -> OutboundResponse:
        try:
            if url.endswith("/add-checkpoint"):
                return await super().post(url, body)
            assert url == f"{test_witnesses.URL}/follow-key"
            seen = rotations.read(body)
            (peer,) = await self.harness.store.rows(HOME_TENANT, "peers")
            shown = read_peer_checkpoint(seen.checkpoint, peer["vkey"])
        except BadNote:
            return OutboundResponse(403, "application/json", b"")
        (verdict,) = self.harness.submit(
            succession.follow(GATEWAY_PRINCIPAL, shown, seen, self.harness.now())
        )
        return OutboundResponse(verdict.code, "text/plain", b"")


@pytest.fixture
def theirs(tmp_path: Path, sqlite_template: Path) -> Iterator[SqliteHarness]:
    path = tmp_path / "theirs.db"
    shutil.copyfile(sqlite_template, path)
    harness = SqliteHarness(path)
    harness.open()
    harness.create_tenant(HOME_TENANT)
    yield harness
    harness.end()


@pytest.mark.req(512)
def test_a_witness_is_led_from_key_to_key_s603(
    harness: Harness, theirs: SqliteHarness, tmp_path: Path
) -> None:
    """S603: after rotations it did not see, by what our log tells; figures say how it answers."""
    side = test_witnesses.Side(harness, theirs, tmp_path / "keys")
    side.wire = Follower(theirs)
    side.start()
    assert side.offer().state == "cosigned"
    first = key_of(theirs)
    for _ in range(2):
        harness.read(side.log_sealer.sealer.rotate(harness.admin()))
        side.log_sealer.look()
        side.say(2)
    assert side.offer().state == "cosigned"
    ring = side.log_sealer.sealer.keyring
    assert ring is not None
    assert first != key_of(theirs) == note.vkey(test_witnesses.US, ring.public_key)
    assert received(theirs, "peer_key_changed") == 2 and received(theirs, "peer_fork_detected") == 0
    kept = side.log_sealer.checkpoint()
    assert kept is not None and side.cosigned == kept.size
    harness.read(side.log_sealer.sealer.rotate(harness.admin()))
    side.log_sealer.look()
    assert side.offer().state == "cosigned" and received(theirs, "peer_key_changed") == 3, "shown at once"
    side.look()
    figures = {one.name + one.labels.get("state", ""): one.value for one in side.federation.measures()}
    assert (figures["observatory_peerscosigned"], figures["observatory_peer_forks"]) == (1, 0)
    assert 0 <= figures["observatory_peer_cosignature_age_seconds"] < 60


def test_a_key_that_was_lost_is_not_led_to_s603(
    sqlite_harness: SqliteHarness, theirs: SqliteHarness, tmp_path: Path
) -> None:
    """S603: no event of the old key's log names the new one; it takes an admin's word over there."""
    side = test_witnesses.Side(sqlite_harness, theirs, tmp_path / "keys")
    side.wire = Follower(theirs)
    side.start()
    side.offer()
    side.log_sealer.path.unlink()
    side.start(accepts=True)
    side.say(2)
    assert side.log_sealer.checkpoint() is not None
    assert side.offer().state == "refused" and received(theirs, "peer_key_changed") == 0
    (peer,) = theirs.read(theirs.store.rows(HOME_TENANT, "peers"))
    ring = side.log_sealer.sealer.keyring
    assert ring is not None
    vkey = note.vkey(test_witnesses.US, ring.public_key)
    theirs.submit(succession.change_key(theirs.admin(), peer["peer_id"], vkey, theirs.now()))
    assert side.offer().state == "cosigned"
