"""Our side of federation over two houses: what is offered, kept, believed, and what stops the sealer."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from observatory.features.transparency import commands_federation as federation
from observatory.features.transparency import worker_federation as daemon
from observatory.features.transparency.commands_federation import witness_name, witness_of
from observatory.features.transparency.worker_federation import Federation, read_peer_checkpoint
from observatory.ledger import merkle, note, witness
from observatory.ledger.note import Cosigner
from observatory.pipeline.state import HOME_TENANT, Principal
from observatory.runtime.outbound_http import OutboundError, OutboundHttp, OutboundResponse
from observatory.runtime.worker_context import WorkerContext
from tests.contract.conftest import Harness, SqliteHarness
from tests.contract.peering import PeerLog, received
from tests.contract.sealing import NAME, Keeper, LogSealer
from tests.samples import decision_log

US = f"{NAME}/{HOME_TENANT}"
THEM = "them.example/log/tnt_default"
KEY = bytes(range(32))
LOG_URL = "https://third.example/log"
URL = "https://them.example/v1/witness/tnt_default"


class Witness(OutboundHttp):
    """Another house's witness at the other end of the wire: its real acts, without the wire."""

    def __init__(self, harness: Harness) -> None:
        super().__init__()
        self.harness, self.asked, self.is_away, self.lie, self.shows = harness, 0, False, 0, b""

    async def post(self, url: str, body: bytes) -> OutboundResponse:
        assert url == f"{URL}/add-checkpoint"
        if self.is_away:
            raise OutboundError("the peer cannot be reached")
        self.asked += 1
        if self.lie:
            return OutboundResponse(409, witness.SIZE_TYPE, b"%d\n" % self.lie)
        offer = witness.read(body)
        (peer,) = await self.harness.store.rows(HOME_TENANT, "peers")
        shown = read_peer_checkpoint(offer.note, peer["vkey"])
        who = Principal(tenant_id=HOME_TENANT, role="admin", key_id="sys_gateway")
        signer = Cosigner(witness_name(THEM), KEY, 1_800_000_000)
        (verdict,) = self.harness.submit(federation.witness(who, shown, offer, signer, self.harness.now()))
        if verdict.code == 409:
            return OutboundResponse(409, witness.SIZE_TYPE, b"%d\n" % verdict.answer)
        return OutboundResponse(verdict.code, "text/plain", str(verdict.answer).encode())

    async def get(self, url: str) -> OutboundResponse:
        if self.is_away:
            raise OutboundError("the peer cannot be reached")
        if url == f"{LOG_URL}/checkpoint":
            return OutboundResponse(200, "text/plain", self.shows)
        rows = await self.harness.store.rows(HOME_TENANT, "peer_heads")
        assert url == f"{URL}/{witness.log_id_of(US)}/checkpoint"
        return (
            OutboundResponse(200, "text/plain", bytes(rows[0]["note"]))
            if rows
            else OutboundResponse(404, "", b"")
        )


class Side:
    """Our house with its sealer, federated with one witness; `start` is the process started anew."""

    def __init__(self, harness: Harness, theirs: SqliteHarness, folder: Path) -> None:
        folder.mkdir()
        self.harness, self.wire, self.log_sealer = harness, Witness(theirs), LogSealer(harness, folder)
        self.start()
        self.say(3)
        self.know()

    def start(self, accepts: bool = False) -> None:
        sealer = self.log_sealer.again(accepts)
        home = cast(WorkerContext, Keeper(self.harness))
        self.federation = Federation(home, sealer, self.harness.store, self.wire)
        sealer.ask(self.federation)

    def say(self, count: int = 1) -> None:
        self.harness.send(*(decision_log() for _ in range(count)))
        self.log_sealer.look()

    def know(self) -> None:
        vkey = note.vkey(THEM, note.Signer(THEM, KEY).public_key)
        peer = federation.NewPeer("them", vkey, URL, None)
        self.harness.submit(federation.add_peer(self.harness.admin(), peer, self.harness.now()))
        ring = self.log_sealer.sealer.keyring
        assert ring is not None
        us = federation.NewPeer("us", note.vkey(US, ring.public_key), None, None)
        theirs = self.wire.harness
        theirs.submit(federation.add_peer(theirs.admin(), us, theirs.now()))
        self.log_sealer.look()

    def offer(self) -> daemon.PeerAnswer:
        (peer,) = self.harness.read(self.federation.peers(HOME_TENANT))
        return self.harness.read(self.federation.offer(HOME_TENANT, peer))

    def look(self) -> None:
        """The daemon's turn, a minute later."""
        self.federation._next.clear()
        self.harness.read(self.federation.look())

    @property
    def cosigned(self) -> int:
        return self.harness.read(self.harness.store.cosigned(HOME_TENANT))


@pytest.fixture
def theirs(tmp_path: Path, sqlite_template: Path) -> Iterator[SqliteHarness]:
    path = tmp_path / "theirs.db"
    shutil.copyfile(sqlite_template, path)
    harness = SqliteHarness(path)
    harness.open()
    harness.create_tenant(HOME_TENANT)
    yield harness
    harness.end()


@pytest.fixture
def side(harness: Harness, theirs: SqliteHarness, tmp_path: Path) -> Side:
    return Side(harness, theirs, tmp_path / "keys")


@pytest.fixture
def lite(sqlite_harness: SqliteHarness, theirs: SqliteHarness, tmp_path: Path) -> Side:
    return Side(sqlite_harness, theirs, tmp_path / "keys")


@pytest.mark.req(461, 512)
def test_a_checkpoint_is_offered_and_its_cosignature_kept_s430(side: Side) -> None:
    """S430: under the witness's key; each offer goes on from the one before; it adds no event here."""
    for count in (1, 5, 300):
        side.say(count)
        before = side.harness.trail_of()
        assert side.offer().state == "cosigned"
        kept = side.log_sealer.checkpoint()
        assert kept is not None and side.cosigned == kept.size == len(side.harness.trail_of())
        assert side.harness.trail_of() == before
        (row,) = side.harness.read(side.harness.store.rows(HOME_TENANT, "cosignatures", size=kept.size))
        vkey = note.vkey(THEM, note.Signer(THEM, KEY).public_key)
        note.open(kept.note + row["line"].encode(), [witness_of(vkey)])
    assert received(side.wire.harness, "checkpoint_witnessed") == 3


def test_an_answer_that_was_lost_is_asked_for_again_s430(side: Side) -> None:
    """S430: the witness has it, we do not; the size it tells is gone on from."""
    side.say()
    kept = side.log_sealer.checkpoint()
    assert kept is not None
    side.harness.read(
        side.wire.post(f"{URL}/add-checkpoint", witness.write(witness.CheckpointOffer(0, [], kept.note)))
    )
    assert side.cosigned == 0 and side.offer().state == "cosigned" and side.cosigned == kept.size
    side.say(4)
    assert side.offer().state == "cosigned"


def test_what_tells_of_witnessing_alone_is_not_offered_s431(side: Side) -> None:
    """S431: two peers come to rest; what else is said is offered, once a minute."""
    side.look()
    first, asked = side.cosigned, side.wire.asked
    log = PeerLog()
    peer = federation.NewPeer("third", log.vkey, None, None)
    side.harness.submit(federation.add_peer(side.harness.admin(), peer, side.harness.now()))
    side.log_sealer.look()
    side.look()
    assert side.cosigned == first + 1 and side.wire.asked == asked + 1
    offer = log.offer(0, 5)
    who = Principal(tenant_id=HOME_TENANT, role="admin", key_id="sys_gateway")
    signer = Cosigner(witness_name(US), KEY, 1_800_000_000)
    act = federation.witness(
        who, read_peer_checkpoint(offer.note, log.vkey), offer, signer, side.harness.now()
    )
    assert side.harness.submit(act)[0].code == 200
    side.log_sealer.look()
    side.look()
    assert side.cosigned == first + 1 and side.wire.asked == asked + 1, "only that we cosigned"
    side.say()
    side.harness.read(side.federation.look())
    assert side.wire.asked == asked + 1, "a minute has not passed"
    side.look()
    assert side.cosigned == first + 3


def test_a_witness_that_is_away_holds_up_nobody_s430(side: Side) -> None:
    """S430: the log is signed all the same; it is told how the peer answered."""
    side.wire.is_away = True
    side.start()
    side.say()
    assert not side.log_sealer.sealer.refused and side.offer().state == "unreachable"
    side.wire.is_away = False
    assert side.offer().state == "cosigned"


def test_a_witness_that_lies_stops_nothing_s432(side: Side) -> None:
    """S432: it says that it cosigned more; without our own signature that is a word."""
    side.wire.lie = 10_000
    assert side.offer().state == "ahead"
    side.say()
    assert not side.log_sealer.sealer.refused
    side.wire.lie = 0
    assert side.offer().state == "cosigned"


def test_a_cosignature_by_another_key_is_not_kept_s430(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    """S430: whatever is answered with 200."""
    side.say()
    monkeypatch.setattr("tests.contract.test_witnesses.KEY", bytes(32))
    assert side.offer().state == "refused" and side.cosigned == 0


def restored(side: Side, tmp_path: Path, later: int) -> None:
    """The whole folder as it was: database, key and what was signed last."""
    harness = side.harness
    assert isinstance(harness, SqliteHarness)
    side.offer()
    harness.close()
    shutil.copyfile(harness.path, tmp_path / "backup.db")
    shutil.copytree(side.log_sealer.path.parent, tmp_path / "backup")
    harness.open()
    side.start()
    side.say(4)
    assert side.offer().state == "cosigned"
    harness.close()
    shutil.copyfile(tmp_path / "backup.db", harness.path)
    shutil.rmtree(side.log_sealer.path.parent)
    shutil.copytree(tmp_path / "backup", side.log_sealer.path.parent)
    harness.open()
    if later:
        harness.send(*(decision_log() for _ in range(later)))


@pytest.mark.req(512)
@pytest.mark.parametrize("later", [0, 9], ids=["shorter", "as long, another history"])
def test_after_a_whole_folder_was_restored_the_witnesses_tell_s433(
    lite: Side, tmp_path: Path, later: int
) -> None:
    """S433: nothing here contradicts it; a checkpoint under our own key does."""
    restored(lite, tmp_path, later)
    before = lite.log_sealer.checkpoint()
    lite.start()
    lite.log_sealer.look()
    refusal = lite.log_sealer.sealer.refused[HOME_TENANT]
    assert refusal.kind == "rollback" and "--accept-rollback" in refusal.sentence
    assert lite.log_sealer.checkpoint() == before


def test_a_witness_that_was_away_tells_when_it_is_back_s433(lite: Side, tmp_path: Path) -> None:
    """S433: a fork may have been signed by then; it is neither cosigned nor gone on with, and told there."""
    restored(lite, tmp_path, 9)
    lite.wire.is_away = True
    lite.start()
    lite.log_sealer.look()
    assert not lite.log_sealer.sealer.refused
    lite.wire.is_away = False
    assert lite.offer().state == "refused"
    lite.harness.send(decision_log())
    lite.log_sealer.look()
    assert lite.log_sealer.sealer.refused[HOME_TENANT].kind == "rollback"
    assert received(lite.wire.harness, "peer_fork_detected") == 1


def test_an_accepted_rollback_is_not_asked_about_again_s433(lite: Side, tmp_path: Path) -> None:
    """S433: once, in the record; the witness stays with what it cosigned, and later starts need no flag."""
    restored(lite, tmp_path, 0)
    lite.start(accepts=True)
    lite.log_sealer.look()
    assert received(lite.harness, "rollback_accepted") == 1 and not lite.log_sealer.sealer.refused
    lite.start()
    lite.say(3)
    assert not lite.log_sealer.sealer.refused
    kept = lite.log_sealer.checkpoint()
    leaves = [event.leaf_hash for event in lite.harness.trail_of()]
    assert kept is not None and (kept.size, kept.root) == (len(leaves), merkle.root(leaves))
    assert lite.offer().state in ("refused", "ahead")
    lite.say()
    assert not lite.log_sealer.sealer.refused


def test_a_witness_that_could_not_be_asked_is_asked_again_s433(lite: Side, tmp_path: Path) -> None:
    """S433: without an offer; the sealer is not held up meanwhile."""
    restored(lite, tmp_path, 0)
    lite.wire.is_away = True
    lite.start()
    lite.log_sealer.look()
    assert not lite.log_sealer.sealer.refused
    lite.wire.is_away = False
    (peer,) = lite.harness.read(lite.federation.peers(HOME_TENANT))
    lite.federation._next[peer["peer_id"]] = float("inf")
    lite.federation._unheard = dict.fromkeys(lite.federation._unheard, 0.0)
    lite.harness.read(lite.federation.look())
    lite.harness.read(heard(lite.federation))
    lite.log_sealer.look()  # nothing was said since: what it told is looked into all the same
    assert lite.log_sealer.sealer.refused[HOME_TENANT].kind == "rollback"


async def heard(asks: Federation) -> None:
    """What is being asked is answered: a busy machine takes its time."""
    while asks._asking:
        await asyncio.gather(*asks._asking.values())
        await asyncio.sleep(0)


def test_a_peers_log_is_looked_at_where_it_is_served_s426(side: Side) -> None:
    """S426: once a minute; what is not under its key is nothing, less than was cosigned is told."""
    log = PeerLog()
    peer = federation.NewPeer("third", log.vkey, None, LOG_URL)
    side.harness.submit(federation.add_peer(side.harness.admin(), peer, side.harness.now()))
    offer, signer = log.offer(0, 5), Cosigner(witness_name(US), KEY, 1_800_000_000)
    who = Principal(tenant_id=HOME_TENANT, role="admin", key_id="sys_gateway")
    shown = read_peer_checkpoint(offer.note, log.vkey)
    side.harness.submit(federation.witness(who, shown, offer, signer, side.harness.now()))
    for shows, count in (
        (b"nonsense", 0),
        (PeerLog(seed=b"impostor").checkpoint(3), 0),
        (log.checkpoint(5), 0),
        (log.checkpoint(9), 0),
        (log.checkpoint(3), 1),
        (log.checkpoint(3), 1),
        (PeerLog(fork=2).checkpoint(5), 2),
    ):
        side.wire.shows = shows
        side.look()
        assert received(side.harness, "peer_fork_detected") == count, shows
