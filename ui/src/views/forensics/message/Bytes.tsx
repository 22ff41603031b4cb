// The bytes as they were archived, and whether they are those the record names: hashed in this browser.
import { Button } from "@mantine/core";
import type { AuditEvent, MessageItem } from "~/protocol/openapi";
import { ExactBytes } from "~/widgets/ExactBytes";
import { useExact } from "~/widgets/exact";
import { Panel, Shown } from "~/widgets/Panel";
import classes from "./Message.module.css";
import { digestOf } from "./place";

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
            Its bytes were shredded by order; its place and its hash still stand.
          </p>
        ) : (
          <Shown asked={exact} rows={6}>
            {(content) => <ExactBytes content={content} digest={digest} />}
          </Shown>
        )}
      </div>
    </Panel>
  );
}
