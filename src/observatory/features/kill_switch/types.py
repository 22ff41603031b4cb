"""Bounds of the kill switch."""

from __future__ import annotations

# Notified in the engaging transaction; agents beyond this learn of it when they connect.
MAX_NOTIFIED = 20_000
