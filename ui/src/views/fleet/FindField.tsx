// The find or hide field: explains its expression while one types. A fault is shown at its position with a
// correction, and the previous expression stays in force; the result is shown as "12 of 60".
import { Popover, TextInput } from "@mantine/core";
import { useEffect, useMemo, useRef, useState } from "react";
import { type Fault, matches, type NodeRecord, parseFind } from "~/graph";
import { useUrl } from "~/useUrl";
import classes from "./FindField.module.css";

interface Props {
  name: "find" | "hide";
  text: string;
  nodes: readonly NodeRecord[];
}

const TYPED_MS = 200;
const EXAMPLES: readonly [string, string][] = [
  ["state:blocked|loop", "in one of these states"],
  ["type:writer cluster:aws-*", "both must match; * matches anything"],
  ["rate>5 cost>0.1", "figures: rate, cost, failures, messages"],
  ["-researcher is:alarmed", "- excludes; is: ghost, alarmed, dead"],
];
const WORDS = {
  find: { label: "Find agents", placeholder: "find: state:blocked type:writer rate>5", done: "found" },
  hide: { label: "Hide agents", placeholder: "hide: state:idle", done: "hidden" },
};

export function FindField({ name, text, nodes }: Props) {
  const [, setUrl] = useUrl();
  const [typed, setTyped] = useState(text);
  const [open, setOpen] = useState(false);
  const lastWritten = useRef(text);
  // The URL may change from elsewhere (back button, a saved view): it wins.
  if (lastWritten.current !== text) {
    lastWritten.current = text;
    if (typed !== text) setTyped(text);
  }
  const parsed = useMemo(() => parseFind(typed), [typed]);
  useEffect(() => {
    if (typed === lastWritten.current || !parsed.ok) return;
    const timer = setTimeout(() => {
      lastWritten.current = typed;
      setUrl({ [name]: typed }, true);
    }, TYPED_MS);
    return () => clearTimeout(timer);
  }, [typed, parsed, name, setUrl]);
  const count = useMemo(
    () => (parsed.ok && typed.trim() ? nodes.filter((node) => matches(parsed.terms, node)).length : null),
    [parsed, typed, nodes],
  );
  const words = WORDS[name];
  const faults = parsed.ok ? [] : parsed.faults;
  return (
    <Popover
      opened={open && (faults.length > 0 || typed === "")}
      position="bottom-start"
      width={340}
      shadow="md"
      trapFocus={false}
      withRoles={false}
    >
      <Popover.Target>
        <TextInput
          size="xs"
          className={classes.field}
          data-name={name}
          aria-label={words.label}
          aria-invalid={faults.length > 0}
          aria-describedby={faults.length > 0 ? `${name}-faults` : undefined}
          placeholder={words.placeholder}
          value={typed}
          data-fleet-field={name}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => setTyped(event.currentTarget.value)}
          onFocus={() => setOpen(true)}
          onBlur={() => setOpen(false)}
          rightSectionWidth={count === null && !typed ? 0 : 96}
          rightSection={
            <span className={classes.count} aria-live="polite">
              {count !== null && `${count} of ${nodes.length} ${words.done}`}
              {faults.length > 0 && <span className={classes.wrong}>! invalid</span>}
            </span>
          }
        />
      </Popover.Target>
      <Popover.Dropdown className={classes.help} onMouseDown={(event) => event.preventDefault()}>
        {faults.length > 0 ? (
          <Faults id={`${name}-faults`} text={typed} faults={faults} />
        ) : (
          <ul>
            {EXAMPLES.map(([example, says]) => (
              <li key={example}>
                <button type="button" tabIndex={-1} onClick={() => setTyped(example)}>
                  {example}
                </button>
                <span>{says}</span>
              </li>
            ))}
          </ul>
        )}
      </Popover.Dropdown>
    </Popover>
  );
}

function Faults({ id, text, faults }: { id: string; text: string; faults: readonly Fault[] }) {
  const first = faults[0];
  return (
    <div id={id} role="alert">
      {first && (
        <code className={classes.place}>
          {text.slice(0, first.at)}
          <mark>{text.slice(first.at, first.at + Math.max(1, first.length)) || " "}</mark>
          {text.slice(first.at + Math.max(1, first.length))}
        </code>
      )}
      {faults.map((fault) => (
        <p key={`${fault.at} ${fault.says}`}>{fault.says}</p>
      ))}
      <p className={classes.kept}>The previous expression stays in force.</p>
    </div>
  );
}
