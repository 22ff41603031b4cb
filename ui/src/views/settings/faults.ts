// Assigns a refusal to form fields: the gateway names a member by a path, by the reason, or at the start of
// its sentence. Anything else is shown above the form's buttons. Pure.
import type { Problem } from "~/api/client";

export type Faults = Record<string, string>;

/** Reasons about one member of the body. */
const MEMBERS: Record<string, string> = {
  bad_url: "url",
  bad_secret: "secret",
  bad_key: "vkey",
  name_taken: "name",
  kind_fixed: "kind",
  unknown_endpoint: "endpoint_ids",
};

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** The field of a path: `$.mapping.target.agent`, `mapping.intent` and `loops` all have one. */
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

  // "pattern: each repeat needs an end"
  const [, path, text] = /^([a-z][\w.]*): (.+)$/s.exec(problem.message) ?? [];
  const field = path && fieldOf(path, fields);
  if (field && text) return { at: { [field]: sentence(text) }, rest: null };
  return { at: {}, rest: sentence(problem.message) };
}
