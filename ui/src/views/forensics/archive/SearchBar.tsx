// The query field, explained while it is typed: each piece as a chip, completions as a list, the parsed query
// as a sentence, and parse errors under their very characters.
import { CloseButton, SegmentedControl, TextInput } from "@mantine/core";
import { type RefObject, useEffect, useId, useMemo, useRef, useState } from "react";
import type { SearchAnswer } from "~/protocol/openapi";
import { useSearchText } from "~/widgets/useSearchText";
import { type Completion, completions, type Values } from "./completions";
import { type Chip, chipsOf, fieldOf, without } from "./queryPieces";
import { type Mode, pointed, sentenceOf } from "./queryText";
import classes from "./SearchBar.module.css";

interface Props {
  q: string;
  mode: Mode;
  answer: SearchAnswer | undefined;
  known: Values;
  field: RefObject<HTMLInputElement | null>;
  onAsk: (q: string, replace?: boolean) => void;
  onMode: (mode: Mode) => void;
}

export function SearchBar({ q, mode, answer, known, field, onAsk, onMode }: Props) {
  const search = useSearchText(q, (typed) => onAsk(typed ?? "", true));
  const [cursor, setCursor] = useState<number | null>(null);
  const [active, setActive] = useState(-1);
  const list = useId();
  const goTo = useRef<number | null>(null);
  const offered = useMemo(
    () => (cursor === null ? [] : completions(search.text, cursor, known)),
    [search.text, cursor, known],
  );
  const at = Math.min(active, offered.length - 1);
  const chips = useMemo(() => chipsOf(search.text), [search.text]);
  useEffect(() => {
    if (goTo.current === null) return;
    field.current?.setSelectionRange(goTo.current, goTo.current);
    setCursor(goTo.current);
    goTo.current = null;
  });
  const accept = ({ question, cursor: to }: Completion) => {
    goTo.current = to;
    setActive(-1);
    search.type(question);
  };
  const press = (event: React.KeyboardEvent<HTMLInputElement>) => {
    const chosen = offered[at];
    if (event.key === "ArrowDown" && offered.length > 0) setActive(Math.min(at + 1, offered.length - 1));
    else if (event.key === "ArrowUp" && offered.length > 0) setActive(Math.max(at - 1, -1));
    else if ((event.key === "Enter" || event.key === "Tab") && chosen) accept(chosen);
    else if (event.key === "Escape" && offered.length > 0) setCursor(null);
    else if (event.key === "Enter") {
      setCursor(null);
      onAsk(search.text.trim());
      document.querySelector<HTMLElement>("tr[data-reached]")?.focus();
    } else return;
    event.preventDefault();
  };
  const isOpen = offered.length > 0;
  return (
    <search className={classes.bar} aria-label="Search the archive">
      <div className={classes.line}>
        <div className={classes.field}>
          <TextInput
            ref={field}
            size="sm"
            classNames={{ input: classes.input }}
            aria-label="Search the archive"
            placeholder='agent:planner status:failure since:1h "rate limit" ~"money back"'
            role="combobox"
            aria-expanded={isOpen}
            aria-controls={isOpen ? list : undefined}
            aria-autocomplete="list"
            aria-activedescendant={at >= 0 ? `${list}-${at}` : undefined}
            aria-invalid={(answer?.problems.length ?? 0) > 0}
            aria-describedby={`${list}-says`}
            spellCheck={false}
            autoComplete="off"
            maxLength={4_096}
            value={search.text}
            onChange={(event) => {
              setActive(-1);
              setCursor(event.currentTarget.selectionStart ?? event.currentTarget.value.length);
              search.type(event.currentTarget.value);
            }}
            onSelect={(event) => {
              if (cursor !== null) setCursor(event.currentTarget.selectionStart);
            }}
            onFocus={(event) => setCursor(event.currentTarget.selectionStart)}
            onBlur={() => setCursor(null)}
            onKeyDown={press}
            rightSection={
              search.text && (
                <CloseButton
                  size="sm"
                  aria-label="Clear search"
                  onClick={() => {
                    search.clear();
                    onAsk("");
                    field.current?.focus();
                  }}
                />
              )
            }
          />
          {isOpen && (
            <div className={classes.offers}>
              <div id={list} role="listbox" aria-label="Completions" tabIndex={-1}>
                {offered.map((one, n) => (
                  // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
                  <div
                    key={one.text}
                    id={`${list}-${n}`}
                    role="option"
                    tabIndex={-1}
                    aria-selected={n === at}
                    onMouseDown={(event) => event.preventDefault()}
                    onClick={() => accept(one)}
                  >
                    <code>{one.text}</code>
                    <span>{one.says}</span>
                  </div>
                ))}
              </div>
              {search.text.trim() === "" && (
                <p>
                  words match by text and by meaning · <code>"in this order"</code> ·{" "}
                  <code>~meaning only</code> · <code>-without</code> · <code>this OR that</code> ·{" "}
                  <code>begin*</code>
                </p>
              )}
            </div>
          )}
        </div>
        <SegmentedControl
          size="xs"
          aria-label="Search by"
          value={mode}
          onChange={(next) => onMode(next as Mode)}
          data={[
            { value: "hybrid", label: "Words and meaning" },
            { value: "text", label: "Words" },
            { value: "semantic", label: "Meaning" },
          ]}
        />
      </div>
      {chips.length > 0 && (
        <ul className={classes.chips} aria-label="Query parts">
          {chips.map((chip) => (
            <ChipOf
              key={`${chip.piece.start} ${chip.label}`}
              chip={chip}
              onRemove={() => {
                const rest = without(search.text, chip.piece);
                search.type(rest);
                field.current?.focus();
              }}
            />
          ))}
        </ul>
      )}
      <QuerySentence id={`${list}-says`} q={q} mode={mode} answer={answer} />
    </search>
  );
}

const MARKS: Record<Chip["kind"], [mark: string, says: string]> = {
  filter: ["", ""],
  meaning: ["≈", "similar meaning"],
  phrase: ["“”", "these words in this order"],
  word: ["", "this word, or its meaning"],
  join: ["", "joins its neighbours"],
  without: ["−", "exclude matches"],
  unknown: ["?", "unknown filter: searched as words"],
};

function ChipOf({ chip, onRemove }: { chip: Chip; onRemove: () => void }) {
  const [mark, says] = MARKS[chip.kind];
  const field = fieldOf(chip.piece);
  const title = field ? `${field.name}: ${chip.piece.sign === "-" ? "not " : ""}${field.says}` : says;
  return (
    <li className={classes.chip} data-kind={chip.kind} title={title}>
      {mark && <span aria-hidden>{mark}</span>}
      <code>{chip.label}</code>
      <span className="unseen">{title}</span>
      <button type="button" aria-label={`remove ${chip.label}`} onClick={onRemove}>
        ×
      </button>
    </li>
  );
}

function QuerySentence({
  id,
  q,
  mode,
  answer,
}: {
  id: string;
  q: string;
  mode: Mode;
  answer: SearchAnswer | undefined;
}) {
  if (!answer)
    return (
      <p id={id} className={classes.says}>
        {q.trim() ? "Parsing the query…" : " "}
      </p>
    );
  const placed = new Set(answer.problems.map((one) => one.sentence));
  // A capped result is shown next to the count of hits.
  const others = answer.warnings.filter((one) => !placed.has(one) && !one.startsWith("there are more"));
  return (
    <div id={id} className={classes.says}>
      <p>{sentenceOf(answer.query, mode, answer.semantic)}</p>
      {answer.problems.map((problem) => {
        const { before, bad, after, sentence } = pointed(q, problem);
        return (
          <div key={`${problem.start} ${sentence}`} className={classes.problem} role="alert">
            <code aria-hidden>
              {before}
              <span className={classes.bad}>
                {bad}
                <span className={classes.carets}>^</span>
              </span>
              {after}
            </code>
            <p>
              <span className="unseen">At “{bad}”: </span>! {sentence}
            </p>
          </div>
        );
      })}
      {others.map((sentence) => (
        <p key={sentence} className={classes.warning}>
          ! {sentence}
        </p>
      ))}
    </div>
  );
}
