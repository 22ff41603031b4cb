"""Subjects of the less common loops.

First untouched part; opened after it was scored at 0.849, from then on used for tuning.
"""

from __future__ import annotations

ESCALATING: tuple[tuple[str, str, str, dict[str, object], str, tuple[object, ...], str], ...] = (
    (
        "memory",
        "Run the job with more memory",
        "submit",
        {"job": "merge", "queue": "batch"},
        "mem_gb",
        (8, 16, 32, 64, 128, 256, 512),
        "rejected: queue 'batch' is closed",
    ),
    (
        "bid",
        "Höher bieten",
        "place_bid",
        {"lot": 4471},
        "eur",
        (50, 60, 80, 100, 150, 220, 300, 450),
        "Auktion ist beendet, Gebot nicht angenommen",
    ),
    (
        "depth",
        "Crawl deeper",
        "crawl",
        {"url": "https://intra.example"},
        "depth",
        (1, 2, 3, 4, 5, 6, 8, 12),
        "0 pages: robots.txt disallows /",
    ),
    (
        "priority",
        "Raise the priority of the request",
        "file_request",
        {"to": "facilities", "what": "new key card"},
        "priority",
        ("low", "normal", "high", "urgent", "critical", "blocker", "emergency"),
        "auto-reply: duplicate of request 118, discarded",
    ),
)

CAROUSELS: tuple[tuple[str, tuple[str, str], tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "legal-sales",
        ("legal", "sales"),
        (
            "Sales must fill in the price first",
            "Returning: the price has to be entered by sales",
            "Price missing, to sales",
        ),
        (
            "Legal has to clear it before a price is set",
            "Back to legal for clearance",
            "No price before legal clears it",
        ),
    ),
    (
        "frontend-backend",
        ("frontend", "backend"),
        (
            "The bug is in the API, over to backend",
            "500 comes from the API: backend please",
            "Backend should look at the 500",
        ),
        (
            "The client sends a wrong body, over to frontend",
            "Wrong body: frontend please",
            "Frontend must fix its body",
        ),
    ),
    (
        "doctor-insurer",
        ("praxis_bot", "kassen_bot"),
        (
            "Bitte zuerst die Genehmigung erteilen",
            "Ohne Genehmigung kein Befund, bitte genehmigen",
            "Genehmigung fehlt noch",
        ),
        (
            "Bitte zuerst den Befund schicken",
            "Ohne Befund keine Genehmigung, bitte Befund",
            "Der Befund fehlt noch",
        ),
    ),
    (
        "courtesy",
        ("greeter_a", "greeter_b"),
        (
            "Thank you! Anything else I can do?",
            "Thanks so much! Can I do anything else?",
            "Thank you, anything else?",
        ),
        (
            "No, thank you! Anything I can do for you?",
            "No thanks! Can I do something for you?",
            "No, thanks, and for you?",
        ),
    ),
)

OSCILLATIONS: tuple[
    tuple[str, str, tuple[str, object, str], tuple[str, object, str], tuple[str, ...]], ...
] = (
    (
        "flag",
        "toggle_flag",
        ("Turn the flag on", {"flag": "new_nav", "on": True}, "on; error rate 4%"),
        ("Turn the flag off", {"flag": "new_nav", "on": False}, "off; error rate 0%; users ask for new_nav"),
        (),
    ),
    (
        "seat",
        "seat_plan",
        ("Put Ada next to Bob", {"Ada": 4, "Bob": 5, "Cy": 9}, "Cy complains"),
        ("Put Ada next to Cy", {"Ada": 8, "Bob": 5, "Cy": 9}, "Bob complains"),
        (),
    ),
    (
        "spalte",
        "edit_sheet",
        ("Spalte „Netto“ einfügen", {"op": "insert", "col": "Netto"}, "ok"),
        ("Spalte „Netto“ wieder entfernen", {"op": "delete", "col": "Netto"}, "ok"),
        (),
    ),
    (
        "scale",
        "shell",
        ("Scale up", "kubectl scale deploy/q --replicas=9", "scaled; cost alert"),
        ("Scale down", "kubectl scale deploy/q --replicas=3", "scaled; latency alert"),
        (),
    ),
)

BLIND: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    (
        "binary",
        "read_chunk",
        "firmware.bin",
        "not a text file, nothing shown",
        ("0-512", "512-1024", "0-2048", "4096-8192", "256-768", "0-512", "1024-2048", "0-4096"),
    ),
    (
        "denied",
        "sed_lines",
        "/etc/shadow",
        "permission denied",
        ("1,10p", "1,20p", "5,15p", "10,30p", "1,5p", "20,40p", "1,100p"),
    ),
    (
        "placeholder",
        "read_rows",
        "q3_final.csv",
        "version https://git-lfs.github.com/spec/v1 (pointer only, no rows)",
        ("1:50", "50:100", "100:200", "1:20", "200:400", "1:1000", "20:60", "1:50"),
    ),
)

TRANSLATIONS: tuple[tuple[str, str, str, str, str], ...] = (
    ("claim", "de", "Einfach besser schlafen", "en", "Simply sleep better"),
    ("sign", "es", "Prohibido el paso", "pt", "Proibida a passagem"),
    ("label", "pl", "Przechowywać w lodówce", "cs", "Uchovávejte v lednici"),
    ("json-yaml", "json", '{"retries": 3, "hosts": ["a", "b"]}', "yaml", "retries: 3\nhosts:\n- a\n- b\n"),
)

EMPTY: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "person",
        "people_search",
        (
            "Jón Ásgeirsson geologist",
            "geologist Jón Ásgeirsson",
            "Jon Asgeirsson geologist",
            "Ásgeirsson Jón, geology",
            "Jón Ásgeirsson (geologist)",
            "geologist Ásgeirsson",
        ),
    ),
    (
        "law",
        "rechtsprechung",
        (
            "Urteil Balkonkraftwerk Denkmalschutz Fulda",
            "Balkonkraftwerk Denkmalschutz Urteil Fulda",
            "Fulda Urteil Denkmal Balkonkraftwerk",
            "Denkmalschutz: Balkonkraftwerk (Fulda)",
            "Balkonkraftwerk und Denkmalschutz in Fulda",
            "Urteil aus Fulda zu Balkonkraftwerk",
        ),
    ),
    (
        "flight",
        "flight_search",
        (
            "direct KRK-FAE 4 March",
            "KRK to FAE non-stop 4 March",
            "Kraków-Faroe direct 04.03.",
            "non-stop flight KRK FAE on 4 March",
            "direct flight Krakow to Vagar, 4 March",
            "KRK FAE direct 2026-03-04",
        ),
    ),
)

QUESTIONS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "date",
        (
            "On which date shall I book?",
            "Which date should I book?",
            "What date would you like?",
            "Date, please?",
        ),
        ("user: soon", "user: well, soon", "user: soon, please"),
    ),
    (
        "datei",
        (
            "Welche Datei meinen Sie?",
            "Um welche Datei geht es?",
            "Bitte nennen Sie die Datei.",
            "Welche Datei?",
        ),
        ("Nutzer: die von gestern", "Nutzer: na die von gestern", "Nutzer: von gestern eben"),
    ),
    (
        "consent",
        (
            "May I go on? Please say yes or no.",
            "Shall I go on, yes or no?",
            "Please answer yes or no: go on?",
        ),
        ("user: hm", "user: hmm", "user: …"),
    ),
)

BUSYWORK: tuple[tuple[str, str, tuple[str, ...], tuple[object, ...], str], ...] = (
    (
        "readme",
        "write_file",
        ("Polish the README", "Improve the README", "Revise the README"),
        (
            {"path": "README.md", "text": "# Tool\nA tool."},
            {"path": "README.md", "text": "# Tool\n\nA tool."},
        ),
        "written, 2 lines",
    ),
    (
        "status-mail",
        "post_status",
        ("Tell the team that I have begun", "Report the start", "Post a status update"),
        (
            "I am about to begin with the import.",
            "About to begin with the import.",
            "I'm beginning with the import.",
        ),
        "posted",
    ),
    (
        "setup-check",
        "bash",
        ("Make sure the tools are there", "Verify the set-up", "Check the set-up again"),
        ("which git python node", "which python git node", "which node git python"),
        "/usr/bin/git\n/usr/bin/python\n/usr/bin/node",
    ),
)

CROWDS: tuple[tuple[str, tuple[str, str, object, str, str]], ...] = (
    ("catalogue", ("Unlock the archive", "unlock", {"archive": "a9", "pin": "0000"}, "wrong pin", "failure")),
    (
        "translation-team",
        ("Glossar laden", "load_glossary", {"id": "gl-3"}, "Glossar gl-3 gibt es nicht", "failure"),
    ),
    (
        "incident",
        ("Look at the dashboard", "open_dashboard", {"name": "edge"}, "no data for this panel", "success"),
    ),
    ("kitchen", ("Preheat oven 2", "oven", {"no": 2, "celsius": 180}, "door is open", "failure")),
)

TOPICS = (
    "amber",
    "basalt",
    "cedar",
    "dune",
    "elm",
    "fjord",
    "glacier",
    "heath",
    "iris",
    "juniper",
    "kelp",
    "lichen",
    "marl",
    "nettle",
    "oak",
    "peat",
    "quartz",
    "reed",
    "slate",
    "thyme",
    "umber",
    "vetch",
    "willow",
    "yew",
)

RECOVERIES: tuple[tuple[str, tuple[str, str, object, str], tuple[str, str, object, str]], ...] = (
    (
        "port",
        ("Start the server", "bash", "npm start", "Error: listen EADDRINUSE: address already in use :::3000"),
        ("Take another port", "bash", "PORT=3100 npm start", "listening on 3100"),
    ),
    (
        "login",
        ("Sign in", "login", {"user": "ana"}, "account locked"),
        ("Ask a person to unlock the account", "ask_human", {"q": "unlock ana?"}, "done, unlocked"),
    ),
    (
        "crs",
        ("Load the map layer", "load_layer", {"file": "roads.shp"}, "missing roads.prj"),
        (
            "Set the projection by hand",
            "load_layer",
            {"file": "roads.shp", "crs": "EPSG:25832"},
            "18,230 features",
        ),
    ),
)
