"""Normal work of less common kinds: bisecting, sweeps, crawls, greetings, tests first, games, reviews.

First untouched part; opened after it was scored at 0.849, from then on used for tuning.
"""

from __future__ import annotations

import random

from bench.trajectories.opened_parts import AGENTS, Step, Trajectory, leads, step, trajectory

BISECTS = (
    ("price", "Find the highest price that is still bought", "price_test", 1024),
    ("threads", "Find the thread count at which it breaks", "load_test", 512),
    ("row", "Die fehlerhafte Zeile eingrenzen", "import_prefix", 40960),
)
SWEEPS: tuple[tuple[str, str, str, str, tuple[object, ...]], ...] = (
    ("dropout", "Sweep dropout", "train", "dropout", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)),
    (
        "prompt-temp",
        "Try the temperatures",
        "eval_prompt",
        "temperature",
        (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2),
    ),
    (
        "index",
        "Compare the index types",
        "bench_query",
        "index",
        ("btree", "hash", "gin", "gist", "brin", "none"),
    ),
)
SITES = (
    ("weather", "https://wx.example/station/%d"),
    ("laws", "https://gesetze.example/par/%d"),
    ("birds", "https://birds.example/species/%d"),
)
GREETINGS: tuple[tuple[str, str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "de",
        "Guten Tag! Was kann ich für Sie tun?",
        (
            ("Rechnung doppelt", "storno", "storniert"),
            ("Router blinkt rot", "router_reset", "neu gestartet"),
            ("Umzug melden", "adresse", "geändert"),
            ("Vertrag kündigen", "kuendigung", "bestätigt"),
            ("Tarif wechseln", "tarif", "ab 1. April"),
            ("PIN vergessen", "pin", "neu verschickt"),
        ),
    ),
    (
        "en",
        "Welcome to Blue Bank. How may I help you today?",
        (
            ("card lost", "block_card", "blocked"),
            ("balance?", "balance", "1,204.11"),
            ("IBAN?", "iban", "sent by letter"),
            ("new address", "address", "updated"),
            ("fee refund", "refund", "3.50 returned"),
            ("limit up", "limit", "2,000"),
        ),
    ),
    (
        "pt",
        "Olá! Em que posso ajudar?",
        (
            ("voo atrasado", "voo", "parte às 18:40"),
            ("mala perdida", "mala", "está em Faro"),
            ("fatura", "fatura", "enviada"),
            ("mudar lugar", "lugar", "14C"),
            ("milhas", "milhas", "31.220"),
        ),
    ),
)
TDD = (
    ("money", "pytest -q", ("add", "subtract", "round", "format", "convert")),
    ("router", "npx vitest run", ("static", "param", "wildcard", "nested", "redirect")),
    ("parser", "mvn -q test", ("number", "string", "list", "map", "comment", "escape")),
)
GAMES: tuple[tuple[str, str, str, tuple[str, ...], str], ...] = (
    ("blackjack", "Play by the table", "act", ("hit", "stand"), "hand %d: dealer %d, stack %d"),
    (
        "snake",
        "Steer towards the apple",
        "turn",
        ("left", "left", "right"),
        "tick %d, length %d, apple at %d",
    ),
    ("farm", "Bring in the harvest", "do", ("sow", "water", "reap"), "day %d: %d crops, %d coins"),
)
CACHES = (
    ("redis", "Warm up the session cache", "cache_get", "user:%d"),
    ("tiles", "Pre-render the tiles", "tile", "14/8%d/55"),
    ("models", "Load the models once", "predict", "model-%d"),
    ("dns", "Prime the resolver", "dig", "host%d.corp.example"),
)
REVIEWS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "pr",
        "dev",
        "maintainer",
        ("tests missing", "name the constant", "handle None", "typo in the docs", "merge it"),
    ),
    (
        "essay",
        "writer",
        "tutor",
        ("thesis unclear", "cite a source", "second paragraph is too long", "weak ending", "good"),
    ),
    (
        "plan",
        "Planer",
        "Prüfer",
        ("Budget fehlt", "Termin am Feiertag", "Raum zu klein", "Catering offen", "freigegeben"),
    ),
)
CHAINS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "sudoku",
        (
            "Row 1 lacks 4 and 9; column 3 has a 9, so r1c3 is 4",
            "Then r1c7 is 9",
            "Box 3 now lacks 2, it goes to r2c8",
            "Column 8 is left with 6 at r5c8",
            "With that, row 5 needs 1 at r5c1",
            "r9c1 must be 7",
            "Solved",
        ),
    ),
    (
        "budget",
        (
            "Rent takes 900 of 2400",
            "Food takes 450, that leaves 1050",
            "Transport 120, leaves 930",
            "Insurance 210, leaves 720",
            "Savings goal 400, leaves 320",
            "So 320 a month is free",
        ),
    ),
    (
        "famille",
        (
            "Paul est le frère de Marie",
            "Marie a deux enfants, Luc et Zoé",
            "Donc Paul est l'oncle de Zoé",
            "Zoé a épousé Karim",
            "Leur fille est Inès",
            "Paul est donc le grand-oncle d'Inès",
        ),
    ),
)
METERS = (
    ("heart", "Log the pulse each minute", "pulse", "%d bpm"),
    ("rain", "Regenmenge aufzeichnen", "pegel", "%d mm"),
    ("sentiment", "Track the mentions per hour", "mentions", "%d mentions since the last look"),
)
FANS = (
    ("contributors", "Read the contribution rules", "CONTRIBUTING.md"),
    ("clinic", "Hygieneplan lesen", "hygiene.pdf"),
    ("shop-audit", "Read the checklist", "checklist.xlsx"),
)
MARCHES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "latex",
        "bash",
        "latexmk -pdf thesis.tex",
        (
            "Undefined control sequence \\foobar l.12",
            "File fig3.pdf not found l.88",
            "Missing $ inserted l.140",
            "Citation kuhn62 undefined",
            "Overfull table l.310: Extra alignment tab",
        ),
    ),
    (
        "helm",
        "shell",
        "helm upgrade --install web ./web",
        (
            "parse error in values.yaml line 9",
            "secret web-tls not found",
            "Deployment invalid: selector is immutable",
            "port 80 already allocated",
            "ImagePullBackOff: tag 1.9 missing",
        ),
    ),
    (
        "csv",
        "load_csv",
        '{"file":"orders.csv"}',
        (
            "row 14: bad date 31.02.2025",
            "row 90: price 'n/a'",
            "row 211: 9 columns",
            "row 340: unknown country 'XX'",
            "row 902: duplicate key 7713",
        ),
    ),
)


def _bisect(rng: random.Random, agent: str, intent: str, tool: str, high: int) -> list[Step]:
    low, limit = 0, rng.randrange(high // 8, high)
    steps: list[Step] = []
    while high - low > 4 and len(steps) < 12:
        middle = (low + high) // 2
        good = middle <= limit
        low, high = (middle, high) if good else (low, middle)
        steps.append(
            step(
                agent,
                intent,
                tool,
                {"n": middle},
                "ok" if good else "fails",
                "success" if good else "failure",
            )
        )
    return steps


def _crawl(rng: random.Random, agent: str, url: str) -> list[Step]:
    steps: list[Step] = []
    for number in range(1, rng.randint(7, 12)):
        target = {"url": url % number}
        for _ in range(rng.choice((0, 1, 1, 2))):
            steps.append(
                step(agent, "Crawl politely", "http_get", target, "429 Too Many Requests", "failure")
            )
            if rng.random() < 0.5:
                steps.append(step(agent, "Back off", "sleep", str(rng.choice((5, 10, 20))), None))
        steps.append(
            step(
                agent,
                "Crawl politely",
                "http_get",
                target,
                f"200, {rng.randint(900, 9000)} bytes on no. {number}",
            )
        )
    return steps


def _tests_first(agent: str, command: str, names: tuple[str, ...]) -> list[Step]:
    steps: list[Step] = []
    for done, name in enumerate(names):
        steps.append(
            step(agent, f"Write a failing test for {name}", "write_test", {"test": f"test_{name}"}, "ok")
        )
        steps.append(
            step(agent, "Run the tests", "bash", command, f"{done} passed, 1 failed: test_{name}", "failure")
        )
        steps.append(step(agent, f"Make {name} work", "edit", {"function": name}, "ok"))
        steps.append(step(agent, "Run the tests", "bash", command, f"{done + 1} passed"))
    return steps


def more_normals(rng: random.Random) -> list[Trajectory]:
    made: list[Trajectory] = []

    def add(family: str, name: str, steps: list[Step], pace: float = 5.0) -> None:
        made.append(trajectory(rng, family, "normal", name, steps, pace))

    for name, intent, tool, high in BISECTS:
        agent = rng.choice(AGENTS)
        add("bisect", name, leads(rng, agent) + _bisect(rng, agent, intent, tool, high))
    for name, intent, tool, key, values in SWEEPS:
        agent = rng.choice(AGENTS)
        runs = [
            step(agent, intent, tool, {"config": "base.yaml", key: v}, f"score {rng.uniform(0.4, 0.9):.3f}")
            for v in values
        ]
        add("hyperparameter_sweep", name, leads(rng, agent) + runs, 300.0)
    for name, url in SITES:
        agent = rng.choice(AGENTS)
        add("polite_crawl_backoff", name, leads(rng, agent) + _crawl(rng, agent, url), 12.0)
    for name, hello, cases in GREETINGS:
        agent = rng.choice(AGENTS)
        talks: list[Step] = []
        for number, (wish, tool, result) in enumerate(cases, 501):
            talks.append(
                step(agent, "Greet", "chat_reply", {"chat": number, "text": hello}, f"customer: {wish}")
            )
            talks.append(step(agent, wish, tool, {"chat": number}, result))
        add("support_greetings", name, talks, 60.0)
    for name, command, names in TDD:
        agent = rng.choice(AGENTS)
        add("tdd_cycle", name, leads(rng, agent) + _tests_first(agent, command, names), 20.0)
    for name, intent, tool, moves, text in GAMES:
        agent = rng.choice(AGENTS)
        plays = [
            step(
                agent,
                intent,
                tool,
                moves[k % len(moves)],
                text % (k + 1, 3 + k, 40 + 7 * k + rng.randint(0, 6)),
            )
            for k in range(rng.randint(10, 24))
        ]
        add("game_moves", name, plays, 1.0)
    for name, intent, tool, pattern in CACHES:
        agent = rng.choice(AGENTS)
        keys = rng.sample(range(100, 999), rng.randint(8, 20))
        add(
            "cache_warming",
            name,
            leads(rng, agent)
            + [step(agent, intent, tool, {"key": pattern % key}, "miss, now cached") for key in keys],
            0.5,
        )
    for name, author, critic, remarks in REVIEWS:
        rounds: list[Step] = []
        for number, remark in enumerate(remarks, 1):
            rounds.append(
                step(author, f"Hand in version {number}", "submit", {"version": number}, "received")
            )
            rounds.append(step(critic, "Look through the new version", "review", {"version": number}, remark))
        add("converging_review", name, rounds, 60.0)
    for name, thoughts in CHAINS:
        agent = rng.choice(AGENTS)
        add("progressing_thought", name, leads(rng, agent) + [step(agent, thought) for thought in thoughts])
    for name, intent, tool, text in METERS:
        agent = rng.choice(AGENTS)
        levels = rng.sample(range(50, 140), rng.randint(8, 14))
        add(
            "recurring_measurement",
            name,
            [step(agent, intent, tool, "{}", text % level) for level in levels],
            60.0,
        )
    for name, intent, path in FANS:
        crew = [f"{name}_{number}" for number in range(1, rng.randint(7, 10))]
        fan = [step("chief", "Set the crew to work", "spawn", {"n": len(crew)}, "ok", children=crew)]
        fan += [step(one, intent, "read_file", {"path": path}, "read, 3 pages") for one in crew]
        fan += [
            step(one, f"Do area {k}", "work", {"area": k}, f"area {k}: {rng.randint(1, 40)} findings")
            for k, one in enumerate(crew, 1)
        ]
        add("fan_out_same_start", name, fan, 2.0)
    for name, tool, command, errors in MARCHES:
        agent = rng.choice(AGENTS)
        march: list[Step] = []
        for number, error in enumerate(errors, 1):
            march.append(step(agent, "Get it through", tool, command, error, "failure"))
            march.append(step(agent, f"Mend: {error}", "edit", {"fix": number, "about": error}, "ok"))
        add(
            "error_marches_on",
            name,
            [*leads(rng, agent), *march, step(agent, "Get it through", tool, command, "all done")],
        )
    return made
