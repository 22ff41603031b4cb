// The blocks of a story. Untrusted text: shown inert, and very long ones cut until expanded.
import { useState } from "react";
import { beginning, inert } from "~/widgets/inert";
import { Json, pretty } from "~/widgets/Json";
import classes from "./Message.module.css";
import { type Block, hrefOf } from "./story";

const LONG = 8_192;
const MORE = 65_536;
const MANY = 100;

export function Blocks({ blocks }: { blocks: readonly Block[] }) {
  return (
    <div className={classes.story}>
      {blocks.map((block, n) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: blocks have no identity but their place
        <section key={n} aria-label={"title" in block ? block.title || "Text" : "Summary"}>
          {"title" in block && block.title && <h3>{block.title}</h3>}
          <Inside block={block} />
        </section>
      ))}
    </div>
  );
}

function Inside({ block }: { block: Block }) {
  switch (block.kind) {
    case "lead":
      return (
        <p className={classes.lead} dir="auto">
          <LongText text={block.text} most={1_024} />
        </p>
      );
    case "text":
      return (
        <p className={classes.text} dir="auto">
          <LongText text={block.text} />
        </p>
      );
    case "lines":
      return <Lines lines={block.lines} isOrdered={block.isOrdered ?? false} />;
    case "facts":
      return (
        <dl className={classes.facts}>
          {block.facts.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <LongText text={value} most={512} />
              </dd>
            </div>
          ))}
        </dl>
      );
    case "links":
      return (
        <ul className={classes.plain}>
          {block.links.slice(0, MANY).map(({ uri, label, type }, n) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: one source may be named twice
            <li key={n}>
              {hrefOf(uri) ? (
                <a href={hrefOf(uri) ?? undefined} target="_blank" rel="noreferrer" title={inert(uri)}>
                  {inert(label)}
                </a>
              ) : (
                <span className="mono">{inert(label === uri ? uri : `${label} ${uri}`)}</span>
              )}{" "}
              {type && <span className={classes.faint}>{inert(type)}</span>}
            </li>
          ))}
        </ul>
      );
    case "json":
      return <LongJson value={block.value} title={block.title} />;
  }
}

function Lines({ lines, isOrdered }: { lines: readonly string[]; isOrdered: boolean }) {
  const [all, setAll] = useState(false);
  const List = isOrdered ? "ol" : "ul";
  return (
    <>
      <List className={isOrdered ? classes.ordered : classes.plain}>
        {lines.slice(0, all ? 2_000 : MANY).map((line, n) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no identity but their place
          <li key={n} dir="auto">
            <LongText text={line} most={2_048} />
          </li>
        ))}
      </List>
      {!all && lines.length > MANY && (
        <button type="button" className={classes.more} onClick={() => setAll(true)}>
          {(lines.length - MANY).toLocaleString("en")} more
        </button>
      )}
    </>
  );
}

function LongText({ text, most = LONG }: { text: string; most?: number }) {
  const [shown, setShown] = useState(most);
  const cut = beginning(text, shown);
  return (
    <>
      {inert(cut.text)}
      {cut.left > 0 && (
        <>
          …{" "}
          <button type="button" className={classes.more} onClick={() => setShown(shown + MORE)}>
            {cut.left.toLocaleString("en")} more characters
          </button>
        </>
      )}
    </>
  );
}

function LongJson({ value, title }: { value: unknown; title: string }) {
  const [shown, setShown] = useState(MORE);
  const cut = beginning(pretty(value), shown);
  return (
    <>
      <Json value={inert(cut.text)} label={title} />
      {cut.left > 0 && (
        <button type="button" className={classes.more} onClick={() => setShown(shown + MORE)}>
          {cut.left.toLocaleString("en")} more characters
        </button>
      )}
    </>
  );
}
