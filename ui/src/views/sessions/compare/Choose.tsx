// Selects the two sessions: by goal or id from the gateway's search, and swap.
import { ActionIcon, Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useApi } from "~/api/queries";
import { ago } from "~/widgets/format";
import { rowOf, type SessionRow, STATUSES } from "../list/session";
import classes from "./Compare.module.css";

interface Chosen {
  left: string | undefined;
  right: string | undefined;
  onChange: (changes: Record<string, string | null>) => void;
}

export function Choose({ left, right, onChange }: Chosen) {
  return (
    <div className={classes.choose}>
      <Pick
        label="Left: before"
        value={left}
        other={right}
        onPick={(id) => onChange({ left: id, at: null })}
      />
      <ActionIcon
        variant="default"
        aria-label="Swap left and right"
        title="swap"
        disabled={!left && !right}
        onClick={() => onChange({ left: right ?? null, right: left ?? null, at: null })}
      >
        ⇄
      </ActionIcon>
      <Pick
        label="Right: after"
        value={right}
        other={left}
        onPick={(id) => onChange({ right: id, at: null })}
      />
    </div>
  );
}

function Pick({
  label,
  value,
  other,
  onPick,
}: {
  label: string;
  value: string | undefined;
  other: string | undefined;
  onPick: (id: string | null) => void;
}) {
  const [text, setText] = useState("");
  const [q] = useDebouncedValue(text, 200);
  const found = useApi("/v1/sessions", { q: q.length > 1 ? q : null, limit: 50 } as never, { keep: true });
  const own = useApi("/v1/sessions/{session_id}", undefined, {
    params: { session_id: value ?? "" },
    enabled: value !== undefined,
  });
  const rows = (found.data?.items ?? []).map((item) => rowOf(item as SessionRow));
  const chosen = own.data && rowOf(own.data as unknown as SessionRow);
  if (chosen && !rows.some((row) => row.session_id === chosen.session_id)) rows.unshift(chosen);
  const known = new Set(rows.map((row) => row.session_id));
  const options = rows.map((row) => ({
    value: row.session_id,
    label: `${row.goal ?? "session"} · ${row.session_id.slice(-6)}`,
    disabled: row.session_id === other,
  }));
  if (value && !known.has(value)) options.unshift({ value, label: value, disabled: false });
  return (
    <Select
      size="xs"
      className={classes.pick}
      label={label}
      placeholder="goal, agent or id"
      searchable
      value={value ?? null}
      data={options}
      filter={({ options: all }) => all} // the gateway has searched
      onSearchChange={(typed) => setText(options.some((option) => option.label === typed) ? "" : typed)}
      onChange={onPick}
      nothingFoundMessage={found.isFetching ? "searching…" : "no matches"}
      renderOption={({ option }) => {
        const row = rows.find((one) => one.session_id === option.value);
        return (
          <span className={classes.option}>
            <span>{option.label}</span>
            {row && (
              <span className={classes.faint}>
                {STATUSES[row.status].word}, {row.messages} steps, {ago(row.started_at, Date.now())}
              </span>
            )}
          </span>
        );
      }}
    />
  );
}
