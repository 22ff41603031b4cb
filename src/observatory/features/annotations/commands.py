"""Commands for annotations and reviews of steps by people (rules S219–S224).

Invariant: the record holds who, when, about which message, the category and the *hash* of the text, never the
text: it may quote a payload. Nothing is deleted: a withdrawn annotation is no longer shown.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final, NamedTuple

from observatory.features.graph.types_annotations import Outcome
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.redaction import typed_text as typed
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.identity import mint
from observatory.protocol.responses import Refused

# How multi-agent work fails, in three families: setup, coordination between agents, and verification. The
# families and kinds follow the literature (MAST); the wording is the project's own.
TAXONOMY: Final[dict[str, tuple[str, str]]] = {
    "task_ignored": ("setup", "The step did not do what the task asked, or broke one of its conditions."),
    "role_ignored": ("setup", "The agent did another agent's work, or exceeded its role."),
    "repetition": ("setup", "Work already done was done again without a reason."),
    "context_lost": ("setup", "Something stated or found earlier was forgotten."),
    "no_stop": ("setup", "The agent did not notice that its work was done."),
    "conversation_reset": (
        "coordination",
        "A line of work was dropped and restarted without a request.",
    ),
    "no_question": ("coordination", "Something was unclear, and the agent did not ask."),
    "off_course": ("coordination", "The work drifted away from its goal."),
    "withheld": ("coordination", "An agent knew something another one needed, and did not share it."),
    "ignored_input": ("coordination", "Input of another agent or a person was ignored."),
    "thought_and_deed_differ": ("coordination", "The action does not match the reasoning."),
    "ended_early": ("verification", "It was reported as done before it was."),
    "not_verified": ("verification", "A result was passed on without being checked."),
    "verified_wrongly": ("verification", "It was checked, but the check was wrong."),
    "made_up": ("verification", "A fact, a source or a result was invented."),
    "tool_misused": ("verification", "The wrong tool was called, or the right one with wrong input."),
    "other": ("other", "None of these; the text explains."),
}


class AnnotationText(NamedTuple):
    label: str | None
    category: str | None
    text: str


class AnnotatedMessage(NamedTuple):
    """The archived message an annotation is about. Archived messages stay, so it was looked up before."""

    sequence_number: int
    message_id: str
    session_id: str
    session_no: int


def _hash(text: str | None) -> str | None:
    return None if text is None else "sha256:" + sha256(text.encode()).hexdigest()


def annotate(who: Principal, about: AnnotatedMessage, note: AnnotationText, now_ns: int) -> Command:
    annotation_id = mint("ann_", now_ns)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        label = typed.redact_text(uow.memory, "label", note.label)
        text = typed.redact_text(uow.memory, "text", note.text)
        row = {
            "tenant_id": who.tenant_id,
            "annotation_id": annotation_id,
            "sequence_number": about.sequence_number,
            "session_no": about.session_no,
            "author_id": who.entity_id,
            "label": label,
            "category": note.category,
            "text": text,
            "created_ns": uow.now_ns,
        }
        detail = {
            "annotation_id": annotation_id,
            "session_id": about.session_id,
            "about_message_id": about.message_id,
            "about_sequence_number": about.sequence_number,
            "category": note.category,
            "label_hash": _hash(label),
            "text_hash": _hash(text),
        }
        summary = f"annotation of {about.message_id} by {who.entity_id}"
        event = gateway_event(who.tenant_id, "annotation_added", summary, uow.now_ns, who, detail)
        event.attributes |= typed.attributes(uow.memory)
        return SubmissionResult(
            201, {"annotation_id": annotation_id}, [event], [RowWrite("annotations", row)]
        )

    return Command(who, now_ns, decide)


def withdraw(who: Principal, annotation_id: str, now_ns: int, *, operates: bool = False) -> Command:
    """By its author, or by a caller that `operates`: its role and its key's scopes allow it."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = uow.memory.rows.get("annotations", {}).get(annotation_id)
        if row is None or row["removed_ns"] is not None:
            detail = "no annotation of this tenant has that id, or it was withdrawn"
            return SubmissionResult(404, Refused(reason="not_found", detail=detail))
        if row["author_id"] != who.entity_id and not operates:
            detail = "only its author, an operator or an admin can withdraw an annotation"
            return SubmissionResult(403, Refused(reason="not_yours", detail=detail))
        row["removed_ns"] = uow.now_ns
        where = {"tenant_id": who.tenant_id, "annotation_id": annotation_id}
        event_detail = {
            "annotation_id": annotation_id,
            "about_sequence_number": row["sequence_number"],
            "text_hash": _hash(row["text"]),
        }
        summary = f"annotation {annotation_id} withdrawn by {who.entity_id}"
        event = gateway_event(who.tenant_id, "annotation_removed", summary, uow.now_ns, who, event_detail)
        gone = RowWrite("annotations", {"removed_ns": uow.now_ns}, where)
        return SubmissionResult(200, {"annotation_id": annotation_id, "removed": True}, [event], [gone])

    read_set = ReadSet()
    read_set.row("annotations", annotation_id)
    return Command(who, now_ns, decide, read_set)


def review(
    who: Principal, about: AnnotatedMessage, verdict: Outcome, note: str | None, now_ns: int
) -> Command:
    """A person reviewed a step. Another review replaces the verdict; the record keeps both."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        note_text = typed.redact_text(uow.memory, "note", note)
        row = {
            "tenant_id": who.tenant_id,
            "sequence_number": about.sequence_number,
            "verdict": verdict,
            "note": note_text,
            "reviewed_by": who.entity_id,
            "reviewed_ns": uow.now_ns,
        }
        detail = {
            "session_id": about.session_id,
            "about_message_id": about.message_id,
            "about_sequence_number": about.sequence_number,
            "verdict": verdict,
            "note_hash": _hash(note_text),
        }
        summary = f"{about.message_id} reviewed by {who.entity_id}: {verdict}"
        event = gateway_event(who.tenant_id, "step_reviewed", summary, uow.now_ns, who, detail)
        event.attributes |= typed.attributes(uow.memory)
        write = RowWrite("reviews", row, key=("tenant_id", "sequence_number"))
        return SubmissionResult(200, detail, [event], [write])

    return Command(who, now_ns, decide)
