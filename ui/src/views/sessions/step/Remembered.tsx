// What the step did to memory: what it read, what it added, what its agent held before; and fact by fact what
// can be done about it. The words come from the step itself, the acts from the analyst's facts.
import { useState } from "react";
import { useAnswer } from "~/api/questions";
import { Facts, More, PlainFacts } from "./Facts";
import classes from "./Step.module.css";
import type { Told } from "./told";

const FIRST = 6;

export function Remembered({ told, goTo }: { told: Told; goTo: (sequence_number: number) => void }) {
  const [all, setAll] = useState(false);
  const asked = useAnswer(
    "/v1/memory",
    { session: told.session_id, agent: told.agent_id, seq: told.sequence_number, limit: 200 },
    { enabled: told.agent_id !== null },
  );
  const held = asked.data?.items ?? [];
  const added = held.filter((fact) => fact.sequence_number === told.sequence_number);
  const read = told.input.read_from_memory;
  const readFacts = held.filter((fact) => read.includes(fact.text) && !added.includes(fact));
  const unknown = read.filter((text) => !readFacts.some((fact) => fact.text === text));
  const before = held.filter((fact) => !added.includes(fact) && !readFacts.includes(fact));
  const texts = told.output.added_to_memory;
  const pending = texts.filter((text) => !added.some((fact) => fact.text === text));
  if (texts.length + read.length + before.length === 0 && told.input.memory_count === 0)
    return <p className={classes.none}>It neither read nor added anything.</p>;
  return (
    <>
      {texts.length > 0 && (
        <>
          <h4 className={classes.small}>+ added</h4>
          <Facts facts={added} label="Added to memory" />
          {pending.length > 0 && (
            <>
              <PlainFacts texts={pending} />
              <p className={classes.none}>
                {asked.error
                  ? `Facts cannot be asked for: ${asked.error.message}`
                  : "Not folded into facts yet; a moment."}
              </p>
            </>
          )}
        </>
      )}
      {read.length > 0 && (
        <>
          <h4 className={classes.small}>read</h4>
          <Facts facts={readFacts} label="Read from memory" goTo={goTo} />
          <PlainFacts texts={unknown} />
        </>
      )}
      {before.length > 0 && (
        <>
          <h4 className={classes.small}>held before ({before.length})</h4>
          <Facts facts={all ? before : before.slice(0, FIRST)} label="Held before" goTo={goTo} />
          {!all && before.length > FIRST && <More count={before.length - FIRST} open={() => setAll(true)} />}
        </>
      )}
    </>
  );
}
