// The sign-in page. A key is exchanged for a one-time link at once and never stored; the link sets the
// browser's cookie. The user stays on the requested address.
import { Button, PasswordInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { Problem } from "~/api/client";
import { questions } from "~/api/queries";
import { live } from "~/live/connection";
import classes from "./SignIn.module.css";
import { useUnfinished } from "./unfinished";

async function signIn(key: string): Promise<void> {
  const unreachable = new Problem(0, "unreachable", "The gateway cannot be reached. Try again.");
  const asked = await fetch("/v1/logins", {
    method: "POST",
    credentials: "omit",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: "{}",
  }).catch(() => {
    throw unreachable;
  });
  const loginAnswer = (await asked.json().catch(() => ({}))) as {
    url?: string;
    detail?: string;
    reason?: string;
  };
  if (asked.status === 401) throw new Problem(401, "unauthorized", "Unknown key.");
  if (!asked.ok || !loginAnswer.url)
    throw new Problem(
      asked.status,
      loginAnswer.reason ?? "failed",
      loginAnswer.detail ?? "The gateway returned no login link.",
    );
  // The link may use another host name than this page: only its token counts.
  const token = new URL(loginAnswer.url).searchParams.get("token") ?? "";
  const followed = await fetch(`/login?token=${encodeURIComponent(token)}`, {
    method: "POST",
    credentials: "same-origin",
  }).catch(() => {
    throw unreachable;
  });
  if (!followed.ok) throw new Problem(followed.status, "failed", "The login link was refused. Try again.");
}

export function SignIn({ tenant, leave }: { tenant?: string; leave?: () => void }) {
  const [key, setKey] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await signIn(key.trim());
      setKey("");
      leave?.();
      await questions.resetQueries();
      live.retry();
    } catch (error) {
      setProblem((error as Error).message);
    }
    setBusy(false);
  };
  const left = useUnfinished();
  const isUsed = new URLSearchParams(location.search).get("login") === "used";
  const wanted = location.pathname + (isUsed ? "" : location.search);
  return (
    <main className={classes.page}>
      <div className={classes.card}>
        <h1>Hypervisor Observatory</h1>
        <p>
          {tenant
            ? `To enter ${tenant}, sign in with a key or link of that tenant. You will leave the current one.`
            : isUsed
              ? "This login link was already used or has expired. Sign in with a key, or get a new link."
              : "You are not signed in, or your sign-in has ended."}
        </p>
        {left && (
          <p className={classes.unfinished} role="alert">
            {left}
          </p>
        )}
        <form onSubmit={submit}>
          <PasswordInput
            label="Key"
            description="An operator, approver, auditor, viewer or admin key; it is not stored."
            placeholder="obs_…"
            autoComplete="off"
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
            error={problem}
            data-autofocus
            autoFocus
          />
          <Button type="submit" fullWidth mt={12} loading={busy} disabled={key.trim() === ""}>
            Sign in
          </Button>
          {leave && (
            <Button fullWidth mt={8} variant="default" onClick={leave}>
              Stay here
            </Button>
          )}
        </form>
        <p className={classes.or}>
          or, on the gateway's machine, create a one-time login link, as operator or as admin:
          <code>observatory login</code>
          <code>observatory login --user admin</code>
        </p>
        {wanted !== "/fleet" && wanted !== "/" && (
          <p className={classes.wanted}>You will be taken to {location.pathname}.</p>
        )}
      </div>
    </main>
  );
}

/** The gateway did not respond when the page was loaded: it may be starting. */
export function Away({ detail }: { detail: string }) {
  return (
    <main className={classes.page}>
      <div className={classes.card} role="alert">
        <h1>Gateway unreachable</h1>
        <p>{detail}</p>
        <p>This page retries every two seconds. Nothing is lost: agents keep what they could not send.</p>
        <p className={classes.or}>
          If it is not running:
          <code>observatory serve</code>
        </p>
      </div>
    </main>
  );
}
