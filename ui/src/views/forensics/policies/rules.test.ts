import { describe, expect, it } from "vitest";
import type { DryRunAnswer, RuleBody } from "~/protocol/openapi";
import {
  bodyOf,
  draftOf,
  foundOf,
  isSame,
  moved,
  NEW,
  readDraft,
  rebased,
  riskOf,
  secondsOf,
  sentence,
  shutsOut,
} from "./rules";

const deny = (match: RuleBody["match"], more: Partial<RuleBody> = {}): RuleBody => ({
  effect: "deny",
  match,
  ...more,
});

describe("a rule in a sentence", () => {
  it.each([
    [deny({}), "Deny everything from any agent to any recipient."],
    [
      deny({ sender: ["type:code_runner"], recipient: ["type:publisher", "bob"] }),
      "Deny everything from every code_runner to every publisher or bob.",
    ],
    [
      deny({ sender: ["res*"], cluster: ["aws-*"], tool: ["shell", "deploy_*"], message_type: ["text"] }),
      "Deny text from any agent named res… in cluster aws-… to any recipient, if it uses shell or deploy_…",
    ],
    [
      { effect: "hold", match: { recipient: ["session:s1"] }, quorum: 2, deadline_s: 3_600 } as RuleBody,
      "Hold everything from any agent to session s1, until 2 approvals; after 1 h: deny.",
    ],
    [
      { effect: "hold", match: {}, deadline_s: 90, on_expiry: "approve" } as RuleBody,
      "Hold everything from any agent to any recipient, until 1 approval; after 90 s: allow.",
    ],
    [
      { effect: "allow", match: { sender: ["cluster:zrh"] } } as RuleBody,
      "Allow everything from agents of zrh to any recipient.",
    ],
  ])("%j", (rule, text) => {
    expect(sentence(rule)).toBe(text);
  });
});

describe("a draft", () => {
  it("contains what it was made of, and only what applies to its effect", () => {
    const rule: RuleBody = {
      effect: "hold",
      match: { tool: ["a*"] },
      quorum: 3,
      deadline_s: 7_200,
      note: "why",
    };
    expect(isSame(readDraft(draftOf(rule)).body, rule)).toBe(true);
    const denied = readDraft({ ...draftOf(rule), effect: "deny" }).body;
    expect(denied).toEqual({ ...bodyOf(rule), effect: "deny", quorum: 1, deadline_s: null });
  });

  it.each([
    [{ match: { ...NEW.match, sender: ["a*b"] } }, "sender", "end of a word"],
    [
      { effect: "deny" as const, match: { ...NEW.match, message_type: ["heartbeat"] } },
      "message_type",
      "always pass",
    ],
    [{ match: { ...NEW.match, message_type: ["txt"] } }, "message_type", "Unknown type: txt"],
    [{ quorum: "0" }, "quorum", "1 to 10"],
    [{ quorum: "two" }, "quorum", "1 to 10"],
    [{ deadline: "soon" }, "deadline", "time such as"],
    [{ deadline: "400 d" }, "deadline", "at most a year"],
    [{ note: "x".repeat(501) }, "note", "500"],
  ] as const)("%j is refused with a message at its field", (more, field, words) => {
    const { faults } = readDraft({ ...NEW, ...(more as object) });
    expect(Object.keys(faults)).toEqual([field]);
    expect(faults[field as keyof typeof faults]).toContain(words);
  });

  it.each([
    ["", null],
    ["90", 90],
    ["15 min", 900],
    ["1h", 3_600],
    ["2 d", 172_800],
    ["x", Number.NaN],
  ])("reads the time %s as %s seconds", (text, seconds) => {
    expect(secondsOf(text)).toEqual(seconds);
  });
});

describe("the order", () => {
  it("moves one and stays within its ends", () => {
    expect(moved(["a", "b", "c"], "a", 1)).toEqual(["b", "a", "c"]);
    expect(moved(["a", "b", "c"], "c", -5)).toEqual(["c", "a", "b"]);
    expect(moved(["a", "b", "c"], "a", 9)).toEqual(["b", "c", "a"]);
    expect(moved(["a"], "x", 0)).toEqual(["a"]);
  });

  it("is merged over theirs without removed rules, with new ones after their predecessor", () => {
    expect(rebased(["c", "a", "b"], ["a", "b", "c"])).toEqual(["c", "a", "b"]);
    expect(rebased(["c", "a", "b"], ["a", "new", "c"])).toEqual(["c", "a", "new"]);
    expect(rebased(["b", "a"], ["first", "a", "b"])).toEqual(["first", "b", "a"]);
  });
});

const TRIED: DryRunAnswer = {
  minutes: 60,
  since: "",
  looked_at: 120,
  capped: false,
  unreadable: 0,
  stoppable: 100,
  agents: 5,
  denied: 4,
  held: 0,
  by_rule: [],
  by_agent: [{ agent_id: "a", sent: 50, denied: 4, held: 0 }],
  examples: [],
};

describe("the danger of a rule", () => {
  it.each([
    [{}, "sender", ["*"], true],
    [{}, "sender", ["bob"], false],
    [{}, "message_type", ["decision_*"], true],
    [{}, "message_type", ["text"], false],
    [{ enabled: false }, "sender", [], false],
    [{ effect: "hold" as const }, "sender", [], false],
  ])("%j with %s %j denies every agent: %s", (more, part, words, is) => {
    expect(shutsOut(deny({ [part]: words }, more))).toBe(is);
  });

  it("is none for a rule that stops part of an agent's messages", () => {
    expect(riskOf(deny({ tool: ["shell"] }), TRIED, [], "me")).toEqual({ says: [], typed: null });
  });

  it("is shown and must be typed if agents are silenced, or are the operator's own", () => {
    const by_agent = [
      { agent_id: "a", sent: 4, denied: 4, held: 0 },
      { agent_id: "b", sent: 9, denied: 1, held: 0 },
    ];
    const own = [{ agent_id: "b", owner: "me" }];
    expect(riskOf(deny({ tool: ["x"] }), { ...TRIED, by_agent }, own, "me")).toEqual({
      says: ["It would silence 1 of 5 agents, every message: a.", "It would stop your own agents: b."],
      typed: "deny 2 agents",
    });
    expect(riskOf({ effect: "allow", match: {} }, { ...TRIED, by_agent }, own, "me").typed).toBeNull();
    expect(
      riskOf(deny({ tool: ["x"] }, { enabled: false }), { ...TRIED, by_agent }, own, "me").typed,
    ).toBeNull();
  });

  it("is shown for most of the traffic, and for all of it even when nothing was sent", () => {
    expect(riskOf(deny({ tool: ["x"] }), { ...TRIED, denied: 63 }, [], "me")).toMatchObject({
      says: ["It would deny most of the traffic: 63 % of what agents sent."],
      typed: "deny most messages",
    });
    const quiet = { ...TRIED, stoppable: 0, agents: 0, denied: 0, by_agent: [] };
    expect(riskOf(deny({}), quiet, [], "me").typed).toBe("deny everything");
  });

  it("a trial is one sentence", () => {
    expect(foundOf("deny", TRIED)).toBe(
      "It would have denied 4 of the 100 messages of 5 agents in the last hour, 4 %.",
    );
    expect(foundOf("hold", { ...TRIED, denied: 0, agents: 1 })).toContain(
      "held none of the 100 messages of 1 agent ",
    );
    expect(foundOf("allow", TRIED)).toContain("An allow rule stops nothing");
  });
});
