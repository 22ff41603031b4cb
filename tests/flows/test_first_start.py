"""A new database next to an old folder, and an old database next to a folder of another (D20, E24)."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import pytest

from bench.postgres import ask
from tests.flows.databases import ALONE, new_database
from tests.flows.server import Server, observatory
from tests.samples import decision_log


@pytest.fixture
def old(tmp_path: Path) -> Server:
    """A folder whose gateway was started once, with a message on record, and stopped."""
    with Server(tmp_path / "data", environment=ALONE) as running:
        assert running.send(decision_log()).status_code == 202
    return running


def refused(server: Server, *options: str) -> str:
    """The one sentence of a start that cannot be."""
    run = observatory("serve", "--data", str(server.folder), "--port", "0", *options, environment=ALONE)
    assert run.returncode == 1 and run.stdout == "", run
    (sentence,) = run.stderr.splitlines()
    assert sentence.startswith("observatory: ")
    return sentence


def test_an_old_folder_grows_onto_postgresql_in_two_sentences_s1180(old: Server, postgres_url: str) -> None:
    """S1180: the refusal says what to do, leaves nothing behind, and what it says works."""
    url, before = new_database(postgres_url), old.credentials
    sentence = refused(old, "--db", url)
    assert "credentials.json" in sentence and "observatory copy --from sqlite:///" in sentence
    assert ask(url, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace") == [(0,)]
    assert old.credentials == before and not list(old.folder.glob("*.before-*"))

    source = sentence.partition("--from ")[2].partition(" ")[0]
    copied = observatory("copy", "--from", source, "--to", url)
    assert copied.returncode == 0, copied.stderr
    with Server(old.folder, "--db", url, environment=ALONE) as grown:
        assert grown.credentials["admin_key"] == before["admin_key"]
        assert len(grown.http("admin").get("/v1/messages").json()["items"]) == 1
        assert grown.send(decision_log()).status_code == 202


def test_a_database_that_was_migrated_only_is_empty_too_s1180(old: Server, postgres_url: str) -> None:
    url = new_database(postgres_url)
    assert observatory("migrate", "--db", url).returncode == 0
    assert "the database is empty" in refused(old, "--db", url)
    source = f"sqlite:///{old.folder / 'observatory.db'}"
    assert observatory("copy", "--from", source, "--to", url).returncode == 0


def test_a_lost_sqlite_file_is_not_begun_again_s1180(old: Server) -> None:
    """S1180: nor is another file begun beside it."""
    other = old.folder.parent / "other" / "fresh.db"
    other.parent.mkdir()
    assert "--data" in refused(old, "--db", f"sqlite:///{other}")
    assert not other.exists()
    kept = old.folder / "observatory.db"
    aside = kept.rename(kept.with_name("aside.db"))
    assert "put it back" in refused(old)
    assert not kept.exists()
    aside.rename(kept)
    with old:
        assert old.http("admin").get("/v1/whoami").status_code == 200


def test_keys_of_another_database_are_set_aside_s1181(old: Server, postgres_url: str, tmp_path: Path) -> None:
    """S1181: a folder meets a database that others began: it gets keys that hold there."""
    url, before = new_database(postgres_url), old.credentials
    bound = old.folder / "agents" / "lone-1"
    bound.mkdir(parents=True)
    (bound / "agent.json").write_text(json.dumps({"url": old.url, "agent_key": before["agent_key"]}))
    with Server(tmp_path / "first", "--db", url, environment=ALONE) as first:
        assert first.send(decision_log()).status_code == 202
    with Server(old.folder, "--db", url, environment=ALONE) as joined:
        now = joined.credentials
        for name in ("admin_key", "operator_key", "agent_key"):
            assert now[name] != before[name]
            received = httpx2.get(
                f"{joined.url}/v1/whoami", headers={"authorization": f"Bearer {now[name]}"}, trust_env=False
            )
            assert received.status_code == 200
        (kept,) = joined.folder.glob("credentials.json.before-*")
        assert json.loads(kept.read_text())["admin_key"] == before["admin_key"]
        assert kept.stat().st_mode & 0o077 == 0 and kept.name in joined.log
        assert before["admin_key"] not in joined.log
        assert not (bound / "agent.json").exists() and len(list(bound.iterdir())) == 1
        people = joined.http("admin").get("/v1/users").json()["items"]
        assert sorted(one["name"] for one in people) == ["admin", "operator"]
    with joined:  # the keys are this database's now
        assert joined.credentials["admin_key"] == now["admin_key"]


@pytest.mark.parametrize("value", [None, 5])
def test_credentials_without_an_agents_key_are_refused_in_a_sentence_s1291(
    old: Server, value: object
) -> None:
    """S1291: a member a person removed or changed; with it back the gateway starts."""
    file, before = old.folder / "credentials.json", old.credentials
    file.write_text(json.dumps(before | {"agent_key": value}))
    assert "agent_key" in refused(old)
    file.write_text(json.dumps({name: text for name, text in before.items() if name != "agent_key"}))
    assert "agent_key" in refused(old)


def test_a_folder_whose_keys_were_all_revoked_keeps_them_s1181(fresh_server: Server) -> None:
    """S1181: revoked keys are of this database; a start gives nobody new ones."""
    admin, before = fresh_server.http("admin"), fresh_server.credentials
    for key in sorted(admin.get("/v1/keys").json()["items"], key=lambda one: one["role"] == "admin"):
        assert admin.delete(f"/v1/keys/{key['key_id']}").status_code == 200
    fresh_server.restart()
    assert fresh_server.credentials == before
