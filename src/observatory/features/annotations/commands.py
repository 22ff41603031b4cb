"""What people say about steps: annotations and reviews, as audited acts (rules S219–S224).

Law: the record holds who, when, about which message, the category and the *hash* of what was written, never
the words: they may quote a payload. Nothing is deleted: an annotation taken back is shown no more.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final, Literal, NamedTuple

from observatory.features.redaction import typed_text as typed
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.identity import mint

Outcome = Literal["ok", "wrong", "unsure"]
# How multi-agent work goes wrong, in three families: what was set up, how agents dealt with each other, how
# the work was checked. The families and kinds follow the literature (MAST); the wording is ours.
TAXONOMY: Final[dict[str, tuple[str, str]]] = {
    "task_ignored": ("setup", "The step did not do what the task asked, or broke one of its conditions."),
    "role_ignored": ("setup", "The agent did another one's work, or went beyond what it may do."),
    "repetition": ("setup", "Work already done was done again without a reason."),
    "context_lost": ("setup", "Something said or found earlier was forgotten."),
    "no_stop": ("setup", "The agent did not see that its work was over."),
    "conversation_reset": (
        "coordination",
        "A line of work was dropped and begun anew, and nobody asked for it.",
    ),
    "no_question": ("coordination", "Something was unclear, and nobody was asked."),
    "off_course": ("coordination", "The work drifted away from its goal."),
    "withheld": ("coordination", "An agent knew something another one needed, and did not say it."),
    "ignored_input": ("coordination", "What another agent or a person said was not taken up."),
    "thought_and_deed_differ": ("coordination", "What was done is not what was reasoned."),
    "ended_early": ("verification", "It was called done before it was."),
    "not_verified": ("verification", "A result was passed on without being checked."),
    "verified_wrongly": ("verification", "It was checked, and the check was wrong."),
    "made_up": ("verification", "A fact, a source or a result was invented."),
    "tool_misused": ("verification", "The wrong tool was called, or the right one with wrong input."),
    "other": ("other", "None of these; the text says what."),
}


class Note(NamedTuple):
    label: str | None
    category: str | None
    text: str


class Subject(NamedTuple):
    """The archived message that is spoken of; what is archived stays, so it was looked up before."""

    sequence_number: int
    message_id: str
    session_id: str
    session_no: int


def _hash(text: str | None) -> str | None:
    return None if text is None else "sha256:" + sha256(text.encode()).hexdigest()


def annotate(who: Principal, about: Subject, note: Note, now_ns: int) -> Act:
    annotation_id = mint("ann_", now_ns)

    def decide(desk: Desk) -> Verdict:
        label = typed.left(desk.memory, "label", note.label)
        text = typed.left(desk.memory, "text", note.text)
        row = {
            "tenant_id": who.tenant_id,
            "annotation_id": annotation_id,
            "sequence_number": about.sequence_number,
            "session_no": about.session_no,
            "author_id": who.entity_id,
            "label": label,
            "category": note.category,
            "text": text,
            "created_ns": desk.now_ns,
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
        event = notice(who.tenant_id, "annotation_added", summary, desk.now_ns, who, detail)
        event.attributes |= typed.attributes(desk.memory)
        return Verdict(201, {"annotation_id": annotation_id}, [event], [Write("annotations", row)])

    return Act(who, now_ns, decide)


def take_back(who: Principal, annotation_id: str, now_ns: int, *, operates: bool = False) -> Act:
    """By its author, or by whoever `operates`: its role and its key's scopes allow it."""

    def decide(desk: Desk) -> Verdict:
        row = desk.memory.rows.get("annotations", {}).get(annotation_id)
        if row is None or row["removed_ns"] is not None:
            detail = "no annotation of this tenant has that id, or it was taken back"
            return Verdict(404, Refused(reason="not_found", detail=detail))
        if row["author_id"] != who.entity_id and not operates:
            detail = "an annotation is taken back by its author, an operator or an admin"
            return Verdict(403, Refused(reason="not_yours", detail=detail))
        row["removed_ns"] = desk.now_ns
        where = {"tenant_id": who.tenant_id, "annotation_id": annotation_id}
        told = {
            "annotation_id": annotation_id,
            "about_sequence_number": row["sequence_number"],
            "text_hash": _hash(row["text"]),
        }
        summary = f"annotation {annotation_id} taken back by {who.entity_id}"
        event = notice(who.tenant_id, "annotation_removed", summary, desk.now_ns, who, told)
        gone = Write("annotations", {"removed_ns": desk.now_ns}, where)
        return Verdict(200, {"annotation_id": annotation_id, "removed": True}, [event], [gone])

    wants = Wants()
    wants.row("annotations", annotation_id)
    return Act(who, now_ns, decide, wants)


def review(who: Principal, about: Subject, verdict: Outcome, note: str | None, now_ns: int) -> Act:
    """A person looked at a step. Looking again replaces the verdict; the record keeps both."""

    def decide(desk: Desk) -> Verdict:
        said = typed.left(desk.memory, "note", note)
        row = {
            "tenant_id": who.tenant_id,
            "sequence_number": about.sequence_number,
            "verdict": verdict,
            "note": said,
            "reviewed_by": who.entity_id,
            "reviewed_ns": desk.now_ns,
        }
        detail = {
            "session_id": about.session_id,
            "about_message_id": about.message_id,
            "about_sequence_number": about.sequence_number,
            "verdict": verdict,
            "note_hash": _hash(said),
        }
        summary = f"{about.message_id} reviewed by {who.entity_id}: {verdict}"
        event = notice(who.tenant_id, "step_reviewed", summary, desk.now_ns, who, detail)
        event.attributes |= typed.attributes(desk.memory)
        write = Write("reviews", row, key=("tenant_id", "sequence_number"))
        return Verdict(200, detail, [event], [write])

    return Act(who, now_ns, decide)
