"""Evidence of a session through the public doors: one file, checked from outside, whoever made it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from observatory.cli.terminal import CommandFailed
from observatory.cli.verify.evidence import read_bundle
from observatory.ledger.verify_bundle import CHECKS
from observatory.ledger.verify_note import Key, ProvenLeaf, read_key, read_proof
from tests.flows.answered_thoughts import thought_of
from tests.flows.server import Server, clean_environment, observatory
from tests.flows.trail.outside import refused
from tests.flows.trail.telling import FOREIGN_KEY, Json, RecordedTrail
from tests.samples import decision_log
from tests.vectors.tile_check import check_log


def checked(path: Path, *words: str) -> tuple[int, Json]:
    run = observatory("verify", str(path), *words, "--json")
    assert "observatory:" not in run.stderr, run.stderr
    return run.returncode, json.loads(run.stdout)["bundle"]


@pytest.mark.req(101, 263, 313, 457)
def test_a_sessions_bundle_holds_in_every_respect_s383(received: RecordedTrail) -> None:
    """S383, S384."""
    code, found = checked(received.bundle, "--vkey", received.vkey)
    assert code == 0 and found["checks"] == dict.fromkeys(CHECKS, True), found
    assert found["records"] == 4 and found["pinned"] and found["session_id"] == received.session_id
    with zipfile.ZipFile(received.bundle) as archive:
        names = archive.namelist()
        assert names[:2] == ["README.txt", "manifest.json"]
        assert json.loads(archive.read("seal.json"))["root"] == received.root
        said = [json.loads(json.loads(line)["record"]) for line in archive.read("events.jsonl").splitlines()]
    types = [one["body"]["event_type"] for one in said]
    assert types.count("thought_recorded") == 4 and types.count("message_delivered") == 2
    assert types[-1] == "thought_session_ended"


def test_without_a_pinned_key_it_is_said_s387(received: RecordedTrail) -> None:
    """S387: and a key that is another's is told apart from none at all."""
    run = observatory("verify", str(received.bundle))
    assert run.returncode == 0
    assert "signature    ok  by the key inside the bundle: pin it with --vkey" in run.stdout
    pinned = observatory("verify", str(received.bundle), "--vkey", received.vkey)
    assert "pin it" not in pinned.stdout and "missing_tail ok" in pinned.stdout
    code, found = checked(received.bundle, "--vkey", FOREIGN_KEY)
    assert code == 2 and found["checks"]["signature"] is False and found["checks"]["chain"]
    assert "--vkey:" in refused("verify", str(received.bundle), "--vkey", "nonsense")


def test_the_same_state_gives_the_same_bytes_at_both_doors_s385(
    received: RecordedTrail, tmp_path: Path
) -> None:
    """S385: the terminal's file is the door's answer."""
    path, out = f"/v1/sessions/{received.session_id}/evidence", tmp_path / "again.zip"
    answer = received.tenant.http("admin").get(path)
    assert answer.headers["content-type"] == "application/zip"
    assert int(answer.headers["content-length"]) == len(answer.content)
    words = ("--bundle", received.session_id, "-o", str(out), "--data", str(received.tenant.folder))
    assert observatory("export", *words).returncode == 0
    assert answer.content == out.read_bytes() == received.tenant.http("admin").get(path).content


def test_a_bundle_is_held_against_a_checkpoint_that_was_kept_s392(
    received: RecordedTrail, tmp_path: Path
) -> None:
    """S392: its own, or the older one it brings with it; of any other it says where a proof is had."""
    with zipfile.ZipFile(received.bundle) as archive:
        newest = archive.read("checkpoint").decode()
        older: str = json.loads(archive.read("consistency.json"))["checkpoint"]
    kept = tmp_path / "kept"
    for note in (newest, older):
        kept.write_text(note)
        assert checked(received.bundle, "--vkey", received.vkey, "--checkpoint", str(kept))[0] == 0
        lines_kept = note.splitlines(keepends=True)
        kept.write_text("".join([*lines_kept[:2], "A" * 43 + "=\n", *lines_kept[3:]]))
        code, found = checked(received.bundle, "--checkpoint", str(kept))
        assert code == 2 and "another root" in found["breaks"][-1]["sentence"]
        kept.write_text("".join(["elsewhere\n", *lines_kept[1:]]))
        code, found = checked(received.bundle, "--checkpoint", str(kept))
        assert code == 2 and "of another log" in found["breaks"][-1]["sentence"]
    kept.write_text("".join([lines_kept[0], "1\n", *lines_kept[2:]]))
    assert "no proof from a checkpoint of 1" in refused(
        "verify", str(received.bundle), "--checkpoint", str(kept)
    )
    assert "cannot be read" in refused("verify", str(received.bundle), "--checkpoint", str(tmp_path / "none"))


def test_many_who_ask_at_once_are_answered_or_told_to_ask_again_s385(received: RecordedTrail) -> None:
    """S385: and whoever is answered has the whole of it."""
    http, path = received.tenant.http("admin"), f"/v1/sessions/{received.session_id}/evidence"
    with ThreadPoolExecutor(8) as crowd:
        answers = list(crowd.map(lambda _: http.get(path), range(24)))
    assert {answer.status_code for answer in answers} <= {200, 429}
    assert len({answer.content for answer in answers if answer.status_code == 200}) == 1
    assert all(answer.json()["reason"] == "busy" for answer in answers if answer.status_code == 429)


def test_who_may_have_evidence_and_of_what_s383(received: RecordedTrail, server: Server) -> None:
    """S383: auditors and admins, of sessions of their own tenant."""
    path = f"/v1/sessions/{received.session_id}/evidence"
    codes = {
        role: received.tenant.http(role).get(path).status_code for role in ("operator", "agent", "auditor")
    }
    assert codes == {"operator": 403, "agent": 403, "auditor": 200}
    for foreign in (
        server.http("admin").get(path),
        received.tenant.http("admin").get("/v1/sessions/no/evidence"),
    ):
        assert foreign.status_code == 404 and foreign.json()["reason"] == "not_found"


def test_a_session_without_thoughts_has_evidence_too_s384(received: RecordedTrail, tmp_path: Path) -> None:
    """S384: and a session of thoughts alone, not sealed yet."""
    sent = received.tenant.send(decision_log()).json()
    alone = received.tenant.http("agent").post("/v1/thoughts", json=thought_of("plan", "tsk_alone")).json()
    for session_id, records in ((sent["session_id"], 0), (alone["session_id"], 1)):
        out = tmp_path / f"{records}.zip"
        words = ("--bundle", session_id, "--out", str(out), "--data", str(received.tenant.folder))
        assert observatory("export", *words).returncode == 0
        code, found = checked(out, "--vkey", received.vkey)
        assert code == 0 and found["records"] == records and found["events"] > 0
        assert found["checks"]["seal"] is None and found["checks"]["missing_tail"] is None
        assert found["checks"]["inclusion"] and found["checks"]["signature"]


def repacked(path: Path, out: Path, **changed: bytes) -> Path:
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(out, "w") as new:
        for name in archive.namelist():
            new.writestr(name, changed.get(name.replace(".", "_"), archive.read(name)))
    return out


def test_a_bundle_that_was_touched_is_broken_and_no_bundle_is_refused_s390(
    received: RecordedTrail, tmp_path: Path
) -> None:
    """S386, S390: 2 for what does not hold, 1 for what could not be checked."""
    with zipfile.ZipFile(received.bundle) as archive:
        thoughts = archive.read("thoughts.jsonl")
    bent = repacked(received.bundle, tmp_path / "bent.zip", thoughts_jsonl=thoughts.replace(b"plan", b"plam"))
    code, found = checked(bent, "--vkey", received.vkey)
    assert code == 2 and {one["what"] for one in found["breaks"]} >= {"manifest", "records"}
    assert "thoughts.jsonl" in found["breaks"][0]["sentence"]
    whole = received.bundle.read_bytes()
    for number, raw in enumerate((whole[: len(whole) // 2], b"PK\x03\x04", b"", whole[:-30])):
        path = tmp_path / f"{number}.zip"
        path.write_bytes(raw)
        assert "not a whole zip file" in refused("verify", str(path))
    with zipfile.ZipFile(tmp_path / "double.zip", "w") as archive:
        archive.writestr("manifest.json", b"{}")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("manifest.json", b"{}")
    assert "two files of one name" in refused("verify", str(tmp_path / "double.zip"))
    assert "does not exist" in refused("verify", str(tmp_path / "none.zip"))
    assert observatory("verify", str(received.bundle), "--data", "x").returncode == 1


def test_a_zip_that_unpacks_to_more_than_it_says_is_refused_s390(tmp_path: Path) -> None:
    """S390: nothing is unpacked beyond what was bounded."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(101):
            archive.writestr(f"{number}", b"")
    (tmp_path / "many.zip").write_bytes(packed.getvalue())
    assert "larger than any evidence bundle" in refused("verify", str(tmp_path / "many.zip"))
    one = io.BytesIO()
    with zipfile.ZipFile(one, "w") as archive:
        archive.writestr("manifest.json", b"{}")
    raw = bytearray(one.getvalue())
    at = raw.index(b"PK\x01\x02") + 24  # where the archive says how large the file is
    raw[at : at + 4] = ((256 << 20) + 1).to_bytes(4, "little")
    (tmp_path / "large.zip").write_bytes(raw)
    with pytest.raises(CommandFailed, match="larger than any evidence bundle"):
        read_bundle(tmp_path / "large.zip")


@pytest.mark.parametrize("way", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_zip_packed_otherwise_is_refused_unopened_s390(tmp_path: Path, way: int) -> None:
    """S390: other ways than the zip's own two have errors of their own."""
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w", way) as archive:
        archive.writestr("manifest.json", bytes(range(256)) * 8)
    raw = bytearray(path.read_bytes())
    raw[60:100] = bytes(40)
    path.write_bytes(raw)
    with pytest.raises(CommandFailed, match="a compression that evidence bundles do not use"):
        read_bundle(path)


def test_a_bundle_is_never_overwritten_and_is_one_sessions_s383(
    received: RecordedTrail, tmp_path: Path
) -> None:
    """S383."""
    words = ("export", "--bundle", received.session_id, "--data", str(received.tenant.folder))
    assert "already exists" in refused(*words, "-o", str(received.bundle))
    assert "end in .zip" in refused(*words, "-o", str(tmp_path / "a.jsonl"))
    assert "does not exist" in refused(*words, "-o", str(tmp_path / "no" / "a.zip"))
    assert "one session" in refused(*words, "--from", "2", "-o", str(tmp_path / "a.zip"))
    gone = (
        "export",
        "--bundle",
        "nobody",
        "--data",
        str(received.tenant.folder),
        "-o",
        str(tmp_path / "a.zip"),
    )
    assert "no session of this tenant" in refused(*gone) and not (tmp_path / "a.zip").exists()


def test_the_guides_steps_lead_to_a_proof_and_a_whole_log_s389(
    received: RecordedTrail, tmp_path: Path
) -> None:
    """S383, S389: the agent of examples/prove, its bundle, its leaf, and the tiles as they are served."""
    folder = received.tenant.folder
    done = subprocess.run(
        [sys.executable, "examples/prove/decide.py"],
        env=clean_environment(OBSERVATORY_DATA=str(folder)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    out = tmp_path / "evidence.zip"
    words = ("--bundle", done.stdout.strip(), "-o", str(out), "--data", str(folder))
    assert observatory("export", *words).returncode == 0
    assert checked(out, "--vkey", received.vkey)[0] == 0
    key = read_key(received.vkey)
    assert isinstance(key, Key)
    with zipfile.ZipFile(out) as archive:
        proven = read_proof(archive.read("anchor.tlog-proof"), archive.read("anchor.leaf"), [key])
        assert b"thought_session_sealed" in archive.read("events.jsonl")
    assert isinstance(proven, ProvenLeaf)
    copied = {**os.environ, "OBSERVATORY_KEY": received.tenant.key("operator")}
    address = f"{received.tenant.url}/v1/log/{received.tenant.tenant_id}"
    command = [sys.executable, "examples/prove/mirror.py", address, str(tmp_path / "log")]
    assert subprocess.run(command, env=copied, check=False, timeout=60).returncode == 0

    def read(path: str) -> bytes | None:
        place = tmp_path / "log" / path
        return place.read_bytes() if place.is_file() else None

    found = check_log(read, [key])
    assert not isinstance(found, str) and found.size >= proven.leaf_index
