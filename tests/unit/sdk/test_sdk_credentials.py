"""Where the SDK looks for the gateway, and what it says when there is none."""

import json
from pathlib import Path

import pytest

from observatory.sdk import NotConfigured
from observatory.sdk.credentials import GatewayCredentials, credentials_of_agent, find_credentials, own_file
from observatory.sdk.spool import Spool, file_stem


def folder(path: Path, url: str = "http://file:1", key: str = "obs_file") -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "agent.json").write_text(json.dumps({"url": url, "agent_key": key}))
    return path


def test_arguments_come_before_environment_before_data_before_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder(tmp_path / ".observatory", "http://home:1", "obs_home")
    data = folder(tmp_path / "data", "http://data:1/", "obs_data")
    env = {"OBSERVATORY_URL": "http://env:1", "OBSERVATORY_KEY": "obs_env", "OBSERVATORY_DATA": str(data)}
    assert find_credentials("http://arg:1/", "obs_arg", None, env)[:2] == ("http://arg:1", "obs_arg")
    assert find_credentials(environ=env)[:3] == ("http://env:1", "obs_env", data)
    assert find_credentials(environ={"OBSERVATORY_DATA": str(data)})[:3] == (
        "http://data:1",
        "obs_data",
        data,
    )
    assert find_credentials(environ={})[:3] == ("http://home:1", "obs_home", tmp_path / ".observatory")


@pytest.mark.parametrize(
    ("url", "key", "says"),
    [
        (None, None, "observatory serve"),
        ("http://a:1", None, "set OBSERVATORY_KEY"),
        (None, "obs_k", "set OBSERVATORY_URL"),
        ("localhost:4800", "obs_k", "must look like http://127.0.0.1:4800"),
    ],
)
def test_what_is_missing_is_said_with_what_to_do(
    url: str | None, key: str | None, says: str, tmp_path: Path
) -> None:
    with pytest.raises(NotConfigured, match=says) as caught:
        find_credentials(url, key, tmp_path, {})
    assert "obs_" not in str(caught.value) or "`obs_…`" in str(caught.value)


def test_a_key_from_a_file_is_never_sent_to_another_gateway(tmp_path: Path) -> None:
    with pytest.raises(NotConfigured, match="is for http://file:1"):
        find_credentials("http://stranger:1", None, folder(tmp_path), {})


def test_a_broken_agent_file_is_named_and_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "agent.json").write_text('{"url": "http://a:1", "agent_key": "obs_secret"')
    with pytest.raises(NotConfigured, match="is not a valid agent key file") as caught:
        find_credentials(None, None, tmp_path, {})
    assert "obs_secret" not in str(caught.value)
    assert "obs_secret" not in repr(find_credentials("http://a:1", "obs_secret", tmp_path, {}))


def test_an_agent_never_reads_the_keys_of_its_governors_s980(tmp_path: Path) -> None:
    known = {"url": "http://a:1", "tenant_id": "tnt_default", "admin_key": "obs_a", "operator_key": "obs_o"}
    (tmp_path / "credentials.json").write_text(json.dumps(known | {"agent_key": "obs_agent"}))
    with pytest.raises(NotConfigured, match=r"restart the gateway .*agents do not read it") as caught:
        find_credentials(None, None, tmp_path, {})
    assert "obs_a" not in str(caught.value)


def test_an_agent_with_a_bound_key_uses_its_own_file_and_others_the_folders(tmp_path: Path) -> None:
    folder(tmp_path)
    for name in ("researcher", "../x", ".."):
        own = own_file(tmp_path, name)
        assert own.parent.parent == tmp_path / "agents", "no name leads out of the folder"
        folder(own.parent, key="obs_own")
        assert find_credentials(None, None, tmp_path, {}, agent_id=name).key == "obs_own"
    assert find_credentials(None, None, tmp_path, {}, agent_id="writer").key == "obs_file"
    assert find_credentials(None, None, tmp_path, {}).key == "obs_file"


def test_who_shares_an_outbox_listens_with_a_key_of_its_own_s1144(tmp_path: Path) -> None:
    """S1144: of this gateway only; a key is never sent to another."""
    door = GatewayCredentials("http://file:1", "obs_shared", tmp_path)
    folder(own_file(tmp_path, "writer").parent, key="obs_own")
    folder(own_file(tmp_path, "stranger").parent, "http://other:1", "obs_other")
    own_file(tmp_path, "broken").parent.mkdir(parents=True)
    own_file(tmp_path, "broken").write_text("{")
    keys = [credentials_of_agent(door, name).key for name in ("writer", "stranger", "broken", "nobody")]
    assert keys == ["obs_own", "obs_shared", "obs_shared", "obs_shared"]


def test_half_a_line_at_the_end_of_a_leftover_is_dropped_and_the_rest_kept(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path, "a", "http://a:1", 1000)
    spool.append([b"one", b"two"])
    with spool.path.open("ab") as file:
        file.write(b"hal")
    spool.release()
    (left,) = Spool.adopt(tmp_path, "a", "http://a:1", 1000)
    assert left.peek(10, 1 << 20) == [b"one", b"two"]
    left.advance(8)
    assert left.peek(10, 1 << 20) == []
    assert left.pending == 0
    left.release()


def test_a_line_longer_than_a_batch_is_still_read_whole(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path, "a", "http://a:1", 1 << 20)
    spool.append([b"x" * 5000, b"y"])
    assert spool.peek(10, 100)[0] == b"x" * 5000
    spool.release()


def test_file_names_are_safe_and_never_shared() -> None:
    assert file_stem("researcher-1") == "researcher-1"
    assert "/" not in file_stem("../../etc/passwd")
    assert file_stem("a/b") != file_stem("a_b")
