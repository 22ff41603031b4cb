"""How many stored events a second the independent verifier proves, in one process and in two.

Standalone: `python bench/verify_bench.py [events]`. Data lie in memory, so the figure is the verifier's own;
reading rows from a store comes on top. Goal (trust.md §5.7): 100,000 events/s on two cores.
"""

import multiprocessing
import sys
import time
from array import array
from collections.abc import Iterator

from observatory.ledger.chain import Head, link
from observatory.ledger.verify import GENESIS, ChainCheck, Result, merge, plan_segments

TENANT = "tnt_bench"
# Whole blobs, cut row by row as a store's cursor would: objects shared by fork would be copied page by page.
_records = bytearray()
_leaves = bytearray()
_ends = array("Q", [0])
_hashes: list[str] = []


def event(number: int) -> dict[str, object]:
    """An audit event of about 1,000 bytes, as the gateway writes it for a delivered DecisionLog."""
    return {
        "audit_event_id": f"evt_{number:032x}",
        "timestamp": f"2026-02-16T14:32:01.{number % 10**9:09}Z",
        "observed_timestamp": f"2026-02-16T14:32:02.{number % 10**9:09}Z",
        "trace_id": "a1b2c3d4e5f67890a1b2c3d4e5f67890",
        "span_id": f"{number:016x}",
        "parent_span_id": f"{number - 1:016x}" if number > 1 else None,
        "trace_flags": 1,
        "severity_number": 9,
        "severity_text": "INFO",
        "body": {
            "event_type": "message_delivered",
            "message_id": f"msg_{number}",
            "message_type": "decision_log",
            "summary": "decision_log from agt_1: serp_search success",
        },
        "resource": {
            "service.name": "observatory",
            "service.version": "0.1.0",
            "av.tenant.id": TENANT,
            "av.environment": "bench",
        },
        "attributes": {
            "av.sender.entity_id": "agt_1",
            "av.sender.entity_type": "agent",
            "av.recipient.entity_id": "usr_1",
            "av.conversation.id": "ses_1",
            "av.message.type": "decision_log",
            "av.message.priority": "normal",
            "av.delivery.latency_ms": 2,
            "av.message.digest": "sha256:" + f"{number:064x}",
        },
    }


def write(count: int) -> float:
    head, spent = Head.genesis(), 0.0
    for number in range(1, count + 1):
        item = event(number)
        began = time.perf_counter()
        linked = link(head, item, TENANT)
        spent += time.perf_counter() - began
        head = linked.head
        _records.extend(linked.record)
        _leaves.extend(linked.leaf_hash)
        _ends.append(len(_records))
        _hashes.append(linked.event_hash)
    return spent


def rows(start: int, end: int) -> Iterator[tuple[int, bytes, bytes]]:
    for number in range(start, end + 1):
        record = bytes(memoryview(_records)[_ends[number - 1] : _ends[number]])
        yield number, record, bytes(_leaves[32 * (number - 1) : 32 * number])


def verify(segment: tuple[int, int]) -> tuple[Result, float]:
    start, end = segment
    began = time.process_time()
    check = ChainCheck(TENANT, start - 1, _hashes[start - 2] if start > 1 else GENESIS)
    check.feed(rows(start, end))
    return check.result(), time.process_time() - began


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    spent = write(count)
    size = len(_records) // count
    print(f"link    1 process  {spent / count * 1e6:6.2f} µs an event of {size} bytes")
    for workers in (1, 2):
        # fork: the children see the rows without copying them, as workers reading a store would.
        with multiprocessing.get_context("fork").Pool(workers) as pool:
            pool.map(verify, [(1, 100)] * workers)
            began = time.perf_counter()
            parts = pool.map(verify, plan_segments(1, count, workers), chunksize=1)
            took = time.perf_counter() - began
        found = merge([result for result, _ in parts])
        spent = sum(cpu for _, cpu in parts) / count * 1e6
        assert found.valid and found.events_verified == count and found.held.leaf
        name = "1 process  " if workers == 1 else f"{workers} processes"
        print(f"verify  {name} {count / took:10,.0f} events/s  ({spent:.2f} µs of CPU an event)")


if __name__ == "__main__":
    main()
