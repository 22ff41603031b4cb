"""A hand that thinks in a house: the acts of the decision trail as its doors submit them."""

from __future__ import annotations

from typing import Any, cast

from observatory.features.thoughts import commands as thinking
from observatory.features.thoughts import commands_sealing as concluding
from observatory.features.thoughts.commands import ThoughtRequest, ThoughtSessionRequest
from observatory.features.thoughts.queries_rows import ThoughtAuthor, default_session_of
from observatory.features.thoughts.verification import (
    ThoughtTrailReads,
    ThoughtVerification,
    verify_session_thoughts,
)
from observatory.ledger.canonical import jcs
from observatory.pipeline.state import HOME_TENANT, Command, Principal, SubmissionResult
from tests.contract.conftest import Harness

Row = dict[str, Any]
CONTENT: dict[str, Row] = {
    "plan": {"trajectory": "look, decide, tell"},
    "analysis": {"observation": "tests are green ✓"},
    "decision": {"choice": "ship", "alternatives": ["wait", "ask 🜲"], "why": "nothing speaks against it"},
    "reflection": {"happened": "shipped", "proved": ["3/3 nodes"], "uncertain": "load at night"},
}
SESSION, TASK = "ses_1", "tsk_1"


class Thinker:
    def __init__(
        self,
        harness: Harness,
        name: str = "usr_ann",
        role: str = "agent",
        tenant_id: str = HOME_TENANT,
        **more: Any,
    ) -> None:
        self.harness, self.tenant_id = harness, tenant_id
        self.voice = ThoughtAuthor(
            _principal(harness, name, role, tenant_id, **more), operates=role == "operator"
        )
        self._count = 0

    def do(self, *acts: Command) -> list[SubmissionResult]:
        return self.harness.submit(*acts, tenant_id=self.tenant_id)

    def start(self, session_id: str = SESSION, task_id: str | None = TASK, **more: Any) -> SubmissionResult:
        return self.do(self.starting(session_id, task_id, **more))[0]

    def starting(self, session_id: str = SESSION, task_id: str | None = TASK, **more: Any) -> Command:
        asked = ThoughtSessionRequest(
            session_id,
            task_id or "tsk_minted",
            more.pop("intent", "Ship it"),
            more.pop("after", None),
            names_task=task_id is not None,
        )
        return thinking.start(more.pop("voice", self.voice), asked, self.harness.now())

    def think(self, kind: str, **more: Any) -> SubmissionResult:
        return self.do(self.thinking(kind, **more))[0]

    def thinking(
        self,
        kind: str,
        *,
        session_id: str | None = SESSION,
        task_id: str = TASK,
        record_id: str | None = None,
        content: Row | None = None,
        **more: Any,
    ) -> Command:
        self._count += 1
        voice = more.pop("voice", self.voice)
        said = ThoughtRequest(
            record_id or f"rec_{self._count}_{voice.who.key_id}",
            session_id or default_session_of(voice, task_id),
            task_id,
            kind,
            jcs(CONTENT[kind] if content is None else content),
            names_session=session_id is not None,
            **more,
        )
        return thinking.record(voice, said, self.harness.now())

    def seen(self, session_id: str = SESSION) -> ThoughtVerification:
        return self.seen_of(self.row(session_id))

    def seen_of(self, row: Row) -> ThoughtVerification:
        return self.harness.read(
            verify_session_thoughts(cast(ThoughtTrailReads, self.harness.store), self.tenant_id, row)
        )

    def verify(self, session_id: str = SESSION) -> SubmissionResult:
        act = concluding.verify(self.voice, session_id, self.seen(session_id), self.harness.now())
        return self.do(act)[0]

    def seal(self, session_id: str = SESSION) -> SubmissionResult:
        act = concluding.seal(self.voice, session_id, self.seen(session_id), self.harness.now())
        return self.do(act)[0]

    def end(self, session_id: str = SESSION) -> SubmissionResult:
        return self.do(concluding.end(self.voice, session_id, self.harness.now()))[0]

    def close(self, session_id: str = SESSION, task_id: str = TASK) -> SubmissionResult:
        """Verify, the closing reflection, the seal."""
        assert self.verify(session_id).answer["valid"]
        assert self.think("reflection", session_id=session_id, task_id=task_id).code == 201
        return self.seal(session_id)

    def whole(self) -> SubmissionResult:
        """The seed's sequence with one record of each type."""
        assert self.start().code == 201
        for kind in ("plan", "analysis", "decision"):
            assert self.think(kind).code == 201
        return self.close()

    def row(self, session_id: str = SESSION) -> Row:
        (row,) = self.harness.read(
            self.harness.store.rows(self.tenant_id, "thought_sessions", session_id=session_id)
        )
        return row

    def records(self, session_id: str = SESSION) -> list[Row]:
        rows = self.harness.read(
            self.harness.store.rows(self.tenant_id, "thought_records", session_id=session_id)
        )
        return sorted(rows, key=lambda row: row["record_index"])


def _principal(harness: Harness, name: str, role: str, tenant_id: str, **more: Any) -> Principal:
    version = harness.admin(tenant_id).access_version
    kind = {"user_id": name} if role != "agent" else {}
    who: Any = {"tenant_id": tenant_id, "role": role, "key_id": f"sys_{name}", "access_version": version}
    return Principal(**(who | kind | more))
