import { describe, expect, it } from "vitest";
import type { Timeline } from "~/protocol/openapi";
import { binsFor, countsText, lanesOf, placeOf, stepFrom, sumsOf, ticksOf, windowOf } from "./strip";

const bin = (at: string, counts: object) => ({
  at,
  sent: 0,
  failed: 0,
  missed: 0,
  waiting: 0,
  planned: 0,
  ...counts,
});
const STRIP: Timeline = {
  from: "2026-11-15T12:00:00Z",
  until: "2026-11-17T12:00:00Z",
  now: "2026-11-16T12:00:00Z",
  bin_s: 3_600,
  most: 60,
  more: false,
  lanes: [
    {
      job_id: "later",
      name: "later",
      state: "active",
      recent: [],
      bins: [bin("2026-11-17T01:00:00Z", { planned: 1 })],
    },
    {
      job_id: "soon",
      name: "soon",
      state: "active",
      recent: [],
      bins: [bin("2026-11-16T11:00:00Z", { sent: 60 }), bin("2026-11-16T12:00:00Z", { planned: 60 })],
    },
    { job_id: "off", name: "off", state: "paused", recent: [], bins: [] },
    {
      job_id: "bad",
      name: "bad",
      state: "active",
      recent: [],
      bins: [
        bin("2026-11-16T09:00:00Z", { sent: 2, failed: 1, missed: 3 }),
        bin("2026-11-16T10:00:00Z", { planned: 1 }),
      ],
    },
  ],
};

describe("the strip of time", () => {
  const lanes = lanesOf(STRIP);

  it("sorts failing jobs first, then by next run, inactive ones last", () => {
    expect(lanes.map(({ name }) => name)).toEqual(["bad", "soon", "later", "off"]);
  });

  it("shows the worst of a cell and counts the rest; an overdue run is late", () => {
    const [first, second] = lanes[0]?.cells ?? [];
    expect(first).toMatchObject({ worst: "failed", shown: 1, more: false });
    expect(countsText(first?.counts ?? {})).toBe("1 failed, 3 missed, 2 sent");
    expect(second?.worst).toBe("late");
    expect(sumsOf(lanes)).toEqual({ failed: 1, missed: 3, waiting: 0, late: 1, sent: 62, planned: 61 });
  });

  it("shows when the gateway's count was capped", () => {
    const cell = lanes[1]?.cells[1];
    expect(countsText(cell?.counts ?? {}, cell?.more)).toBe("60 planned or more");
  });

  it("is navigated by arrow keys, skipping empty lanes, and stops at its ends", () => {
    expect(stepFrom(lanes, { lane: 0, cell: 0 }, "ArrowRight")).toEqual({ lane: 0, cell: 1 });
    expect(stepFrom(lanes, { lane: 0, cell: 1 }, "ArrowRight")).toBeNull();
    expect(stepFrom(lanes, { lane: 0, cell: 0 }, "ArrowDown")).toEqual({ lane: 1, cell: 0 });
    expect(stepFrom(lanes, { lane: 2, cell: 0 }, "ArrowDown")).toBeNull();
    expect(stepFrom(lanes, { lane: 2, cell: 0 }, "ArrowUp")).toEqual({ lane: 1, cell: 1 });
  });

  it("positions a moment, and limits the number of ticks", () => {
    expect(placeOf(Date.parse(STRIP.now), STRIP)).toBe(0.5);
    expect(placeOf(0, STRIP)).toBe(0);
    for (const most of [4, 12, 24]) expect(ticksOf(STRIP, most).length).toBeLessThanOrEqual(most + 1);
  });

  it("validates its window and computes its bins", () => {
    expect([windowOf("6"), windowOf("7"), windowOf(undefined)]).toEqual(["6", "24", "24"]);
    expect([binsFor(350), binsFor(600), binsFor(1_200), binsFor(2_000)]).toEqual([12, 24, 48, 96]);
  });
});
