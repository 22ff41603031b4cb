"""Constants for importing an archive."""

from __future__ import annotations

from observatory.pipeline.interceptor import MessageLimits

# What was accepted under old limits is not refused under new ones.
NO_LIMIT = MessageLimits(message_bytes=1 << 40)


# The setting that holds up to which event a tenant was imported.
IMPORTED = "imported"
