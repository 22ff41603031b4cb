"""Federation, our side of it: our checkpoints are offered to witnesses, and peers' logs are looked at.

Laws: a peer is offered at most one checkpoint a minute, and on demand; what it answers is believed only
under its key. A cosignature is kept with the checkpoint it is under. What only tells that we cosigned for
others is not offered, else two peers would keep each other awake for ever. A witness that has cosigned more
of our log than there is stops the sealer, but only by a checkpoint under our own key: a peer's word alone
stops nothing. Peers that cannot be reached hold up nobody.
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
from observatory.features.transparency.log_key import Mark
from observatory.features.transparency.types_federation import FederationRows
from observatory.features.transparency.types_log import Checkpoint, LogBroken, LogRows
from observatory.features.transparency.worker import Sealer
from observatory.ledger import note, tlog_proof, witness
from observatory.ledger.note import BadNote
from observatory.ledger.witness import Head, Offer
from observatory.pipeline.ports import EventFilter
from observatory.runtime import worker_context as home
from observatory.runtime.metrics import Measure
from observatory.runtime.outbound_http import Heard, Outward, Unreachable
from observatory.runtime.worker_context import Watch

PACE_S = 60.0
LOOK_S = 5.0
AGAIN_S = 15.0  # who could not be reached is asked again so soon
ASK_S = 5.0  # witnesses are waited for before a log is gone on with; twice that for a whole house
AT_ONCE = 16
MOST_ROTATIONS = 8  # a witness that was away for more of them is told by its people
QUIET = 64  # so many events are looked at to see whether they are worth an offer
State = Literal["never", "cosigned", "unreachable", "refused", "ahead"]
Row = dict[str, Any]
log = logging.getLogger("observatory.federation")


class Told(msgspec.Struct, frozen=True):
    """How a peer answered last."""

    state: State
    detail: str | None
    at_ns: int


class Federation:
    def __init__(self, house: home.Home, sealer: Sealer, store: Any, outward: Outward) -> None:
        assert isinstance(store, LogRows) and isinstance(store, FederationRows)
        self._house, self._sealer, self.outward = house, sealer, outward
        self._log: LogRows = store
        self._rows: FederationRows = store
        self._watch = Watch(house.store)
        self._next: dict[str, float] = {}
        self._places = asyncio.Semaphore(AT_ONCE)
        self._asked: dict[str, list[tuple[str, Mark]]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._unheard: dict[str, float] = {}  # tenants of whose witnesses one is to be asked again
        self._patience_s = 2 * ASK_S
        self.told: dict[str, Told] = {}
        self._begun_ns = time.time_ns()
        self._cosigned_ns: dict[str, int] = {}  # by whom a checkpoint was cosigned since the start, and when
        self._asks: dict[str, set[str]] = {}  # of each tenant the peers that are asked
        self._doubted: dict[str, int] = {}  # and the heads that are not believed

    async def run(self) -> None:
        while True:
            try:
                await self.look()
            except ObservatoryError as error:  # the database is away: found again next time
                log.warning("peers are not asked now: %s", error)
            await asyncio.sleep(LOOK_S)

    async def peers(self, tenant_id: str) -> list[Row]:
        return await self._rows.rows(tenant_id, "peers", removed_ns=None)

    async def cosigned(self, tenant_id: str, peer_id: str) -> int:
        return await self._rows.cosigned(tenant_id, peer_id)

    async def look(self) -> None:
        """Offer what is due to whom it is due."""
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
        """For `measures`, which reads nothing."""
        self._asks[tenant_id] = {row["peer_id"] for row in peers if row["url"]}
        heads = await self._rows.rows(tenant_id, "peer_heads") if peers else []
        origins = {row["origin"] for row in peers}
        self._doubted[tenant_id] = sum(
            row["fork_kind"] is not None and row["origin"] in origins for row in heads
        )

    def measures(self) -> list[Measure]:
        asks = [peer_id for peers in self._asks.values() for peer_id in peers]
        states = Counter(self.told[one].state if one in self.told else "never" for one in asks)
        oldest = min((self._cosigned_ns.get(one, self._begun_ns) for one in asks), default=None)
        age = 0.0 if oldest is None else max(0.0, (time.time_ns() - oldest) / 1e9)
        said = "Witnesses that are asked, by how they answered last."
        found = [
            Measure("observatory_peers", "gauge", said, states[state], {"state": state})
            for state in get_args(State)
        ]
        said = "Seconds since the witness that is furthest behind cosigned, or since the start; a log at rest"
        found.append(
            Measure("observatory_peer_cosignature_age_seconds", "gauge", f"{said} is not offered.", age)
        )
        said = "Heads of peers' logs that are not believed: forks, rollbacks, histories without a proof."
        found.append(Measure("observatory_peer_forks", "gauge", said, sum(self._doubted.values())))
        return found

    async def _visit(self, tenant_id: str, peer: Row) -> None:
        """One peer that hangs holds up its place among `AT_ONCE`, and for ten seconds."""
        async with self._places:
            self._next[peer["peer_id"]] = time.monotonic() + PACE_S
            if peer["log_url"]:
                await self.see(tenant_id, peer)
            if peer["url"] and await self._is_news(tenant_id, peer):
                told = await self.offer(tenant_id, peer)
                if told.state == "unreachable":
                    self._next[peer["peer_id"]] = time.monotonic() + AGAIN_S

    async def _is_news(self, tenant_id: str, peer: Row) -> bool:
        """Whether anything was signed since its last cosignature but that we cosigned for others."""
        found = await self._log.checkpoint(tenant_id)
        done = await self._rows.cosigned(tenant_id, peer["peer_id"])
        if found is None or found.size <= done:
            return False
        span = EventFilter(after=done, before=found.size + 1)
        events = await self._log.events(tenant_id, span, QUIET, newest_first=False)
        return len(events) == QUIET or any(
            b'"event_type":"checkpoint_witnessed"' not in event.record for event in events
        )

    async def offer(self, tenant_id: str, peer: Row) -> Told:
        """Our newest checkpoint, to one witness; how it answered. Never raises for what a peer does."""
        try:
            state, detail = await self._offer(tenant_id, peer)
        except Unreachable as error:
            state, detail = "unreachable", str(error)
        except (BadNote, LogBroken) as error:
            state, detail = "refused", str(error)
        self.told[peer["peer_id"]] = told = Told(state, detail, time.time_ns())
        return told

    async def _offer(self, tenant_id: str, peer: Row) -> tuple[State, str | None]:
        found = await self._log.checkpoint(tenant_id)
        if found is None:
            return "never", "nothing of this log is signed yet"
        before = await self._rows.cosigned(tenant_id, peer["peer_id"])
        heard, ahead = await self._cosign(tenant_id, peer, found)
        if heard.code == 403 and await self._lead(tenant_id, peer):
            heard, ahead = await self._cosign(tenant_id, peer, found)
        elif heard.code == 200:
            for number in await self._rotations(tenant_id):
                if before < number <= found.size:  # cosigned by the key before it, for the last time
                    await self._show_key(tenant_id, peer, number)
                    break
        if ahead:
            await self._hear(tenant_id)
            return "ahead", f"this witness says that it cosigned {ahead:,} events; {found.size:,} are here"
        if heard.code == 200:
            return "cosigned", None
        if heard.code == 422:  # it has another history of this log; see whether our key signed it
            await self._hear(tenant_id)
        return "refused", f"this witness answered {heard.code}{MEANT.get(heard.code, '')}"

    async def _cosign(self, tenant_id: str, peer: Row, found: Checkpoint) -> tuple[Heard, int]:
        """How it answered, its cosignature kept if it is one; and its size, where that lies past ours."""
        old = await self._rows.cosigned(tenant_id, peer["peer_id"])
        heard = await self._send(tenant_id, peer, found, min(old, found.size))
        if heard.code == 409 and heard.kind == witness.SIZE_TYPE:
            old = note.read_size(heard.body.decode("ascii", "replace").removesuffix("\n"))
            if old > found.size:
                return heard, old
            heard = await self._send(tenant_id, peer, found, old)
        if heard.code == 200:
            await self._keep(tenant_id, peer, found, heard.body)
        return heard, 0

    async def _lead(self, tenant_id: str, peer: Row) -> bool:
        """From a key that this witness knows to the one in force, rotation by rotation; whether it follows.

        Which it knows is found from the newest on: the first checkpoint over a rotation is signed by both.
        """
        passed: list[int] = []
        for number in await self._rotations(tenant_id):
            if await self._show_key(tenant_id, peer, number):
                return all([await self._show_key(tenant_id, peer, later) for later in reversed(passed)])
            passed.append(number)
        return False

    async def _rotations(self, tenant_id: str) -> list[int]:
        """The events from which on another key signs, the newest first."""
        keys = await self._rows.rows(tenant_id, "log_keys")
        return sorted((row["since"] for row in keys if row["since"]), reverse=True)[:MOST_ROTATIONS]

    async def _show_key(self, tenant_id: str, peer: Row, number: int) -> bool:
        """The rotation told of by this event: its checkpoint first, then the proof of the event in it."""
        event = await self._log.event(tenant_id, number)
        found = await self._rows.first_over(tenant_id, number)
        if event is None or found is None:
            return False
        if (await self._cosign(tenant_id, peer, found))[0].code != 200:
            return False
        hashes = await self._sealer.tree.inclusion(tenant_id, number - 1, found.size)
        body = tlog_proof.write(number - 1, hashes, found.note, event.record)
        heard = await self.outward.post(f"{peer['url'].rstrip('/')}/follow-key", body)
        return heard.code == 200

    async def _send(self, tenant_id: str, peer: Row, found: Checkpoint, old: int) -> Heard:
        proof: Sequence[bytes] = ()
        if 0 < old < found.size:
            proof = await self._sealer.tree.consistency(tenant_id, old, found.size)
        body = witness.write(Offer(old, list(proof), found.note))
        return await self.outward.post(f"{peer['url'].rstrip('/')}/add-checkpoint", body)

    async def _keep(self, tenant_id: str, peer: Row, found: Checkpoint, lines: bytes) -> None:
        key = witness_of(peer["vkey"])
        text = note.split(found.note)[0]
        signed = text.encode() + b"\n" + lines
        note.open(signed, [key])  # the peer's own signature is there, and right
        line = witness.line_by(signed, key)
        assert line is not None
        seen_s = note.seen_at(note.split(f"{text}\n{line}".encode())[1][0].signature) or 0
        row = acts.Cosigned(found.size, key.name, peer["peer_id"], line, seen_s)
        act = acts.keep_cosignature(self._house.principal_of_house(tenant_id), row, time.time_ns())
        await self._house.committer.submit(tenant_id, [act])
        self._cosigned_ns[peer["peer_id"]] = time.time_ns()

    async def see(self, tenant_id: str, peer: Row) -> None:
        """What its log shows as its head: less than was cosigned, or another, is told in our record."""
        try:
            heard = await self.outward.get(f"{peer['log_url'].rstrip('/')}/checkpoint")
            shown = read_shown(heard.body, peer["vkey"]) if heard.code == 200 else None
        except (Unreachable, BadNote) as error:
            log.info("the log of a peer cannot be looked at: %s", error)
            return
        if shown is not None:
            who = self._house.principal_of_house(tenant_id)
            await self._house.committer.submit(tenant_id, [acts.see(who, shown, time.time_ns())])

    # What the sealer asks before it goes on with a log.

    async def heads(self, tenant_id: str) -> list[Mark]:
        """What witnesses have of our log, under our own key, as far as is known.

        The first time they are waited for, but not for long: all logs of a house wait for the sealer. Who
        answers later, or is asked again because it contradicts, makes the log be opened anew.
        """
        if tenant_id not in self._asked:
            began = time.monotonic()
            await asyncio.wait({self._ask(tenant_id)}, timeout=min(ASK_S, self._patience_s))
            self._patience_s = max(0.0, self._patience_s - (time.monotonic() - began))
        return [mark for _, mark in self._asked.get(tenant_id, [])]

    def _ask(self, tenant_id: str) -> asyncio.Task[None]:
        found = self._asking.get(tenant_id)
        if found is None:
            found = self._asking[tenant_id] = asyncio.create_task(self._hear(tenant_id))
            found.add_done_callback(lambda _: self._asking.pop(tenant_id, None))
        return found

    async def _hear(self, tenant_id: str) -> None:
        before = self._asked.get(tenant_id, [])
        try:
            peers = [row for row in await self.peers(tenant_id) if row["url"]]
            found = await asyncio.gather(*(self._witnessed(tenant_id, row) for row in peers))
        except ObservatoryError as error:  # the database is away
            log.warning("witnesses are not asked now: %s", error)
            self._unheard[tenant_id] = time.monotonic() + AGAIN_S
            return
        self._asked[tenant_id] = marks = [one for one in found if one is not None]
        if marks != before:
            self._sealer.reopen(tenant_id)

    async def _witnessed(self, tenant_id: str, peer: Row) -> tuple[str, Mark] | None:
        origin = await self._sealer.origin(tenant_id)
        url = f"{peer['url'].rstrip('/')}/{witness.place(origin)}/checkpoint"
        try:
            heard = await self.outward.get(url)
            if heard.code != 200:
                return None
            text, _ = note.open(heard.body, await self._own_keys(tenant_id, origin))
            told, size, root = note.parse_checkpoint(text)
        except Unreachable as error:
            log.warning("a witness cannot be asked what it cosigned: %s", error)
            self._unheard[tenant_id] = time.monotonic() + AGAIN_S
            return None
        except BadNote:  # not under our key: a word, and no more
            return None
        is_forgone = (peer["forgone_size"], peer["forgone_root"]) == (size, root)
        return None if told != origin or is_forgone else (peer["peer_id"], Mark(origin, size, root))

    async def _own_keys(self, tenant_id: str, origin: str) -> list[note.Verifier]:
        keys = {bytes(row["public_key"]) for row in await self._rows.rows(tenant_id, "log_keys")}
        ring = self._sealer.keyring
        if ring is not None:
            keys.add(ring.public_key)
        return [note.Verifier(origin, key) for key in sorted(keys)]

    async def forgo(self, tenant_id: str) -> None:
        """The rollback was accepted: what they have beyond it is known, and not asked about again."""
        who = self._house.principal_of_house(tenant_id)
        for peer_id, mark in self._asked.get(tenant_id, []):
            act = acts.forgo(who, peer_id, Head(mark.size, mark.root), time.time_ns())
            await self._house.committer.submit(tenant_id, [act])
        self._asked[tenant_id] = []


MEANT = {
    403: ": it does not know the key that signs this log",
    404: ": it does not know this log; its people must add it as a peer",
    422: ": it cosigned another history of this log",
    429: ": it was asked too often",
}


def read_shown(signed: bytes, vkey: str) -> acts.Shown:
    """A peer's checkpoint under its key, without the lines of others; BadNote if it is not."""
    key = note.Verifier.from_vkey(vkey)
    text, _ = note.open(signed, [key])
    origin, size, root = note.parse_checkpoint(text)
    if origin != key.name:
        raise BadNote("this checkpoint is of another log than its key")
    line = witness.line_by(signed, key)
    return acts.Shown(origin, vkey, Head(size, root), text, f"{text}\n{line}".encode())
