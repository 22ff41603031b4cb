// A secret shown only once: a key, or a sign-in link. It stays until dismissed, also across boards; in the
// page's memory only, and never for another user who signs in on this page.
import { Button, CopyButton } from "@mantine/core";
import { useSyncExternalStore } from "react";
import { forgetWithDrafts } from "~/widgets/drafts";
import classes from "./Access.module.css";

interface Secret {
  title: string;
  secret: string;
  says: string;
}

let shown: Secret | null = null;
const listeners = new Set<() => void>();

function put(secret: Secret | null): void {
  shown = secret;
  for (const listener of listeners) listener();
}

forgetWithDrafts(() => put(null));

export function useOnce(): [Secret | null, (secret: Secret | null) => void] {
  const one = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shown,
  );
  return [one, put];
}

export function OneTimeSecret() {
  const [one] = useOnce();
  if (!one) return null;
  return (
    <section className={classes.once} aria-label={one.title}>
      <h3>{one.title}</h3>
      <p>{one.says} Shown only once; the gateway stores only a hash.</p>
      <code>{one.secret}</code>
      <div className={classes.buttons}>
        <CopyButton value={one.secret}>
          {({ copied, copy }) => (
            <Button size="compact-sm" onClick={copy}>
              {copied ? "Copied" : "Copy"}
            </Button>
          )}
        </CopyButton>
        <Button size="compact-sm" variant="default" onClick={() => put(null)}>
          I have saved it
        </Button>
      </div>
    </section>
  );
}
