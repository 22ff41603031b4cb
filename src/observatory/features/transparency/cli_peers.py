"""`observatory peers`: who witnesses this log, whose log is witnessed here, and what is not believed."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Api, Gateway
from observatory.cli.prompts import Json, Yes, confirm, hand, one_of, path_of, tell, when
from observatory.cli.terminal import note, say, show_json, show_table

LISTED = "`observatory peers list`"
Row = dict[str, Any]
Peer = Annotated[str, Parameter(help="The peer's name, its id, or a beginning of the id.")]
Vkey = Annotated[str, Parameter(help="A verification key, name+id+key; theirs show it by `peers own`.")]
DOUBTS = {
    "fork": "FORK: two roots were signed for one size",
    "inconsistent": "NOT PROVEN: nothing leads from what was cosigned to what was shown",
    "rollback": "ROLLBACK: less was shown than was signed",
}

peers = App(name="peers", help="Witnesses and witnessed logs: list, show, own, add, key, offer, remove.")


@peers.command(name="own")
def own(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """What a peer needs of you: your log's verification key, and where you witness."""
    with hand(gateway, json, "admin") as door:
        mine = _own(door)
    tell(mine, json, f"vkey     {mine['vkey'] or 'nothing is signed yet'}", f"witness  {mine['witness']}")


def _own(door: Api) -> Row:
    witness = door.ask("GET", "/v1/peers")["witness"]
    return {"vkey": door.ask("GET", "/v1/audit/log")["vkey"], "witness": witness["url"]}


@peers.command(name="list")
def list_peers(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """Every peer: how it answered, how much of ours it cosigned, how much of its log was cosigned here."""
    with hand(gateway, json, "admin") as door:
        answer = door.ask("GET", "/v1/peers")
    if json:
        show_json(answer)
        return
    columns = ("PEER", "NAME", "ASKED", "COSIGNED OURS", "COSIGNED HERE", "DOUBT")
    show_table(columns, [_line(row) for row in answer["items"]], "no peer is known")
    for row in answer["items"]:
        if row["fork"] is not None:
            note(f"{row['name']}: {DOUBTS[row['fork']['kind']]}; see `observatory peers show {row['name']}`")


def _line(row: Row) -> tuple[object, ...]:
    asked = row["asked"]["state"] if row["url"] else "not asked"
    head = row["head"] and row["head"]["size"]
    return row["peer_id"], row["name"], asked, row["cosigned_size"], head, row["fork"] and row["fork"]["kind"]


@peers.command(name="show")
def show(peer: Peer, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """One peer whole: its key, its head, and the two notes where its log is not believed."""
    with hand(gateway, json, "admin") as door:
        row = _found(door, peer)
    if json:
        show_json(row)
        return
    say(*(f"{name:<9}{row[key]}" for name, key in SHOWN.items() if row[key] is not None))
    asked = row["asked"]
    say(f"asked    {asked['state']} {when(asked['at'])} {asked['detail'] or ''}".rstrip())
    if row["head"] is not None:
        _say_head("cosigned here", row["head"])
    if row["fork"] is not None:
        _say_head(DOUBTS[row["fork"]["kind"]], row["fork"])


SHOWN = {
    "peer": "peer_id", "name": "name", "vkey": "vkey", "witness": "url", "log": "log_url",
    "ours": "cosigned_size",
}  # fmt: skip


def _say_head(what: str, head: Row) -> None:
    say(
        "", f"{what}, {head['size']:,} events, seen {when(head['seen_at'])}:", head["checkpoint"].rstrip("\n")
    )


def _found(door: Api, peer: str) -> Row:
    return one_of(door.ask("GET", "/v1/peers")["items"], peer, ("name", "peer_id"), LISTED)


@peers.command(name="add")
def add(
    name: Annotated[str, Parameter(help="What you call it.")],
    vkey: Vkey,
    *,
    witness: Annotated[str | None, Parameter(help="Where it witnesses; ours is offered to it there.")] = None,
    log: Annotated[str | None, Parameter(help="Where its log is served; it is looked at there.")] = None,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Make a peer known: its checkpoints are cosigned here, and ours offered to it if it has an address."""
    body = {"name": name, "vkey": vkey, "url": witness, "log_url": log}
    with hand(gateway, json, "admin") as door:
        answer = door.ask("POST", "/v1/peers", body)
    tell(answer, json, f"{answer['peer_id']}: {answer['name']} is a peer")


@peers.command(name="key")
def key(peer: Peer, vkey: Vkey, *, yes: Yes = False, json: Json = False, gateway: Gateway = ANY) -> None:
    """Let another key follow a peer's, when its own log cannot vouch for it; its head stays where it is."""
    with hand(gateway, json, "admin") as door:
        found = _found(door, peer)
        confirm(f"Believe {found['name']} by this key alone from now on?", yes)
        answer = door.ask("POST", f"{path_of('peers', found['peer_id'])}/key", {"vkey": vkey})
    tell(answer, json, f"{answer['name']} is believed by {answer['vkey']}")


@peers.command(name="offer")
def offer(peer: Peer, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Offer our newest checkpoint to it now, and look at its log."""
    with hand(gateway, json, "admin") as door:
        found = _found(door, peer)
        answer = door.ask("POST", f"{path_of('peers', found['peer_id'])}/offer")
    asked = answer["asked"]
    told = f"{answer['cosigned_size']:,} events cosigned" if asked["state"] == "cosigned" else asked["detail"]
    tell(answer, json, f"{answer['name']}: {asked['state']}; {told}")


@peers.command(name="remove")
def remove(peer: Peer, *, yes: Yes = False, json: Json = False, gateway: Gateway = ANY) -> None:
    """Believe nothing of it any more; what was cosigned of its log stays the beginning it must go on from."""
    with hand(gateway, json, "admin") as door:
        found = _found(door, peer)
        confirm(f"Remove the peer {found['name']}?", yes)
        answer = door.ask("DELETE", path_of("peers", found["peer_id"]))
    tell(answer, json, f"{found['name']} is a peer no more")
