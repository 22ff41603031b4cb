"""The key's file: made for its owner alone, opened with its passphrase or not at all, rotated in place."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from observatory.errors import StartupError
from observatory.runtime.log_key import Keyring, LogMark, LogMarks, MarkRollback, RotationInProgress


def opened(path: Path, passphrase: str = "") -> Keyring:
    found = Keyring.open(path, passphrase)
    assert found is not None
    return found


def test_a_key_is_its_owners_alone_and_the_same_when_opened_again_s361(tmp_path: Path) -> None:
    """S361: PKCS#8 PEM, mode 0600."""
    path = tmp_path / "keys" / "log.key"
    assert Keyring.open(path, "") is None
    made = Keyring.make(path, "")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().startswith("-----BEGIN PRIVATE KEY-----\n")
    again = opened(path)
    assert again.public_key == made.public_key and again.previous_public_key is None
    assert again.signers("a", both=True)[0].public_key == made.public_key


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_can_read_is_refused_s361(tmp_path: Path, mode: int) -> None:
    """S361: with a sentence that says what to do; what was signed last is guarded alike."""
    path = tmp_path / "log.key"
    Keyring.make(path, "")
    path.chmod(mode)
    with pytest.raises(StartupError, match="chmod 600"):
        Keyring.open(path, "")
    marks = tmp_path / "log.key.signed"
    marks.write_text("{}")
    marks.chmod(mode)
    with pytest.raises(StartupError, match="chmod 600"):
        LogMarks(marks).load()


def test_a_passphrase_is_needed_once_it_is_set_s361(tmp_path: Path) -> None:
    """S361: and asked for in a sentence that names neither it nor the key."""
    path = tmp_path / "log.key"
    made = Keyring.make(path, "open sesame")
    assert b"ENCRYPTED" in path.read_bytes()
    assert opened(path, "open sesame").public_key == made.public_key
    for wrong, received in (("", "needs its passphrase"), ("shut", "the passphrase is wrong")):
        with pytest.raises(StartupError, match=received) as refused:
            Keyring.open(path, wrong)
        assert "sesame" not in str(refused.value)
    plain = tmp_path / "plain.key"
    Keyring.make(plain, "")
    with pytest.raises(StartupError, match="is not encrypted"):
        Keyring.open(plain, "open sesame")


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_a_damaged_key_is_refused_s361(tmp_path: Path, content: bytes) -> None:
    """S361: never replaced by a new one."""
    path = tmp_path / "log.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(StartupError):
        Keyring.open(path, "")
    assert path.read_bytes() == content


def test_a_key_of_another_kind_is_refused_s361(tmp_path: Path) -> None:
    """S361."""
    path = tmp_path / "log.key"
    other = generate_private_key(SECP256R1())
    path.write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    with pytest.raises(StartupError, match="not an Ed25519 key"):
        Keyring.open(path, "")


def test_a_rotation_keeps_the_old_key_until_it_is_settled_s364(tmp_path: Path) -> None:
    """S364: under the same passphrase; another process sees the change."""
    path = tmp_path / "log.key"
    ring = Keyring.make(path, "word")
    first, other = ring.public_key, opened(path, "word")
    assert not other.refresh()
    ring.rotate()
    assert (ring.previous_public_key, ring.public_key != first) == (first, True)
    os.utime(path)  # a clock that stood still would hide the change
    assert other.refresh() and other.public_key == ring.public_key
    assert [one.public_key for one in other.signers("a", both=True)] == [ring.public_key, first]
    assert [one.public_key for one in other.signers("a", both=False)] == [ring.public_key]
    ring.settle()
    again = opened(path, "word")
    assert (again.public_key, again.previous_public_key) == (ring.public_key, None)


def test_damaged_marks_are_refused_s359(tmp_path: Path) -> None:
    """S359: they are not taken for none."""
    path = tmp_path / "log.key.signed"
    path.write_text('{"tnt_a": {"size": 5')
    path.chmod(0o600)
    with pytest.raises(StartupError, match="damaged"):
        LogMarks(path).load()


def test_a_key_that_cannot_be_written_is_not_used_s364(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S364: a full disk leaves the old key in force, in memory and on disk."""
    path = tmp_path / "log.key"
    ring = Keyring.make(path, "")
    before, content = ring.public_key, path.read_bytes()

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StartupError, match="No space left"):
        ring.rotate()
    assert (ring.public_key, ring.previous_public_key, path.read_bytes()) == (before, None, content)


def test_of_gateways_that_start_at_once_one_makes_the_key_s361(tmp_path: Path) -> None:
    """S361: all of them have that one; nothing is left beside it."""
    path, gate = tmp_path / "keys" / "log.key", Barrier(8)

    def start(_: int) -> bytes:
        gate.wait()
        return Keyring.make(path, "").public_key

    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(start, range(8)))
    assert made == {opened(path).public_key}
    assert [one.name for one in path.parent.iterdir()] == ["log.key"]


def test_a_file_that_lies_beside_lends_the_key_nothing_s361(tmp_path: Path) -> None:
    """S361: neither its mode nor where a link leads."""
    path, elsewhere = tmp_path / "log.key", tmp_path / "elsewhere"
    elsewhere.write_bytes(b"")
    elsewhere.chmod(0o644)
    (tmp_path / "log.key.new").symlink_to(elsewhere)
    Keyring.make(path, "").rotate()
    assert path.stat().st_mode & 0o777 == 0o600 and not path.is_symlink()
    assert elsewhere.read_bytes() == b""


def test_a_rotation_follows_the_key_in_the_file_s364(tmp_path: Path) -> None:
    """S364: not the one that this process remembers; and while one is under way there is no second."""
    path = tmp_path / "log.key"
    ring = Keyring.make(path, "")
    late = opened(path)
    ring.rotate()
    with pytest.raises(RotationInProgress):
        late.rotate()
    ring.settle()
    late.rotate()
    assert opened(path).previous_public_key == ring.public_key


def test_whoever_is_late_to_settle_drops_no_key_s364(tmp_path: Path) -> None:
    """S364: another rotation has begun since, and its old key is in force."""
    path = tmp_path / "log.key"
    ring = Keyring.make(path, "")
    ring.rotate()
    late = opened(path)
    ring.settle()
    ring.rotate()
    content = path.read_bytes()
    late.settle()
    assert path.read_bytes() == content
    assert late.refresh() and late.public_key == ring.public_key


def test_of_rotations_at_once_one_is_made_s364(tmp_path: Path) -> None:
    """S364: the key in force stays in the file whoever wins."""
    path, gate = tmp_path / "log.key", Barrier(4)
    first = Keyring.make(path, "").public_key

    def rotate(ring: Keyring) -> bool:
        gate.wait()
        try:
            ring.rotate()
        except RotationInProgress:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(rotate, [opened(path) for _ in range(4)])) == 1
    assert opened(path).previous_public_key == first


def test_a_key_that_is_gone_is_not_rotated_s364(tmp_path: Path) -> None:
    """S364: somebody moved it; nothing is put in its place."""
    path = tmp_path / "log.key"
    ring = Keyring.make(path, "")
    path.unlink()
    with pytest.raises(StartupError, match="is missing"):
        ring.rotate()
    assert not path.exists()


def test_marks_are_read_once_however_many_logs_are_opened_s605(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S605: and again as soon as somebody else has signed; what is written goes by the file alone."""
    marks, other = (LogMarks(tmp_path / "log.key.signed") for _ in range(2))
    many = {f"tnt_{number}": LogMark("origin", number, bytes(32)) for number in range(400)}
    marks.advance(many)
    reads, load = [0], LogMarks.load

    def counted(self: LogMarks) -> dict[str, LogMark]:
        reads[0] += 1
        return load(self)

    monkeypatch.setattr(LogMarks, "load", counted)
    assert [marks.of(name) for name in many] == list(many.values()) and reads == [1]
    assert marks.of("tnt_none") is None
    other.advance({"tnt_1": LogMark("origin", 9, bytes(32))})
    assert marks.of("tnt_1") == LogMark("origin", 9, bytes(32))
    with pytest.raises(MarkRollback):
        marks.advance({"tnt_1": LogMark("origin", 8, bytes(32))})
