import { describe, expect, it } from "vitest";
import {
  cell,
  csvOf,
  fileName,
  jsonOf,
  type Line,
  linesOfBranches,
  linesOfCosts,
  looking,
  sinceOf,
  sorted,
} from "./attribution";

const line = (name: string, cost: number, tokens = 0): Line => ({
  key: name,
  id: name,
  name,
  also: "",
  cost,
  share: 0.5,
  tokens,
  calls: 1,
});

describe("what the board looks at", () => {
  it("defaults to the last hour by agent", () => {
    expect(looking({})).toEqual({ by: "agent", span: "1h", agent: undefined, session: undefined });
    expect(looking({ by: "branch", span: "24h", session: "s" }).session).toBe("s");
    expect(looking({ by: "moon", span: "9y" })).toMatchObject({ by: "agent", span: "1h" });
  });

  it("drills down only where the gateway can", () => {
    expect(looking({ by: "session", agent: "a", session: "s" })).toMatchObject({
      agent: "a",
      session: undefined,
    });
    expect(looking({ by: "tool", agent: "a", session: "s" })).toMatchObject({ agent: undefined });
  });

  it("asks by whole minutes, so that a second question is the same", () => {
    const at = Date.parse("2026-11-16T14:38:33Z");
    expect(sinceOf("1h", at)).toBe("2026-11-16T13:39:00.000Z");
    expect(sinceOf("1h", at)).toBe(sinceOf("1h", at + 20_000));
  });
});

describe("lines", () => {
  it("label items without a name", () => {
    const items = [{ id: null, cost: 1, share: 1, tokens: 2, messages: 3 }];
    const answer = { by: "tool", items, next_cursor: null } as never;
    expect(linesOfCosts(answer)[0]).toMatchObject({ name: "(no tool)", id: null, calls: 3 });
  });

  it("add up to the total, with a line for those not listed", () => {
    const items = [{ id: "x", cost: 1, share: 0.25, tokens: 2, messages: 3 }];
    const total = { cost: 4, tokens: 12, messages: 5 };
    const lines = linesOfCosts({ by: "agent", items, total, next_cursor: "more" } as never);
    expect(lines[1]).toMatchObject({
      key: "elsewhere",
      id: null,
      cost: 3,
      share: 0.75,
      tokens: 10,
      calls: 2,
    });
  });

  it("of branches add up to the total, with a line for those not listed", () => {
    const items = [
      {
        step: "x",
        intent: null,
        sequence_number: 7,
        agents: [],
        agent_id: null,
        cost: 1,
        share: 0.25,
        tokens: 0,
        steps: 1,
      },
    ];
    const lines = linesOfBranches({ items, elsewhere: 3, total: 4 } as never);
    expect(lines.reduce((sum, one) => sum + one.cost, 0)).toBe(4);
    expect(lines[0]?.name).toBe("step #7");
    expect(lines[1]).toMatchObject({ key: "elsewhere", share: 0.75 });
    expect(sorted([...lines].reverse(), undefined).lines.at(-1)?.key).toBe("elsewhere");
  });

  it("are sorted by cost, most expensive first, or by the chosen column", () => {
    const rows = [line("b", 1, 9), line("a", 3, 1)];
    expect(sorted(rows, undefined).lines.map((one) => one.name)).toEqual(["a", "b"]);
    expect(sorted(rows, "-cost").lines.map((one) => one.name)).toEqual(["b", "a"]);
    expect(sorted(rows, "tokens").lines.map((one) => one.name)).toEqual(["b", "a"]);
    expect(sorted(rows, "name").lines.map((one) => one.name)).toEqual(["a", "b"]);
    expect(sorted(rows, "nonsense").id).toBe("cost");
  });
});

describe("the file", () => {
  it.each([
    ["=SUM(A1)", "'=SUM(A1)"],
    ["+1", "'+1"],
    ["-1", "'-1"],
    ["@x", "'@x"],
    ["＝1", "'＝1"],
    ['=HYPERLINK("http://x","y")', `"'=HYPERLINK(""http://x"",""y"")"`],
    ["a,b", '"a,b"'],
    ["two\nlines", '"two\nlines"'],
    ["plain", "plain"],
  ])("makes %j harmless and whole", (value, written) => expect(cell(value)).toBe(written));

  it("keeps numbers numbers, also negative ones", () => expect(cell(-1.5)).toBe("-1.5"));

  it("contains exactly the lines shown", () => {
    const text = csvOf("agent", [line("=cmd", 1.25)], "A", "B");
    expect(text).toBe(
      "by,id,name,also,cost,share,tokens,calls,since,until\r\nagent,'=cmd,'=cmd,,1.25,0.5,0,1,A,B\r\n",
    );
    const parsed = JSON.parse(jsonOf("agent", [line("x", 1)], "A", "B", 1));
    expect(parsed).toMatchObject({ by: "agent", total: 1, items: [{ id: "x", cost: 1 }] });
    expect(parsed.items[0].key).toBeUndefined();
    expect(fileName("agent", "2026-11-16T14:39:00Z", "csv")).toBe("costs-by-agent-2026-11-16-14-39.csv");
  });
});
