"""Evidence out of both databases: what is collected is what was written, and a row that was bent is found."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from observatory.cli.verify import log_root as log_check
from observatory.cli.verify.log_root import TrustedInputs
from observatory.cli.verify.rows import open_trail
from observatory.cli.verify.workers import Segment, check_range
from observatory.features.thoughts import commands as thinking
from observatory.features.thoughts import commands_sealing as concluding
from observatory.features.thoughts.commands import ThoughtSessionRequest
from observatory.features.verification import routes_evidence as evidence
from observatory.features.verification.routes_evidence import collected
from observatory.http.answers import Refusal
from observatory.http.app_state import AppState as ApiState
from observatory.ledger import bundle
from observatory.ledger.verify_bundle import CHECKS, BundleReport, check_bundle
from observatory.pipeline.state import HOME_TENANT
from tests.contract.conftest import Harness
from tests.contract.sealing import LogSealer
from tests.contract.thinking import SESSION, Thinker
from tests.samples import decision_log
from tests.vectors.forging import honest


class Office:
    """A session that was sealed, a log that was signed, and hands on the database."""

    def __init__(self, harness: Harness, folder: Path) -> None:
        self.harness, self.log_sealer = harness, LogSealer(harness, folder)
        harness.send(decision_log(), decision_log())
        self.log_sealer.look()
        Thinker(harness).whole()
        harness.send(decision_log())
        self.log_sealer.look()
        self.vkey = self.log_sealer.sealer.keyring.signers(self._origin(), both=False)[0].vkey  # type: ignore[union-attr]
        self._let_go()

    def _origin(self) -> str:
        return self.harness.read(self.log_sealer.sealer.origin(HOME_TENANT))

    def _let_go(self) -> None:
        """Whoever owns the database can take its triggers away."""
        if self.harness.name == "sqlite":
            for (name,) in self.harness.sql("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
                self.harness.sql(f"DROP TRIGGER {name}")
            return
        for table in ("thought_records", "thought_sessions", "audit_events", "checkpoints", "log_keys"):
            self.harness.sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")

    def evidence(self) -> dict[str, bytes]:
        app: Any = SimpleNamespace(store=self.harness.store, service=lambda _: self.log_sealer.sealer)
        found = self.harness.read(collected(cast(ApiState, app), HOME_TENANT, SESSION))
        return bundle.files(found)

    def judged(self) -> BundleReport | str:
        """What the verifier says of it, or why it is not handed out."""
        try:
            return check_bundle(self.evidence(), [self.vkey])
        except Refusal as refusal:
            return refusal.answer.reason
        except ValueError:
            return "chain_broken"  # as the door answers it

    def bent(self, table: str, column: str, where: str) -> BundleReport | str:
        """One cell changed, judged, and put back."""
        (before,) = self.harness.sql(f"SELECT {column} FROM {table} WHERE {where}")[0]
        self._set(table, column, where, _other(before))
        try:
            return self.judged()
        finally:
            self._set(table, column, where, before)

    def _set(self, table: str, column: str, where: str, value: Any) -> None:
        self.harness.sql(f"UPDATE {table} SET {column} = :value WHERE {where}", value=value)


def _other(value: Any) -> Any:
    if isinstance(value, bytes):
        return value[:-2] + b"x" + value[-1:]
    if isinstance(value, int):
        return value + 1_000  # no neighbour's: what is taken already the database itself refuses
    return "[]x" if value is None else f"{value[:-2]}x{value[-1:]}"


@pytest.fixture
def office(harness: Harness, tmp_path: Path) -> Office:
    return Office(harness, tmp_path)


# It is the only session there is: so its id can be bent as well.
RECORD = "record_index = 1"
BEGUN = f"session_id = '{SESSION}'"
RECORD_COLUMNS = (
    "session_id", "record_id", "task_id", "type", "content", "author", "created_at", "refs", "event_ids",
    "predecessor_chain_hash", "content_hash", "chain_hash", "parent_chain_hash", "sequence_number",
)  # fmt: skip
# What else a row tells is not in a bundle; the chain's own verification sees to that.
SESSION_COLUMNS = ("caller", "started_at", "genesis", "records", "last_chain_hash", "sealed_ns", "root")


@pytest.mark.req(101, 263, 313, 457, 458)
def test_what_is_collected_holds_and_every_bent_column_is_found_s386(office: Office) -> None:
    """S383, S386: of the records, the session with its seal, the events and the checkpoint."""
    honest = office.judged()
    assert isinstance(honest, BundleReport) and honest.checks == dict.fromkeys(CHECKS, True), honest
    assert honest.records == 4 and honest.valid
    checks = "CHECK" if office.harness.name == "postgres" else ""
    cells = [("thought_records", column, RECORD) for column in RECORD_COLUMNS if column != "type"]
    cells += [("thought_sessions", column, BEGUN) for column in SESSION_COLUMNS]
    number = f"(SELECT sequence_number FROM thought_records WHERE {RECORD})"
    event = f"sequence_number = {number}" if checks else f"key & 1099511627775 = {number}"
    newest = "size = (SELECT max(size) FROM checkpoints)"
    cells += [(office.harness.trail, "record", event), ("checkpoints", "note", newest)]
    cells += [("log_keys", "public_key", "1 = 1")]
    for table, column, where in cells:
        found = office.bent(table, column, where)
        name = f"{table}.{column}: {found}"
        if isinstance(found, str):
            assert found in ("chain_broken", "log_broken", "not_found", "not_sealed"), name
        else:
            assert not found.valid and found.breaks[0].sentence.endswith("."), name
    assert office.judged() == honest, "everything was put back"


def test_a_seal_is_found_among_many_events_of_its_nanosecond_s383(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S383: however many were written in one batch before it."""
    thinker = Thinker(harness)
    thinker.start()
    for kind in ("plan", "analysis", "decision"):
        assert thinker.think(kind).code == 201
    assert thinker.verify().code == 200 and thinker.think("reflection").code == 201
    seen, moment = thinker.seen(), harness.now()
    others = [
        thinking.start(
            thinker.voice,
            ThoughtSessionRequest(f"ses_{n}", f"tsk_{n}", "else", None, names_task=True),
            moment,
        )
        for n in range(5, 10)
    ]
    verdicts = thinker.do(*others, concluding.seal(thinker.voice, SESSION, seen, moment))
    assert verdicts[-1].code == 200, verdicts
    log_sealer = LogSealer(harness, tmp_path)
    log_sealer.look()
    monkeypatch.setattr(evidence, "PAGE", 2)
    app: Any = SimpleNamespace(store=harness.store, service=lambda _: log_sealer.sealer)
    found = harness.read(collected(cast(ApiState, app), HOME_TENANT, SESSION))
    assert found.seal is not None and check_bundle(bundle.files(found)).checks["seal"]


def test_no_bundle_is_made_that_the_verifier_would_not_open_s383(monkeypatch: pytest.MonkeyPatch) -> None:
    """S383: refused before the first byte."""
    size = sum(map(len, honest().files.values()))
    monkeypatch.setattr(bundle, "MAX_BYTES", size)
    evidence._written(honest().evidence).close()
    monkeypatch.setattr(bundle, "MAX_BYTES", size - 1)
    with pytest.raises(Refusal) as refused:
        evidence._written(honest().evidence)
    assert refused.value.answer.reason == "too_large"


def test_a_type_exchanged_for_another_is_found_s386(office: Office) -> None:
    """S386: the database itself takes only the four."""
    table, where = "thought_records", RECORD
    office._set(table, "type", where, "decision")
    found = office.judged()
    assert isinstance(found, BundleReport) and found.checks["records"] is False


def test_rows_of_a_session_that_are_gone_or_exchanged_are_found_s386(office: Office) -> None:
    """S386: of two records, of the last one, and of an event."""
    harness, moved = (
        office.harness,
        f"UPDATE thought_records SET record_index = {{}} WHERE {BEGUN} AND record_index = {{}}",
    )
    for new, old in ((99, 1), (1, 2), (2, 99)):
        harness.sql(moved.format(new, old))
    found = office.judged()
    assert isinstance(found, str) or not found.valid
    for new, old in ((99, 1), (1, 2), (2, 99)):
        harness.sql(moved.format(new, old))
    harness.sql(f"DELETE FROM thought_records WHERE {BEGUN} AND record_index = 3")
    assert office.judged() == "chain_broken"


@pytest.mark.req(458)
def test_the_log_over_the_rows_has_the_signed_root_s391(office: Office) -> None:
    """S391: read with the bare driver, in two parts; and a leaf that was bent with its record is found."""
    trail = open_trail(office.harness.url)
    try:
        claim = log_check.database_claim(trail.log(HOME_TENANT))
        (head,) = [one for one in trail.heads() if one.tenant_id == HOME_TENANT]
        assert log_check.database_claim(trail.log("tnt_nobody")).checkpoint is None
    finally:
        trail.close()
    sizes = log_check.needed_sizes(claim, TrustedInputs())
    segment = Segment(office.harness.url, HOME_TENANT, 1, head.sequence_number, False, sizes)
    found = check_range(segment, 2, (head.sequence_number, head.event_hash), lambda step: None)
    log = log_check.check_log(
        claim, TrustedInputs(), dict(zip(sizes, found.spans, strict=True)), head.sequence_number
    )
    assert found.first_break is None and log.first_break is None
    assert log.checks == {"log_root": True, "signature": True, "consistency": None, "missing_tail": None}


LITE_COLUMNS = {
    "tenant_no": "tenant_no + 1",
    "ts_ns": "ts_ns + 1",
    "severity": "severity + 1",
    "session_key": "session_key + 1",
    "sender_key": "NULL",
    "recipient_key": "7",
    "record": "CAST(replace(CAST(record AS TEXT), 'INFO', 'WARN') AS BLOB)",
    "leaf_hash": "zeroblob(32)",
}
PG_COLUMNS = {
    "audit_event_id": "'evt_else'",
    "timestamp": "timestamp + interval '1 second'",
    "observed_timestamp": "observed_timestamp - interval '1 hour'",
    "trace_id": "repeat('0', 32)",
    "span_id": "repeat('0', 16)",
    "parent_span_id": "NULL",
    "trace_flags": "0",
    "severity_number": "17",
    "severity_text": "'DEBUG'",
    "body": 'body || \'{"summary": "nothing happened"}\'',
    "resource": 'resource || \'{"av.environment": "else"}\'',
    "attributes": "attributes - 'av.message.digest'",
    "event_hash": "'sha256:0'",
    "previous_hash": "'sha256:0'",
    "record": "convert_to(replace(convert_from(record, 'UTF8'), 'INFO', 'WARN'), 'UTF8')",
    "leaf_hash": "sha256(leaf_hash)",
    "sender_key": "NULL",
    "recipient_key": "7",
}
KEYS = {"tenant_id", "sequence_number", "key"}  # by which a row is found: bent, it is another row or none


@pytest.mark.req(324, 457, 458)
def test_every_column_of_an_audit_row_resists_an_edit_s391(office: Office) -> None:
    """S391: what queries go by must be what the record says; named by its column."""
    harness = office.harness
    is_lite = harness.name == "sqlite"
    bends, place = (LITE_COLUMNS, "key & 1099511627775") if is_lite else (PG_COLUMNS, "sequence_number")
    kinds = "pragma_table_info('audit_log')" if is_lite else "information_schema.columns"
    named = "name" if is_lite else "column_name"
    which = "" if is_lite else " WHERE table_name = 'audit_events' AND table_schema = 'public'"
    columns = {name for (name,) in harness.sql(f"SELECT {named} FROM {kinds}{which}")}
    assert columns - KEYS == set(bends), "a new column needs its line"
    (number,) = [
        event.sequence_number for event in harness.trail_of() if b'"message_delivered"' in event.record
    ][:1]
    head = harness.trail_of()[-1].sequence_number
    for column, value in bends.items():
        (before,) = harness.sql(f"SELECT {column} FROM {harness.trail} WHERE {place} = {number}")[0]
        harness.sql(f"UPDATE {harness.trail} SET {column} = {value} WHERE {place} = {number}")
        found = check_range(Segment(harness.url, HOME_TENANT, 1, head, True), 1, None, lambda step: None)
        broken = found.first_break
        assert broken is not None and broken.sequence_number == number, column
        assert broken.what in ("column", "record", "leaf", "event_hash"), (column, broken)
        if broken.what == "column":
            received = {"ts_ns": "timestamp", "severity": "severity_number", "session_key": "_"}.get(
                column, column
            )
            assert f" {received} of" in broken.sentence or received == "_", (column, broken)
        harness.sql(f"UPDATE {harness.trail} SET {column} = :value WHERE {place} = {number}", value=before)
    whole = check_range(Segment(harness.url, HOME_TENANT, 1, head, True), 1, None, lambda step: None)
    assert whole.first_break is None and whole.result.held.columns is True
