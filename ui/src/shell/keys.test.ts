// Which registration of a key is active, and what the help lists for it.
import { describe, expect, it } from "vitest";
import { saidOf } from "./ConnectionStatus";
import { merged } from "./Help";
import { isRepeatable, type KeyMap, Keys, nameOf } from "./keys";
import { neighbour, parsePeek } from "./peek";
import { pageOf } from "./saved";
import { outOf } from "./useFrameKeys";

const map = (calls: string[], ...names: string[]): KeyMap =>
  Object.fromEntries(names.map((name) => [name, { says: `${name} here`, run: () => calls.push(name) }]));

describe("Keys", () => {
  it("lets a view's key win over the shell's, the newest over the older, and gives them back", () => {
    const keys = new Keys();
    const calls: string[] = [];
    const keyMap = (word: string): KeyMap => ({ j: { says: word, run: () => calls.push(word) } });
    const leaveView = keys.add({ where: "View", base: false, keys: keyMap("view") });
    keys.add({ where: "Panel", base: true, keys: keyMap("panel") });
    keys.find("j")?.run();
    const leaveCard = keys.add({ where: "Card", base: false, keys: keyMap("card") });
    keys.find("j")?.run();
    leaveCard();
    keys.find("j")?.run();
    leaveView();
    keys.find("j")?.run();
    expect(calls).toEqual(["view", "card", "view", "panel"]);
    expect(keys.find("q")).toBeUndefined();
  });

  it("notifies its watchers of every change", () => {
    const keys = new Keys();
    let changes = 0;
    keys.watch(() => {
      changes += 1;
    });
    keys.add({ where: "View", base: false, keys: map([], "j") })();
    expect(changes).toBe(2);
  });

  it("lists the view's first, each key once, one line for keys that do the same", () => {
    const keys = new Keys();
    keys.add({ where: "Everywhere", base: true, keys: map([], "?", "j") });
    const next = { says: "Next", run: () => undefined };
    keys.add({ where: "Inbox", base: false, keys: { j: next, ArrowDown: next } });
    expect(merged(keys.inForce())).toEqual([
      { where: "Inbox", rows: [{ says: "Next", names: ["j", "ArrowDown"] }] },
      { where: "Everywhere", rows: [{ says: "? here", names: ["?"] }] },
    ]);
  });
});

describe("nameOf", () => {
  const pressed = { ctrlKey: false, metaKey: false, altKey: false };
  it.each([
    [{ ...pressed, key: "j" }, "j"],
    [{ ...pressed, key: " " }, "Space"],
    [{ ...pressed, key: "K", metaKey: true }, "mod+k"],
    [{ ...pressed, key: "Enter", ctrlKey: true }, "mod+enter"],
    [{ ...pressed, key: "1", altKey: true }, "alt+1"],
    [{ ...pressed, key: "?" }, "?"],
  ])("of %j is %s", (event, name) => {
    expect(nameOf(event)).toBe(name);
  });
});

describe("Esc", () => {
  it.each([
    ["/sessions/01a", "/sessions"],
    ["/compare", "/sessions"],
    ["/registry/writer-1", "/registry"],
    ["/registry", "/fleet"],
    ["/sessions", "/fleet"],
    ["/inbox", "/fleet"],
    ["/god-mode", "/fleet"],
    ["/fleet", null],
  ])("out of %s leads to %s", (path, to) => {
    expect(outOf(path)).toBe(to);
  });
});

describe("a peek", () => {
  it.each([
    ["agent:writer-1", { kind: "agent", id: "writer-1" }],
    ["edge:planner → writer", { kind: "edge", id: "planner → writer" }],
    ["step:01a/01b:2", { kind: "step", id: "01a/01b:2" }],
    ["agent:", null],
    ["planet:mars", null],
    ["agent", null],
    [undefined, null],
  ])("%s is %j", (text, peek) => {
    expect(parsePeek(text)).toEqual(peek);
  });

  it.each([
    ["b", 1, "c"],
    ["b", -1, "a"],
    ["c", 1, null],
    ["x", 1, "a"],
    [undefined, 1, "a"],
  ] as const)("after %s by %i comes %s", (now, by, to) => {
    expect(neighbour(["a", "b", "c"], now, by)).toBe(to);
  });
});

describe("the connection in words", () => {
  it.each([
    ["live", true, 100, "live"],
    ["waiting", true, 12_400, "reconnecting, data of 12 s ago"],
    ["connecting", true, null, "connecting"],
    ["refused", true, 5_000, "signed out"],
    ["waiting", false, 5_000, "offline, data of 5 s ago"],
    ["live", false, null, "offline"],
  ] as const)("%s, online %s, heard %s ms ago: %s", (state, online, age, word) => {
    expect(saidOf(state, online, age).word).toBe(word);
  });
});

describe("a saved view", () => {
  it.each([
    ["/fleet?layer=geo", "/fleet?layer=geo"],
    ["//evil.example/x", null],
    ["agent:planner since:1h", null],
  ])("%s opens the page %s", (query, page) => {
    expect(pageOf(query)).toBe(page);
  });
});

describe("a key held down", () => {
  it.each(["j", "k", "[", "]", "ArrowDown", "ArrowLeft"])("moves on by %s", (name) => {
    expect(isRepeatable(name)).toBe(true);
  });
  it.each(["a", "r", "u", "p", "Enter", "Space", "Escape", "mod+enter", "1"])("acts once by %s", (name) => {
    expect(isRepeatable(name)).toBe(false);
  });
});
