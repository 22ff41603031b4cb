"""The word index on SQLite: FTS5 without content of its own, kept by triggers on the documents.

A row's id is the tenant's place and the message's number, so that a tenant's words are one range of it and
the newest hits come first without sorting. The documents hold only words (insight/words.py) with a space
between; whatever is no space is therefore part of a word here.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Subquery, Text, bindparam, column, text

from observatory.insight.search import Term, Wanted
from observatory.store.keys import SEQ_BITS, SEQ_MASK


def _row(which: str) -> str:
    return (
        f"(SELECT place FROM insight_places WHERE tenant_id = {which}.tenant_id) << {SEQ_BITS} | {which}.seq"
    )


PUT = f"INSERT INTO insight_words (rowid, body) VALUES ({_row('new')}, new.body);"
TAKE = f"INSERT INTO insight_words (insight_words, rowid, body) VALUES ('delete', {_row('old')}, old.body);"
MEET = (
    "INSERT INTO insight_places (tenant_id) SELECT new.tenant_id "
    "WHERE NOT EXISTS (SELECT 1 FROM insight_places WHERE tenant_id = new.tenant_id);"
)
DDL = (
    "CREATE TABLE insight_places (place INTEGER PRIMARY KEY, tenant_id TEXT NOT NULL UNIQUE)",
    "CREATE VIRTUAL TABLE insight_words USING fts5(body, content='', columnsize=0, "
    "tokenize=\"unicode61 remove_diacritics 0 categories 'L* M* N* S* P* Co Cn'\")",
    f"CREATE TRIGGER insight_words_put AFTER INSERT ON insight_documents BEGIN {MEET} {PUT} END",
    f"CREATE TRIGGER insight_words_take AFTER DELETE ON insight_documents BEGIN {TAKE} END",
    "CREATE TRIGGER insight_words_change AFTER UPDATE ON insight_documents WHEN old.body <> new.body "
    f"BEGIN {TAKE} {PUT} END",
)
PLACE = f"((SELECT place FROM insight_places WHERE tenant_id = :of_tenant) << {SEQ_BITS})"
HITS = (
    f"SELECT rowid & {SEQ_MASK} AS seq FROM insight_words WHERE insight_words MATCH :words "
    f"AND rowid > {PLACE} + :past AND rowid <= {PLACE} + :upto ORDER BY rowid DESC LIMIT :most"
)


def hits(tenant_id: str, wanted: Wanted, after: int, until: int, most: int) -> Subquery:
    bound = text(HITS).bindparams(
        bindparam("of_tenant", tenant_id, Text),
        bindparam("words", match(wanted), Text),
        bindparam("past", after, BigInteger),
        bindparam("upto", until, BigInteger),
        bindparam("most", most, BigInteger),
    )
    return bound.columns(column("seq", BigInteger)).subquery("hits")


def match(wanted: Wanted) -> str:
    """In FTS5's words; every word stands in quotes, and holds letters and digits only."""
    asked = " AND ".join(_any(group) for group in wanted.every)
    return f"({asked}) NOT {_any(wanted.none)}" if wanted.none else asked


def _any(terms: tuple[Term, ...]) -> str:
    return f"({' OR '.join(_quoted(term) for term in terms)})"


def _quoted(term: Term) -> str:
    said = term.text.replace('"', "")
    return f'"{said}"*' if term.prefix else f'"{said}"'
