"""What a tenant has ruled about text that must not be kept, and for how long text is kept at all.

Law: a rule is never edited; it holds from the version that added it to the one that removed it. Rules that
ended lately stay in the book, so that a message sent again is known although the rules have changed since.
The book's `secret` keys the hashes that stand in the place of text: it is never served.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

RuleType = Literal["builtin", "pattern", "field"]
# What can be found without a pattern of one's own, in the order in which it is looked for.
KINDS: Final[dict[str, str]] = {
    "private_key": "A private key in PEM form, from its first line to its last.",
    "jwt": "A JSON Web Token: three parts in base64, the first beginning with eyJ.",
    "bearer_token": "What stands behind the word Bearer or Basic.",
    "aws_key": "An AWS access key id, and a secret key that is called one.",
    "api_key": "A key with the prefix of its maker: OpenAI, Anthropic, GitHub, Stripe, Slack and others.",
    "password": "What is called a password, secret or token: in text, in a URL, under such a name.",
    "credit_card": "13 to 19 digits whose Luhn sum is right.",
    "email": "An e-mail address.",
}
# So many versions back a repeat is looked for; see `RedactionBook.sets_before`.
PAST: Final = 8
MAX_RULES: Final = 50


class RedactionRule(Struct, frozen=True, kw_only=True):
    """`name` is what stands in the place of the text: a kind of ours, or a word of the tenant's own."""

    rule_id: str
    type: RuleType
    name: str
    since: int
    created_ns: int
    created_by: str
    pattern: str | None = None
    path: str | None = None
    note: str = ""
    until: int | None = None
    ended_ns: int | None = None


class RedactionBook(Struct, frozen=True, kw_only=True):
    version: int
    secret: str
    rules: tuple[RedactionRule, ...] = ()

    @property
    def in_force(self) -> tuple[RedactionRule, ...]:
        return self.at(self.version)

    def at(self, version: int) -> tuple[RedactionRule, ...]:
        return tuple(
            rule
            for rule in self.rules
            if rule.since <= version and (rule.until is None or rule.until > version)
        )

    def sets_before(self, since_ns: int = 0) -> list[tuple[RedactionRule, ...]]:
        """The rules of the last versions, the newest first; of those that ended then or later."""
        began = {rule.since: rule.created_ns for rule in self.rules}
        began |= {rule.until: rule.ended_ns for rule in self.rules if rule.until and rule.ended_ns}
        first = max(0, self.version - PAST)
        return [
            self.at(version)
            for version in range(self.version - 1, first - 1, -1)
            if began.get(version + 1, since_ns) >= since_ns
        ]


class Retention(Struct, frozen=True, kw_only=True):
    """After so many days payloads are shredded; None keeps them. `thoughts`: their words too."""

    days: int | None = None
    thoughts: bool = False
