// Inline confirmation of an irreversible action: its consequences, a button that names it, and cancel.
import { Button } from "@mantine/core";
import { type ReactNode, useEffect, useRef, useState } from "react";
import classes from "./ConfirmInline.module.css";

interface Props {
  /** What will happen and what stays, in a sentence or two. */
  children: ReactNode;
  /** The button's label: "Discard 3 dead letters". */
  does: string;
  /** Dangerous, or only to be protected from a slip. */
  danger?: boolean;
  /** Text to be typed before the button is enabled. */
  typed?: string;
  /** False where it appears by itself below a field that still has the focus. */
  takesFocus?: boolean;
  onYes: () => Promise<unknown> | undefined;
  onNo: () => void;
}

export function ConfirmInline({
  children,
  does,
  danger = true,
  typed,
  takesFocus = true,
  onYes,
  onNo,
}: Props) {
  const [busy, setBusy] = useState(false);
  const [text, setText] = useState("");
  const box = useRef<HTMLDivElement>(null);
  // It takes focus as it appears: Esc means cancel, and not "leave the view".
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when it appears
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
          Cancel
        </Button>
      </div>
    </div>
  );
}
