import { expect, test } from "vitest";
import type { RegionsAnswer } from "~/protocol/openapi";
import { linesOf, placesOf, valuesOf } from "./regionForm";

const ANSWER = {
  clusters: {
    "lab-*": { region: "eu-central-2" },
    lab: { region: "eu-central-1" },
    hidden: {},
    ship: { lat: 1, lon: 2, name: "Ship" },
  },
  placed: [
    { cluster_id: "aws-us-east-1", name: "N. Virginia", by: "name" },
    { cluster_id: "lab-2", name: "Zurich", by: "operator" },
    { cluster_id: "lab", name: "Frankfurt", by: "operator" },
    { cluster_id: "ship", name: "Ship", by: "operator" },
  ],
  unplaced: ["garage", "hidden"],
  known: [],
  updated_at: null,
  updated_by: null,
} as unknown as RegionsAnswer;

test("clusters without a region come first, each with its region and why", () => {
  expect(linesOf(ANSWER).map((one) => [one.cluster, one.found])).toEqual([
    ["garage", null],
    ["hidden", null],
    ["aws-us-east-1", "N. Virginia, from its name"],
    ["lab-2", "Zurich, by lab-*"],
    ["lab", null],
    ["ship", null],
    ["lab-*", null],
  ]);
  expect(valuesOf(ANSWER)).toEqual({
    garage: "",
    hidden: "-",
    "aws-us-east-1": "",
    "lab-2": "",
    "lab-*": "eu-central-2",
    lab: "eu-central-1",
    ship: "@",
  });
});

test("unchanged entries are kept, coordinates too", () => {
  expect(placesOf(valuesOf(ANSWER), ANSWER.clusters)).toEqual(ANSWER.clusters);
  expect(placesOf({ ...valuesOf(ANSWER), garage: "us-east-1", lab: "" }, ANSWER.clusters)).toEqual({
    garage: { region: "us-east-1" },
    "lab-*": { region: "eu-central-2" },
    hidden: {},
    ship: { lat: 1, lon: 2, name: "Ship" },
  });
});
