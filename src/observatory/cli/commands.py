"""The commands of the terminal and where each lives; a module is loaded when its command is used."""

from __future__ import annotations

from cyclopts import App

from observatory.settings import VERSION

app = App(name="observatory", help="A control plane for meshes of autonomous AI agents.", version=VERSION)

COMMANDS = {
    "serve": ("cli.serve:serve", "Run the gateway."),
    "demo": ("demo.command:demo", "Run the product with a live simulated mesh."),
    "login": ("features.access.cli:login", "Print a fresh one-time login link."),
    "tail": ("cli.tail:tail", "Follow what the gateway commits."),
    "sessions": ("features.sessions.cli_lists:sessions", "Sessions, the most recently active first."),
    "verify": ("features.verification.cli:verify", "Check the audit trail, offline and independently."),
    "export": ("features.backup.cli_export:export", "Write a trail to a file with a manifest."),
    "import": ("features.backup.cli_import:import_", "Restore an exported trail into an empty tenant."),
    "copy": ("features.backup.cli_copy:copy", "Move a SQLite database to an empty PostgreSQL."),
    "backup": ("features.backup.cli:backup", "Write the whole deployment into one file."),
    "restore": ("features.backup.cli:restore", "Restore a verified backup into an empty place."),
    "migrate": ("cli.serve:migrate", "Bring a database to this version."),
    "mcp": ("features.mcp.cli:mcp", "Serve MCP on stdin and stdout, for a client that starts it."),
    "claude-code": ("cli.claude_code:claude_code", "Claude Code's hooks: install, uninstall, status."),
    "hook": ("cli.claude_code:hook", "Answer one hook of Claude Code: its JSON on stdin."),
    "doctor": ("features.doctor.cli:doctor", "Check this machine, folder and gateway."),
    "licenses": ("cli.licenses:licenses", "The licenses of the third-party packages in the pages."),
    "keys": ("features.access.cli_bind:keys", "API keys: list, create, bind, revoke."),
    "logins": ("features.access.cli:logins", "Sign-ins: list, end."),
    "log-key": ("features.transparency.cli_log_key:log_key", "The key that signs the logs: show, rotate."),
    "users": ("features.access.cli:users", "People: list, create, disable."),
    "tenants": ("features.access.cli:tenants", "Tenants: list, create."),
    "versions": ("features.access.cli:versions", "Accepted capability versions: list, set."),
    "tls": (
        "features.certificates.cli_tls:tls",
        "Issue certificates from a small local authority: init, agent.",
    ),
    "certificates": ("features.certificates.cli:certificates", "Certificates: list, show, bind, unbind."),
}
# Commands that act on agents. They exit with 2 for invalid arguments and with 1 when the gateway refuses.
CONTROL = {
    "holds": ("features.relay.cli:holds", "What is held: gates first, oldest first."),
    "approve": ("features.relay.cli:approve", "Approve a message held at a gate."),
    "reject": ("features.relay.cli:reject", "Never forward a message held at a gate."),
    "edit": ("features.relay.cli:edit", "Change a message held at a gate and approve it."),
    "rewrite": ("features.relay.cli:rewrite", "Replace the content of a held message."),
    "pause": ("features.relay.cli_agents:pause", "Pause an agent in a session: hold all its messages."),
    "unpause": ("features.relay.cli_agents:unpause", "Resume a paused agent."),
    "agents": ("features.registry.cli_agents:agents", "Agents: list; pause or unpause one everywhere."),
    "inject": ("features.relay.cli_agents:inject", "Put a prompt into an agent's next context."),
    "cancel": ("features.relay.cli_agents:cancel", "End an agent's work on a session."),
    "undo": ("features.relay.cli_agents:undo", "Undo a command."),
    "interventions": ("features.relay.cli_agents:interventions", "Interventions of people in a session."),
    "search": ("features.search.cli:search", "Find messages by words, meaning and filters."),
    "dag": ("features.graph.cli:dag", "The causal graph of a session."),
    "compare": ("features.graph.cli:compare", "Compare two sessions step by step."),
    "annotate": ("features.graph.cli:annotate", "Add a note to a step."),
    "thoughts": ("features.thoughts.cli:thoughts", "Thought records of a session, and their seal."),
    "decisions": (
        "features.decisions.cli:decisions",
        "Decisions agents request from people: list, respond, cancel, rules.",
    ),
    "policy": ("features.policies.cli:policy", "Rules between agents: list, add, remove, dry-run."),
    "budget": ("features.policies.cli:budget", "Caps on spending: list, set, remove."),
    "detectors": ("features.loops.cli:detectors", "Detector settings: show, set."),
    "capabilities": (
        "features.registry.cli_capabilities:capabilities",
        "Capabilities agents receive work for: list, grant, revoke, mode.",
    ),
    "route": ("features.registry.cli:route", "Traffic weights and circuit breakers of capabilities."),
    "kill": (
        "features.kill_switch.cli:kill",
        "Stop an agent, a class, a cluster or the whole tenant; release it.",
    ),
    "jobs": (
        "features.schedule.cli:jobs",
        "The schedule: list, add, preview, pause, run, runs, next, leader and more.",
    ),
    "dead-letters": (
        "features.schedule.cli:dead_letters",
        "Dead letters: list, show, retry, discard.",
    ),
    "peers": (
        "features.transparency.cli_peers:peers",
        "Witnesses and witnessed logs: list, show, own, add, key, offer, remove.",
    ),
    "webhooks": (
        "features.webhooks.cli:webhooks",
        "Outbound webhooks: list, add, test, log, replay, more.",
    ),
    "hooks": (
        "features.hooks.cli:hooks",
        "Inbound webhooks: list, add, change, rotate, remove, calls, try and more.",
    ),
    "alerts": ("features.alerting.cli:alerts", "Alert rules: open, list, add, defaults, mute, test, remove."),
    "scaling": ("features.alerting.cli:scaling", "Scaling triggers: list, add, mute, test, remove."),
    "redaction": ("features.redaction.cli:redaction", "Redaction rules: list, add, remove, try."),
    "exporters": (
        "features.exporters.cli:exporters",
        "OTLP backends: list, add, test, pause, rewind and more.",
    ),
    "shred": ("features.redaction.cli:shred", "Destroy a message's bytes; its proof stays."),
    "retention": ("features.redaction.cli:retention", "How long payloads are kept."),
    "instructions": (
        "features.kill_switch.cli:instructions",
        "System prompt of an agent type: list, show, set, rollback.",
    ),
}
for _name, (_place, _help) in (COMMANDS | CONTROL).items():
    app.command(f"observatory.{_place}", name=_name, help=_help)
