"""The search index over both databases: found by words, meaning and filters, one tenant at a time."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

import asyncpg
import pytest

from observatory.derived.seen import DerivedWrite
from observatory.features.relay import commands as interventions
from observatory.features.search.types_query import Clause, Scope
from observatory.features.search.vector_index import TenantVectors
from observatory.pipeline.state import HOME_TENANT
from observatory.store import embedding
from observatory.store.search_query import Term, WordQuery
from tests.contract.analysis import Analyst
from tests.contract.conftest import OTHER_TENANT, Harness, PostgresHarness, SqliteHarness
from tests.contract.postgres import ask, execute
from tests.contract.test_relay import AGENT, SESSION, act, new_message, pause, person, rewritten, unpause
from tests.samples import decision_log, envelope

ALL = Scope(1 << 39)


def thought(intent: str, step: str, agent: str = "alpha", **action: Any) -> dict[str, Any]:
    return decision_log(
        meta={"session_id": "ses-1", "step_id": step, "parent_step_id": None},
        identity={"agent_id": agent},
        cognition={"intent": intent, "reasoning_chain": []},
        action={"tool_input": None, "tool_output_summary": None} | action,
        state_delta=None,
    )


def words(*groups: str, none: str = "") -> WordQuery:
    """A group is one term, or several with | between; a trailing * makes a prefix."""
    every = tuple(tuple(term(one) for one in group.split("|")) for group in groups)
    return WordQuery(every, (term(none),) if none else ())


def term(text: str) -> Term:
    return Term(tuple(text.rstrip("*").split()), text.endswith("*"))


class SearchIndexHarness:
    def __init__(self, harness: Harness, analyst: Analyst) -> None:
        self.harness, self.analyst = harness, analyst

    def texts(self, wanted: WordQuery, scope: Scope = ALL, tenant_id: str = HOME_TENANT) -> list[int]:
        return [
            seq
            for seq, _ in self.harness.read(self.analyst.derived.texts(tenant_id, wanted, scope, 100)).found
        ]

    def like(self, text: str, scope: Scope = ALL, tenant_id: str = HOME_TENANT) -> list[int]:
        found = self.harness.read(self.analyst.derived.nearest(tenant_id, text, scope, 10))
        assert found is not None
        return [near.seq for near in found.found if near.likeness > 0.25]


@pytest.mark.req(241, 247)
def test_every_message_is_found_by_its_words_s270(harness: Harness) -> None:
    """S270: words without case and accents, in any order; phrases, prefixes, one of several, exclusions."""
    first, second, third = (
        harness.send(body)[0].answer.sequence_number
        for body in (
            thought("Café prices rise in Zürich, see report_2026.pdf", "1"),
            thought("Prices of café au lait 1e5 2e v1.2", "2"),
            thought("日本語の報告 and nothing else", "3"),
        )
    )
    with Analyst(harness) as analyst:
        analyst.catch_up()
        index_harness = SearchIndexHarness(harness, analyst)
        cases = [
            (words("cafe"), [second, first]),
            (words("prices", "cafe"), [second, first]),
            (words("cafe prices"), [first]),
            (words("report 2026 pdf"), [first]),
            (words("pric*", "zuri*"), [first]),
            (words("zurich|lait"), [second, first]),
            (words("cafe", none="lait"), [first]),
            (words("日 本 語"), [third]),
            (words("本 日"), []),
            (words("1e5"), [second]),
            (words("2e"), [second]),
            (words("v1 2"), [second]),
            (words("alpha"), [third, second, first]),
            (words("nothing at all"), []),
        ]
        for wanted, expected in cases:
            assert index_harness.texts(wanted) == expected, wanted


def test_all_kinds_of_messages_are_documents_s270(harness: Harness) -> None:
    """S270: the text of every payload is found."""
    kinds = {
        "text": {"content": "quokka one"},
        "status_alert": {"summary": "quokka two"},
        "decision_request": {"description": "quokka three"},
        "artifact_share": {"title": "quokka five"},
        "action_confirmation": {"summary": "quokka six"},
        "heartbeat": {"current_task": {"task_id": "tsk_1", "description": "quokka seven"}},
        "system_event": {"reason": "quokka eight"},
    }
    for kind, payload in kinds.items():
        (verdict,) = harness.send(envelope(kind, payload=payload))
        assert verdict.code in (200, 202), (kind, verdict.answer)
    with Analyst(harness) as analyst:
        analyst.catch_up()
        found = SearchIndexHarness(harness, analyst).texts(words("quokka"))
    assert len(found) == len(kinds)


@pytest.mark.req(221, 247)
def test_what_means_the_same_is_found_without_a_shared_word_s274(harness: Harness) -> None:
    """S274: by likeness, nearest first; within filters."""
    refund, ship, other = (
        harness.send(thought(text, str(at), agent))[0].answer.sequence_number
        for at, (text, agent) in enumerate(
            (
                ("Buyer asks for a refund of the damaged phone", "alpha"),
                ("The ship leaves the harbour at dawn", "beta"),
                ("Kubernetes pod restarted after running out of memory", "alpha"),
            )
        )
    )
    with Analyst(harness) as analyst:
        analyst.catch_up()
        index_harness = SearchIndexHarness(harness, analyst)
        assert index_harness.like("customer wants his money back")[:1] == [refund]
        assert index_harness.like("vessel departs from port in the morning")[:1] == [ship]
        only = Scope(1 << 39, 0, (Clause("tool", ("serp_search",)),))
        assert index_harness.like("vessel departs from port in the morning", only)[:1] == [ship]
        agents = {row["seq"]: row["agent_no"] for row in analyst.table("insight_steps")}
        elsewhere = Scope(1 << 39, 0, (Clause("agent", (agents[other],)),))
        assert ship not in index_harness.like("vessel departs from port in the morning", elsewhere)
        assert index_harness.like("vessel departs from port in the morning", Scope(ship - 1))[:1] != [ship]
        late = harness.send(thought("A boat sails off early", "late"))[0].answer.sequence_number
        assert late not in index_harness.like("boat sailing off")
        analyst.catch_up()
        assert index_harness.like("boat sailing off")[:1] == [late]
        assert index_harness.like("") == []


def test_filters_are_conditions_on_the_steps_s273_s661(harness: Harness) -> None:
    """S273, S661: names, figures and times, kept or left out, with and without words; counted by time."""
    harness.send(thought("alpha fails badly", "1", "alpha", status="failure", tool_call="db"))
    harness.send(thought("beta works fine", "2", "beta", status="success", tool_call="web"))
    harness.send(thought("beta fails badly", "3", "beta", status="failure", tool_call="web"))
    with Analyst(harness) as analyst:
        analyst.catch_up()
        index_harness = SearchIndexHarness(harness, analyst)
        rows = analyst.table("insight_steps")
        one, two, three = (row["seq"] for row in rows)
        at = [row["at_ns"] for row in rows]

        def newest(*clauses: Clause, none: tuple[Term, ...] = ()) -> list[int]:
            return harness.read(analyst.derived.newest(HOME_TENANT, Scope(1 << 39, 0, clauses), none, 10))

        failed = Clause("status", ("failure",))
        assert newest(failed) == [three, one]
        assert newest(Clause("status", ("failure",), "in", True)) == [two]
        assert newest(Clause("tool", ("db", "web")), failed) == [three, one]
        assert newest(Clause("confidence", (0.9,), ">")) == [three, two, one]
        assert newest(Clause("entropy", (0.0,), "<")) == []
        assert newest(Clause("tokens", (0,), "<=")) == [three, two, one]
        assert newest(Clause("at", (at[1],), ">=")) == [three, two]
        assert newest(Clause("agent", ())) == []
        assert newest(none=(Term(("badly",)),)) == [two]
        assert index_harness.texts(words("badly"), Scope(1 << 39, 0, (Clause("tool", ("web",)),))) == [three]
        assert index_harness.texts(words("badly"), Scope(two)) == [one]
        assert index_harness.texts(words("badly"), Scope(1 << 39, one)) == [three]
        after, until = harness.read(analyst.derived.window(HOME_TENANT, at[1], at[1]))
        assert after < two <= until
        assert harness.read(analyst.derived.window(HOME_TENANT, at[2] + 10**12, None))[0] > three
        bins_by_time(harness, analyst, at)
        spoke, capped = harness.read(analyst.derived.speakers(HOME_TENANT, words("badly|works"), ALL))
        assert [(one.times, one.last_seq) for one in spoke] == [(2, three), (1, one)] and not capped


def bins_by_time(harness: Harness, analyst: Analyst, at: list[int]) -> None:
    """S661: counted by words, by filters, by neither; the width of a nanosecond tells them apart."""

    def bins(wanted: WordQuery, *clauses: Clause, times: tuple[Clause, ...] = ()) -> dict[int, int]:
        scope = Scope(1 << 39, 0, clauses, times)
        counts, capped = harness.read(analyst.derived.bins(HOME_TENANT, wanted, scope, 1))
        assert not capped
        return counts

    web = Clause("tool", ("web",))
    assert bins(WordQuery()) == Counter(at)
    assert bins(WordQuery(), web) == Counter(at[1:])
    assert bins(words("badly")) == Counter([at[0], at[2]])
    assert bins(words("badly"), web) == {at[2]: 1}
    assert bins(WordQuery(none=(Term(("badly",)),))) == {at[1]: 1}
    assert bins(WordQuery(), times=(Clause("at", (at[1],), ">="),)) == Counter(at[1:])
    assert harness.read(analyst.derived.span(HOME_TENANT, ALL)) == (at[0], at[2])
    assert harness.read(analyst.derived.span("tnt_nobody", ALL)) is None


def test_a_rewritten_message_is_found_by_what_went_on_s271(harness: Harness) -> None:
    """S271: the words it was held with are gone from the index, and from its vector in memory."""
    harness.send(new_message("first"))
    pause(harness)
    held = thought("the zebra is out", "held") | {
        "meta": new_message("held")["meta"],
        "identity": new_message("held")["identity"],
    }
    number = harness.send(held)[0].answer.sequence_number
    with Analyst(harness) as analyst:
        analyst.catch_up()
        index_harness = SearchIndexHarness(harness, analyst)
        assert index_harness.texts(words("zebra")) == [number]
        assert index_harness.like("zebra")[:1] == [number]
        new = held | {"cognition": {"intent": "the walrus is asleep"}}
        message = rewritten(harness, "held", new)
        act(harness, interventions.rewrite(person(harness), SESSION, AGENT, "held", message, harness.now()))
        unpause(harness)
        analyst.catch_up()
        assert index_harness.texts(words("zebra")) == [] and index_harness.texts(words("walrus")) == [number]
        assert index_harness.like("zebra") == [] and index_harness.like("sleeping walrus")[:1] == [number]
        harness.read(analyst.derived.restart(HOME_TENANT))
        assert index_harness.texts(words("walrus")) == []
        analyst.catch_up()
        assert index_harness.texts(words("walrus")) == [number] and index_harness.like("sleeping walrus")[
            :1
        ] == [number]


def test_what_is_removed_from_the_documents_leaves_the_index_s271(harness: Harness) -> None:
    """S271: rows that are cleared or emptied, as shredding does, are found no more; the others are."""
    numbers = [
        harness.send(thought(f"common secret{at}", str(at)))[0].answer.sequence_number for at in range(3)
    ]
    with Analyst(harness) as analyst:
        analyst.catch_up()
        index_harness = SearchIndexHarness(harness, analyst)
        head = harness.read(analyst.derived.progress(HOME_TENANT)).seq
        puts = [
            DerivedWrite("insight_documents", [{"seq": numbers[0], "body": "", "meant": 0}]),
            DerivedWrite("insight_documents", [], clear=[numbers[1]]),
            DerivedWrite("insight_vectors", [{"seq": numbers[0], "turn": head + 1, "bits": embedding.NONE}]),
        ]
        assert index_harness.like("common secret0")[:1] != []
        assert harness.read(analyst.derived.apply(HOME_TENANT, head, head + 1, 1, puts, []))
        assert index_harness.texts(words("common")) == [numbers[2]]
        assert index_harness.texts(words("secret0|secret1")) == []
        assert numbers[0] not in index_harness.like("common secret0")


def test_a_tenant_finds_nothing_of_another_s276(harness: Harness) -> None:
    """S276: the same words and numbers in two tenants stay apart, in words, meaning and counts."""
    harness.create_tenant(OTHER_TENANT)
    harness.send(thought("pelican of the house", "1"))
    harness.send(thought("pelican of the neighbour", "1"), tenant_id=OTHER_TENANT)
    harness.send(thought("heron of the neighbour", "2"), tenant_id=OTHER_TENANT)
    with Analyst(harness) as analyst:
        analyst.catch_up()
        index_harness = SearchIndexHarness(harness, analyst)
        for tenant_id, count in ((HOME_TENANT, 1), (OTHER_TENANT, 1)):
            assert len(index_harness.texts(words("pelican"), tenant_id=tenant_id)) == count
        assert index_harness.texts(words("neighbour")) == [] and index_harness.texts(words("heron")) == []
        assert len(index_harness.texts(words("neighbour"), tenant_id=OTHER_TENANT)) == 2
        mine, theirs = (
            index_harness.like("heron bird"),
            index_harness.like("heron bird", tenant_id=OTHER_TENANT),
        )
        assert len(mine) <= 1 <= len(theirs) <= 2
        spoke, _ = harness.read(analyst.derived.speakers(HOME_TENANT, words("pelican|heron"), ALL))
        assert [one.times for one in spoke] == [1]
        assert index_harness.texts(words("pelican"), tenant_id="tnt_nobody") == []


def test_the_working_role_cannot_reach_the_word_index_s276(harness: Harness) -> None:
    """S276: on PostgreSQL the table behind the index grants nothing; its functions know one tenant only."""
    if isinstance(harness, SqliteHarness):
        pytest.skip("SQLite has no roles")
    rows = harness.sql(
        "SELECT has_table_privilege('observatory_app', 'insight_words', 'SELECT, INSERT, DELETE')"
    )
    assert rows == [(False,)]


def test_a_temporary_table_does_not_stand_in_for_the_word_index_s276(pg_harness: PostgresHarness) -> None:
    """S276: the functions run as the owner; what the caller puts in their way would run as the owner, too."""
    number = pg_harness.send(thought("pelican", "1"))[0].answer.sequence_number

    async def shadowed() -> tuple[list[int], int]:
        connection = await asyncpg.connect(pg_harness.url)
        try:
            await connection.execute("SET ROLE observatory_app")
            await connection.execute("SELECT set_config('app.tenant', 'tnt_default', false)")
            await connection.execute(
                "CREATE TEMP TABLE insight_words (owner TEXT, seq BIGINT, words TSVECTOR)"
            )
            await connection.execute("INSERT INTO pg_temp.insight_words VALUES ('tnt_default', 9, 'pelican')")
            await connection.execute(
                "UPDATE insight_documents SET body = 'heron pelican' WHERE seq = $1", number
            )
            rows = await connection.fetch("SELECT seq FROM insight_hits('pelican & heron', 0, 99, 9)")
            rows += await connection.fetch("SELECT seq FROM insight_hits('pelican', 0, 99, 9)")
            return [row[0] for row in rows], await connection.fetchval(
                "SELECT count(*) FROM pg_temp.insight_words"
            )
        finally:
            await connection.close()

    with Analyst(pg_harness) as analyst:
        analyst.catch_up()
        assert HOME_TENANT == "tnt_default"
        assert pg_harness.read(shadowed()) == ([number, number], 1)


def test_only_the_working_role_may_ask_the_word_index_s276(pg_harness: PostgresHarness) -> None:
    """S276: nobody else who can connect to the database."""
    execute(
        pg_harness.url,
        "DO $$ BEGIN CREATE ROLE stranger; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
    )
    hits = "SELECT seq FROM insight_hits('pelican', 0, 99, 9)"
    assert ask(pg_harness.url, hits, tenant=HOME_TENANT, role="observatory_app") == []
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        ask(pg_harness.url, hits, tenant=HOME_TENANT, role="stranger")
    for role in ("observatory_app", "stranger"):
        asked = f"SELECT has_function_privilege('{role}', 'insight_keep_words()', 'EXECUTE')"
        assert ask(pg_harness.url, asked) == [(False,)]


def test_without_a_model_words_are_still_found_s277(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S277: likeness is said not to be available, and nothing fails."""
    for module in ("features.search.fold", "features.search.queries"):
        monkeypatch.setattr(f"observatory.{module}.embedder", lambda: None)
    number = harness.send(thought("pelican", "1"))[0].answer.sequence_number
    with Analyst(harness) as analyst:
        analyst.catch_up()
        assert SearchIndexHarness(harness, analyst).texts(words("pelican")) == [number]
        assert harness.read(analyst.derived.nearest(HOME_TENANT, "pelican", ALL, 10)) is None


@pytest.mark.parametrize(
    "wanted", [words("x" * 64), words("or"), words("and", "not"), words("near 5", none="body")]
)
def test_words_of_the_index_language_are_words_s272(harness: Harness, wanted: WordQuery) -> None:
    """S272: what FTS5 and tsquery would take for operators is looked for as it stands."""
    number = harness.send(thought(f"or and not near 5 {'x' * 64}", "1"))[0].answer.sequence_number
    with Analyst(harness) as analyst:
        analyst.catch_up()
        assert SearchIndexHarness(harness, analyst).texts(wanted) == [number]


def test_comparing_runs_in_threads_s283(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """S283: neither embedding nor scanning is done where the event loop runs."""
    number = harness.send(thought("the pelican dives", "1"))[0].answer.sequence_number
    where: set[int] = set()
    embed, scan = embedding.Embedder.embed, TenantVectors.scan

    def seen_embed(self: Any, texts: Any) -> Any:
        where.add(threading.get_ident())
        return embed(self, texts)

    def seen_scan(self: Any, *words: Any) -> Any:
        where.add(threading.get_ident())
        return scan(self, *words)

    with Analyst(harness) as analyst:
        analyst.catch_up()
        monkeypatch.setattr(embedding.Embedder, "embed", seen_embed)
        monkeypatch.setattr(TenantVectors, "scan", seen_scan)
        assert SearchIndexHarness(harness, analyst).like("pelican diving") == [number]
    assert where and threading.get_ident() not in where


def test_one_tenants_vectors_load_while_anothers_wait_s277(harness: Harness) -> None:
    """S277: a lock each; who loads long holds up nobody else, and a lock nobody holds is forgotten."""
    harness.send(thought("A dinosaur in the pool", "one"))
    with Analyst(harness) as analyst:
        analyst.catch_up()
        derived = analyst.derived
        first = harness.read(derived.nearest(HOME_TENANT, "dinosaur", ALL, 10))

        async def other() -> Any:
            assert derived._loading is not None
            async with derived._loading.setdefault(OTHER_TENANT, asyncio.Lock()):
                return await asyncio.wait_for(derived.nearest(HOME_TENANT, "dinosaur", ALL, 10), 10)

        assert harness.read(other()) == first
        assert not derived._loading
