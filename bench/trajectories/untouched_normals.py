"""The generated normals of the untouched set: steps that look alike and yet get somewhere."""

from __future__ import annotations

from random import Random
from typing import Any

from bench.trajectories.untouched_parts import Step, Trajectory, beside, hexes, step, trajectory

ITEMS: dict[str, tuple[tuple[str, str, str, str, str, list[tuple[Any, str]]], ...]] = {
    "many_files_one_intent": (
        ("docs-outdated", "docbot", "Find pages that mention the old API", "read_file", "success", [
            ({"path": f"docs/{name}.md"}, found) for name, found in (
                ("install", "no mention"), ("auth", "2 mentions, lines 14 and 80"), ("billing", "no mention"),
                ("webhooks", "1 mention, line 9"), ("faq", "no mention"), ("limits", "no mention"),
                ("errors", "4 mentions"), ("sdk", "no mention"))]),
        ("fotos-etiquetar", "fototeca", "Etiquetar las fotos del viaje", "describir", "success", [
            (f"fotos/IMG_{number}.jpg", seen) for number, seen in (
                (2041, "playa, dos personas"), (2042, "playa, un perro"), (2045, "catedral"), (2047,
                 "mercado"),
                (2050, "mercado, fruta"), (2051, "puesta de sol"), (2058, "tren"))]),
    ),
    "batch_edits": (
        ("alt-texts", "a11y", "Add alt texts to the images", "set_attr", "success", [
            ({"node": f"img[{number}]", "alt": alt}, "1 node changed") for number, alt in enumerate(
                ("Company logo", "Team at the lake", "Map of the plant", "Portrait of the founder",
                 "Chart of exports", "Award ceremony", "Front of the office", "Solar roof"))]),
        ("crm-owner", "salesops", "Move Kim's accounts to Joel", "crm_update", "success", [
            ({"account": account, "owner": "joel"}, "updated") for account in (
                "Acme", "Borealis", "Cintra", "Dunlop", "Elgin", "Farrow", "Gantry", "Hartl", "Ilves")]),
        ("subtitle-shift", "subber", "Shift the subtitles by 1.2 s", "shift", "success", [
            ({"file": f"ep{number:02d}.srt", "by": 1.2}, "ok") for number in range(1, 13)]),
    ),
    "parameter_sweep": (
        ("oven-recipe", "kitchenlab", "Find the best baking temperature", "bake_trial", "success", [
            ({"c": 180, "min": 30}, "pale, moist"), ({"c": 190, "min": 30}, "light gold"),
            ({"c": 200, "min": 30}, "gold, even"), ({"c": 210, "min": 30}, "dark rim"),
            ({"c": 220, "min": 30}, "burnt rim"), ({"c": 200, "min": 26}, "gold, moist: best so far")]),
        ("threshold-fraud", "riskbot", "Choose the alert threshold", "backtest", "success", [
            ({"threshold": 0.5}, "recall 0.94 precision 0.21"), ({"threshold": 0.6},
             "recall 0.91 precision 0.34"),
            ({"threshold": 0.7}, "recall 0.86 precision 0.52"), ({"threshold": 0.8},
             "recall 0.77 precision 0.70"),
            ({"threshold": 0.9}, "recall 0.51 precision 0.88"),
            ({"threshold": 0.75}, "recall 0.83 precision 0.63")]),
        ("mortgage-terms", "advisor", "Compare the mortgage terms", "quote", "success", [
            ({"years": years, "sum": 300000}, f"{rate} %, {pay} a month") for years, rate, pay in (
                (5, 3.1, 5403), (10, 3.2, 2924), (15, 3.3, 2115), (20, 3.5, 1740), (25, 3.6, 1518),
                (30, 3.8, 1398))]),
    ),
    "other_target_same_answer": (
        ("cert-expiry", "tlsbot", "Check that the certificates are valid", "tls_check", "success", [
            ({"host": f"{host}.ex.test"}, "valid") for host in (
                "www", "api", "mail", "cdn", "vpn", "git", "wiki", "shop", "status")]),
        ("sanctions-list", "kyc", "Screen the new customers", "screen", "success", [
            ({"name": name}, "no match") for name in (
                "Ana Prieto", "Bo Lindqvist", "Chidi Okafor", "Dana Weiss", "Emre Kaya", "Fumiko Abe",
                "Goran Ilić", "Hye-jin Park")]),
        ("domain-taken", "namer", "Find a free domain for the start-up", "whois", "failure", [
            (name, "taken") for name in (
                "brightfox.com", "foxlight.com", "lumenfox.com", "vulpine.io", "redtail.app", "foxfire.dev",
                "emberfox.com")]),
    ),
    "interview": (
        ("loan-intake", "lender", "Complete the loan application", "ask_user", "success", [
            ("What is your monthly income?", "3,900"), ("What is your monthly rent?", "1,150"),
            ("What is your current debt?", "none"), ("What is the sum you need?", "12,000"),
            ("What is the purpose?", "a used car"), ("What is your employer's name?", "Nordhaus KG"),
            ("What is your bank's name?", "Volksbank")]),
        ("incident-debrief", "scribe", "Interview the on-call engineer", "chat", "success", [
            ("When did the alert fire?", "02:14"), ("Who acknowledged it?", "Marek, at 02:19"),
            ("What did you see first?", "Disk full on db-3"), ("What did you do?", "Rotated the WAL archive"),
            ("What helped?", "The runbook, page 3"), ("What was missing?", "A disk forecast alert")]),
        ("party-planner", "festa", "Organizar a festa", "perguntar", "success", [
            ({"p": "Quantos convidados?"}, "30"), ({"p": "Qual é a data?"}, "12 de julho"),
            ({"p": "Qual é o local?"}, "o jardim"), ({"p": "Qual é o orçamento?"}, "800 euros"),
            ({"p": "Quantas crianças?"}, "6"), ({"p": "Quantos vegetarianos?"}, "4")]),
    ),
    "narrowing_search": (
        ("guess-number", "guesser", "Guess the number", "guess", "success", [
            ("500", "too low"), ("750", "too high"), ("625", "too low"), ("687", "too low"), ("718",
             "too high"),
            ("702", "too high"), ("694", "too low"), ("698", "correct")]),
        ("max-load", "loadtester", "Find the highest rate without errors", "wrk", "success", [
            ({"rps": 1000}, "0 errors"), ({"rps": 4000}, "212 errors"), ({"rps": 2500}, "0 errors"),
            ({"rps": 3250}, "9 errors"), ({"rps": 2875}, "0 errors"), ({"rps": 3060}, "0 errors"),
            ({"rps": 3150}, "2 errors")]),
        ("plugin-conflict", "wpfixer", "Find the plugin that breaks the page", "toggle", "success", [
            ({"on": "1-16"}, "page broken"), ({"on": "1-8"}, "page fine"), ({"on": "9-12"}, "page broken"),
            ({"on": "9-10"}, "page fine"), ({"on": "11"}, "page fine"), ({"on": "12"},
             "page broken: it is 12")]),
    ),
    "turn_based_play": (
        ("wordle-rows", "wordler", "Guess the word", "guess", "success", [
            ("CRANE", "-y--g"), ("SLATE", "--y-g"), ("AUDIO", "y--y-"), ("PRIDE", "-gg-g"), ("BRIBE",
             "-gg-g"),
            ("GRIME", "ggg-g"), ("GRIPE", "correct")]),
        ("battleship", "admiral", "Sink the fleet", "fire", "success", [
            ("B4", "miss"), ("E7", "miss"), ("F2", "miss"), ("C9", "hit"), ("C8", "hit"), ("C7",
             "hit, sunk cruiser"),
            ("H5", "miss"), ("I1", "miss")]),
        ("tile-2048", "slider", "Merge the tiles", "press", "success", [
            ("left", "score 4, max 4"), ("left", "score 12, max 8"), ("up", "score 20, max 8"),
            ("left", "score 36, max 16"), ("up", "score 52, max 16"), ("left", "score 84, max 32"),
            ("up", "score 100, max 32"), ("left", "score 164, max 64")]),
    ),
    "queue_worker": (
        ("next-mail", "mailer", "Sort the next mail", "next_mail", "success", [
            ({}, mail) for mail in (
                "From bank: statement", "From Ute: lunch?", "From shop: your order shipped",
                "From HR: payslip",
                "From Ivo: photos", "From club: annual meeting", "From city: parking fine")]),
        ("mes-next-job", "press_4", "Work off the job list", "next_job", "success", [
            ("", f"job {number}: {parts} lids") for number, parts in (
                (9001, 400), (9002, 250), (9005, 400), (9006, 1200), (9010, 80), (9011, 400))]),
        ("tail-log", "watcher", "Follow the deployment log", "tail", "success", [
            ("deploy.log", line) for line in (
                "10:00:01 pulling image", "10:00:09 image pulled", "10:00:10 running migrations 1/3",
                "10:00:14 running migrations 2/3", "10:00:21 running migrations 3/3",
                "10:00:25 warming cache",
                "10:00:40 traffic 10 %", "10:01:40 traffic 100 %")]),
    ),
    "polling_progress": (
        ("video-render", "cutter", "Wait for the render", "render_status", "pending", [
            ({"job": "r-5"}, f"frame {frame} of 2400") for frame in (130, 410, 777, 1090, 1433, 1820, 2311)]),
        ("ballots", "election", "Follow the count", "results", "success", [
            ({"district": 7}, f"{part} % counted, turnout {turnout}") for part, turnout in (
                (8, 58.1), (23, 60.4), (41, 61.0), (67, 61.2), (88, 61.9), (100, 62.0))]),
    ),
}  # fmt: skip


def items(rng: Random) -> list[Trajectory]:
    made = []
    for family, cases in ITEMS.items():
        for name, agent, intent, tool, status, calls in cases:
            said = rng.random() < 0.8
            steps = [step(agent, intent if said else None, tool, given, out, status) for given, out in calls]
            if status == "failure":
                steps.append(step(agent, intent, tool, "foxgloveworks.eu", "free", "success"))
            if status == "pending":
                steps.append(step(agent, "Use the result", "open_result", "latest", "ready, 1.1 GB"))
            if rng.random() < 0.3:
                steps = beside(rng, steps)
            made.append(trajectory(rng, name, family, "normal", steps))
    return made


def pagination(rng: Random) -> list[Trajectory]:
    cases = (
        ("repo-issues", "triager", "List the open issues", "list_issues", "page"),
        ("audit-log", "sentinel", "Read the audit log of May", "audit", "offset"),
        ("museum-catalogue", "curator", "Inventar vollständig lesen", "katalog", "after"),
    )
    made = []
    for name, agent, intent, tool, key in cases:
        steps: list[Step] = []
        mark: Any = 1 if key == "page" else 0 if key == "offset" else ""
        for number in range(rng.randint(7, 14)):
            following: Any = hexes(rng, 6) if key == "after" else (mark + 1 if key == "page" else mark + 100)
            first = rng.randint(100, 999)
            output = (
                f"rows {number * 100 + 1}-{number * 100 + 100}, first id {first}{number}, next {following}"
            )
            steps.append(step(agent, intent, tool, {key: mark, "limit": 100, "sort": "id"}, output))
            mark = following
        made.append(trajectory(rng, name, "pagination", "normal", steps))
    return made


def legit_retries(rng: Random) -> list[Trajectory]:
    cases = (
        (
            "geo-timeout",
            "mapper",
            "Geocode the depot",
            "geocode",
            {"q": "Hafenstr. 9"},
            "timeout",
            "53.54, 9.96",
        ),
        (
            "lock-wait",
            "migrate",
            "Add the column",
            "sql",
            "alter table t add c int",
            "lock timeout",
            "ALTER TABLE",
        ),
        ("gripper-slip", "arm", "Grip the cup", "grip", {"force": 8}, "slipped", "held"),
    )
    made = []
    for name, agent, intent, tool, given, bad, good in cases:
        steps = [step(agent, "Prepare", "check_env", {"for": name}, "fine")]
        steps += [step(agent, intent, tool, given, bad, "failure") for _ in range(rng.randint(2, 3))]
        steps.append(step(agent, intent, tool, given, good))
        steps.append(step(agent, "Go on with the next part", "make_plan", {"after": name}, "2 tasks left"))
        steps.append(step(agent, "Report", "notify", f"{name} is done", "sent"))
        made.append(trajectory(rng, name, "legit_retries", "normal", steps))
    return made


def converging_reruns(rng: Random) -> list[Trajectory]:
    cases = (
        ("unit-tests", "fixer", "pytest -q", ("date", "money", "tax", "cart", "mail", "user"), "failed"),
        (
            "data-quality",
            "dq",
            "dq check customers",
            ("email", "zip", "phone", "country", "vat"),
            "violations",
        ),
        (
            "a11y-audit",
            "webfix",
            "axe https://site.test",
            ("contrast", "labels", "focus", "headings"),
            "issues",
        ),
    )
    made = []
    for name, agent, command, parts, word in cases:
        left = rng.randint(30, 60)
        steps: list[Step] = []
        for part in parts:
            steps.append(
                step(agent, "See what is left", "bash", {"cmd": command}, f"{left} {word}", "failure")
            )
            given = {"part": part, "change": f"repair {part}"}
            steps.append(step(agent, f"Repair {part}", "apply", given, f"{part} changed"))
            left -= rng.randint(3, max(4, left // 3))
            left = max(left, 1)
        steps.append(step(agent, "See what is left", "bash", {"cmd": command}, f"0 {word}"))
        made.append(trajectory(rng, name, "converging_reruns", "normal", steps))
    return made


def allowlisted_waiting(rng: Random) -> list[Trajectory]:
    cases = (
        ("door-sensor", "guard", "Watch the door", "door_state", {"door": "east"}, "closed"),
        ("gpu-queue", "jobber", "Wait for a free GPU", "squeue", "squeue -u me", "PD (Resources)"),
        ("price-alert", "watchdog", "Warten, bis der Preis fällt", "preis", {"artikel": "B-77"}, "249,00 €"),
    )
    made = []
    for name, agent, intent, tool, given, output in cases:
        count = rng.randint(8, 20)
        steps = [step(agent, intent, tool, given, output, "pending") for _ in range(count)]
        made.append(trajectory(rng, name, "allowlisted_waiting", "normal", steps, [tool]))
    return made


def cycle_over_items(rng: Random) -> list[Trajectory]:
    cases: tuple[tuple[str, str, tuple[tuple[str, str, str], ...], tuple[str, ...]], ...] = (
        ("daily-load", "etl", (("Extract the day", "extract", "rows read"), ("Clean it", "clean",
         "rows kept"),
                               ("Load it", "load", "rows loaded")),
         ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05")),
        ("grading", "tutor", (("Read the essay", "open", "words"), ("Grade it", "grade", "points")),
         ("amir", "beth", "carlo", "dilek", "eun", "fatou", "greta")),
        ("patching", "patcher", (("Drain the node", "drain", "pods moved"), ("Patch it", "patch", "packages"),
                                 ("Reboot it", "reboot", "seconds"), ("Put it back", "uncordon",
                                  "pods back")),
         ("node-a", "node-b", "node-c", "node-d", "node-e")),
    )  # fmt: skip
    made = []
    for name, agent, parts, things in cases:
        steps = [
            step(agent, intent, tool, {"item": thing}, f"{rng.randint(20, 900)} {what}")
            for thing in things
            for intent, tool, what in parts
        ]
        made.append(trajectory(rng, name, "cycle_over_items", "normal", steps))
    return made


def review_rounds(rng: Random) -> list[Trajectory]:
    cases = (
        ("pull-request", ("dev", "reviewer"), "pull request 410",
         ("Handle the empty list", "Name the constant", "Add a test for None", "Close the file",
          "Drop the print")),
        ("menu-design", ("designer", "client"), "menu card",
         ("Larger font, please", "Use the new logo", "Prices right-aligned", "Add the allergens")),
        ("übersetzung", ("uebersetzerin", "lektor"), "Kapitel 5",
         ("Der Ton ist zu förmlich", "Seite 3: Wortspiel ging verloren", "Namen einheitlich",
          "Letzter Satz fehlt")),
    )  # fmt: skip
    made = []
    for name, (maker, judge), what, remarks in cases:
        steps: list[Step] = []
        for number, remark in enumerate(remarks, 1):
            given = {"what": what, "version": number}
            steps.append(step(maker, f"Submit {what}", "submit", given, f"version {number} submitted"))
            steps.append(step(judge, f"Review {what}", "comment", {"what": what, "text": remark}, "returned"))
        steps.append(
            step(maker, f"Submit {what}", "submit", {"what": what, "version": len(remarks) + 1}, "ok")
        )
        steps.append(step(judge, f"Approve {what}", "approve", {"what": what}, "approved"))
        made.append(trajectory(rng, name, "review_rounds", "normal", steps))
    return made


def normals(rng: Random) -> list[Trajectory]:
    families = (items, pagination, legit_retries, converging_reruns, allowlisted_waiting, cycle_over_items,
                review_rounds)  # fmt: skip
    return [one for family in families for one in family(rng)]
