// After a clock jump: the line above shows the problem; here a person confirms that the clock is right.
import { Button } from "@mantine/core";
import { useState } from "react";
import { resumeFromNow } from "~/commands/jobs";
import type { ClockHealth } from "~/protocol/openapi";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { exact } from "~/widgets/clock";
import { useWhyNot } from "~/widgets/users";

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
    <ConfirmInline
      does="Resume from now"
      danger={false}
      onNo={() => setAsking(false)}
      onYes={async () => {
        if (await resumeFromNow()) setAsking(false);
      }}
    >
      <p>
        The gateway's clock shows {exact(clock.shows)}. If that is correct, schedules resume at their next
        time. Missed runs in between are not caught up.
      </p>
    </ConfirmInline>
  );
}
