import { expect, test } from "vitest";
import type { PeerItem } from "~/protocol/openapi";
import { NEW, readPeer, standingOf } from "./peers";

test("a fork overrides the last response", () => {
  const peer = { asked: { state: "cosigned" }, fork: null } as PeerItem;
  expect(standingOf(peer).word).toBe("✓ cosigned");
  expect(standingOf({ ...peer, fork: { kind: "rollback" } } as PeerItem)).toEqual({
    tone: "alert",
    word: "! rollback",
  });
});

test("a peer needs a name and a key; URLs are optional", () => {
  expect(Object.keys(readPeer(NEW).faults ?? {})).toEqual(["name", "vkey"]);
  expect(readPeer({ ...NEW, name: "them", vkey: "a+b+c" }).body).toEqual({
    name: "them",
    vkey: "a+b+c",
    url: null,
    log_url: null,
  });
});
