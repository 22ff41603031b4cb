import { describe, expect, it } from "vitest";
import type { JobItem } from "~/protocol/openapi";
import { bodyOf, draftOf, fieldOf, fresh, isOver, read } from "./form";
import { pick, reasonText, scheduleText, targetText, until } from "./jobText";

const JOB = {
  job_id: "job_1",
  name: "sweep",
  kind: "cron",
  cron: "0 9 * * 1-5",
  explained: "At 09:00 on Monday through Friday",
  at: null,
  zone: "Europe/Berlin",
  target: { kind: "capability", name: "sweeper" },
  intent: "sweep the floor",
  payload: { room: 7 },
  session_id: null,
  misfire: "skip",
  overlap: "queue",
  jitter_s: 5,
  grace_s: 60,
  max_tries: 3,
  state: "active",
  next_at: "2026-11-17T08:00:00Z",
  failures: 0,
  asked_by: null,
} as unknown as JobItem;

describe("the job form", () => {
  it("round-trips", () => {
    expect(read(draftOf(JOB)).body).toEqual(bodyOf(JOB));
  });

  it("keeps one moment to the minute, whatever the viewer's zone", () => {
    const once = { ...JOB, kind: "once", cron: null, at: "2027-01-31T09:30:00.000Z" } as JobItem;
    expect(read(draftOf(once)).body?.at).toBe("2027-01-31T09:30:00.000Z");
  });

  it("reports every fault at its field", () => {
    const faults = read({
      ...fresh("UTC"),
      cron: " ",
      payload: "[1]",
      max_tries: "0",
      jitter_s: "-1",
    }).faults;
    expect(Object.keys(faults).sort()).toEqual(
      ["cron", "intent", "jitter_s", "max_tries", "name", "payload", "target_name"].sort(),
    );
    expect(faults.payload).toContain("must be an object");
    expect(read({ ...draftOf(JOB), payload: "{" }).faults.payload).toContain("Invalid JSON");
    expect(read({ ...draftOf(JOB), kind: "once", at: "" }).faults.at).toBeDefined();
  });

  it.each([
    ["name_taken", "a job with that name already exists", "name"],
    ["bad_schedule", "unknown time zone; use an IANA name", "zone"],
    ["bad_schedule", "the cron line cannot be parsed: it needs five fields", "cron"],
    ["bad_schedule", "at must be a time such as 2027", "at"],
    ["too_many_jobs", "a tenant has at most 1000 jobs", null],
  ])("a refusal (%s: %s) belongs to %s", (reason, message, field) => {
    expect(fieldOf(reason, message)).toBe(field);
  });
});

describe("job texts", () => {
  it("in plain words", () => {
    expect(scheduleText(JOB)).toBe("at 09:00 on Monday through Friday, Europe/Berlin");
    expect(targetText(JOB.target)).toBe("type:sweeper");
    const now = Date.parse("2026-11-17T07:56:00Z");
    expect(until("2026-11-17T08:00:00Z", now)).toBe("in 4 min");
    expect(until("2026-11-17T07:55:30Z", now)).toBe("30 s late");
    expect(reasonText("policy_denied by rule pol_1")).toBe(
      "denied by a policy rule (policy_denied by rule pol_1)",
    );
  });

  it("failing jobs first, then by next run, found by any of their words", () => {
    const jobs = [
      { ...JOB, job_id: "b", next_at: "2026-11-18T08:00:00Z" },
      { ...JOB, job_id: "a" },
      { ...JOB, job_id: "off", state: "paused", next_at: null },
      { ...JOB, job_id: "bad", failures: 2 },
    ] as JobItem[];
    expect(pick(jobs, { q: "FLOOR", state: "all" }).map((job) => job.job_id)).toEqual([
      "bad",
      "a",
      "b",
      "off",
    ]);
    expect(pick(jobs, { q: "", state: "paused" })).toHaveLength(1);
    expect(pick(jobs, { q: "nothing", state: "all" })).toEqual([]);
  });
});

it("never restores a past time to a job: it would run at once", () => {
  const now = Date.parse("2026-11-16T12:00:00Z");
  expect(isOver({ at: "2026-11-16T11:59:59Z" }, now)).toBe(true);
  expect(isOver({ at: "2026-11-16T12:00:01Z" }, now)).toBe(false);
  expect(isOver({ at: null }, now)).toBe(false);
});
