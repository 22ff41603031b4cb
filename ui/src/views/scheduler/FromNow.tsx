// After a wrong clock: what is wrong with it stands in the line above; here a person says that it is right now.
import { Button } from "@mantine/core";
import { useState } from "react";
import { goOnFromNow } from "~/acts/jobs";
import type { ClockHealth } from "~/protocol/openapi";
import { exact } from "~/widgets/clock";
import { useWhyNot } from "~/widgets/people";
import { Sure } from "~/widgets/Sure";

export function FromNow({ clock }: { clock: ClockHealth }) {
  const denied = useWhyNot("operate");
  const [asking, setAsking] = useState(false);
  if (!asking)
    return (
      <div>
        <Button
          size="compact-sm"
          variant="default"
          disabled={denied !== undefined}
          title={denied}
          onClick={() => setAsking(true)}
        >
          Resume from now…
        </Button>
      </div>
    );
  return (
    <Sure
      does="Resume from now"
      danger={false}
      onNo={() => setAsking(false)}
      onYes={async () => {
        if (await goOnFromNow()) setAsking(false);
      }}
    >
      <p>
        The gateway's clock shows {exact(clock.shows)}. If that is right, schedules fire by their next time
        from now on. Nothing in between is made up for.
      </p>
    </Sure>
  );
}
