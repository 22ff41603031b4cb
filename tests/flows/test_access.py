"""Who may do what: every operation for every role, keys and their ends, browsers, Hosts and Origins."""

from __future__ import annotations

import json
import re
import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.flows.roles import CONFLICTED, MATRIX, PEOPLE, QUERIES, ROLES
from tests.flows.server import Server
from tests.samples import decision_log, envelope

Json = dict[str, Any]
READ_ONLY = "admin with a key that may read"


class Cast:
    """One person of each role with a key of their own, and an agent's key."""

    def __init__(self, server: Server) -> None:
        self.server = server
        admin = server.http("admin")
        self.ids: dict[str, str] = {}
        self.keys = {"agent": server.key("agent")}
        for role in PEOPLE:
            made = admin.post("/v1/users", json={"name": f"{role}-{uuid.uuid4()}", "role": role})
            assert made.status_code == 201, made.text
            self.ids[role] = made.json()["user_id"]
            key = admin.post("/v1/keys", json={"role": role, "user_id": self.ids[role]})
            self.keys[role] = key.json()["key"]
        narrow = {"role": "admin", "user_id": self.ids["admin"], "scopes": ["read"]}
        self.keys[READ_ONLY] = admin.post("/v1/keys", json=narrow).json()["key"]

    def ask(self, role: str, method: str, path: str, **more: Any) -> httpx2.Response:
        headers = more.pop("headers", {})
        if role in self.keys:
            headers = {"authorization": f"Bearer {self.keys[role]}"} | headers
        return self.server.http("nobody").request(method, path, headers=headers, **more)


@pytest.fixture(scope="module")
def cast(server: Server) -> Cast:
    return Cast(server)


def operations(server: Server) -> dict[str, tuple[str, str]]:
    paths = server.http("nobody").get("/schemas/openapi.json").json()["paths"]
    return {
        operation["operationId"]: (method.upper(), path)
        for path, methods in paths.items()
        for method, operation in methods.items()
    }


def test_the_matrix_names_every_operation_there_is(server: Server) -> None:
    """S58: a new route without a line in the table is red."""
    assert set(operations(server)) == set(MATRIX)


@pytest.mark.parametrize("role", [*ROLES, READ_ONLY, "nobody", "wrong key", "mistyped key"])
def test_every_operation_for_every_role_s58(server: Server, cast: Cast, role: str) -> None:
    """S50, S58: whoever may not is answered 403, whoever is nobody 401, and neither learns more."""
    key = server.key("agent")
    strangers = {"wrong key": "obs_" + "A" * 50, "mistyped key": key[:-1] + ("a" if key[-1] != "a" else "b")}
    for name, (method, path) in operations(server).items():
        allowed, body = MATRIX[name]
        if "viewer" in allowed and name != "create_login":  # a browser signs in with all its user may do
            allowed = allowed | {READ_ONLY}
        path = re.sub(r"\{[^}]*\}", str(uuid.uuid4()), path)
        headers = {"authorization": f"Bearer {strangers[role]}"} if role in strangers else {}
        if isinstance(body, dict) and "name" in body:
            body = body | {"name": f"matrix-{uuid.uuid4()}"}
        if name == "send_messages":
            body = decision_log()
            if role in cast.ids and role != "admin":  # people speak in their own name
                party = {"entity_id": cast.ids[role], "entity_type": "user", "hub_address": None}
                body = envelope("text", sender=party)
        answer = cast.ask(role, method, path, headers=headers, json=body, params=QUERIES.get(name))
        received = f"{role} {name}: {answer.status_code} {answer.text}"
        if role in allowed or (role in strangers and "nobody" in allowed):
            heard, reason = CONFLICTED.get(name, ((200, 201, 202, 404), ""))
            assert answer.status_code in heard, received
            assert answer.status_code != 409 or answer.json()["reason"] == reason, received
        elif role in ("nobody", *strangers):
            assert answer.status_code == 401, received
            assert answer.headers["www-authenticate"] == "Bearer", received
        else:
            assert answer.status_code == 403 or (name, role) == ("create_login", "agent"), received
        if answer.status_code >= 400:
            assert answer.json()["status"] == "refused" and answer.json()["detail"], received


@pytest.mark.parametrize("path", ["/", "/docs", "/schemas/openapi.json", "/schemas/decision_log.json"])
def test_pages_and_schemas_need_no_key_s50(server: Server, path: str) -> None:
    """S50: and no page of ours loads from elsewhere or can be framed."""
    answer = server.http("nobody").get(path)
    assert answer.status_code == 200
    if answer.headers["content-type"].startswith("text/html"):
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert not re.search(r"(src|href)=.https?:", answer.text)
    assert server.http("nobody").get("/pages/..%2Fapp.py").status_code == 404


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ([("Authorization", "bearer KEY")], 200),
        ([("authorization", "BEARER   KEY")], 200),
        ([("Authorization", "Basic KEY")], 401),
        ([("Authorization", "KEY")], 401),
        ([("Authorization", "Bearer")], 401),
        ([("Authorization", "")], 401),
        ([("Authorization", "Bearer KEY KEY")], 401),
        ([("Authorization", "Bearer KÉY")], 401),
        ([("X-Api-Key", "KEY")], 401),
        ([("Cookie", "observatory=KEY")], 401),
        ([("Authorization", "Bearer KEY"), ("Cookie", "observatory=nonsense; a=b; ;=")], 200),
        ([("Authorization", "Bearer obs_wrong"), ("Cookie", "observatory=KEY")], 401),
        ([("Authorization", "Bearer obs_wrong"), ("Authorization", "Bearer obs_false")], 400),
    ],
)
def test_ways_to_show_a_key(server: Server, headers: list[tuple[str, str]], code: int) -> None:
    """S50: one header, one scheme; a bad key is never mended by a cookie."""
    sent = [(name.encode(), text.replace("KEY", server.key("agent")).encode()) for name, text in headers]
    assert httpx2.get(f"{server.url}/v1/whoami", headers=sent, trust_env=False).status_code == code


def test_a_keys_secret_is_shown_once_and_only_its_hash_is_kept_s51(server: Server) -> None:
    """S51: not in a list, not in the trail, not in a file of the database."""
    made = server.http("admin").post("/v1/keys", json={"role": "agent", "label": "once"}).json()
    key = made["key"]
    assert re.fullmatch(r"obs_[0-9A-Za-z]{50}", key)
    assert (made["tenant_id"], made["role"]) == ("tnt_default", "agent")
    listed = server.http("admin").get("/v1/keys").json()["items"]
    assert [item["label"] for item in listed if item["key_id"] == made["key_id"]] == ["once"]
    assert key not in str(listed) and "hash" not in str(listed[0].keys())
    files = [path for path in server.folder.rglob("*") if path.is_file()]
    assert not [path.name for path in files if key[16:48].encode() in path.read_bytes()]
    assert key not in server.log


def test_a_revoked_key_does_nothing_more_s52(server: Server) -> None:
    """S52: it was in use and cached; the very next message and read are refused."""
    http = server.http("admin")
    made = http.post("/v1/keys", json={"role": "operator"}).json()
    with httpx2.Client(
        base_url=server.url, headers={"authorization": f"Bearer {made['key']}"}, trust_env=False
    ) as mine:
        assert mine.get("/v1/messages").status_code == 200
        assert http.delete(f"/v1/keys/{made['key_id']}").status_code == 200
        assert mine.post("/v1/messages", json=decision_log()).status_code == 401
        assert mine.get("/v1/messages").status_code == 401
    assert http.delete(f"/v1/keys/{made['key_id']}").status_code == 200


def test_a_disabled_user_is_out_with_all_keys_and_browsers_s52(server: Server) -> None:
    """S52: and their unused login link opens nothing."""
    http = server.http("admin")
    user = http.post("/v1/users", json={"name": f"leaver-{uuid.uuid4()}", "role": "operator"}).json()
    key = http.post("/v1/keys", json={"role": "operator", "user_id": user["user_id"]}).json()["key"]
    link = http.post("/v1/logins", json={"user_id": user["user_id"]}).json()["url"]
    with httpx2.Client(base_url=server.url, trust_env=False) as browser:
        assert browser.post(user["invite_url"]).status_code == 303
        assert browser.get("/v1/whoami").json()["user_id"] == user["user_id"]
        assert http.post(f"/v1/users/{user['user_id']}/disable").status_code == 200
        assert browser.get("/v1/whoami").status_code == 401
        assert browser.get("/v1/whoami", headers={"authorization": f"Bearer {key}"}).status_code == 401
        assert browser.post(link).status_code == 401


def test_an_expired_key_is_no_key(server: Server) -> None:
    """S52: from its hour on; and a time past is refused when it is made."""
    http = server.http("admin")
    for wrong in ("2020-01-01T00:00:00Z", "tomorrow", "2030-01-01T00:00:00"):
        assert http.post("/v1/keys", json={"role": "agent", "expires_at": wrong}).status_code == 422
    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    key = http.post("/v1/keys", json={"role": "agent", "expires_at": soon}).json()["key"]
    headers, deadline = {"authorization": f"Bearer {key}"}, time.monotonic() + 20
    while server.http("nobody").post("/v1/messages", json=decision_log(), headers=headers).status_code == 202:
        assert time.monotonic() < deadline
    answer = server.http("nobody").post("/v1/messages", json=decision_log(), headers=headers)
    assert answer.status_code == 401


@pytest.mark.req(449)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("as a user", "sender_mismatch"),
        ("as another agent", "sender_mismatch"),
        ("decision_response", "not_allowed"),
        ("system_event", "not_allowed"),
        ("a person in another's name", "sender_mismatch"),
    ],
)
def test_nobody_sends_in_anothers_name_s53(server: Server, cast: Cast, name: str, reason: str) -> None:
    """S53: 403, a security event, and nothing archived."""
    http, role = server.http("admin"), "agent"
    sent: Json = envelope("text", sender={"entity_id": "usr_1", "entity_type": "user"})
    headers: dict[str, str] = {}
    if name == "as another agent":
        made = http.post("/v1/keys", json={"role": "agent", "agent_id": "bound-1"}).json()
        headers = {"authorization": f"Bearer {made['key']}"}
        own = decision_log(identity={"agent_id": "bound-1"})
        assert cast.ask(role, "POST", "/v1/messages", headers=headers, json=own).status_code == 202
        sent = decision_log(identity={"agent_id": "bound-2"})
    elif name in ("decision_response", "system_event"):
        sent = envelope(name)
    elif name.startswith("a person"):
        role = "operator"
        sent = envelope("text", sender={"entity_id": cast.ids["approver"], "entity_type": "user"})
    answer = cast.ask(role, "POST", "/v1/messages", headers=headers, json=sent)
    assert (answer.status_code, answer.json()["reason"]) == (403, reason)
    event = http.get("/v1/audit/tenant", params={"severity_min": 21, "limit": 1}).json()["items"][0]
    assert (event["body"]["event_type"], event["body"]["reason"]) == ("security_violation", reason)
    assert (event["severity_number"], event["severity_text"]) == (21, "FATAL")
    assert http.get(f"/v1/messages/{sent.get('message_id', 'msg_none')}").status_code == 404


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("127.0.0.1:4800", 200),
        ("[::1]:4800", 200),
        ("observatory.example", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
    ],
)
def test_a_host_that_is_not_served_is_refused_s55(tight_server: Server, host: str, code: int) -> None:
    """S55: a name must be ours or allowed by the setting; an address cannot be rebound."""
    headers = {"host": host, "authorization": f"Bearer {tight_server.key('admin')}"}
    for path in ("/healthz", "/v1/whoami"):
        answer = httpx2.get(tight_server.url + path, headers=headers, trust_env=False)
        assert answer.status_code == code
    posted = httpx2.post(
        f"{tight_server.url}/v1/messages", json=decision_log(), headers=headers, trust_env=False
    )
    assert (posted.status_code == 421) == (code == 421)


def test_a_login_link_works_once_and_signs_a_browser_in_s56(server: Server) -> None:
    """S56: the cookie is kept from scripts and other sites, and ends with the sign-out."""
    link = server.http("admin").post("/v1/logins", json={}).json()["url"]
    with httpx2.Client(base_url=server.url, trust_env=False) as browser:
        first = browser.post(link)
        assert (first.status_code, first.headers["location"]) == (303, "/")
        cookie = first.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=lax" in cookie and "path=/" in cookie
        assert browser.get("/v1/whoami").json()["role"] == "admin"
        for _ in range(2):
            again = httpx2.post(link, trust_env=False)
            assert again.status_code == 401 and "observatory login" in again.json()["detail"]
        assert browser.get("/v1/whoami").status_code == 200
        browser.get("/logout")
        assert browser.get("/v1/whoami").status_code == 401
    for token in ("", "x", "%ff", "A" * 5000):
        assert server.http("nobody").get(f"/login?token={token}").status_code == 401


def test_a_login_link_works_for_a_limited_time_s56(tight_server: Server) -> None:
    """S56: the setting is zero minutes here."""
    link = tight_server.http("admin").post("/v1/logins", json={}).json()["url"]
    assert httpx2.post(link, trust_env=False).status_code == 401


def test_a_key_that_may_do_less_than_its_user_gets_no_link_to_more_s51(server: Server) -> None:
    """S51, S58: a browser signs in with all its user may do."""
    http = server.http("admin")
    for body in ({"role": "viewer"}, {"role": "admin", "scopes": ["read"]}, {"role": "operator"}):
        key = http.post("/v1/keys", json=body).json()["key"]
        headers = {"authorization": f"Bearer {key}"}
        assert http.post("/v1/logins", json={}, headers=headers).status_code == 403
    scoped = http.post("/v1/keys", json={"role": "admin", "scopes": ["read"]}).json()["key"]
    headers = {"authorization": f"Bearer {scoped}"}
    assert http.get("/v1/messages", headers=headers).status_code == 200
    assert http.get("/v1/keys", headers=headers).status_code == 403
    assert http.post("/v1/messages", json=decision_log(), headers=headers).status_code == 403
    assert http.post("/v1/keys", json={"role": "agent", "scopes": ["fly"]}).status_code == 422


ORIGINS: list[tuple[dict[str, str], bool]] = [
    ({}, True),
    ({"origin": "OWN"}, True),
    ({"origin": "OWN", "sec-fetch-site": "same-origin"}, True),
    ({"sec-fetch-site": "none"}, True),
    ({"origin": "https://evil.example"}, False),
    ({"origin": "null"}, False),
    ({"sec-fetch-site": "cross-site"}, False),
    ({"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:1"}, False),
    ({"origin": "http://127.0.0.1:1"}, False),
]


def test_a_cookie_counts_only_for_requests_of_our_own_origin_s55(server: Server) -> None:
    """S55: for reads, acts, messages and sockets alike; a key needs no origin."""
    link = server.http("admin").post("/v1/logins", json={}).json()["url"]
    cookie = httpx2.post(link, trust_env=False).headers["set-cookie"].partition(";")[0]
    for extra, ours in ORIGINS:
        headers = {"cookie": cookie} | {name: text.replace("OWN", server.url) for name, text in extra.items()}
        for method, path, body in (
            ("GET", "/v1/whoami", None),
            ("GET", "/v1/messages", None),
            ("POST", "/v1/audit/verify", {}),
            ("POST", "/v1/messages", decision_log()),
        ):
            answer = server.http("nobody").request(method, path, json=body, headers=headers)
            good = 202 if "messages" in path and body else 200
            assert answer.status_code == (good if ours else 403), extra
        for path, asked, first in (
            ("live", {"op": "subscribe", "topics": ["events"]}, "snapshot"),
            ("agents/origin-1/channel", {"op": "ping"}, "hello"),
        ):
            with connect(f"{server.socket_url}/v1/{path}", additional_headers=headers) as reader:
                reader.send(json.dumps(asked))
                if ours:
                    assert json.loads(reader.recv(10))["type"] == first
                else:
                    with pytest.raises(ConnectionClosed):
                        reader.recv(10)
        keyed = {"authorization": f"Bearer {server.key('admin')}"} | headers
        assert server.http("nobody").get("/v1/whoami", headers=keyed).status_code == 200


def test_every_change_of_access_is_an_event_of_its_tenant_s57(server: Server) -> None:
    """S57, S786: made, refused, signed in, out, disabled, revoked; by whom, by name, and with no secret."""
    http = server.http("admin")
    since = http.get("/v1/audit/tenant", params={"limit": 1}).json()["items"][0]["hash_chain"]
    user = http.post("/v1/users", json={"name": f"told-{uuid.uuid4()}", "role": "viewer"}).json()
    people = server.http("operator").get("/v1/people").json()["items"]
    assert {"user_id": user["user_id"], "name": user["display_name"]} in people
    key = http.post("/v1/keys", json={"role": "viewer", "user_id": user["user_id"]}).json()
    with httpx2.Client(base_url=server.url, trust_env=False) as browser:
        browser.post(user["invite_url"])
        browser.get("/logout")
    assert http.get("/v1/keys", headers={"authorization": f"Bearer {key['key']}"}).status_code == 403
    http.delete(f"/v1/keys/{key['key_id']}")
    http.post(f"/v1/users/{user['user_id']}/disable")
    events = http.get("/v1/audit/tenant", params={"limit": 100}).json()["items"]
    new = [event for event in events if event["hash_chain"]["sequence_number"] > since["sequence_number"]]
    assert [event["body"]["event_type"] for event in reversed(new)] == [
        *("user_created", "login_issued", "key_created", "permission_granted", "user_signed_in"),
        *("user_signed_out", "permission_denied", "key_revoked", "user_disabled"),
    ]
    who = [event["attributes"]["av.sender.entity_id"] for event in reversed(new)]
    admin = http.get("/v1/whoami").json()["user_id"]
    assert who == [*[admin] * 4, *[user["user_id"]] * 3, admin, admin]
    assert key["key"] not in str(new) and user["invite_url"].rpartition("=")[2] not in str(new)
