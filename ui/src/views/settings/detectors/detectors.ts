// Form of the detector settings: the meaning of each value; only changes are sent. Pure.
import type { DetectorAnswer } from "~/protocol/openapi";
import type { Faults } from "../faults";
import type { Values } from "../parts/useForm";
import { secondsOf, spanText } from "../spans";

/** Names, whole or share, and limits; `loops.` are the second detector's. */
export const FIGURES: Record<
  string,
  { label: string; means: string; least: number; most: number; whole: boolean }
> = {
  window: { label: "Window", means: "Steps of a session the score covers.", least: 2, most: 50, whole: true },
  n_min: { label: "Minimum steps", means: "With fewer there is no score.", least: 1, most: 50, whole: true },
  loop_below: {
    label: "Loop below",
    means: "A lower score is a LOOP: the node flashes and an alert is raised.",
    least: 0,
    most: 1,
    whole: false,
  },
  warning_up_to: {
    label: "Warning up to",
    means: "Up to this score: amber, without an alert.",
    least: 0,
    most: 1,
    whole: false,
  },
  discrepancy_gap: {
    label: "Discrepancy threshold",
    means: "An agent's own score may differ by this much before it is recorded.",
    least: 0,
    most: 1,
    whole: false,
  },
  "loops.rounds": {
    label: "Rounds of one step",
    means: "This many equal calls with the same outcome are a loop.",
    least: 3,
    most: 20,
    whole: true,
  },
  "loops.cycle_rounds": {
    label: "Rounds of a cycle",
    means: "Full rounds of two to four steps.",
    least: 3,
    most: 5,
    whole: true,
  },
  "loops.likeness_pct": {
    label: "Similarity (%)",
    means: "Texts at least this similar count as equal.",
    least: 20,
    most: 100,
    whole: true,
  },
  "loops.calm_steps": {
    label: "Steps that end it",
    means: "After this many steps out of the pattern the loop is over.",
    least: 1,
    most: 20,
    whole: true,
  },
};

export function valuesOf(answer: DetectorAnswer): Values {
  const { loops = {}, injections = {} } = answer;
  const values: Values = {
    stuck_s: spanText(answer.stuck_s ?? 600),
    "loops.on": loops.on ?? true,
    "loops.polling_tools": loops.polling_tools ?? [],
    "injections.on": injections.on ?? true,
  };
  for (const name of Object.keys(FIGURES)) values[name] = String(found(answer, name) ?? "");
  return values;
}

function found(answer: DetectorAnswer, name: string): unknown {
  const [first, second] = name.split(".");
  return second
    ? (answer[first as "injections" | "loops"] as Record<string, unknown> | undefined)?.[second]
    : (answer as Record<string, unknown>)[first ?? ""];
}

type Changes = Record<string, unknown>;

/** The changes and their old values; or every fault. */
export function readDetectors(
  values: Values,
  saved: DetectorAnswer,
): { changes: Changes; before: Changes; faults: null } | { faults: Faults } {
  const faults: Faults = {};
  const wanted: Record<string, unknown> = {
    "loops.on": values["loops.on"],
    "loops.polling_tools": values["loops.polling_tools"],
    "injections.on": values["injections.on"],
    stuck_s: secondsOf(String(values.stuck_s)),
  };
  if (wanted.stuck_s === null || Number(wanted.stuck_s) < 1)
    faults.stuck_s = "Must be a time such as 10 min.";
  for (const [name, { least, most, whole }] of Object.entries(FIGURES)) {
    const text = String(values[name] ?? "").trim();
    const figure = Number(text);
    if (
      text === "" ||
      Number.isNaN(figure) ||
      figure < least ||
      figure > most ||
      (whole && !Number.isInteger(figure))
    )
      faults[name] = `Must be ${whole ? "a whole number" : "a number"} from ${least} to ${most}.`;
    wanted[name] = figure;
  }
  if (!faults.loop_below && !faults.warning_up_to && Number(wanted.loop_below) > Number(wanted.warning_up_to))
    faults.loop_below = "Must not exceed the warning threshold.";
  if (!faults.n_min && !faults.window && Number(wanted.n_min) > Number(wanted.window))
    faults.n_min = "Must not exceed the window.";
  if (Object.keys(faults).length > 0) return { faults };
  const changes: Changes = {};
  const before: Changes = {};
  for (const [name, value] of Object.entries(wanted)) {
    const was = found(saved, name);
    if (JSON.stringify(was) === JSON.stringify(value)) continue;
    const [first = "", second] = name.split(".");
    if (!second) {
      changes[first] = value;
      before[first] = was;
    } else {
      changes[first] = { ...(changes[first] as Changes), [second]: value };
      before[first] = { ...(before[first] as Changes), [second]: was };
    }
  }
  return { changes, before, faults: null };
}
