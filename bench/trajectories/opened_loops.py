"""Loops of the kinds that everybody knows, about subjects of their own.

First untouched part; opened after it was scored at 0.849, from then on used for tuning.
"""

from __future__ import annotations

import random
from typing import Any

from bench.trajectories.opened_parts import (
    AGENTS,
    Step,
    Trajectory,
    leads,
    request_id,
    shuffled,
    step,
    trajectory,
)

IDENTICAL: tuple[tuple[str, str, str, str, str, str], ...] = (
    (
        "dns-record",
        "Publish the TXT record",
        "dns_update",
        '{"zone":"acme.example","type":"TXT","value":"v=spf1 -all"}',
        "NOTAUTH: server is not authoritative for zone",
        "failure",
    ),
    (
        "vendor-pdf",
        "Read the data sheet",
        "read_pdf",
        '{"file":"datasheet_rev_c.pdf"}',
        "Document is encrypted, a password is needed.",
        "failure",
    ),
    (
        "cookie-banner",
        "Accept the cookies to see the article",
        "browser_click",
        '{"selector":"button#accept"}',
        "Clicked. The page still shows: We value your privacy.",
        "success",
    ),
    (
        "sql-count",
        "Count the orphaned rows",
        "run_sql",
        "SELECT count(*) FROM lines l LEFT JOIN orders o USING (id) WHERE o.id IS NULL",
        "count\n-----\n    0\n(1 row)",
        "success",
    ),
    (
        "thermostat",
        "Настроить термостат на 21 градус",
        "set_temp",
        '{"room":"кухня","celsius":21}',
        "устройство не в сети",
        "failure",
    ),
)

PAIRS: tuple[tuple[str, tuple[str, str, object, str, str], tuple[str, str, object, str, str]], ...] = (
    (
        "wiki-links",
        ("Follow the link to the definition", "open_page", {"title": "Flux"}, "Flux: see Flow.", "success"),
        ("See the other entry", "open_page", {"title": "Flow"}, "Flow: see Flux.", "success"),
    ),
    (
        "service-restart",
        ("Restart the broken service", "shell", "systemctl restart indexer", "", "success"),
        ("Is it up?", "shell", "systemctl is-active indexer", "failed", "failure"),
    ),
    (
        "cart",
        (
            "Coupon in den Warenkorb legen",
            "cart_coupon",
            {"code": "MAI10"},
            "Coupon gilt ab 80 EUR",
            "failure",
        ),
        ("Warenkorb ansehen", "cart_show", {}, "2 Artikel, 61,40 EUR", "success"),
    ),
    (
        "two-tabs",
        ("Switch to the mail tab to fetch the code", "switch_tab", {"tab": "mail"}, "Inbox (0)", "success"),
        (
            "Switch back to enter the code",
            "switch_tab",
            {"tab": "login"},
            "Enter the 6-digit code",
            "success",
        ),
    ),
)

CYCLES: tuple[tuple[str, tuple[tuple[str, str, object, str, str], ...]], ...] = (
    (
        "proxy",
        (
            ("Set the proxy", "bash", "export HTTPS_PROXY=http://proxy:3128", "", "success"),
            ("Fetch the package index", "bash", "pip download ledgerlib", "ProxyError: 407", "failure"),
            ("Show the proxy setting", "bash", "env | grep -i proxy", "", "success"),
        ),
    ),
    (
        "recipe",
        (
            ("Check the pantry", "pantry", {}, "no eggs", "success"),
            ("Look for a cake recipe", "recipe_search", {"q": "sponge cake"}, "needs 4 eggs", "success"),
            ("Add eggs to the shopping list", "list_add", {"item": "eggs"}, "already on the list", "success"),
            ("Is the order on its way?", "orders", {}, "no order placed", "success"),
        ),
    ),
    (
        "ticket-triage",
        (
            ("Read the ticket", "get_ticket", {"id": "INC-77"}, "owner: none; team: storage", "success"),
            (
                "Assign it to storage",
                "assign",
                {"id": "INC-77", "team": "storage"},
                "rejected by rule 12",
                "failure",
            ),
            ("Read rule 12", "get_rule", {"no": 12}, "Tickets without owner are read first.", "success"),
        ),
    ),
    (
        "robot-arm",
        (
            ("Pick up the cup", "arm", {"do": "grip"}, "slipped, force 0.2 N", "failure"),
            ("Move back to home", "arm", {"do": "home"}, "at home", "success"),
            ("Take a picture", "camera", {"view": "table"}, "cup at (31, 40)", "success"),
            ("Move over the cup", "arm", {"do": "goto", "x": 31, "y": 40}, "in position", "success"),
        ),
    ),
)

REWORDED: tuple[tuple[str, str, str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "ask-wiki",
        "ask_kb",
        "question",
        "No access: your group may not read space HR.",
        (
            "How many days of parental leave are there?",
            "What is the number of parental leave days?",
            "Parental leave: how many days?",
            "Tell me the days of parental leave",
            "Parental leave days, how many?",
            "How many parental leave days do we grant?",
            "Number of days of parental leave?",
        ),
        (
            "Find the leave rules",
            "Look up parental leave",
            "Get the number of days",
            "The handbook should say it",
        ),
    ),
    (
        "image-gen",
        "make_image",
        "prompt",
        "rejected: monthly image quota is used up (50/50)",
        (
            "A red fox in the snow, oil painting",
            "Oil painting of a red fox in snow",
            "Red fox, snow, oil on canvas",
            "A painting in oil: fox, red, in the snow",
            "Snow and a red fox as an oil painting",
            "An oil painting which shows a red fox in the snow",
            "Fox in the snow (red), painted in oil",
        ),
        ("Create the cover picture", "Generate the cover", "Make the fox image", "Cover art, next attempt"),
    ),
    (
        "sms-gateway",
        "send_sms",
        "text",
        "ERR 21: sender id not registered",
        (
            "Ihr Termin ist morgen um 9 Uhr.",
            "Morgen um 9 Uhr haben Sie einen Termin.",
            "Erinnerung: Termin morgen, 9 Uhr",
            "Termin morgen 9:00 Uhr!",
            "Wir erinnern an Ihren Termin morgen um 9 Uhr",
            "Denken Sie an Ihren Termin (morgen, 9 Uhr)",
            "Morgen, 9 Uhr: Ihr Termin",
        ),
        (
            "Patientin erinnern",
            "Erinnerung schicken",
            "SMS zum Termin senden",
            "Die Patientin an morgen erinnern",
        ),
    ),
    (
        "shell-quoting",
        "bash",
        "cmd",
        "bash: syntax error near unexpected token `('",
        (
            "echo total (net) > sum.txt",
            "echo total (net) >sum.txt",
            "echo  total (net)  > sum.txt",
            "echo total (net) > ./sum.txt",
            "echo total (net) 1> sum.txt",
            "echo total (net) > sum.txt;",
            "echo total (net) > 'sum.txt'",
        ),
        (
            "Write the heading",
            "Put the heading into the file",
            "Create sum.txt",
            "Write the line with the total",
        ),
    ),
)

VOLATILE: tuple[tuple[str, str, dict[str, Any], str, str], ...] = (
    (
        "webhook",
        "Register the webhook",
        {"url": "https://hooks.example/in", "events": ["paid"]},
        "422 url must be reachable",
        "nonce",
    ),
    (
        "report",
        "Fetch the sales report",
        {"report": "sales", "region": "emea", "filter": {"year": 2026}},
        "500 NullPointerException at ReportBean.java:88",
        "request_id",
    ),
    ("sign", "Sign the document", {"doc": "offer-81", "key": "k1"}, "key k1 has expired", "timestamp"),
    (
        "sandbox",
        "Run the user's code",
        {"lang": "lua", "code": "print(1/0 == math.huge)"},
        "sandbox image not found",
        "session",
    ),
)

STORMS: tuple[tuple[str, str | None, str, object, tuple[str, ...], float], ...] = (
    (
        "ldap",
        "Look up the employee",
        "ldap_search",
        {"uid": "mroth"},
        ("connection refused", "connection refused "),
        0.5,
    ),
    ("gpu", None, "submit_job", {"gpus": 8, "image": "train:9"}, ("quota exceeded: 0 of 8 GPUs left",), 1.0),
    (
        "mail-login",
        "IMAP-Postfach öffnen",
        "imap_login",
        {"user": "info@firma.example"},
        ("NO [AUTHENTICATIONFAILED] Invalid credentials", "NO [AUTHENTICATIONFAILED] invalid credentials"),
        0.3,
    ),
    (
        "mixed-5xx",
        "Post the journal entry",
        "http_post",
        {"url": "https://erp.local/journal", "entry": 901},
        ("502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"),
        2.0,
    ),
    (
        "webdriver",
        "Open the portal",
        "browser_open",
        {"url": "https://portal.example"},
        (
            "session not created: Chrome version must be between 114 and 116\n"
            "  at RemoteDriver.start (driver.js:51)\n"
            "  at async main (run.js:9)",
        ),
        3.0,
    ),
)

THOUGHTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "careful",
        (
            "I want to be careful here and check the requirements again.",
            "Let me be careful and check the requirements once more.",
            "Being careful, I check the requirements again.",
            "I should check the requirements again, carefully.",
            "To be careful: check the requirements again.",
            "Again I check the requirements, being careful.",
        ),
    ),
    (
        "apology",
        (
            "I apologise for the confusion. Let me try to do this properly.",
            "Sorry for the confusion, let me do this properly.",
            "My apologies for the confusion. I will now do it properly.",
            "I am sorry about the confusion; I'll try to do it properly.",
            "Apologies for the confusion, now properly.",
            "I apologise for the confusion and do it properly.",
        ),
    ),
    (
        "scelta",
        (
            "Devo scegliere tra Postgres e MySQL, valutiamo i pro e i contro.",
            "Valutiamo i pro e i contro di Postgres e MySQL per scegliere.",
            "Per scegliere tra MySQL e Postgres devo valutare pro e contro.",
            "Prima di scegliere tra Postgres e MySQL, i pro e i contro.",
            "Pro e contro di Postgres e MySQL: devo scegliere.",
            "Postgres o MySQL? Valuto pro e contro.",
        ),
    ),
    (
        "next-step",
        (
            "The next step is to determine the next step.",
            "Now I determine what the next step is.",
            "I need to determine the next step.",
            "What is the next step? Let me determine it.",
            "Determining the next step is the next step.",
            "Let me determine the next step now.",
        ),
    ),
)


def loops(rng: random.Random) -> list[Trajectory]:
    made: list[Trajectory] = []
    for name, intent, tool, given, output, status in IDENTICAL:
        agent = rng.choice(AGENTS)
        one = step(agent, intent, tool, given, output, status)
        made.append(
            trajectory(rng, "identical", "loop", name, leads(rng, agent) + [one] * rng.randint(7, 14))
        )
    for name, left, right in PAIRS:
        agent = rng.choice(AGENTS)
        pair = [step(agent, *left), step(agent, *right)]
        made.append(trajectory(rng, "ping_pong", "loop", name, leads(rng, agent) + pair * rng.randint(5, 9)))
    for name, cycle in CYCLES:
        agent = rng.choice(AGENTS)
        turn = [step(agent, *part) for part in cycle]
        steps = leads(rng, agent) + turn * rng.randint(5, 7)
        made.append(trajectory(rng, "period_three_four", "loop", name, steps))
    for name, tool, key, output, inputs, intents in REWORDED:
        agent = rng.choice(AGENTS)
        tries: list[Step] = [
            step(agent, rng.choice(intents), tool, {key: text}, output, "failure")
            for text in (*inputs, *rng.sample(inputs, rng.randint(0, 4)))
        ]
        made.append(trajectory(rng, "reworded_failing_call", "loop", name, leads(rng, agent) + tries))
    for name, intent, fixed, output, volatile in VOLATILE:
        agent = rng.choice(AGENTS)
        calls: list[Step] = []
        for turn_no in range(rng.randint(7, 12)):
            value: object = request_id(rng)
            if volatile == "timestamp":
                value = f"2026-02-03T10:{10 + turn_no}:{rng.randint(10, 59)}Z"
            given_now = shuffled(rng, {**fixed, volatile: value})
            calls.append(step(agent, intent, f"{name}_call", given_now, output, "failure"))
        made.append(trajectory(rng, "volatile_arguments", "loop", name, leads(rng, agent) + calls))
    for name, wish, tool, body, outputs, pace in STORMS:
        agent = rng.choice(AGENTS)
        storm = [
            step(agent, wish, tool, body, rng.choice(outputs), "failure") for _ in range(rng.randint(10, 40))
        ]
        made.append(trajectory(rng, "retry_storm", "loop", name, leads(rng, agent, 2) + storm, pace))
    for name, texts in THOUGHTS:
        agent = rng.choice(AGENTS)
        talk = [step(agent, text, reasoning=[rng.choice(texts)]) for text in texts]
        talk += [step(agent, rng.choice(texts)) for _ in range(rng.randint(2, 5))]
        made.append(trajectory(rng, "monologue", "loop", name, leads(rng, agent) + talk))
    return made
