"""`observatory certificates`: configured and presented certificates, their expiry, and agent bindings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayOptions
from observatory.cli.prompts import Json, Yes, api_session, confirm, path_of, print_result, when
from observatory.cli.terminal import CommandFailed, InvalidArguments, note, show_json, show_table
from observatory.plural import plural
from observatory.protocol.certificates import InvalidCertificate, read, read_pem

certificates = App(name="certificates", help="Certificates: list, show, bind, unbind.")
Agent = Annotated[str, Parameter(help="The agent's id.")]
MARKS = {"current": "✓", "expiring": "!", "expired": "✗", "not_yet": "…"}


@certificates.command(name="list")
def list_certificates(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """The gateway's own, client authorities, and certificates clients presented; earliest expiry first."""
    with api_session(gateway, json) as api:
        answer = api.ask("GET", "/v1/certificates")
    if json:
        show_json(answer)
        return
    presented = [
        (row["use"], row["subject"], row["issuer"], f"{MARKS[row['standing']]} {expiry_text(row)}",
         ", ".join(row["agents"]), row["fingerprint"][:16])
        for row in answer["items"]
    ]  # fmt: skip
    show_table(("USE", "SUBJECT", "ISSUER", "EXPIRES", "AGENTS", "SHA-256"), presented, "No certificates")
    _show_tls(answer)


def _show_tls(answer: dict[str, Any]) -> None:
    tls, agents = answer["tls"], answer["agents"]
    if not tls["configured"]:
        note(f"TLS is not configured; start with `{tls['setup']}`")
        return
    if tls["problem"]:
        note(f"the new files are not in use: {tls['problem']}")
    note(
        f"client certificates: {tls['client_certs']}; {agents['using']} of "
        f"{plural(agents['total'], 'agent')} last connected with one, {agents['bound']} bound to one"
    )


def expiry_text(row: dict[str, Any]) -> str:
    """As text, like the panel shows it."""
    days = row["days_left"]
    if row["standing"] == "expired":
        return "expired"
    if row["standing"] == "not_yet":
        return f"valid from {when(row['not_before'])}"
    return "today" if days < 1 else "in 1 day" if days == 1 else f"in {days} days"


@certificates.command(name="show")
def show(agent: Agent, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """The certificate an agent is bound to, and the one it last used."""
    with api_session(gateway, json) as api:
        answer = api.ask("GET", path_of("agents", agent, "certificate"))
    binding, presented = answer["binding"], answer["shown"]
    bound = "no certificate" if binding is None else f"the {binding['kind']} {binding['value']}"
    last_used = (
        "without one"
        if presented is None
        else f"with {presented['subject']}, which expires {expiry_text(presented)}"
    )
    print_result(answer, json, f"{answer['agent_id']} is bound to {bound}; it last connected {last_used}")


@certificates.command(name="bind")
def bind(
    agent: Agent,
    *,
    uri: Annotated[str | None, Parameter(help="A URI in its certificate; survives rotation.")] = None,
    dns: Annotated[str | None, Parameter(help="A DNS name in it; survives rotation.")] = None,
    subject: Annotated[str | None, Parameter(help="Its whole subject, CN=…; survives rotation.")] = None,
    fingerprint: Annotated[str | None, Parameter(help="SHA-256 of exactly this certificate.")] = None,
    file: Annotated[Path | None, Parameter(help="PEM of exactly this certificate.")] = None,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """From now on no key can act as this agent without that certificate, not even an admin's."""
    named = {"uri": uri, "dns": dns, "subject": subject, "fingerprint": fingerprint}
    given = {kind: value for kind, value in named.items() if value is not None}
    if len(given) + (file is not None) != 1:
        raise InvalidArguments("give exactly one of --uri, --dns, --subject, --fingerprint and --file")
    body: dict[str, Any] = {}
    for kind, value in given.items():
        body = {"kind": kind, "value": value}
    if file is not None:
        try:  # parsed locally: the file may contain the private key, which must not be sent
            body = {"kind": "fingerprint", "value": read(read_pem(file.read_bytes())[0]).fingerprint}
        except (OSError, InvalidCertificate):
            raise CommandFailed(f"{file} cannot be read, or contains no PEM certificate") from None
    with api_session(gateway, json) as api:
        answer = api.ask("PUT", path_of("agents", agent, "certificate"), body)
    binding = answer["binding"]
    print_result(
        answer, json, f"{answer['agent_id']} can only connect with the {binding['kind']} {binding['value']}"
    )


@certificates.command(name="unbind")
def unbind(agent: Agent, *, yes: Yes = False, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Remove an agent's binding: its API keys alone identify it again."""
    confirm(f"Allow {agent} to connect without a certificate?", yes)
    with api_session(gateway, json) as api:
        answer = api.ask("DELETE", path_of("agents", agent, "certificate"))
    print_result(answer, json, f"{answer['agent_id']} is no longer bound to a certificate")
