// Search and filters of the registry. Everything goes to the URL at once.
import { CloseButton, SegmentedControl, TextInput } from "@mantine/core";
import type { RefObject } from "react";
import { useSearchText } from "~/widgets/useSearchText";
import classes from "./FilterBar.module.css";
import { LivenessMark } from "./LivenessMark";
import { type FilteredGroups, type Filters, isFiltered, LIVENESS, LIVES, toggled } from "./registryRows";

export const NO_FILTER = { q: null, kind: null, live: null, circuit: null };

interface FilterBarProps {
  filters: Filters;
  counts: FilteredGroups["counts"];
  set: (changes: Record<string, string | null>) => void;
  field: RefObject<HTMLInputElement | null>;
}

export function FilterBar({ filters, counts, set, field }: FilterBarProps) {
  const search = useSearchText(filters.q, (q) => set({ q }));
  const clear = (changes: Record<string, string | null>) => {
    search.clear();
    set(changes);
  };
  return (
    <search className={classes.bar} aria-label="Filter the registry">
      <TextInput
        ref={field}
        size="xs"
        className={classes.text}
        aria-label="Search types, agents, models, versions, clusters and hub addresses"
        placeholder="type, agent, model, version, cluster, hub"
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
        aria-label="Types or capabilities"
        data={[
          { value: "all", label: "All" },
          { value: "types", label: "Types" },
          { value: "capabilities", label: "Capabilities" },
        ]}
        value={filters.kind}
        onChange={(kind) => set({ kind: kind === "all" ? null : kind })}
      />
      <fieldset className={classes.lives}>
        <legend className="unseen">Liveness</legend>
        {LIVENESS.map((one) => (
          <button
            key={one}
            type="button"
            className={classes.chip}
            aria-pressed={filters.live.includes(one)}
            title={LIVES[one].means}
            onClick={() => set({ live: toggled(filters.live, one) || null })}
          >
            <LivenessMark live={one} /> <b>{counts[one]}</b>
          </button>
        ))}
        <button
          type="button"
          className={classes.chip}
          aria-pressed={filters.open}
          title="capabilities with an open or half-open circuit"
          onClick={() => set({ circuit: filters.open ? null : "open" })}
        >
          × circuit open
        </button>
      </fieldset>
      {isFiltered(filters) && (
        <button type="button" className={classes.clear} onClick={() => clear(NO_FILTER)}>
          clear filters
        </button>
      )}
    </search>
  );
}
