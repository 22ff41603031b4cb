// Filters of the audit log. Everything goes to the URL; "live" applies to this visit only.
import { Autocomplete, NativeSelect, Switch, TextInput } from "@mantine/core";
import type { RefObject } from "react";
import { useSearchText } from "~/widgets/useSearchText";
import classes from "./Audit.module.css";
import { type Asked, isAsked, SEVERITIES, SPANS } from "./auditQuery";

export const NO_FILTER = {
  type: null,
  sev: null,
  who: null,
  trace: null,
  within: null,
  since: null,
  until: null,
};

interface Props {
  request: Asked;
  types: string[];
  isLive: boolean;
  setLive: (live: boolean) => void;
  set: (changes: Record<string, string | null>) => void;
  field: RefObject<HTMLInputElement | null>;
}

export function FilterBar({ request: asked, types, isLive, setLive, set, field }: Props) {
  const type = useSearchText(asked.type, (text) => set({ type: text }));
  const who = useSearchText(asked.who, (text) => set({ who: text }));
  const trace = useSearchText(asked.trace, (text) => set({ trace: text }));
  const clear = () => {
    for (const one of [type, who, trace]) one.clear();
    set(NO_FILTER);
  };
  return (
    <search className={classes.bar} aria-label="Filter the audit log">
      <Autocomplete
        ref={field}
        size="xs"
        className={classes.field}
        aria-label="Event type"
        placeholder="event type"
        data={types}
        limit={12}
        value={type.text}
        onChange={type.type}
      />
      <TextInput
        size="xs"
        className={classes.field}
        aria-label="Actor: agent name or id"
        placeholder="agent, user or id"
        value={who.text}
        onChange={(event) => who.type(event.currentTarget.value)}
      />
      <TextInput
        size="xs"
        className={classes.field}
        aria-label="Session or trace"
        placeholder="session or trace"
        value={trace.text}
        onChange={(event) => trace.type(event.currentTarget.value)}
      />
      <NativeSelect
        size="xs"
        aria-label="Severity"
        data={SEVERITIES}
        value={asked.sev}
        onChange={(event) => set({ sev: event.currentTarget.value || null })}
      />
      <NativeSelect
        size="xs"
        aria-label="Time"
        data={SPANS}
        value={asked.within}
        onChange={(event) => set({ within: event.currentTarget.value || null, since: null, until: null })}
      />
      {asked.within === "between" && (
        <>
          <TextInput
            size="xs"
            type="datetime-local"
            aria-label="From"
            value={asked.since}
            onChange={(event) => set({ within: "between", since: event.currentTarget.value || null })}
          />
          <TextInput
            size="xs"
            type="datetime-local"
            aria-label="Until"
            value={asked.until}
            onChange={(event) => set({ within: "between", until: event.currentTarget.value || null })}
          />
        </>
      )}
      <Switch
        size="xs"
        label={isLive ? "live" : "held"}
        aria-label="Follow new events"
        checked={isLive}
        onChange={(event) => setLive(event.currentTarget.checked)}
      />
      {isAsked(asked) && (
        <button type="button" className={classes.link} onClick={clear}>
          clear filters
        </button>
      )}
    </search>
  );
}
