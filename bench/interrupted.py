"""`python -m bench.interrupted --cycles N`: kill -9 of the gateway amid pauses, rewrites, injects and gates.

Agents speak in sessions of their own while operators pause, unpause, rewrite, inject, approve and reject at
random; the gateway is killed at random moments and started again on the same folder. Then the trail alone
is asked, by an outsider: was anything forwarded while its agent was paused; is arrival order kept; was a
gated message forwarded without its approval, or a rejected one at all; does what was delivered have the
digest of the rewrite in force; is every acknowledged message there once and ended once; is every answered
command recorded once. A run in which nothing was held at any kill proves nothing and fails.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.auditor import Auditor, audit
from bench.evidence import Evidence
from bench.gateway import Gateway
from bench.interveners import Caller, Hand, Promised, Voice
from bench.soak import Lost, conduct, table, tell, words

__all__ = ["Auditor", "Outcome", "Promised", "run"]
LOAD_S = (0.15, 0.5)
MANY = 20
FIRST_S = 30


@dataclass
class Outcome:
    cycles: int = 0
    acknowledged: int = 0
    held: int = 0
    released: int = 0
    rejected: int = 0
    rewritten: int = 0
    commands: int = 0
    commands_unanswered: int = 0
    kills_in_transaction: int = 0
    kills_with_messages_held: int = 0
    events: int = 0
    seconds: float = 0.0

    def judge(self) -> None:
        if not self.released or not self.rewritten:
            raise Lost("nothing was held and released, or nothing rewritten: the run proves nothing")
        if self.cycles >= MANY and not self.kills_with_messages_held:
            raise Lost("nothing was held at any audited kill: the run proves nothing")

    def table(self) -> str:
        counts = {
            "kill -9 cycles amid commands": self.cycles,
            "kills that met an open write transaction": self.kills_in_transaction,
            "audited kills with messages held": self.kills_with_messages_held,
            "messages acknowledged": self.acknowledged,
            "… held on arrival": self.held,
            "… released": self.released,
            "… of these rewritten": self.rewritten,
            "… rejected": self.rejected,
            "commands answered, each recorded once": self.commands,
            "commands recorded whose answer was cut off": self.commands_unanswered,
            "forwarded while paused, gated or rejected": 0,
            "out of order, lost, doubled": 0,
            "events verified in the chain": self.events,
        }
        return table(counts, {"whole run": f"{self.seconds:.1f}"})


def run(
    gateway: Gateway,
    evidence: Evidence,
    cycles: int,
    seed: int,
    say: Callable[[str], None],
    audit_every: int = 10,
) -> Outcome:
    """Raises Lost when a promise is broken or the run proves nothing."""
    outcome, promised, gate = Outcome(), Promised(), threading.Event()
    chance, began = random.Random(seed), time.monotonic()
    gateway.start()
    voices = [Voice(number, gateway, gate, promised, seed * 100 + number) for number in range(4)]
    hands = [Hand(voices, gateway, gate, promised, seed * 100 + 50 + number) for number in range(3)]
    team: list[Caller] = [*voices, *hands]
    for one in team:
        one.start()
    try:
        gate.set()
        promised.rewritten.wait(FIRST_S)  # else a short run may prove nothing
        for number in range(1, cycles + 1):
            gate.set()
            time.sleep(chance.uniform(*LOAD_S))  # the load itself: a kill at a random moment of it
            gate.clear()
            gateway.freeze()
            is_open = evidence.has_open_write(gateway.pid)
            gateway.kill()
            outcome.kills_in_transaction += is_open
            gateway.start()
            auditor = None
            if number % audit_every == 0 or number == cycles:
                auditor, outcome.events = audit(evidence, promised, is_over=False)
                outcome.kills_with_messages_held += len(auditor.content) > len(auditor.ended)
            outcome.cycles = number
            checked = (
                "" if auditor is None else f"; audited, {len(auditor.content) - len(auditor.ended)} held"
            )
            say(f"cycle {number:>3}/{cycles}: {'transaction open' if is_open else 'between'}{checked}")
    finally:
        for one in team:
            one.ending.set()
        gate.set()
        for one in team:
            one.join(40)
    _finish(hands[0], voices)
    for one in team:
        one.http.close()
    auditor, outcome.events = audit(evidence, promised, is_over=True)
    gateway.stop()
    _sum_up(outcome, promised, auditor)
    outcome.seconds = time.monotonic() - began
    outcome.judge()
    return outcome


def _finish(hand: Hand, voices: list[Voice]) -> None:
    """Let everybody go and answer every gate."""
    for voice in voices:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            hand.do(voice, "unpause", {})
            if not hand.answer_what_is_held(voice, gates_only=True):
                break


def _sum_up(outcome: Outcome, promised: Promised, auditor: Auditor) -> None:
    fates = list(auditor.ended.values())
    outcome.acknowledged, outcome.held = len(promised.steps), len(promised.held)
    outcome.released = sum(auditor.ended.get(step) == "delivered" for step in promised.held)
    outcome.rejected, outcome.rewritten = fates.count("rejected"), len(auditor.rewritten)
    outcome.commands = len(promised.commands)
    outcome.commands_unanswered = len(auditor.commands) - outcome.commands


def main() -> None:
    asked = words("bench.interrupted", __doc__, cycles=200).parse_args()
    conduct(
        "interrupted",
        asked,
        lambda gateway, evidence: run(gateway, evidence, asked.cycles, asked.seed, tell),
    )


if __name__ == "__main__":
    main()
