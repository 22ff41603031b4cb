"""`python -m bench.kill --cycles N`: kill -9 under load, again and again, and nothing promised is missing.

Each cycle: writers at work, the server frozen (SIGSTOP) at a random moment, a look from outside whether a
write transaction is open, SIGKILL, restart on the same folder, and the proof: every acknowledged message
there once, under the number and id it was acknowledged with; no step twice; the sequence dense; the
chain verified (new range each time, everything every 10th time and at the end). A run in which no
kill met an open transaction, or none met a message in flight, has proved nothing and fails.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.evidence import Evidence, check_chain
from bench.gateway import Gateway
from bench.soak import Lost, arena, conduct, table, tell, words
from bench.writers import Ledger, Writer
from observatory.ledger.verify import GENESIS

__all__ = ["Lost", "Outcome", "Witness", "arena", "run"]
LOAD_S = (0.1, 0.5)  # so long the writers write before each kill
FULL_EVERY = 10
EXTRA = 15


@dataclass
class Outcome:
    cycles: int = 0
    acknowledged: int = 0
    stored: int = 0
    events: int = 0
    kills_in_transaction: int = 0
    kills_with_messages_in_flight: int = 0
    in_flight: int = 0
    resent: int = 0
    answered_as_before: int = 0
    refused: int = 0
    full_checks: int = 0
    restart_s: float = 0.0
    seconds: float = 0.0

    def judge(self) -> None:
        """Raises Lost when the run proves nothing."""
        if not self.kills_in_transaction:
            raise Lost("no kill met an open transaction: the run proves nothing")
        if not self.kills_with_messages_in_flight or not self.acknowledged:
            raise Lost("no message was in flight at any kill: the run proves nothing")

    def table(self) -> str:
        counts = {
            "kill -9 cycles": self.cycles,
            "kills that met an open write transaction": self.kills_in_transaction,
            "kills with messages in flight": self.kills_with_messages_in_flight,
            "messages in flight at the kills": self.in_flight,
            "messages acknowledged": self.acknowledged,
            "messages stored": self.stored,
            "messages sent again after a kill": self.resent,
            "… of which had been committed: answered as before": self.answered_as_before,
            "requests told to come again (429, 503)": self.refused,
            "acknowledged messages lost": 0,
            "messages stored twice": 0,
            "events verified in the chain": self.events,
            "checks of the whole chain": self.full_checks,
        }
        restart = f"{self.restart_s / max(1, self.cycles):.2f}"
        return table(counts, {"average restart": restart, "whole run": f"{self.seconds:.1f}"})


class Witness:
    """Holds what was seen of the record, and compares it with what was promised."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._verified: tuple[int, str] = (0, GENESIS)
        self._seen: dict[str, tuple[int, str, bytes]] = {}

    @property
    def head(self) -> int:
        return self._verified[0]

    @property
    def stored(self) -> int:
        return len(self._seen)

    def check(self, ledger: Ledger, whole: bool) -> None:
        """Raises Lost. With `whole`, everything is read and verified again."""
        if whole:
            self._verified, self._seen = (0, GENESIS), {}
        self._read_messages()
        self._verified, broken = check_chain(self._evidence, self._verified)
        if broken:
            raise Lost(f"the chain is broken: {broken}")
        if ledger.faults:
            raise Lost(f"a wrong answer: {ledger.faults[0]} ({len(ledger.faults)} in all)")
        for step, ack in ledger.acks.items():
            found = self._seen.get(step)
            if found is None:
                raise Lost(f"step {step}, acknowledged as {ack.sequence_number}, is not stored")
            if found != (ack.sequence_number, ack.message_id, ack.digest):
                raise Lost(f"step {step} is stored as {found[:2]}, acknowledged as {ack.sequence_number}")

    def _read_messages(self) -> None:
        for number, message_id, step, digest in self._evidence.messages(self._verified[0]):
            if step in self._seen:
                raise Lost(f"step {step} is stored twice: as {self._seen[step][0]} and {number}")
            self._seen[step] = (number, message_id, bytes(digest))


def run(
    gateway: Gateway, evidence: Evidence, cycles: int, writers: int, seed: int, say: Callable[[str], None]
) -> Outcome:
    """Raises Lost when a promise is broken or the run proves nothing."""
    outcome, ledger, gate = Outcome(), Ledger(), threading.Event()
    chance, witness, began = random.Random(seed), Witness(evidence), time.monotonic()
    gateway.start()
    team = [Writer(number, gateway.port, gateway.key, ledger, gate, seed) for number in range(writers)]
    for writer in team:
        writer.start()
    try:
        number = 0
        # A short run goes on until a kill has met an open transaction: on PostgreSQL they are brief.
        while number < cycles or (not outcome.kills_in_transaction and number < cycles + EXTRA):
            number += 1
            gate.set()
            time.sleep(chance.uniform(*LOAD_S))  # the load itself: a kill at a random moment of it
            gate.clear()
            line = _kill(gateway, evidence, team, outcome)
            restarted = time.monotonic()
            gateway.start()
            outcome.restart_s += time.monotonic() - restarted
            whole = number % FULL_EVERY == 0
            witness.check(ledger, whole)
            outcome.full_checks += whole
            outcome.cycles, ledger.head_at_start = number, witness.head
            say(
                f"cycle {number:>3}/{cycles}: {line}; head {witness.head:,}{'; whole chain' if whole else ''}"
            )
        gate.set()
        time.sleep(0.3)  # load once more, for what the last kill cut off to be sent again
    finally:
        gate.set()
        for writer in team:
            writer.end()
        for writer in team:
            writer.join(40)
    gateway.stop()
    witness.check(ledger, whole=True)
    outcome.full_checks += 1
    _sum_up(outcome, ledger, witness)
    outcome.seconds = time.monotonic() - began
    outcome.judge()
    return outcome


def _kill(gateway: Gateway, evidence: Evidence, team: list[Writer], outcome: Outcome) -> str:
    gateway.freeze()
    is_open = evidence.has_open_write(gateway.pid)
    waiting = [writer.in_flight for writer in team if writer.in_flight]
    gateway.kill()
    outcome.kills_in_transaction += is_open
    outcome.kills_with_messages_in_flight += bool(waiting)
    outcome.in_flight += sum(waiting)
    state = "transaction open" if is_open else "between transactions"
    return f"killed with {len(waiting)} writers and {sum(waiting)} messages in flight, {state}"


def _sum_up(outcome: Outcome, ledger: Ledger, witness: Witness) -> None:
    outcome.acknowledged, outcome.stored = len(ledger.acks), witness.stored
    outcome.events, outcome.resent, outcome.refused = witness.head, ledger.resent, ledger.refused
    outcome.answered_as_before = ledger.answered_as_before


def main() -> None:
    parser = words("bench.kill", __doc__, cycles=100)
    parser.add_argument("--writers", type=int, default=8)
    asked = parser.parse_args()
    conduct(
        "kill",
        asked,
        lambda gateway, evidence: run(gateway, evidence, asked.cycles, asked.writers, asked.seed, tell),
    )


if __name__ == "__main__":
    main()
