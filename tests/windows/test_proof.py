"""Proof in the browser: one event, the whole log, a session's thoughts, and every way each can break.

The page is the only one that verifies here: the tests bend what the gateway answers on its way to it, as a
gateway that lies would.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.flows.fleet import named, say
from tests.flows.graphs import new, send_all, step
from tests.flows.server import Server
from tests.waiting import until
from tests.windows.conftest import Open
from tests.windows.looking import PATIENCE_MS, Window

Json = dict[str, Any]
Bend = Callable[[bytes], bytes]


def bent(window: Window, pattern: str, bend: Bend) -> Callable[[], None]:
    """Tampers with a gateway response; returns an undo."""
    address = re.compile(pattern)

    def lie(route: Route) -> None:
        answer = route.fetch()
        headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
        route.fulfill(status=answer.status, headers=headers, body=bend(answer.body()))

    window.page.route(address, lie)
    return lambda: window.page.unroute(address)


def badge(window: Window) -> Locator:
    return window.role("region", "Proof").first


def steps(window: Window) -> Locator:
    return window.role("list", "Steps of the proof").get_by_role("listitem")


def some_event(server: Server) -> Json:
    """The newest event of a message, once it is under a checkpoint."""
    query: Json = {"event_type": "message_delivered", "limit": 1}
    found: Json = until(
        lambda: server.http("viewer").get("/v1/audit/tenant", params=query).json()["items"], 30
    )[0]
    number = found["hash_chain"]["sequence_number"]
    until(lambda: server.http("viewer").get("/v1/audit/log").json()["size"] >= number)
    return found


@pytest.mark.req(119, 407, 450)
def test_an_event_is_proven_here_and_each_lie_is_named_s680_s681_s682_s683_s686(
    deployment: Server, opened: Open
) -> None:
    """S680, S681, S682, S683, S686: filters, the proof step by step; tampered bytes, tiles, notes."""
    for _ in range(5):
        say(deployment, named("proven"))
    event = some_event(deployment)
    window = opened(deployment, "/forensics/audit?type=message_delivered", role="viewer")
    page = window.page
    table = window.role("table", "Audit events")
    expect(table.get_by_role("row").nth(1)).to_contain_text("message delivered")
    field = window.role("textbox", "Actor: agent name or id")
    field.fill("nobody-of-that-name")
    window.at(r".*who=nobody-of-that-name")
    expect(page.get_by_text(re.compile("No matches|No matching events"))).to_be_visible()
    window.role("button", "Show all").click()
    window.role("combobox", "Severity").select_option("13")
    window.at(r".*sev=13")
    window.role("button", "clear filters").click()
    window.at(r"/forensics/audit$")
    expect(table.get_by_role("row").filter(has_text="message delivered").nth(3)).to_be_visible()
    # While the table has focus, rows do not move.
    window.press("t")
    expect(page.get_by_text("New events wait while you are in the table")).to_be_visible()
    window.press("ArrowDown", "ArrowDown", "Enter").at(r".*event=evt_")
    expect(window.role("complementary", "Event")).to_contain_text("Record")
    page.go_back()
    # A link leads to the event itself, with its neighbours in the chain.
    window.go(f"/forensics/audit?event={event['audit_event_id']}").settled()
    number = event["hash_chain"]["sequence_number"]
    panel = window.role("complementary", "Event")
    expect(panel.get_by_role("heading", level=2)).to_have_text(f"Event {number:,}")
    expect(panel).to_contain_text("hash_chain")
    expect(badge(window).get_by_role("list", name=re.compile("Proof: (recorded|sealed)"))).to_be_visible()
    verify = badge(window).get_by_role("button", name=re.compile("^Verify"))
    verify.click()
    expect(badge(window).get_by_role("list", name="Proof: verified")).to_be_visible()
    for words in (
        "canonical",
        "lead from entry",
        "signed by",
        "First seen (TOFU)",
        "No earlier checkpoint",
        "witness",
    ):
        expect(steps(window).filter(has_text=words)).to_have_count(1)
    expect(window.role("list", "Path from the leaf to the signed root")).to_be_visible()
    window.shot("forensics-audit")
    window.is_accessible()
    verify.click()
    expect(steps(window).filter(has_text="this browser has trusted since")).to_have_count(1)
    expect(steps(window).filter(has_text="The log extends")).to_have_count(1)
    # A dishonest gateway: in the record, in a tile, under the checkpoint, with another key.
    lies: list[tuple[str, str, Bend, str]] = [
        (
            "Record",
            r"/audit/records",
            lambda raw: raw.replace(b'"timestamp":"2', b'"timestamp":"1'),
            "event_hash",
        ),
        ("Path", r"/tile/", lambda raw: bytes(len(raw)), "does not lead to the root"),
        ("Path", r"/tile/", lambda raw: raw[:32], "shorter"),
        ("Signature", r"/log/.*/checkpoint", _other_signature, "wrong"),
        ("Signature", r"/v1/audit/log$", _other_key, "not that of the log"),
    ]
    for name, where, bend, words in lies:
        undo = bent(window, where, bend)
        verify.click()
        expect(badge(window)).to_contain_text("proof broken")
        expect(steps(window).filter(has_text=re.compile(f"{name}.*BROKEN.*({words})"))).to_have_count(1)
        expect(badge(window)).to_contain_text("Reading still works")
        undo()
    verify.click()
    expect(badge(window).get_by_role("list", name="Proof: verified")).to_be_visible()
    # Remembered state detects a rolled-back log, and a key changed without proof.
    remembered = page.evaluate("localStorage.getItem('observatory:log:tnt_default')")
    known = json.loads(remembered)
    ahead = {**known, "note": _larger(known["note"]), "size": known["size"] + 100_000}
    _remember(window, ahead)
    verify.click()
    expect(steps(window).filter(has_text="It was rolled back")).to_have_count(1)
    _remember(window, {**known, "vkey": VKEY})
    verify.click()
    expect(steps(window).filter(has_text=re.compile("Key.*BROKEN"))).to_have_count(1)
    # Tampered in the store, it is still shown, with a warning at once.
    undo = bent(window, r"/audit/records", lambda raw: raw.replace(b'"body":{', b'"body":{"x":1,'))
    window.go(f"/forensics/audit?seq={number}").settled()
    expect(panel.get_by_role("alert").first).to_contain_text("The stored record is shown as it is")
    undo()


VKEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"


def _remember(window: Window, known: Json) -> None:
    window.page.evaluate(
        "text => localStorage.setItem('observatory:log:tnt_default', text)", json.dumps(known)
    )


def _larger(note: str) -> str:
    origin, size, rest = note.split("\n", 2)
    return f"{origin}\n{int(size) + 100_000}\n{rest}"


def _other_signature(raw: bytes) -> bytes:
    text, _, line = raw.decode().rpartition(" ")
    return f"{text} {line[:20]}{'A' if line[20] != 'A' else 'B'}{line[21:]}".encode()


def _other_key(raw: bytes) -> bytes:
    received = json.loads(raw)
    received["vkeys"][-1]["vkey"] = VKEY
    return json.dumps(received).encode()


@pytest.mark.req(119, 457, 458, 460, 461)
def test_the_whole_log_is_verified_here_and_a_break_is_named_with_what_to_do_s684_s685(
    deployment: Server, opened: Open
) -> None:
    """S684, S685: progress, a pause, the first break; checkpoints, witnesses, keys, the gateway verifies."""
    some_event(deployment)
    window = opened(deployment, "/forensics/log")
    page = window.page
    run = window.role("region", "Verify the whole log here")
    expect(window.role("heading", re.compile("events under a signed root"), level=1)).to_be_visible()
    expect(window.role("region", "Witnesses")).to_contain_text(re.compile("No witness|cosigns|contacted"))
    expect(window.role("list", "Keys of the log")).to_contain_text("current")
    # Signed out in the middle: verified events stay verified, and it resumes.
    failing = re.compile(r"/v1/audit/records\?after=0")
    with window.forgiving("answer: 401"):
        refusal = {"status": "refused", "reason": "no_key", "detail": "sign in"}
        page.route(failing, lambda route: route.fulfill(status=401, json=refusal))
        window.press("v")
        expect(run).to_contain_text("sign in")
        page.unroute(failing)
    run.get_by_role("button", name="Resume").click()
    expect(run).to_contain_text(re.compile(r"All [\d,]+ events held"), timeout=3 * PATIENCE_MS)
    expect(run).to_contain_text(re.compile(r"[\d,]+ events/s"))
    window.shot("forensics-log")
    window.is_accessible()
    # One of the checkpoints, compared with the newest.
    history = window.role("table", "Checkpoints")
    history.get_by_role("row").nth(3).click()
    window.at(r".*cp=\d+")
    window.role("button", "Check this one in the browser").click()
    expect(window.role("region", re.compile("^Checkpoint of"))).to_contain_text("Its tree is a prefix")
    window.role("button", "Verify on the gateway").click()
    expect(window.role("list", "Checks")).to_contain_text("log root", timeout=3 * PATIENCE_MS)
    # A gateway that serves a different fifth event.
    undo = bent(window, r"/audit/records\?after=0", _fifth_bent)
    run.get_by_role("button", name="Verify again").click()
    expect(run.get_by_role("alert")).to_contain_text("BROKEN")
    expect(run.get_by_role("alert")).to_contain_text("The 4 before it are valid")
    expect(run).to_contain_text("compare with a witness")
    window.shot("forensics-log-broken")
    undo()
    run.get_by_role("link", name="event 5").first.click()
    window.at(r"/forensics/audit\?seq=5")
    expect(window.role("heading", "Event 5", level=2)).to_be_visible()


def _fifth_bent(raw: bytes) -> bytes:
    lines = raw.split(b"\n")
    lines[4] = lines[4].replace(b'"severity_number":', b'"severity_number":1', 1)
    lines[4] = lines[4].replace(b'"summary":"', b'"summary":"not ', 1)
    return b"\n".join(lines)


class Trail:
    """An agent's session with one step, and unsealed thoughts."""

    def __init__(self, server: Server, has_step: bool = True) -> None:
        self.http, self.session, self.task = server.http("agent"), new(), f"tsk_{uuid.uuid4().hex[:6]}"
        if has_step:
            send_all(server, [step(self.session, "only")])
        body = {"session_id": self.session, "intent": "Release to one node", "task_id": self.task}
        answer = self.http.post("/v1/thought-sessions", json=body)
        assert answer.status_code == 201, answer.text
        self.think("plan", {"trajectory": "test, then decide"})
        decided = {"choice": "one node", "alternatives": ["all", "wait"], "why": "load is not known"}
        self.think("decision", decided)
        assert self.http.post(self.path("thoughts/verify")).json()["valid"]
        self.think("reflection", {"happened": "released", "proved": ["it starts"], "uncertain": "load"})

    def path(self, what: str) -> str:
        return f"/v1/sessions/{self.session}/{what}"

    def think(self, kind: str, content: Json) -> None:
        body = {"task_id": self.task, "type": kind, "content": content}
        answer = self.http.post(self.path("thoughts"), json=body)
        assert answer.status_code in (200, 201), answer.text


@pytest.mark.req(119, 307)
def test_thoughts_sealed_before_the_first_message_are_proven_s687(deployment: Server, opened: Open) -> None:
    """S687: an agent's messages may arrive after its seal; the event of the seal is then in no trace."""
    trail = Trail(deployment, has_step=False)
    assert trail.http.post(trail.path("seal")).status_code == 200
    window = opened(deployment, f"/forensics/trail?session={trail.session}", role="auditor")
    seal = window.role("region", "Seal")
    seal.get_by_role("button", name="Verify here").click()
    expect(seal.get_by_role("list", name="Proof: verified")).to_be_visible()


@pytest.mark.req(119, 307, 313)
def test_thoughts_are_read_verified_sealed_and_proven_s687_s688_s689(
    deployment: Server, opened: Open
) -> None:
    """S687, S688, S689: by task, with hashes; a changed word is detected; the seal; the step's badge."""
    trail = Trail(deployment)
    window = opened(deployment, f"/forensics/trail?session={trail.session}")
    panel = window.role("complementary", "Session of thoughts")
    expect(panel.get_by_role("heading", level=2)).to_have_text("Release to one node")
    for words in ("plan", "decision", "reflection", "one node", "all; wait", "load is not known"):
        expect(window.role("region", f"Task {trail.task}")).to_contain_text(words)
    verify = panel.get_by_role("button", name="Verify here").first
    verify.click()
    check = window.role("region", "Verify these thoughts here")
    expect(check).to_contain_text("Every record and every link held. The session is not sealed yet.")
    # Sealing: confirmed in place first, irreversible.
    seal = window.role("region", "Seal")
    seal.get_by_role("button", name="Seal…").click()
    seal.get_by_role("button", name="Cancel").click()
    seal.get_by_role("button", name="Seal…").click()
    seal.get_by_role("button", name="Seal 3 records").click()
    expect(seal).to_contain_text("Sealed")
    verify.click()
    expect(check).to_contain_text("The root over them is the sealed one")
    seal.get_by_role("button", name="Verify here").click()
    expect(seal.get_by_role("list", name="Proof: verified")).to_be_visible()
    record = window.role("listitem").filter(has_text="load is not known").last
    record.get_by_role("button", name="hashes and proof").click()
    window.at(r".*record=rec_")
    record.get_by_role("button", name="Verify here").click()
    expect(record.get_by_role("list", name="Proof: verified")).to_be_visible()
    window.shot("forensics-trail")
    window.is_accessible()
    # A word changed in transit.
    bent(
        window, rf"{trail.session}/thoughts", lambda raw: raw.replace(b"load is not known", b"load is known")
    )
    window.page.reload()
    expect(panel).to_contain_text("load is known")
    verify.click()
    expect(check).to_contain_text("First break at record 1")
    # The step of the same session has its own badge, and the seal of its session's thoughts.
    window.go(f"/sessions/{trail.session}").settled()
    window.page.get_by_role("button", name=re.compile("Newest step")).click()
    chapter = window.role("region", "Step").get_by_role("region", name="Proof").first
    expect(chapter).to_contain_text("Sealed with its session's thoughts")
    chapter.get_by_role("button", name="Verify here").click()
    expect(chapter.get_by_role("list", name="Proof: verified")).to_be_visible()


def test_a_proof_of_another_record_than_the_one_shown_is_no_proof_s693(
    deployment: Server, opened: Open
) -> None:
    """S693: the record is served unchanged and proven; only what the page shows is tampered with."""
    event = some_event(deployment)
    digest = event["attributes"]["av.message.digest"].encode()
    window = opened(deployment, "/forensics", role="viewer")
    undo = bent(window, r"/v1/audit/tenant", lambda raw: raw.replace(digest, b"sha256:" + b"0" * 64))
    path = f"/forensics/message/{event['body']['message_id']}"
    window.go(path).settled()
    verify = badge(window).get_by_role("button", name=re.compile("^Verify"))
    verify.click()
    expect(badge(window)).to_contain_text("not the one shown here")
    expect(badge(window)).to_contain_text("proof broken")
    undo()
    window.go(path).settled()
    verify.click()
    expect(badge(window).get_by_role("list", name="Proof: verified")).to_be_visible()


def test_on_a_phone_a_viewer_sees_and_verifies_and_is_told_what_he_may_not_s685(
    alone: Server, opened: Open
) -> None:
    """S685: empty states; a viewer may not start the gateway's verifier."""
    window = opened(alone, "/forensics/trail", role="viewer", phone=True, light=True)
    expect(window.page.get_by_text("No thoughts recorded yet")).to_be_visible()
    window.go("/forensics/log").settled()
    expect(window.role("button", "Verify on the gateway")).to_be_disabled()
    expect(window.page.get_by_text("Your role (viewer) can read but not verify.")).to_be_visible()
    window.role("button", "Verify the whole log").click()
    run = window.role("region", "Verify the whole log here")
    expect(run).to_contain_text(re.compile(r"All \d+ events held"))
    assert window.page.evaluate("document.documentElement.scrollWidth") <= 390
    window.is_accessible()
    window.go("/forensics/audit?seq=1").settled()
    expect(badge(window)).to_be_visible()
    panel = window.role("complementary", "Event").bounding_box()
    table = window.role("table", "Audit events").bounding_box()
    assert panel and table and panel["y"] + panel["height"] <= table["y"], "the event above its list"
    window.go("/forensics/audit?seq=99999").settled()
    expect(window.role("complementary", "Event")).to_contain_text("Event 99,999 does not exist yet")
    window.go("/forensics/audit?event=nonsense").settled()
    expect(window.role("complementary", "Event")).to_contain_text("is not an event id or number")
