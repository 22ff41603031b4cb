"""Who stands beside the demo: receivers as good and bad as they say, and a witness that never goes back."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from observatory.demo.receivers import NAME, WITNESS_PATH, DemoReceivers, Witness
from observatory.ledger import merkle, note, witness
from observatory.ledger.note import Signer, Verifier
from observatory.ledger.witness import CheckpointOffer

LOG = Signer("observatory.local/demo/tnt_default", bytes(range(32)))
LEAVES = [merkle.leaf_hash(f"event {number}".encode()) for number in range(9)]


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[DemoReceivers]:
    with DemoReceivers(tmp_path) as found:
        found.witness.vkey = LOG.vkey
        yield found


def offer(old: int, size: int, leaves: list[bytes] = LEAVES, by: Signer = LOG) -> bytes:
    signed = note.sign(note.checkpoint(LOG.name, size, merkle.root(leaves[:size])), [by])
    proof = merkle.consistency_proof(leaves[:size], old) if 0 < old < size else []
    return witness.write(CheckpointOffer(old, proof, signed))


def post(
    beside: DemoReceivers, path: str, body: bytes = b"{}", delivery_id: str = "dlv_1"
) -> httpx2.Response:
    headers = {"webhook-id": delivery_id}
    return httpx2.post(beside.url + path, content=body, headers=headers, trust_env=False, timeout=20)


def test_one_receiver_takes_one_takes_the_second_try_and_one_never_does_s782(beside: DemoReceivers) -> None:
    assert [post(beside, "/desk").status_code for _ in range(2)] == [204, 204]
    assert [post(beside, "/risk", delivery_id=one).status_code for one in "aab"] == [500, 204, 500]
    assert [post(beside, "/archive").status_code for _ in range(2)] == [500, 500]
    assert post(beside, "/elsewhere").status_code == 404
    assert beside.address.startswith("127.0.0.1:")


def test_the_witness_cosigns_what_goes_on_and_never_goes_back_s783(
    beside: DemoReceivers, tmp_path: Path
) -> None:
    """S783: under its own key; after a restart it knows what it cosigned, and its key is the same."""
    first = post(beside, WITNESS_PATH, offer(0, 4))
    assert first.status_code == 200
    text = note.checkpoint(LOG.name, 4, merkle.root(LEAVES[:4]))
    opened, names = note.open(f"{text}\n{first.text}".encode(), [Verifier.from_vkey(beside.witness.own_vkey)])
    assert (opened, names) == (text, [NAME])
    assert post(beside, WITNESS_PATH, offer(0, 9)).status_code == 409
    again = Witness(tmp_path)
    again.vkey = LOG.vkey
    assert again.own_vkey == beside.witness.own_vkey
    assert again.cosign(offer(0, 9))[:2] == (409, b"4\n")
    forked = [*LEAVES[:2], *reversed(LEAVES[2:])]
    assert again.cosign(offer(4, 9, forked))[0] == 422
    assert again.cosign(offer(4, 9))[0] == 200
    assert again.cosign(offer(9, 4))[0] == 400


def test_it_cosigns_only_the_log_it_was_told_of_s783(beside: DemoReceivers) -> None:
    stranger = Signer(LOG.name, bytes(range(1, 33)))
    assert post(beside, WITNESS_PATH, offer(0, 4, by=stranger)).status_code == 403
    assert post(beside, WITNESS_PATH, b"nonsense").status_code == 403
    beside.witness.vkey = None
    assert post(beside, WITNESS_PATH, offer(0, 4)).status_code == 404


@pytest.mark.parametrize("length", ["-1", "many", "99999999999"])
def test_a_length_that_is_none_is_refused_unread_s782(beside: DemoReceivers, length: str) -> None:
    host, port = beside.address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall(f"POST /desk HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n".encode())
        assert line.recv(64).startswith(b"HTTP/1.1 413")


def test_the_witness_key_is_nobody_elses_s783(beside: DemoReceivers, tmp_path: Path) -> None:
    assert beside.witness.own_vkey
    assert (tmp_path / "witness.key").stat().st_mode & 0o777 == 0o600
