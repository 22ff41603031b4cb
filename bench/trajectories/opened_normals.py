"""Normal work that looks like a loop: many files, pages, polls that move, batches, honest retries.

First untouched part; opened after it was scored at 0.849, from then on used for tuning.
"""

from __future__ import annotations

import random

from bench.trajectories.opened_parts import AGENTS, Step, Trajectory, leads, step, trajectory

FILES: tuple[tuple[str, str, str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "ru-letters",
        "Прочитать письма и найти жалобы",
        "read_mail",
        "mail/%s.eml",
        ("ivanov", "petrova", "sidorov", "kuznetsov", "orlova", "smirnov", "volkova", "egorov"),
        ("жалоб нет", "жалоба: доставка", "жалоб нет", "жалоба: цвет"),
    ),
    (
        "notebooks",
        "Look for hard-coded paths in the notebooks",
        "read_file",
        "nb/%s.ipynb",
        ("eda", "clean", "train", "eval", "plots", "export", "report", "scratch", "demo"),
        ("none", "2 paths", "1 path"),
    ),
    (
        "x-rays",
        "Grade the x-rays",
        "view_image",
        "scan_%s.png",
        ("001", "002", "003", "004", "005", "006", "007", "008", "009", "010", "011", "012"),
        ("grade 0", "grade 1"),
    ),
    (
        "cv",
        "Read the applications for the post",
        "pdf_text",
        "cv/%s.pdf",
        ("abebe", "brandt", "costa", "dvorak", "eriksen", "fofana", "grimaldi"),
        ("5 years Java", "new graduate, Rust", "lead"),
    ),
)

POLLS: tuple[tuple[str, str, str, object, str, int, str], ...] = (
    (
        "backup",
        "Wait for the backup",
        "backup_status",
        {"id": "b-4"},
        "copied %d GB of 900 GB",
        900,
        "finished",
    ),
    (
        "votes",
        "Abstimmung verfolgen",
        "poll_votes",
        {"id": 31},
        "%d von 240 Stimmen abgegeben",
        240,
        "geschlossen",
    ),
    ("print3d", "Watch the print", "printer", "M27", "SD printing byte %d/7200", 7200, "Done printing file"),
    (
        "index",
        "Wait until the index is built",
        "run_sql",
        "select blocks_done from pg_stat_progress_create_index",
        " blocks_done\n-------------\n %d\n(1 row)",
        88000,
        "(0 rows)",
    ),
)

PAGES: tuple[tuple[str, str, str, str, int], ...] = (
    ("offset", "Collect all reviews", "get_reviews", "offset", 50),
    ("page", "Alle Urteile auflisten", "list_urteile", "seite", 1),
    ("log-window", "Read the log from the top", "read_lines", "from_line", 400),
    ("scroll", "Scroll through the feed", "scroll", "y", 1080),
)

BATCHES: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    (
        "tags",
        "Tag the pictures",
        "set_tag",
        "picture",
        ("harbour", "bridge", "market", "tower", "park", "station", "beach", "museum"),
    ),
    (
        "invites",
        "Invite everybody to the summer party",
        "send_invite",
        "to",
        (
            "anna@x.example",
            "bo@x.example",
            "cem@x.example",
            "dia@x.example",
            "eli@x.example",
            "fay@x.example",
            "gus@x.example",
        ),
    ),
    (
        "headers",
        "Add the copyright line",
        "insert_line",
        "file",
        ("core.py", "cli.py", "io.py", "net.py", "ui.py", "db.py", "log.py", "util.py", "main.py", "jobs.py"),
    ),
    (
        "dns",
        "Lower the TTL of the records",
        "dns_ttl",
        "record",
        ("www", "api", "mail", "cdn", "vpn", "git", "ci", "docs", "status"),
    ),
)

RETRIES: tuple[tuple[str, str, str, tuple[str, ...], str, str], ...] = (
    (
        "chunks",
        "Upload the parts",
        "put_part",
        ("part-1", "part-2", "part-3", "part-4", "part-5", "part-6"),
        "connection reset",
        "etag ok",
    ),
    (
        "calls",
        "Die Filialen anrufen",
        "call",
        ("Aachen", "Bonn", "Celle", "Dresden", "Essen", "Fulda"),
        "besetzt",
        "erreicht, Bestand gemeldet",
    ),
    (
        "mirrors",
        "Download the data files",
        "fetch",
        ("a.parquet", "b.parquet", "c.parquet", "d.parquet", "e.parquet"),
        "read timed out",
        "complete",
    ),
    (
        "fallback",
        "Get the exchange rate",
        "rate",
        ("EUR/USD", "EUR/CHF", "EUR/JPY", "EUR/SEK", "EUR/PLN"),
        "upstream busy",
        "rate fixed",
    ),
)

WAITS: tuple[tuple[str, str, str, object, str, float], ...] = (
    ("lock", "Wait for the deployment lock", "lock_status", {"lock": "prod"}, "held by team-payments", 30.0),
    ("door", "Auf die Lieferung warten", "doorbell", "{}", "niemand da", 120.0),
    ("slurm", "Wait for the cluster", "squeue", "-j 99121", "99121 PENDING (Resources)", 60.0),
    ("reply", "Wait for the supplier's reply", "check_inbox", {"from": "supplier"}, "no new mail", 600.0),
)


def normals(rng: random.Random) -> list[Trajectory]:
    made: list[Trajectory] = []

    def add(
        family: str, name: str, steps: list[Step], pace: float = 4.0, polling: tuple[str, ...] = ()
    ) -> None:
        made.append(trajectory(rng, family, "normal", name, steps, pace, polling))

    for name, intent, tool, pattern, items, outputs in FILES:
        agent = rng.choice(AGENTS)
        reads = [step(agent, intent, tool, {"path": pattern % item}, rng.choice(outputs)) for item in items]
        add("many_files_one_intent", name, leads(rng, agent) + reads)
    for name, intent, tool, body, text, total, end in POLLS:
        agent = rng.choice(AGENTS)
        turns = rng.randint(8, 20)
        polls = [
            step(
                agent,
                intent,
                tool,
                body,
                text % (total * k // turns + rng.randint(0, total // turns // 2)),
                "pending",
            )
            for k in range(turns)
        ]
        add(
            "polling_progress", name, [*leads(rng, agent), *polls, step(agent, intent, tool, body, end)], 30.0
        )
    for name, intent, tool, key, width in PAGES:
        agent = rng.choice(AGENTS)
        turns = rng.randint(7, 16)
        pages: list[Step] = []
        for k in range(turns):
            first = f"{rng.choice(('Aster', 'Birke', 'Clover'))} {rng.randint(100, 999)}"
            seen = f"items {k * 20 + 1} to {k * 20 + 20}: {first} …"
            pages.append(step(agent, intent, tool, {"limit": 20, key: k * width}, seen))
        add("pagination", name, leads(rng, agent) + pages)
    for name, intent, tool, key, items in BATCHES:
        agent = rng.choice(AGENTS)
        add(
            "batch_edits",
            name,
            leads(rng, agent) + [step(agent, intent, tool, {key: item}, "ok") for item in items],
            1.0,
        )
    for name, intent, tool, items, bad, good in RETRIES:
        agent = rng.choice(AGENTS)
        tries: list[Step] = []
        for item in items:
            tries += [step(agent, intent, tool, {"item": item}, bad, "failure")] * rng.choice((0, 1, 2, 2))
            tries.append(step(agent, intent, tool, {"item": item}, f"{item}: {good}"))
        add("legitimate_retries", name, leads(rng, agent) + tries, 10.0)
    for name, intent, tool, body, output, pace in WAITS:
        agent = rng.choice(AGENTS)
        idle = [step(agent, intent, tool, body, output, "pending")] * rng.randint(8, 30)
        add("allowlisted_waiting", name, leads(rng, agent) + idle, pace, (tool,))
    return made
