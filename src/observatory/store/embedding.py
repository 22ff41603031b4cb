"""Static embeddings: 256 numbers per text from a table of token vectors, on the CPU, without a network.

The table and its tokenizer are in wordllama's wheel and are read from there as files: importing the package
would configure logging and load an HTTP client, and its pooling pads every text of a batch to the longest. If
they cannot be read there is no embedder; everything else works.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

log = logging.getLogger("observatory.search")
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
DIMENSIONS = 256
BYTES = DIMENSIONS // 8
CHARS = 1_000  # characters of a text that are embedded
KNOWN = 20_000  # cached words
NONE: Final = bytes(BYTES)  # embedding of a text without words

Vectors = NDArray[np.float32]
Table = NDArray[np.float16]


class Embedder:
    """Texts are words with a space between (`features/search/words.plain`); tokens never span a space, so a
    word is tokenized once and cached: this tokenizer is slow on whole texts."""

    def __init__(self, tokenizer: Any, table: Table) -> None:
        self._tokenizer, self._table = tokenizer, table
        self._known: dict[str, list[int]] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A unit vector for each text; zero for a text without words."""
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            tokens = self._tokens(text[:CHARS])
            if tokens:
                vectors[row] = self._table.take(tokens, axis=0).astype(np.float32).sum(axis=0)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return vectors

    def _tokens(self, text: str) -> list[int]:
        known = self._known  # shared by threads: at worst a word is tokenized twice
        found: list[int] = []
        for word in text.split():
            tokens = known.get(word)
            if tokens is None:
                if len(known) >= KNOWN:
                    known.clear()
                tokens = known[word] = self._tokenizer.encode(word, add_special_tokens=False).ids
            found += tokens
        return found


def bits_of(vectors: Vectors) -> list[bytes]:
    """The sign of each number: 32 bytes per text."""
    return [row.tobytes() for row in np.packbits(vectors > 0, axis=1)]


@lru_cache(maxsize=1)
def embedder() -> Embedder | None:
    """The embedder, loaded once per process on first use. Slow: call it in a thread."""
    try:
        return _read()
    except Exception as error:  # noqa: BLE001  whatever is missing or broken: search works without it
        log.warning("semantic search is not available: %s", type(error).__name__)
        return None


def _read() -> Embedder:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the CPU cores are for ingest
    from tokenizers import Tokenizer

    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("wordllama is not installed")
    folder = Path(next(iter(spec.submodule_search_locations)))
    table = _table(folder / WEIGHTS)
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if table.shape[1] != DIMENSIONS or tokenizer.get_vocab_size() > table.shape[0]:
        raise ValueError("the table does not match the tokenizer")
    return Embedder(tokenizer, table)


def _table(path: Path) -> Table:
    """Memory-mapped from its file (safetensors): only tokens that occur are loaded."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        found = msgspec.json.decode(file.read(size))["embedding.weight"]
    if found["dtype"] != "F16":
        raise ValueError("the table does not contain half floats")
    start = 8 + size + found["data_offsets"][0]
    return np.memmap(path, dtype=np.float16, mode="r", offset=start, shape=tuple(found["shape"]))
