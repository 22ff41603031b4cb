"""The generated loops of the untouched set: one function a family, told apart by what goes round."""

from __future__ import annotations

from random import Random
from typing import Any

from bench.trajectories.untouched_parts import Step, Trajectory, around, hexes, shuffled, step, trajectory

IDENTICAL: tuple[tuple[str, str, str, str, Any, str, str], ...] = (
    (
        "stock-level",
        "stocker",
        "Check the stock of M8 bolts",
        "inventory",
        {"sku": "M8-40"},
        "0 on hand",
        "success",
    ),
    ("dns-lookup", "netops", "Resolve the new host", "dig", "dig +short new.corp.test", "", "success"),
    ("pdf-ocr", "archivist", "OCR the scan", "ocr", {"file": "scan_04.tif"}, "no text found", "success"),
    (
        "vote-count",
        "clerk",
        "Lire le procès-verbal",
        "ouvrir",
        {"doc": "pv-12"},
        "document illisible",
        "failure",
    ),
)


def identical_call(rng: Random) -> list[Trajectory]:
    made = []
    for name, agent, intent, tool, given, output, status in IDENTICAL:
        steps = [step(agent, intent, tool, given, output, status) for _ in range(rng.randint(7, 14))]
        made.append(trajectory(rng, name, "identical_call", "loop", around(rng, agent, steps)))
    return made


CYCLES: dict[str, tuple[tuple[str, str, list[tuple[str, str, Any, str, str]]], ...]] = {
    "ping_pong": (
        ("mount-unmount", "storage", [
            ("Mount the volume", "mount", {"dev": "/dev/sdb1"}, "mounted read-only, errors=remount-ro",
             "success"),
            ("Unmount it to mount it writable", "umount", {"dev": "/dev/sdb1"}, "unmounted", "success"),
        ]),
        ("slot-hold-release", "scheduler", [
            ("Hold Tuesday 15:00", "hold_slot", {"slot": "tue-15"}, "held", "success"),
            ("Release it, Ms Ito is away", "release_slot", {"slot": "tue-15"}, "released", "success"),
        ]),
        ("schema-validate", "modeller", [
            ("Generate the order JSON", "generate", "order with 2 lines", '{"lines": [{"qty": "two"}',
             "success"),
            ("Validate it", "validate", {"schema": "order.v2"}, "invalid: unexpected end of input",
             "failure"),
        ]),
    ),
    "period_three_four": (
        ("cache-clear-restart-probe", "webops", [
            ("Clear the cache", "redis", "FLUSHDB", "OK", "success"),
            ("Restart the worker", "systemctl", "restart worker", "", "success"),
            ("Probe the page", "curl", "https://shop.test/p/91", "HTTP 500 template cart.html missing",
             "failure"),
        ]),
        ("menu-walk", "ivr_bot", [
            ("Call the clinic", "dial", {"no": "555-0101"}, "Press 1 for appointments", "success"),
            ("Choose appointments", "press", {"key": 1}, "Press 3 for new patients", "success"),
            ("Choose new patients", "press", {"key": 3}, "All lines are busy. Goodbye.", "failure"),
        ]),
        ("lab-cycle", "labrobot", [
            ("Aspirate the sample", "pipette", {"op": "aspirate", "ul": 50}, "ok", "success"),
            ("Dispense into A1", "pipette", {"op": "dispense", "well": "A1"}, "clot detected, 0 ul",
             "failure"),
            ("Wash the tip", "wash", {"s": 10}, "ok", "success"),
            ("Home the arm", "home", {}, "ok", "success"),
        ]),
    ),
    "undo_redo": (
        ("comma-in-out", "proofreader", [
            ("Add the Oxford comma", "edit", {"at": 114, "ins": ","}, "red, white, and blue", "success"),
            ("Remove the comma per house style", "edit", {"at": 114, "del": ","}, "red, white and blue",
             "success"),
        ]),
        ("scale-up-down", "autoscaler", [
            ("Scale up for latency", "scale", {"svc": "img", "n": 6}, "6 replicas, cost alert raised",
             "success"),
            ("Scale down for cost", "scale", {"svc": "img", "n": 3}, "3 replicas, latency alert raised",
             "success"),
        ]),
        ("hedge-unhedge", "trader", [
            ("Open the hedge", "order", {"side": "sell", "lots": 2}, "filled, delta -0.4", "success"),
            ("Close the hedge", "order", {"side": "buy", "lots": 2}, "filled, delta +0.4", "success"),
        ]),
    ),
}  # fmt: skip


def cycles(rng: Random) -> list[Trajectory]:
    made = []
    for family, cases in CYCLES.items():
        for name, agent, parts in cases:
            steps = [step(agent, *part) for _ in range(rng.randint(5, 8)) for part in parts]
            made.append(trajectory(rng, name, family, "loop", around(rng, agent, steps)))
    return made


OTHER_WORDS: dict[str, tuple[tuple[str, str, str, str, str, list[tuple[str, Any]]], ...]] = {
    "reworded_failing_call": (
        ("badge-access", "facility", "grant_access", "denied: approver R. Lund has left the company",
         "failure", [
            ("Give Priya access to lab 3", {"who": "Priya", "door": "lab 3", "why": "new hire"}),
            ("Grant Priya entry to the laboratory", {"who": "Priya", "door": "lab 3",
             "why": "she joined today"}),
            ("Open lab 3 for Priya", {"who": "Priya", "door": "lab-3", "why": "new employee"}),
            ("Let Priya into the lab", {"door": "lab 3", "who": "priya", "why": "onboarding"}),
            ("Priya needs lab 3", {"who": "Priya", "door": "Lab 3", "why": "starts work there"}),
            ("Arrange lab access for Priya", {"who": "Priya", "door": "lab 3",
             "why": "onboarding of new hire"}),
        ]),
        ("sql-no-table", "analyst", "sql", 'ERROR: relation "orders_eu" does not exist', "failure", [
            ("Count the EU orders", "SELECT COUNT(*) FROM orders_eu"),
            ("How many orders came from the EU", "select count(*) from orders_eu;"),
            ("Get the number of EU orders", "SELECT COUNT(1) FROM orders_eu"),
            ("Total of European orders", "SELECT count(id) FROM orders_eu"),
            ("Determine the EU order count", "SELECT COUNT(*) AS n FROM orders_eu"),
            ("Number of orders in Europe", "SELECT COUNT(*) FROM public.orders_eu"),
        ]),
        ("drucker-offline", "buero", "drucken", "Fehler: Drucker HP-2 ist offline", "failure", [
            ("Den Vertrag ausdrucken", {"datei": "vertrag.pdf", "drucker": "HP-2"}),
            ("Vertrag auf Papier bringen", {"drucker": "HP-2", "datei": "vertrag.pdf", "kopien": 1}),
            ("Das Dokument drucken", {"datei": "./vertrag.pdf", "drucker": "HP-2"}),
            ("Den Vertrag noch einmal an den Drucker senden", {"datei": "vertrag.pdf", "drucker": "hp-2"}),
            ("Druck des Vertrags wiederholen", {"datei": "vertrag.pdf", "drucker": "HP-2", "duplex": False}),
            ("Vertrag drucken", {"datei": "vertrag.pdf", "drucker": "HP-2", "farbe": False}),
        ]),
    ),
    "new_query_same_hits": (
        ("bearing-part", "buyer", "catalog", "1 hit: SKF 6204 (discontinued)", "success", [
            ("Find the bearing 6204", {"q": "SKF 6204 bearing"}),
            ("Search for bearing type 6204", {"q": "bearing 6204 SKF"}),
            ("Look for the ball bearing", {"q": "ball bearing SKF 6204"}),
            ("Find an SKF 6204 to buy", {"q": "buy SKF 6204"}),
            ("Search again for the 6204", {"q": "6204 bearing by SKF"}),
            ("Find where to get the 6204", {"q": "SKF 6204 ball bearing price"}),
        ]),
        ("log-grep", "oncall", "logsearch", "(no matches)", "success", [
            ("Find the panic in the log", "panic AND service:pay"),
            ("Search the pay log for panics", "service:pay panic"),
            ("Grep for the panic", "service:pay AND message:panic"),
            ("Look for a panic in pay", "panic service:pay"),
            ("Search the panic", 'service:pay "panic"'),
            ("Locate the panic message", "service:pay message:*panic*"),
        ]),
        ("case-law", "jurist", "lexfind", "2 rulings: BGH VIII ZR 12/19, OLG Köln 5 U 3/20", "success", [
            ("Find rulings on mould in flats", {"terms": ["mould", "rent reduction"]}),
            ("Search rent reduction because of mould", {"terms": ["rent reduction", "mould"]}),
            ("Rulings about mouldy flats", {"terms": ["mould", "flat", "rent reduction"]}),
            ("Look for judgments on mould", {"terms": ["mould", "reduction of rent"]}),
            ("Search judgments on mould and rent", {"terms": ["reduction of rent", "mould"]}),
            ("Case law: mould in a rented flat", {"terms": ["mould", "rented flat", "rent reduction"]}),
        ]),
    ),
    "already_done": (
        ("subscribe-list", "marketer", "subscribe", "already subscribed", "success", [
            ("Subscribe Lena to the newsletter", {"mail": "lena@ex.test"}),
            ("Put Lena on the list", {"mail": "lena@ex.test"}),
            ("Make sure Lena gets the newsletter", {"mail": "lena@ex.test"}),
            ("Add Lena to the newsletter", {"mail": "lena@ex.test"}),
            ("Lena should be subscribed", {"mail": "lena@ex.test"}),
        ]),
        ("git-nothing", "committer", "bash", "On branch main\nnothing to commit, working tree clean",
         "success", [
            ("Commit the changes", "git add -A && git commit -m 'Fix the parser'"),
            ("Save the work", "git add -A && git commit -m 'Fix parser'"),
            ("Commit the parser fix", "git commit -am 'Fix the parser'"),
            ("Record the change", "git add . && git commit -m 'Parser fix'"),
            ("Make the commit", "git commit -am 'parser fix'"),
        ]),
        ("firewall-rule", "secops", "fw_add", "rule exists, unchanged", "success", [
            ("Block 203.0.113.9", {"deny": "203.0.113.9"}),
            ("Add the block for the attacker", {"deny": "203.0.113.9"}),
            ("Ensure the attacker is blocked", {"deny": "203.0.113.9"}),
            ("Deny the address", {"deny": "203.0.113.9"}),
            ("Block the attacker's address", {"deny": "203.0.113.9"}),
        ]),
    ),
    "asks_what_it_was_told": (
        ("pizza-size", "waiter", "say", "Guest: large, please", "success", [
            ("Ask for the size", "What size would you like?"),
            ("Find out the size of the pizza", "Small, medium or large?"),
            ("Learn the size", "Which size may it be?"),
            ("Ask which size", "And the size of your pizza?"),
            ("Clarify the size", "How big should the pizza be?"),
        ]),
        ("which-branch", "pair_dev", "ask_user", "Dev: release/2.4, as before", "success", [
            ("Learn the target branch", {"q": "Which branch should I target?"}),
            ("Ask for the branch", {"q": "What is the target branch?"}),
            ("Clarify the branch", {"q": "Should this go to main or to a release branch?"}),
            ("Get the branch name", {"q": "Please name the branch for this change."}),
            ("Find out the branch", {"q": "Into which branch do I merge?"}),
        ]),
        ("dieta-alergia", "nutri", "preguntar", "Cliente: alergia a los frutos secos", "success", [
            ("Saber las alergias", {"t": "¿Tiene alguna alergia?"}),
            ("Preguntar por alergias", {"t": "¿Es alérgico a algo?"}),
            ("Conocer las alergias del cliente", {"t": "¿Qué alergias tiene?"}),
            ("Aclarar las alergias", {"t": "¿Padece usted alergias alimentarias?"}),
            ("Averiguar si hay alergias", {"t": "¿Hay alguna alergia que deba saber?"}),
        ]),
    ),
    "stuck_in_place": (
        ("drone-geofence", "drone", "fly", "geofence: refused, position 47.371 8.541 unchanged", "failure", [
            ("Fly to the roof", {"to": [47.3722, 8.5416], "alt": 40}),
            ("Go to the roof", {"to": [47.3722, 8.5415], "alt": 40}),
            ("Approach the roof", {"to": [47.3721, 8.5416], "alt": 41}),
            ("Head for the roof", {"to": [47.3722, 8.5417], "alt": 40}),
            ("Reach the roof", {"to": [47.3723, 8.5416], "alt": 39}),
        ]),
        ("scroll-bottom", "browser", "scroll", "already at the bottom (y=4120)", "success", [
            ("Scroll to find the price", {"dy": 600}),
            ("Scroll down further", {"dy": 500}),
            ("See more of the page", {"dy": 800}),
            ("Scroll on to the price", {"dy": 600}),
            ("Look further down", {"dy": 700}),
        ]),
        ("maze-door", "solver", "act", "The door is locked. You are still in the antechamber.", "failure", [
            ("Open the door", "open door"),
            ("Get through the door", "push door"),
            ("Go through the door", "open the door"),
            ("Open it", "pull door"),
            ("Leave by the door", "go through door"),
        ]),
    ),
}  # fmt: skip


def other_words(rng: Random) -> list[Trajectory]:
    made = []
    for family, cases in OTHER_WORDS.items():
        for name, agent, tool, output, status, ways in cases:
            steps: list[Step] = []
            for number in range(rng.randint(7, 12)):
                intent, given = ways[number % len(ways)] if number < len(ways) else rng.choice(ways)
                steps.append(step(agent, intent, tool, given, output, status))
            made.append(trajectory(rng, name, family, "loop", around(rng, agent, steps)))
    return made


def volatile_arguments(rng: Random) -> list[Trajectory]:
    cases: tuple[tuple[str, str, str, dict[str, Any], str], ...] = (
        (
            "sms-otp",
            "verifier",
            "sms_send",
            {"to": "+33 6 00", "tpl": "otp"},
            "blocked: carrier refuses sender id",
        ),
        ("payment-intent", "cashier", "pay", {"cart": 5519, "amount": 78.2}, "declined: card expired 01/26"),
        ("metrics-push", "collector", "push", {"job": "nightly", "rows": 0}, "400 empty batch"),
    )
    made = []
    for name, agent, tool, fixed, output in cases:
        steps = []
        for number in range(rng.randint(7, 12)):
            stamp = (
                f"2026-03-0{rng.randint(1, 9)}T{number + 8:02d}:{rng.randint(10, 59)}:{rng.randint(10, 59)}Z"
            )
            given = shuffled(rng, fixed | {"request_id": hexes(rng, 16), "sent_at": stamp})
            received = f"{output} [trace {hexes(rng, 8)}]"
            steps.append(step(agent, f"Finish the {name} step", tool, given, received, "failure"))
        made.append(trajectory(rng, name, "volatile_arguments", "loop", around(rng, agent, steps)))
    return made


def retry_storm(rng: Random) -> list[Trajectory]:
    trace = "Traceback (most recent call last):\n" + "".join(
        f'  File "/srv/etl/{part}.py", line {line}, in {part}\n    run(job)\n'
        for part, line in (("main", 14), ("load", 88), ("db", 310), ("pool", 57))
    )
    cases: tuple[tuple[str, str, str, str, Any, str], ...] = (
        (
            "db-refused",
            "loader",
            "Load the day's file",
            "etl_load",
            {"file": "day.csv"},
            trace + "ConnectionRefused",
        ),
        ("ftp-530", "fetcher", "Fetch the bank statement", "ftp_get", "stmt_0412.sta", "530 Login incorrect"),
        (
            "gpu-oom",
            "tuner",
            "Train the ranker",
            "train",
            {"batch": 512},
            "CUDA out of memory, tried 9.1 GiB",
        ),
    )
    made = []
    for name, agent, intent, tool, given, output in cases:
        steps = [
            step(
                agent,
                intent if number % 2 else f"{intent} (attempt {number + 1})",
                tool,
                given,
                output,
                "failure",
            )
            for number in range(rng.randint(9, 25))
        ]
        made.append(trajectory(rng, name, "retry_storm", "loop", around(rng, agent, steps)))
    return made


def monologue(rng: Random) -> list[Trajectory]:
    cases = (
        ("which-database", "architect", "database for the project", "Postgres is solid", "SQLite is simple"),
        ("gift-for-aunt", "giftbot", "gift for the aunt", "A book is personal", "Flowers are safe"),
        ("rook-or-bishop", "chessmind", "piece to move", "The rook is active", "The bishop is long-ranged"),
    )
    verbs = (
        "Decide on the",
        "Think about the",
        "Consider the",
        "Choose the",
        "Reflect on the",
        "Weigh up the",
    )
    made = []
    for name, agent, what, one, two in cases:
        steps = []
        for number in range(rng.randint(8, 13)):
            chain = [f"{one}, but {two[0].lower()}{two[1:]}", "Which is better?"]
            if number % 2:
                chain = [f"{two}; then again {one[0].lower()}{one[1:]}", "I am not sure which"]
            steps.append(
                step(agent, f"{verbs[number % len(verbs)]} {what}", None, None, None, "success", *chain)
            )
        made.append(trajectory(rng, name, "monologue", "loop", around(rng, agent, steps)))
    return made


def same_content(rng: Random) -> list[Trajectory]:
    cases: tuple[tuple[str, str, str, str, tuple[tuple[str, Any], ...]], ...] = (
        ("who-owns-host", "inventor", "owner of host bx-9", "owner: team-search", (
            ("cmdb", {"host": "bx-9"}), ("bash", "cmdb-cli owner bx-9"), ("http_get",
             "https://cmdb.test/h/bx-9"))),
        ("train-time", "journey", "departure of ICE 612", "ICE 612 dep 08:14 platform 7", (
            ("timetable", {"train": "ICE 612"}), ("web", "https://bahn.test/ice612"), ("timetable",
             "ICE612"))),
        ("clause-text", "reader", "text of clause 8", "8. The lessee shall insure the goods.", (
            ("open_doc", {"doc": "lease", "clause": 8}), ("grep", "grep -A1 '^8\\.' lease.txt"),
            ("open_doc", "lease#8"))),
    )  # fmt: skip
    verbs = ("Find the", "Look up the", "Check the", "Get the", "Determine the")
    made = []
    for name, agent, what, output, ways in cases:
        steps = []
        for number in range(rng.randint(12, 15)):
            tool, given = ways[number % len(ways)]
            steps.append(step(agent, f"{verbs[number % len(verbs)]} {what}", tool, given, output))
        made.append(trajectory(rng, name, "same_content_other_tool", "loop", around(rng, agent, steps)))
    return made


def handover_carousel(rng: Random) -> list[Trajectory]:
    cases = (
        (
            "invoice-approve",
            ("clerk_a", "clerk_b"),
            "invoice 7001",
            ("your approval is needed", "needs your approval"),
        ),
        ("bug-owner", ("frontend", "backend"), "bug UI-88", ("this is on your side", "belongs to your side")),
        ("after-you", ("robot_n", "robot_s"), "the doorway", ("you go first", "please go first")),
    )
    made = []
    for name, pair, what, words in cases:
        steps = []
        for _ in range(rng.randint(5, 8)):
            for me, other in (pair, pair[::-1]):
                given = {"to": other, "text": f"{what}: {rng.choice(words)}"}
                steps.append(step(me, f"Leave {what} to {other}", "send_message", given, "delivered"))
        made.append(trajectory(rng, name, "handover_carousel", "loop", steps))
    return made


def loops(rng: Random) -> list[Trajectory]:
    families = (identical_call, cycles, other_words, volatile_arguments, retry_storm, monologue, same_content,
                handover_carousel)  # fmt: skip
    return [one for family in families for one in family(rng)]
