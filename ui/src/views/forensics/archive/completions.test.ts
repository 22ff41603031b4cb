import { describe, expect, it } from "vitest";
import { completions } from "./completions";

const known = { agent: ["planner-1", "planner-2", "writer-1"], tool: ["web search"] };
const texts = (text: string, cursor = text.length) => completions(text, cursor, known).map((one) => one.text);

describe("completion (S663)", () => {
  it("offers filters for what begins like one", () => {
    expect(texts("s")).toEqual(["session:", "state:", "status:", "since:"]);
    expect(texts("refund ag")).toEqual(["agent:"]);
    expect(texts("")).toHaveLength(13);
    expect(texts("refund ")).toEqual([]);
    expect(texts("zebra")).toEqual([]);
  });
  it("offers values with that prefix, then values that contain it", () => {
    expect(texts("agent:pl")).toEqual(["agent:planner-1", "agent:planner-2"]);
    expect(texts("agent:1")).toEqual(["agent:planner-1", "agent:writer-1"]);
    expect(texts("agent:planner-1,w")).toEqual(["agent:planner-1,writer-1"]);
    expect(texts("-tool:")).toEqual(['-tool:"web search"']);
    expect(texts("state:h")[0]).toBe("state:held");
    expect(texts("agent:writer-1")).toEqual([]);
    expect(texts("colour:")).toEqual([]);
  });
  it("inserts it where it was typed, with the cursor behind it", () => {
    const [one] = completions("agent:pl refund", 8, known);
    expect(one).toMatchObject({ question: "agent:planner-1 refund", cursor: 15 });
    const [two] = completions("agent:wr", 8, known);
    expect(two).toMatchObject({ question: "agent:writer-1 ", cursor: 15 });
  });
});
