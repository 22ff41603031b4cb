// Memory changes of a step: read, added, and held before; with the actions on each fact. The texts come from
// the step itself, the actions from the analyst's facts.
import { useState } from "react";
import { useApi } from "~/api/queries";
import { Facts, More, PlainFacts } from "./Facts";
import classes from "./Step.module.css";
import type { StepDetails } from "./stepDetails";

const FIRST = 6;

export function MemoryChanges({
  step: details,
  goTo,
}: {
  step: StepDetails;
  goTo: (sequence_number: number) => void;
}) {
  const [all, setAll] = useState(false);
  const query = useApi(
    "/v1/memory",
    { session: details.session_id, agent: details.agent_id, seq: details.sequence_number, limit: 200 },
    { enabled: details.agent_id !== null },
  );
  const held = query.data?.items ?? [];
  const added = held.filter((fact) => fact.sequence_number === details.sequence_number);
  const read = details.input.read_from_memory;
  const readFacts = held.filter((fact) => read.includes(fact.text) && !added.includes(fact));
  const unknown = read.filter((text) => !readFacts.some((fact) => fact.text === text));
  const before = held.filter((fact) => !added.includes(fact) && !readFacts.includes(fact));
  const texts = details.output.added_to_memory;
  const pending = texts.filter((text) => !added.some((fact) => fact.text === text));
  if (texts.length + read.length + before.length === 0 && details.input.memory_count === 0)
    return <p className={classes.none}>No memory changes</p>;
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
                {query.error
                  ? `Facts could not be loaded: ${query.error.message}`
                  : "Facts are being indexed."}
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
