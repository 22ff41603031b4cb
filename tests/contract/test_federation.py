"""Peers and the witness on both databases: what was cosigned is only ever gone on from."""

from __future__ import annotations

import json

import pytest

from observatory.errors import StatementFailed
from observatory.features.transparency import commands_federation as federation
from observatory.features.transparency.worker_federation import read_shown
from observatory.ledger import merkle, note
from observatory.ledger.witness import Head, Offer
from observatory.pipeline.rows import Write
from observatory.pipeline.state import HOME_TENANT, Act, Verdict
from tests.contract.conftest import OTHER_TENANT, House
from tests.contract.peering import ORIGIN, PeerLog, act, add, ask, cosigner, opened, told


def head(house: House) -> Head:
    (row,) = house.read(house.store.rows(HOME_TENANT, "peer_heads"))
    return Head(row["size"], bytes(row["root"]))


def test_a_peer_is_one_name_and_one_key_s420(house: House) -> None:
    """S420: the same again changes nothing; a second key or a second of its name is refused; audited."""
    log, other = PeerLog(), PeerLog("other.example/log", b"other")
    first = add(house, log)
    assert first.code == 201 and add(house, log).code == 200
    impostor = add(house, PeerLog(seed=b"impostor"), "somebody else")
    assert (impostor.code, impostor.answer.reason) == (409, "name_taken")
    assert (add(house, other).code, add(house, other, "those").code) == (409, 201)
    alike = note.vkey(f"{ORIGIN}/witness", PeerLog(seed=b"alike").signer.public_key, note.COSIGNATURE)
    peer = federation.NewPeer("alike", alike, None, None)
    assert house.submit(federation.add_peer(house.admin(), peer, house.now()))[0].code == 409
    peer_id = first.answer["peer_id"]
    assert house.submit(federation.remove_peer(house.admin(), peer_id, house.now()))[0].code == 200
    assert house.submit(federation.remove_peer(house.admin(), peer_id, house.now()))[0].code == 404
    assert add(house, PeerLog(seed=b"the next key")).code == 201, (
        "after it was removed another key may follow"
    )
    assert (told(house, "peer_added"), told(house, "peer_removed")) == (3, 1)


def test_two_of_one_batch_find_each_other_s420(house: House) -> None:
    """S420: one of them is known, whoever came first."""
    acts = [
        federation.add_peer(house.admin(), federation.NewPeer("them", log.vkey, None, None), house.now())
        for log in (PeerLog(), PeerLog(seed=b"impostor"))
    ]
    assert [one.code for one in house.submit(*acts)] == [201, 409]


def test_a_tenant_has_so_many_peers_s420(house: House) -> None:
    """S420: all cosignatures must fit under one checkpoint."""
    for number in range(federation.MOST_PEERS):
        assert add(house, PeerLog(f"p{number}.example/log"), f"p{number}").code == 201
    assert add(house, PeerLog()).answer.reason == "too_many_peers"


@pytest.mark.req(461, 512)
def test_a_checkpoint_is_cosigned_and_gone_on_from_s421(house: House) -> None:
    """S421, S422: what is kept is what was answered; the event says what was witnessed."""
    log = PeerLog()
    add(house, log)
    for old, size in ((0, 3), (3, 8), (8, 9), (9, 200)):
        answer = ask(house, log, log.offer(old, size))
        assert answer.code == 200
        assert opened(answer.answer, note.checkpoint(ORIGIN, *log.head(size))) == [cosigner().name]
        assert head(house) == log.head(size)
    (row,) = house.read(house.store.rows(HOME_TENANT, "peer_heads"))
    kept = bytes(row["note"])
    assert kept.decode().endswith(answer.answer) and kept.startswith(log.checkpoint(200))
    assert told(house, "checkpoint_witnessed") == 4
    last = json.loads(house.trail_of()[-1].record)["body"]
    assert (last["origin"], last["size"], last["previous_size"]) == (ORIGIN, 200, 9)


CASES: list[tuple[str, int, int, list[bytes] | None, int]] = [
    ("the old size lies past the new one", 9, 8, None, 400),
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
    house: House, what: str, old: int, size: int, proof: list[bytes] | None, code: int
) -> None:
    """S423: after five were cosigned; what is refused changes nothing."""
    log = PeerLog()
    add(house, log)
    ask(house, log, log.offer(0, 5))
    offer = Offer(old, log.proof(old, size) if proof is None else proof, log.checkpoint(size))
    verdict = ask(house, log, offer)
    assert verdict.code == code, what
    assert head(house) == log.head(size if code == 200 else 5)
    if code == 409:
        assert verdict.answer == 5


def test_the_first_checkpoint_brings_no_proof_s423(house: House) -> None:
    """S423: every log goes on from the empty one; a log of nothing has one root."""
    log = PeerLog()
    assert ask(house, log, log.offer(0, 5)).code == 404, "nobody has made it known yet"
    add(house, log)
    assert ask(house, log, Offer(0, [bytes(32)], log.checkpoint(5))).code == 422
    wrong = note.sign(note.checkpoint(ORIGIN, 0, bytes(32)), [log.signer])
    assert ask(house, log, Offer(0, [], wrong)).code == 422
    assert ask(house, log, log.offer(0, 0)).code == 200
    assert ask(house, log, log.offer(0, 5)).code == 200
    assert ask(house, log, log.offer(0, 0)).code == 409


def test_a_removed_peer_is_not_known_and_comes_back_where_it_was_s421(house: House) -> None:
    """S421: its head stays; nobody rolls a witness back by being removed."""
    log = PeerLog()
    peer = add(house, log).answer
    ask(house, log, log.offer(0, 5))
    house.submit(federation.remove_peer(house.admin(), peer["peer_id"], house.now()))
    assert ask(house, log, log.offer(5, 8)).code == 404
    add(house, log)
    assert ask(house, log, log.offer(0, 3)).code == 409
    assert ask(house, log, log.offer(5, 8)).code == 200


def test_asked_again_it_answers_as_the_first_time_s424(house: House) -> None:
    """S424: byte for byte and without a second event; a new key of the witness signs anew."""
    log = PeerLog()
    add(house, log)
    first = ask(house, log, log.offer(0, 5))
    again = ask(house, log, log.offer(5, 5), cosigner(1_900_000_000))
    assert again.answer == first.answer and told(house, "checkpoint_witnessed") == 1
    assert ask(house, log, log.offer(0, 5)).answer == 5, "a replay is told what was cosigned"
    other = ask(house, log, log.offer(5, 5), cosigner(1_900_000_000, b"k" * 32))
    assert other.code == 200 and other.answer != first.answer
    assert told(house, "checkpoint_witnessed") == 2


@pytest.mark.req(512)
def test_two_roots_for_one_size_are_told_once_with_both_s425(house: House) -> None:
    """S425: whatever old size is said; it is not cosigned, and the two notes are the proof."""
    log, forked = PeerLog(), PeerLog(fork=3)
    add(house, log)
    ask(house, log, log.offer(0, 5))
    assert ask(house, log, forked.offer(5, 5)).code == 422
    assert ask(house, log, forked.offer(0, 5)).code == 409
    assert told(house, "peer_fork_detected") == 1, "once for a head"
    event = next(one for one in house.trail_of() if b"peer_fork_detected" in one.record)
    body = json.loads(event.record)
    assert body["severity_number"] == 21 and body["body"]["kind"] == "fork"
    key = note.Verifier.from_vkey(log.vkey)
    heads = [
        note.parse_checkpoint(note.open(body["body"][side]["checkpoint"].encode(), [key])[0])
        for side in ("known", "shown")
    ]
    assert heads == [(ORIGIN, *log.head(5)), (ORIGIN, *forked.head(5))]
    assert head(house) == log.head(5)


def test_a_longer_fork_is_not_cosigned_and_told_s425(house: House) -> None:
    """S425: no proof leads to it; if it was only a false proof, the right one clears it."""
    log, forked = PeerLog(), PeerLog(fork=3)
    add(house, log)
    ask(house, log, log.offer(0, 5))
    assert ask(house, log, forked.offer(5, 9)).code == 422
    assert ask(house, log, Offer(5, [], log.checkpoint(8))).code == 422
    assert told(house, "peer_fork_detected") == 2
    (row,) = house.read(house.store.rows(HOME_TENANT, "peer_heads"))
    assert (row["fork_kind"], row["fork_size"]) == ("inconsistent", 8)
    assert ask(house, log, log.offer(5, 8)).code == 200
    (row,) = house.read(house.store.rows(HOME_TENANT, "peer_heads"))
    assert row["fork_kind"] is None and row["size"] == 8


def test_a_log_that_shows_less_than_was_cosigned_is_told_s426(house: House) -> None:
    """S426: by looking at the log itself; less is a rollback, more is nothing."""
    log = PeerLog()
    add(house, log)
    ask(house, log, log.offer(0, 5))

    def look(shown: PeerLog, size: int) -> Verdict:
        seen = read_shown(shown.checkpoint(size), log.vkey)
        return house.submit(federation.see(house.admin(), seen, house.now()))[0]

    assert [look(log, size).answer for size in (5, 9, 4)] == [None, None, "rollback"]
    assert look(PeerLog(fork=2), 5).answer == "fork"
    assert told(house, "peer_fork_detected") == 2 and head(house) == log.head(5)


def test_a_batch_of_racers_is_one_line_s422(house: House) -> None:
    """S422: decided one after the other under one lock, though they come in one transaction."""
    log = PeerLog()
    add(house, log)
    offers = [log.offer(0, size) for size in (5, 3, 8)] + [log.offer(5, 9), log.offer(5, 7), log.offer(9, 12)]
    verdicts = house.submit(*(act(house, log, offer) for offer in offers))
    assert [verdict.code for verdict in verdicts] == [200, 409, 409, 200, 409, 200]
    assert head(house) == log.head(12) and told(house, "checkpoint_witnessed") == 3


def test_the_database_lets_no_head_go_back_s422(house: House) -> None:
    """S422: nor a cosignature change, nor any row of these go."""
    log = PeerLog()
    add(house, log)
    ask(house, log, log.offer(0, 5))
    signed = federation.Cosigned(5, "w.example", "per_1", "line\n", 7)
    for _ in range(2):  # kept once
        assert house.submit(federation.keep_cosignature(house.admin(), signed, house.now()))[0].code == 200
    for statement in (
        "UPDATE peer_heads SET size = 4",
        "UPDATE peer_heads SET root = note",
        "UPDATE cosignatures SET line = 'another'",
        *(f"DELETE FROM {table}" for table in ("peers", "peer_heads", "cosignatures")),
    ):
        assert house.refuses(statement), statement
    assert head(house) == log.head(5)
    assert house.read(house.store.cosigned(HOME_TENANT)) == 5
    assert house.read(house.store.cosigned(HOME_TENANT, "per_2")) == 0


def test_one_tenants_peers_are_nobody_elses_s427(house: House) -> None:
    """S427: another tenant of the house knows neither the peer nor its head."""
    log = PeerLog()
    add(house, log)
    ask(house, log, log.offer(0, 5))
    house.create_tenant(OTHER_TENANT)
    for table in ("peers", "peer_heads"):
        assert house.read(house.store.rows(OTHER_TENANT, table)) == []
    (verdict,) = house.submit(
        federation.add_peer(
            house.admin(OTHER_TENANT), federation.NewPeer("them", log.vkey, None, None), house.now()
        ),
        tenant_id=OTHER_TENANT,
    )
    assert verdict.code == 201


def test_a_batch_with_a_bad_row_keeps_nothing_of_it_s422(house: House) -> None:
    """S422: a head that would go back takes its whole transaction with it."""
    log = PeerLog()
    add(house, log)
    ask(house, log, log.offer(0, 5))
    before = house.trail_of()
    back = {"size": 1, "root": merkle.EMPTY_ROOT}
    bad = Act(house.admin(), house.now(), lambda desk: Verdict(200, None, writes=[
        Write("peer_heads", back, {"tenant_id": HOME_TENANT})
    ]))  # fmt: skip
    with pytest.raises(StatementFailed):
        house.submit(act(house, log, log.offer(5, 8)), bad)
    assert house.trail_of() == before and head(house) == log.head(5)
