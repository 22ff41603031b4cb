// Dead letters: failed runs and deliveries with reason and payload; retried or discarded, one or many.
import { Button, Checkbox, CloseButton, SegmentedControl, TextInput } from "@mantine/core";
import { useMemo, useState } from "react";
import { type LetterAct, settleDeadLetters } from "~/commands/jobs";
import type { DeadLetterItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { Empty, ErrorNotice, Loading } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import { useSearchText } from "~/widgets/useSearchText";
import classes from "../Scheduler.module.css";
import { useLetters } from "../useSchedule";
import { DeadLetter } from "./DeadLetter";
import {
  KINDS,
  letters as many,
  meant,
  pick,
  readShown,
  STATES,
  shortReason,
  toggled,
} from "./deadLetterList";

interface Row {
  letter: DeadLetterItem;
  chosen: boolean;
  toggle: (id: string) => void;
}

export function DeadLetters() {
  const [url, setUrl] = useUrl();
  const { q, state, kind } = readShown(url);
  const query = useLetters(state, kind);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [toggle] = useState(() => (id: string) => setChosen((before) => toggled(before, id)));
  const shown = useMemo(() => pick(query.data?.items ?? [], q), [query.data, q]);
  const rows = useMemo(
    (): Row[] => shown.map((letter) => ({ letter, chosen: chosen.has(letter.letter_id), toggle })),
    [shown, chosen, toggle],
  );
  const search = useSearchText(q, (next) => setUrl({ q: next }, true));
  const total = query.data?.items.length ?? 0;
  const picked = shown.filter((one) => chosen.has(one.letter_id)).length;
  return (
    <div className={classes.split} data-alone={url.letter === undefined || undefined}>
      <div className={classes.main}>
        <search className={classes.bar} aria-label="Filter the dead letters">
          <TextInput
            size="xs"
            type="text"
            className={classes.search}
            aria-label="Search dead letters by name, reason, payload"
            placeholder="name, reason, payload"
            value={search.text}
            onChange={(event) => search.type(event.currentTarget.value)}
            rightSection={
              search.text && (
                <CloseButton
                  size="xs"
                  aria-label="Clear search"
                  onClick={() => {
                    search.clear();
                    setUrl({ q: null }, true);
                  }}
                />
              )
            }
          />
          <SegmentedControl
            size="xs"
            aria-label="State"
            data={[
              { value: "dead", label: "Pending" },
              { value: "retried", label: "Retried" },
              { value: "discarded", label: "Discarded" },
            ]}
            value={state}
            onChange={(next) => setUrl({ state: next === "dead" ? null : next }, true)}
          />
          <SegmentedControl
            size="xs"
            aria-label="Kind"
            data={[
              { value: "all", label: "All" },
              { value: "job", label: "Jobs" },
              { value: "webhook", label: "Webhooks" },
            ]}
            value={kind ?? "all"}
            onChange={(next) => setUrl({ kind: next === "all" ? null : next }, true)}
          />
          {state === "dead" && shown.length > 0 && (
            <Bulk ids={meant(shown, chosen)} isAll={picked === 0} done={() => setChosen(new Set())} />
          )}
        </search>
        {rows.length > 0 && (
          <Grid
            label="Dead letters"
            columns={COLUMNS}
            rows={rows}
            keyOf={keyOf}
            current={url.letter}
            onOpen={({ letter }) => setUrl({ letter: letter.letter_id })}
          />
        )}
        {!query.data && query.error && <ErrorNotice problem={query.error} again={() => query.refetch()} />}
        {!query.data && !query.error && <Loading rows={5} />}
        {query.data && total === 0 && state === "dead" && (
          <Empty command="observatory dead-letters list">
            No dead letters. A run or webhook delivery that is out of retries is kept here until a person
            retries or discards it. On the command line:
          </Empty>
        )}
        {query.data && total === 0 && state !== "dead" && (
          <Empty>No dead letter was {state === "retried" ? "retried" : "discarded"} yet.</Empty>
        )}
        {query.data && total > 0 && (
          <p className={classes.foot} role="status">
            {query.error && <span className={classes.stale}>Not up to date: {query.error.message}</span>}
            <span>
              {shown.length === total ? many(total) : `${shown.length} of ${many(total)}`}
              {query.data.more && " or more"}
              {picked > 0 && `, ${picked} selected`}
            </span>
            {picked > 0 && (
              <button type="button" className={classes.link} onClick={() => setChosen(new Set())}>
                clear selection
              </button>
            )}
            {shown.length === 0 && (
              <button type="button" className={classes.link} onClick={() => setUrl({ q: null }, true)}>
                show all
              </button>
            )}
          </p>
        )}
      </div>
      {url.letter !== undefined && (
        <aside className={classes.aside} aria-label="Selected dead letter" tabIndex={-1}>
          <DeadLetter key={url.letter} letter_id={url.letter} />
        </aside>
      )}
    </div>
  );
}

const keyOf = ({ letter }: Row) => letter.letter_id;

function Bulk({ ids, isAll, done }: { ids: string[]; isAll: boolean; done: () => void }) {
  const denied = useWhyNot("operate");
  const [asking, setAsking] = useState<{ does: LetterAct; ids: string[] } | null>(null);
  const [progress, setProgress] = useState<number | null>(null);
  const word = isAll && ids.length > 1 ? `all ${ids.length}` : many(ids.length);
  const plain = {
    size: "compact-sm",
    variant: "default",
    disabled: denied !== undefined,
    title: denied,
  } as const;
  const run = async () => {
    if (!asking) return;
    setProgress(0);
    await settleDeadLetters(asking.ids, asking.does, setProgress);
    setProgress(null);
    setAsking(null);
    done();
  };
  return (
    <>
      <span className={classes.right}>
        <Button {...plain} onClick={() => setAsking({ does: "retry", ids })}>
          Retry {word}…
        </Button>
        <Button {...plain} onClick={() => setAsking({ does: "discard", ids })}>
          Discard {word}…
        </Button>
      </span>
      {denied && <span className={classes.faint}>{denied}</span>}
      {asking && (
        <div style={{ flexBasis: "100%" }}>
          <ConfirmInline
            does={
              asking.does === "retry"
                ? `Retry ${many(asking.ids.length)}`
                : `Discard ${many(asking.ids.length)}`
            }
            danger={asking.does === "discard"}
            onNo={() => setAsking(null)}
            onYes={run}
          >
            <p>
              {asking.does === "retry"
                ? "Each is retried now; one that fails again becomes a new dead letter. Agents and receivers may get duplicates."
                : "They are never retried. The audit trail keeps each and who discarded it. This cannot be undone."}
              {progress !== null && (
                <span role="status">
                  {" "}
                  {progress} of {asking.ids.length} done…
                </span>
              )}
            </p>
          </ConfirmInline>
        </div>
      )}
    </>
  );
}

const COLUMNS: readonly Column<Row>[] = [
  {
    id: "name",
    title: "Source",
    width: "24%",
    cell: ({ letter, chosen, toggle }) => (
      <span className={classes.choose}>
        {letter.state === "dead" && (
          <Checkbox
            size="xs"
            aria-label={`Select the dead letter of ${letter.source_name}`}
            checked={chosen}
            onChange={() => toggle(letter.letter_id)}
          />
        )}
        <span title={letter.source_name}>{letter.source_name}</span>
      </span>
    ),
  },
  { id: "kind", title: "Kind", width: 76, from: 520, cell: ({ letter }) => KINDS[letter.kind] },
  {
    id: "reason",
    title: "Reason",
    cell: ({ letter }) => <span title={letter.reason}>{shortReason(letter.reason)}</span>,
  },
  {
    id: "preview",
    title: "Payload",
    width: "22%",
    from: 760,
    cell: ({ letter }) => <span className="mono">{letter.preview}</span>,
  },
  { id: "at", title: "Failed at", width: 84, cell: ({ letter }) => <Ago at={letter.created_at} /> },
  {
    id: "state",
    title: "State",
    width: 100,
    from: 600,
    cell: ({ letter }) => (
      <Tag tone={STATES[letter.state].tone}>
        {STATES[letter.state].mark} {STATES[letter.state].word}
      </Tag>
    ),
  },
];
