"""Commands for webhook calls: a call is accepted once, logged, and its outcome stored (rules S525–S529).

Law: a call is accepted under the tenant's lock, in one transaction with its log row, its event, and the
message it became; from then on it cannot be lost: a later run that finds it accepted submits the same bytes
again, and the pipeline recognizes a repeat. A delivery that was accepted is never accepted again. Redaction
rules for messages also apply to what is kept of a call. For a call that was not valid only digest, size and
the scheme's headers are kept, and beyond a few a minute only the count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from observatory.features.hooks.commands import Row, hooks_of, reads_hooks, unknown_hook
from observatory.features.hooks.signatures import Status
from observatory.features.hooks.types_mapping import Outcome
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.redaction.batch import NO_LIMIT
from observatory.pipeline.redaction.redactor import Redactor, redactor
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import (
    BatchState,
    Command,
    IncomingMessage,
    Principal,
    ReadSet,
    SubmissionResult,
    UnitOfWork,
)
from observatory.protocol.identity import mint
from observatory.protocol.message import Message
from observatory.protocol.responses import Accepted, Refused

CALL: Final = "whc_"
MAX_BODY: Final = 64 << 10  # bytes of a body that the log keeps
REPORT_NS: Final = 60_000_000_000  # minimum time between events about calls that were not valid
STALE: Final = "stale"
# For a message that an older version accepted and this one would not.
NO_MESSAGE: Final = SubmissionResult(422, Refused(reason="schema_violation"))


class HookCall(NamedTuple):
    """One request to a hook's endpoint."""

    at_ns: int
    caller: str
    signature: Status
    headers: dict[str, str]
    body_hash: str
    body_bytes: int
    delivery_id: str | None = None


class LoggedCall(NamedTuple):
    """How a call was logged; `repeated`: it was accepted before, and `call_id` is that call's id."""

    call_id: str
    repeated: bool
    message: bytes | None = None  # as it must enter the pipeline


def delivery_keys(hook_id: str, scheme: str, call: HookCall) -> list[str]:
    """Keys by which a repeated delivery is recognized. GitHub signs only the body, so its delivery id proves
    nothing: there a body is accepted once, under any id."""
    names = [f"id\n{call.delivery_id}"] if call.delivery_id is not None else []
    if scheme == "github" or not names:
        names.append(f"body\n{call.body_hash}")
    return [sha256(f"{hook_id}\n{name}".encode()).hexdigest() for name in names]


def receive(
    principal: Principal,
    hook: Row,
    call: HookCall,
    outcome: Outcome,
    reason: str | None,
    body: bytes | None,
    arrival: IncomingMessage | None,
    keys: Sequence[str],
    now_ns: int,
) -> Command:
    """Accepts a valid call. `body` is what may be kept of it, as JSON; `arrival` the message it became, if
    any; `keys` are its delivery's."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = hooks_of(uow, principal.tenant_id).get(hook["hook_id"])
        if row is None or row["state"] != "active" or uow.memory.tenant.disabled:
            return unknown_hook()
        if row["version"] != hook["version"]:
            return SubmissionResult(409, Refused(reason=STALE, detail="the hook was changed meanwhile"))
        seen = uow.memory.rows.setdefault("hook_deliveries", {})
        before = next((seen[key] for key in keys if key in seen), None)
        if before is not None:
            return SubmissionResult(200, LoggedCall(before["call_id"], True))
        call_id = mint(CALL, now_ns)
        work = _redactor(uow.memory)
        body_kept = b"" if body is None else _redacted_body(work, body)
        message = None if arrival is None else _redacted_message(work, arrival.message.raw)
        logged = _logged(principal, hook["hook_id"], call_id, call) | {
            "outcome": outcome,
            "reason": reason,
            "message_id": None if arrival is None else arrival.message.message_id,
            "session_id": None if arrival is None else arrival.message.session_id,
            "body": body_kept[:MAX_BODY] or None,
            "body_cut": int(len(body_kept) > MAX_BODY),
            "message": message,
        }
        writes = [RowWrite("hook_calls", logged)]
        for key in keys if arrival is not None else ():
            identity = {"tenant_id": principal.tenant_id, "delivery_key": key}
            seen[key] = identity | {"hook_id": hook["hook_id"], "call_id": call_id}
            writes.append(RowWrite("hook_deliveries", seen[key]))
        where = {"tenant_id": principal.tenant_id, "hook_id": hook["hook_id"]}
        values = {"called_ns": uow.now_ns, "last_signature": "valid", "valid_calls": row["valid_calls"] + 1}
        if row["old_until_ns"] is not None and row["old_until_ns"] <= uow.now_ns:
            values |= {"old_secret": None, "old_until_ns": None}  # the overlap is over
        row |= values
        writes.append(RowWrite("hooks", values, where))
        uow.memory.rows.setdefault("hook_calls", {})[call_id] = logged
        detail = {
            "hook_id": hook["hook_id"],
            "hook_name": row["name"],
            "call_id": call_id,
            "outcome": outcome,
            "webhook_message_id": logged["message_id"],
            "body_hash": call.body_hash,
        }
        summary = f"webhook {row['name']} was called: {outcome}"
        event = gateway_event(principal.tenant_id, "webhook_received", summary, uow.now_ns, principal, detail)
        return SubmissionResult(200, LoggedCall(call_id, False, message), [event], writes)

    reads = reads_hooks(principal.tenant_id)
    for key in keys:
        reads.row("hook_deliveries", key)
    size = 2_048 + min(len(body or b""), MAX_BODY) + (0 if arrival is None else arrival.size)
    return Command(principal, now_ns, decide, reads, size=size)


def count_repeat(principal: Principal, call_id: str, now_ns: int) -> Command:
    """No event: a sender that repeats calls could fill the record with them."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = uow.memory.rows.get("hook_calls", {}).get(call_id)
        if row is None:
            return SubmissionResult(404, None)
        row |= {"repeats": row["repeats"] + 1, "repeated_ns": uow.now_ns}
        values = {name: row[name] for name in ("repeats", "repeated_ns")}
        return SubmissionResult(200, row, writes=[RowWrite("hook_calls", values, _where(principal, call_id))])

    return Command(principal, now_ns, decide, _wants_call(call_id))


def store_outcome(
    principal: Principal, call_id: str, verdict: SubmissionResult, now_ns: int, message_seq: int | None = None
) -> Command:
    """Stores the pipeline's verdict on the message and deletes the copy kept for a retry.

    `message_seq` is its number in the archive: a refused message may have one too, and is shredded by it. No
    event: the message has its own.
    """
    outcome, reason = _outcome(verdict)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = uow.memory.rows.get("hook_calls", {}).get(call_id)
        if row is None or row["outcome"] != "taken":
            return SubmissionResult(200, row)
        values: Row = {"outcome": outcome, "reason": reason, "message": None, "message_seq": message_seq}
        if isinstance(verdict.answer, Accepted):
            values["session_id"] = verdict.answer.session_id
            values["message_seq"] = verdict.answer.sequence_number
        row |= values
        return SubmissionResult(200, row, writes=[RowWrite("hook_calls", values, _where(principal, call_id))])

    return Command(principal, now_ns, decide, _wants_call(call_id))


def _outcome(verdict: SubmissionResult) -> tuple[Outcome, str | None]:
    answer = verdict.answer
    if isinstance(answer, Accepted):
        return ("held" if answer.state == "held" else "forwarded"), None
    reason = getattr(answer, "reason", None) or "refused"
    return ("not_taken" if verdict.code in (400, 413, 422) else "refused"), str(reason)


def is_settled(verdict: SubmissionResult) -> bool:
    """Whether the verdict is final: a full queue or a full disk is no verdict on the message."""
    return verdict.code not in (429, 500, 503)


def resubmitted(principal: Principal, message: bytes, now_ns: int) -> IncomingMessage | None:
    """An accepted message submitted to the pipeline again; None if it is no longer a valid message."""
    message_or_fault = intercept(message, NO_LIMIT)
    return (
        IncomingMessage(message_or_fault, principal, now_ns, len(message))
        if isinstance(message_or_fault, Message)
        else None
    )


class RejectedCall(NamedTuple):
    """A call that was not valid, and why."""

    call: HookCall
    reason: str


def reject_calls(
    principal: Principal,
    hook_id: str,
    rejected: Sequence[RejectedCall],
    counted: Mapping[Status, int],
    now_ns: int,
) -> Command:
    """Logs these one by one, and calls that are only counted as one row for each kind; emits an event if one
    is due."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = hooks_of(uow, principal.tenant_id).get(hook_id)
        if row is None or uow.memory.tenant.disabled:
            return unknown_hook()
        logged = [
            _logged(principal, hook_id, mint(CALL, one.call.at_ns), one.call)
            | {"outcome": "turned_away", "reason": one.reason}
            for one in rejected
        ]
        logged += [
            _logged(principal, hook_id, mint(CALL, now_ns), HookCall(now_ns, "", kind, {}, "", 0))
            | {
                "outcome": "turned_away",
                "reason": "too many to keep each",
                "calls": number,
                "body_hash": None,
                "body_bytes": None,
            }
            for kind, number in counted.items()
            if number
        ]
        writes = [RowWrite("hook_calls", logged[0], more=tuple(logged[1:]))] if logged else []
        total = row["refused_count"] + len(rejected) + sum(counted.values())
        is_due = row["refused_ns"] is None or uow.now_ns - row["refused_ns"] >= REPORT_NS
        events = []
        values = _counted(row, rejected, counted) | {"refused_count": total}
        if total and is_due:
            values |= {"refused_count": 0, "refused_ns": uow.now_ns}
            detail = {"hook_id": hook_id, "hook_name": row["name"], "calls": total}
            summary = f"{total} call{'s' if total > 1 else ''} of hook {row['name']} rejected"
            events = [
                gateway_event(principal.tenant_id, "webhook_refused", summary, uow.now_ns, principal, detail)
            ]
        if any(row[name] != value for name, value in values.items()):
            writes.append(RowWrite("hooks", values, {"tenant_id": principal.tenant_id, "hook_id": hook_id}))
        row |= values
        return SubmissionResult(200, row["refused_count"], events, writes)

    return Command(
        principal, now_ns, decide, reads_hooks(principal.tenant_id), size=1_024 * (1 + len(rejected))
    )


def _counted(row: Row, rejected: Sequence[RejectedCall], counted: Mapping[Status, int]) -> Row:
    """How many calls of each kind the hook has had now; `last_signature` is that of the last call."""
    kinds: Counter[Status] = Counter(dict(counted)) + Counter(one.call.signature for one in rejected)
    if not kinds:
        return {}
    values: Row = {f"{kind}_calls": row[f"{kind}_calls"] + number for kind, number in kinds.items()}
    return values | {"last_signature": rejected[-1].call.signature if rejected else row["last_signature"]}


def delete_bodies(principal: Principal, call_ids: Sequence[str], now_ns: int) -> Command:
    """Deletes bodies older than the tenant's retention (S454) that became no message: those of the others go
    with the message. Digests and rows stay."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        where = {"tenant_id": principal.tenant_id, "call_id": list(call_ids)}
        return SubmissionResult(200, len(call_ids), writes=[RowWrite("hook_calls", {"body": None}, where)])

    return Command(principal, now_ns, decide)


def _where(principal: Principal, call_id: str) -> dict[str, Any]:
    return {"tenant_id": principal.tenant_id, "call_id": call_id}


def _wants_call(call_id: str) -> ReadSet:
    reads = ReadSet()
    reads.row("hook_calls", call_id)
    return reads


def _logged(principal: Principal, hook_id: str, call_id: str, call: HookCall) -> Row:
    return {
        "tenant_id": principal.tenant_id,
        "call_id": call_id,
        "hook_id": hook_id,
        "at_ns": call.at_ns,
        "caller": call.caller or None,
        "signature": call.signature,
        "outcome": "taken",
        "reason": None,
        "delivery_id": call.delivery_id,
        "message_id": None,
        "message_seq": None,
        "session_id": None,
        "body_hash": call.body_hash,
        "body_bytes": call.body_bytes,
        "body": None,
        "body_cut": 0,
        "headers": msgspec.json.encode(call.headers).decode(),
        "message": None,
        "calls": 1,
        "repeats": 0,
        "repeated_ns": None,
    }


def _redactor(memory: BatchState) -> Redactor | None:
    book = memory.tenant_config.redaction
    rules = () if book is None else book.in_force
    return redactor(rules, book.secret) if book is not None and rules else None


def _redacted_message(work: Redactor | None, raw: bytes) -> bytes:
    """As the pipeline would store it: the copy kept here obeys the same rules."""
    applied = None if work is None else work.apply(raw)
    if applied is None or not isinstance(intercept(applied.raw, NO_LIMIT), Message):
        return raw  # the pipeline refuses what is invalid after redaction, and nothing of it is stored
    return applied.raw


def _redacted_body(work: Redactor | None, body: bytes) -> bytes:
    """Wrapped in a name that is in no schema, so that all of it is treated as free text."""
    if work is None:
        return body
    applied = work.apply(b'{"webhook":' + body + b"}")
    if applied is None:
        return body
    (value,) = msgspec.json.decode(applied.raw, type=dict[str, msgspec.Raw]).values()
    return bytes(value)
