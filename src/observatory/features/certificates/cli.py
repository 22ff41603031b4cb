"""`observatory certificates`: what is configured and was shown, when it ends, and which agents are bound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Gateway
from observatory.cli.prompts import Json, Yes, confirm, hand, path_of, tell, when
from observatory.cli.terminal import CommandFailed, Misused, note, show_json, show_table
from observatory.protocol.certificates import NotACertificate, read, read_pem

certificates = App(name="certificates", help="Certificates: list, show, bind, unbind.")
Agent = Annotated[str, Parameter(help="The agent's id.")]
MARKS = {"current": "✓", "expiring": "!", "expired": "✗", "not_yet": "…"}


@certificates.command(name="list")
def list_certificates(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """The gateway's own, the authorities of clients, and those that were shown; what ends first is first."""
    with hand(gateway, json) as door:
        answer = door.ask("GET", "/v1/certificates")
    if json:
        show_json(answer)
        return
    shown = [
        (row["use"], row["subject"], row["issuer"], f"{MARKS[row['standing']]} {ends(row)}",
         ", ".join(row["agents"]), row["fingerprint"][:16])
        for row in answer["items"]
    ]  # fmt: skip
    show_table(("USE", "SUBJECT", "ISSUER", "ENDS", "AGENTS", "SHA-256"), shown, "none is configured")
    _stand(answer)


def _stand(answer: dict[str, Any]) -> None:
    standing, agents = answer["tls"], answer["agents"]
    if not standing["configured"]:
        note(f"TLS is not configured; begin with `{standing['setup']}`")
        return
    if standing["problem"]:
        note(f"the new files are not in force: {standing['problem']}")
    note(
        f"client certificates: {standing['client_certs']}; {agents['using']} of {agents['total']} agents "
        f"last spoke with one, {agents['bound']} are bound to one"
    )


def ends(row: dict[str, Any]) -> str:
    """In words, as the panel has it."""
    days = row["days_left"]
    if row["standing"] == "expired":
        return "has ended"
    if row["standing"] == "not_yet":
        return f"begins {when(row['not_before'])}"
    return "today" if days < 1 else "in 1 day" if days == 1 else f"in {days} days"


@certificates.command(name="show")
def show(agent: Agent, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Which certificate an agent is bound to, and with which it last spoke."""
    with hand(gateway, json) as door:
        answer = door.ask("GET", path_of("agents", agent, "certificate"))
    binding, shown = answer["binding"], answer["shown"]
    bound = "no certificate" if binding is None else f"the {binding['kind']} {binding['value']}"
    spoke = "without one" if shown is None else f"with {shown['subject']}, which ends {ends(shown)}"
    tell(answer, json, f"{answer['agent_id']} is bound to {bound}; it last spoke {spoke}")


@certificates.command(name="bind")
def bind(
    agent: Agent,
    *,
    uri: Annotated[str | None, Parameter(help="A URI in its certificate; survives rotation.")] = None,
    dns: Annotated[str | None, Parameter(help="A DNS name in it; survives rotation.")] = None,
    subject: Annotated[str | None, Parameter(help="Its whole subject, CN=…; survives rotation.")] = None,
    fingerprint: Annotated[
        str | None, Parameter(help="SHA-256 of this one certificate and no other.")
    ] = None,
    file: Annotated[Path | None, Parameter(help="PEM of this one certificate and no other.")] = None,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """From now on nobody speaks as this agent without that certificate, not even an admin."""
    named = {"uri": uri, "dns": dns, "subject": subject, "fingerprint": fingerprint}
    given = {kind: value for kind, value in named.items() if value is not None}
    if len(given) + (file is not None) != 1:
        raise Misused("give exactly one of --uri, --dns, --subject, --fingerprint and --file")
    body: dict[str, Any] = {}
    for kind, value in given.items():
        body = {"kind": kind, "value": value}
    if file is not None:
        try:  # read here: such a file may hold the key too, which is nobody's business
            body = {"kind": "fingerprint", "value": read(read_pem(file.read_bytes())[0]).fingerprint}
        except (OSError, NotACertificate):
            raise CommandFailed(f"{file} cannot be read, or holds no certificate in PEM form") from None
    with hand(gateway, json) as door:
        answer = door.ask("PUT", path_of("agents", agent, "certificate"), body)
    binding = answer["binding"]
    tell(answer, json, f"{answer['agent_id']} speaks only with the {binding['kind']} {binding['value']}")


@certificates.command(name="unbind")
def unbind(agent: Agent, *, yes: Yes = False, json: Json = False, gateway: Gateway = ANY) -> None:
    """Let an agent go of its certificate: its keys alone say again who it is."""
    confirm(f"may {agent} speak without a certificate?", yes)
    with hand(gateway, json) as door:
        answer = door.ask("DELETE", path_of("agents", agent, "certificate"))
    tell(answer, json, f"{answer['agent_id']} is bound to no certificate any more")
