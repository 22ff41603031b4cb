"""Sign-ins end with their key, their hours and their disuse, and a link is spent by a person only (B13)."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import uuid
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.flows.server import Server, observatory
from tests.waiting import until

Json = dict[str, Any]


def asking(server: Server, key: str) -> httpx2.Client:
    headers = {"authorization": f"Bearer {key}"}
    return httpx2.Client(base_url=server.url, headers=headers, trust_env=False)


def new_key(server: Server, **asked: Any) -> Json:
    made = server.http("admin").post("/v1/keys", json={"role": "admin"} | asked)
    assert made.status_code == 201, made.text
    found: Json = made.json()
    return found


def link_of(server: Server, key: str, **asked: str) -> str:
    with asking(server, key) as http:
        made = http.post("/v1/logins", json=asked)
    assert made.status_code == 201, made.text
    url: str = made.json()["url"]
    return url


def browser_of(server: Server, key: str, **asked: str) -> httpx2.Client:
    browser = httpx2.Client(base_url=server.url, trust_env=False)
    assert browser.post(link_of(server, key, **asked)).status_code == 303
    return browser


def code(browser: httpx2.Client) -> int:
    return browser.get("/v1/whoami").status_code


def in_the_record(server: Server, sql: str, *values: Any) -> None:
    """As if time had passed."""
    with closing(sqlite3.connect(server.folder / "observatory.db")) as database, database:
        assert database.execute(sql, values).rowcount > 0


def login_id(browser: httpx2.Client) -> str:
    (mine,) = [one for one in browser.get("/v1/logins").json()["items"] if one["current"]]
    found: str = mine["login_id"]
    return found


def test_a_sign_in_ends_with_the_key_it_was_made_with_s1182(either_server: Server) -> None:
    """S1182: whoever it signed in, and a link that was not followed yet, and an open socket."""
    server = either_server
    key, admin = new_key(server), server.http("admin")
    other = admin.post("/v1/users", json={"name": f"x-{uuid.uuid4()}", "role": "viewer"}).json()
    mine = browser_of(server, key["key"])
    theirs = browser_of(server, key["key"], user_id=other["user_id"])
    unspent = link_of(server, key["key"])
    stays = browser_of(server, server.key("admin"))
    cookie = {"cookie": f"observatory={mine.cookies['observatory']}"}
    with connect(f"{server.socket_url}/v1/live", additional_headers=cookie) as live:
        live.send(json.dumps({"op": "subscribe", "topics": ["events"]}))
        assert json.loads(live.recv(10))["type"] == "snapshot"
        assert admin.delete(f"/v1/keys/{key['key_id']}").status_code == 200
        assert [code(mine), code(theirs), code(stays)] == [401, 401, 200]
        assert httpx2.post(unspent, trust_env=False).status_code == 401
        with pytest.raises(ConnectionClosed):
            list(live)
    listed = {one["key_id"] for one in admin.get("/v1/logins").json()["items"]}
    assert key["key_id"] not in listed


def test_a_sign_in_ends_when_its_key_ends_s1182(server: Server) -> None:
    ends = datetime.now(UTC) + timedelta(minutes=5)
    key = new_key(server, expires_at=ends.isoformat())
    link = link_of(server, key["key"])
    with httpx2.Client(base_url=server.url, trust_env=False) as browser:
        spent = browser.post(link)
        assert 0 < int(re.findall(r"max-age=(\d+)", spent.headers["set-cookie"].lower())[0]) <= 300
        (mine,) = [one for one in browser.get("/v1/logins").json()["items"] if one["current"]]
        assert datetime.fromisoformat(mine["expires_at"]) <= ends
        in_the_record(server, "UPDATE api_keys SET expires_ns = 1 WHERE key_id = ?", key["key_id"])
        assert code(browser) == 401


def test_a_role_change_that_ends_a_key_ends_its_sign_ins_s1182(server: Server) -> None:
    admin = server.http("admin")
    user = admin.post("/v1/users", json={"name": f"x-{uuid.uuid4()}", "role": "operator"}).json()
    key = new_key(server, role="operator", user_id=user["user_id"])
    with (
        closing(browser_of(server, key["key"])) as own,
        closing(browser_of(server, server.key("admin"), user_id=user["user_id"])) as given,
    ):
        assert admin.put(f"/v1/users/{user['user_id']}", json={"role": "viewer"}).status_code == 200
        assert code(own) == 401
        assert given.get("/v1/whoami").json()["role"] == "viewer"


def test_a_cookie_makes_no_login_link_s1183(server: Server) -> None:
    """S1183: not for its own user nor for another; and an invitation ends with the cookie's key."""
    key = new_key(server)
    with closing(browser_of(server, key["key"])) as browser:
        me = browser.get("/v1/whoami").json()["user_id"]
        for asked in ({}, {"user_id": me}, {"user_id": "usr_none"}):
            refused = browser.post("/v1/logins", json=asked)
            assert refused.status_code == 403 and "observatory login" in refused.json()["detail"]
        made = browser.post("/v1/users", json={"name": f"x-{uuid.uuid4()}", "role": "admin"}).json()
        with httpx2.Client(base_url=server.url, trust_env=False) as invited:
            assert invited.post(made["invite_url"]).status_code == 303
            assert code(invited) == 200
            server.http("admin").delete(f"/v1/keys/{key['key_id']}")
            assert code(invited) == 401 and code(browser) == 401


def test_a_sign_in_ends_after_its_hours_and_when_it_is_not_used_s1184(server: Server) -> None:
    """S1184: use prolongs the one and not the other."""
    with closing(browser_of(server, server.key("admin"))) as browser:
        mine = login_id(browser)
        begun = "SELECT created_ns, seen_ns, expires_ns FROM logins WHERE login_id = ?"
        with closing(sqlite3.connect(server.folder / "observatory.db")) as database:
            created, seen, expires = database.execute(begun, (mine,)).fetchone()
        assert expires - created == 12 * 3600 * 10**9 and seen == created
        back = "UPDATE logins SET seen_ns = seen_ns - ?, created_ns = created_ns - ? WHERE login_id = ?"
        in_the_record(server, back, 59 * 60 * 10**9, 59 * 60 * 10**9, mine)
        assert code(browser) == 200

        def used() -> bool:
            (row,) = [one for one in browser.get("/v1/logins").json()["items"] if one["login_id"] == mine]
            return bool(row["last_used_at"] > row["created_at"])

        until(used)
        (row,) = [one for one in browser.get("/v1/logins").json()["items"] if one["login_id"] == mine]
        assert datetime.fromisoformat(row["expires_at"]).timestamp() * 1e9 == pytest.approx(expires, abs=1e6)
    with closing(browser_of(server, server.key("admin"))) as idle:
        mine = login_id(idle)
        in_the_record(server, back, 61 * 60 * 10**9, 61 * 60 * 10**9, mine)
        assert code(idle) == 401
        assert mine not in {one["login_id"] for one in server.http("admin").get("/v1/logins").json()["items"]}
    with closing(browser_of(server, server.key("admin"))) as over:
        in_the_record(server, "UPDATE logins SET expires_ns = 1 WHERE login_id = ?", login_id(over))
        assert code(over) == 401


def test_sign_ins_are_listed_and_ended_by_whose_they_are_and_by_admins_s1185(server: Server) -> None:
    admin = server.http("admin")
    user = admin.post("/v1/users", json={"name": f"x-{uuid.uuid4()}", "role": "viewer"}).json()
    mine = {"user_id": user["user_id"]}
    first = browser_of(server, server.key("admin"), **mine)
    second = browser_of(server, server.key("admin"), **mine)
    boss = browser_of(server, server.key("admin"))
    ids = {login_id(one): one for one in (first, second)}
    assert {one["login_id"] for one in first.get("/v1/logins").json()["items"]} == {
        *ids,
        *(one["login_id"] for one in admin.get("/v1/logins", params=mine).json()["items"]),
    }
    assert first.delete(f"/v1/logins/{login_id(boss)}").status_code == 404
    assert first.delete(f"/v1/logins/{login_id(second)}").json()["ended"] is True
    assert [code(first), code(second)] == [200, 401]
    assert first.delete(f"/v1/logins/{ids and next(iter(ids))}").status_code == 200  # its own
    assert code(first) == 401
    everyone = admin.get("/v1/logins").json()["items"]
    assert login_id(boss) in {one["login_id"] for one in everyone}
    assert "token" not in json.dumps(everyone) and "hash" not in json.dumps(everyone)
    assert admin.delete(f"/v1/logins/{login_id(boss)}").status_code == 200 and code(boss) == 401
    event = admin.get("/v1/audit/tenant", params={"limit": 1}).json()["items"][0]
    assert event["body"]["event_type"] == "user_signed_out"
    assert server.http("agent").get("/v1/logins").status_code == 403


def test_the_terminal_lists_and_ends_sign_ins_s1185(server: Server) -> None:
    with closing(browser_of(server, server.key("operator"))) as browser:
        mine = login_id(browser)
        listed = observatory("logins", "list", "--data", str(server.folder))
        (row,) = [line for line in listed.stdout.splitlines() if mine in line]
        assert "Operator" in row
        ended = observatory("logins", "end", mine, "--data", str(server.folder))
        assert ended.returncode == 0 and code(browser) == 401
        again = observatory("logins", "end", mine, "--data", str(server.folder))
        assert again.returncode == 1 and "no sign-in" in again.stderr


def within(server: Server, **asked: Any) -> tuple[httpx2.Client, str]:
    made = new_key(server, **asked)
    return asking(server, made["key"]), made["key_id"]


def test_a_new_key_never_exceeds_the_one_it_is_made_with_s1186(server: Server) -> None:
    """S1186: neither scopes nor end, by key or browser; nor does an invitation."""
    ends = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    maker, _ = within(server, scopes=["admin", "read"], expires_at=ends)
    with maker:
        taken = maker.post("/v1/keys", json={"role": "admin"}).json()
        assert taken["scopes"] == ["admin", "read"] and taken["expires_at"] is not None
        assert datetime.fromisoformat(taken["expires_at"]) <= datetime.fromisoformat(ends)
        assert maker.post("/v1/keys", json={"role": "viewer"}).json()["scopes"] == ["read"]
        for asked, answer in (
            ({"role": "admin", "scopes": ["admin", "operate"]}, 403),
            ({"role": "agent"}, 403),
            ({"role": "viewer", "expires_at": "2099-01-01T00:00:00Z"}, 422),
        ):
            refused = maker.post("/v1/keys", json=asked)
            assert refused.status_code == answer, refused.text
        user = maker.post("/v1/users", json={"name": f"x-{uuid.uuid4()}", "role": "admin"})
        assert user.status_code == 201 and user.json()["invite_url"] is None
        tenant = maker.post("/v1/tenants", json={"display_name": "Bounded"}).json()
        with asking(server, tenant["key"]) as there:
            (first,) = there.get("/v1/keys").json()["items"]
            assert first["scopes"] == ["admin", "read"] and first["expires_at"] is not None
    whole = new_key(server, expires_at=ends)
    with closing(browser_of(server, whole["key"])) as browser:
        made = browser.post("/v1/keys", json={"role": "agent"}).json()
        assert made["expires_at"] == whole["expires_at"]
        late = {"role": "agent", "expires_at": "2099-01-01T00:00:00Z"}
        assert browser.post("/v1/keys", json=late).status_code == 422


def test_looking_at_a_login_link_does_not_spend_it_s1187(server: Server) -> None:
    """S1187: its page has a button; what fetches links ahead gets no cookie."""
    link = link_of(server, server.key("operator"))
    for method in ("GET", "HEAD", "GET"):
        seen = httpx2.request(method, link, headers={"accept": "text/html"}, trust_env=False)
        assert seen.status_code in (200, 405) and "set-cookie" not in seen.headers
    assert "Operator" in seen.text and 'method="post"' in seen.text and "<script" not in seen.text
    policy = seen.headers["content-security-policy"]
    assert "form-action 'self'" in policy and seen.headers["cache-control"] == "no-store"
    (action,) = re.findall(r'action="([^"]+)"', seen.text)
    with httpx2.Client(base_url=server.url, trust_env=False) as browser:
        foreign = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
        assert browser.post(link, headers=foreign).status_code == 403
        spent = browser.post(action.replace("&amp;", "&"), headers={"origin": server.url})
        assert spent.status_code == 303 and code(browser) == 200
    assert httpx2.get(link, trust_env=False).status_code == 401


def test_a_link_pressed_twice_at_once_signs_in_once_s1187(server: Server) -> None:
    link, codes = link_of(server, server.key("operator")), []

    def press() -> None:
        codes.append(httpx2.post(link, trust_env=False).status_code)

    threads = [threading.Thread(target=press) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes)[0] == 303 and set(codes[:]) - {303} <= {401, 409} and codes.count(303) == 1


def test_a_name_in_a_login_page_is_text_s1187(server: Server) -> None:
    name = f"<img src=x> ROLE ACTION {uuid.uuid4()}"
    user = server.http("admin").post("/v1/users", json={"name": name, "role": "viewer"}).json()
    text = httpx2.get(user["invite_url"], params=None, trust_env=False).text
    assert "<img" not in text and "&lt;img src=x&gt; ROLE ACTION" in text
    named: Callable[[str], bool] = re.compile(r'action="/login\?token=').search  # type: ignore[assignment]
    assert named(text)
