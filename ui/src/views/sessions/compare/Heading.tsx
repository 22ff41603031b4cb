// Figures of both sessions side by side, and the facts only one of them remembers.
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { plural } from "~/plural";
import { Panel } from "~/widgets/Panel";
import { type Aligned, figures, type MemoryDelta } from "./aligned";
import classes from "./Compare.module.css";

export function Heading({ compared }: { compared: Aligned }) {
  return (
    <table className={classes.figures} aria-label="Figures of both sessions">
      <thead>
        <tr>
          <th>
            <span className="unseen">Side</span>
          </th>
          {figures(compared).map(({ name }) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        <Side name={<Open id={compared.left.session_id}>left</Open>} compared={compared} pick="left" />
        <Side name={<Open id={compared.right.session_id}>right</Open>} compared={compared} pick="right" />
        <Side name="right minus left" compared={compared} pick="delta" />
      </tbody>
    </table>
  );
}

function Side({
  name,
  compared,
  pick,
}: {
  name: ReactNode;
  compared: Aligned;
  pick: "left" | "right" | "delta";
}) {
  return (
    <tr data-row={pick}>
      <th scope="row">{name}</th>
      {figures(compared).map((figure) => (
        <td key={figure.name} data-equal={figure.delta === null || undefined}>
          {figure[pick] ?? "="}
        </td>
      ))}
    </tr>
  );
}

function Open({ id, children }: { id: string; children: ReactNode }) {
  return (
    <Link to="/sessions/$sessionId" params={{ sessionId: id }} className={classes.link} title={`open ${id}`}>
      {children}
    </Link>
  );
}

export function Remembered({ memory }: { memory: MemoryDelta }) {
  return (
    <Panel title="Memory" aside={`${plural(memory.both, "fact")} in both`}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: many facts must be scrollable by keyboard */}
      <section className={classes.memory} tabIndex={0} aria-label="Facts of one side only">
        <Facts mark="←" name="left only" facts={memory.left_only} count={memory.left_only_count} />
        <Facts mark="→" name="right only" facts={memory.right_only} count={memory.right_only_count} />
      </section>
    </Panel>
  );
}

function Facts({ mark, name, facts, count }: { mark: string; name: string; facts: string[]; count: number }) {
  return (
    <section aria-label={`Facts ${name}`}>
      <h3>
        <span aria-hidden>{mark}</span> {name}, {count}
      </h3>
      {facts.length === 0 ? (
        <p className={classes.faint}>none</p>
      ) : (
        <ul>
          {facts.map((fact) => (
            <li key={fact}>{fact}</li>
          ))}
          {count > facts.length && <li className={classes.faint}>and {count - facts.length} more</li>}
        </ul>
      )}
    </section>
  );
}
