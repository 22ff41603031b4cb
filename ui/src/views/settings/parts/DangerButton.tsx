// A button for an irreversible action, replaced by its confirmation once pressed.
import { Button } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { ConfirmInline } from "~/widgets/ConfirmInline";

interface Props {
  word: string;
  does: string;
  denied: string | undefined;
  danger?: boolean;
  typed?: string;
  onYes: () => Promise<unknown>;
  children: ReactNode;
}

export function DangerButton({ word, does, denied, danger = true, typed, onYes, children }: Props) {
  const [asking, setAsking] = useState(false);
  if (asking)
    return (
      <ConfirmInline
        does={does}
        danger={danger}
        {...(typed !== undefined && { typed })}
        onYes={async () => {
          await onYes();
          setAsking(false);
        }}
        onNo={() => setAsking(false)}
      >
        {children}
      </ConfirmInline>
    );
  return (
    <Button
      size="compact-sm"
      variant="default"
      disabled={denied !== undefined}
      title={denied}
      onClick={() => setAsking(true)}
    >
      {word}…
    </Button>
  );
}

/** A button with a busy state. */
export function BusyButton({
  word,
  denied,
  onClick,
}: {
  word: string;
  denied: string | undefined;
  onClick: () => Promise<unknown>;
}) {
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    await onClick().finally(() => setBusy(false));
  };
  return (
    <Button
      size="compact-sm"
      variant="default"
      loading={busy}
      disabled={denied !== undefined}
      title={denied}
      onClick={() => void run()}
    >
      {word}
    </Button>
  );
}
