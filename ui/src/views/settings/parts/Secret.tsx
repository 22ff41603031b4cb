// A secret, this once: with a button to copy it, and the warning that it is not told again.
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
    <section className={classes.secret} aria-label="The secret, shown once">
      <p>
        <b>! Shown this once.</b> {children} If it is lost, rotate it.
      </p>
      <code>{secret}</code>
      <div className={classes.buttons}>
        <Copy value={secret} word="Copy the secret" />
        <Button size="compact-sm" variant="default" onClick={onSeen}>
          I have kept it
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
