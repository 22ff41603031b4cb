"""Keys, cookies, Hosts and Origins at the door, over a directory in memory."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from observatory.http import authentication as module
from observatory.http.authentication import PERMISSIONS, Auth, allows, cookie_of
from observatory.pipeline.state import Principal
from observatory.protocol.credentials import digest, new_key, public_id
from observatory.settings import Settings

ADMIN = Principal(tenant_id="tnt_1", role="admin", key_id="key_1", user_id="usr_1")


class Directory:
    """One key, one link, one cookie; counts how often it is asked."""

    def __init__(self, key: str) -> None:
        self.keys = {public_id(key): (ADMIN, digest(key))}
        self.asked = 0
        row = {
            "tenant_id": "tnt_1",
            "role": "viewer",
            "login_id": "log_1",
            "user_id": "usr_1",
            "access_version": 0,
            "created_ns": time.time_ns(),
            "seen_ns": None,
            "expires_ns": 1 << 62,
        }
        self.logins = {digest("link"): row | {"kind": "link"}, digest("cookie"): row | {"kind": "cookie"}}

    async def principal_by_key(self, public_id: str) -> tuple[Principal, bytes] | None:
        self.asked += 1
        return self.keys.get(public_id)

    async def login_by_token(self, token_hash: bytes) -> dict[str, Any] | None:
        return self.logins.get(token_hash)


@pytest.fixture
def key() -> str:
    return new_key()


@pytest.fixture
def directory(key: str) -> Directory:
    return Directory(key)


def auth_over(directory: Directory, **settings: Any) -> Auth:
    return Auth(directory, Settings(**settings))


def identified(auth: Auth, **headers: str) -> Principal | None:
    return asyncio.run(auth.identify({name.encode(): text.encode() for name, text in headers.items()}))


def test_a_key_is_known_by_its_whole_secret(directory: Directory, key: str) -> None:
    """S51: the public part alone opens nothing, even with a right checksum."""
    auth = auth_over(directory)
    assert identified(auth, authorization=f"Bearer {key}") == ADMIN
    assert identified(auth, authorization=f"bearer  {key}") == ADMIN
    forged = new_key()
    directory.keys[public_id(forged)] = (ADMIN, digest(key))
    assert identified(auth, authorization=f"Bearer {forged}") is None
    for wrong in (key[:-1], key + "a", key.swapcase(), "", "obs_", "ö" * 54):
        assert identified(auth, authorization=f"Bearer {wrong}") is None


def test_a_mistyped_key_never_reaches_the_database(directory: Directory, key: str) -> None:
    """S51: its checksum tells."""
    auth = auth_over(directory)
    for place in range(4, len(key)):
        typo = key[:place] + ("x" if key[place] != "x" else "y") + key[place + 1 :]
        assert identified(auth, authorization=f"Bearer {typo}") is None
    assert directory.asked == 0


def test_a_known_key_is_asked_for_once_until_access_changes(
    directory: Directory, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S52: after any change of access, or two seconds, the directory is asked again."""
    auth, now = auth_over(directory), [100.0]
    monkeypatch.setattr("observatory.http.authentication.time.monotonic", lambda: now[0])
    for _ in range(3):
        identified(auth, authorization=f"Bearer {key}")
    assert directory.asked == 1
    auth.forget()
    identified(auth, authorization=f"Bearer {key}")
    assert directory.asked == 2
    now[0] += module.CACHE_S + 0.1
    directory.keys.clear()
    assert identified(auth, authorization=f"Bearer {key}") is None


def test_a_key_many_hold_is_asked_for_once_and_anew_once_access_changed_s52(
    directory: Directory, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        auth, headers = Auth(directory, Settings()), {b"authorization": f"Bearer {key}".encode()}
        held, ask = asyncio.Event(), directory.principal_by_key

        async def slowly(public: str) -> tuple[Principal, bytes] | None:
            found = await ask(public)
            await held.wait()
            return found

        monkeypatch.setattr(directory, "principal_by_key", slowly)
        early = [asyncio.create_task(auth.identify(headers)) for _ in range(5)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert directory.asked == 1
        early[0].cancel()  # one that leaves takes the answer from nobody
        directory.keys.clear()  # revoked here
        auth.forget()
        late = asyncio.create_task(auth.identify(headers))
        await asyncio.sleep(0)
        held.set()
        assert await asyncio.gather(*early[1:]) == [ADMIN] * 4
        assert await late is None and directory.asked == 2
        assert await auth.identify(headers) is None

    asyncio.run(body())


def test_a_key_is_not_remembered_past_its_own_end(
    directory: Directory, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S52: also when it was used a moment before."""
    auth, now = auth_over(directory), [100.0]
    monkeypatch.setattr("observatory.http.authentication.time.monotonic", lambda: now[0])
    monkeypatch.setattr("observatory.http.authentication.time.time_ns", lambda: 0)
    ending = Principal(tenant_id="tnt_1", role="viewer", key_id="key_2", expires_ns=500_000_000)
    directory.keys[public_id(key)] = (ending, digest(key))
    assert identified(auth, authorization=f"Bearer {key}") == ending
    directory.keys.clear()
    now[0] += 0.4
    assert identified(auth, authorization=f"Bearer {key}") == ending
    now[0] += 0.2
    assert identified(auth, authorization=f"Bearer {key}") is None


def test_the_cache_is_bounded(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHE_SIZE", 3)
    auth = auth_over(directory)
    for _ in range(10):
        made = new_key()
        directory.keys[public_id(made)] = (ADMIN, digest(made))
        assert identified(auth, authorization=f"Bearer {made}") == ADMIN
    assert len(auth._cache) == 3


def test_a_link_is_no_cookie_and_a_cookie_no_link_s56(directory: Directory) -> None:
    """S56: and a header that names a key, right or wrong, makes the cookie count for nothing."""
    auth = auth_over(directory)
    found = identified(auth, cookie="a=b; observatory=cookie")
    assert found is not None and (found.role, found.key_id) == ("viewer", "log_1")
    assert identified(auth, cookie="observatory=link") is None
    assert identified(auth, cookie="observatory=cookie", authorization="Bearer obs_x") is None
    assert asyncio.run(auth.by_link("cookie")) is None
    assert asyncio.run(auth.by_link("link")) is not None


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("observatory=x", "x"),
        ("__Host-observatory=secure; observatory=plain", "secure"),
        ("other=1", None),
        ("", None),
        ("observatory", None),
        ("__Host-observatory=secure", None),
        ("\x00=;;;", None),
    ],
)
def test_a_cookie_is_found_among_others(text: str, token: str | None) -> None:
    assert (
        cookie_of({b"cookie": text.encode()}, "__Host-observatory" if token == "secure" else "observatory")
        == token
    )


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("localhost", True),
        ("LocalHost:99", True),
        ("192.168.1.7:4800", True),
        ("[fe80::1]:4800", True),
        ("mine.example", True),
        ("mine.example:443", True),
        ("", False),
        ("evil.example", False),
        ("mine.example.evil.example", False),
        ("localhost@evil.example", False),
        ("[", False),
    ],
)
def test_a_name_must_be_ours_and_an_address_cannot_be_rebound_s55(
    directory: Directory, host: str, ours: bool
) -> None:
    """S55."""
    auth = auth_over(directory, allowed_hosts=("Mine.Example",))
    assert auth.is_host_allowed({b"host": host.encode()}) is ours


@pytest.mark.parametrize(
    ("headers", "ours"),
    [
        ({}, True),
        ({"origin": "http://localhost:4800"}, True),
        ({"origin": "HTTP://LOCALHOST:4800"}, True),
        ({"origin": "https://ui.example"}, True),
        ({"origin": "https://ui.example", "sec-fetch-site": "cross-site"}, True),
        ({"origin": "http://localhost:4801"}, False),
        ({"origin": "null"}, False),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
    ],
)
def test_an_origin_is_ours_or_allowed_s55(directory: Directory, headers: dict[str, str], ours: bool) -> None:
    """S55."""
    auth = auth_over(directory, allowed_origins=("https://UI.example/",))
    sent = {b"host": b"localhost:4800"} | {name.encode(): text.encode() for name, text in headers.items()}
    assert auth.is_origin_allowed(sent) is ours


def test_scopes_only_narrow_what_a_role_grants_s58() -> None:
    """S58."""
    reader = Principal(tenant_id="t", role="viewer", key_id="k", scopes=("read", "admin"))
    assert allows(reader, "read") and not allows(reader, "admin")
    narrowed = Principal(tenant_id="t", role="admin", key_id="k", scopes=("verify",))
    assert allows(narrowed, "verify") and not allows(narrowed, "read")
    assert PERMISSIONS["agent"] == {"send"}
    assert all(PERMISSIONS[role] <= PERMISSIONS["admin"] for role in PERMISSIONS)


def test_who_was_vouched_for_has_the_rights_of_its_key_and_no_longer_than_that_s825_s826(
    directory: Directory, key: str
) -> None:
    """S825, S826: the word counts in this process and while it lasts; the key is looked at all the same."""
    auth = auth_over(directory)
    public = public_id(key) or ""
    with auth.vouched(public, digest(key)) as proof:
        assert identified(auth, authorization=proof.decode()) == ADMIN
        assert identified(auth, authorization=proof.decode() + "x") is None
        assert identified(auth, authorization=f"Bearer {proof.decode().partition(' ')[2]}") is None
        del directory.keys[public]
        auth.forget()
        assert identified(auth, authorization=proof.decode()) is None
    directory.keys[public] = (ADMIN, digest(key))
    assert identified(auth, authorization=proof.decode()) is None
    with auth.vouched(public, digest("another")) as proof:
        assert identified(auth, authorization=proof.decode()) is None


def test_the_hash_a_signature_is_checked_with_is_forgotten_when_access_changes_s826(
    directory: Directory, key: str
) -> None:
    """S826."""
    auth, public = auth_over(directory), public_id(key) or ""
    assert [asyncio.run(auth.hash_of(public)) for _ in range(3)] == [digest(key)] * 3
    assert directory.asked == 1
    del directory.keys[public]
    auth.forget()
    assert asyncio.run(auth.hash_of(public)) is None


def test_a_sockets_cookie_is_remembered_for_two_seconds_and_no_key_passes_for_one_s52_s847(
    directory: Directory, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S52, S847: a request looks anew, and so does a socket once access changed here or the time is over."""
    auth, now = auth_over(directory), [1_000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0], time_ns=time.time_ns))
    row = directory.logins[digest("cookie")]
    headers = {b"cookie": b"observatory=cookie"}

    def known(may_be_cached: bool = True) -> bool:
        return asyncio.run(auth.identify(headers, may_be_cached)) is not None

    assert known()
    del directory.logins[digest("cookie")]
    assert known() and not known(may_be_cached=False) and not known()
    directory.logins[digest("cookie")] = row
    assert known()
    del directory.logins[digest("cookie")]
    auth.forget()
    assert not known()
    directory.logins[digest("cookie")] = row
    assert known()
    del directory.logins[digest("cookie")]
    now[0] += 2.1
    assert not known()
    assert identified(auth, authorization=f"Bearer {key}") == ADMIN
    assert identified(auth, cookie=f"observatory={key}") is None
