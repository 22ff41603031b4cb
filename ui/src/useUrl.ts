// The URL is the whole state: one hook to read and change it.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";
import type { Search } from "./router";

type Changes = Record<string, string | undefined | null>;

/**
 * `[search, set]`; `set({ q: "x", peek: null })` merges, null or "" removes; `replace` adds no history entry.
 */
export function useUrl(): [Search, (changes: Changes, replace?: boolean) => void] {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const set = useCallback(
    (changes: Changes, replace = false) => {
      void navigate({
        to: ".",
        replace,
        search: ((before: Search) => {
          const after: Search = { ...before };
          for (const [name, value] of Object.entries(changes)) {
            if (value === null || value === undefined || value === "") delete after[name];
            else after[name] = value;
          }
          return after;
        }) as never,
      });
    },
    [navigate],
  );
  return [search, set];
}
