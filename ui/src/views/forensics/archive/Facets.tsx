// Facets of the hits with counts: a click adds the value to the query as a filter, another removes it.
import { useMediaQuery } from "@mantine/hooks";
import type { Facets as Counted } from "~/protocol/openapi";
import { short } from "~/widgets/format";
import { inert } from "~/widgets/inert";
import classes from "./Facets.module.css";
import { asksFor, leftOut, toggledFilter } from "./queryPieces";

const FACETS: readonly [keyof Counted, string][] = [
  ["agent", "Agent"],
  ["type", "Type"],
  ["status", "Status"],
  ["state", "State"],
  ["tool", "Tool"],
  ["session", "Session"],
];
const FEW = 6;

interface Props {
  facets: Counted | null;
  q: string;
  capped: boolean;
  onAsk: (q: string) => void;
}

export function Facets({ facets, q, capped, onAsk }: Props) {
  const isNarrow = useMediaQuery("(max-width: 760px)", false, { getInitialValueInEffect: false });
  if (!facets) return <aside className={classes.facets} aria-label="Filters" />;
  const groups = FACETS.filter(([name]) => facets[name].length > 0).map(([name, title]) => (
    <Group key={name} name={name} title={title} values={facets[name]} q={q} onAsk={onAsk} />
  ));
  return (
    <aside className={classes.facets} aria-label="Filters">
      {isNarrow ? (
        <details className={classes.folded}>
          <summary>Filters</summary>
          {groups}
        </details>
      ) : (
        groups
      )}
      {capped && <p className={classes.capped}>Counted over the newest 2,000.</p>}
    </aside>
  );
}

interface GroupProps {
  name: keyof Counted;
  title: string;
  values: Counted[keyof Counted];
  q: string;
  onAsk: (q: string) => void;
}

function Group({ name, title, values, q, onAsk }: GroupProps) {
  return (
    <details className={classes.group} open={name !== "session" && name !== "tool"}>
      <summary>{title}</summary>
      <ul>
        {values.slice(0, name === "agent" ? 10 : FEW).map(({ value, count }) => {
          const isOn = asksFor(q, name, value) !== undefined;
          return (
            <li key={value}>
              <button
                type="button"
                className={classes.value}
                aria-pressed={isOn}
                title={inert(value)}
                onClick={() => onAsk(toggledFilter(q, name, value))}
              >
                <span>{inert(value)}</span>
                <b>{short(count)}</b>
              </button>
              {!isOn && (
                <button
                  type="button"
                  className={classes.out}
                  aria-label={`exclude ${inert(value)}`}
                  title={`exclude ${inert(value)}`}
                  onClick={() => onAsk(leftOut(q, name, value))}
                >
                  −
                </button>
              )}
            </li>
          );
        })}
      </ul>
    </details>
  );
}
