"""The ledger: hash chain, Merkle log and verifier. Pure functions; no clock, disk or network.

Deliberately imports nothing: `ledger.verify` must be loadable without any of the writer's code.
"""
