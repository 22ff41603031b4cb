// What was in memory at the moment scrubbed to, fact by fact with its source, and the spread of the one that
// is traced.
import { TextInput } from "@mantine/core";
import { useState } from "react";
import { useAnswer } from "~/api/questions";
import { useUrl } from "~/useUrl";
import { Empty, Shown } from "~/widgets/Panel";
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
  const asked = useAnswer(
    "/v1/memory",
    { session: sessionId, seq: at ?? undefined, limit: 200 },
    { keep: true, every: at === null ? 4_000 : false },
  );
  return (
    <section className={classes.pad} aria-label="Memory">
      <div className={classes.bar}>
        <span className={classes.faint}>
          {at === null ? "what is held now" : `what was held after #${at}`}
        </span>
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
        {fact && <Infection fact={fact} at={at} asked={url.fact !== undefined} {...{ sessionId, goTo }} />}
        <Shown asked={asked}>
          {(data) => {
            const facts = data.items.filter((one) => one.text.toLowerCase().includes(words.toLowerCase()));
            if (data.items.length === 0)
              return (
                <Empty>
                  Nothing was in memory. An agent adds a fact with <code>state_delta.added_to_memory</code>.
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
        </Shown>
      </div>
    </section>
  );
}
