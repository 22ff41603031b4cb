"""The trail as a stream over HTTP: the same file as `observatory export` writes, taken by who may."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from observatory.cli.terminal import CommandFailed
from observatory.cli.verify import export as exported
from observatory.ledger.export import ExportUnusable
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log
from tests.waiting import until

Json = dict[str, Any]


def filled(server: Server, count: int = 70) -> None:
    """More than a page of events."""
    lines = [json.dumps(decision_log()).encode() for _ in range(count)]
    assert {answer["code"] for answer in server.send_lines(lines)} == {202}


def taken(server: Server, path: Path, **query: Any) -> Json:
    answer = server.http("admin").get("/v1/audit/export", params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    path.write_bytes(answer.content)
    last = json.loads(answer.content.splitlines()[-1])
    assert list(last) == ["manifest"]
    assert f'filename="{last["manifest"]["file"]}"' in answer.headers["content-disposition"]
    return dict(last["manifest"])


@pytest.fixture
def tenant(server: Server, tmp_path: Path) -> Tenant:
    return Tenant(server, tmp_path / "tenant")


def test_the_stream_is_what_verify_reads_with_its_manifest_last_s702_s704(
    either_tenant: Tenant, tmp_path: Path
) -> None:
    """S702, S704: on both databases; size and digest are of all before the manifest; who took it is told."""
    server, file = either_tenant, tmp_path / "trail.jsonl"
    filled(server)
    signed = server.http("admin")
    until(lambda: signed.get("/v1/audit/log").json()["state"] == "signed")
    plan = signed.get("/v1/audit/export/plan").json()
    manifest = taken(server, file, to=plan["to_sequence"])
    before = file.read_bytes().rpartition(b'{"manifest"')[0]
    assert manifest["bytes"] == len(before)
    assert manifest["sha256"] == "sha256:" + hashlib.sha256(before).hexdigest()
    assert manifest["messages"] == 70 and manifest["checkpoint"] is not None
    found = exported.check_export(file)[1]
    assert found.first_break is None and found.payload_break is None
    assert (plan["exact"], plan["bytes_about"], plan["messages_about"]) == (True, len(before), 70)
    received = signed.get("/v1/audit/tenant", params={"limit": 1}).json()["items"][0]["body"]
    assert (received["event_type"], received["to_sequence"], received["payloads"]) == (
        "export_created",
        plan["to_sequence"],
        True,
    )
    assert server.http("operator").get("/v1/audit/export").status_code == 403


def test_a_part_of_the_trail_by_number_by_time_and_without_bytes_s702_s718(
    tenant: Tenant, tmp_path: Path
) -> None:
    """S702, S718: a plan says what would come and records nothing."""
    filled(tenant, 9)
    http, file = tenant.http("admin"), tmp_path / "part.jsonl"
    manifest = taken(tenant, file, **{"from": 3, "to": 6, "payloads": False})
    assert (manifest["events"], manifest["payloads"], manifest["checkpoint"]) == (4, False, None)
    assert b"raw" not in file.read_bytes().replace(b"raw_payload", b"")
    assert exported.check_export(file)[1].first_break is None
    head = http.get("/v1/audit/log").json()["head"]
    plan = http.get("/v1/audit/export/plan", params={"since": "2026-01-01T00:00:00Z"}).json()
    assert (plan["to_sequence"], plan["head"]) == (head, head)
    assert http.get("/v1/audit/log").json()["head"] == head
    for query, code, reason in (
        ({"until": "2020-01-01T00:00:00Z"}, 409, "nothing_there"),
        ({"from": head + 9}, 400, "bad_range"),
        ({"from": 5, "to": 4}, 400, "bad_range"),
        ({"since": "yesterday"}, 400, "bad_time"),
        ({"from": 0}, 400, "bad_request"),
    ):
        for path in ("/v1/audit/export/plan", "/v1/audit/export"):
            answer = http.get(path, params=query)
            assert (answer.status_code, answer.json()["reason"]) == (code, reason), (path, query)


@pytest.mark.parametrize("cut", ["the manifest", "a line", "half a line", "bytes of a line"])
def test_a_stream_that_was_cut_or_bent_is_refused_s705(tenant: Tenant, tmp_path: Path, cut: str) -> None:
    """S705: no manifest, no promise; with one, every byte before it is the one it speaks of."""
    filled(tenant, 3)
    file = tmp_path / "cut.jsonl"
    taken(tenant, file)
    *lines, manifest = file.read_bytes().splitlines(keepends=True)
    bent = {
        "the manifest": lines,
        "a line": [*lines[:-1], manifest],
        "half a line": [*lines, manifest[:40]],
        "bytes of a line": [lines[0].replace(b"a", b"b", 1), *lines[1:], manifest],
    }[cut]
    file.write_bytes(b"".join(bent))
    with pytest.raises((CommandFailed, ExportUnusable)):
        exported.check_export(file)
