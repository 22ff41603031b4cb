// Form state that survives unmounting: input is kept by name (another section, an expired sign-in), faults
// are at their fields, and concurrent changes are detected before they are overwritten.
import { useMemo, useState } from "react";
import type { Problem } from "~/api/client";
import { refetch } from "~/api/queries";
import { useDraft } from "~/widgets/drafts";
import { type Faults, faultsOf } from "../faults";

/** Every value as typed: numbers and times are text until they are sent. */
export type Values = Record<string, string | boolean | string[]>;

interface KeptDraft {
  values: Values;
  was: string | null;
}

export interface Form {
  values: Values;
  text: (name: string) => string;
  flag: (name: string) => boolean;
  list: (name: string) => string[];
  faults: Faults;
  /** Faults without a field. */
  trouble: string | null;
  set: (changes: Values) => void;
  setFaults: (faults: Faults) => void;
  isDirty: boolean;
  /** Changed by someone else since the draft was started. */
  isTheirs: boolean;
  /** The version the draft is based on, for the gateway to compare. */
  was: string | null;
  goOn: () => void;
  forget: () => void;
  refused: (problem: Problem) => boolean;
}

/** `saved` is the gateway's value, `at` when that last changed; null for a new item. */
export function useForm(name: string, saved: Values, at: string | null = null): Form {
  const [draft, setDraft] = useDraft(`settings ${name}`);
  const kept = useMemo(() => (draft === null ? null : (JSON.parse(draft) as KeptDraft)), [draft]);
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
      // Signed out: the shell shows the sign-in page, and the draft is kept.
      if (problem.code === 401) refetch("/v1/whoami");
      if (problem.code === 0 || problem.code === 401) return false;
      const assigned = faultsOf(problem, Object.keys(values));
      setFaults(assigned.at);
      setTrouble(assigned.rest);
      return true;
    },
  };
}
