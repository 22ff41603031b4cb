"""What `tools.words` looks for and where: banned words with their replacements, files, exceptions."""

from __future__ import annotations

BANNED = {
    "amiss": "firing, wrong",
    "anew": "again, new",
    "beside": "next to, compared with",
    "corridor": "pipeline, write path",
    "dear": "expensive",
    "dearer": "more expensive",
    "dearest": "most expensive",
    "fares": "status",
    "knock": "call, request",
    "knocked": "called, requested",
    "knocking": "calling, requesting",
    "knocks": "calls, requests",
    "nobody": "no user, no agent: say which",
    "nought": "zero, nothing",
    "somebody": "a user, an agent: say which",
    "tell": "notify, report, return, show",
    "telling": "notifying, reporting, showing",
    "tells": "notifies, reports, returns, shows",
    "thrown": "engaged (kill switch), raised (exception)",
    "told": "notified, reported, returned",
    "whoever": "the user, the agent, any caller: say which",
    "whomever": "the user, the agent, any caller: say which",
}
PHRASES = {
    "goes in circles": "is looping",
    "going in circles": "looping",
    "in vain": "without result",
    "let go": "release, discard, clear",
    "lets go": "releases, discards, clears",
    "letting go": "releasing, discarding, clearing",
    "of ours": "our, internal",
    "so many": "this many, the number of",
    "todo head": "say what is in the file",
    "the house": "gateway, deployment, tenant: say which",
}
# What is searched for words: a folder or file, and the endings of the files in it (none: every text file).
WORD_PLACES: dict[str, tuple[str, ...]] = {
    "src": (".py",),
    "ui/src": (".ts", ".tsx", ".css"),
    "sdk-ts/src": (".ts",),
    "docs": (".md",),
    "examples": (),
    "deploy": (),
    "README.md": (),
    "CONTRIBUTING.md": (),
    "SECURITY.md": (),
    "Makefile": (),
}
# References are checked in these too.
REFERENCE_PLACES: dict[str, tuple[str, ...]] = {
    "tests": (".py",),
    "bench": (".py",),
    "tools": (".py",),
    "sdk-ts/README.md": (),
    "ui/e2e": (".ts",),
}
# Generated; decision records and migrations, which are history; quotes of the sources.
SKIPPED = (
    "src/observatory/store/migrations/*",
    "ui/src/protocol/*",
    "sdk-ts/src/protocol.ts",
    "*THIRD_PARTY_LICENSES*",
    "*-lock.json",
    "*.lock",
    "docs/decisions/*",
    "docs/requirements.md",
    "*/node_modules/*",
    "*/__pycache__/*",
    "tools/words_banned.py",
    "tests/unit/test_words_tool.py",
)
