"""The bus wakes readers with levels, not edges: the latest word per tenant is all that is kept.

One suite over both buses: in one process, and between two gateways with a real NATS server. What is published
is committed, so the record reaches at least as far (`heads`). A notice by NATS may come as a later level than
the one that was published, never as an earlier one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import nats as nats_py
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from observatory.bus.memory import MemoryBus
from observatory.bus.nats import NatsBus
from observatory.bus.nats_link import NatsLink
from observatory.pipeline.ports import Bus, CommitNotice
from observatory.protocol import nats_connection as wire
from observatory.protocol.nats import address
from observatory.protocol.nats_connection import NatsUnavailable
from tests.nats_server import Nats, running

PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def nats_server() -> Iterator[Nats]:
    with running() as server:
        yield server


class Pair:
    """Who speaks and who listens; and the record that both stand on."""

    def __init__(self, speaks: Bus, listens: Bus, heads: dict[str, int]) -> None:
        self.speaks, self.listens, self.heads = speaks, listens, heads

    def publish(self, tenant_id: str, number: int) -> None:
        self.heads[tenant_id] = max(number, self.heads.get(tenant_id, 0))
        self.speaks.publish(CommitNotice(tenant_id, number))


@asynccontextmanager
async def gateway(
    url: str, heads: dict[str, int], database_id: str = "house"
) -> AsyncGenerator[tuple[NatsBus, NatsLink], None]:
    async def head(tenant_id: str) -> tuple[int, str]:
        return heads.get(tenant_id, 0), ""

    async def name() -> str:
        return database_id

    line = NatsLink(address(url))
    bus = NatsBus(line, MemoryBus(), head, name)
    tasks = [asyncio.create_task(line.run()), asyncio.create_task(bus.run())]
    try:
        yield bus, line
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def met(speaks: NatsBus, listens: NatsBus, heads: dict[str, int]) -> None:
    """Until the one hears the other: both are connected and subscribed."""
    heads["tnt_first"] = 0
    stream = listens.subscribe()
    first = asyncio.ensure_future(anext(stream))
    async with asyncio.timeout(PATIENCE_S):
        while not first.done():
            heads["tnt_first"] += 1
            speaks.publish(CommitNotice("tnt_first", heads["tnt_first"]))
            await asyncio.wait([first], timeout=0.05)
        # Nothing is left of it that a test could hear: the last level has arrived.
        while first.result().sequence_number < heads["tnt_first"]:
            first = asyncio.ensure_future(anext(stream))
            await first
    await stream.aclose()  # type: ignore[attr-defined]


Scene = Callable[[Pair], Awaitable[Any]]
Play = Callable[[Scene], Any]


@pytest.fixture(params=["memory", "nats"])
def play(request: pytest.FixtureRequest) -> Play:
    """Runs a scene between one who speaks and one who listens."""

    async def in_memory(scene: Scene) -> Any:
        bus = MemoryBus()
        return await scene(Pair(bus, bus, {}))

    async def by_nats(scene: Scene) -> Any:
        url = f"{request.getfixturevalue('nats_server').url}/{request.node.name.partition('[')[0][-20:]}"
        heads: dict[str, int] = {}
        async with gateway(url, heads) as (one, _), gateway(url, heads) as (other, _):
            await met(one, other, heads)
            return await scene(Pair(one, other, heads))

    chosen = in_memory if request.param == "memory" else by_nats
    return lambda scene: asyncio.run(chosen(scene))


async def started(bus: Bus) -> tuple[asyncio.Task[CommitNotice], AsyncIterator[CommitNotice]]:
    """A subscriber that is already waiting for its first notice."""
    stream = bus.subscribe()
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    return first, stream


@pytest.mark.req(110, 230)
def test_a_notice_reaches_every_subscriber(play: Play) -> None:
    async def scene(pair: Pair) -> list[CommitNotice]:
        waiting = [(await started(pair.listens))[0] for _ in range(3)]
        waiting.append((await started(pair.speaks))[0])
        pair.publish("tnt_a", 1)
        return await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S)

    assert play(scene) == [CommitNotice("tnt_a", 1)] * 4


def test_a_slow_subscriber_holds_one_notice_per_tenant_and_it_is_the_newest_s822(play: Play) -> None:
    async def scene(pair: Pair) -> list[CommitNotice]:
        first, stream = await started(pair.listens)
        pair.publish("tnt_a", 1)
        await first
        for number in range(2, 10_000):
            pair.publish("tnt_a", number)
            pair.publish("tnt_b", number)
        watch = pair.listens.subscribe()  # one that keeps up shows when everything has arrived
        seen: dict[str, int] = {}
        if pair.speaks is not pair.listens:
            async with asyncio.timeout(PATIENCE_S):
                while seen.get("tnt_a", 0) < 9_999 or seen.get("tnt_b", 0) < 9_999:
                    notice = await anext(watch)
                    seen[notice.tenant_id] = notice.sequence_number
        found = [await anext(stream), await anext(stream)]
        rest = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        assert not rest.done(), "nothing else was kept"
        rest.cancel()
        return sorted(found, key=lambda notice: notice.tenant_id)

    assert play(scene) == [CommitNotice("tnt_a", 9_999), CommitNotice("tnt_b", 9_999)]


def test_an_older_notice_never_takes_the_place_of_a_newer_one(play: Play) -> None:
    async def scene(pair: Pair) -> CommitNotice:
        first, _ = await started(pair.listens)
        pair.publish("tnt_a", 7)
        pair.publish("tnt_a", 3)
        return await asyncio.wait_for(first, PATIENCE_S)

    assert play(scene) == CommitNotice("tnt_a", 7)


def test_a_busy_tenant_does_not_keep_a_quiet_one_waiting(play: Play) -> None:
    async def scene(pair: Pair) -> set[str]:
        first, stream = await started(pair.listens)
        pair.publish("tnt_busy", 1)
        pair.publish("tnt_quiet", 1)
        heard = [(await asyncio.wait_for(first, PATIENCE_S)).tenant_id]
        pair.publish("tnt_busy", 2)
        return {*heard, (await asyncio.wait_for(anext(stream), PATIENCE_S)).tenant_id}

    assert play(scene) == {"tnt_busy", "tnt_quiet"}


def test_who_leaves_is_forgotten_and_publishing_to_nobody_is_fine(play: Play) -> None:
    async def scene(pair: Pair) -> int:
        pair.publish("tnt_a", 1)
        first, stream = await started(pair.listens)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await stream.aclose()  # type: ignore[attr-defined]
        pair.publish("tnt_a", 2)
        inner = pair.listens.local if isinstance(pair.listens, NatsBus) else pair.listens
        assert isinstance(inner, MemoryBus)
        return len(inner._subscribers)

    assert play(scene) == 0


# --- of NATS alone ---


def test_after_nats_was_away_every_level_is_said_again_s822(nats_server: Nats) -> None:
    """S822: what was committed meanwhile too; here nobody waited for it."""

    async def scene() -> None:
        heads: dict[str, int] = {}
        url = f"{nats_server.url}/again"
        async with gateway(url, heads) as (one, line), gateway(url, heads) as (other, _):
            await met(one, other, heads)
            stream = other.subscribe()
            local = one.subscribe()
            heard, at_home = asyncio.ensure_future(anext(stream)), asyncio.ensure_future(anext(local))
            await asyncio.sleep(0)
            await asyncio.to_thread(nats_server.kill)
            heads["tnt_a"] = 41
            one.publish(CommitNotice("tnt_a", 41))
            assert await asyncio.wait_for(at_home, PATIENCE_S) == CommitNotice("tnt_a", 41)
            assert not heard.done()
            await asyncio.to_thread(nats_server.start)
            async with asyncio.timeout(PATIENCE_S):
                while (await heard).tenant_id != "tnt_a":  # the level of `met` is said again as well
                    heard = asyncio.ensure_future(anext(stream))
            assert heard.result() == CommitNotice("tnt_a", 41)
            assert line.connections == 2

    asyncio.run(scene())


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return certificate, private


def test_over_tls_only_a_server_that_the_system_trusts_is_spoken_to_s820(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S820: `tls://` is no decoration."""
    certificate, private = self_signed(tmp_path)

    async def scene(url: str) -> None:
        with pytest.raises(NatsUnavailable, match="certificate"):
            await wire.connect(url, "test")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        heads: dict[str, int] = {}
        async with gateway(f"{url}/t", heads) as (one, _), gateway(f"{url}/t", heads) as (other, _):
            await met(one, other, heads)

    with running(f'tls {{ cert_file: "{certificate}", key_file: "{private}" }}') as server:
        asyncio.run(scene(f"tls://localhost:{server.port}"))


def test_noise_echoes_other_houses_and_false_levels_wake_nobody_s823(nats_server: Nats) -> None:
    """S823: a level that the record does not reach is told as what the record says, or not at all."""

    async def scene() -> list[CommitNotice]:
        heads = {"tnt_a": 5}
        url = f"{nats_server.url}/noise"
        async with gateway(url, heads) as (one, _), gateway(url, heads) as (other, _):
            await met(one, other, heads)
            stream = one.subscribe()
            first = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            client = await nats_py.connect(nats_server.url)
            said = [
                {"house": "elsewhere", "gateway": "x", "levels": {"tnt_a": 9}},
                {"house": "house", "gateway": one._gateway, "levels": {"tnt_a": 9}},
                {"house": "house", "gateway": "x", "levels": {"tnt_unknown": 9, "a b": 9, "": 1}},
                {"house": "house", "gateway": "x", "levels": {f"t{n}": 1 for n in range(501)}},
                {"house": "house", "gateway": "x", "levels": {"tnt_a": "many"}},
            ]
            noise = [b"", b"\xff", b"[" * 100_000, *(msgspec.json.encode(one) for one in said)]
            for body in noise:
                await client.publish("noise.notice", body)
            last = {"house": "house", "gateway": "x", "levels": {"tnt_a": 2**62}}
            await client.publish("noise.notice", msgspec.json.encode(last))
            await client.close()
            return [await asyncio.wait_for(first, PATIENCE_S)]

    assert asyncio.run(scene()) == [CommitNotice("tnt_a", 5)]


def test_a_server_that_offers_no_tls_is_told_nothing_by_who_demands_it_s820() -> None:
    """S820: nats-py leaves it to the server; whoever sits between could have the password for the asking."""
    heard: list[bytes] = []

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","version":"2.10.0","max_payload":1048576,"headers":true}\r\n')
        heard.append(await reader.read(1_000))
        writer.close()

    async def scene() -> None:
        async with await asyncio.start_server(served, "127.0.0.1") as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(NatsUnavailable, match="no TLS"):
                await wire.connect(f"tls://hush@127.0.0.1:{port}", "test")

    asyncio.run(scene())
    assert heard == [b""]


HEADS = (b"NATS/1.0 \xff\xff\xff\r\n\r\n", b"NATS/1.0", b"NATS/1.0 503 \xff\r\n\r\n", b"\xff" * 20)


def test_a_header_that_is_no_text_does_not_end_the_reading_s838(nats_server: Nats) -> None:
    """S838: out of a stream it would come again and again, and stop every gateway each time.

    The server itself drops one of these now and then (the client counts fewer that came in), so each is sent
    three times, and what is asked is that the reading goes on to the message behind them.
    """

    async def scene() -> list[bytes]:
        one = await wire.connect(nats_server.url, "test")
        heard = await one.client.subscribe("noise.*")
        await one.client.flush()
        _, writer = await asyncio.open_connection("127.0.0.1", nats_server.port)
        writer.write(b'CONNECT {"headers":true,"verbose":false}\r\n')
        for head in HEADS * 3:
            writer.write(b"HPUB noise.x %d %d\r\n%s\r\n" % (len(head), len(head) + 2, head + b"{}"))
        writer.write(b"PUB noise.y 4\r\nlast\r\n")
        found: list[bytes] = []
        while b"last" not in found:
            found.append((await heard.next_msg(timeout=PATIENCE_S)).data)
        writer.close()
        await writer.wait_closed()
        await wire.close(one)
        return found

    *before, last = asyncio.run(scene())
    assert len(before) > len(HEADS) and set(before) == {b"{}"} and last == b"last"
