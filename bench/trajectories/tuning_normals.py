"""Families of hard negatives of the tuning part: steps that look alike and get somewhere."""

from __future__ import annotations

import json
from collections.abc import Callable

from bench.trajectories.hand import Hand, Made
from bench.trajectories.subjects import PLANS, SUBJECTS


def many_files(hand: Hand) -> None:
    subject = hand.subject
    tool, template = subject.read
    count = hand.dice.randint(7, 15)
    terse = hand.dice.random() < 0.4
    for item, found in zip(hand.some(subject.items, count), hand.some(subject.finds, count), strict=True):
        hand.step(tool, hand.filled(template, item), "ok, read" if terse else found, "success")


def polling_that_progresses(hand: Hand) -> None:
    job = f"job-{hand.dice.randint(100, 999)}"
    style = hand.dice.randrange(4)
    done = hand.dice.randint(0, 10)
    for _ in range(hand.dice.randint(7, 16)):
        done = min(done + hand.dice.randint(2, 9), 99)
        output = (
            f"running, {done} % done",
            f"state=RUNNING processed={done * 1_311} of 129789 rows",
            f"{100 - done} files left",
            f"building layer {done}/100: cached",
        )[style]
        hand.step(
            "job_status",
            json.dumps({"job": job}),
            output,
            hand.dice.choice(("pending", "success")) if not hand.steps else hand.steps[-1]["status"],
            intent="Wait until the import is done",
            reasoning=["It is still running"],
        )
    hand.step(
        "job_status", json.dumps({"job": job}), "finished", "success", intent="Wait until the import is done"
    )


def waiting_on_the_list(hand: Hand) -> None:
    tool = hand.dice.choice(("deploy_status", "queue_peek", "await_approval"))
    hand.polling = [tool if hand.dice.random() < 0.7 else tool[:6] + "*"]
    for _ in range(hand.dice.randint(7, 20)):
        hand.step(
            tool,
            '{"env": "prod"}',
            "still waiting",
            "pending",
            intent="Wait for the approval of the deployment",
        )
        hand.clock += 60
    hand.work(3)


def pagination(hand: Hand) -> None:
    style = hand.dice.randrange(3)
    cursor = hand.dice.getrandbits(40)
    flat = hand.dice.random() < 0.4
    for page in range(1, hand.dice.randint(8, 20)):
        given: Made = {"resource": "orders"}
        if style == 0:
            given |= {"page": page, "per_page": 50}
        elif style == 1:
            given |= {"offset": page * 100, "limit": 100}
        else:
            cursor = hand.dice.getrandbits(40)
            given |= {"cursor": f"c{cursor:x}z"}
        output = (
            "50 rows" if flat else f"50 rows, orders {page * 50} to {page * 50 + 49}, next page available"
        )
        hand.step(
            "list_orders",
            json.dumps(given),
            output,
            "success",
            intent="List all orders of the quarter",
            reasoning=["There are further pages"],
        )


def batch_edits(hand: Hand) -> None:
    subject = hand.subject
    tool, template = subject.write
    both = hand.dice.random() < 0.4
    for item in hand.some(subject.items, hand.dice.randint(7, 14)):
        if both:
            hand.step(
                subject.read[0],
                hand.filled(subject.read[1], item),
                "read",
                "success",
                intent="Apply the change everywhere",
            )
        hand.step(
            tool,
            hand.filled(template, item),
            hand.dice.choice(("ok", "ok", "1 change made")),
            "success",
            intent="Apply the change everywhere",
        )


def legitimate_retries(hand: Hand) -> None:
    subject = hand.subject
    for item in hand.some(subject.items, hand.dice.randint(2, 4)):
        given, error = hand.filled(subject.read[1], item), hand.pick(subject.errors)
        for number in range(hand.dice.randint(1, 4)):
            hand.step(
                subject.read[0],
                given,
                error,
                "failure",
                intent=f"Read {item}",
                reasoning=["The service hiccups", "Trying again"],
            )
            if number and hand.dice.random() < 0.5:
                hand.step("sleep", '{"seconds": 5}', None, "success", intent=f"Read {item}")
        if hand.dice.random() < 0.7:
            hand.step(subject.read[0], given, hand.pick(subject.finds), "success", intent=f"Read {item}")
        else:
            hand.step(
                "ask_operator",
                json.dumps({"question": f"{item} cannot be read, skip it?"}),
                "yes, skip it",
                "success",
                intent=f"Ask about {item}",
            )


def exploration(hand: Hand) -> None:
    subject = hand.subject
    for number in range(hand.dice.randint(7, 16)):
        kind = hand.dice.randrange(4)
        item = hand.pick(subject.items)
        if kind == 0:
            other = SUBJECTS[hand.dice.randrange(len(SUBJECTS))]
            hand.step(
                subject.look[0],
                hand.filled(subject.look[1], hand.pick(other.asks)),
                hand.pick(subject.nothing),
                "success",
                intent=f"Explore where {item} comes from",
                reasoning=[hand.pick(other.whys)],
            )
        elif kind == 1:
            hand.step(
                subject.read[0],
                hand.filled(subject.read[1], item),
                hand.pick(subject.finds),
                "success",
                intent=f"Look into {item}",
            )
        elif kind == 2:
            plan = PLANS[hand.dice.randrange(len(PLANS))]
            hand.step(None, None, None, "success", intent=hand.pick(plan), reasoning=[hand.pick(plan)])
        else:
            hand.step(
                "list_dir",
                json.dumps({"path": f"/data/{number}/{hand.dice.randint(1, 90)}"}),
                f"{hand.dice.randint(1, 60)} entries",
                "success",
                intent="Get an overview",
                added_to_memory=[f"Folder {number} holds {hand.pick(subject.finds)}"],
            )


def test_fix_cycles(hand: Hand) -> None:
    failing = hand.dice.randint(6, 11)
    names = [
        "rounding",
        "currency",
        "refund",
        "empty cart",
        "tax of DE",
        "discount",
        "credit note",
        "leap year",
        "export",
        "import",
        "locale",
    ]
    hand.dice.shuffle(names)
    while failing > 0:
        path = hand.pick(SUBJECTS[0].items)
        call = f"{names[failing % 11].replace(' ', '_')}(total, {failing})"
        hand.step(
            "edit_file",
            json.dumps(
                {
                    "path": path,
                    "diff": f"- return total\n+ return {call}",
                }
            ),
            "patched",
            "success",
            intent="Make the tests pass",
            reasoning=[f"The case {names[failing % 11]} fails"],
        )
        hand.step(
            "run_tests",
            '{"command": "pytest -q tests/"}',
            f"{failing} failed, {60 - failing} passed: {names[failing % 11]}",
            "failure",
            intent="Make the tests pass",
            reasoning=["See what is left"],
        )
        failing -= hand.dice.choice((0, 1, 1, 1, 2))
    hand.step(
        "run_tests", '{"command": "pytest -q tests/"}', "60 passed", "success", intent="Make the tests pass"
    )


def planning(hand: Hand) -> None:
    plan = PLANS[hand.dice.randrange(len(PLANS))]
    goal = hand.dice.choice(("Plan the work", "Draft the answer", "Review"))
    for line in plan:
        hand.step(
            None, None, None, "success", intent=goal if hand.dice.random() < 0.5 else line, reasoning=[line]
        )


NORMALS: tuple[Callable[[Hand], None], ...] = (
    many_files,
    polling_that_progresses,
    waiting_on_the_list,
    pagination,
    batch_edits,
    legitimate_retries,
    exploration,
    test_fix_cycles,
    planning,
)
