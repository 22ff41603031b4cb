// Search and filters of the webhook log. Everything goes to the URL at once.
import { CloseButton, SegmentedControl, Select, TextInput } from "@mantine/core";
import { type RefObject, useMemo } from "react";
import type { HookItem, WebhookItem } from "~/protocol/openapi";
import { useSearchText } from "~/widgets/useSearchText";
import type { Entry, Filters, Group } from "./log";
import classes from "./Webhooks.module.css";

export const NO_FILTER = { q: null, way: null, state: null, endpoint: null, event: null, signature: null };

const STATES: readonly [Group, string, string][] = [
  ["done", "✓ delivered", "delivered, or accepted"],
  ["waiting", "↻ pending", "pending, retrying, or held at a gate"],
  ["dead", "× dead", "out of retries; kept as a dead letter"],
  ["refused", "! refused", "calls rejected, refused or not mapped"],
];
const SIGNATURES = [
  { value: "valid", label: "✓ verified" },
  { value: "invalid", label: "× invalid or expired" },
  { value: "missing", label: "! missing" },
];

interface FilterBarProps {
  filters: Filters;
  endpoints: readonly WebhookItem[];
  hooks: readonly HookItem[];
  entries: readonly Entry[];
  isFiltered: boolean;
  set: (changes: Record<string, string | null>) => void;
  field: RefObject<HTMLInputElement | null>;
}

export function FilterBar({ filters, endpoints, hooks, entries, isFiltered, set, field }: FilterBarProps) {
  const search = useSearchText(filters.q, (q) => set({ q }));
  const clear = (changes: Record<string, string | null>) => {
    search.clear();
    set(changes);
  };
  const whose = useMemo(() => {
    const known = [
      ...endpoints.map((one) => ({ value: one.endpoint_id, label: `→ ${one.name}` })),
      ...hooks.map((one) => ({ value: one.hook_id, label: `← ${one.name}` })),
    ];
    const { endpoint } = filters;
    // A removed one is still in the log, and may be in the URL.
    if (endpoint && !known.some((one) => one.value === endpoint)) {
      const named = entries.find((one) => one.whoId === endpoint)?.who;
      known.push({ value: endpoint, label: `${named ?? endpoint} (removed)` });
    }
    return known;
  }, [endpoints, hooks, entries, filters]);
  const events = useMemo(() => {
    const named = [...endpoints.flatMap((one) => one.events), ...(filters.event ? [filters.event] : [])];
    const sent = entries.filter((one) => one.way === "out").map((one) => one.event);
    return [...new Set([...named, ...sent])].sort();
  }, [endpoints, entries, filters.event]);
  return (
    <search className={classes.bar} aria-label="Filter the webhook log">
      <TextInput
        ref={field}
        size="xs"
        className={classes.text}
        aria-label="Search names, events, responses and ids"
        placeholder="name, event, response, id"
        value={search.text}
        onChange={(event) => search.type(event.currentTarget.value)}
        rightSection={
          search.text && (
            <CloseButton size="xs" aria-label="Clear search" onClick={() => clear({ q: null })} />
          )
        }
      />
      <SegmentedControl
        size="xs"
        aria-label="Direction"
        data={[
          { value: "all", label: "Both" },
          { value: "out", label: "→ Outbound" },
          { value: "in", label: "← Inbound" },
        ]}
        value={filters.way}
        onChange={(way) => set({ way: way === "all" ? null : way })}
      />
      <fieldset className={classes.chips}>
        <legend className="unseen">State</legend>
        {STATES.map(([state, label, means]) => (
          <button
            key={state}
            type="button"
            className={classes.chip}
            aria-pressed={filters.state === state}
            title={means}
            onClick={() => set({ state: filters.state === state ? null : state })}
          >
            {label}
          </button>
        ))}
      </fieldset>
      <Select
        size="xs"
        className={classes.select}
        aria-label="Endpoint or webhook"
        placeholder="any endpoint"
        clearable
        searchable
        value={filters.endpoint}
        data={whose}
        onChange={(endpoint) => set({ endpoint })}
      />
      <Select
        size="xs"
        className={classes.select}
        aria-label="Event"
        placeholder="any event"
        clearable
        searchable
        value={filters.event}
        data={events}
        onChange={(event) => set({ event })}
      />
      <Select
        size="xs"
        className={classes.select}
        aria-label="Signature of calls"
        placeholder="any signature"
        clearable
        value={filters.signature}
        data={SIGNATURES}
        onChange={(signature) => set({ signature })}
      />
      {isFiltered && (
        <button type="button" className={classes.link} onClick={() => clear(NO_FILTER)}>
          clear filters
        </button>
      )}
    </search>
  );
}
