// Asked in place before what cannot be undone: what will happen, a button that says it, and the way back.
import { Button } from "@mantine/core";
import { type ReactNode, useEffect, useRef, useState } from "react";
import classes from "./Sure.module.css";

interface Props {
  /** What will happen and what stays, in a sentence or two. */
  children: ReactNode;
  /** The act, in words: "Discard 3 letters". */
  does: string;
  /** Danger, or merely not to be done by a slip. */
  danger?: boolean;
  /** To be typed before the button works. */
  typed?: string;
  /** Not where it comes up by itself below a field that is still being typed in or chosen from. */
  takesFocus?: boolean;
  onYes: () => Promise<unknown> | undefined;
  onNo: () => void;
}

export function Sure({ children, does, danger = true, typed, takesFocus = true, onYes, onNo }: Props) {
  const [busy, setBusy] = useState(false);
  const [text, setText] = useState("");
  const box = useRef<HTMLDivElement>(null);
  // One is in it as soon as it is asked: Esc means no, and not "leave the view".
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when it comes up
  useEffect(() => {
    if (takesFocus) box.current?.focus();
  }, []);
  const yes = async () => {
    setBusy(true);
    try {
      await onYes();
    } finally {
      setBusy(false);
    }
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset has a look and a legend of its own
    <div
      ref={box}
      tabIndex={-1}
      className={classes.sure}
      role="group"
      aria-label={does}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        onNo();
      }}
    >
      <div>{children}</div>
      {typed !== undefined && (
        <label className={classes.typed}>
          Type <b>{typed}</b> to confirm
          <input
            value={text}
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => setText(event.currentTarget.value)}
          />
        </label>
      )}
      <div className={classes.buttons}>
        <Button
          size="compact-sm"
          color={danger ? "red" : undefined}
          loading={busy}
          disabled={typed !== undefined && text.trim() !== typed}
          onClick={() => void yes()}
        >
          {does}
        </Button>
        <Button size="compact-sm" variant="default" onClick={onNo}>
          No, leave it
        </Button>
      </div>
    </div>
  );
}
