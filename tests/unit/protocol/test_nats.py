"""The words spoken over NATS: addresses, letters, answers and the frames of a channel."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.protocol import nats
from observatory.protocol.credentials import digest, new_key, public_id
from observatory.protocol.nats import InvalidNatsAddress, NatsReply, NatsRequest
from observatory.protocol.nats_frames import ChannelBroken, FrameReceiver, FrameSender, Packet, channel_secret

KEY = new_key()
SECRET = nats.secret_of(digest(KEY))
LETTER = NatsRequest(
    "o.ingest.x", public_id(KEY) or "", 7, "POST /v1/messages", "_INBOX.a.b", b"{}", "k", "e"
)


@pytest.mark.parametrize(
    ("url", "servers", "prefix", "shown"),
    [
        ("nats://h", ("nats://h:4222",), "observatory", "nats://h:4222/observatory"),
        ("nats://h:1/p-1/", ("nats://h:1",), "p-1", "nats://h:1/p-1"),
        ("tls://u:p@a,b:5/x", ("tls://u:p@a:4222", "tls://b:5"), "x", "tls://a:4222,b:5/x"),
        (
            "nats://tok%40en@[::1]:9",
            ("nats://tok%40en@[::1]:9",),
            "observatory",
            "nats://[::1]:9/observatory",
        ),
    ],
)
def test_an_address_is_read_and_shown_without_its_secrets_s820_s839(
    url: str, servers: tuple[str, ...], prefix: str, shown: str
) -> None:
    found = nats.address(url)
    assert (found.servers, found.prefix, found.shown) == (servers, prefix, shown)
    assert "u:p" not in repr(found) and "tok" not in repr(found)


@pytest.mark.parametrize(
    ("server", "login"),
    [
        ("nats://h:1", ("nats://h:1", None, None, None)),
        ("tls://u:p%40%2C%3A%2F@h:1", ("tls://h:1", "u", "p@,:/", None)),
        ("nats://tok%40en@[::1]:9", ("nats://[::1]:9", None, None, "tok@en")),
        ("nats://u:@h:1", ("nats://h:1", "u", "", None)),
    ],
)
def test_what_was_percent_encoded_in_an_address_is_shown_to_the_server_plain_s820(
    server: str, login: tuple[str | None, ...]
) -> None:
    assert nats.login(server) == login


BAD = """nats nats:// nats:///p http://h nats://h:x nats://h:99999 nats://h, nats://h/A nats://h/a.b nats://h/a/b/c
nats://h?x=1 nats://:hush@"""


@pytest.mark.parametrize("url", [*BAD.split(), "", "nats://h h/p", f"nats://h/{'p' * 33}"])
def test_what_is_no_address_is_told_without_being_quoted_s820(url: str) -> None:
    with pytest.raises(InvalidNatsAddress) as received:
        nats.address(url)
    assert "hush" not in str(received.value)


def test_a_letter_comes_out_as_it_went_in_and_shows_no_key_s825() -> None:
    headers = nats.nats_headers(LETTER, SECRET)
    assert KEY not in str(headers) and digest(KEY).hex() not in str(headers)
    found = nats.parse_request(LETTER.subject, headers, LETTER.body)
    assert found is not None
    letter, signature = found
    assert letter == LETTER and nats.is_signed(SECRET, signature, *letter.parts())


@pytest.mark.parametrize("field", NatsRequest._fields)
def test_no_part_of_a_letter_can_be_changed_s825(field: str) -> None:
    """S825: not the subject, the time, the call, where the answer goes, nor a byte of the body."""
    signature = nats.nats_headers(LETTER, SECRET)[nats.SIGNATURE]
    value = getattr(LETTER, field)
    changed: Any = {field: value + 1 if isinstance(value, int) else value + value[:1]}
    assert not nats.is_signed(SECRET, signature, *LETTER._replace(**changed).parts())
    assert not nats.is_signed(nats.secret_of(digest(new_key())), signature, *LETTER.parts())


@given(st.lists(st.binary(max_size=20), max_size=5), st.lists(st.binary(max_size=20), max_size=5))
def test_no_two_lists_of_parts_are_signed_alike_s825(one: list[bytes], other: list[bytes]) -> None:
    assert (nats.sign(SECRET, *one) == nats.sign(SECRET, *other)) == (one == other)


@given(
    st.dictionaries(st.sampled_from([nats.KEY, nats.TIME, nats.SIGNATURE, nats.REPLY, nats.CALL]), st.text())
)
def test_whatever_the_headers_hold_it_is_a_letter_or_none(headers: dict[str, str]) -> None:
    found = nats.parse_request("s", headers, b"")
    assert found is None or found[0].public == headers[nats.KEY]


OTHERS = ("_INBOX", "_INBOX.*", "_INBOX.>", "_INBOX..a", "observatory.notice", "$JS.API.x", "_INBOX.a b", "")


def test_answers_go_to_inboxes_only_s832() -> None:
    assert all(nats.is_inbox(subject) for subject in ("_INBOX.a", "_INBOX_x.a.b"))
    assert [subject for subject in OTHERS if nats.is_inbox(subject)] == []


def test_only_a_signed_answer_to_this_letter_is_believed_s830() -> None:
    """S830: without a signature nothing but that it must wait, which makes nobody forget anything."""
    signature = nats.nats_headers(LETTER, SECRET)[nats.SIGNATURE]
    good = NatsReply(202, b'{"status":"accepted"}', "1")
    headers = nats.reply_headers(good, signature, SECRET)

    def read(headers: dict[str, str], body: bytes = good.body, to: str = signature) -> NatsReply | None:
        return nats.read_reply(headers, body, to, SECRET)

    assert read(headers) == good
    assert read(headers, b"{}") is None, "another body"
    assert read(headers, to="0" * 64) is None, "the answer to another letter"
    assert read(headers | {nats.STATUS: "200"}) is None
    assert read(headers | {nats.RETRY_AFTER: "9"}) is None
    for status, believed in (
        (200, False),
        (202, False),
        (401, True),
        (403, False),
        (409, False),
        (429, True),
        (500, False),
        (503, True),
    ):
        unsigned = nats.reply_headers(NatsReply(status, b"{}"), signature, None)
        assert (read(unsigned, b"{}") is not None) is believed
    assert read({}) is None and read({nats.STATUS: "x"}) is None
    assert read({nats.STATUS: "202", nats.SIGNATURE: "\udcff", nats.RETRY_AFTER: "\udcff"}) is None


def ends(max_payload: int = 4_096, max_bytes: int = 1 << 20) -> tuple[FrameSender, FrameReceiver]:
    secret = channel_secret(SECRET, "asked", "answered")
    return FrameSender(secret, b"there", max_payload), FrameReceiver(secret, b"there", max_bytes)


@given(st.lists(st.binary(max_size=20_000), max_size=5))
def test_frames_come_out_whole_and_in_order_however_they_were_cut_s833_s837(frames: list[bytes]) -> None:
    out, into = ends()
    packets = [packet for frame in frames for packet in out.packets("frame", frame)]
    assert all(len(packet.body) <= 4_096 for packet in packets)
    heard = [into.take(packet.headers, packet.body) for packet in packets]
    assert [one for one in heard if one is not None] == [("frame", frame) for frame in frames]


def test_a_lost_or_repeated_frame_breaks_the_channel_and_a_forged_one_did_not_come_s833() -> None:
    out, into = ends()
    first, second, third = [next(iter(out.packets("frame", b"%d" % n))) for n in range(3)]
    assert into.take(first.headers, first.body) == ("frame", b"0")
    forged = Packet(second.headers, b"kill everybody")
    assert into.take(forged.headers, forged.body) is None
    assert into.take(None, b"") is None
    assert into.take({nats.SEQ: "\udcff", nats.OP: "frame", nats.SIGNATURE: "\udcff"}, b"") is None
    other = next(
        iter(FrameSender(channel_secret(SECRET, "asked", "answered"), b"back", 4_096).packets("frame"))
    )
    assert into.take(other.headers, other.body) is None, "what we said ourselves"
    with pytest.raises(ChannelBroken, match="twice"):
        into.take(first.headers, first.body)
    with pytest.raises(ChannelBroken, match="lost"):
        into.take(third.headers, third.body)
    assert into.take(second.headers, second.body) == ("frame", b"1")


def test_a_frame_without_end_is_not_collected_for_ever_s837() -> None:
    out, into = ends(max_bytes=10_000)
    packets = list(out.packets("frame", b"x" * 50_000))
    with pytest.raises(ChannelBroken, match="large"):
        [into.take(packet.headers, packet.body) for packet in packets]
