"""The commands of the terminal and where each lives; a module is loaded when its command is used."""

from __future__ import annotations

from cyclopts import App

from observatory.settings import VERSION

app = App(name="observatory", help="A control plane for meshes of autonomous AI agents.", version=VERSION)

COMMANDS = {
    "serve": ("serve:serve", "Run the gateway."),
    "demo": ("demo:demo", "Run the product with a live simulated mesh."),
    "login": ("access:login", "Print a fresh one-time login link."),
    "tail": ("tail:tail", "Follow what the gateway commits."),
    "sessions": ("mesh:sessions", "Sessions, the most recently active first."),
    "verify": ("verify:verify", "Check the audit trail, offline and independently."),
    "export": ("export:export", "Write a trail to a file with a manifest."),
    "import": ("restore:import_", "Restore an exported trail into an empty tenant."),
    "copy": ("serve:copy", "Move a SQLite database to an empty PostgreSQL."),
    "backup": ("backup:backup", "Write the whole house into one file."),
    "restore": ("backup:restore", "Put a backup where nothing is yet, verified."),
    "migrate": ("serve:migrate", "Bring a database to this version."),
    "mcp": ("mcp:mcp", "Speak MCP on stdin and stdout, for a client that starts it."),
    "claude-code": ("claude_code:claude_code", "Claude Code's hooks: install, uninstall, status."),
    "hook": ("claude_code:hook", "Answer one hook of Claude Code: its JSON on stdin."),
    "doctor": ("doctor:doctor", "Check this machine, folder and gateway."),
    "licenses": ("licenses:licenses", "The licenses of the third-party packages in the pages."),
    "keys": ("binding:keys", "API keys: list, create, bind, revoke."),
    "logins": ("access:logins", "Sign-ins: list, end."),
    "log-key": ("log_key:log_key", "The key that signs the logs: show, rotate."),
    "users": ("access:users", "People: list, create, disable."),
    "tenants": ("access:tenants", "Tenants: list, create."),
    "versions": ("access:versions", "Accepted capability versions: list, set."),
    "tls": ("tls:tls", "Certificates of a small authority of one's own: init, agent."),
    "certificates": ("certificates:certificates", "Certificates: list, show, bind, unbind."),
}
# What acts on agents. Of these, words that cannot be meant so end with 2, a refusal of the gateway with 1.
CONTROL = {
    "holds": ("holds:holds", "What is held: gates first, oldest first."),
    "approve": ("holds:approve", "Let a message pass its gate."),
    "reject": ("holds:reject", "Never forward a message held at a gate."),
    "edit": ("holds:edit", "Change a message held at a gate, then let it pass."),
    "rewrite": ("holds:rewrite", "Put new content in the place of a held message."),
    "pause": ("control:pause", "Hold everything an agent says in a session."),
    "unpause": ("control:unpause", "Let a paused agent go on."),
    "agents": ("agents:agents", "Agents: list; pause or unpause one everywhere."),
    "inject": ("control:inject", "Put a prompt into an agent's next context."),
    "cancel": ("control:cancel", "End an agent's work on a session."),
    "undo": ("control:undo", "Take a command back."),
    "interventions": ("control:interventions", "What people did in a session."),
    "search": ("search:search", "Find messages by words, meaning and filters."),
    "dag": ("graph:dag", "The causal graph of a session."),
    "compare": ("graph:compare", "Two sessions step by step."),
    "annotate": ("graph:annotate", "Note something about a step."),
    "thoughts": ("thoughts:thoughts", "What a session thought, and the seal over it."),
    "decisions": ("decisions:decisions", "What agents ask people: list, respond, cancel, rules."),
    "policy": ("ruling:policy", "Rules between agents: list, add, remove, dry-run."),
    "budget": ("ruling:budget", "Caps on spending: list, set, remove."),
    "detectors": ("detectors:detectors", "What the detectors go by: show, set."),
    "capabilities": ("capabilities:capabilities", "Whose work agents get: list, grant, revoke, mode."),
    "route": ("routes:route", "Traffic weights and circuits of capabilities."),
    "kill": ("kill:kill", "Stop an agent, a class, a cluster or everything; release it."),
    "jobs": ("jobs:jobs", "The schedule: list, add, preview, pause, run, runs, next, leader and more."),
    "dead-letters": ("jobs:dead_letters", "What was given up on: list, show, retry, discard."),
    "peers": ("peers:peers", "Witnesses and witnessed logs: list, show, own, add, key, offer, remove."),
    "webhooks": ("webhooks:webhooks", "Who outside is told of events: list, add, test, log, replay, more."),
    "hooks": ("hooks:hooks", "Webhooks in: list, add, change, rotate, remove, calls, try and more."),
    "alerts": ("alerts:alerts", "Alert rules: open, list, add, defaults, mute, test, remove."),
    "scaling": ("alerts:scaling", "Scaling triggers: list, add, mute, test, remove."),
    "redaction": ("redaction:redaction", "Text that is not kept: list, add, remove, try."),
    "exporters": ("exporters:exporters", "OTLP backends: list, add, test, pause, rewind and more."),
    "shred": ("redaction:shred", "Destroy a message's bytes; its proof stays."),
    "retention": ("redaction:retention", "How long payloads are kept."),
    "instructions": ("kill:instructions", "What agents of a type work by: list, show, set, rollback."),
}
for _name, (_place, _help) in (COMMANDS | CONTROL).items():
    app.command(f"observatory.cli.{_place}", name=_name, help=_help)
