import { describe, expect, it } from "vitest";
import type { FactItem } from "~/protocol/openapi";
import { listed } from "./factOrder";

const fact = (fact_id: string, uses: number, text = fact_id, agent_id = "a") =>
  ({ fact_id, uses, text, agent_id }) as FactItem;
const ids = (facts: FactItem[]) => facts.map((one) => one.fact_id).join("");

describe("the list of facts", () => {
  const all = [fact("a", 1), fact("b", 3), fact("c", 2)];

  it("has facts marked false on top, once, in any order of the rest", () => {
    expect(ids(listed(all, [fact("c", 2), fact("z", 0)], {}, undefined))).toBe("czab");
    expect(ids(listed(all, [fact("a", 1)], {}, "uses"))).toBe("abc");
    expect(ids(listed(all, [], {}, "-uses"))).toBe("acb");
    expect(ids(listed(all, [], {}, "-at"))).toBe("cba");
  });

  it("keeps on top only matches of the search", () => {
    const marked = [fact("x", 0, "NVDA year"), fact("y", 0, "other", "b")];
    expect(ids(listed([], marked, { q: "nvda" }, undefined))).toBe("x");
    expect(ids(listed([], marked, { agent: "b" }, undefined))).toBe("y");
  });
});
