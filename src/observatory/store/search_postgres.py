"""The word index on PostgreSQL: a tsvector with a GIN index, updated by triggers on the documents.

Row policies cannot protect it: `@@` is not leakproof, and under a policy PostgreSQL would not use the index.
So the working role has no rights on this table. Two functions of the owner access it, restricted to the
tenant the connection has set: they implement what a policy would. They name the schema they were created in
and search the caller's temporary tables last, so that no table can be substituted.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Subquery, Text, bindparam, column, text

from observatory.store.search_query import Term, WordQuery

# The words unchanged, each at its position: the text parser would split some of them.
VECTOR = (
    "(SELECT string_agg('''' || word || ''':' || place, ' ') "
    "FROM unnest(string_to_array(new.body, ' ')) WITH ORDINALITY AS told (word, place) "
    "WHERE place <= 16383 AND word <> '')::tsvector"
)
SAFE = "SECURITY DEFINER SET search_path = pg_catalog, %1$I, pg_temp"


def _made_here(statement: str) -> str:
    """Replaces `%1$I` with the schema that is current when it is executed."""
    return f"DO $do$ BEGIN EXECUTE format($made${statement}$made$, current_schema()); END $do$"


DDL = (
    "CREATE TABLE insight_words (owner TEXT NOT NULL, seq BIGINT NOT NULL, words TSVECTOR NOT NULL, "
    "PRIMARY KEY (owner, seq))",
    "CREATE INDEX insight_words_words ON insight_words USING gin (words)",
    "REVOKE ALL ON insight_words FROM PUBLIC",
    "DROP FUNCTION IF EXISTS insight_keep_words() CASCADE",
    _made_here(f"""CREATE FUNCTION insight_keep_words() RETURNS trigger LANGUAGE plpgsql
        {SAFE} AS $$
    DECLARE mine text := current_setting('app.tenant');
    BEGIN
        IF TG_OP <> 'INSERT' THEN
            DELETE FROM %1$I.insight_words WHERE owner = mine AND seq = old.seq;
        END IF;
        IF TG_OP <> 'DELETE' AND new.body <> '' THEN
            INSERT INTO %1$I.insight_words VALUES (mine, new.seq, {VECTOR});
        END IF;
        RETURN NULL;
    END $$"""),
    "REVOKE ALL ON FUNCTION insight_keep_words() FROM PUBLIC",
    "DROP FUNCTION IF EXISTS insight_hits(text, bigint, bigint, bigint) CASCADE",
    _made_here(f"""CREATE FUNCTION insight_hits(asked text, past bigint, upto bigint, most bigint)
        RETURNS TABLE (seq bigint) LANGUAGE plpgsql STABLE
        {SAFE} AS $$
    BEGIN
        -- Planned for these very words: rare ones through the index, common ones backwards from the newest.
        RETURN QUERY EXECUTE 'SELECT w.seq FROM %1$I.insight_words w WHERE w.owner = $1 '
            'AND w.words @@ $2 AND w.seq > $3 AND w.seq <= $4 ORDER BY w.seq DESC LIMIT $5'
            USING current_setting('app.tenant'), asked::tsquery, past, upto, most;
    END $$"""),
    "REVOKE ALL ON FUNCTION insight_hits(text, bigint, bigint, bigint) FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION insight_hits(text, bigint, bigint, bigint) TO observatory_app",
    "CREATE TRIGGER insight_words_kept AFTER INSERT OR UPDATE OR DELETE ON insight_documents "
    "FOR EACH ROW EXECUTE FUNCTION insight_keep_words()",
)
HITS = "SELECT seq FROM insight_hits(:words, :past, :upto, :most)"


def hits(tenant_id: str, wanted: WordQuery, after: int, until: int, most: int) -> Subquery:
    """The hits of the tenant the connection has set, which is this one."""
    bound = text(HITS).bindparams(
        bindparam("words", match(wanted), Text),
        bindparam("past", after, BigInteger),
        bindparam("upto", until, BigInteger),
        bindparam("most", most, BigInteger),
    )
    return bound.columns(column("seq", BigInteger)).subquery("hits")


def match(wanted: WordQuery) -> str:
    """The query as a tsquery; every word is quoted, and contains letters and digits only."""
    asked = " & ".join(_any(group) for group in wanted.every)
    return f"{asked} & !{_any(wanted.none)}" if wanted.none else asked


def _any(terms: tuple[Term, ...]) -> str:
    return f"({' | '.join(_quoted(term) for term in terms)})"


def _quoted(term: Term) -> str:
    quoted = [f"'{word}'" for word in (word.replace("'", "").replace("\\", "") for word in term.words)]
    if term.prefix:
        quoted[-1] += ":*"
    return f"({' <-> '.join(quoted)})"
