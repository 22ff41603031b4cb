// The archived bytes, and whether they match the recorded digest: hashed in this browser.
import { Button } from "@mantine/core";
import type { AuditEvent, MessageItem } from "~/protocol/openapi";
import { ExactBytes } from "~/widgets/ExactBytes";
import { useExact } from "~/widgets/exactBytes";
import { Loaded, Panel } from "~/widgets/Panel";
import { digestOf } from "./chainPosition";
import classes from "./Message.module.css";

export function Bytes({ message, event }: { message: MessageItem; event: AuditEvent | undefined }) {
  const exact = useExact(message.shredded ? null : message.message_id, message.session_id, null);
  const digest = digestOf(event);
  if (message.shredded) return null;
  const raw = `/v1/messages/${encodeURIComponent(message.message_id)}?raw=true`;
  return (
    <Panel
      title="Exact bytes"
      aside={
        <Button
          component="a"
          href={raw}
          download={`${message.message_id}.json`}
          size="compact-xs"
          variant="default"
        >
          Download
        </Button>
      }
    >
      <div className={classes.part}>
        {exact.error?.code === 410 ? (
          <p className={classes.faint}>
            Its content was shredded by retention; its position and hash remain.
          </p>
        ) : (
          <Loaded query={exact} rows={6}>
            {(content) => <ExactBytes content={content} digest={digest} />}
          </Loaded>
        )}
      </div>
    </Panel>
  );
}
