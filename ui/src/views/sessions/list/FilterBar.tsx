// Search and filters of the list. Everything goes to the URL at once, so that a view can be linked and saved.
import { CloseButton, Select, TextInput } from "@mantine/core";
import type { RefObject } from "react";
import marks from "~/widgets/Mark.module.css";
import { useSearchText } from "~/widgets/useSearchText";
import classes from "./FilterBar.module.css";
import { type Filters, isFiltered, toggled } from "./filters";
import { SEVERITIES, SEVERITY_ORDER, type SessionStatus, STATUS_ORDER, STATUSES } from "./session";

export const NO_FILTER = { q: null, status: null, severity: null, stuck: null, cap: null, older: null };

interface FilterBarProps {
  filters: Filters;
  counts: Record<SessionStatus, number>;
  set: (changes: Record<string, string | null>) => void;
  field: RefObject<HTMLInputElement | null>;
}

export function FilterBar({ filters, counts, set, field }: FilterBarProps) {
  const search = useSearchText(filters.q, (q) => set({ q, older: null }));
  const clear = (changes: Record<string, string | null>) => {
    search.clear();
    set(changes);
  };
  return (
    <search className={classes.bar} aria-label="Filter sessions">
      <TextInput
        ref={field}
        size="xs"
        className={classes.text}
        aria-label="Search sessions by goal, agent or id"
        placeholder="goal, agent or id"
        value={search.text}
        onChange={(event) => search.type(event.currentTarget.value)}
        rightSection={
          search.text && (
            <CloseButton size="xs" aria-label="Clear search" onClick={() => clear({ q: null })} />
          )
        }
      />
      <fieldset className={classes.statuses}>
        <legend className="unseen">Status</legend>
        {STATUS_ORDER.map((status) => (
          <button
            key={status}
            type="button"
            className={classes.status}
            aria-pressed={filters.statuses.includes(status)}
            title={STATUSES[status].means}
            onClick={() => set({ status: toggled(filters.statuses, status) || null })}
          >
            <span className={marks.mark} data-tone={STATUSES[status].tone}>
              <span aria-hidden className={marks.glyph}>
                {STATUSES[status].mark}
              </span>
              {STATUSES[status].word}
            </span>
            <b>{counts[status]}</b>
          </button>
        ))}
      </fieldset>
      <Select
        size="xs"
        className={classes.select}
        aria-label="Severity"
        placeholder="any severity"
        clearable
        value={filters.severity}
        data={SEVERITY_ORDER.map((severity) => ({ value: severity, label: SEVERITIES[severity].word }))}
        onChange={(severity) => set({ severity })}
      />
      <Select
        size="xs"
        className={classes.select}
        aria-label="Budget cap"
        placeholder="any cost"
        clearable
        value={filters.cap}
        data={[
          { value: "soft", label: "over soft cap" },
          { value: "hard", label: "over hard cap" },
        ]}
        onChange={(cap) => set({ cap })}
      />
      <label className={classes.check}>
        <input
          type="checkbox"
          checked={filters.stuck}
          onChange={(event) => set({ stuck: event.currentTarget.checked ? "yes" : null })}
        />
        only stuck
      </label>
      {isFiltered(filters) && (
        <button type="button" className={classes.clear} onClick={() => clear(NO_FILTER)}>
          clear filters
        </button>
      )}
    </search>
  );
}
