"""Decisions and deliveries as derived from the record: who was asked, what was answered, what waits.

No event records which of several instances takes work addressed to a capability, cluster or session, nor that
a prompt was handed over: what is not recorded is not compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from observatory.cli.verify.state_report import EXTRA, MISSING, StateDifference
from observatory.features.kill_switch.types import MAX_NOTIFIED
from observatory.features.rebuild.types import NO_LIMIT
from observatory.features.registry.types import NOT_ROUTED
from observatory.features.verification.state_expected import ExpectedRows
from observatory.ledger.export import ExportEntry
from observatory.pipeline.interceptor import intercept
from observatory.protocol.clock import to_ns
from observatory.protocol.message import Message
from observatory.protocol.messages import DecisionRequest

Event = dict[str, Any]
# The inbox items that an event creates; a verdict comes with the event that decided it.
COMMANDS: Final = {"pause": "hold", "unpause": "resume", "inject": "inject", "cancel": "cancel"}
KINDS: Final[dict[str, frozenset[str]]] = {
    "message_delivered": frozenset({"message", "verdict"}),
    "message_rerouted": frozenset({"message"}),
    "message_undeliverable": frozenset({"message"}),
    "message_rejected": frozenset({"verdict"}),
    "hitl_intervention": frozenset({"verdict", *COMMANDS.values()}),
    "gate_expired": frozenset({"verdict"}),
    "decision_made": frozenset({"decision"}),
    "decision_cancelled": frozenset({"decision"}),
    "decision_expired": frozenset({"decision"}),
    "instruction_issued": frozenset({"instruction"}),
    "instruction_sent": frozenset({"instruction"}),
    "kill_switch_engaged": frozenset({"stop"}),
    "kill_switch_released": frozenset({"start"}),
}
ACKED_BY_EVENT: Final = frozenset({"message", "decision", "instruction", "inject", "hold"})
DELIVERY: Final = (
    "sequence_number", "agent_no", "kind", "message_seq", "body", "state", "created_ns", "acked_ns",
)  # fmt: skip
DECISION: Final = (
    "decision_id", "request_seq", "agent_no", "state", "options", "deadline_ns", "auto_option", "option_id",
    "answered_by", "answered_ns", "response_seq", "action_id", "created_ns",
)  # fmt: skip
# Members that an inbox item's body and its event share.
SHARED: Final = ("intervention_id", "decision_id", "kill_id", "message_id", "by", "verdict")
SHARED_OF_DECISION: Final = ("decision_id", "selected_option_id")
BY: Final = ("operator_id", "released_by", "by")
RELEASED: Final = dict.fromkeys(("approved", "edited"), "a release")
OPEN: Final = ("answered", "executing")
# Events with the number of agents reached, each by a delivery; a kill-switch notifies a bounded number.
COUNTED: Final = ("kill_switch_engaged", "instruction_issued", "message_rerouted")
DECIDED: Final = ("decision_made", "decision_cancelled", "decision_expired")
ENDS: Final = {"success": "succeeded", "failure": "failed", "rollback": "failed"}


class ExpectedInbox:
    """`agents`: agent numbers by entity id, from the database; checked elsewhere."""

    def __init__(self, expected: ExpectedRows, agents: Mapping[str, int]) -> None:
        self._expected, self._agents = expected, agents
        self._held: dict[str, tuple[int, bytes | None]] = {}  # held decision requests, by message id
        self._forwarded: tuple[str, int] = ("", 0)  # the newest forwarded message

    def apply(self, entry: ExportEntry, event: Event) -> None:
        body, kind = event["body"], event["body"]["event_type"]
        if kind in KINDS:
            self._cause(entry.sequence_number, event, body)
        if kind in ("message_delivered", "message_held"):
            self._message(entry, event, body)
        elif kind == "hitl_intervention" and entry.rewritten is not None:
            held = self._held.get(body.get("message_id") or "")
            if held is not None:
                self._held[body["message_id"]] = (held[0], entry.rewritten or None)
        elif kind in ("message_read", "pause_acknowledged"):
            self._acknowledged(event, body)
        elif kind == "hitl_reversed" and body["command"] == "inject":
            self._expected.merge("withdrawn", {}, body["intervention_id"])
        elif kind.startswith("decision_"):
            self._decided(kind, event, body)
        elif kind == "action_executed":
            self._confirmed(body)
        elif kind == "message_undeliverable" and body.get("reason") == "too_many_decisions":
            found = self._expected.drop(
                "decision_ids", body["decision_id"]
            )  # forwarded, but no decision was opened
            self._expected.drop("decisions", (found or {}).get("request_seq"))

    def _cause(self, number: int, event: Event, body: dict[str, Any]) -> None:
        attributes = event["attributes"]
        row: dict[str, Any] = {
            "type": body["event_type"],
            "at": to_ns(event["observed_timestamp"]),
            "message_seq": body.get("held_sequence_number") or body.get("message_sequence_number") or number,
        }
        names = (
            "command", "intervention_id", "after_hash", "text_hash", "decision_id", "kill_id", "note",
            "message_id", "selected_option_id",
        )  # fmt: skip
        row |= {name: body[name] for name in names if body.get(name) is not None}
        actor = next((body[one] for one in BY if body.get(one) is not None), None)
        row |= {} if actor is None else {"by": actor}
        if row["type"] in ("message_rejected", "message_delivered"):
            row["digest"] = attributes.get("av.message.digest")
        if row["type"] == "message_rejected":
            row["verdict"] = body.get("reason")
        if row["type"] in COUNTED:
            row["count"] = min(body.get("agents", 0), MAX_NOTIFIED)
        if body.get("command") in COMMANDS:
            row["to"] = self._agents.get(attributes.get("av.recipient.entity_id", ""))
        elif row["type"] == "instruction_sent":
            row["to"] = self._agents.get(attributes.get("av.sender.entity_id", ""))
        elif row["type"] == "message_delivered":
            row |= self._addressed(body, attributes)
        elif row["type"] == "message_rejected":
            row["to"] = self._agents.get(attributes.get("av.sender.entity_id", ""))
        elif row["type"] in DECIDED:
            asker = self._expected.get("askers", body.get("request_sequence_number"))
            row["to"] = None if asker is None else asker["agent_no"]
            if row["type"] == "decision_made" and body.get("message_id") == self._forwarded[0]:
                row["response_seq"] = self._forwarded[1]
        if body.get("command") in ("approve", "edit") or row["type"] == "gate_expired":
            self._expected.put("approvals", {"number": number}, body.get("message_id"))
        self._expected.put("causes", row, number)
        if body["event_type"] == "message_rerouted":
            self._expected.put("rerouted", {}, body["delivery_sequence_number"])
        if body["event_type"] == "message_undeliverable" and body.get("message_sequence_number"):
            self._expected.put("stranded", {}, body["message_sequence_number"])

    def _addressed(self, body: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
        """The delivery that must exist for a known agent addressed by name; otherwise only what may exist."""
        to, sender = attributes.get("av.recipient.entity_id"), attributes.get("av.sender.entity_id")
        is_agent = attributes.get("av.recipient.entity_type") == "agent"
        is_agent = is_agent and body.get("message_type") not in NOT_ROUTED
        if to is None:
            address = attributes.get("av.recipient.address")
            return {"must": address is not None and body.get("message_type") not in NOT_ROUTED}
        is_agent = is_agent and to != sender and not to.startswith("usr_")
        return {"named": self._agents.get(to) if is_agent else None, "must": is_agent}

    def _message(self, entry: ExportEntry, event: Event, body: dict[str, Any]) -> None:
        number, message_id = entry.sequence_number, body.get("message_id") or ""
        if body["event_type"] == "message_delivered":
            self._forwarded = (message_id, body.get("held_sequence_number") or number)
        if body.get("message_type") != "decision_request":
            return
        if body["event_type"] == "message_held":
            self._held[message_id] = (number, None if entry.message is None else entry.message.raw)
            return
        request_seq, raw = number, None if entry.message is None else entry.message.raw
        if body.get("held_sequence_number"):
            request_seq, raw = self._held.pop(message_id, (body["held_sequence_number"], None))
        agent_no = self._agents.get(event["attributes"].get("av.sender.entity_id", ""))
        self._expected.put("askers", {"agent_no": agent_no}, request_seq)
        self._requested(request_seq, raw, to_ns(event["observed_timestamp"]))

    def _requested(self, request_seq: int, raw: bytes | None, at_ns: int) -> None:
        asker = self._expected.get("askers", request_seq) or {}
        row: dict[str, Any] = {
            "state": "pending",
            "created_ns": at_ns,
            "agent_no": asker.get("agent_no") or 0,
        }
        row |= dict.fromkeys(("option_id", "answered_by", "answered_ns", "response_seq", "action_id"))
        message = None if raw is None else intercept(raw, NO_LIMIT)
        payload = message.envelope.payload if isinstance(message, Message) and message.envelope else None
        if isinstance(payload, DecisionRequest):
            if self._expected.get("decision_ids", payload.decision_id) is not None:
                return  # the id was taken meanwhile: recorded as undeliverable
            self._expected.put("decision_ids", {"request_seq": request_seq}, payload.decision_id)
            options = [one.option_id for one in payload.options]
            auto = None if payload.auto_action is None else payload.auto_action.option_id
            row |= {
                "decision_id": payload.decision_id,
                "option_ids": options,
                "deadline_ns": None if payload.deadline is None else to_ns(payload.deadline),
                "auto_options": [None, auto if auto in options else None],
            }
        self._expected.put("decisions", row, request_seq)

    def _decided(self, kind: str, event: Event, body: dict[str, Any]) -> None:
        request_seq = body.get("request_sequence_number")
        if request_seq is None:
            return
        row: dict[str, Any] = {"state": kind.removeprefix("decision_"), "decision_id": body["decision_id"]}
        if kind == "decision_made":
            row |= {
                "state": "answered",
                "option_id": body["selected_option_id"],
                "answered_by": body["answered_by"],
                "answered_ns": to_ns(event["observed_timestamp"]),
            }
            if event["body"].get("message_id") == self._forwarded[0]:
                row["response_seq"] = self._forwarded[1]
        self._expected.put("decision_ids", {"request_seq": request_seq}, body["decision_id"])
        self._expected.merge("decisions", row, request_seq)

    def _confirmed(self, body: dict[str, Any]) -> None:
        """An event contains its decision's state after it; one that changed nothing repeats the state."""
        decision = self._expected.get("decision_ids", body.get("decision_id") or "")
        if decision is None:
            return
        row = self._expected.get("decisions", decision["request_seq"]) or {}
        if row.get("state") in OPEN and body["decision_state"] == ENDS.get(body["status"]):
            row |= {"state": body["decision_state"], "action_id": body["action_id"]}
            self._expected.put("decisions", row, decision["request_seq"])

    def _acknowledged(self, event: Event, body: dict[str, Any]) -> None:
        number, _, agent_no = str(body.get("delivery_id", "")).removeprefix("dlv_").partition("-")
        self._expected.put("acked", {"at": to_ns(event["observed_timestamp"])}, number, agent_no)
        decision = self._expected.get("decision_ids", body.get("decision_id") or "")
        if body.get("kind") == "decision" and decision is not None:
            row = self._expected.get("decisions", decision["request_seq"]) or {}
            if row.get("state") == "answered":
                self._expected.put("decisions", row | {"state": "executing"}, decision["request_seq"])

    # --- rows ---

    def delivery(self, values: tuple[Any, ...]) -> StateDifference | None:
        row = dict(zip(DELIVERY, values, strict=True))
        number, agent_no, kind = row["sequence_number"], row["agent_no"], row["kind"]
        delivery_key, cause = f"{number}-{agent_no}", self._expected.see("causes", number)
        if cause is None or kind not in KINDS[cause["type"]]:
            return StateDifference("deliveries", delivery_key, what=EXTRA)
        comparisons: list[tuple[str, object, object]] = [("created_ns", cause["at"], row["created_ns"])]
        expected_kind = COMMANDS.get(cause.get("command", ""))
        if expected_kind is not None:
            comparisons.append(("kind", expected_kind, kind))
        expected_seq = {"message": cause["message_seq"], "decision": cause.get("response_seq")}.get(kind)
        comparisons.append(("message_seq", expected_seq, row["message_seq"]))
        to = cause.get("to") if kind != "message" else cause.get("named")
        if to is not None and (kind != "verdict") and agent_no != 0:
            comparisons.append(("agent_no", to, agent_no))
        comparisons += self._body_of(cause, kind, row["body"])
        comparisons += self._end_of(cause, delivery_key, row)
        return next(
            (StateDifference("deliveries", delivery_key, *one) for one in comparisons if one[1] != one[2]),
            None,
        )

    def _end_of(
        self, cause: dict[str, Any], delivery_key: str, row: dict[str, Any]
    ) -> list[tuple[str, object, object]]:
        number, agent_no, state = row["sequence_number"], row["agent_no"], row["state"]
        acked = self._expected.get("acked", number, agent_no)
        if acked is not None:
            return [("state", "acked", state), ("acked_ns", acked["at"], row["acked_ns"])]
        if self._expected.get("withdrawn", cause.get("intervention_id", "")) is not None:
            return [("state", "withdrawn", state)]
        if state == "acked" and row["kind"] not in ACKED_BY_EVENT:
            return []  # no event records it
        if state == "rerouted":
            rerouted = self._expected.get("rerouted", number)
            stranded = self._expected.get("stranded", row["message_seq"])
            return [("state", "not rerouted", state)] if rerouted is stranded is None else []
        expected_state = "parked" if agent_no == 0 else "pending"
        return [("state", expected_state, state), ("acked_ns", None, row["acked_ns"])]

    @staticmethod
    def _body_of(cause: dict[str, Any], kind: str, text: object) -> list[tuple[str, object, object]]:
        """Compared by hashes and ids; the texts themselves are never printed."""
        if kind == "message":
            return [("body", None, None if text is None else "something")]
        try:
            body = msgspec.json.decode(text if isinstance(text, str) else "", type=dict[str, Any])
        except msgspec.MsgspecError:
            return [("body", "an object", "something else")]
        comparisons: list[tuple[str, object, object]] = []
        hashed = {"inject": ("prompt", "after_hash"), "instruction": ("text", "text_hash")}
        if kind in hashed and hashed[kind][1] in cause:
            name, hash_name = hashed[kind]
            digest = "sha256:" + sha256(str(body.get(name)).encode()).hexdigest()
            comparisons.append(("body", cause[hash_name], digest))
        members = SHARED_OF_DECISION if kind == "decision" else SHARED
        comparisons += [
            ("body", cause[name], body[name]) for name in members if name in cause and name in body
        ]
        if kind == "verdict":
            action_digest = cause.get("digest") or body.get("action_digest")
            comparisons.append(("body", action_digest, body.get("action_digest")))
            content = msgspec.json.decode(str(text), type=_Verdict).content
            if bytes(content) != b"null":
                comparisons.append(("body", action_digest, "sha256:" + sha256(content).hexdigest()))
        if kind == "verdict" and cause["type"] != "message_rejected":
            comparisons.append(
                ("body", "a release", RELEASED.get(str(body.get("verdict")), body.get("verdict")))
            )
        if kind == "hold":
            comparisons.append(("body", _hash(cause.get("note")), _hash(body.get("note"))))
        return comparisons

    def decision(self, values: tuple[Any, ...]) -> StateDifference | None:
        row = dict(zip(DECISION, values, strict=True))
        row["option_ids"] = _options(row["options"])
        expected = self._expected.see("decisions", row["request_seq"])
        if expected is None:
            return StateDifference("decisions", row["decision_id"], what=EXTRA)
        allowed = expected.pop("auto_options", [row["auto_option"]])
        if row["auto_option"] not in allowed:
            return StateDifference(
                "decisions", row["decision_id"], "auto_option", allowed[1], row["auto_option"]
            )
        for name, value in expected.items():
            if row[name] != value:
                return StateDifference("decisions", row["decision_id"], name, value, row[name])
        return None

    def missing(self, imported: int) -> StateDifference | None:
        """Missing rows after the imported part: a trail contains neither decisions nor deliveries."""
        for key, _ in self._expected.unseen("decisions"):
            if int(key) > imported:
                return StateDifference("decisions", f"of request {key}", what=MISSING)
        for key, cause, count in self._expected.seen("causes"):
            must = cause.get("count", int(bool(cause.get("to") or cause.get("must"))))
            if count < must and int(key) > imported:
                return StateDifference("deliveries", key, what=MISSING)
        return self._verdicts(imported)

    def _verdicts(self, imported: int) -> StateDifference | None:
        """An agent whose message was approved gets a verdict, under the number of the last approval."""
        for _, hold, _ in self._expected.seen("holds"):
            if hold["gate"] != 2 or hold["state"] not in ("held", "released") or not hold["agent_no"]:
                continue
            last = self._expected.get("approvals", hold["message_id"])
            if (
                last is not None
                and last["number"] > imported
                and not self._expected.is_seen("causes", last["number"])
            ):
                return StateDifference("deliveries", str(last["number"]), what=MISSING)
        return None


class _Verdict(msgspec.Struct):
    content: msgspec.Raw = msgspec.Raw(b"null")  # the exact bytes


def _options(text: object) -> object:
    try:
        return msgspec.json.decode(str(text))["option_ids"]
    except (msgspec.MsgspecError, KeyError, TypeError):
        return text


def _hash(text: object) -> str | None:
    return None if text is None else "sha256:" + sha256(str(text).encode()).hexdigest()
