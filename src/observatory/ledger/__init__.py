"""The ledger: pure mathematics over mappings and bytes, no clock, no disk, no network.

Nothing is imported here on purpose: `ledger.verify` must be loadable without any of the writer's code.
"""
