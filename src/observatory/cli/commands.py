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
    "verify": ("verify:verify", "Check the audit trail, offline and independently."),
    "export": ("export:export", "Write a trail to a file with a manifest."),
    "import": ("restore:import_", "Restore an exported trail into an empty tenant."),
    "copy": ("serve:copy", "Move a SQLite database to an empty PostgreSQL."),
    "migrate": ("serve:migrate", "Bring a database to this version."),
    "doctor": ("doctor:doctor", "Check this machine, folder and gateway."),
    "keys": ("access:keys", "API keys: list, create, revoke."),
    "users": ("access:users", "People: list, create, disable."),
    "tenants": ("access:tenants", "Tenants: list, create."),
    "versions": ("access:versions", "Accepted capability versions: list, set."),
}
for _name, (_place, _help) in COMMANDS.items():
    app.command(f"observatory.cli.{_place}", name=_name, help=_help)
