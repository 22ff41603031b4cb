"""Benchmarks and long fault runs: the real server process, lean clients, every ratio within one run.

Nothing here imports the tests, and nothing of the product imports this.
"""
