// Memory at the scrubbed moment, fact by fact with its source, and the spread of the traced one.
import { TextInput } from "@mantine/core";
import { useState } from "react";
import { useApi } from "~/api/queries";
import { useUrl } from "~/useUrl";
import { Empty, Loaded } from "~/widgets/Panel";
import { Facts } from "../step/Facts";
import { Infection } from "./Infection";
import classes from "./Scratch.module.css";

export function Memory({
  sessionId,
  at,
  fact,
  goTo,
}: {
  sessionId: string;
  at: number | null;
  fact: string | undefined;
  goTo: (sequence_number: number) => void;
}) {
  const [words, setWords] = useState("");
  const [url] = useUrl();
  const query = useApi(
    "/v1/memory",
    { session: sessionId, seq: at ?? undefined, limit: 200 },
    { keep: true, every: at === null ? 4_000 : false },
  );
  return (
    <section className={classes.pad} aria-label="Memory">
      <div className={classes.bar}>
        <span className={classes.faint}>{at === null ? "current memory" : `memory after #${at}`}</span>
        <TextInput
          size="xs"
          className={classes.who}
          aria-label="Find in memory"
          placeholder="Find in memory"
          value={words}
          onChange={(event) => setWords(event.currentTarget.value)}
        />
      </div>
      <div className={classes.facts}>
        {fact && <Infection fact={fact} at={at} query={url.fact !== undefined} {...{ sessionId, goTo }} />}
        <Loaded query={query}>
          {(data) => {
            const facts = data.items.filter((one) => one.text.toLowerCase().includes(words.toLowerCase()));
            if (data.items.length === 0)
              return (
                <Empty>
                  Memory is empty. An agent adds a fact with <code>state_delta.added_to_memory</code>.
                </Empty>
              );
            return (
              <>
                <p className={classes.faint}>
                  {facts.length}
                  {data.next_cursor ? "+" : ""} facts, newest first
                </p>
                <Facts facts={facts} label="Facts" goTo={goTo} />
              </>
            );
          }}
        </Loaded>
      </div>
    </section>
  );
}
