"""Federation worker: offers our checkpoints to witnesses, and checks peers' logs.

Laws: a peer is offered at most one checkpoint a minute, plus on demand; its answer is trusted only under its
key. A cosignature is stored with its checkpoint. Events that only record our cosignatures for others are not
offered, or two peers would trigger each other for ever. A witness that has cosigned more of our log than
exists stops the sealer, but only with a checkpoint under our own key: a peer's claim alone stops nothing.
Unreachable peers delay no other.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, get_args

import msgspec

from observatory.errors import ObservatoryError
from observatory.features.transparency import commands_federation as acts
from observatory.features.transparency.commands_federation import witness_of
from observatory.features.transparency.types_federation import FederationRows
from observatory.features.transparency.types_log import LogBroken, LogRows, StoredCheckpoint
from observatory.features.transparency.worker import Sealer
from observatory.ledger import note, tlog_proof, witness
from observatory.ledger.note import BadNote
from observatory.ledger.witness import CheckpointOffer, WitnessHead
from observatory.pipeline.ports import EventFilter
from observatory.runtime import worker_context as home
from observatory.runtime.log_key import LogMark
from observatory.runtime.metrics import Measure
from observatory.runtime.outbound_http import OutboundError, OutboundHttp, OutboundResponse
from observatory.runtime.worker_context import TenantWatch

PACE_S = 60.0
LOOK_S = 5.0
AGAIN_S = 15.0  # retry interval for unreachable peers
ASK_S = 5.0  # wait for witnesses before a log is extended; twice that over all logs
AT_ONCE = 16
MAX_ROTATIONS = 8  # a witness that missed more must get the key from its admin
QUIET = 64  # events that are checked for being worth an offer
State = Literal["never", "cosigned", "unreachable", "refused", "ahead"]
Row = dict[str, Any]
log = logging.getLogger("observatory.federation")


class PeerAnswer(msgspec.Struct, frozen=True):
    """A peer's last answer."""

    state: State
    detail: str | None
    at_ns: int


class Federation:
    def __init__(self, app: home.WorkerContext, sealer: Sealer, store: Any, outward: OutboundHttp) -> None:
        assert isinstance(store, LogRows) and isinstance(store, FederationRows)
        self._app, self._sealer, self.outward = app, sealer, outward
        self._log: LogRows = store
        self._rows: FederationRows = store
        self._watch = TenantWatch(app.store)
        self._next: dict[str, float] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._asked: dict[str, list[tuple[str, LogMark]]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._unheard: dict[str, float] = {}  # tenants with a witness to ask again, and when
        self._patience_s = 2 * ASK_S
        self.last_answers: dict[str, PeerAnswer] = {}
        self._begun_ns = time.time_ns()
        self._cosigned_ns: dict[str, int] = {}  # peer -> when it last cosigned since the start
        self._asks: dict[str, set[str]] = {}  # tenant -> the peers that are asked
        self._doubted: dict[str, int] = {}  # tenant -> number of rejected heads

    async def run(self) -> None:
        while True:
            try:
                await self.look()
            except ObservatoryError as error:  # database unavailable: found by the next poll
                log.warning("asking peers postponed: %s", error)
            await asyncio.sleep(LOOK_S)

    async def peers(self, tenant_id: str) -> list[Row]:
        return await self._rows.rows(tenant_id, "peers", removed_ns=None)

    async def cosigned(self, tenant_id: str, peer_id: str) -> int:
        return await self._rows.cosigned(tenant_id, peer_id)

    async def look(self) -> None:
        """Visit the peers that are due."""
        now, due = time.monotonic(), list[tuple[str, Row]]()
        for tenant_id in [name for name, at in self._unheard.items() if at <= now]:
            del self._unheard[tenant_id]
            self._ask(tenant_id)
        for tenant_id, head in await self._watch.awake():
            known = await self.peers(tenant_id)
            peers = [row for row in known if row["url"] or row["log_url"]]
            await self._count(tenant_id, known)
            if not peers:
                self._watch.rest(tenant_id, head)
            due += [(tenant_id, row) for row in peers if self._next.get(row["peer_id"], 0.0) <= now]
        await asyncio.gather(*(self._visit(tenant_id, row) for tenant_id, row in due))

    async def _count(self, tenant_id: str, peers: list[Row]) -> None:
        """Update the counts for `measures`, which reads nothing from the store."""
        self._asks[tenant_id] = {row["peer_id"] for row in peers if row["url"]}
        heads = await self._rows.rows(tenant_id, "peer_heads") if peers else []
        origins = {row["origin"] for row in peers}
        self._doubted[tenant_id] = sum(
            row["fork_kind"] is not None and row["origin"] in origins for row in heads
        )

    def measures(self) -> list[Measure]:
        asks = [peer_id for peers in self._asks.values() for peer_id in peers]
        states = Counter(
            self.last_answers[one].state if one in self.last_answers else "never" for one in asks
        )
        oldest = min((self._cosigned_ns.get(one, self._begun_ns) for one in asks), default=None)
        age = 0.0 if oldest is None else max(0.0, (time.time_ns() - oldest) / 1e9)
        text = "Witnesses that are asked, by their last answer."
        measures = [
            Measure("observatory_peers", "gauge", text, states[state], {"state": state})
            for state in get_args(State)
        ]
        text = "Seconds since the witness that is furthest behind cosigned, or since the start; an idle log"
        measures.append(
            Measure("observatory_peer_cosignature_age_seconds", "gauge", f"{text} is not offered.", age)
        )
        text = "Rejected heads of peers' logs: forks, rollbacks, histories without a proof."
        measures.append(Measure("observatory_peer_forks", "gauge", text, sum(self._doubted.values())))
        return measures

    async def _visit(self, tenant_id: str, peer: Row) -> None:
        """A peer that hangs occupies one of `AT_ONCE` slots for ten seconds."""
        async with self._slots:
            self._next[peer["peer_id"]] = time.monotonic() + PACE_S
            if peer["log_url"]:
                await self.see(tenant_id, peer)
            if peer["url"] and await self._is_news(tenant_id, peer):
                answer = await self.offer(tenant_id, peer)
                if answer.state == "unreachable":
                    self._next[peer["peer_id"]] = time.monotonic() + AGAIN_S

    async def _is_news(self, tenant_id: str, peer: Row) -> bool:
        """Whether anything except our cosignatures for others was signed since its last cosignature."""
        checkpoint = await self._log.checkpoint(tenant_id)
        done = await self._rows.cosigned(tenant_id, peer["peer_id"])
        if checkpoint is None or checkpoint.size <= done:
            return False
        span = EventFilter(after=done, before=checkpoint.size + 1)
        events = await self._log.events(tenant_id, span, QUIET, newest_first=False)
        return len(events) == QUIET or any(
            b'"event_type":"checkpoint_witnessed"' not in event.record for event in events
        )

    async def offer(self, tenant_id: str, peer: Row) -> PeerAnswer:
        """Offer our newest checkpoint to one witness; returns its answer. A peer's faults never raise."""
        try:
            state, detail = await self._offer(tenant_id, peer)
        except OutboundError as error:
            state, detail = "unreachable", str(error)
        except (BadNote, LogBroken) as error:
            state, detail = "refused", str(error)
        self.last_answers[peer["peer_id"]] = answer = PeerAnswer(state, detail, time.time_ns())
        return answer

    async def _offer(self, tenant_id: str, peer: Row) -> tuple[State, str | None]:
        checkpoint = await self._log.checkpoint(tenant_id)
        if checkpoint is None:
            return "never", "this log has no signed checkpoint yet"
        before = await self._rows.cosigned(tenant_id, peer["peer_id"])
        response, ahead = await self._cosign(tenant_id, peer, checkpoint)
        if response.code == 403 and await self._lead(tenant_id, peer):
            response, ahead = await self._cosign(tenant_id, peer, checkpoint)
        elif response.code == 200:
            for number in await self._rotations(tenant_id):
                if before < number <= checkpoint.size:  # the last one that the previous key cosigned
                    await self._show_key(tenant_id, peer, number)
                    break
        if ahead:
            await self._hear(tenant_id)
            return "ahead", f"this witness claims {ahead:,} cosigned events; the log has {checkpoint.size:,}"
        if response.code == 200:
            return "cosigned", None
        if response.code == 422:  # it has another history of this log; check whether our key signed it
            await self._hear(tenant_id)
        return "refused", f"this witness answered {response.code}{MEANING.get(response.code, '')}"

    async def _cosign(
        self, tenant_id: str, peer: Row, checkpoint: StoredCheckpoint
    ) -> tuple[OutboundResponse, int]:
        """Offer a checkpoint and store the cosignature; returns the response, and its size if past ours."""
        old = await self._rows.cosigned(tenant_id, peer["peer_id"])
        response = await self._send(tenant_id, peer, checkpoint, min(old, checkpoint.size))
        if response.code == 409 and response.kind == witness.SIZE_TYPE:
            old = note.read_size(response.body.decode("ascii", "replace").removesuffix("\n"))
            if old > checkpoint.size:
                return response, old
            response = await self._send(tenant_id, peer, checkpoint, old)
        if response.code == 200:
            await self._keep(tenant_id, peer, checkpoint, response.body)
        return response, 0

    async def _lead(self, tenant_id: str, peer: Row) -> bool:
        """Prove each rotation from a key that this witness knows to the current one; whether all succeeded.

        The known key is searched from the newest on: the first checkpoint over a rotation is signed by both.
        """
        newer: list[int] = []
        for number in await self._rotations(tenant_id):
            if await self._show_key(tenant_id, peer, number):
                return all([await self._show_key(tenant_id, peer, later) for later in reversed(newer)])
            newer.append(number)
        return False

    async def _rotations(self, tenant_id: str) -> list[int]:
        """The events from which a new key signs, newest first."""
        keys = await self._rows.rows(tenant_id, "log_keys")
        return sorted((row["since"] for row in keys if row["since"]), reverse=True)[:MAX_ROTATIONS]

    async def _show_key(self, tenant_id: str, peer: Row, number: int) -> bool:
        """Prove the rotation recorded by this event: its checkpoint first, then the event's proof in it."""
        event = await self._log.event(tenant_id, number)
        checkpoint = await self._rows.first_over(tenant_id, number)
        if event is None or checkpoint is None:
            return False
        if (await self._cosign(tenant_id, peer, checkpoint))[0].code != 200:
            return False
        hashes = await self._sealer.tree.inclusion(tenant_id, number - 1, checkpoint.size)
        body = tlog_proof.write(number - 1, hashes, checkpoint.note, event.record)
        response = await self.outward.post(f"{peer['url'].rstrip('/')}/follow-key", body)
        return response.code == 200

    async def _send(
        self, tenant_id: str, peer: Row, checkpoint: StoredCheckpoint, old: int
    ) -> OutboundResponse:
        proof: Sequence[bytes] = ()
        if 0 < old < checkpoint.size:
            proof = await self._sealer.tree.consistency(tenant_id, old, checkpoint.size)
        body = witness.write(CheckpointOffer(old, list(proof), checkpoint.note))
        return await self.outward.post(f"{peer['url'].rstrip('/')}/add-checkpoint", body)

    async def _keep(self, tenant_id: str, peer: Row, checkpoint: StoredCheckpoint, lines: bytes) -> None:
        key = witness_of(peer["vkey"])
        text = note.split(checkpoint.note)[0]
        signed = text.encode() + b"\n" + lines
        note.open(signed, [key])  # raises BadNote unless it has the peer's valid signature
        line = witness.line_by(signed, key)
        assert line is not None
        seen_s = note.seen_at(note.split(f"{text}\n{line}".encode())[1][0].signature) or 0
        row = acts.WitnessCosignature(checkpoint.size, key.name, peer["peer_id"], line, seen_s)
        act = acts.keep_cosignature(self._app.gateway_principal(tenant_id), row, time.time_ns())
        await self._app.committer.submit(tenant_id, [act])
        self._cosigned_ns[peer["peer_id"]] = time.time_ns()

    async def see(self, tenant_id: str, peer: Row) -> None:
        """Check the head that its log serves: a shorter or different one is recorded."""
        try:
            response = await self.outward.get(f"{peer['log_url'].rstrip('/')}/checkpoint")
            shown = read_peer_checkpoint(response.body, peer["vkey"]) if response.code == 200 else None
        except (OutboundError, BadNote) as error:
            log.info("the log of a peer cannot be read: %s", error)
            return
        if shown is not None:
            who = self._app.gateway_principal(tenant_id)
            await self._app.committer.submit(tenant_id, [acts.check_peer_head(who, shown, time.time_ns())])

    # What the sealer asks before it extends a log.

    async def heads(self, tenant_id: str) -> list[LogMark]:
        """The heads of our log that witnesses have, under our own key, as far as known.

        The first call waits for them, but not for long: all logs wait for the sealer. A later answer, or one
        asked for again because of a contradiction, makes the sealer open the log again.
        """
        if tenant_id not in self._asked:
            began = time.monotonic()
            await asyncio.wait({self._ask(tenant_id)}, timeout=min(ASK_S, self._patience_s))
            self._patience_s = max(0.0, self._patience_s - (time.monotonic() - began))
        return [mark for _, mark in self._asked.get(tenant_id, [])]

    def _ask(self, tenant_id: str) -> asyncio.Task[None]:
        task = self._asking.get(tenant_id)
        if task is None:
            task = self._asking[tenant_id] = asyncio.create_task(self._hear(tenant_id))
            task.add_done_callback(lambda _: self._asking.pop(tenant_id, None))
        return task

    async def _hear(self, tenant_id: str) -> None:
        before = self._asked.get(tenant_id, [])
        try:
            peers = [row for row in await self.peers(tenant_id) if row["url"]]
            found = await asyncio.gather(*(self._witnessed(tenant_id, row) for row in peers))
        except ObservatoryError as error:  # database unavailable
            log.warning("asking witnesses postponed: %s", error)
            self._unheard[tenant_id] = time.monotonic() + AGAIN_S
            return
        self._asked[tenant_id] = marks = [one for one in found if one is not None]
        if marks != before:
            self._sealer.reopen(tenant_id)

    async def _witnessed(self, tenant_id: str, peer: Row) -> tuple[str, LogMark] | None:
        origin = await self._sealer.origin(tenant_id)
        url = f"{peer['url'].rstrip('/')}/{witness.log_id_of(origin)}/checkpoint"
        try:
            response = await self.outward.get(url)
            if response.code != 200:
                return None
            text, _ = note.open(response.body, await self._own_keys(tenant_id, origin))
            served_origin, size, root = note.parse_checkpoint(text)
        except OutboundError as error:
            log.warning("a witness cannot be asked for its cosigned head: %s", error)
            self._unheard[tenant_id] = time.monotonic() + AGAIN_S
            return None
        except BadNote:  # not under our key: an unproven claim
            return None
        is_forgone = (peer["forgone_size"], peer["forgone_root"]) == (size, root)
        return (
            None if served_origin != origin or is_forgone else (peer["peer_id"], LogMark(origin, size, root))
        )

    async def _own_keys(self, tenant_id: str, origin: str) -> list[note.Verifier]:
        keys = {bytes(row["public_key"]) for row in await self._rows.rows(tenant_id, "log_keys")}
        ring = self._sealer.keyring
        if ring is not None:
            keys.add(ring.public_key)
        return [note.Verifier(origin, key) for key in sorted(keys)]

    async def forgo(self, tenant_id: str) -> None:
        """After an accepted rollback: what witnesses have beyond it is marked, and not asked for again."""
        who = self._app.gateway_principal(tenant_id)
        for peer_id, mark in self._asked.get(tenant_id, []):
            act = acts.ignore_witness_head(who, peer_id, WitnessHead(mark.size, mark.root), time.time_ns())
            await self._app.committer.submit(tenant_id, [act])
        self._asked[tenant_id] = []


MEANING = {
    403: ": it does not know the key that signs this log",
    404: ": it does not know this log; its admin must add it as a peer",
    422: ": it cosigned another history of this log",
    429: ": too many requests",
}


def read_peer_checkpoint(signed: bytes, vkey: str) -> acts.PeerCheckpoint:
    """A peer's checkpoint under its key, without others' lines; raises BadNote otherwise."""
    key = note.Verifier.from_vkey(vkey)
    text, _ = note.open(signed, [key])
    origin, size, root = note.parse_checkpoint(text)
    if origin != key.name:
        raise BadNote("this checkpoint belongs to another log than its key")
    line = witness.line_by(signed, key)
    return acts.PeerCheckpoint(origin, vkey, WitnessHead(size, root), text, f"{text}\n{line}".encode())
