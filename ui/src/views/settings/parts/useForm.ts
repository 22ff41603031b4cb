// A form whose text outlives it: what is typed is kept by name (another section, a sign-in that ended), faults
// stand at their fields, and what somebody else saved meanwhile is noticed before it is overwritten.
import { useMemo, useState } from "react";
import type { Problem } from "~/api/client";
import { askAgain } from "~/api/questions";
import { useDraft } from "~/widgets/drafts";
import { type Faults, faultsOf } from "../faults";

/** Everything as it is typed: numbers and times are text until they are sent. */
export type Values = Record<string, string | boolean | string[]>;

interface Kept {
  values: Values;
  was: string | null;
}

export interface Form {
  values: Values;
  text: (name: string) => string;
  flag: (name: string) => boolean;
  list: (name: string) => string[];
  faults: Faults;
  /** What belongs to no field. */
  trouble: string | null;
  set: (changes: Values) => void;
  setFaults: (faults: Faults) => void;
  isDirty: boolean;
  /** Somebody changed it since the draft was begun. */
  isTheirs: boolean;
  /** The change the draft was begun from, for the gateway to compare. */
  was: string | null;
  goOn: () => void;
  forget: () => void;
  refused: (problem: Problem) => boolean;
}

/** `saved` is what the gateway holds, `at` when that was last changed; null for what is not made yet. */
export function useForm(name: string, saved: Values, at: string | null = null): Form {
  const [draft, setDraft] = useDraft(`settings ${name}`);
  const kept = useMemo(() => (draft === null ? null : (JSON.parse(draft) as Kept)), [draft]);
  const [faults, setFaults] = useState<Faults>({});
  const [trouble, setTrouble] = useState<string | null>(null);
  const values = kept ? { ...saved, ...kept.values } : saved;
  const isDirty = kept !== null && JSON.stringify(values) !== JSON.stringify(saved);
  const keep = (next: Values, was: string | null) => setDraft(JSON.stringify({ values: next, was }));
  return {
    values,
    text: (field) => String(values[field] ?? ""),
    flag: (field) => values[field] === true,
    list: (field) => (Array.isArray(values[field]) ? (values[field] as string[]) : []),
    faults,
    trouble,
    set: (changes) => {
      keep({ ...values, ...changes }, kept ? kept.was : at);
      setTrouble(null);
      setFaults((before) =>
        Object.fromEntries(Object.entries(before).filter(([field]) => !(field in changes))),
      );
    },
    setFaults,
    isDirty,
    isTheirs: isDirty && kept.was !== at,
    was: kept ? kept.was : at,
    goOn: () => keep(values, at),
    forget: () => {
      setDraft(null);
      setFaults({});
      setTrouble(null);
    },
    refused: (problem) => {
      // Signed out: the shell asks for the key, and the draft is here when one is back.
      if (problem.code === 401) askAgain("/v1/whoami");
      if (problem.code === 0 || problem.code === 401) return false;
      const told = faultsOf(problem, Object.keys(values));
      setFaults(told.at);
      setTrouble(told.rest);
      return true;
    },
  };
}
