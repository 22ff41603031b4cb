import { expect, test } from "vitest";
import { type PlacedCard, placeCallouts } from "./calloutPlacement";

const card = (x: number, y: number): PlacedCard => ({ x, y, r: 8, width: 200, height: 80 });

test("a card is placed outwards of its node, level with it", () => {
  expect(placeCallouts([card(300, 200)], 1000, 500)).toEqual([{ x: 82, y: 160 }]);
  expect(placeCallouts([card(700, 200)], 1000, 500)).toEqual([{ x: 718, y: 160 }]);
});

test("without space outwards it is placed inwards", () => {
  expect(placeCallouts([card(100, 200)], 1000, 500)[0]?.x).toBe(118);
});

test("two close incidents do not overlap", () => {
  const [a, b] = placeCallouts([card(300, 200), card(305, 210)], 1000, 500);
  expect(a).not.toBeNull();
  expect(b).not.toBeNull();
  const apart = Math.abs((a?.y ?? 0) - (b?.y ?? 0)) >= 80 || Math.abs((a?.x ?? 0) - (b?.x ?? 0)) >= 200;
  expect(apart).toBe(true);
});

test("at the upper edge it moves down instead of out of sight", () => {
  expect(placeCallouts([card(300, 10)], 1000, 500)[0]?.y).toBeGreaterThanOrEqual(4);
});

test("a card without space is not shown, and the worst is placed first", () => {
  const found = placeCallouts([card(120, 60), card(125, 62)], 250, 100);
  expect(found).toEqual([null, null]);
  const narrow = placeCallouts([card(20, 50), card(24, 52)], 250, 100);
  expect(narrow[0]).not.toBeNull();
  expect(narrow[1]).toBeNull();
});
