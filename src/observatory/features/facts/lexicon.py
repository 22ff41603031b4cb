"""Word lists for comparing claims: stop words, and words that must agree.

English only: texts in other languages are compared by their words and figures alone.
"""

from __future__ import annotations

from typing import Final


def listed(text: str) -> list[str]:
    return text.split()


STOP: Final = frozenset(
    listed(
        "a an the of on in at to is are was were be been being am for by with and that this these "
        "those it its as from will would shall has have had do does did which who whom their his her "
        "our your my we they he she i you s also there here so then thus therefore hence according "
        "per usd dollar dollars than"
    )
)
MONTHS: Final = listed(
    "january february march april may june july august september october november december"
)
DAYS: Final = listed("monday tuesday wednesday thursday friday saturday sunday")
DENIAL: Final = frozenset(
    listed(
        "not no never none nor neither cannot without wrong false untrue incorrect mistaken myth "
        "retracted retract outdated fabricated invalid hallucinated hallucination refuted disproved "
        "instead"
    )
)
HEDGES: Final = listed(
    "maybe perhaps possibly probably might could may allegedly supposedly reportedly unless "
    "except only if almost nearly about roughly approximately around likely unlikely assume "
    "assumed unsure estimated projected planned expected"
)
DIRECTIONS: Final = listed(
    "before after until since above below over under up down more less most least increase "
    "decrease increased decreased rise fall rose fell grew shrank true yes open closed opened "
    "enabled disabled off buy sell bought sold win lose won lost gain loss start end begin first "
    "second third fourth fifth sixth last next previous former current old new minimum maximum "
    "min max net gross total average quarter half month week day hour year annual quarterly "
    "monthly weekly daily hourly staging production development test beta north south east west "
    "left right internal external public private read write eur gbp jpy chf euro euros"
)
UNITS: Final = {
    "b": "billion", "bn": "billion", "billions": "billion", "m": "million", "mn": "million",
    "mm": "million", "millions": "million", "k": "thousand", "thousands": "thousand", "%": "percent",
    "pct": "percent", "t": "trillion", "tn": "trillion",
}  # fmt: skip
COUNTED: Final = {
    word: str(number)
    for number, word in enumerate(
        listed("zero one two three four five six seven eight nine ten eleven twelve")
    )
}
ORDINALS: Final = frozenset({"st", "nd", "rd", "th"})
# Words that are synonyms in every sentence; near-synonyms are not included.
ALIKE: Final = {
    word: group.split()[0]
    for group in (
        "end close finish conclude ending",
        "start begin commence open",
        "buy purchase acquire",
        "use utilise utilize",
        "locate situate",
    )
    for word in group.split()
}
