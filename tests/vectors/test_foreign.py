"""Logs written by our code, read by verifiers that are not ours: Go's x/mod/sumdb and Python's sigstore.

One log a size, written once as C2SP tiles; the Go program is examples/prove/main.go, built once.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from examples.prove.build import build, go_root
from observatory.ledger import merkle, note, tiles, tlog_proof
from observatory.ledger.verify_log import consistency_holds, inclusion_holds
from observatory.ledger.verify_note import Key, ProvenLeaf, read_key, read_proof
from tests.vectors.tile_check import check_log

SIZES = (1, 2, 255, 256, 257, 70_000)
ORIGIN = "observatory.example/v1/log/tnt_1"
SECRET = sha256(b"a foreign log").digest()
SIGNER = note.Signer(ORIGIN, SECRET)


def entry(place: int) -> bytes:
    digest = sha256(place.to_bytes(4)).hexdigest()
    return merkle.leaf_data("tnt_1", place + 1, f"sha256:{digest}", f"sha256:{digest}")


def key() -> Key:
    found = read_key(SIGNER.vkey)
    assert isinstance(found, Key)
    return found


class Written:
    """A log in a folder, and its hashes."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = folder, size
        self.entries = [entry(place) for place in range(size)]
        self.leaves = [merkle.leaf_hash(one) for one in self.entries]
        edge = tiles.TileEdge()
        levels: dict[int, list[bytes]] = {0: self.leaves}
        for node in edge.extend(self.leaves):
            levels.setdefault(node.level, []).append(node.hash)
        self.root = edge.root()
        for tile in tiles.of_size(size):
            first = tile.index * tiles.WIDTH
            hashes = levels[tile.level][first : first + tile.width]
            self._put(tiles.path(tile.level, tile.index, tile.width), b"".join(hashes))
            if tile.level == 0:
                bundle = tiles.entry_bundle(self.entries[first : first + tile.width])
                self._put(tiles.path(tiles.ENTRIES, tile.index, tile.width), bundle)
        self.checkpoint = note.sign(note.checkpoint(ORIGIN, size, self.root), [SIGNER])
        self._put("checkpoint", self.checkpoint)

    def _put(self, path: str, content: bytes) -> None:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)

    def read(self, path: str) -> bytes | None:
        place = self.folder / path
        return place.read_bytes() if place.is_file() else None

    @property
    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Written]:
    folder = tmp_path_factory.mktemp("logs")
    return {size: Written(folder / str(size), size) for size in SIZES}


@pytest.fixture(scope="module")
def tlogcheck(pytestconfig: pytest.Config) -> Path:
    """Its compiler's cache is pytest's: Go's own library is compiled once, not by every run."""
    assert go_root() is not None, "there is no Go: it comes with `make setup`"
    assert pytestconfig.cache is not None
    return build(pytestconfig.cache.mkdir("go"))


def run(program: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words], capture_output=True, text=True, check=False, timeout=60)


def test_the_size_70000_has_the_tiles_of_the_standards_check_value_s388(logs: dict[int, Written]) -> None:
    """S388."""
    made = [(tile.level, tile.width) for tile in tiles.of_size(70_000)]
    assert made.count((0, 256)) == 273 and (0, 112) in made
    assert made.count((1, 256)) == 1 and (1, 17) in made and (2, 1) in made and len(made) == 277
    assert "tile/0/273.p/112" in logs[70_000].files and "tile/2/000.p/1" in logs[70_000].files


@pytest.mark.req(461, 512)
def test_gos_checksum_database_code_accepts_logs_of_every_size_s388(
    logs: dict[int, Written], tlogcheck: Path
) -> None:
    """S388: signature, root out of tiles, every entry's proof, and growth from a third of it."""
    done = run(tlogcheck, "log", SIGNER.vkey, *(log.folder for log in logs.values()))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [f"{size}: held, {size} entries" for size in SIZES]


def test_our_verifier_accepts_them_and_finds_1000_flipped_bits_s388(logs: dict[int, Written]) -> None:
    """S388: in tiles, entries and checkpoint, of a log with a full and a partial tile."""
    for log in logs.values():
        found = check_log(log.read, [key()])
        assert not isinstance(found, str) and found.size == log.size
    rng, log = random.Random(1_000), logs[257]
    held = {path: (log.folder / path).read_bytes() for path in log.files}
    for _ in range(1_000):
        path, bent = flipped(held, rng)
        assert isinstance(check_log((held | {path: bent}).get, [key()]), str), path
    for path in held:
        assert isinstance(check_log({name: held[name] for name in held if name != path}.get, [key()]), str)


def flipped(held: dict[str, bytes], rng: random.Random) -> tuple[str, bytes]:
    path = rng.choice(sorted(held))
    raw = bytearray(held[path])
    raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return path, bytes(raw)


def test_go_finds_flipped_bits_too_s388(logs: dict[int, Written], tlogcheck: Path, tmp_path: Path) -> None:
    """S388: 60 of 60; a tile that nothing is read from is the one thing a sparse reader may pass over."""
    rng, log = random.Random(60), logs[257]
    held = {path: (log.folder / path).read_bytes() for path in log.files}
    folders = []
    for number in range(60):
        path, bent = flipped(held, rng)
        folders.append(shutil.copytree(log.folder, tmp_path / str(number)))
        (folders[-1] / path).write_bytes(bent)
    done = run(tlogcheck, "log", SIGNER.vkey, *folders)
    assert done.returncode == 1
    assert done.stdout.count("BROKEN") == 60, done.stdout


def test_go_and_we_judge_a_tlog_proof_alike_s389(
    logs: dict[int, Written], tlogcheck: Path, tmp_path: Path
) -> None:
    """S389: the proof of one event, its leaf exchanged, its key another's, a hash too many."""
    log, place = logs[70_000], 41_234
    path = merkle.inclusion_proof(log.leaves, place)
    good = tlog_proof.write(place, path, log.checkpoint)
    impostor = note.Signer(ORIGIN, sha256(b"another").digest())
    forged = note.sign(note.checkpoint(ORIGIN, log.size, log.root), [impostor])
    cases = [
        (good, entry(place), True),
        (good, entry(place + 1), False),
        (tlog_proof.write(place + 1, path, log.checkpoint), entry(place), False),
        (tlog_proof.write(place, [*path, path[0]], log.checkpoint), entry(place), False),
        (tlog_proof.write(place, path[:-1], log.checkpoint), entry(place), False),
        (tlog_proof.write(place, path, forged), entry(place), False),
        (good.replace(b"70000", b"70001"), entry(place), False),
    ]
    for number, (proof, leaf, holds) in enumerate(cases):
        (tmp_path / "a.tlog-proof").write_bytes(proof)
        (tmp_path / "a.leaf").write_bytes(leaf)
        done = run(tlogcheck, "proof", SIGNER.vkey, tmp_path / "a.tlog-proof", tmp_path / "a.leaf")
        ours = read_proof(proof, leaf, [key()])
        assert (done.returncode == 0, isinstance(ours, ProvenLeaf)) == (holds, holds), (
            number,
            done.stdout,
            ours,
        )
    assert inclusion_holds(log.leaves[place], place, log.size, path, log.root)
    grown = merkle.consistency_proof(log.leaves, 257)
    assert consistency_holds(257, log.size, logs[257].root, log.root, grown)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", SIZES)
def test_sigstore_accepts_checkpoint_signature_and_inclusion_s388(
    logs: dict[int, Written], size: int
) -> None:
    """S388: by the code with which sigstore checks what Rekor tells it, its key ring too."""
    log = logs[size]
    for place in sorted({0, size // 2, size - 1}):
        path = merkle.inclusion_proof(log.leaves, place)
        sigstore_judges(log, place, path, log.entries[place], log.checkpoint)
        with pytest.raises(_refusal()):
            sigstore_judges(log, place, path, log.entries[place] + b"x", log.checkpoint)
    bent = log.checkpoint.replace(f"\n{size}\n".encode(), f"\n{size + 1}\n".encode())
    with pytest.raises(_refusal()):
        sigstore_judges(log, 0, merkle.inclusion_proof(log.leaves, 0), log.entries[0], bent)


def _refusal() -> type[Exception]:
    from sigstore.errors import VerificationError

    return VerificationError


def sigstore_judges(log: Written, place: int, path: list[bytes], body: bytes, checkpoint: bytes) -> None:
    """What is checked is theirs; ours is only the shape they read it from."""
    from sigstore._internal.merkle import verify_merkle_inclusion
    from sigstore._internal.rekor.checkpoint import verify_checkpoint
    from sigstore._internal.trust import Keyring
    from sigstore_models.common import v1 as common

    public = Ed25519PrivateKey.from_private_bytes(SECRET).public_key()
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    ring: Any = Keyring([_public_key(common, der)])
    envelope = SimpleNamespace(envelope=checkpoint.decode())
    proof = SimpleNamespace(
        log_index=place, tree_size=log.size, hashes=path, root_hash=log.root, checkpoint=envelope
    )
    line = checkpoint.decode().splitlines()[-1].rpartition(" ")[2]
    log_id = SimpleNamespace(key_id=b64decode(line)[:4])
    received: Any = SimpleNamespace(
        _inner=SimpleNamespace(inclusion_proof=proof, canonicalized_body=body, log_id=log_id)
    )
    verify_merkle_inclusion(received)
    verify_checkpoint(ring, received)


def _public_key(common: Any, der: bytes) -> Any:
    return common.PublicKey.model_construct(raw_bytes=der, key_details=common.PublicKeyDetails.PKIX_ED25519)
