// The message's sender, type and number, and links from here.
import { Button, CopyButton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { AuditEvent, MessageItem } from "~/protocol/openapi";
import { Ago, Id } from "~/widgets/Figures";
import { inert } from "~/widgets/inert";
import { Tag } from "~/widgets/Mark";
import classes from "./Message.module.css";

const TONES: Record<MessageItem["state"], string> = {
  forwarded: "good",
  held: "blocked",
  refused: "violation",
  rejected: "alert",
};

interface Props {
  message: MessageItem;
  event: AuditEvent | undefined;
  does: string | undefined;
  before: string | null;
  after: string | null;
}

export function Header({ message, event, does, before, after }: Props) {
  const sender = inert(String(event?.attributes["av.sender.agent_id"] ?? "")) || "Unknown sender";
  return (
    <header className={classes.header}>
      <nav aria-label="Drill-down" className={classes.crumbs}>
        <Link to="/forensics">Archive</Link>
      </nav>
      <h1>
        Message {message.sequence_number.toLocaleString("en")}: {sender} {does ?? "says"}
      </h1>
      <Tag tone={TONES[message.state]}>{message.state}</Tag>
      <Tag tone="idle">{message.message_type}</Tag>
      <span className={classes.faint}>
        {event && <Ago at={event.timestamp} />} <Id id={message.message_id} length={22} />
      </span>
      <span className={classes.doing}>
        <Turn to={before} label="‹ Previous" />
        <Turn to={after} label="Next ›" />
        <Button
          component={Link}
          to="/sessions/$sessionId"
          params={{ sessionId: message.session_id } as never}
          search={{ step: message.step_id } as never}
          size="compact-sm"
          variant="default"
        >
          Open in session
        </Button>
        <CopyButton value={location.href}>
          {({ copied, copy }) => (
            <Button size="compact-sm" variant="default" onClick={copy}>
              {copied ? "Copied" : "Copy link"}
            </Button>
          )}
        </CopyButton>
      </span>
    </header>
  );
}

function Turn({ to, label }: { to: string | null; label: string }) {
  if (!to)
    return (
      <Button size="compact-sm" variant="default" disabled>
        {label}
      </Button>
    );
  return (
    <Button
      component={Link}
      to="/forensics/message/$messageId"
      params={{ messageId: to } as never}
      size="compact-sm"
      variant="default"
    >
      {label}
    </Button>
  );
}
