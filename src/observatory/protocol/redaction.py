"""A tenant's redaction rules and retention time.

Law: a rule is never edited; it applies from the version that added it to the one that removed it. Recently
removed rules are kept, so that a repeated message is recognised although the rules have changed since. The
`secret` keys the hashes that replace redacted text: it is never served.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

RuleType = Literal["builtin", "pattern", "field"]
# Built-in detectors, in the order in which they are applied.
KINDS: Final[dict[str, str]] = {
    "private_key": "A private key in PEM form, from its first line to its last.",
    "jwt": "A JSON Web Token: three parts in base64, the first beginning with eyJ.",
    "bearer_token": "What follows the word Bearer or Basic.",
    "aws_key": "An AWS access key id, and a secret key labelled as one.",
    "api_key": "A key with its vendor's prefix: OpenAI, Anthropic, GitHub, Stripe, Slack and others.",
    "password": "A value labelled password, secret or token: in text, in a URL, in a field of that name.",
    "credit_card": "13 to 19 digits with a valid Luhn checksum.",
    "email": "An e-mail address.",
}
# A repeat is looked for this many versions back; see `RedactionBook.sets_before`.
MAX_PAST_VERSIONS: Final = 8
MAX_RULES: Final = 50


class RedactionRule(Struct, frozen=True, kw_only=True):
    """`name` is what replaces the text: a built-in kind, or a name chosen by the tenant."""

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


class RedactionRules(Struct, frozen=True, kw_only=True):
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
        """The rule sets of the previous versions, newest first, that ended at `since_ns` or later."""
        began = {rule.since: rule.created_ns for rule in self.rules}
        began |= {rule.until: rule.ended_ns for rule in self.rules if rule.until and rule.ended_ns}
        first = max(0, self.version - MAX_PAST_VERSIONS)
        return [
            self.at(version)
            for version in range(self.version - 1, first - 1, -1)
            if began.get(version + 1, since_ns) >= since_ns
        ]


class Retention(Struct, frozen=True, kw_only=True):
    """Payloads are shredded after `days`; None keeps them. `thoughts`: also the text of thoughts."""

    days: int | None = None
    thoughts: bool = False
