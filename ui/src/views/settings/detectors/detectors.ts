// The detectors' settings as a form: what each means, and only what was changed is sent. Pure.
import type { DetectorAnswer } from "~/protocol/openapi";
import type { Faults } from "../faults";
import type { Values } from "../parts/useForm";
import { secondsOf, spanText } from "../spans";

/** Names, whole or share, and the ends; `loops.` are the second detector's. */
export const FIGURES: Record<
  string,
  { label: string; means: string; least: number; most: number; whole: boolean }
> = {
  window: { label: "Window", means: "Steps of a session the score is of.", least: 2, most: 50, whole: true },
  n_min: { label: "From how many steps", means: "Fewer are no pattern.", least: 1, most: 50, whole: true },
  loop_below: {
    label: "Loop below",
    means: "A score below it is a LOOP: the node flashes, an alert is raised.",
    least: 0,
    most: 1,
    whole: false,
  },
  warning_up_to: {
    label: "Warning up to",
    means: "From there up to it: amber, and nobody is told.",
    least: 0,
    most: 1,
    whole: false,
  },
  discrepancy_gap: {
    label: "Discrepancy from",
    means: "What an agent reports of itself may differ by so much before it is noted.",
    least: 0,
    most: 1,
    whole: false,
  },
  "loops.rounds": {
    label: "Rounds of one step",
    means: "So often the same call, with the same outcome, is a loop.",
    least: 3,
    most: 20,
    whole: true,
  },
  "loops.cycle_rounds": {
    label: "Rounds of a cycle",
    means: "Whole rounds of two to four steps.",
    least: 3,
    most: 5,
    whole: true,
  },
  "loops.likeness_pct": {
    label: "Likeness (%)",
    means: "From here on two texts mean the same.",
    least: 20,
    most: 100,
    whole: true,
  },
  "loops.calm_steps": {
    label: "Steps that end it",
    means: "Out of the pattern for so long, and the loop is over.",
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

/** What is otherwise than saved, and what it was; or every fault. */
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
  if (wanted.stuck_s === null || Number(wanted.stuck_s) < 1) faults.stuck_s = "A time such as 10 min.";
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
      faults[name] = `${whole ? "A whole number" : "A number"} from ${least} to ${most}.`;
    wanted[name] = figure;
  }
  if (!faults.loop_below && !faults.warning_up_to && Number(wanted.loop_below) > Number(wanted.warning_up_to))
    faults.loop_below = "Not above the end of the warnings.";
  if (!faults.n_min && !faults.window && Number(wanted.n_min) > Number(wanted.window))
    faults.n_min = "Not more than the window.";
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
