"""Families of true loops of the tuning part."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable

from bench.trajectories.hand import Hand
from bench.trajectories.subjects import WORRIES


def identical(hand: Hand) -> None:
    subject = hand.subject
    hand.work(hand.dice.choice((0, 0, 2, 5)))
    if hand.dice.random() < 0.5:
        item = hand.pick(subject.items)
        tool, given, output, status = (
            subject.read[0],
            hand.filled(subject.read[1], item),
            hand.pick(subject.finds),
            "success",
        )
    else:
        tool, given = subject.look[0], hand.filled(subject.look[1], subject.asks[0])
        output, status = hand.pick(subject.nothing), hand.dice.choice(("success", "failure"))
    for _ in range(hand.dice.randint(6, 15)):
        hand.step(tool, given, output, status)


def ping_pong(hand: Hand) -> None:
    _cycle(hand, 2)


def period_three(hand: Hand) -> None:
    _cycle(hand, 3)


def period_four(hand: Hand) -> None:
    _cycle(hand, 4)


def _cycle(hand: Hand, period: int) -> None:
    subject = hand.subject
    hand.work(hand.dice.choice((0, 1, 4)))
    item, other = hand.some(subject.items, 2)
    calls = [
        (subject.read[0], hand.filled(subject.read[1], item), hand.pick(subject.finds), "success"),
        (subject.write[0], hand.filled(subject.write[1], item), hand.pick(subject.errors), "failure"),
        (
            subject.look[0],
            hand.filled(subject.look[1], subject.asks[1]),
            hand.pick(subject.nothing),
            "success",
        ),
        (subject.read[0], hand.filled(subject.read[1], other), hand.pick(subject.errors), "failure"),
    ]
    hand.dice.shuffle(calls)
    for _ in range(hand.dice.randint(4, 6)):
        for tool, given, output, status in calls[:period]:
            hand.step(
                tool,
                given,
                output,
                status,
                intent=hand.pick(subject.says),
                reasoning=[hand.pick(subject.whys)],
            )
    if hand.dice.random() < 0.3:
        hand.work(3)


def reworded_failure(hand: Hand) -> None:
    subject = hand.subject
    hand.work(hand.dice.choice((0, 2)))
    asks, says = list(subject.asks), list(subject.says)
    fixed = hand.pick(subject.nothing)
    for number in range(hand.dice.randint(7, 13)):
        output = fixed if hand.dice.random() < 0.6 else hand.pick(subject.nothing)
        hand.step(
            subject.look[0],
            hand.filled(subject.look[1], asks[number % len(asks)]),
            output,
            hand.dice.choice(("success", "failure")) if number == 0 else hand.steps[-1]["status"],
            intent=says[number % len(says)],
            reasoning=[hand.pick(subject.whys)],
        )


def volatile_arguments(hand: Hand) -> None:
    subject = hand.subject
    hand.work(hand.dice.choice((0, 3)))
    base = hand.filled(subject.write[1], hand.pick(subject.items))
    error = hand.pick(subject.errors)
    keys = tuple(
        hand.some(
            ("timestamp", "request_id", "nonce", "attempt", "ts", "trace_id", "client_ref"),
            hand.dice.randint(1, 3),
        )
    )
    for number in range(hand.dice.randint(6, 12)):
        tail = hand.dice.choice(
            (
                "",
                f" (request {uuid.UUID(int=hand.dice.getrandbits(128))})",
                f" after {hand.dice.randint(20, 900)} ms",
            )
        )
        hand.step(
            subject.write[0], hand.noise(base, keys), error + tail, "failure", intent=subject.says[number % 2]
        )


def retry_storm(hand: Hand) -> None:
    subject = hand.subject
    given, error = hand.filled(subject.read[1], hand.pick(subject.items)), hand.pick(subject.errors)
    for number in range(hand.dice.randint(8, 30)):
        output = (
            error
            if hand.dice.random() < 0.5
            else f"{error}, attempt {number + 1} of 50, retry in {2 ** min(number, 6)} s"
        )
        hand.step(
            subject.read[0], given, output, "failure", intent=hand.pick(subject.says), added_to_memory=None
        )
        if hand.dice.random() < 0.3:
            hand.step("sleep", json.dumps({"seconds": 2 ** min(number, 6)}), None, "success")


def monologue(hand: Hand) -> None:
    hand.work(hand.dice.choice((0, 0, 3)))
    worry = WORRIES[hand.dice.randrange(len(WORRIES))]
    for number in range(hand.dice.randint(7, 14)):
        second = worry[(number * 2 + 1) % len(worry)]
        hand.step(
            None,
            None,
            None,
            hand.dice.choice(("success", "pending")),
            intent=worry[number % len(worry)],
            reasoning=[second] if hand.dice.random() < 0.5 else None,
        )


LOOPS: tuple[Callable[[Hand], None], ...] = (
    identical,
    ping_pong,
    period_three,
    period_four,
    reworded_failure,
    volatile_arguments,
    retry_storm,
    monologue,
)
