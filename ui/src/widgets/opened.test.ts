// A message a person opens and closes is the message it was, but for what they changed.
import { describe, expect, it } from "vitest";
import { closed, opened } from "./opened";

const MESSAGE = {
  identity: { agent_id: "publisher-1" },
  action: { tool_call: "publish", tool_input: '{"copies": 4210,  "risk":"high"}', status: "pending" },
};

describe("opened and closed", () => {
  it("show the input as an object and give the very text back when nobody touched it", () => {
    const shown = opened(MESSAGE);
    expect(shown.action).toMatchObject({ tool_input: { copies: 4210, risk: "high" } });
    expect(closed(structuredClone(shown), MESSAGE)).toEqual(MESSAGE);
  });

  it("close what was changed into a text again", () => {
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
  ])("leave %j as it is", (message) => {
    expect(opened(message)).toEqual(message);
    expect(closed(message, message)).toEqual(message);
  });

  it("let an object stand that was never a text", () => {
    const message = { action: { tool_input: { copies: 1 } } };
    expect(closed(opened(message), message)).toEqual(message);
  });
});
