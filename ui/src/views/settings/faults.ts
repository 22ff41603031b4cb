// Where a refusal belongs: the gateway names a member by a path, by the reason, or at the head of its sentence.
// What belongs to no field of the form is told above its buttons. Pure.
import type { Problem } from "~/api/client";

export type Faults = Record<string, string>;

/** Reasons that are about one member of the body. */
const MEMBERS: Record<string, string> = {
  bad_url: "url",
  bad_events: "events",
  bad_filters: "filters",
  bad_secret: "secret",
  bad_key: "vkey",
  name_taken: "name",
  kind_fixed: "kind",
  unknown_endpoint: "endpoint_ids",
};

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** The field a path is about: `$.mapping.target.agent`, `mapping.intent` and `loops` all have one. */
export function fieldOf(path: string, fields: readonly string[]): string | undefined {
  const parts = path.replace(/^\$\.?/, "").split(/[.[\]]+/);
  for (let from = 0; from < parts.length; from += 1)
    for (let to = parts.length; to > from; to -= 1) {
      const name = parts.slice(from, to).join(".");
      if (fields.includes(name)) return name;
    }
  return undefined;
}

export function faultsOf(
  problem: Pick<Problem, "reason" | "message" | "faults">,
  fields: readonly string[],
): { at: Faults; rest: string | null } {
  const at: Faults = {};
  const rest: string[] = [];
  const put = (path: string, text: string) => {
    const field = fieldOf(path, fields);
    if (field === undefined) rest.push(`${path}: ${text}`);
    else at[field] = sentence(text);
  };
  for (const fault of problem.faults) put(fault.path, fault.problem);
  if (problem.faults.length > 0) return { at, rest: rest.join("\n") || null };

  const member = MEMBERS[problem.reason];
  if (member && fields.includes(member)) return { at: { [member]: sentence(problem.message) }, rest: null };

  const unfit = /^not valid: ([\w., []+);/.exec(problem.message);
  if (unfit?.[1]) {
    for (const name of unfit[1].split(", ")) put(name, "the gateway does not take this value");
    return { at, rest: rest.join("\n") || null };
  }
  // "pattern: each repeat needs an end", or several of a mapping: "mapping.when is no expression; mapping.…"
  for (const told of problem.message.split(/; (?=mapping\.)/)) {
    const [, path, text] = /^([a-z][\w.]*)(?:: | )(.+)$/s.exec(told) ?? [];
    const field =
      path && (told.includes(`${path}: `) || path.startsWith("mapping.")) && fieldOf(path, fields);
    if (field && text) at[field] = sentence(text);
    else rest.push(sentence(told));
  }
  return { at, rest: rest.join("\n") || null };
}
