"""Numbers that agree with their noun in sentences for people."""

from __future__ import annotations


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """`1 agent`, `2 agents`; `nouns` is the plural where it does not just end in s."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
