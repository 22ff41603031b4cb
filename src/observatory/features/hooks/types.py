"""Request and response types of inbound webhooks. A secret is only in the answer that created it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from observatory.features.hooks.signatures import Scheme, Status
from observatory.features.hooks.types_mapping import (
    DEFAULT_WINDOW_S,
    LONGEST_OVERLAP_S,
    LONGEST_WINDOW_S,
    SHORTEST_WINDOW_S,
    HookMapping,
    HookState,
    Outcome,
)
from observatory.features.hooks.worker import CallReceipt
from observatory.http.answers import Was
from observatory.protocol.responses import Fault
from observatory.protocol.rules import Title

Secret = Annotated[str, msgspec.Meta(min_length=1, max_length=256, description="Generated if not given.")]
WindowS = Annotated[
    int,
    msgspec.Meta(
        ge=SHORTEST_WINDOW_S,
        le=LONGEST_WINDOW_S,
        description="How far the signed time may differ from the gateway's.",
    ),
]


class NewHookBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`scheme` is how the sender signs; without `secret` one is generated."""

    name: Title
    scheme: Scheme
    mapping: HookMapping
    secret: Secret | None = None
    window_s: WindowS = DEFAULT_WINDOW_S


class HookChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Only the members to change."""

    name: Title | None = None
    mapping: HookMapping | None = None
    window_s: WindowS | None = None
    state: HookState | None = None
    was: Was | None = None


class HookRotation(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The previous secret stays valid for `overlap_s`; 0 ends it immediately."""

    secret: Secret | None = None
    overlap_s: Annotated[int, msgspec.Meta(ge=0, le=LONGEST_OVERLAP_S)] = 86_400


class HookTrial(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A body, and either a mapping to test or the hook whose mapping to test."""

    body: Any
    mapping: HookMapping | None = None
    hook_id: str | None = None
    scheme: Scheme = "standard"


class HookTarget(msgspec.Struct, kw_only=True):
    kind: str
    name: str


class HookTried(msgspec.Struct, kw_only=True):
    """What the body would result in: `taken` with intent, target and payload; `ignored`; or `unmapped`."""

    outcome: Outcome
    fault: Fault | None = None
    intent: str | None = None
    target: HookTarget | None = None
    payload: dict[str, Any] | None = None
    session: str | None = None
    delivery_id: str | None = None


class HookSignatures(msgspec.Struct, kw_only=True):
    """Counts of a hook's calls by signature, and the signature of the last one."""

    valid: int
    invalid: int
    missing: int
    last: Status | None


class HookItem(msgspec.Struct, kw_only=True):
    hook_id: str
    name: str
    scheme: Scheme
    mapping: HookMapping
    window_s: int
    state: HookState
    url: str
    signatures: HookSignatures
    old_secret_until: str | None
    last_called_at: str | None
    created_at: str
    created_by: str
    updated_at: str
    updated_by: str


class HookSecret(HookItem, kw_only=True):
    """Shown only once: give it to the sender."""

    secret: str


class HookList(msgspec.Struct, kw_only=True):
    items: list[HookItem]
    next_cursor: str | None


class HookRemoved(msgspec.Struct, kw_only=True):
    hook_id: str
    removed: bool


class HookCallItem(msgspec.Struct, kw_only=True):
    """One call. `calls` is more than one for a row that counts calls too many to log one by one."""

    call_id: str
    hook_id: str
    at: str
    caller: str | None
    signature: Status
    outcome: Outcome
    reason: str | None
    delivery_id: str | None
    message_id: str | None
    session_id: str | None
    body_hash: str | None
    body_bytes: int | None
    calls: int
    repeats: int
    repeated_at: str | None
    headers: dict[str, str]


class HookCallWhole(HookCallItem, kw_only=True):
    """`body` as stored: after redaction, cut at 64 KiB (`body_cut`), null once it was deleted."""

    body: str | None
    body_cut: bool


class HookCallList(msgspec.Struct, kw_only=True):
    items: list[HookCallItem]
    next_cursor: str | None


class SlackChallenge(msgspec.Struct, kw_only=True):
    """Slack's URL verification."""

    challenge: str


HOOK_ANSWERS: dict[str, Any] = {
    "list_hooks": HookList,
    "create_hook": HookSecret,
    "get_hook": HookItem,
    "change_hook": HookItem,
    "rotate_hook": HookSecret,
    "remove_hook": HookRemoved,
    "try_hook": HookTried,
    "list_hook_calls": HookCallList,
    "get_hook_call": HookCallWhole,
    "receive_webhook": (CallReceipt, SlackChallenge),
}
# Needs no API key: the signature is the credential.
HOOK_OPERATIONS = ("receive_webhook",)
