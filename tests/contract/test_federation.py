"""Peers and the witness on both databases: what was cosigned is only ever gone on from."""

from __future__ import annotations

import json

import pytest

from observatory.errors import StatementFailed
from observatory.features.transparency import commands_federation as federation
from observatory.features.transparency.worker_federation import read_peer_checkpoint
from observatory.ledger import merkle, note
from observatory.ledger.witness import CheckpointOffer, WitnessHead
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import HOME_TENANT, Command, SubmissionResult
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.contract.peering import ORIGIN, PeerLog, act, add, ask, cosigner, opened, received


def head(harness: Harness) -> WitnessHead:
    (row,) = harness.read(harness.store.rows(HOME_TENANT, "peer_heads"))
    return WitnessHead(row["size"], bytes(row["root"]))


def test_a_peer_is_one_name_and_one_key_s420(harness: Harness) -> None:
    """S420: the same again changes nothing; a second key or a second of its name is refused; audited."""
    log, other = PeerLog(), PeerLog("other.example/log", b"other")
    first = add(harness, log)
    assert first.code == 201 and add(harness, log).code == 200
    impostor = add(harness, PeerLog(seed=b"impostor"), "somebody else")
    assert (impostor.code, impostor.answer.reason) == (409, "name_taken")
    assert (add(harness, other).code, add(harness, other, "those").code) == (409, 201)
    alike = note.vkey(f"{ORIGIN}/witness", PeerLog(seed=b"alike").signer.public_key, note.COSIGNATURE)
    peer = federation.NewPeer("alike", alike, None, None)
    assert harness.submit(federation.add_peer(harness.admin(), peer, harness.now()))[0].code == 409
    peer_id = first.answer["peer_id"]
    assert harness.submit(federation.remove_peer(harness.admin(), peer_id, harness.now()))[0].code == 200
    assert harness.submit(federation.remove_peer(harness.admin(), peer_id, harness.now()))[0].code == 404
    assert add(harness, PeerLog(seed=b"the next key")).code == 201, (
        "after it was removed another key may follow"
    )
    assert (received(harness, "peer_added"), received(harness, "peer_removed")) == (3, 1)


def test_two_of_one_batch_find_each_other_s420(harness: Harness) -> None:
    """S420: one of them is known, whoever came first."""
    acts = [
        federation.add_peer(harness.admin(), federation.NewPeer("them", log.vkey, None, None), harness.now())
        for log in (PeerLog(), PeerLog(seed=b"impostor"))
    ]
    assert [one.code for one in harness.submit(*acts)] == [201, 409]


def test_a_tenant_has_so_many_peers_s420(harness: Harness) -> None:
    """S420: all cosignatures must fit under one checkpoint."""
    for number in range(federation.MAX_PEERS):
        assert add(harness, PeerLog(f"p{number}.example/log"), f"p{number}").code == 201
    assert add(harness, PeerLog()).answer.reason == "too_many_peers"


@pytest.mark.req(461, 512)
def test_a_checkpoint_is_cosigned_and_gone_on_from_s421(harness: Harness) -> None:
    """S421, S422: what is kept is what was answered; the event says what was witnessed."""
    log = PeerLog()
    add(harness, log)
    for old, size in ((0, 3), (3, 8), (8, 9), (9, 200)):
        answer = ask(harness, log, log.offer(old, size))
        assert answer.code == 200
        assert opened(answer.answer, note.checkpoint(ORIGIN, *log.head(size))) == [cosigner().name]
        assert head(harness) == log.head(size)
    (row,) = harness.read(harness.store.rows(HOME_TENANT, "peer_heads"))
    kept = bytes(row["note"])
    assert kept.decode().endswith(answer.answer) and kept.startswith(log.checkpoint(200))
    assert received(harness, "checkpoint_witnessed") == 4
    last = json.loads(harness.trail_of()[-1].record)["body"]
    assert (last["origin"], last["size"], last["previous_size"]) == (ORIGIN, 200, 9)


CASES: list[tuple[str, int, int, list[bytes] | None, int]] = [
    ("the old size is larger than the new one", 9, 8, None, 400),
    ("an old size that is not the kept one", 4, 8, None, 409),
    ("nothing known, said by who was cosigned before", 0, 8, None, 409),
    ("smaller than what was cosigned", 3, 3, None, 409),
    ("no proof", 5, 8, [], 422),
    ("a hash too many", 5, 8, [*PeerLog().proof(5, 8), bytes(32)], 422),
    ("a hash too few", 5, 8, PeerLog().proof(5, 8)[:-1], 422),
    ("the proof of another size", 5, 8, PeerLog().proof(4, 8), 422),
    ("the same size with a proof", 5, 5, [bytes(32)], 422),
    ("right", 5, 8, None, 200),
    ("the same again", 5, 5, None, 200),
]


@pytest.mark.parametrize(("what", "old", "size", "proof", "code"), CASES, ids=[case[0] for case in CASES])
def test_every_code_of_the_protocol_s423(
    harness: Harness, what: str, old: int, size: int, proof: list[bytes] | None, code: int
) -> None:
    """S423: after five were cosigned; what is refused changes nothing."""
    log = PeerLog()
    add(harness, log)
    ask(harness, log, log.offer(0, 5))
    offer = CheckpointOffer(old, log.proof(old, size) if proof is None else proof, log.checkpoint(size))
    verdict = ask(harness, log, offer)
    assert verdict.code == code, what
    assert head(harness) == log.head(size if code == 200 else 5)
    if code == 409:
        assert verdict.answer == 5


def test_the_first_checkpoint_brings_no_proof_s423(harness: Harness) -> None:
    """S423: every log goes on from the empty one; a log of nothing has one root."""
    log = PeerLog()
    assert ask(harness, log, log.offer(0, 5)).code == 404, "nobody has made it known yet"
    add(harness, log)
    assert ask(harness, log, CheckpointOffer(0, [bytes(32)], log.checkpoint(5))).code == 422
    wrong = note.sign(note.checkpoint(ORIGIN, 0, bytes(32)), [log.signer])
    assert ask(harness, log, CheckpointOffer(0, [], wrong)).code == 422
    assert ask(harness, log, log.offer(0, 0)).code == 200
    assert ask(harness, log, log.offer(0, 5)).code == 200
    assert ask(harness, log, log.offer(0, 0)).code == 409


def test_a_removed_peer_is_not_known_and_comes_back_where_it_was_s421(harness: Harness) -> None:
    """S421: its head stays; nobody rolls a witness back by being removed."""
    log = PeerLog()
    peer = add(harness, log).answer
    ask(harness, log, log.offer(0, 5))
    harness.submit(federation.remove_peer(harness.admin(), peer["peer_id"], harness.now()))
    assert ask(harness, log, log.offer(5, 8)).code == 404
    add(harness, log)
    assert ask(harness, log, log.offer(0, 3)).code == 409
    assert ask(harness, log, log.offer(5, 8)).code == 200


def test_asked_again_it_answers_as_the_first_time_s424(harness: Harness) -> None:
    """S424: byte for byte and without a second event; a new key of the witness signs anew."""
    log = PeerLog()
    add(harness, log)
    first = ask(harness, log, log.offer(0, 5))
    again = ask(harness, log, log.offer(5, 5), cosigner(1_900_000_000))
    assert again.answer == first.answer and received(harness, "checkpoint_witnessed") == 1
    assert ask(harness, log, log.offer(0, 5)).answer == 5, "a replay is told what was cosigned"
    other = ask(harness, log, log.offer(5, 5), cosigner(1_900_000_000, b"k" * 32))
    assert other.code == 200 and other.answer != first.answer
    assert received(harness, "checkpoint_witnessed") == 2


@pytest.mark.req(512)
def test_two_roots_for_one_size_are_told_once_with_both_s425(harness: Harness) -> None:
    """S425: whatever old size is said; it is not cosigned, and the two notes are the proof."""
    log, forked = PeerLog(), PeerLog(fork=3)
    add(harness, log)
    ask(harness, log, log.offer(0, 5))
    assert ask(harness, log, forked.offer(5, 5)).code == 422
    assert ask(harness, log, forked.offer(0, 5)).code == 409
    assert received(harness, "peer_fork_detected") == 1, "once for a head"
    event = next(one for one in harness.trail_of() if b"peer_fork_detected" in one.record)
    body = json.loads(event.record)
    assert body["severity_number"] == 21 and body["body"]["kind"] == "fork"
    key = note.Verifier.from_vkey(log.vkey)
    heads = [
        note.parse_checkpoint(note.open(body["body"][side]["checkpoint"].encode(), [key])[0])
        for side in ("known", "shown")
    ]
    assert heads == [(ORIGIN, *log.head(5)), (ORIGIN, *forked.head(5))]
    assert head(harness) == log.head(5)


def test_a_longer_fork_is_not_cosigned_and_told_s425(harness: Harness) -> None:
    """S425: no proof leads to it; if it was only a false proof, the right one clears it."""
    log, forked = PeerLog(), PeerLog(fork=3)
    add(harness, log)
    ask(harness, log, log.offer(0, 5))
    assert ask(harness, log, forked.offer(5, 9)).code == 422
    assert ask(harness, log, CheckpointOffer(5, [], log.checkpoint(8))).code == 422
    assert received(harness, "peer_fork_detected") == 2
    (row,) = harness.read(harness.store.rows(HOME_TENANT, "peer_heads"))
    assert (row["fork_kind"], row["fork_size"]) == ("inconsistent", 8)
    assert ask(harness, log, log.offer(5, 8)).code == 200
    (row,) = harness.read(harness.store.rows(HOME_TENANT, "peer_heads"))
    assert row["fork_kind"] is None and row["size"] == 8


def test_a_log_that_shows_less_than_was_cosigned_is_told_s426(harness: Harness) -> None:
    """S426: by looking at the log itself; less is a rollback, more is nothing."""
    log = PeerLog()
    add(harness, log)
    ask(harness, log, log.offer(0, 5))

    def look(shown: PeerLog, size: int) -> SubmissionResult:
        seen = read_peer_checkpoint(shown.checkpoint(size), log.vkey)
        return harness.submit(federation.check_peer_head(harness.admin(), seen, harness.now()))[0]

    assert [look(log, size).answer for size in (5, 9, 4)] == [None, None, "rollback"]
    assert look(PeerLog(fork=2), 5).answer == "fork"
    assert received(harness, "peer_fork_detected") == 2 and head(harness) == log.head(5)


def test_a_batch_of_racers_is_one_line_s422(harness: Harness) -> None:
    """S422: decided one after the other under one lock, though they come in one transaction."""
    log = PeerLog()
    add(harness, log)
    offers = [log.offer(0, size) for size in (5, 3, 8)] + [log.offer(5, 9), log.offer(5, 7), log.offer(9, 12)]
    verdicts = harness.submit(*(act(harness, log, offer) for offer in offers))
    assert [verdict.code for verdict in verdicts] == [200, 409, 409, 200, 409, 200]
    assert head(harness) == log.head(12) and received(harness, "checkpoint_witnessed") == 3


def test_the_database_lets_no_head_go_back_s422(harness: Harness) -> None:
    """S422: nor a cosignature change, nor any row of these go."""
    log = PeerLog()
    add(harness, log)
    ask(harness, log, log.offer(0, 5))
    signed = federation.WitnessCosignature(5, "w.example", "per_1", "line\n", 7)
    for _ in range(2):  # kept once
        assert (
            harness.submit(federation.keep_cosignature(harness.admin(), signed, harness.now()))[0].code == 200
        )
    for statement in (
        "UPDATE peer_heads SET size = 4",
        "UPDATE peer_heads SET root = note",
        "UPDATE cosignatures SET line = 'another'",
        *(f"DELETE FROM {table}" for table in ("peers", "peer_heads", "cosignatures")),
    ):
        assert harness.refuses(statement), statement
    assert head(harness) == log.head(5)
    assert harness.read(harness.store.cosigned(HOME_TENANT)) == 5
    assert harness.read(harness.store.cosigned(HOME_TENANT, "per_2")) == 0


def test_one_tenants_peers_are_nobody_elses_s427(harness: Harness) -> None:
    """S427: another tenant of the house knows neither the peer nor its head."""
    log = PeerLog()
    add(harness, log)
    ask(harness, log, log.offer(0, 5))
    harness.create_tenant(OTHER_TENANT)
    for table in ("peers", "peer_heads"):
        assert harness.read(harness.store.rows(OTHER_TENANT, table)) == []
    (verdict,) = harness.submit(
        federation.add_peer(
            harness.admin(OTHER_TENANT), federation.NewPeer("them", log.vkey, None, None), harness.now()
        ),
        tenant_id=OTHER_TENANT,
    )
    assert verdict.code == 201


def test_a_batch_with_a_bad_row_keeps_nothing_of_it_s422(harness: Harness) -> None:
    """S422: a head that would go back takes its whole transaction with it."""
    log = PeerLog()
    add(harness, log)
    ask(harness, log, log.offer(0, 5))
    before = harness.trail_of()
    back = {"size": 1, "root": merkle.EMPTY_ROOT}
    bad = Command(harness.admin(), harness.now(), lambda uow: SubmissionResult(200, None, writes=[
        RowWrite("peer_heads", back, {"tenant_id": HOME_TENANT})
    ]))  # fmt: skip
    with pytest.raises(StatementFailed):
        harness.submit(act(harness, log, log.offer(5, 8)), bad)
    assert harness.trail_of() == before and head(harness) == log.head(5)
