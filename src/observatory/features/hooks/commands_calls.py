"""Acts of calls: what came to a hook is taken once, logged, and its outcome kept (rules S525–S529).

Law: a call is taken under the tenant's lock, in one transaction with its row in the log, its event, and the
message it became; from then on nothing of it can be lost: whoever finds it taken sends the same bytes again,
and the corridor knows a repeat. A delivery that was taken is never taken again. What redaction rules say of
messages they say of what is kept of a call. Of a call that was not valid only digest, size and the scheme's
headers are kept, and beyond a few a minute only their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from observatory.features.hooks.commands import Row, hooks_of, unknown, wants_hooks
from observatory.features.hooks.types_mapping import Outcome
from observatory.features.redaction.redaction import Redactor, redactor
from observatory.features.redaction.stage import NO_LIMIT
from observatory.pipeline.event_writer import notice
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Arrival, Desk, Memory, Principal, Verdict, Wants
from observatory.protocol.answers import Accepted, Refused
from observatory.protocol.identity import mint
from observatory.protocol.message import Message
from observatory.protocol.signatures import Status

CALL: Final = "whc_"
MOST_BODY: Final = 64 << 10  # bytes of a body that the log keeps
TELL_NS: Final = 60_000_000_000  # how often calls that were not valid are told of
STALE: Final = "stale"
# Of one that an older version had taken and this one would not.
NO_MESSAGE: Final = Verdict(422, Refused(reason="schema_violation"))


class Call(NamedTuple):
    """One request at a hook's door."""

    at_ns: int
    caller: str
    signature: Status
    headers: dict[str, str]
    body_hash: str
    body_bytes: int
    delivery_id: str | None = None


class Taken(NamedTuple):
    """How a call was logged; `repeated`: it had been taken before, and this is that call's id."""

    call_id: str
    repeated: bool
    message: bytes | None = None  # as it must enter the corridor


def delivery_keys(hook_id: str, scheme: str, call: Call) -> list[str]:
    """By what a delivery is known again. GitHub signs the body and nothing else, so its id alone proves
    nothing: there a body is taken once, under whatever id it comes."""
    names = [f"id\n{call.delivery_id}"] if call.delivery_id is not None else []
    if scheme == "github" or not names:
        names.append(f"body\n{call.body_hash}")
    return [sha256(f"{hook_id}\n{name}".encode()).hexdigest() for name in names]


def receive(
    who: Principal,
    hook: Row,
    call: Call,
    outcome: Outcome,
    reason: str | None,
    body: bytes | None,
    arrival: Arrival | None,
    keys: Sequence[str],
    now_ns: int,
) -> Act:
    """A valid call. `body` is what of it may be kept, as JSON; `arrival` the message it became, if it did;
    `keys` are its delivery's."""

    def decide(desk: Desk) -> Verdict:
        row = hooks_of(desk, who.tenant_id).get(hook["hook_id"])
        if row is None or row["state"] != "active" or desk.memory.tenant.disabled:
            return unknown()
        if row["version"] != hook["version"]:
            return Verdict(409, Refused(reason=STALE, detail="the hook was changed meanwhile"))
        seen = desk.memory.rows.setdefault("hook_deliveries", {})
        before = next((seen[key] for key in keys if key in seen), None)
        if before is not None:
            return Verdict(200, Taken(before["call_id"], True))
        call_id = mint(CALL, now_ns)
        work = _redactor(desk.memory)
        kept = b"" if body is None else _redacted_body(work, body)
        message = None if arrival is None else _redacted_message(work, arrival.message.raw)
        logged = _logged(who, hook["hook_id"], call_id, call) | {
            "outcome": outcome,
            "reason": reason,
            "message_id": None if arrival is None else arrival.message.message_id,
            "session_id": None if arrival is None else arrival.message.session_id,
            "body": kept[:MOST_BODY] or None,
            "body_cut": int(len(kept) > MOST_BODY),
            "message": message,
        }
        writes = [Write("hook_calls", logged)]
        for key in keys if arrival is not None else ():
            found = {"tenant_id": who.tenant_id, "delivery_key": key}
            seen[key] = found | {"hook_id": hook["hook_id"], "call_id": call_id}
            writes.append(Write("hook_deliveries", seen[key]))
        where = {"tenant_id": who.tenant_id, "hook_id": hook["hook_id"]}
        values = {"called_ns": desk.now_ns, "last_signature": "valid", "valid_calls": row["valid_calls"] + 1}
        if row["old_until_ns"] is not None and row["old_until_ns"] <= desk.now_ns:
            values |= {"old_secret": None, "old_until_ns": None}  # it is over: nobody needs it any more
        row |= values
        writes.append(Write("hooks", values, where))
        desk.memory.rows.setdefault("hook_calls", {})[call_id] = logged
        detail = {
            "hook_id": hook["hook_id"],
            "hook_name": row["name"],
            "call_id": call_id,
            "outcome": outcome,
            "webhook_message_id": logged["message_id"],
            "body_hash": call.body_hash,
        }
        summary = f"a webhook came to {row['name']}: {outcome}"
        event = notice(who.tenant_id, "webhook_received", summary, desk.now_ns, who, detail)
        return Verdict(200, Taken(call_id, False, message), [event], writes)

    wants = wants_hooks(who.tenant_id)
    for key in keys:
        wants.row("hook_deliveries", key)
    size = 2_048 + min(len(body or b""), MOST_BODY) + (0 if arrival is None else arrival.size)
    return Act(who, now_ns, decide, wants, size=size)


def count_repeat(who: Principal, call_id: str, now_ns: int) -> Act:
    """No event: who repeats could fill the record with them."""

    def decide(desk: Desk) -> Verdict:
        row = desk.memory.rows.get("hook_calls", {}).get(call_id)
        if row is None:
            return Verdict(404, None)
        row |= {"repeats": row["repeats"] + 1, "repeated_ns": desk.now_ns}
        values = {name: row[name] for name in ("repeats", "repeated_ns")}
        return Verdict(200, row, writes=[Write("hook_calls", values, _where(who, call_id))])

    return Act(who, now_ns, decide, _wants_call(call_id))


def settle(
    who: Principal, call_id: str, verdict: Verdict, now_ns: int, message_seq: int | None = None
) -> Act:
    """What the corridor said of the message. It is in the archive now, or never will be: ours goes.

    `message_seq` is its number there: one that was refused may have one too, and is shredded by it. No event:
    the message has its own.
    """
    outcome, reason = _outcome(verdict)

    def decide(desk: Desk) -> Verdict:
        row = desk.memory.rows.get("hook_calls", {}).get(call_id)
        if row is None or row["outcome"] != "taken":
            return Verdict(200, row)
        values: Row = {"outcome": outcome, "reason": reason, "message": None, "message_seq": message_seq}
        if isinstance(verdict.answer, Accepted):
            values["session_id"] = verdict.answer.session_id
            values["message_seq"] = verdict.answer.sequence_number
        row |= values
        return Verdict(200, row, writes=[Write("hook_calls", values, _where(who, call_id))])

    return Act(who, now_ns, decide, _wants_call(call_id))


def _outcome(verdict: Verdict) -> tuple[Outcome, str | None]:
    answer = verdict.answer
    if isinstance(answer, Accepted):
        return ("held" if answer.state == "held" else "forwarded"), None
    reason = getattr(answer, "reason", None) or "refused"
    return ("not_taken" if verdict.code in (400, 413, 422) else "refused"), str(reason)


def is_settled(verdict: Verdict) -> bool:
    """Whether that was said for good: a full queue or a full disk says nothing of the message."""
    return verdict.code not in (429, 500, 503)


def again(who: Principal, message: bytes, now_ns: int) -> Arrival | None:
    """A message that was taken, on its way into the corridor once more; None should it be none any more."""
    found = intercept(message, NO_LIMIT)
    return Arrival(found, who, now_ns, len(message)) if isinstance(found, Message) else None


class TurnedAway(NamedTuple):
    """A call that was not valid, and why."""

    call: Call
    reason: str


def turn_away(
    who: Principal, hook_id: str, away: Sequence[TurnedAway], counted: Mapping[Status, int], now_ns: int
) -> Act:
    """Log these, one by one, and those that are only counted as one row each kind; tell if it is time."""

    def decide(desk: Desk) -> Verdict:
        row = hooks_of(desk, who.tenant_id).get(hook_id)
        if row is None or desk.memory.tenant.disabled:
            return unknown()
        logged = [
            _logged(who, hook_id, mint(CALL, one.call.at_ns), one.call)
            | {"outcome": "turned_away", "reason": one.reason}
            for one in away
        ]
        logged += [
            _logged(who, hook_id, mint(CALL, now_ns), Call(now_ns, "", kind, {}, "", 0))
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
        writes = [Write("hook_calls", logged[0], more=tuple(logged[1:]))] if logged else []
        total = row["refused_count"] + len(away) + sum(counted.values())
        is_time = row["refused_ns"] is None or desk.now_ns - row["refused_ns"] >= TELL_NS
        events = []
        values = _counted(row, away, counted) | {"refused_count": total}
        if total and is_time:
            values |= {"refused_count": 0, "refused_ns": desk.now_ns}
            detail = {"hook_id": hook_id, "hook_name": row["name"], "calls": total}
            summary = f"{total} call{'s' if total > 1 else ''} of hook {row['name']} turned away"
            events = [notice(who.tenant_id, "webhook_refused", summary, desk.now_ns, who, detail)]
        if any(row[name] != value for name, value in values.items()):
            writes.append(Write("hooks", values, {"tenant_id": who.tenant_id, "hook_id": hook_id}))
        row |= values
        return Verdict(200, row["refused_count"], events, writes)

    return Act(who, now_ns, decide, wants_hooks(who.tenant_id), size=1_024 * (1 + len(away)))


def _counted(row: Row, away: Sequence[TurnedAway], counted: Mapping[Status, int]) -> Row:
    """How many calls of each kind the hook has had now; `last_signature` by who came last."""
    kinds: Counter[Status] = Counter(dict(counted)) + Counter(one.call.signature for one in away)
    if not kinds:
        return {}
    values: Row = {f"{kind}_calls": row[f"{kind}_calls"] + number for kind, number in kinds.items()}
    return values | {"last_signature": away[-1].call.signature if away else row["last_signature"]}


def forget_bodies(who: Principal, call_ids: Sequence[str], now_ns: int) -> Act:
    """Bodies older than the tenant keeps payloads (S454) that became no message: those of the others go with
    theirs. Digests and rows stay."""

    def decide(desk: Desk) -> Verdict:
        where = {"tenant_id": who.tenant_id, "call_id": list(call_ids)}
        return Verdict(200, len(call_ids), writes=[Write("hook_calls", {"body": None}, where)])

    return Act(who, now_ns, decide)


def _where(who: Principal, call_id: str) -> dict[str, Any]:
    return {"tenant_id": who.tenant_id, "call_id": call_id}


def _wants_call(call_id: str) -> Wants:
    wants = Wants()
    wants.row("hook_calls", call_id)
    return wants


def _logged(who: Principal, hook_id: str, call_id: str, call: Call) -> Row:
    return {
        "tenant_id": who.tenant_id,
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


def _redactor(memory: Memory) -> Redactor | None:
    book = memory.rulebook.redaction
    rules = () if book is None else book.in_force
    return redactor(rules, book.secret) if book is not None and rules else None


def _redacted_message(work: Redactor | None, raw: bytes) -> bytes:
    """As the corridor would keep it: what waits for it here is no less bound by the rules."""
    applied = None if work is None else work.apply(raw)
    if applied is None or not isinstance(intercept(applied.raw, NO_LIMIT), Message):
        return raw  # the corridor refuses what does not fit after redaction, and nothing of it stays
    return applied.raw


def _redacted_body(work: Redactor | None, body: bytes) -> bytes:
    """Under a name no schema has, everything is free text."""
    if work is None:
        return body
    applied = work.apply(b'{"webhook":' + body + b"}")
    if applied is None:
        return body
    (value,) = msgspec.json.decode(applied.raw, type=dict[str, msgspec.Raw]).values()
    return bytes(value)
