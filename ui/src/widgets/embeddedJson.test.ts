// A message opened and closed for editing is unchanged, except for the edits.
import { describe, expect, it } from "vitest";
import { closed, opened } from "./embeddedJson";

const MESSAGE = {
  identity: { agent_id: "publisher-1" },
  action: { tool_call: "publish", tool_input: '{"copies": 4210,  "risk":"high"}', status: "pending" },
};

describe("opened and closed", () => {
  it("shows the input as an object and returns the exact text if it was not edited", () => {
    const shown = opened(MESSAGE);
    expect(shown.action).toMatchObject({ tool_input: { copies: 4210, risk: "high" } });
    expect(closed(structuredClone(shown), MESSAGE)).toEqual(MESSAGE);
  });

  it("serialises edits back into text", () => {
    const shown = structuredClone(opened(MESSAGE)) as { action: { tool_input: { copies: number } } };
    shown.action.tool_input.copies = 42;
    expect(closed(shown, MESSAGE)).toEqual({
      ...MESSAGE,
      action: { ...MESSAGE.action, tool_input: '{"copies":42,"risk":"high"}' },
    });
  });

  it.each([
    [{ action: { tool_input: "plain words" } }],
    [{ action: { tool_input: '{"broken": ' } }],
    [{ action: { tool_input: "42" } }],
    [{ action: { tool_input: null } }],
    [{ action: { status: "success" } }],
    [{ action: null }],
    [{ body: "no action at all" }],
  ])("leaves %j as it is", (message) => {
    expect(opened(message)).toEqual(message);
    expect(closed(message, message)).toEqual(message);
  });

  it("keeps an object that was never text", () => {
    const message = { action: { tool_input: { copies: 1 } } };
    expect(closed(opened(message), message)).toEqual(message);
  });
});
