// A secret shown once, with a copy button and a warning.
import { Button, CopyButton } from "@mantine/core";
import classes from "./Parts.module.css";

export function Secret({
  secret,
  children,
  onSeen,
}: {
  secret: string;
  children: React.ReactNode;
  onSeen: () => void;
}) {
  return (
    <section className={classes.secret} aria-label="Secret, shown once">
      <p>
        <b>! Shown only once.</b> {children} If it is lost, rotate it.
      </p>
      <code>{secret}</code>
      <div className={classes.buttons}>
        <Copy value={secret} word="Copy secret" />
        <Button size="compact-sm" variant="default" onClick={onSeen}>
          I have saved it
        </Button>
      </div>
    </section>
  );
}

export function Copy({ value, word }: { value: string; word: string }) {
  return (
    <CopyButton value={value}>
      {({ copied, copy }) => (
        <Button size="compact-sm" variant="default" onClick={copy}>
          {copied ? "Copied" : word}
        </Button>
      )}
    </CopyButton>
  );
}
