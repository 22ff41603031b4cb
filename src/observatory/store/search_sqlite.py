"""The word index on SQLite: a contentless FTS5 table.

New documents' words are inserted explicitly: a trigger costs four times as much, because it makes each of
them a savepoint of the index. Changed or deleted documents are few: triggers remove their words. A row's id
is the tenant's slot and the message's sequence number, so that a tenant's words are one range and the newest
hits come first without sorting. Documents contain only words (features/search/words.py) separated by spaces;
any other character is therefore part of a word here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from sqlalchemy import BigInteger, Subquery, Text, bindparam, column, text

from observatory.derived.tables import documents
from observatory.derived.writes import Upsert
from observatory.store.keys import SEQ_BITS, SEQ_MASK
from observatory.store.search_query import Term, WordQuery


def _row(which: str) -> str:
    return (
        f"(SELECT place FROM insight_places WHERE tenant_id = {which}.tenant_id) << {SEQ_BITS} | {which}.seq"
    )


PUT = f"INSERT INTO insight_words (rowid, body) VALUES ({_row('new')}, new.body);"
TAKE = f"INSERT INTO insight_words (insight_words, rowid, body) VALUES ('delete', {_row('old')}, old.body);"
DDL = (
    "CREATE TABLE insight_places (place INTEGER PRIMARY KEY, tenant_id TEXT NOT NULL UNIQUE)",
    "CREATE VIRTUAL TABLE insight_words USING fts5(body, content='', columnsize=0, "
    "tokenize=\"unicode61 remove_diacritics 0 categories 'L* M* N* S* P* Co Cn'\")",
    f"CREATE TRIGGER insight_words_take AFTER DELETE ON insight_documents BEGIN {TAKE} END",
    "CREATE TRIGGER insight_words_change AFTER UPDATE ON insight_documents WHEN old.body <> new.body "
    f"BEGIN {TAKE} {PUT} END",
)
NAME = documents.name
ADD = "INSERT INTO insight_documents (tenant_id, seq, meant, body) VALUES (?, ?, ?, ?)"
CHANGE = "UPDATE insight_documents SET meant = ?, body = ? WHERE tenant_id = ? AND seq = ?"
ADD_WORDS = "INSERT INTO insight_words (rowid, body) VALUES (?, ?)"
KNOWN_PLACE = "SELECT place FROM insight_places WHERE tenant_id = ?"
NEW_PLACE = "INSERT INTO insight_places (tenant_id) VALUES (?)"
PLACE = f"((SELECT place FROM insight_places WHERE tenant_id = :of_tenant) << {SEQ_BITS})"
HITS = (
    f"SELECT rowid & {SEQ_MASK} AS seq FROM insight_words WHERE insight_words MATCH :words "
    f"AND rowid > {PLACE} + :past AND rowid <= {PLACE} + :upto ORDER BY rowid DESC LIMIT :most"
)


def put_documents(
    connection: sqlite3.Connection, tenant_id: str, after: int, upserts: Iterable[Upsert]
) -> None:
    """Insert the documents among the upserts; one numbered up to `after` may exist already."""
    given = (
        dict(zip(one.columns, row, strict=True)) for one in upserts if one.table == NAME for row in one.rows
    )
    made = {row["seq"]: (row["meant"], row["body"]) for row in given}
    new = [
        (seq, *words)
        for seq, words in made.items()
        if seq > after or not connection.execute(CHANGE, (*words, tenant_id, seq)).rowcount
    ]
    if not new:
        return
    row = connection.execute(KNOWN_PLACE, (tenant_id,)).fetchone()
    place: Any = row[0] if row else connection.execute(NEW_PLACE, (tenant_id,)).lastrowid
    connection.executemany(ADD, [(tenant_id, *one) for one in new])
    connection.executemany(ADD_WORDS, [(place << SEQ_BITS | seq, body) for seq, _, body in new])


def hits(tenant_id: str, wanted: WordQuery, after: int, until: int, most: int) -> Subquery:
    bound = text(HITS).bindparams(
        bindparam("of_tenant", tenant_id, Text),
        bindparam("words", match(wanted), Text),
        bindparam("past", after, BigInteger),
        bindparam("upto", until, BigInteger),
        bindparam("most", most, BigInteger),
    )
    return bound.columns(column("seq", BigInteger)).subquery("hits")


def match(wanted: WordQuery) -> str:
    """The query in FTS5 syntax; every word is quoted, and contains letters and digits only."""
    asked = " AND ".join(_any(group) for group in wanted.every)
    return f"({asked}) NOT {_any(wanted.none)}" if wanted.none else asked


def _any(terms: tuple[Term, ...]) -> str:
    return f"({' OR '.join(_quoted(term) for term in terms)})"


def _quoted(term: Term) -> str:
    text = term.text.replace('"', "")
    return f'"{text}"*' if term.prefix else f'"{text}"'
