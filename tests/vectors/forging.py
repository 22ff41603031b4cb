"""A log made by the writer's own pure code: events, a session of thoughts, its seal, a signed bundle.

And the hands of a forger on it: files edited, and the manifest written anew so that only proofs can tell.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from observatory.ledger import bundle, merkle, note, thoughts
from observatory.ledger.chain import ChainHead, Linked, link
from observatory.ledger.thoughts import Thought, ThoughtHashes
from observatory.ledger.verify_bundle import BundleReport, check_bundle

Json = dict[str, Any]
Files = dict[str, bytes]
GOLDEN = json.loads((Path(__file__).parent / "golden/tenant_log.json").read_text("utf-8"))
TEMPLATE = GOLDEN["events"][0]["event"]
TENANT, SESSION, ORIGIN = "tnt_1", "ses_1", "observatory.example/log/tnt_1"
CALLER, STARTED = "agt_1", "2026-02-16T14:32:00.000000000Z"
SIGNER = note.Signer(ORIGIN, sha256(b"the log's key").digest())
# Whoever has the log's name and not its key.
IMPOSTOR = note.Signer(ORIGIN, sha256(b"another key").digest())
TYPES = ("plan", "analysis", "decision", "reflection")


class Log:
    """Events one after the other, as the pipeline would link them."""

    def __init__(self, tenant_id: str = TENANT) -> None:
        self.tenant_id, self.head = tenant_id, ChainHead.genesis()
        self.linked: list[Linked] = []

    def add(self, event_type: str, more: Json | None = None, /, **body: Any) -> int:
        """`more` takes the place of what every event says."""
        event = {name: value for name, value in copy.deepcopy(TEMPLATE).items() if name != "hash_chain"}
        event["resource"]["av.tenant.id"] = self.tenant_id
        event["audit_event_id"] = f"evt_{len(self.linked) + 1}"
        event["body"] = {"event_type": event_type, "message_id": None, "summary": event_type, **body}
        event |= more or {}
        made = link(self.head, event, self.tenant_id)
        self.head = made.head
        self.linked.append(made)
        return made.head.sequence_number

    @property
    def leaves(self) -> list[bytes]:
        return [one.leaf_hash for one in self.linked]

    def checkpoint(self, signer: note.Signer = SIGNER, size: int | None = None) -> bytes:
        leaves = self.leaves[:size]
        return note.sign(note.checkpoint(signer.name, len(leaves), merkle.root(leaves)), [signer])

    def event(self, number: int) -> bundle.BundleEvent:
        made = self.linked[number - 1]
        return bundle.BundleEvent(
            number, made.record, made.event_hash, merkle.inclusion_proof(self.leaves, number - 1)
        )


def thought(index: int, log: Log) -> Thought:
    kind = TYPES[index % 4]
    return Thought(
        record_id=f"rec_{index}",
        session_id=SESSION,
        task_id="tsk_1",
        index=index,
        type=kind,
        content=json.dumps({"why": f"straße {index}"}, ensure_ascii=False, separators=(",", ":")).encode(),
        author=CALLER,
        created_at=STARTED,
        audit_event_ids=b'["evt_2"]' if kind == "decision" else b"[]",
    )


class Made(NamedTuple):
    log: Log
    evidence: bundle.Evidence
    files: Mapping[str, bytes]


def make(
    log: Log | None = None,
    signer: note.Signer = SIGNER,
    records: int = 4,
    sealed: bool = True,
    change: Callable[[int, Thought], Thought] = lambda index, one: one,
) -> Made:
    """Others' events before, between and after those of the session."""
    log = log or Log()
    genesis = thoughts.text_of(thoughts.genesis(CALLER, SESSION, STARTED))
    log.add("agent_registered")
    log.add("message_delivered")
    numbers = [2, log.add("thought_session_started", session_id=SESSION, genesis=genesis, caller=CALLER)]
    chained: list[tuple[Thought, ThoughtHashes]] = []
    parent = genesis
    for index in range(records):
        one = change(index, thought(index, log))
        hashes = thoughts.link(one, parent)
        parent = hashes.chain_hash
        chained.append((one, hashes))
        body = {"content_hash": hashes.content_hash, "chain_hash": hashes.chain_hash}
        numbers.append(log.add("thought_recorded", session_id=SESSION, record_id=one.record_id, **body))
        log.add("heartbeat")
    seal = None
    if sealed:
        seal = _sealing(log, genesis, chained)
        numbers.append(seal.sequence_number)
    for _ in range(3):
        log.add("message_delivered")
    evidence = bundle.Evidence(
        tenant_id=log.tenant_id,
        session_id=SESSION,
        vkeys=[signer.vkey],
        checkpoint=log.checkpoint(signer),
        tree_size=len(log.linked),
        events=[log.event(number) for number in numbers],
        session={"session_id": SESSION, "caller": CALLER, "started_at": STARTED, "genesis": genesis},
        thoughts=chained,
        seal=seal,
        older=(log.checkpoint(signer, 2), merkle.consistency_proof(log.leaves, 2)),
        tool="tests",
    )
    return Made(log, evidence, bundle.files(evidence))


def _sealing(log: Log, genesis: str, chained: list[tuple[Thought, ThoughtHashes]]) -> bundle.BundleSeal:
    leaves = [thoughts.leaf(hashes) for _, hashes in chained]
    said = {
        "session_id": SESSION,
        "genesis": genesis,
        "n_records": len(chained),
        "last_chain_hash": chained[-1][1].chain_hash,
        "root": thoughts.text_of(merkle.root(leaves)),
    }
    number = log.add("thought_session_sealed", **said)
    return bundle.BundleSeal(said, number, [merkle.inclusion_proof(leaves, at) for at in range(len(leaves))])


@cache
def honest() -> Made:
    return make()


# --- the forger's hands ---


def relisted(files: Mapping[str, bytes], **said: Any) -> Files:
    """The same files under a manifest written anew: sizes, digests and counts fit again."""
    manifest = json.loads(files["manifest.json"]) | said
    others = {name: data for name, data in files.items() if name != "manifest.json"}
    manifest["files"] = [
        {"name": name, "bytes": len(data), "sha256": "sha256:" + sha256(data).hexdigest()}
        for name, data in others.items()
    ]
    manifest["counts"] = {
        name.removesuffix(".jsonl"): data.count(b"\n")
        for name, data in others.items()
        if name.endswith(".jsonl")
    }
    return others | {"manifest.json": json.dumps(manifest).encode()}


def lines_of(files: Mapping[str, bytes], name: str) -> list[Json]:
    return [json.loads(line) for line in files[name].splitlines()]


def with_lines(files: Mapping[str, bytes], name: str, lines: list[Json]) -> Files:
    return dict(files) | {name: b"".join(json.dumps(line).encode() + b"\n" for line in lines)}


PIN = [SIGNER.vkey]


def check(files: Files, vkeys: list[str] = PIN) -> BundleReport:
    return check_bundle(files, vkeys)


def whats(found: BundleReport) -> set[str]:
    return {one.what for one in found.breaks}
