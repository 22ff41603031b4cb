"""Random figures from a seeded generator."""

from random import Random


def score(rng: Random, middle: float) -> float:
    return round(min(max(rng.gauss(middle, 0.06), 0.05), 0.99), 2)


def new_run(rng: Random) -> str:
    return f"{rng.randrange(16**6):06x}"
