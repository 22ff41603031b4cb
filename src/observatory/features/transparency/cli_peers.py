"""`observatory peers`: witnesses of this log, logs witnessed here, and inconsistencies found."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayApi, GatewayOptions
from observatory.cli.prompts import Json, Yes, api_session, confirm, one_of, path_of, print_result, when
from observatory.cli.terminal import note, say, show_json, show_table

LISTED = "`observatory peers list`"
Row = dict[str, Any]
Peer = Annotated[str, Parameter(help="The peer's name, its id, or a prefix of the id.")]
Vkey = Annotated[str, Parameter(help="A verification key, name+id+key; the peer gets it from `peers own`.")]
DOUBTS = {
    "fork": "FORK: two roots were signed for one size",
    "inconsistent": "NOT PROVEN: no proof leads from the cosigned checkpoint to the one presented",
    "rollback": "ROLLBACK: the log is shorter than what was signed",
}

peers = App(name="peers", help="Witnesses and witnessed logs: list, show, own, add, key, offer, remove.")


@peers.command(name="own")
def own(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Show what a peer needs from you: your log's verification key and your witness URL."""
    with api_session(gateway, json, "admin") as client:
        row = _own(client)
    print_result(
        row, json, f"vkey     {row['vkey'] or 'nothing is signed yet'}", f"witness  {row['witness']}"
    )


def _own(client: GatewayApi) -> Row:
    witness = client.ask("GET", "/v1/peers")["witness"]
    return {"vkey": client.ask("GET", "/v1/audit/log")["vkey"], "witness": witness["url"]}


@peers.command(name="list")
def list_peers(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List peers: last answer, how much of our log each cosigned, how much of its log was cosigned here."""
    with api_session(gateway, json, "admin") as client:
        answer = client.ask("GET", "/v1/peers")
    if json:
        show_json(answer)
        return
    columns = ("PEER", "NAME", "LAST ANSWER", "COSIGNED OURS", "COSIGNED HERE", "PROBLEM")
    show_table(columns, [_line(row) for row in answer["items"]], "no peers")
    for row in answer["items"]:
        if row["fork"] is not None:
            note(f"{row['name']}: {DOUBTS[row['fork']['kind']]}; see `observatory peers show {row['name']}`")


def _line(row: Row) -> tuple[object, ...]:
    state = row["asked"]["state"] if row["url"] else "not asked"
    head = row["head"] and row["head"]["size"]
    return row["peer_id"], row["name"], state, row["cosigned_size"], head, row["fork"] and row["fork"]["kind"]


@peers.command(name="show")
def show(peer: Peer, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Show one peer in full: its key, its head, and both notes if its log is inconsistent."""
    with api_session(gateway, json, "admin") as client:
        row = _resolve(client, peer)
    if json:
        show_json(row)
        return
    say(*(f"{name:<9}{row[key]}" for name, key in FIELDS.items() if row[key] is not None))
    asked = row["asked"]
    say(f"asked    {asked['state']} {when(asked['at'])} {asked['detail'] or ''}".rstrip())
    if row["head"] is not None:
        _say_head("cosigned here", row["head"])
    if row["fork"] is not None:
        _say_head(DOUBTS[row["fork"]["kind"]], row["fork"])


FIELDS = {
    "peer": "peer_id", "name": "name", "vkey": "vkey", "witness": "url", "log": "log_url",
    "ours": "cosigned_size",
}  # fmt: skip


def _say_head(what: str, head: Row) -> None:
    say(
        "", f"{what}, {head['size']:,} events, seen {when(head['seen_at'])}:", head["checkpoint"].rstrip("\n")
    )


def _resolve(client: GatewayApi, peer: str) -> Row:
    return one_of(client.ask("GET", "/v1/peers")["items"], peer, ("name", "peer_id"), LISTED)


@peers.command(name="add")
def add(
    name: Annotated[str, Parameter(help="A name for the peer.")],
    vkey: Vkey,
    *,
    witness: Annotated[
        str | None, Parameter(help="Its witness URL: our checkpoints are offered there.")
    ] = None,
    log: Annotated[
        str | None, Parameter(help="The URL of its log: its checkpoints are checked there.")
    ] = None,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Add a peer: its checkpoints are cosigned here, and ours are offered to it if it has a witness URL."""
    body = {"name": name, "vkey": vkey, "url": witness, "log_url": log}
    with api_session(gateway, json, "admin") as client:
        answer = client.ask("POST", "/v1/peers", body)
    print_result(answer, json, f"{answer['peer_id']}: peer {answer['name']} added")


@peers.command(name="key")
def key(
    peer: Peer, vkey: Vkey, *, yes: Yes = False, json: Json = False, gateway: GatewayOptions = ANY
) -> None:
    """Replace a peer's key when its own log cannot vouch for the new one; its head is kept."""
    with api_session(gateway, json, "admin") as client:
        row = _resolve(client, peer)
        confirm(f"Trust {row['name']} by this key alone from now on?", yes)
        answer = client.ask("POST", f"{path_of('peers', row['peer_id'])}/key", {"vkey": vkey})
    print_result(answer, json, f"{answer['name']} is trusted by {answer['vkey']}")


@peers.command(name="offer")
def offer(peer: Peer, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Offer our newest checkpoint to a peer now, and check its log."""
    with api_session(gateway, json, "admin") as client:
        row = _resolve(client, peer)
        answer = client.ask("POST", f"{path_of('peers', row['peer_id'])}/offer")
    asked = answer["asked"]
    size = answer["cosigned_size"]
    cosigned = f"{size:,} event{'' if size == 1 else 's'} cosigned" if asked["state"] == "cosigned" else None
    print_result(answer, json, f"{answer['name']}: {asked['state']}; {cosigned or asked['detail']}")


@peers.command(name="remove")
def remove(peer: Peer, *, yes: Yes = False, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Remove a peer. If it is added again, its log must extend what was cosigned before."""
    with api_session(gateway, json, "admin") as client:
        row = _resolve(client, peer)
        confirm(f"Remove the peer {row['name']}?", yes)
        answer = client.ask("DELETE", path_of("peers", row["peer_id"]))
    print_result(answer, json, f"peer {row['name']} removed")
